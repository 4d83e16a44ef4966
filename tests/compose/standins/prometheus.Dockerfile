# Stands in for prom/prometheus, from Debian's package; as there: wget, user nobody, /bin/prometheus.
FROM debian:bookworm-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends prometheus wget \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir -p /prometheus && chown nobody:nogroup /prometheus \
    && { test -e /usr/bin/prometheus || ln -s prometheus /usr/bin/prometheus; }
USER nobody
WORKDIR /prometheus
ENTRYPOINT ["/bin/prometheus"]

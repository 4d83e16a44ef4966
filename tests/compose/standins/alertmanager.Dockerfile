# Stands in for prom/alertmanager, from Debian's package; as there: wget, user nobody, /bin/alertmanager.
FROM debian:bookworm-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends prometheus-alertmanager wget \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir -p /alertmanager && chown nobody:nogroup /alertmanager \
    && { test -e /usr/bin/alertmanager || ln -s prometheus-alertmanager /usr/bin/alertmanager; }
USER nobody
WORKDIR /alertmanager
ENTRYPOINT ["/bin/alertmanager"]

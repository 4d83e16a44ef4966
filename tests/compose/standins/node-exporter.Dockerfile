# Stands in for prom/node-exporter, from Debian's package; as there: wget, user nobody, /bin/node_exporter.
FROM debian:bookworm-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends prometheus-node-exporter wget \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir -p /node_exporter && chown nobody:nogroup /node_exporter \
    && { test -e /usr/bin/node_exporter || ln -s prometheus-node-exporter /usr/bin/node_exporter; }
USER nobody
WORKDIR /node_exporter
ENTRYPOINT ["/bin/node_exporter"]

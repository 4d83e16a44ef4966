# Stands in for rust:1.88-slim-bookworm: the machine's own compiler, with Debian's linker.
FROM debian:bookworm-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=nightwire-test/rust:here /bin /usr/local/bin
COPY --from=nightwire-test/rust:here /lib /usr/local/lib
ENV CARGO_HOME=/usr/local/cargo CARGO_HTTP_CAINFO=/etc/ssl/certs/ca-certificates.crt
CMD ["bash"]

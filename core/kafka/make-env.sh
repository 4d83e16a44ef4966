#!/bin/sh
# Write .env from .env.example, with a cluster id and passwords of its own, for its owner alone.
# A .env that is there is kept; one that still has the example's passwords is refused.
set -eu
if [ -f .env ]; then
    if grep -q '^[A-Z_]*PASSWORD=change-me' .env; then
        echo ".env has the example's passwords, which everybody knows: change what begins with change-me," >&2
        echo "or move .env away, and this makes one with passwords of its own" >&2
        exit 1
    fi
    exit 0
fi
secret() { head -c "$1" /dev/urandom | base64 | tr -d '=\n' | tr '+/' '-_'; }
umask 077
sed -e "s|^KAFKA_CLUSTER_ID=.*|KAFKA_CLUSTER_ID=$(secret 16)|" \
    -e "s|^KAFKA_PASSWORD=.*|KAFKA_PASSWORD=$(secret 24)|" \
    -e "s|^CONSUMER_PASSWORD=.*|CONSUMER_PASSWORD=$(secret 24)|" \
    -e "s|^GRAFANA_ADMIN_PASSWORD=.*|GRAFANA_ADMIN_PASSWORD=$(secret 24)|" .env.example >.env.new
mv .env.new .env
echo ".env is new, with passwords of its own"

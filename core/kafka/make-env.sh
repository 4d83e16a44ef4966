#!/bin/sh
# Write .env from .env.example, with a cluster id and passwords of its own, for its owner alone.
# A .env that is there is kept, and gets the passwords that it lacks; one that still has the example's is refused.
set -eu
secret() { head -c "$1" /dev/urandom | base64 | tr -d '=\n' | tr '+/' '-_'; }
umask 077
if [ ! -f .env ]; then
    sed -e "s|^KAFKA_CLUSTER_ID=.*|KAFKA_CLUSTER_ID=$(secret 16)|" -e '/^[A-Z_]*PASSWORD=/d' .env.example >.env.new
    mv .env.new .env
    echo ".env is new, with passwords of its own"
elif grep -q '^[A-Z_]*PASSWORD=change-me' .env; then
    echo ".env has the example's passwords, which everybody knows: change what begins with change-me," >&2
    echo "or move .env away, and this makes one with passwords of its own" >&2
    exit 1
fi
for name in $(sed -n 's/^\([A-Z_]*PASSWORD\)=.*/\1/p' .env.example); do
    grep -q "^$name=." .env || echo "$name=$(secret 24)" >>.env
done

#!/bin/sh
# Name the images of others by digest too, in docker-compose.yml and the Dockerfiles: what the hub gives today is what
# is built and run from now on.  Run it again to take what is newer.
set -eu
cd "$(dirname "$0")/../.."
for image in $(sed -nE 's/^(FROM| *image:) ([a-z/-]+:[A-Za-z0-9._-]+).*/\2/p' docker-compose.yml ./*/Dockerfile | sort -u); do
    case $image in nightwire/*) continue ;; esac
    docker pull --quiet "$image" >/dev/null
    digest=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image" | sed -n 's/.*@//p;q')
    : "${digest:?the hub gave no digest of $image}"
    sed -i -E "s|(^FROM\|^ *image:) $image(@sha256:[0-9a-f]+)?|\1 $image@$digest|" docker-compose.yml ./*/Dockerfile
    echo "$image@$digest"
done

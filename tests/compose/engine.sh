#!/usr/bin/env bash
# A Docker Engine for tests, on a machine that has none and can pull no image.  As root, on Debian.
#
#   engine.sh up      packages, compose plugin, engine, stand-in base images; idempotent
#   engine.sh images  build nightwire's own images, as `docker compose build` does on servers
#   engine.sh down    stop the engine; everything made stays in the cache
#   engine.sh env     shell lines that point docker at it: eval "$(engine.sh env)"
#   engine.sh status  say whether it runs
#
# Where a Docker Engine with compose answers already, it is used, and nothing here is needed.
# The engine is private: its own data, socket and pid file; it leaves the host's firewall alone.
set -euo pipefail

compose_version=v2.40.3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${NIGHTWIRE_DOCKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nightwire/docker}
run=/tmp/nightwire-docker-$(id -u) # short: a socket's path may have 107 characters
socket=unix://$run/docker.sock
plugin=$cache/config/cli-plugins/docker-compose

say() { echo "engine: $*" >&2; }
die() { say "$*"; exit 1; }

docker_() { DOCKER_HOST=$socket DOCKER_CONFIG=$cache/config DOCKER_BUILDKIT=0 docker "$@"; }

running() { [[ -S $run/docker.sock ]] && docker_ version >/dev/null 2>&1; }

foreign() { # an engine of the machine's own, with compose
    [[ -z ${NIGHTWIRE_DOCKER_PRIVATE:-} && ${DOCKER_HOST:-} != "$socket" ]] || return 1
    docker compose version >/dev/null 2>&1 && docker info >/dev/null 2>&1
}

packages() {
    local missing=() name
    for name in docker.io runc containerd iptables mmdebstrap; do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
    done
    ((${#missing[@]})) || return 0
    [[ $(id -u) == 0 ]] || die "run as root, or install: ${missing[*]}"
    say "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

compose_plugin() { # Debian has no compose v2: Go builds it, about four CPU minutes, once
    [[ -x $plugin ]] && return 0
    command -v go >/dev/null || die "install Go 1.24 or newer (to build the compose plugin $compose_version)"
    say "building docker compose $compose_version (some minutes, once)"
    local work=$cache/compose-build module=github.com/docker/compose/v2/cmd
    mkdir -p "$work" "$(dirname "$plugin")"
    (
        cd "$work"
        export GOMODCACHE=$work/mod GOCACHE=$work/build GOFLAGS=-modcacherw
        [[ -f go.mod ]] || go mod init nightwire.test/compose 2>/dev/null
        nice go get -tool "$module@$compose_version" 2>/dev/null || die "Go could not fetch $module@$compose_version"
        nice go build -ldflags "-X github.com/docker/compose/v2/internal.Version=$compose_version" -o "$plugin.new" "$module"
    )
    mv "$plugin.new" "$plugin"
    rm -rf "$work"
}

start() {
    running && return 0
    [[ $(id -u) == 0 ]] || die "a Docker Engine must be started as root"
    mkdir -p "$cache/data" "$run/exec"
    cat >"$run/daemon.json" <<JSON
{
  "data-root": "$cache/data", "exec-root": "$run/exec", "pidfile": "$run/docker.pid", "hosts": ["$socket"],
  "storage-driver": "overlay2", "bridge": "none",
  "iptables": false, "ip-forward": false, "ip-masq": false, "ip6tables": false,
  "default-ulimits": {"nofile": {"Name": "nofile", "Soft": 20000, "Hard": 20000}}
}
JSON
    setsid dockerd --config-file "$run/daemon.json" >"$run/dockerd.log" 2>&1 </dev/null &
    for _ in $(seq 150); do
        running && { say "running, pid $(cat "$run/docker.pid")"; return 0; }
        sleep 0.2
    done
    tail -n 20 "$run/dockerd.log" >&2
    die "dockerd did not answer within 30 s; its log is $run/dockerd.log"
}

stop() {
    [[ -f $run/docker.pid ]] || return 0
    local pid
    pid=$(cat "$run/docker.pid")
    kill -TERM "$pid" 2>/dev/null || true
    for _ in $(seq 150); do
        if [[ ! -d /proc/$pid ]]; then
            umount "$run"/exec/netns/* 2>/dev/null || true
            rm -f "$run/docker.pid"
            say "stopped"
            return 0
        fi
        sleep 0.2
    done
    die "dockerd (pid $pid) did not stop within 30 s"
}

has_image() { docker_ image inspect "$1" >/dev/null 2>&1; }

debian() { # debian:bookworm-slim from Debian's packages, with this machine's certificates
    has_image debian:bookworm-slim && return 0
    local sources=() file
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        grep -qs bookworm "$file" && { sources=("$file"); break; }
    done
    say "making debian:bookworm-slim (under a minute)"
    nice mmdebstrap --quiet --variant=minbase --include=ca-certificates \
        --customize-hook='copy-in /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs' \
        bookworm "$cache/debian.tar" "${sources[@]}"
    local bundle=/etc/ssl/certs/ca-certificates.crt
    docker_ import --change "ENV PIP_CERT=$bundle SSL_CERT_FILE=$bundle REQUESTS_CA_BUNDLE=$bundle" \
        --change 'CMD ["bash"]' "$cache/debian.tar" debian:bookworm-slim >/dev/null
    rm "$cache/debian.tar"
}

build() { # build IMAGE DOCKERFILE CONTEXT; silent unless it fails.  The bridge leads nowhere: use the host's network
    nice env DOCKER_HOST="$socket" DOCKER_CONFIG="$cache/config" DOCKER_BUILDKIT=0 \
        docker build --network=host --tag "$1" --file "$2" "$3" >"$run/build.log" 2>&1 && return 0
    tail -n 40 "$run/build.log" >&2
    die "$1 could not be built from $2"
}

standin() { # standin NAME IMAGE: build standins/NAME.Dockerfile under the real image's name
    has_image "$2" && return 0
    say "making $2 (from standins/$1.Dockerfile)"
    build "$2" "$here/standins/$1.Dockerfile" "$here/standins"
}

rust() { # rust:… with the compiler that is here
    local image
    image=$(image_of rust)
    has_image "$image" && return 0
    command -v rustc >/dev/null || die "install Rust (for the native codec in the images)"
    say "taking this machine's Rust (half a minute, once)"
    tar -C "$(rustc --print sysroot)" -c bin lib | docker_ import - nightwire-test/rust:here >/dev/null
    standin rust "$image"
}

image_of() { # the name that the Dockerfiles or the compose file give the image whose name begins with $1
    grep -hoE "\b$1:[A-Za-z0-9._-]+" "$root/docker-compose.yml" "$root"/*/Dockerfile | head -n 1
}

bases() {
    debian
    local name
    standin python "$(image_of python)"
    rust
    for name in prometheus alertmanager node-exporter; do
        standin "$name" "$(image_of "prom/$name")"
    done
}

images() {
    local dockerfile image
    while read -r image dockerfile; do
        say "building $image"
        build "$image" "$root/$dockerfile" "$root"
    done < <(awk '/^ *image: nightwire\// {image = $2} /dockerfile:/ {sub(/}.*/, ""); print image, $NF}' "$root/docker-compose.yml")
}

case ${1:-} in
up)
    if foreign; then say "using the Docker Engine that is here"; exit 0; fi
    packages
    compose_plugin
    start
    bases
    ;;
images)
    if foreign; then exec docker compose --project-directory "$root" --env-file "$root/.env.example" build; fi
    images
    ;;
down) stop ;;
env)
    running || exit 0
    echo "export DOCKER_HOST=$socket DOCKER_CONFIG=$cache/config DOCKER_BUILDKIT=0 COMPOSE_BAKE=false"
    ;;
status) running && say "running, pid $(cat "$run/docker.pid")" || { say "not running"; exit 1; } ;;
prepare) packages; compose_plugin ;;
*) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

#!/bin/sh
# `make test-compose`: an engine, the images, the test, and the engine stopped again.
set -eu
cd "$(dirname "$0")/../.."
trap 'bash tests/compose/engine.sh down' EXIT INT TERM
bash tests/compose/engine.sh up
bash tests/compose/engine.sh images
eval "$(bash tests/compose/engine.sh env)"
NIGHTWIRE_DOCKER=1 .venv/bin/python -m pytest -q --timeout 2400 tests/compose "$@"

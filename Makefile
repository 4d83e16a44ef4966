# nightwire: what a developer and a first-time user type.  `make` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
NATIVE := .venv/.native
unexport PYTHONDONTWRITEBYTECODE  # compiled once, modules are imported in half of the time

.PHONY: help setup demo test test-tools check format lock native wheels scan portal-assets test-compose bench bench-compose report docs compose-up compose-down

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements.lock pyproject.toml
	@echo "setting up .venv (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "apt-get install python3-venv"; exit 1; }
	@grep -A 60 '^uv==' requirements.lock | awk 'NR == 1 || /--hash/ {print} NR > 1 && !/--hash/ {exit}' > .venv/uv.lock.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.lock.txt
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m nightwire.core.stack.fetch
	@$(BIN)/python -m nightwire.filters.spark.class_archive
	@touch $@

$(NATIVE): $(STAMP) native/pyproject.toml native/Cargo.toml $(wildcard native/src/*.rs native/src/*/*.rs)
	@echo "building the native codec (once; a minute or two)"
	@rm -rf native/target/wheels
	@cd native && mkdir -p target && ../$(BIN)/maturin build --release --quiet --out target/wheels --interpreter ../$(BIN)/python \
	  >target/build.log 2>&1 || { cat target/build.log; exit 1; }
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --reinstall native/target/wheels/*.whl
	@touch $@

setup: $(STAMP)  ## virtual environment, pinned dependencies, jars, the native codec where cargo is; quick when nothing changed
	@if sh native/toolchain; then $(MAKE) --no-print-directory $(NATIVE) || echo "the native codec could not be built: nightwire works without, slower"; fi
	@$(BIN)/python -c 'import nightwire_native' 2>/dev/null && echo "codec: native" || echo "codec: Python (make native builds the fast one, with Rust's cargo)"

native: $(NATIVE)  ## build the Rust codec's wheel and install it

demo: setup  ## start the stack, play one visit through everything, show what came out
	@$(BIN)/nightwire demo

portal-assets:  ## by npm: what the portal's pages are made with, into its package; and axe-core, for its tests
	@cd portal/assets && npm ci --no-audit --no-fund --silent
	@mkdir -p portal/src/nightwire/portal/static/vendor
	@cd portal/assets/node_modules/uplot && cp dist/uPlot.iife.min.js dist/uPlot.min.css $(CURDIR)/portal/src/nightwire/portal/static/vendor/ \
	  && cp LICENSE $(CURDIR)/portal/src/nightwire/portal/static/vendor/uPlot.LICENSE
	@cp portal/assets/node_modules/aladin-lite/dist/aladin.js portal/src/nightwire/portal/static/vendor/
	@cd portal/assets && cp node_modules/@codemirror/state/LICENSE ../src/nightwire/portal/static/vendor/codemirror.LICENSE \
	  && node_modules/.bin/esbuild editor.js --bundle --minify --legal-comments=none --format=iife --target=es2022 \
	    --log-level=warning --outfile=../src/nightwire/portal/static/vendor/codemirror.js

test: setup  ## every test, with a real Kafka, a real Spark and real sockets
	@$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-tools:  ## what some tests want from Debian: Chromium, Prometheus and what goes with it, kcat (as root); and Apicurio's jar
	@sh .ci/test-tools

check: setup  ## format, lint, types and the pure tests: under a minute
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile -m "not kafka and not spark and not comet and not chromium and not prometheus and not apicurio and not slow and not network and not data"

format: setup  ## the two fixing commands
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: setup  ## pin what pyproject.toml asks for, with hashes: all of it, and each image's part
	@$(BIN)/uv pip compile --quiet pyproject.toml --extra all --extra java --group dev --universal --generate-hashes \
	  --no-header --no-annotate --output-file requirements.lock
	@$(MAKE) --no-print-directory setup && $(BIN)/python tests/compose/locks.py

wheels: setup  ## dist/: nightwire, and the compiled codec for any Linux since 2018 (glibc 2.28), by cargo and Zig
	@$(BIN)/uv build --quiet --wheel --out-dir dist .
	@cd native && ../$(BIN)/uv tool run --quiet --with "ziglang>=0.13" --from "maturin>=1.8,<2" maturin build --release --quiet \
	  --zig --compatibility manylinux_2_28 --interpreter ../$(BIN)/python --out ../dist
	@ls dist/*.whl

scan: setup  ## known faults in what we depend on, and an inventory (SBOM) in build/sbom; asks databases on the internet
	@sh .ci/scan $(BIN)

test-compose: setup  ## the compose stack, brought up and loaded for real (as root)
	@sh tests/compose/run.sh

bench: setup  ## every scenario in its quick profile, then the report; PROFILE=full goes on where it was interrupted
	@$(BIN)/nightwire bench run --all; status=$$?; $(BIN)/nightwire bench report && exit $$status

bench-compose: setup  ## the same against the compose stack, whose test stream stops meanwhile
	@docker compose stop producer; . ./.env && KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:$$KAFKA_PORT_1" KAFKA_SECURITY_PROTOCOL=SASL_PLAINTEXT \
	  KAFKA_SASL_MECHANISM=PLAIN KAFKA_SASL_USERNAME=nightwire.stack KAFKA_SASL_PASSWORD="$$KAFKA_PASSWORD" \
	  $(BIN)/nightwire bench run --all --engine there; status=$$?; docker compose start producer; \
	  $(BIN)/nightwire bench report && exit $$status

report: setup  ## the one report page from the results
	@$(BIN)/nightwire bench report

docs: setup  ## the site of docs into build/site, links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "build/site/index.html"

compose-up:  ## docker compose up --wait; the first time with passwords of its own in .env
	@sh core/kafka/make-env.sh
	@docker compose up --wait

compose-down:  ## and back, with volumes
	@docker compose down --volumes

# Reading Room's commands. Each sets up what it needs on a fresh machine; `make` alone lists them.

PYTHON ?= python3
BIN    := .venv/bin
PIP     = $(BIN)/pip --disable-pip-version-check

# Minutes after which a part is stopped. They guard against hangs: each is several times what the
# part takes on two quiet cores, so that a slow or busy machine passes too.
setup.minutes       := 30
format.minutes      := 5
lint.minutes        := 5
types.minutes       := 15
imports.minutes     := 5
docs-check.minutes  := 10
licences.minutes    := 5
sbom.minutes        := 10
pytest.minutes      := 45
pytest-all.minutes  := 90
conformance.minutes := 10

# The tests start hundreds of processes: without bytecode each of them would compile our code anew.
unexport PYTHONDONTWRITEBYTECODE

# Tests that run at once. More than there are cores does not pay: they compute as much as they wait.
WORKERS ?= 2

# Environments of the Python clients that the tests run, apart from ours: clients on the first line
# of the Python SDK cannot share one with the second, and what they pin must not hold back what we
# serve.
CLIENTS := build/clients/mcp1/.stamp build/clients/mcp2/.stamp

PART = @$(BIN)/python .ci/part $@ $($@.minutes)

.DEFAULT_GOAL := help
# The parts share one machine and one screen, and the first failure should be the last thing on it.
.NOTPARALLEL:
.PHONY: help serve test test-all check bench docs lock wheel clean setup \
        format lint types imports docs-check licences sbom pytest pytest-all conformance tesseract chromium

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: .venv/project.stamp ## serve the sample corpus; flags in ARGS="--port 8080"
	@$(BIN)/readingroom serve --demo $(ARGS)

test: setup check pytest conformance ## everything CI checks

test-all: setup check pytest-all conformance ## the same with every file and every example, and coverage

check: format lint types imports docs-check licences sbom ## what needs no test run: style, types, layers, docs, licences, SBOM

bench: .venv/dev.stamp tesseract ## measure
	@$(BIN)/python -m benchmarks $(ARGS)

docs: .venv/dev.stamp ## write the generated pages of docs/ anew
	@$(BIN)/python -m scripts.docs

wheel: .venv/project.stamp ## build the wheel and the Claude Desktop bundle into dist/
	@$(BIN)/python -m hatchling build -t wheel -d dist
	@$(BIN)/python scripts/bundle.py

clean: ## remove everything that make made
	rm -rf .venv build dist tests/node/node_modules .coverage .hypothesis \
	    .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the parts of `make test` ---

setup: .venv/bin/python
	$(PART) $(MAKE) -s .venv/dev.stamp tests/node/node_modules/.stamp $(CLIENTS) tesseract chromium

format: .venv/dev.stamp
	$(PART) $(BIN)/ruff format --check .

lint: .venv/dev.stamp
	$(PART) $(BIN)/ruff check .

types: .venv/dev.stamp
	$(PART) $(BIN)/mypy

imports: .venv/dev.stamp
	$(PART) $(BIN)/lint-imports --no-logo

docs-check: .venv/dev.stamp
	$(PART) $(BIN)/python -m scripts.docs --check

licences: .venv/dev.stamp
	$(PART) $(BIN)/python scripts/licences.py

sbom: .venv/dev.stamp
	@mkdir -p build
	@cp deploy/vex.json build/vex.json
	$(PART) $(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	    --validate --of JSON -o build/sbom.json $(BIN)/python

pytest: .venv/dev.stamp tests/node/node_modules/.stamp $(CLIENTS) tesseract chromium
	$(PART) $(BIN)/pytest -n $(WORKERS)

pytest-all: .venv/dev.stamp tests/node/node_modules/.stamp $(CLIENTS) tesseract chromium
	$(PART) $(BIN)/pytest --full --cov -n $(WORKERS)

conformance: .venv/dev.stamp tests/node/node_modules/.stamp ## the official MCP conformance suite
	$(PART) $(BIN)/python -m tests.conformance.run

# --- what they stand on ---

# $(call need,COMMAND THAT SUCCEEDS WHEN IT IS THERE,DEBIAN PACKAGES,NAME)
define need
	@{ $(1); } >/dev/null 2>&1 || { \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "Installing $(2)"; export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && \
	        apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
	    else \
	        echo "Reading Room needs $(3). Please install it (Debian and Ubuntu: apt-get install $(2))." >&2; exit 1; \
	    fi; }
endef

.venv/bin/python:
	$(call need,$(PYTHON) -c 'import ensurepip',python3 python3-venv,Python 3.11 or later with its venv module)
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Reading Room needs Python 3.11 or later; $(PYTHON) is %d.%d. Name another with: make PYTHON=python3.12" % sys.version_info[:2])'
	@$(PYTHON) -m venv --clear .venv

# -qq throughout: errors still show, and a machine's own pip settings may warn once per package.
.venv/runtime.stamp: requirements.lock | .venv/bin/python
	@echo "Installing what requirements.lock names into .venv"
	@$(PIP) install -qq --no-deps --require-hashes -r requirements.lock
	@touch $@

.venv/project.stamp: pyproject.toml .venv/runtime.stamp
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev.stamp: requirements-dev.lock .venv/runtime.stamp | .venv/project.stamp
	@echo "Installing what requirements-dev.lock names into .venv"
	@$(PIP) install -qq --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

# The server reads scans with it and does well without; the tests prove both.
tesseract:
	$(call need,command -v tesseract,tesseract-ocr,tesseract)

# Playwright drives it; what the wheel would download for itself is left where it is.
chromium:
	$(call need,command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable,chromium,Chromium)

tests/node/node_modules/.stamp: tests/node/package.json tests/node/package-lock.json
	$(call need,command -v node && command -v npm,nodejs npm,Node.js with npm)
	@echo "Installing what tests/node/package-lock.json names"
	@cd tests/node && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

build/clients/%/.stamp: tests/clients/%.lock | .venv/bin/python
	@echo "Installing what $< names into build/clients/$*"
	@$(BIN)/python -m venv --clear --without-pip build/clients/$*
	@$(PIP) --python build/clients/$*/bin/python install -qq --no-compile --no-deps --require-hashes -r $<
	@touch $@

# --- pinned versions ---

# The development lock is constrained by the runtime lock, so that what is tested is what is served.
COMPILE = build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --custom-compile-command "make lock"

lock: .venv/bin/python ## resolve the locks anew, moving as little as possible; ARGS=--upgrade moves all
	@$(BIN)/python -m venv build/lock
	@build/lock/bin/pip install -qq uv==0.13.7
	@$(COMPILE) pyproject.toml --group build --group model $(ARGS) -o requirements.lock
	@$(COMPILE) pyproject.toml --extra otel --extra postgres --group dev -c requirements.lock $(ARGS) -o requirements-dev.lock
	@echo "# What PostgreSQL needs beside requirements.lock; made by make lock." > requirements-postgres.lock
	@awk '/^[a-z]/ { is_driver = /^psycopg/ } is_driver' requirements-dev.lock >> requirements-postgres.lock
	@$(COMPILE) tests/clients/mcp1.in $(ARGS) -o tests/clients/mcp1.lock
	@$(COMPILE) tests/clients/mcp2.in $(ARGS) -o tests/clients/mcp2.lock

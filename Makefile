# Needs Python 3.11 or newer and nothing else: the environment is made in .venv, and installed from PyPI.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
# Two workers: tests are mostly single calls of compiled code, and small machines have two cores.
PYTEST_FLAGS ?= -n 2 --dist loadgroup
BENCH_FLAGS  ?=
# Millions of facts for `make soak`.
FACTS        ?= 300
FUZZ_SECONDS ?= 300
FUZZ_FLAGS   ?=

.PHONY: test lint types unit demo bench pictures soak fuzz format clean bench-spark bench-hypotheses bench-window bench-stable test-faults test-cluster test-kafka docs drawings page test-browser

test: lint types unit docs

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy --strict

# One run first compiles the kernels into the cache, so that parallel workers find them there.
unit: $(VENV)/.dev
	$(BIN)/python tests/warm.py
	$(BIN)/pytest $(PYTEST_FLAGS)

# Some minutes each: jobs on Spark whose processes are killed, on clusters of several processes, and between the topics of
# a broker, which comes from Maven Central.
test-faults: $(VENV)/.dev
	$(BIN)/python tests/warm.py
	$(BIN)/pytest -m faults tests/test_spark_faults.py

test-cluster: $(VENV)/.dev
	$(BIN)/python tests/warm.py
	$(BIN)/pytest -m cluster tests/test_spark_cluster.py

test-kafka: $(VENV)/.kafka
	$(BIN)/python tests/warm.py
	$(BIN)/pytest -m kafka tests/kafka

# The documentation as a site in build/site; a link that leads nowhere is an error.
docs: $(VENV)/.docs
	rm -rf build/pages build/site && mkdir -p build/pages
	cp -R docs examples README.md CHANGELOG.md build/pages
	$(BIN)/zensical build --strict

drawings: $(VENV)/.run
	$(BIN)/python docs/draw.py

# The bundle of the pages, which is committed: only who changes the sources in page/ needs Node.
page:
	command -v npm > /dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm)
	cd page && npm ci && npm run types && npm run build

# The pages in a real Chromium, which comes with the system's packages: where it is missing and cannot be installed, the
# tests are skipped and say so.
test-browser: $(VENV)/.browser
	command -v chromium > /dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium) || true
	$(BIN)/python tests/warm.py
	$(BIN)/pytest -m browser tests/browser

demo: $(VENV)/.spark
	$(BIN)/tidelog demo

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py $(BENCH_FLAGS)

pictures: $(VENV)/.bench
	$(BIN)/python benchmarks/pictures.py

bench-spark: $(VENV)/.spark
	$(BIN)/python benchmarks/spark.py $(BENCH_FLAGS)

bench-hypotheses: $(VENV)/.run
	$(BIN)/python benchmarks/hypotheses.py $(BENCH_FLAGS)

bench-window: $(VENV)/.dev
	$(BIN)/python benchmarks/window.py $(BENCH_FLAGS)

bench-stable: $(VENV)/.bench
	$(BIN)/python benchmarks/stable.py $(BENCH_FLAGS)

soak: $(VENV)/.bench
	$(BIN)/python benchmarks/soak.py --facts $(FACTS)

fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz.py --seconds $(FUZZ_SECONDS) $(FUZZ_FLAGS)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.spark: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

$(VENV)/.kafka: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,kafka]'
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,browser]'
	touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

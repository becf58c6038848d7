# Needs Python 3.11 or newer and nothing else: the environment is created in .venv, with packages from PyPI.
# `make help` lists the targets.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Two workers: tests are mostly single calls of compiled code, and small machines have two cores.
PYTEST_FLAGS ?= -n 2 --dist loadgroup
BENCH_FLAGS  ?=
PAPER_FLAGS  ?=
# Millions of facts for `make soak`.
FACTS        ?= 300
FUZZ_SECONDS ?= 300
FUZZ_FLAGS   ?=
# What comes before the tests, side by side. The compilation takes longest, so it begins first.
CHECKS       := kernels types lint docs
# Tests start hundreds of processes: without cached bytecode, each would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help quick test ci chromium lint types kernels test-unit test-property test-spark test-docs test-faults test-cluster test-connect test-kafka \
	test-browser format grammar docs drawings page vsix demo bench pictures paper bench-spark bench-hypotheses bench-window bench-stable \
	soak fuzz release clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1	\2/' | expand -t 20

# Checks

quick: lint types kernels  ## lint, types and the fast tests, in under two minutes once kernels are compiled
	$(BIN)/pytest $(PYTEST_FLAGS) -q -m 'not slow' tests/unit

# All shards below in one run: tests that share a Spark session stay on one worker, and the other one takes the rest.
test: $(VENV)/.dev $(VENV)/.docs  ## lint, types, all tests, and the documentation site
	$(MAKE) --jobs=2 $(CHECKS)
	$(BIN)/pytest $(PYTEST_FLAGS)

# The same, with the tests that need a broker or a browser. They wait for other programs most of the time, so they run
# beside the others; where Maven Central or Chromium is missing, they are skipped and say so.
ci: $(VENV)/.ci  ## what continuous integration runs: `test`, `test-kafka` and `test-browser` in one
	$(MAKE) --jobs=3 $(CHECKS) chromium
	$(BIN)/pytest $(PYTEST_FLAGS) -m 'not faults and not cluster and not connect'

lint: $(VENV)/.dev  ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## static types
	$(BIN)/mypy --strict

# Compiles the kernels into their cache, so that parallel workers find them there.
kernels: $(VENV)/.dev
	$(BIN)/tidelog warm

test-unit: kernels  ## unit tests, and the examples in docstrings
	$(BIN)/pytest $(PYTEST_FLAGS) tests/unit src

test-property: kernels  ## random programs against slow evaluators
	$(BIN)/pytest $(PYTEST_FLAGS) tests/property

test-spark: kernels  ## jobs on a local Spark
	$(BIN)/pytest $(PYTEST_FLAGS) tests/spark

test-docs: kernels  ## every command of the documentation
	$(BIN)/pytest $(PYTEST_FLAGS) tests/docs

# Some minutes each.
test-faults: kernels  ## jobs on Spark whose processes are killed
	$(BIN)/pytest -m faults tests/spark/test_spark_faults.py

test-cluster: kernels  ## jobs on Spark clusters of several processes
	$(BIN)/pytest -m cluster tests/spark/test_spark_cluster.py

test-connect: kernels  ## sessions of Spark Connect, and declarative pipelines
	$(BIN)/pytest -m connect tests/spark/test_spark_connect.py

test-kafka: kernels $(VENV)/.kafka  ## jobs between the topics of a broker, which comes from Maven Central
	$(BIN)/pytest -m kafka tests/kafka

test-browser: kernels chromium $(VENV)/.browser  ## pages in a real Chromium
	$(BIN)/pytest -m browser tests/browser

# Chromium comes with the system's packages: where it is missing and cannot be installed, the tests are skipped and say so.
chromium:
	command -v chromium > /dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium) || true

fuzz: $(VENV)/.dev  ## look for programs on which the engine is wrong, for FUZZ_SECONDS
	$(BIN)/python tests/support/fuzz.py --seconds $(FUZZ_SECONDS) $(FUZZ_FLAGS)

format: $(VENV)/.dev  ## fix style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

grammar: $(VENV)/.dev  ## the tables of the parsers, from the grammars
	$(BIN)/python -m tidelog.language.grammar_tables

# Documentation and pages

docs: $(VENV)/.docs  ## the documentation as a site in build/site; a broken link is an error
	rm -rf build/pages build/site && mkdir -p build/pages
	cp -R docs examples README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CODE_OF_CONDUCT.md build/pages
	$(BIN)/zensical build --strict

drawings: $(VENV)/.run  ## the drawings of rules in docs/img
	$(BIN)/python docs/draw.py

# The bundle is committed: you need Node only if you change the sources in page/.
page:  ## the bundle of the HTML pages, from the sources in page/
	command -v npm > /dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm)
	cd page && npm ci && npm run types && npm run build

vsix:  ## the extension for Visual Studio Code, in build/tidelog.vsix
	command -v npm > /dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm)
	cd editors/vscode && npm ci && npm run package

demo: $(VENV)/.spark  ## find jams in generated traffic with a job on Spark
	$(BIN)/tidelog demo

# Benchmarks

bench: $(VENV)/.bench  ## batch and streams, compared with other systems
	$(BIN)/python benchmarks/run.py $(BENCH_FLAGS)

pictures: $(VENV)/.bench  ## charts of the memory and time of streams
	$(BIN)/python benchmarks/pictures.py

# Needs 1.5 GB of memory, 2 GB of disk, and minutes: most of them generate facts.
paper: $(VENV)/.bench  ## the tables and figures of a paper on stream reasoning, measured again, in build/paper
	$(BIN)/python benchmarks/paper.py $(PAPER_FLAGS)

bench-spark: $(VENV)/.spark  ## jobs on Spark
	$(BIN)/python benchmarks/spark.py $(BENCH_FLAGS)

bench-hypotheses: $(VENV)/.run  ## hypothetical answers
	$(BIN)/python benchmarks/hypotheses.py $(BENCH_FLAGS)

bench-window: $(VENV)/.dev  ## the search for windows
	$(BIN)/python benchmarks/window.py $(BENCH_FLAGS)

bench-stable: $(VENV)/.bench  ## stable models, compared with clingo and telingo
	$(BIN)/python benchmarks/stable.py $(BENCH_FLAGS)

soak: $(VENV)/.bench  ## one long stream of FACTS million facts
	$(BIN)/python benchmarks/soak.py --facts $(FACTS)

# Releases: CONTRIBUTING.md says what comes before and after.
release: $(VENV)/.release  ## build the packages in dist/ and check them; publishes nothing
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	@echo "dist/ is ready. To publish: git tag v$$($(BIN)/python -c 'import tidelog; print(tidelog.__version__)'), push the tag, twine upload dist/*"

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments: one per set of extras, all in .venv.

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(PIP) -e .
	touch $@

$(VENV)/.spark $(VENV)/.dev $(VENV)/.docs $(VENV)/.bench $(VENV)/.release: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[$*]'
	touch $@

$(VENV)/.kafka $(VENV)/.browser: $(VENV)/.%: $(VENV)/.dev
	$(PIP) -e '.[dev,$*]'
	touch $@

# All that `make ci` needs, resolved and installed once.
$(VENV)/.ci: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[dev,docs,kafka,browser]'
	touch $(VENV)/.dev && touch $(VENV)/.docs $(VENV)/.kafka $(VENV)/.browser $@

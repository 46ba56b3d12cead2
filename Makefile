# Every target sets up what it needs: a machine with Python 3.11 (venv, pip), make and git is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The environment is rebuilt when the declared dependencies change, and only then. The demo needs
# little of it.
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
# The site has an environment of its own: its generator reads the source, and imports nothing of it.
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready

.PHONY: demo test lint bench docs clean

demo: $(DEMO_READY)  ## the main job: a policy evaluated after three ways to collect, with a report
	$(BIN)/revar demo

test: $(READY)  ## lint, types, import contracts and all tests
	$(MAKE) --jobs=2 lint compile-flow compile-others
	$(BIN)/pytest -n auto

compile-%: $(READY)  # what most tests use, once and not in each of their processes
	$(BIN)/python -m tests.compile_rules $*

lint: $(READY)  ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## speed as ratios, measured in one run, written to benchmarks/results
	$(BIN)/python -m benchmarks

docs: $(DOCS_READY)  ## the documentation as a static site in site/
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

clean:
	rm -rf $(VENV) $(DOCS_VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "revar needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(BIN)/python
	$(INSTALL) '.[dev]'
	touch $@ $(DEMO_READY)

$(DEMO_READY): pyproject.toml | $(BIN)/python
	$(INSTALL) '.[plots,report]'
	touch $@

$(DOCS_READY): pyproject.toml
	test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > $(DOCS_VENV)/requirements.txt
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(DOCS_VENV)/requirements.txt
	touch $@

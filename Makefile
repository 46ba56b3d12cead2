# Every target sets up what it needs: a machine with Python 3.11 (venv, pip), make and git is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The environment is rebuilt when the declared dependencies change, and only then. The demo needs
# little of it.
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
DOCS_READY := $(VENV)/.docs-ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

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
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
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

$(DOCS_READY): $(READY)
	$(INSTALL) '.[docs]'
	touch $@

# TORCH chooses the torch to install: TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
# takes the CPU build; TORCH= leaves the choice to the dependency list.
VENV ?= .venv
PY := $(VENV)/bin/python
TORCH ?= torch==2.13.0
DATA ?= data
PORT ?= 5433
SF ?= 0.1
SUITES ?= ../shared

.PHONY: setup serve demo test test-all suites lint format golden bench docs clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	test -x $(PY) || python3 -m venv $(VENV)
	test -z "$(TORCH)" || $(PY) -c "import torch" 2>/dev/null || $(PY) -m pip install --disable-pip-version-check -q $(TORCH)
	$(PY) -m pip install --disable-pip-version-check -q -e ".[dev]"
	touch $@

serve: setup
	$(PY) -m tpch load --sf $(SF) --data $(DATA) --if-empty
	$(PY) -m gpudb serve --data $(DATA) --port $(PORT)

demo: setup
	$(PY) -m gpudb sql --data "$$(mktemp -d)" -f docs/demo.sql

test: setup
	$(PY) -m pytest -q

test-all: setup
	$(PY) -m pytest -q -m "not suites and not cuda"

suites: setup
	GPUDB_SUITES=$(SUITES) $(PY) -m pytest -q -s -m suites

lint: setup
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-cache --no-logo

format: setup
	$(PY) -m ruff check --fix .

golden: setup
	$(PY) -m pytest -q tests/plans --rewrite-golden

bench: setup
	$(PY) -m tpch bench --sf 1 --data $(DATA)-bench --against duckdb

docs: setup
	$(PY) docs/generate.py

clean:
	rm -rf build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

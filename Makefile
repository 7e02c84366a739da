# One-line targets. TORCH chooses the torch to install (see README: CPU builds on hosts without a GPU).
VENV ?= .venv
PY := $(VENV)/bin/python
TORCH ?= torch==2.13.0
DATA ?= data
PORT ?= 5433

.PHONY: setup serve demo test test-all suites lint format golden bench docs clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	test -x $(PY) || python3 -m venv $(VENV)
	$(PY) -m pip install -q "$(TORCH)"
	$(PY) -m pip install -q -e ".[dev]"
	touch $@

serve: setup
	$(PY) -m tpch load --sf 0.1 --data $(DATA) --if-empty
	$(PY) -m gpudb serve --data $(DATA) --port $(PORT)

demo: setup
	$(PY) -m gpudb sql --data $$(mktemp -d) -f docs/demo.sql

test: setup
	$(PY) -m pytest -q

test-all: setup
	$(PY) -m pytest -q -m "not suites and not cuda"

suites: setup
	$(PY) -m pytest -q -m suites

lint: setup
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-cache

format: setup
	$(PY) -m ruff check --fix .

golden: setup
	$(PY) -m pytest -q tests/plans --rewrite-golden

bench: setup
	$(PY) -m tpch bench --sf 1 --data $(DATA)-bench --against duckdb

docs: setup
	$(PY) docs/generate.py

clean:
	rm -rf build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

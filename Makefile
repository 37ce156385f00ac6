# Every target sets up what it needs, in .venv, on a machine that has only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Two OpenMP threads can stall each other on a loaded machine.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup test test-slow lint types format bench demo clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make .venv with everything for development

# torch comes first and pinned: an unpinned one brings gigabytes of CUDA.
$(VENV)/.torch: Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	@touch $@

$(READY): $(VENV)/.torch pyproject.toml
	$(PIP) --editable '.[dev]'
	@touch $@

test: $(READY)  ## run the quick tests
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(READY)  ## run the slow tests
	$(BIN)/python -m pytest -m slow

lint: $(READY)  ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## check types
	$(BIN)/mypy

format: $(READY)  ## fix style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## time the core, as ratios in one run
	$(BIN)/python benchmarks/core.py

demo: $(READY)  ## train two toy policies and measure their answers
	$(BIN)/python examples/bandit.py --out demo
	@echo
	$(BIN)/vpo measure demo/grpo.jsonl demo/vpo.jsonl
	@echo
	$(BIN)/vpo diagnose demo/vpo.jsonl

clean:  ## remove .venv and everything made
	rm -rf $(VENV) demo .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Every target sets up what it needs, in .venv, on a machine that has only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TORCH_VERSION := 2.13.0
TORCH := $(VENV)/.torch-$(TORCH_VERSION)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Two OpenMP threads can stall each other on a loaded machine.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup test lint types format bench demo demo-maze clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make .venv with everything for development

# torch comes first and pinned: an unpinned one brings gigabytes of CUDA.
$(TORCH):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) torch==$(TORCH_VERSION)
	@touch $@

$(READY): $(TORCH) pyproject.toml
	$(PIP) --editable '.[dev]'
	@touch $@

test: $(READY)  ## run the tests
	$(BIN)/python -m pytest

lint: $(READY)  ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## check types
	$(BIN)/mypy

format: $(READY)  ## fix style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## time the core, the tasks and a training step
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/tasks.py
	$(BIN)/python -W ignore benchmarks/train.py

demo: $(READY)  ## train two toy policies and measure their answers
	$(BIN)/python examples/bandit.py --out demo
	@echo
	$(BIN)/vpo measure demo/grpo.jsonl demo/vpo.jsonl
	@echo
	$(BIN)/vpo diagnose demo/vpo.jsonl

demo-maze: $(READY)  ## train a small language model with GRPO and with VPO: some seven minutes on two cores
	OMP_NUM_THREADS=2 $(BIN)/python examples/maze_trl.py --out maze
	@echo
	$(BIN)/vpo measure maze/grpo.jsonl maze/vpo.jsonl
	@echo
	$(BIN)/vpo measure maze/base.jsonl maze/vpo.jsonl

clean:  ## remove .venv and everything made
	rm -rf $(VENV) demo maze .mypy_cache .pytest_cache .ruff_cache .hypothesis

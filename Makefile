# Each target works from a fresh clone: the first one makes .venv and installs what constraints.txt pins.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup run soak dist test test-avx2 check lint types bench quality editors clean
.DEFAULT_GOAL := help

help:
	@echo "make setup   make .venv and install Midspan with its development tools (PYTHON=python3.12 picks another Python)"
	@echo "make run     type in four sample files with suggestions, and tell how to hook up an editor"
	@echo "make dist    build what people install into dist: wheel, source archive, VS Code's extension, Neovim's plugin"
	@echo "make test    linter, types, import rules and all tests"
	@echo "make test-avx2  what depends on the processor's instructions, as on one with AVX2 only; a part of make test"
	@echo "make check   linter, types, import rules and the quick tests, those of what changed first"
	@echo "make lint    ruff, mypy, import-linter, doors for strangers, and how many files a key press passes"
	@echo "make bench   measure latency; tables here, JSON and plots in benchmarks/out"
	@echo "make quality measure how good the embedded model is on packages younger than it (CORPUS=runs/small/corpus SPLIT=judge)"
	@echo "make editors fetch real editors into .editors for the tests in tests/editors, which are skipped without them"
	@echo "make coder   fetch Qwen2.5-Coder 0.5B, 491 MB, into .editors for tests with real weights, which are skipped without it"
	@echo "make llamacpp fetch llama.cpp's server into .editors for the test in tests/engine, which is skipped without it"
	@echo "make neon    fetch an ARM Python, qemu and a compiler into .editors/neon for make test-neon, which is skipped without them"
	@echo "make test-neon  build the kernel for ARM and run its tests in an emulator"
	@echo "make cluster start a team's server with two replicas here, kept by Ray (docs/team.md); it installs Ray, 500 MB"
	@echo "make test-cluster  the tests of that, which are skipped without Ray"
	@echo "make soak    attack it for an hour: an editor that does anything, kills, fuzzing, memory (MINUTES=5 shortens it)"
	@echo "make clean   remove caches and outputs (.venv stays; remove it by hand)"

setup: $(STAMP)

KERNEL := $(wildcard engine/models/embedded/native/*)
$(STAMP): pyproject.toml setup.py constraints.txt $(KERNEL)
	@$(PYTHON) -c 'import sys; sys.exit("Midspan needs Python 3.11 or newer; try: make setup PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: setup
	@$(BIN)/midspan demo

# What people install, and nothing that `make setup` brings. The wheel is built from the source archive, so that one is complete.
DIST_TOOLS := build/dist-tools
dist:
	@command -v npm >/dev/null || { echo "make dist needs npm for VS Code's extension: install Node.js 20 or newer" >&2; exit 1; }
	rm -rf dist editors/vscode/server
	test -x $(DIST_TOOLS)/bin/python || $(PYTHON) -m venv $(DIST_TOOLS)
	$(DIST_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check build==1.5.0
	$(DIST_TOOLS)/bin/python -m build --outdir dist > build/dist.log 2>&1 || { tail -n 20 build/dist.log >&2; exit 1; }
	@$(DIST_TOOLS)/bin/python -m zipfile -l dist/*.whl | grep -q /_kernel || echo "make dist: no C compiler, so the wheel has no kernel and its model is several times slower" >&2
	@$(MAKE) --no-print-directory vscode-dist
	cp -R editors/neovim build/midspan.nvim && tar -czf dist/midspan.nvim.tar.gz -C build midspan.nvim; rm -rf build/midspan.nvim
	@ls -sh dist

types: setup
	$(BIN)/mypy
	$(BIN)/mypy tests/engine/conftest.py
	$(BIN)/mypy tests/editors/conftest.py
	$(BIN)/mypy tests/play/conftest.py

# How many of our files a key press may pass through: as many as it did when this was last lowered.
KEY_PRESS_FILES := 52
lint: setup
	@mkdir -p build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo
	@$(MAKE) --no-print-directory types
	@$(BIN)/python tests/support/small_files.py
	@$(BIN)/python tests/support/doors.py
	@$(BIN)/python benchmarks/latency/key_press_files.py --most $(KEY_PRESS_FILES) > build/key_press.log \
		|| { cat build/key_press.log; echo "a key press passes through more than $(KEY_PRESS_FILES) files of ours" >&2; exit 1; }
	@tail -n 1 build/key_press.log

# Two files of tests at a time. The tests of a file stay together, because they share engines; torch gets one thread.
JOBS ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest
PARALLEL := -n $(JOBS) --dist loadfile

test: lint
	$(PYTEST) $(PARALLEL) tests --ignore=tests/editors --ignore=tests/play
	$(PYTEST) tests/editors tests/play
	@$(MAKE) --no-print-directory test-avx2

# What depends on the processor's instructions, as on one that has only AVX2.
test-avx2: setup
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 $(PYTEST) $(PARALLEL) \
		tests/engine/fill tests/engine/schedule tests/engine/models/embedded tests/engine/training

check: lint
	$(PYTEST) $(PARALLEL) --no-loadscope-reorder --changed-first -m "not slow" tests --ignore=tests/e2e --ignore=tests/editors --ignore=tests/play

include tests/editors/neovim.mk tests/editors/vscode.mk tests/play/play.mk tests/engine/coder.mk tests/engine/llamacpp.mk tests/engine/neon.mk cluster.mk

editors: editors-neovim editors-vscode editors-play

bench: setup
	$(BIN)/python benchmarks/latency/latency.py

CORPUS ?= runs/small/corpus
SPLIT ?= judge
quality: setup
	$(BIN)/python benchmarks/quality/quality.py --corpus $(CORPUS) --split $(SPLIT) $(HUMANEVAL:%=--humaneval %)

# What was tried, how often, and what was lost: the table of docs/reliability.md. SOAK="--docs" puts it there.
MINUTES ?= 60
soak: setup
	OMP_NUM_THREADS=1 PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(BIN)/python -m hardening.soak --minutes $(MINUTES) $(SOAK)

clean:
	rm -rf build dist midspan.egg-info benchmarks/out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find engine lsp_server tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

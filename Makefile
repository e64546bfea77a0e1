# All tasks of development. The only requirements are Python 3.11 or later and g++:
#
#   make demo        install, then ask questions about a document of 34,000 words
#   make test        install, then run all checks, as CI does
#   make test-fast   run the tests that are not marked slow
#   make test-PART   run the tests and doctests of one package: make test-core/graph, make test-models, ...
#   make coverage    run the fast tests, and fail below the minimum coverage that CI requires
#   make lint        run ruff, pyright, import-linter and clang-format
#   make sanitize    run the C++ kernels under the address and undefined-behaviour sanitizers
#   make format      format Python and C++ code
#   make experiments measure attention beside other implementations (ten minutes on an idle machine)
#   make docs        build the site in build/docs
#   make dist        build the source distribution and wheels in dist; make dist-check installs and runs them
#   make test-oldest run the tests with the oldest allowed versions, and Python 3.10
#   make test-python run the fast tests with the latest versions and another Python: make test-python PYTHON=python3.13
#
# Installation is repeated only if its inputs have changed. PYTHON=... selects another interpreter.

PYTHON ?= python3
CXX ?= g++
VENV := .venv
STAMPS := $(VENV)/stamps
# Absolute, because tools look for each other on it (pyright for its node, scikit-build-core for cmake).
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

PIP := $(VENV)/bin/python -m pip --disable-pip-version-check install -qq -c constraints.txt
EDITABLE := --no-build-isolation --config-settings build-dir=build/{wheel_tag} --editable
# Packages without wheels are built in isolation, with the tools that they require: with ours, seqeval has no version.
SOURCES_ALONE := rouge-score seqeval

# If there is a compiler, failing to build the kernels is an error rather than a pure Python install.
ifneq ($(shell command -v $(CXX)),)
export LONGBIRD_REQUIRE_NATIVE := 1
endif

KERNELS := $(wildcard csrc/*.h csrc/*.cpp csrc/kernels/*.h)
CXX_FILES := $(KERNELS) $(wildcard csrc/tests/*.cpp csrc/tests/*.h)

# One process per core, at most eight (each takes 1 GB), with one thread each (tests/conftest.py). A worker without tests
# takes half of those that another has left, so that the tests of a file mostly stay together and share its fixtures.
WORKERS := $(shell (env -u OMP_NUM_THREADS nproc || getconf _NPROCESSORS_ONLN) 2>/dev/null | awk '{print $$1 < 8 ? $$1 : 8}')
PYTEST := pytest --numprocesses=$(WORKERS) --dist=worksteal

.PHONY: help demo test test-fast lint ruff types layers cxx hooks sanitize pytest experiments format clean always
.PHONY: coverage docs dist dist-check test-oldest test-python
help:
	@sed -n '/^$$/q; s/^# \{0,3\}//p' Makefile

demo: $(STAMPS)/longbird
	longbird demo --out build

# Lint and sanitizers run in parallel, because pyright uses one core and the compiler another. The tests use all cores.
test: $(STAMPS)/dev
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line lint sanitize
	@$(MAKE) --no-print-directory pytest

experiments: $(STAMPS)/dev
	python -m experiments attention --quick

# --- Checks; the hooks in .pre-commit-config.yaml run these targets --------------------------------

lint: ruff types layers cxx hooks

ruff: $(STAMPS)/dev
	ruff check .
	ruff format --check .

types: $(STAMPS)/dev
	pyright
	pyright --project tests

layers: $(STAMPS)/dev
	lint-imports

cxx: $(STAMPS)/dev
	clang-format --dry-run -Werror $(CXX_FILES)

hooks: $(STAMPS)/dev
	pre-commit validate-config .pre-commit-config.yaml

sanitize: build/sanitize/driver
	build/sanitize/driver

build/sanitize/driver: CMakeLists.txt $(CXX_FILES) | $(STAMPS)/longbird
	@echo '==> building the kernels with address and undefined-behaviour sanitizers (a minute or two)'
	cmake -S . -B build/sanitize -G Ninja -DLONGBIRD_SANITIZE=ON -DCMAKE_CXX_COMPILER=$(CXX) >/dev/null
	cmake --build build/sanitize

pytest: $(STAMPS)/dev
	@echo '==> running all tests, doctests and examples of the documentation'
	$(PYTEST) --durations=10

test-fast: $(STAMPS)/dev
	$(PYTEST) -m 'not slow'

coverage: $(STAMPS)/dev
	$(PYTEST) -m 'not slow' --cov

# The tests of src/longbird/X are in tests/X.
PART = $(wildcard tests/$* src/longbird/$*)
test-%: $(STAMPS)/dev
	@test -n '$(PART)' || { echo 'There is no package $*: neither tests/$* nor src/longbird/$* exists'; exit 2; }
	$(PYTEST) $(PART)

format: $(STAMPS)/dev
	ruff check --fix .
	ruff format .
	clang-format -i $(CXX_FILES)

# --- Release ---------------------------------------------------------------------------------------

# Interpreters for which wheels are built and tested: make dist DIST_PYTHONS="python3.11 python3.12"
DIST_PYTHONS ?= $(PYTHON)
# The oldest Python that pyproject.toml allows.
OLDEST_PYTHON ?= python3.10

docs: $(STAMPS)/dev
	sphinx-build -q -W --keep-going -b html docs build/docs
	@echo '==> build/docs/index.html; links to other sites, which are not checked, are listed in build/docs/external-links.txt'

dist: $(STAMPS)/dev
	.ci/dist $(DIST_PYTHONS)

dist-check:
	.ci/check-dist $(DIST_PYTHONS)

test-oldest:
	@$(OLDEST_PYTHON) -c '' 2>/dev/null || { echo 'The oldest versions need Python 3.10, and $(OLDEST_PYTHON)' \
	'does not run here: try make test-oldest OLDEST_PYTHON=/path/to/python3.10'; exit 2; }
	.ci/test-oldest $(OLDEST_PYTHON)

test-python:
	.ci/test-python $(PYTHON)

# --- Set-up ----------------------------------------------------------------------------------------

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"The pinned environment \
	needs Python 3.11 or later, and $(PYTHON) is {sys.version.split()[0]}: try make PYTHON=python3.11")'
	@echo '==> creating $(VENV) with' "$$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/torch: constraints.txt $(STAMPS)/venv
	@echo '==> installing torch (the largest download; it can take minutes the first time)'
	@$(PIP) torch
	@touch $@

# The editable install contains a map from modules to files, so it is repeated when a file is added, moved or removed.
# (`editable.mode = "inplace"` has no map, but runs CMake in the source tree and leaves its files there.) The list of
# files is written only when it has changed.
SOURCES = find src -name '*.py' -o -name '*.pyi' | LC_ALL=C sort
$(STAMPS)/sources: always | $(STAMPS)/venv
	@$(SOURCES) | cmp -s - $@ || $(SOURCES) > $@

$(STAMPS)/longbird: pyproject.toml CMakeLists.txt $(KERNELS) $(STAMPS)/torch $(STAMPS)/sources
	@echo '==> installing the build tools'
	@$(PIP) scikit-build-core nanobind cmake ninja
	@echo '==> building the kernels and installing longbird (a minute or two)'
	@$(PIP) $(EDITABLE) '.[documents]'
	@touch $@

$(STAMPS)/dev: $(STAMPS)/longbird
	@echo '==> installing the development dependencies'
	@$(PIP) $(SOURCES_ALONE)
	@$(PIP) $(EDITABLE) '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache

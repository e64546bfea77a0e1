# Everything a newcomer needs, from a bare machine with Python 3.11 and g++:
#
#   make demo     install, then draw, check and time the BigBird graph
#   make test     install, then run every check there is (CI runs exactly this)
#
# Set-up is redone only when what it depends on has changed. PYTHON=... chooses another interpreter.

PYTHON ?= python3
CXX ?= g++
VENV := .venv
STAMPS := $(VENV)/stamps
# Absolute, because tools look for each other on it (pyright for its node, scikit-build-core for cmake).
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

PIP := $(VENV)/bin/python -m pip --disable-pip-version-check install -qq -c constraints.txt
EDITABLE := --no-build-isolation --config-settings build-dir=build/{wheel_tag} --editable

# Where there is a compiler, failing to build the kernels is an error rather than a pure Python install.
ifneq ($(shell command -v $(CXX)),)
export LONGBIRD_REQUIRE_NATIVE := 1
endif

KERNELS := $(wildcard csrc/*.h csrc/*.cpp)
CXX_FILES := $(KERNELS) $(wildcard csrc/tests/*.cpp csrc/tests/*.h)

.PHONY: help demo test lint ruff types layers cxx hooks sanitize pytest bench format clean
.PHONY: docs dist dist-check test-oldest
help:
	@sed -n '/^$$/q; s/^# \{0,3\}//p' Makefile

demo: $(STAMPS)/longbird
	longbird demo --out build

test: lint sanitize pytest

bench: $(STAMPS)/dev
	longbird bench attention

# --- Checks: the hooks of .pre-commit-config.yaml are these same targets --------------------------

lint: ruff types layers cxx hooks

ruff: $(STAMPS)/dev
	ruff check .
	ruff format --check .

types: $(STAMPS)/dev
	pyright

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
	pytest --durations=10

format: $(STAMPS)/dev
	ruff check --fix .
	ruff format .
	clang-format -i $(CXX_FILES)

# --- Release ---------------------------------------------------------------------------------------

# The interpreters that wheels are made for, and tried with: make dist DIST_PYTHONS="python3.11 python3.12"
DIST_PYTHONS ?= $(PYTHON)
# The oldest Python of pyproject.toml, for the oldest versions of everything else.
OLDEST_PYTHON ?= python3.10

docs: $(STAMPS)/dev
	sphinx-build -q -W --keep-going -b html docs build/docs
	@echo '==> build/docs/index.html; links to other sites, which are not tried, are in build/docs/external-links.txt'

dist: $(STAMPS)/dev
	.ci/dist $(DIST_PYTHONS)

dist-check:
	.ci/check-dist $(DIST_PYTHONS)

test-oldest:
	.ci/test-oldest $(OLDEST_PYTHON)

# --- Set-up ----------------------------------------------------------------------------------------

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"The pinned environment \
	needs Python 3.11 or later, and $(PYTHON) is {sys.version.split()[0]}: try make PYTHON=python3.11")'
	@echo '==> creating $(VENV) with' "$$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/torch: constraints.txt $(STAMPS)/venv
	@echo '==> installing torch (the largest download: minutes, the first time)'
	@$(PIP) torch
	@touch $@

$(STAMPS)/longbird: pyproject.toml CMakeLists.txt $(KERNELS) $(STAMPS)/torch
	@echo '==> installing the build tools'
	@$(PIP) scikit-build-core nanobind cmake ninja
	@echo '==> building the kernels and installing longbird (a minute or two, quietly)'
	@$(PIP) $(EDITABLE) .
	@touch $@

$(STAMPS)/dev: $(STAMPS)/longbird
	@echo '==> installing what the checks need'
	@$(PIP) $(EDITABLE) '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# dragoman: `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
export PYTHONSAFEPATH := 1

.PHONY: help
help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

# -- environment -----------------------------------------------------------------------------------
$(VENV)/.installed: requirements/dev.txt pyproject.toml
	@echo "setting up $(VENV) from requirements/dev.txt"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

.PHONY: venv
venv: $(VENV)/.installed  ## Make the virtual environment with pinned, hashed packages

.PHONY: requirements
requirements: venv  ## Pin requirements/*.txt anew from pyproject.toml and requirements/dev.in
	@$(PY) -m pip install --quiet --disable-pip-version-check uv
	@for out in dev image; do \
	  if [ $$out = dev ]; then sources="--extra all pyproject.toml requirements/dev.in"; \
	  else sources="--extra driver --extra operator pyproject.toml -c requirements/dev.txt"; fi; \
	  $(VENV)/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-header $$sources -o requirements/$$out.txt; done

# -- checks ----------------------------------------------------------------------------------------
.PHONY: lint
lint: venv  ## Lint and format check
	@$(VENV)/bin/ruff check --quiet . && $(VENV)/bin/ruff format --quiet --check .

.PHONY: types
types: venv  ## mypy, strict
	@$(VENV)/bin/mypy

.PHONY: layers
layers: venv  ## import-linter: who may import whom
	@$(VENV)/bin/lint-imports --no-logo 2>/dev/null || $(VENV)/bin/lint-imports

.PHONY: unit
unit: venv  ## Unit tests: no process, no network
	@$(PY) -m pytest -q tests/unit

.PHONY: check
check: lint types layers unit  ## Lint, types, layers, unit tests: under 2 minutes

.PHONY: test
test: venv  ## Everything, with a real control plane and a real node (cold: builds Kubernetes)
	@PYTHONPATH=tests/cluster $(PY) -m testcluster build all --background
	@$(MAKE) --no-print-directory check
	@PYTHONPATH=tests/cluster $(PY) -m testcluster build all
	@$(PY) -m pytest --whole tests

.PHONY: soak
soak: venv  ## Long runs: NAME=mutants|publish|verdicts|values|cel|operator|binding [PART=i/n], see docs/soak.md
	@case "$(NAME)" in \
	  mutants) $(PY) tests/mutants/wire_fields.py; $(PY) tests/mutants/rules.py; $(PY) tests/mutants/run.py --part $(or $(PART),1/1) $(if $(ONLY),--only "$(ONLY)") ;; \
	  verdicts) DRAGOMAN_SOAK=2000 $(PY) -m pytest -q tests/contract/test_slice_verdicts.py tests/contract/test_claim_verdicts.py ;; \
	  publish) DRAGOMAN_SOAK=500 $(PY) -m pytest -q -s --timeout=3000 tests/contract/test_publisher_faults.py -k "random or killed" ;; \
	  binding) DRAGOMAN_SOAK=2000 $(PY) -m pytest -q --timeout=3000 tests/unit/test_operator_binding_machine.py ;; \
	  values) DRAGOMAN_SOAK=20000 $(PY) -m pytest -q tests/contract/test_values.py ;; \
	  operator) DRAGOMAN_SOAK=1 $(PY) -m pytest -q -s --timeout=900 tests/contract/test_operator_faults.py ;; \
	  cel) DRAGOMAN_SOAK=10000 $(PY) -m pytest -q tests/contract/test_cel.py tests/contract/test_cel_verdicts.py ;; \
	  *) echo "make soak NAME=mutants|publish|verdicts|values|cel|operator|binding [PART=i/n]" >&2; exit 2 ;; esac

.PHONY: bench
bench: venv  ## Speed beside a reference: NAME=cel|publish|evict|scale, see docs/benchmarks.md
	@case "$(NAME)" in \
	  cel|publish|evict|scale) $(PY) benchmarks/$(NAME).py ;; \
	  *) echo "make bench NAME=cel|publish|evict|scale" >&2; exit 2 ;; esac

.PHONY: demo
demo: venv  ## DRA on a real one-node Kubernetes, from ResourceClaimTemplate to device (root)
	@case "$(or $(CLUSTER),real)" in \
	  real) PYTHONPATH=tests/cluster $(PY) demo/real.py ;; \
	  *) echo "make demo CLUSTER=real: no other cluster is supported yet" >&2; exit 2 ;; esac

.PHONY: required
required: venv  ## List anew the tests that must have run on a full machine
	@$(PY) -m pytest --collect-only -q tests/contract tests/e2e | sed -n 's/\[.*//; /::/p' | sort -u > tests/required.txt

.PHONY: format
format: venv  ## Format and fix what can be fixed
	@$(VENV)/bin/ruff check --quiet --fix . ; $(VENV)/bin/ruff format --quiet .

.PHONY: protos
protos: venv  ## Generate protos/dra_protos anew
	@$(PY) protos/generate.py

.PHONY: clean
clean:  ## Remove what make made in this folder (the build cache outside stays)
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

-include tests/cluster/cluster.mk image.mk kind/kind.mk

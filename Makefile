# Two commands matter: `make demo` and `make test`. Each makes .venv first, if need be.

PY := .venv/bin/python
JOBS ?= 2
# One thread a test process: two of them share two cores.
export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint golden prove dev clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

demo:  ## one kernel all the way, on a GPU if there is one, else on the emulator
	@.ci/venv
	@$(PY) -m ptxgen demo

test: lint  ## all tests that this machine can run, and the linters
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal

lint: dev  ## ruff and mypy
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m mypy --no-error-summary

golden: dev  ## rewrite the golden PTX and show what changed in it
	@$(PY) -m pytest -q -p no:xdist tests/golden --update-golden
	@git --no-pager diff --stat -- tests/golden

prove: dev  ## check all proof kernels under 50 x 3 schedules, break them, write PROOFS.md (minutes)
	@$(PY) -m ptxgen prove --programs tests/foreign/subjects.py --jobs $(JOBS) -o PROOFS.md

dev:  ## .venv with this project and its development tools
	@.ci/venv dev

clean:  ## remove what the targets above made, .venv included
	@rm -rf .venv .venv.log .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

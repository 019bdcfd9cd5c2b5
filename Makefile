# `make help` lists what there is. Everything works from a clean clone with Python 3.11 and pip alone.
PYTHON ?= python3
PIP_ARGS ?=
BIN := .venv/bin

.DEFAULT_GOAL := help

## setup: make .venv with everything in it (re-runnable; rebuilt when the lock changes)
setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements.lock torch==2.13.0 --editable .
	$(BIN)/python -m pip check
	touch $@

.PHONY: setup

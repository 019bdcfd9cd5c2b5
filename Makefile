# `make help` lists what there is. Everything works from a clean clone with Python 3.11 and pip alone.
PYTHON ?= python3
PIP_ARGS ?=
TORCH := torch==2.13.0
BIN := .venv/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS)
# Bytecode is written at the first import: of 18,000 files most are never imported, and it is a minute of work.
LATER := --no-compile
PYTEST := $(BIN)/python -m pytest
AXE := tests/browser/node_modules/.ready
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of processes: each would compile all of it again
export SAM_CLI_TELEMETRY := 0
export AWS_EC2_METADATA_DISABLED := true
export NO_MKDOCS_2_WARNING := 1  # what the site's theme would say at each build is in ADR 55

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-client demo-dashboard demo-doors demo-elastic demo-governance demo-pipeline demo-plan demo-scripts demo-training demo-vit first-ten-minutes release test test-long test-third test-thorough test-torch test-v3 test-clients test-hyperpod test-programs upgrade-check version check sbom fmt reference lock docs diagrams build wheel test-wheel deploy deploy-check account-smoke hooks clean

help: ## this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: .venv/.ready ## make .venv with everything in it

.venv/.ready: requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "You need Python 3.11: make setup PYTHON=python3.11")'
	$(PYTHON) -m venv --clear .venv
	$(PIP) $(LATER) --require-hashes --no-deps -r requirements.lock
	$(BIN)/python local/setup/torch_build.py $(TORCH) $(LATER) $(PIP_ARGS)
	$(PIP) $(LATER) --no-deps $(TORCH)
	$(BIN)/python local/setup/torchvision_hook.py
	$(PIP) $(LATER) --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check
	touch $@

demo: setup ## four real training jobs queue, preempt, resume and finish on the local twin
	$(BIN)/python -m demos.main_job

demo-client: setup .venv-v3/.ready ## one training by SDK v2, SDK v3 and boto3, each preempted once; three minutes
	$(BIN)/python -m demos.client

demo-dashboard: setup $(AXE) ## a night of two teams on every page of the dashboard, beside its approved pictures; needs Chromium; KEEP=1 leaves it up, APPROVE=1 approves
	$(BIN)/python -m demos.dashboard $(if $(KEEP),--keep) $(if $(APPROVE),--approve)

demo-doors: setup .venv-aio/.ready .venv-airflow/.ready .venv-cli/.ready $(JAVASCRIPT) ## six clients, from boto3 to Airflow, each preempted once; two minutes
	$(BIN)/python -m demos.doors

demo-elastic: setup ## one training on 2, 4, 1 and 4 instances in turn, with the losses of an undisturbed run; three minutes
	$(BIN)/python -m demos.elastic

demo-governance: setup ## rules, idle GPUs, failures, spot, jobs past the queue: two hours on a clock moved by hand
	$(BIN)/python -m demos.governance

demo-pipeline: setup ## prepare, a sweep of six with one failure and its rerun, evaluate the best; two minutes
	$(BIN)/python -m demos.pipeline

demo-plan: setup ## a training plan's window closes, its job resumes on demand with equal losses; two minutes
	$(BIN)/python -m demos.plan

demo-scripts: setup ## Hugging Face Trainer, Lightning and Accelerate, preempted in five ways and resumed; five minutes
	$(BIN)/python -m demos.scripts --json build/scripts.json

SEED ?= 7
KILL_AT ?= 7:TERM,13:KILL,19:TERM
WORLDS ?= 2,2,1,4

demo-training: setup ## a training that is killed three times, held bit by bit to one that is not; 1 to 4 minutes
	$(BIN)/python -m demos.proof --steps 30 --seed $(SEED) --kill-at $(KILL_AT) --worlds $(WORLDS) --json build/training.json

demo-vit: setup ## a vision transformer trains on the twin, is preempted and resumes; one to three minutes
	$(BIN)/python -m demos.vision --json build/vit.json

test: setup $(AXE) ## the tests, in five to ten minutes; ends with pytest's summary
	$(PYTEST) -n 2 --dist loadscope

test-thorough: setup $(AXE) ## every crash, race and stop, twins of their own; half an hour, before a release
	$(PYTEST) -n 3 --dist loadscope -m "thorough and not long"  # tests wait for processes a third of their time

test-long: setup $(AXE) ## what takes longer: builds, whole demos, many schedules
	$(PYTEST) -m "long or thorough"

third = $(or $(TRAINMASTER_THIRD),$(error name one: make test-third TRAINMASTER_THIRD=0))
test-third: setup $(AXE) ## a third of the long and thorough tests (TRAINMASTER_THIRD=0, 1 or 2), a failed one twice; .ci/run plays another with each change
	TRAINMASTER_THIRD=$(third) $(BIN)/python -m tests.second_try -n 2 --dist loadscope -m "long or thorough" --junitxml build/third-$(third).xml --durations 20 --durations-min 60

TORCH_VERSION ?= 2.9.1
TORCH_TESTS := $(addprefix tests/integration/training/,test_loop.py test_long_steps.py test_preemption.py test_resume.py checkpoint)

test-torch: .venv-torch/$(TORCH_VERSION) ## steps, stops, checkpoints and resumes of the training program with another PyTorch (TORCH_VERSION=2.9.1); 5 GB, minutes
	.venv-torch/bin/python -m pytest -W default -k "not no_shard" $(TORCH_TESTS)  # torch warns of its own past

.venv-torch/%: requirements.lock
	$(PYTHON) -m venv --clear .venv-torch
	$(subst .venv,.venv-torch,$(PIP)) --require-hashes --no-deps -r requirements.lock
	$(subst .venv,.venv-torch,$(PIP)) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch==$*
	$(subst .venv,.venv-torch,$(PIP)) --no-deps --no-build-isolation --editable .
	touch $@

test-v3: setup .venv-v3/.ready ## the SDK v3, which needs an environment of its own (1 GB), on the twin; minutes
	.venv-v3/bin/python -m pip check
	.venv-v3/bin/python -m pytest -W "ignore:Implicitly cleaning up:ResourceWarning" tests/v3  # the SDK's folders

.venv-v3/.ready: requirements-v3.lock
	$(PYTHON) -m venv --clear .venv-v3
	$(subst .venv,.venv-v3,$(PIP)) --require-hashes --no-deps -r requirements-v3.lock
	$(subst .venv,.venv-v3,$(PIP)) --no-deps --no-build-isolation --editable .
	.venv-v3/bin/python -m pip check
	touch $@

JAVASCRIPT := tests/clients/javascript/node_modules/.ready

test-clients: test-programs .venv-airflow/.ready ## every client that docs/sdk.md names, each in its own environment, on the twin; minutes
	.venv-aio/bin/python -m pip check
	.venv-aio/bin/python -m pytest tests/aio
	.venv-airflow/bin/python -m pytest tests/airflow

test-programs: setup .venv-aio/.ready .venv-cli/.ready .venv-flows/.ready .venv-v3/.ready $(JAVASCRIPT) ## of these the CLI, other languages and patterns of notebooks
	$(PYTEST) -m long -rs tests/clients

test-hyperpod: setup .venv-hyperpod/.ready ## manifests of HyperPod against AWS's own models, in their own environment (500 MB); two minutes
	$(PYTEST) -m long -rs tests/clients/test_hyperpod_models.py

.venv-hyperpod/.ready: requirements-hyperpod.lock
	$(PYTHON) -m venv --clear .venv-hyperpod
	$(subst .venv,.venv-hyperpod,$(PIP)) $(LATER) --require-hashes --no-deps -r requirements-hyperpod.lock
	.venv-hyperpod/bin/python -m pip check
	touch $@

.venv-cli/.ready: requirements-cli.lock
	$(PYTHON) -m venv --clear .venv-cli
	$(subst .venv,.venv-cli,$(PIP)) --require-hashes --no-deps -r requirements-cli.lock
	.venv-cli/bin/python -m pip check
	touch $@

.venv-flows/.ready: requirements-flows.lock
	$(PYTHON) -m venv --clear .venv-flows
	$(subst .venv,.venv-flows,$(PIP)) --require-hashes --no-deps -r requirements-flows.lock
	$(subst .venv,.venv-flows,$(PIP)) --no-deps --no-build-isolation --editable .
	.venv-flows/bin/python -m pip check
	touch $@

$(JAVASCRIPT): tests/clients/javascript/package-lock.json  # without npm its tests say why they are skipped
	if command -v npm; then npm ci --prefix tests/clients/javascript --no-audit --no-fund && touch $@; fi

$(AXE): tests/browser/package-lock.json  # likewise; axe-core looks at pages of the dashboard
	if command -v npm; then npm ci --prefix tests/browser --no-audit --no-fund && touch $@ || echo 'axe-core is not installed: its tests are skipped'; fi

.venv-aio/.ready: requirements-aio.lock
	$(PYTHON) -m venv --clear .venv-aio
	$(subst .venv,.venv-aio,$(PIP)) --require-hashes --no-deps -r requirements-aio.lock
	$(subst .venv,.venv-aio,$(PIP)) --no-deps --no-build-isolation --editable .
	.venv-aio/bin/python -m pip check
	touch $@

.venv-airflow/.ready: requirements-airflow.lock
	$(PYTHON) -m venv --clear .venv-airflow
	$(subst .venv,.venv-airflow,$(PIP)) --require-hashes --no-deps -r requirements-airflow.lock
	$(subst .venv,.venv-airflow,$(PIP)) --no-deps --no-build-isolation --editable .
	.venv-airflow/bin/python -m pip check
	touch $@

check: setup .venv-scan/.ready ## format, lint, types, imports, template, scanners, licences, documents; reads only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cfn-lint template.yaml
	$(BIN)/sam validate --lint --region us-east-1
	$(BIN)/python -m tests.house.phrases
	$(BIN)/python -m tests.scanners
	site=$$(mktemp -d); $(BIN)/mkdocs build --site-dir $$site; status=$$?; rm -r $$site; exit $$status

sbom: setup .venv-scan/.ready ## build/sbom: bills of materials (CycloneDX) of the environment and of the layer
	$(BIN)/python -m tests.scanners --bills build/sbom

fmt: setup ## write what `make check` wants of format and imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

hooks: setup ## `make fmt` before each commit, `make check` before each push
	$(BIN)/pre-commit install

reference: setup ## the policy's JSON Schema, tables and comments from core/policy; the layer's model shapes from training/config
	$(BIN)/python layers/trainmaster/generate_policy_reference.py
	$(BIN)/python layers/trainmaster/generate_program_shapes.py

lock: ## every requirements*.lock from its .in (needs uv)
	uv pip compile requirements.in --override requirements.override --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements.lock
	uv pip compile requirements-v3.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-v3.lock
	uv pip compile requirements-aio.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-aio.lock
	uv pip compile requirements-airflow.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-airflow.lock
	uv pip compile requirements-cli.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-cli.lock
	uv pip compile requirements-flows.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-flows.lock
	uv pip compile requirements-hyperpod.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-hyperpod.lock
	uv pip compile requirements-scan.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-scan.lock
	uv pip compile requirements-ministack.in --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes -o requirements-ministack.lock

docs: setup ## the documents as a site in build/site; strict: a wrong link fails it
	$(BIN)/mkdocs build

diagrams: setup $(AXE) ## the pictures of the documents' mermaid diagrams, for the site; needs Chromium and npm
	$(BIN)/python -m docs.site.render_diagrams

first-ten-minutes: setup ## from an empty folder to the first fit() seen, by clone and by wheel; measured, 3 minutes each
	$(BIN)/python -m tests.first_ten_minutes

upgrade-check: setup .venv-ministack/.ready ## earlier stacks, with jobs under way, become today's and go back; no account, 10 minutes
	$(BIN)/python -m tests.upgrade

release: setup .venv-scan/.ready .venv-ministack/.ready ## build/release/VERSION: wheel, sdist, packaged stack, SBOM, notes, all checked; no tag
	$(BIN)/python -m release build $(if $(HOME_PAGE),--home-page $(HOME_PAGE))

version: setup ## make version VERSION=X.Y.Z: into its one place, and the changelog's Unreleased becomes its section
	$(BIN)/python -m release prepare $(VERSION)

build: setup ## what `sam deploy` uploads: six functions and one layer for arm64
	LAYER_PYTHON=$(CURDIR)/$(BIN)/python $(BIN)/sam build

wheel: setup ## dist/: the wheel that `pip install` takes, and the source distribution
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

test-wheel: setup ## the wheel in empty environments, away from here; a minute or two
	$(PYTEST) -m long tests/e2e/test_wheel.py

deploy-check: setup .venv-ministack/.ready ## template.yaml deployed onto an emulator, the four jobs on it; no account, 3 minutes
	$(BIN)/python -m demos.deploy_check

.venv-scan/.ready: requirements-scan.lock
	$(PYTHON) -m venv --clear .venv-scan
	$(subst .venv,.venv-scan,$(PIP)) --require-hashes --no-deps -r requirements-scan.lock
	.venv-scan/bin/python -m pip check
	touch $@

.venv-ministack/.ready: requirements-ministack.lock
	$(PYTHON) -m venv --clear .venv-ministack
	$(subst .venv,.venv-ministack,$(PIP)) --require-hashes --no-deps -r requirements-ministack.lock
	.venv-ministack/bin/python -m pip check
	touch $@

account-smoke: setup ## a stack of its own in YOUR account, four jobs, all of it deleted; asks first; 40 minutes, < 1 USD
	$(BIN)/python -m demos.account_smoke $(SMOKE_ARGS)

deploy: build ## to your AWS account: looks at it first, then asks for each parameter of docs/guides/deploy.md
	$(BIN)/python -m release.deployment

clean: ## everything that was made here
	rm -rf tests/browser/node_modules tests/clients/javascript/node_modules .venv .venv-v3 .venv-aio .venv-airflow .venv-cli .venv-flows .venv-hyperpod .venv-scan .venv-ministack .aws-sam build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

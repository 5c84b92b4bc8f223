# `make help` lists what there is. The two that matter: `make repro` and `make test`.
#
#   PYTHON=python3.12   the interpreter that makes the environment (3.11 to 3.13)
#   VENV=/path/to/env   use an environment of your own, as it is: nothing is installed into it
#   VENV=none           use the active environment

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
VENV ?= .venv
PORT ?= 5000

ifeq ($(VENV),none)
INTERPRETER := python
else
BIN := $(if $(filter /%,$(VENV)),$(VENV),$(CURDIR)/$(VENV))/bin
INTERPRETER := $(shell test -x '$(BIN)/python' && echo '$(BIN)/python' || echo '$(PYTHON)')
export PATH := $(BIN):$(PATH)
endif

# stages are `python -m ...`, found on PATH
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true
export DO_NOT_TRACK := 1

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n  PYTHON=python3.12 makes .venv with it; VENV=/path/to/env or VENV=none (the active one) uses yours as it is.\n'

.PHONY: venv
venv: ## make .venv and install requirements.lock (nothing to do while the lock is unchanged)
	@command -v '$(INTERPRETER)' >/dev/null || { echo "error: $(INTERPRETER): not found; install Python 3.11 to 3.13, or name it: make venv PYTHON=/path/to/python3.12" >&2; exit 2; }
	@'$(INTERPRETER)' tools/set_up.py '$(VENV)'

.PHONY: repro
repro: venv git-tree ## bring reports/latest/ up to date, print the verdict, then gate it
	@python -m stages.compose --check
	@dvc repro
	@python -m stages.report --print
	@printf '\nreport     %s\nMLflow UI  make ui%s\n' reports/latest/report.html '$(if $(filter .venv,$(VENV)),, VENV=$(VENV))'
	@python -m stages.gate

.PHONY: git-tree
git-tree:
	@git rev-parse --git-dir >/dev/null 2>&1 || grep -qs no_scm .dvc/config.local || { \
		echo "error: not a git work tree, which DVC wants; run 'git init', or 'dvc config --local core.no_scm true' for a copy without git" >&2; exit 2; }

.PHONY: test
test: venv ## run the tests (those for CUDA are skipped without a GPU)
	@python -m pytest $(ARGS)

.PHONY: check
check: lint types imports test ## lint, types, imports and tests: what CI runs

.PHONY: check-long
check-long: venv ## the tests that are too long for `make test`
	@python -m pytest -m slow --timeout 1800 $(ARGS)

.PHONY: lint
lint: venv ## ruff: lint and format
	@ruff check .
	@ruff format --check .

.PHONY: types
types: venv ## mypy, strict
	@mypy

.PHONY: imports
imports: venv ## import-linter: the one-way rule
	@lint-imports --no-logo

.PHONY: ui
ui: venv ## publish what is not yet in MLflow, then serve its UI on 127.0.0.1 (PORT=5000)
	@python -m stages.publish
	@uri="$${MLFLOW_TRACKING_URI:-sqlite:///$(CURDIR)/mlflow.db}"; case "$$uri" in \
	http*) echo "published to $$uri: the server there has the UI" ;; \
	*) python -c 'import socket, sys; socket.create_server(("127.0.0.1", int(sys.argv[1]))).close()' '$(PORT)' 2>/dev/null || { \
		echo 'error: PORT: must be a free port of this machine; got $(PORT). Choose another: make ui PORT=5001' >&2; exit 2; }; \
	printf '%s\n' "MLflow UI on http://127.0.0.1:$(PORT), in some seconds (Ctrl-C ends it)" \
		"modes side by side: http://127.0.0.1:$(PORT)/#/experiments/1/runs?viewStateShareKey=opmode"; exec mlflow server --host 127.0.0.1 --port '$(PORT)' --workers 1 \
		--backend-store-uri "$$uri" --artifacts-destination '$(CURDIR)/mlartifacts' ;; esac

.PHONY: diagnose
diagnose: venv ## is it worth leaving eager? its bottleneck and what replay and kernels can save at most
	@python -m stages.diagnose

.PHONY: sweep
sweep: venv ## run a grid: make sweep ARGS="model=a,b mode=eager,compile"
	@test -n '$(ARGS)' || { echo 'error: ARGS: must say what to sweep; for example make sweep ARGS="mode=eager,compile"' >&2; exit 2; }
	@python -m stages.sweep -m $(ARGS)

.PHONY: keep
keep: venv ## keep reports/latest/ as a study: make keep NAME=my-study
	@test -n '$(NAME)' || { echo 'error: NAME: must name the study; for example make keep NAME=my-study' >&2; exit 2; }
	@python -m stages.keep '$(NAME)'

.PHONY: lock
lock: ## write requirements.lock from what the environment holds
	@python tools/lock.py

.PHONY: clean
clean: ## remove build/ and the tools' caches; reports, MLflow runs and .venv stay
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find stages tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# `make help` says what there is. A target sets up what it needs; running it again is quick.

BIN := .venv/bin
# Without root the checks that need a container runtime skip, and say so.
NODE_IF_ROOT := $(if $(filter 0,$(shell id -u)),node guest etcd images prometheus)

# Some containers come with this. Each of the hundreds of processes that the tests start would compile podfit anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help package demo test campaign conformance compare figures timings lint quick venv dev node guest etcd images prometheus machine \
	ruff mypy imports lock clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z%-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

package: dev ## wheel and sdist of what git tracks, in dist/
	@scripts/package

demo: venv node ## resize running containers in place, narrated (root)
	$(BIN)/podfit demo

# Lint goes beside the installation of packages, the tests beside each other (scripts/test.py). With arguments all is one run.
test: dev ## every check; ends with a line for each session of pytest
	@$(MAKE) --no-print-directory -j5 --output-sync $(LINT) timings machine
ifeq ($(PYTEST_ARGS),)
	@$(BIN)/python scripts/test.py
else
	$(BIN)/pytest $(PYTEST_ARGS)
endif

campaign: dev $(NODE_IF_ROOT) ## the long forms of the crash and load tests
	$(BIN)/pytest -m campaign $(PYTEST_ARGS)

conformance: dev $(NODE_IF_ROOT) ## docs/conformance.md anew, from the tests that are marked with a row
	$(BIN)/pytest -m 'row and not campaign' --conformance=docs/conformance.md $(PYTEST_ARGS)

timings: dev ## what some works cost in CPU beside the runs before (bench/history.jsonl); it warns, it never fails
	$(BIN)/python bench/check.py

compare: dev node ## this version beside another: make compare WITH=COMMIT, or WITH="--kubeconfig FILE"
	$(BIN)/python bench/compare.py $(WITH)

figures: dev ## the figures in README.md and docs/, from what the tests replay and the last conformance run showed
	cd tests && ../$(BIN)/python -m support.figures
	cd tests && ../$(BIN)/python -m support.options_page

LINT := ruff mypy imports
lint: dev ## style, types, who imports whom
	@$(MAKE) --no-print-directory -j3 --output-sync $(LINT)

ruff:
	$(BIN)/ruff check
	$(BIN)/ruff format --check

mypy:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports

quick: dev ## the tests that need no machine, on all cores
	$(BIN)/pytest -n auto -m 'not (node or kubectl or etcd or guest or campaign)' $(PYTEST_ARGS)

test-%: dev ## the tests of one component, without lint: make test-kubelet, make test-apiserver, ...
	$(BIN)/pytest tests/$* $(PYTEST_ARGS)

venv: ## .venv with podfit
	@scripts/setup-venv requirements.lock

dev: ## .venv with the tools of the developers too
	@scripts/setup-venv requirements-dev.lock

node: ## containerd, runc and CNI plugins from the distribution (root)
	@scripts/setup-node

guest: ## User-Mode Linux, in which the tests of cgroup v2 run (root)
	@scripts/setup-guest

etcd: ## an etcd for the tests of the store, in .etcd/
	@scripts/setup-etcd

images: venv ## images of the distribution's PostgreSQL, Java and memcached for tests and examples, in .images/ (root)
	@scripts/setup-images

prometheus: ## a Prometheus for the tests of the autoscaler, in .prometheus/
	@scripts/setup-prometheus

UV_COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --upgrade \
	--annotation-style line --custom-compile-command "make lock" --no-emit-index-url pyproject.toml --extra node --extra history --group build

# One after the other: apt-get takes turns with itself for what it installs, but not for its lists.
machine:
	@for each in $(NODE_IF_ROOT); do scripts/setup-$$each || exit; done

lock: dev ## resolve the dependencies of pyproject.toml anew
	$(BIN)/python -m pip install -q uv
	$(UV_COMPILE) -o requirements.lock
	$(UV_COMPILE) -c requirements.lock --group dev -o requirements-dev.lock

clean: ## remove what the tools leave; the .venv and the data stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

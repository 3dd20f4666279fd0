# Set-up happens by itself: every target makes .venv when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS := 1

.PHONY: demo test lint types units processes bench bench-operator bench-planners bench-board e2e e2e-observe crds dashboards cluster-up cluster-down cluster-status deploy install clean

demo: install
	$(BIN)/parcae local examples/gpt/job.yaml --trace traces/p3-dense-8.trace \
		--speedup 30 --out runs/demo --verify

test: lint types tests

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# At the lowest priority: with `make -j2 test` the tests run beside it.
types: install
	nice -n 19 $(BIN)/mypy

tests: install
	$(BIN)/python tests/left_out.py
	$(BIN)/python -m pytest

bench: install
	$(BIN)/python -m benchmarks

bench-operator: install
	$(BIN)/python -m benchmarks.operator_load

# Layouts by liveput against layouts by what is there, in local runs of a model with a device's pace.
bench-planners: install
	$(BIN)/python -m benchmarks.planners

# What jobs write to etcd, and what three members take.
bench-board: install
	$(BIN)/python -m benchmarks.board_load

# One run through everything that happens to spot instances, on a real cluster; ends with a table.
e2e: install
	$(BIN)/python -m pytest tests/e2e

# The same for what is told of it: a real Prometheus scrapes a run with preemptions, and every query of
# dashboards and alerts is held against the run's records. PICTURES=1 draws docs/parcae-*.png anew.
e2e-observe: install
	$(if $(PICTURES),PARCAE_PICTURES=1) $(BIN)/python -m pytest tests/observe

crds: install
	$(BIN)/python -m parcae_api.crd
	cp crds/parcae.dev_parcaejobs.yaml charts/parcae/crd/

# The Grafana dashboards of the chart, from charts/dashboards.
dashboards: install
	$(BIN)/python -W ignore -m charts.dashboards

# A real Kubernetes of four nodes to work with by hand, with our images on them (docs/test-cluster.md).
cluster-up: install
	$(BIN)/python -m tests.cluster up
	$(BIN)/python -m tests.deploy --images-only

cluster-down cluster-status: cluster-%: install
	$(BIN)/python -m tests.cluster $*

# Our images and chart on it; FULL=1 puts torch into the agent's image, which takes minutes.
deploy: install
	$(BIN)/python -m tests.deploy $(if $(FULL),--full)

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv runs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

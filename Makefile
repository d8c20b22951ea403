# Every target works on a bare machine with git, make and Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin
# Processes that run tests; one that runs out of tests takes some of another's.
WORKERS ?= 2
PARALLEL := --numprocesses $(WORKERS) --dist worksteal

.PHONY: demo generate check test test-gpu lint wheel bench lock

## the village, its house, the README's queries and four pictures, in demo/
demo: .venv/.ready
	$(BIN)/spatialq demo

## what to run while working: style, types, and the tests of CPU kernels that take little time
check: lint .venv/moto/.ready
	$(BIN)/python -m pytest $(PARALLEL) -m "not (host or gpu or slow)" --hypothesis-profile check

## all tests
test: .venv/.ready .venv/moto/.ready
	$(BIN)/python -m pytest $(PARALLEL)

## every kernel on this machine's GPU
test-gpu: .venv/.ready
	SPATIALQ_REQUIRE_GPU=1 $(BIN)/python -m pytest -m gpu

## SQL macros, tables of parameters and type stubs from the declarations; the classes of IFC
generate: .venv/.ready
	$(BIN)/python -m spatialq.functions.generator
	$(BIN)/python -m spatialq.io.ifc.schema_generator

## style and types
lint: .venv/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

## build the wheel, install it into a clean environment and use it there
wheel: .venv/.ready
	$(BIN)/python .ci/check_wheel.py

## the ratios of benchmarks/README.md
bench: .venv/.ready
	$(BIN)/python benchmarks/owm_ground.py
	$(BIN)/python benchmarks/ground_surface.py
	$(BIN)/python benchmarks/classify_ground.py
	$(BIN)/python benchmarks/detect_planes.py --sizes 100000 1000000 10000000
	$(BIN)/python benchmarks/plane_points.py
	$(BIN)/python benchmarks/plane_nodes.py
	$(BIN)/python benchmarks/plane_quality.py
	$(BIN)/python benchmarks/pops_features.py
	$(BIN)/python benchmarks/pops_patches.py
	$(BIN)/python benchmarks/pops_end_to_end.py --side 5000
	$(BIN)/python benchmarks/build_lod.py
	$(BIN)/python benchmarks/build_lod_end_to_end.py
	$(BIN)/python benchmarks/build_lod_quality.py
	$(BIN)/python benchmarks/intersects_with.py
	$(BIN)/python benchmarks/distance.py
	$(BIN)/python benchmarks/direction.py
	$(BIN)/python benchmarks/broad_phase.py
	$(BIN)/python benchmarks/pins.py
	$(BIN)/python benchmarks/query_builder.py
	$(BIN)/python benchmarks/sql_road.py --lists
	$(BIN)/python benchmarks/read_las.py
	$(BIN)/python benchmarks/read_ifc.py
	$(BIN)/python benchmarks/export_ifc.py
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/interrupt.py

## newer versions of everything into constraints.txt
lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
	  --upgrade --no-annotate --no-header --quiet --output-file constraints.txt

## a server of object storage for tests, in an environment of its own: it needs an older dateutil
.venv/moto/.ready: .venv/.ready tests/moto.txt
	$(PYTHON) -m venv .venv/moto
	.venv/moto/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/moto.txt
	touch $@

.venv/.ready: pyproject.toml constraints.txt setup.py $(wildcard spatialq/database/native/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit("spatialq needs Python 3.11 or newer, this is " + sys.version if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev --editable .
	touch $@

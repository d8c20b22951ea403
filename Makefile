# Every target works on a bare machine with git, make and Python >= 3.11.
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Processes that run tests. Those of a module are run by one, which makes its fixtures once; where
# some take minutes, a process that runs out of tests takes some of another's instead.
WORKERS ?= 2
PARALLEL := --numprocesses $(WORKERS) --dist loadscope
STEALING := --numprocesses $(WORKERS) --dist worksteal
# Tests of the house, and of each kernel against its oracle.
CHECKED := $(wildcard tests/test_layers.py tests/test_layout.py tests/test_generated.py tests/*/test_oracle.py)

.PHONY: demo generate check test test-all test-gpu lint docs docs-images page wheel bench bench-gpu lock

## the village, its house, the README's queries and four pictures, in demo/
demo: .venv/.demo
	$(BIN)/spatialq demo

## what to run while working: style, types, and quick tests of the house and of the kernels
check: lint
	$(BIN)/python -m pytest $(PARALLEL) -m "not (host or gpu or slow)" --hypothesis-profile check $(CHECKED)

## what every change must pass before it is committed; what is random is the same in each run
test: .venv/.ready
	$(BIN)/python -m pytest $(PARALLEL) -m "not (gpu or slow)"

## all tests, with those that kill processes, fill disks, start Ray or a server of object storage,
## generate input at random or read all real files
test-all: .venv/.ready .venv/moto/.ready
	$(BIN)/python -m pytest $(STEALING) --hypothesis-profile all

## every kernel on this machine's GPU
test-gpu: .venv/.ready
	SPATIALQ_REQUIRE_GPU=1 $(BIN)/python -m pytest -m gpu

## SQL macros, tables of parameters and type stubs from the declarations; the classes of IFC
generate: .venv/.ready
	$(BIN)/python -m spatialq.functions.generator
	$(BIN)/python .ci/ifc_schemas.py

## style and types
lint: .venv/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

## the site of the documentation in site/, without network once its tools are installed; a warning is an error
docs: .venv/docs/.ready
	NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict

## the pictures of the recipes, from the files of the demo
docs-images: .venv/.ready
	$(BIN)/python .ci/docs_images.py

## the page of `spatialq view`, bundled by npm into spatialq/serve/page
page: spatialq/serve/page/app.js

spatialq/serve/page/app.js: $(wildcard page/*.* page/src/*)
	npm run --silent --prefix page page

## compile the kernels for a baseline processor and the CUDA sources, build the wheel with them, install
## it into a clean environment and use it there; KEEP=dist keeps it
wheel: .venv/.ready
	$(BIN)/python .ci/kernels.py compile
	$(BIN)/python .ci/kernels.py prove
	$(BIN)/python -m spatialq.runtime.cubins
	$(BIN)/python .ci/check_wheel.py $(if $(KEEP),--keep $(KEEP))

## the ratios of benchmarks/README.md: all benchmarks of benchmarks/registry.py on the CPU
bench: .venv/.ready
	$(BIN)/python benchmarks cpu

## the same on this machine's GPU
bench-gpu: .venv/.ready
	$(BIN)/python benchmarks gpu

## newer versions of everything into constraints.txt
lock:
	uv pip compile pyproject.toml --extra all --group dev --group docs --universal --python-version 3.11 \
	  --upgrade --no-annotate --no-header --quiet --output-file constraints.txt

## a server of object storage for tests, in an environment of its own: it needs an older dateutil
.venv/moto/.ready: .venv/.ready tests/moto.txt
	$(PYTHON) -m venv .venv/moto
	.venv/moto/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/moto.txt
	touch $@

## tools that build the documentation: they import nothing of spatialq
.venv/docs/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv/docs
	.venv/docs/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv/docs/bin/python -m pip install --quiet --constraint constraints.txt --group docs
	touch $@

.venv/.ready: .venv/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable '.[all]'
	touch $@

## what the demo and README.md need, which is less than half of what the tests need
.venv/.demo: pyproject.toml constraints.txt setup.py $(wildcard spatialq/database/native/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit("spatialq needs Python 3.11 or newer, this is " + sys.version if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[ifc,raster,vector,xlsx]'
	@# byte code in all cores, which pip makes in one, and none of the tests of other packages
	-$(BIN)/python -m compileall -q -j 0 -x '[/\\](tests?|testing)[/\\]' .venv
	touch $@

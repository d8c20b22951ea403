# Every target works on a bare machine with git, make and Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev --editable .
	touch $@

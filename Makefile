# make demo  - the main job on embedded data       make test - every test
# make lint  - style and types                     make clean - remove what these made
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := test,lint

.PHONY: demo test lint clean venv

venv: $(VENV)/.installed

# The stamp is touched last, so an interrupted installation is started again.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gmpll needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

demo: venv
	$(BIN)/gmpll demo

# Two test processes share the cores: threads inside each would only be in the way.
test: export OMP_NUM_THREADS ?= 1
test: venv
	$(BIN)/python -m pytest --numprocesses=2 --dist=worksteal $(PYTEST_ARGS)

lint: venv
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache gmpll-demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

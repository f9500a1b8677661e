# make demo  - the main job on embedded data       make test - every test
# make lint  - style and types                     make docs - the site, in docs/_build/html
# make clean - remove what these made              make fuzz - damaged files for every reader
# make faults - commands disturbed at every step    make audit - weaknesses of the dependencies
# make mutants - changes of the core that tests must notice
# make coverage - the lines that the tests run
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := test,lint

.PHONY: demo test lint docs clean venv fuzz compatibility release-check faults audit mutants coverage

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
	$(BIN)/gmpll demo --force

# Two test processes share the cores: threads inside each would only be in the way.
test: export OMP_NUM_THREADS ?= 1
test: venv
	$(BIN)/python -m pytest --numprocesses=2 --dist=worksteal $(PYTEST_ARGS)

# Inputs for every reader; Atheris is not part of the extras because it has no wheels everywhere.
FUZZ_RUNS ?= 2000
fuzz: export OMP_NUM_THREADS ?= 1
fuzz: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3.0'
	$(BIN)/python -m fuzz.run --runs $(FUZZ_RUNS)

# Every command that writes is killed, interrupted and put on full disks; nothing may be lost.
FAULTS ?= 24
faults: export OMP_NUM_THREADS ?= 1
faults: venv
	$(BIN)/python tools/faults.py --faults $(FAULTS)

# The dependencies against the advisory services; without the internet it says so and checks less.
audit: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7'
	$(BIN)/python -m tools.audit

# Changes of the core that a test must notice. What has run before is kept in mutants/.
mutants: export OMP_NUM_THREADS ?= 1
mutants: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mutmut>=3.8'
	$(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut export-cicd-stats
	$(BIN)/python tools/mutants.py

# With COVERAGE_CORE=sysmon, from Python 3.12 on, this costs next to nothing.
coverage: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pytest-cov>=6'
	$(MAKE) test PYTEST_ARGS='--cov=gmpll --cov-report=term:skip-covered $(PYTEST_ARGS)'

lint: venv
	$(BIN)/ruff check src tests benchmarks examples tools fuzz noxfile.py docs/conf.py docs/_ext docs/figures
	$(BIN)/ruff format --check src tests benchmarks examples tools fuzz noxfile.py docs/conf.py docs/_ext docs/figures
	$(BIN)/mypy

$(VENV)/.docs-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# Runs the examples of the gallery; a warning is an error. Nothing is fetched.
docs: export MPLBACKEND = agg
docs: $(VENV)/.docs-installed
	$(BIN)/sphinx-build -W --keep-going -n -b html docs docs/_build/html

# COMPATIBILITY='-s oldest -- tests/test_metrics.py' runs one session, and some tests only.
compatibility: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'nox>=2024.4'
	$(BIN)/nox --envdir .compat $(COMPATIBILITY)

release-check: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6'
	$(BIN)/python tools/release.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .compat mutants gmpll-demo
	rm -rf docs/_build docs/api docs/auto_examples
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

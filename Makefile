# Everything runs in .venv, which is made on first use and brought up to date whenever
# the project's metadata, its version or the pinned versions change.

.PHONY: demo test test-slow test-min lint bench bench-all docs dist clean
.NOTPARALLEL:

PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip install -qq --constraint constraints.txt
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' sklearn_attention/__init__.py)

# Stamps that stand for what is installed.
PACKAGE := .venv/package-$(VERSION)
group = .venv/group-$(1)

demo: $(PACKAGE)
	MPLBACKEND=Agg $(BIN)/python examples/demo.py demo

# One thread for each of pytest's processes: more would only get in each other's way.
test test-slow: export OMP_NUM_THREADS = 1

# Ends with the slowest tests: those of more than a quarter of a second are marked slow.
test: $(PACKAGE) $(call group,test)
	$(BIN)/python -m pytest -n auto -m "not slow" --durations=20

test-slow: $(PACKAGE) $(call group,test)
	$(BIN)/python -m pytest -n auto

# With the oldest versions that pyproject.toml admits of what the package needs.
test-min: export OMP_NUM_THREADS = 1
test-min: .venv-min/installed
	.venv-min/bin/python -m pytest -n auto -m "not slow"

# ruff and pylint check that docstrings begin with a verb and that no name is vague. The types are
# those that users see: two checkers read calls as the guides write them. Workflows have the form
# that GitHub reads, and no known weakness.
lint: $(PACKAGE) $(call group,lint)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pylint sklearn_attention
	$(BIN)/mypy --strict --follow-imports=silent tests/documented_calls.py
	$(BIN)/basedpyright --level error tests/documented_calls.py
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --quiet --offline --config .github/zizmor.yml .github

bench: $(PACKAGE) $(call group,bench)
	$(BIN)/python benchmarks/attend.py
	$(BIN)/python benchmarks/smoothing_speed.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/kernel_sums.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/random_features.py
	$(BIN)/python benchmarks/forecasting.py speed --sets "100 series,1000 series" --results .venv/forecasting.jsonl
	$(BIN)/python benchmarks/forecasting.py report --results .venv/forecasting.jsonl
	$(BIN)/python benchmarks/language_model.py --steps 200
	$(BIN)/python benchmarks/encoders.py tables --sets titanic,penguins --seeds 0 --results .venv/encoders.jsonl
	$(BIN)/python benchmarks/encoders.py report --results .venv/encoders.jsonl
	$(BIN)/python benchmarks/tabular.py run --sets yacht,penguins --results .venv/tabular.jsonl
	$(BIN)/python benchmarks/tabular.py report --results .venv/tabular.jsonl

# Pages that are measured again when the version or their script has changed, two at a time; where
# cells of their tables are stored one by one, an interrupted run goes on where it stopped.
bench-all: $(PACKAGE) $(call group,bench)
	$(MAKE) --directory benchmarks --jobs 2

# Examples run when they have changed: docs/gallery has their results.
docs: export OMP_NUM_THREADS = 1
docs: $(PACKAGE) $(call group,docs)
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build/html
	! grep -rn "object at 0x" docs/gallery --include="*.rst"

# What a release uploads, and that it installs into an empty environment and works there.
dist: $(call group,release)
	rm -rf dist
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	.ci/try-dist dist/*.whl
	.ci/try-dist dist/*.tar.gz

clean:
	rm -rf .venv-min build demo dist docs/_build docs/api/generated docs/gallery
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path "./.venv/*" -prune -exec rm -rf {} +

$(PACKAGE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --upgrade pip
	$(PIP) --build-constraint constraints.txt --editable ".[all]"
	@touch $@

.venv/group-%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --upgrade pip
	$(PIP) --group $*
	@touch $@

.venv-min/installed: pyproject.toml constraints.txt .ci/lower-bounds
	$(PYTHON) -m venv .venv-min
	$(PYTHON) .ci/lower-bounds > .venv-min/constraints.txt
	.venv-min/bin/python -m pip install -qq --upgrade pip
	.venv-min/bin/python -m pip install -qq --constraint .venv-min/constraints.txt \
		--editable ".[all]" --group test
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv .venv

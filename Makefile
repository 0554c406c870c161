# Everything that a newcomer or a developer does here.

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo lint test test-long test-gpu clean

BIN := .venv/bin
TEST_WORKERS ?= 2
PYTEST_ARGS ?=
# Pytest ends with 5 where no test carries the mark.
OR_NONE = || [ $$? -eq 5 ]

help:
	@echo "make demo       set everything up, then make the program in examples/heat faster and prove it"
	@echo "make setup      a compiler, the sandbox and the Python environment .venv"
	@echo "make test       style, types and tests: what every change must pass"
	@echo "make test-long  the tests that take minutes"
	@echo "make test-gpu   the tests that need an NVIDIA GPU"
	@echo "make lint       style and types alone"
	@echo "make clean      remove .venv, out/ and all caches"

setup:
	@scripts/setup.sh

setup-dev:
	@scripts/setup.sh --dev

demo: setup
	$(BIN)/kernelwright check examples/heat
	$(BIN)/kernelwright optimize examples/heat --policy rules --out out/demo

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -m "not long and not gpu" -n $(TEST_WORKERS) $(PYTEST_ARGS)

test-long: setup-dev
	$(BIN)/pytest -m "long and not gpu" $(PYTEST_ARGS) $(OR_NONE)

test-gpu: setup-dev
	$(BIN)/pytest -m gpu $(PYTEST_ARGS) $(OR_NONE)

clean:
	rm -rf .venv out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

"""Mutations by which the tests are judged still fit the modules that they change."""

import ast
import functools
import importlib.util
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "mutations.py"
# Of the modules that all folders share as well.
CORE = (
    ".", "attention", "bandwidth", "forecasting", "kernel_attention", "nn", "sequence",
    "smoothing", "training", "transformer",
)  # fmt: skip
FOLDERS = (*CORE, "inspection", "kernel_approximation", "text")


@pytest.fixture(scope="module")
def mutations():
    if not SCRIPT.exists():
        pytest.skip(".ci is not part of what was installed")
    spec = importlib.util.spec_from_file_location("mutations", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTATIONS


@functools.cache
def tree_of(source):
    return ast.dump(ast.parse(source))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_mutation_changes_one_place_of_a_module(folder, mutations):
    """Its old text is there once, and the module with the new one is other valid Python."""
    for module, old, new, _ in (own for own in mutations if own.folder == folder):
        source = (ROOT / "sklearn_attention" / module).read_text(encoding="utf-8")
        assert source.count(old) == 1, (module, old)
        assert ast.dump(ast.parse(source.replace(old, new))) != tree_of(source)


def test_every_folder_of_the_core_has_mutations(mutations):
    folders = Counter(mutation.folder for mutation in mutations)
    assert sorted(folders) == sorted(FOLDERS)
    assert len(mutations) == len(set(mutations)) >= 60
    assert min(folders[folder] for folder in CORE) >= 6

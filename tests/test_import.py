"""Importing the package costs next to nothing: every name is loaded on first use."""

import importlib.metadata
import json
import pkgutil
import subprocess
import sys

import pytest

import sklearn_attention

FOLDERS = [
    found.name for found in pkgutil.iter_modules(sklearn_attention.__path__) if found.ispkg
]


# What a fresh interpreter does, one after the other.
ESTIMATORS = [
    name
    for name in sklearn_attention.__all__
    if hasattr(getattr(sklearn_attention, name), "fit")
]
STAGES = {
    "import": "import sklearn_attention",
    "dir": "dir(sklearn_attention)",
    "numpy": "from sklearn_attention import datasets, kernels, text",
    "build": f"for name in {ESTIMATORS}: repr(getattr(sklearn_attention, name)())",
    "smooth": """
import numpy as np
X = np.random.default_rng(0).normal(size=(40, 2))
for Z in (X[:, :1], X):
    model = sklearn_attention.LocalPolynomialRegressor().fit(Z, np.sin(3 * X[:, 0]))
    model.predict(Z), model.loo_score_
""",
    "smooth several": """
X, y = np.random.default_rng(0).normal(size=(30, 3)), X[:30, 0]
model = sklearn_attention.LocalPolynomialRegressor(degree=1).fit(X, y)
model.predict_interval(X[:5]), model.explain(X[:5]), model.predict_gradient(X[:5])
model = sklearn_attention.NadarayaWatsonRegressor(per_feature=True).fit(X, y)
model.predict_quantiles(X[:5], [0.5]), model.explain(X[:5]), model.predict_gradient(X[:5])
sklearn_attention.ProductKernelDensity(bandwidth="likelihood").fit(X).score_samples(X[:5])
sklearn_attention.ConditionalKernelDensity().fit(X, y).predict(X[:5])
""",
}
REPORT = "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"


@pytest.fixture(scope="module")
def loaded():
    """Libraries that are loaded after each stage."""
    code = "\n".join(["import json, sys", *(f"{stage}\n{REPORT}" for stage in STAGES.values())])
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(zip(STAGES, map(set, map(json.loads, output.splitlines())), strict=True))


def test_libraries_are_loaded_where_they_are_needed(loaded):
    heavy = {"matplotlib", "torch"}
    assert not loaded["import"] & (heavy | {"numpy", "pandas", "scipy", "sklearn"})
    assert not loaded["dir"] & (heavy | {"sklearn"})
    assert not loaded["numpy"] & heavy
    assert len(ESTIMATORS) > 15
    assert "sklearn" in loaded["build"]
    assert not loaded["build"] & heavy
    assert "torch" not in loaded["smooth"] | loaded["smooth several"]


def test_every_public_name_resolves():
    namespace = {}
    exec("from sklearn_attention import *", namespace)
    for name in sklearn_attention.__all__:
        assert namespace[name] is getattr(sklearn_attention, name)
        assert name in [*dir(sklearn_attention), "__version__"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_is_public_or_has_no_public_names(folder):
    module = importlib.import_module(f"sklearn_attention.{folder}")
    names = getattr(module, "__all__", [])
    assert (folder in sklearn_attention.__all__) == bool(names)
    assert all(getattr(module, name) is not None for name in names)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="sklearn_attention attribute Attend"):
        sklearn_attention.Attend  # noqa: B018


def test_version_is_the_installed_one():
    installed = importlib.metadata.version("sklearn-attention")
    assert sklearn_attention.__version__ == installed, "reinstall: `make test` does"

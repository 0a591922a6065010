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
X = np.random.default_rng(0).normal(size=(200, 2))
for Z in (X[:, :1], X):
    model = sklearn_attention.LocalPolynomialRegressor().fit(Z, np.sin(3 * X[:, 0]))
    model.predict(Z), model.loo_score_
""",
    "smooth several": """
X, y = np.random.default_rng(0).normal(size=(60, 3)), X[:60, 0]
model = sklearn_attention.LocalPolynomialRegressor().fit(X, y)
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


def test_importing_the_package_loads_no_library(loaded):
    assert not loaded["import"] & {"matplotlib", "numpy", "pandas", "scipy", "sklearn", "torch"}


def test_listing_the_package_loads_no_library(loaded):
    assert not loaded["dir"] & {"matplotlib", "sklearn", "torch"}


def test_what_needs_only_numpy_loads_no_torch(loaded):
    assert not loaded["numpy"] & {"matplotlib", "torch"}


def test_constructing_estimators_loads_no_torch(loaded):
    assert len(ESTIMATORS) > 15
    assert "sklearn" in loaded["build"]
    assert not loaded["build"] & {"matplotlib", "torch"}


@pytest.mark.parametrize("stage", ["smooth", "smooth several"])
def test_rows_are_smoothed_without_torch(loaded, stage):
    assert "torch" not in loaded[stage]


@pytest.mark.parametrize("name", sklearn_attention.__all__)
def test_every_public_name_resolves(name):
    assert getattr(sklearn_attention, name) is not None
    assert name in [*dir(sklearn_attention), "__version__"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_is_public_or_has_no_public_names(folder):
    module = importlib.import_module(f"sklearn_attention.{folder}")
    names = getattr(module, "__all__", [])
    assert (folder in sklearn_attention.__all__) == bool(names)
    assert all(getattr(module, name) is not None for name in names)


def test_star_import_gives_the_public_names():
    namespace = {}
    exec("from sklearn_attention import *", namespace)
    assert set(sklearn_attention.__all__) <= set(namespace)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="sklearn_attention attribute Attend"):
        sklearn_attention.Attend  # noqa: B018


def test_version_is_the_installed_one():
    installed = importlib.metadata.version("sklearn-attention")
    assert sklearn_attention.__version__ == installed, "reinstall: `make test` does"

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


def run(code):
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def loaded_by(code):
    """Top-level modules that are loaded after the code ran in a fresh interpreter."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(run(f"{code}\n{report}"))
    return {module.partition(".")[0] for module in modules}


def test_importing_the_package_loads_no_library():
    loaded = loaded_by("import sklearn_attention")
    assert not loaded & {"matplotlib", "numpy", "pandas", "scipy", "sklearn", "torch"}


def test_listing_the_package_loads_no_library():
    loaded = loaded_by("import sklearn_attention; dir(sklearn_attention)")
    assert not loaded & {"matplotlib", "sklearn", "torch"}


def test_constructing_estimators_loads_no_torch():
    public = {name: getattr(sklearn_attention, name) for name in sklearn_attention.__all__}
    names = [name for name, value in public.items() if hasattr(value, "fit")]
    assert len(names) > 15
    loaded = loaded_by(
        "import sys, sklearn_attention\n"
        f"for name in {names}:\n"
        "    repr(getattr(sklearn_attention, name)())\n"
        "    assert 'torch' not in sys.modules, name"
    )
    assert "sklearn" in loaded
    assert not loaded & {"matplotlib", "torch"}


def test_what_needs_only_numpy_loads_no_torch():
    folders = "datasets", "kernels", "text"
    loaded = loaded_by("\n".join(f"import sklearn_attention.{name}" for name in folders))
    assert not loaded & {"matplotlib", "torch"}


@pytest.mark.parametrize("name", sklearn_attention.__all__)
def test_every_public_name_resolves(name):
    assert getattr(sklearn_attention, name) is not None
    assert name in [*dir(sklearn_attention), "__version__"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_is_public_and_so_are_its_names(folder):
    assert folder in sklearn_attention.__all__
    module = getattr(sklearn_attention, folder)
    assert module.__all__
    assert all(getattr(module, name) is not None for name in module.__all__)


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


def test_few_features_are_smoothed_without_torch():
    loaded = loaded_by(
        "import numpy as np\n"
        "from sklearn_attention import LocalPolynomialRegressor\n"
        "X = np.random.default_rng(0).normal(size=(200, 2))\n"
        "for Z in (X[:, :1], X):\n"
        "    model = LocalPolynomialRegressor().fit(Z, np.sin(3 * X[:, 0]))\n"
        "    model.predict(Z), model.loo_score_"
    )
    assert "torch" not in loaded

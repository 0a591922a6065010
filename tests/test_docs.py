"""What is public is in the documentation."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import sklearn_attention
from sklearn_attention import kernels

ROOT = Path(sklearn_attention.__file__).parents[1]
API, HOUSE, README = ROOT / "docs" / "api.rst", ROOT / "docs" / "house.md", ROOT / "README.md"

pytestmark = pytest.mark.skipif(
    not API.exists(), reason="the documentation does not come with an installed package"
)


def names_of(folder, kind):
    """Public classes or functions of a folder."""
    module = importlib.import_module(f"sklearn_attention.{folder}")
    return {name for name in module.__all__ if kind(getattr(module, name))}


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("smoothing", inspect.isclass),
        ("forecasting", inspect.isclass),
        ("transformer", inspect.isclass),
        ("kernel_approximation", inspect.isclass),
        ("forecasting", inspect.isroutine),
        ("attention", inspect.isroutine),
        ("kernels", lambda value: inspect.isclass(value) and issubclass(value, kernels.Kernel)),
        ("nn", callable),
        ("text", callable),
        ("datasets", inspect.isroutine),
        ("inspection", callable),
    ],
)
def test_every_public_name_has_its_page(folder, kind):
    listed = set(re.findall(r"^   (\w+)$", API.read_text("utf-8"), flags=re.MULTILINE))
    names = names_of(folder, kind)
    assert names
    assert not names - listed


def test_the_link_of_every_estimator_leads_to_its_page():
    estimators = names_of("smoothing", lambda value: hasattr(value, "fit"))
    for name in estimators | {"KernelForecaster"}:
        link = getattr(sklearn_attention, name)()._get_doc_link()
        assert link.endswith(f"/api/generated/sklearn_attention.{name}.html")


def test_readme_names_every_estimator():
    quoted = set(re.findall(r"`(\w+)`", README.read_text("utf-8")))
    assert not names_of("smoothing", lambda value: hasattr(value, "fit")) - quoted
    assert not names_of("kernel_approximation", inspect.isclass) - quoted
    assert "KernelForecaster" in quoted


def test_the_page_on_the_house_names_every_folder_and_shared_module():
    page = HOUSE.read_text("utf-8")
    package = ROOT / "sklearn_attention"
    assert all(f"`{path.parent.name}/`" in page for path in package.glob("*/__init__.py"))
    assert all(f"`{path.name}`" in page for path in package.glob("_[a-z]*.py"))

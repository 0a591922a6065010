"""What is public is in the documentation."""

import ast
import collections
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from slow_cases import slow_but

import sklearn_attention

ROOT = Path(sklearn_attention.__file__).parents[1]
API, HOUSE = ROOT / "docs" / "api", ROOT / "docs" / "house.md"
# Pages that show code.
GUIDES = sorted(
    path.stem for path in ROOT.glob("docs/*.md") if "\n>>> " in path.read_text("utf-8")
)

pytestmark = pytest.mark.skipif(
    not API.exists(), reason="the documentation does not come with an installed package"
)


FOLDERS = [
    name
    for name in sklearn_attention.__all__
    if inspect.ismodule(getattr(sklearn_attention, name))
]


def described():
    """(module, name) of all that the API pages describe, as often as they do."""
    for page in set(API.glob("*.rst")) - {API / "index.rst"}:
        module = None
        for line in page.read_text("utf-8").splitlines():
            if match := re.match(r"\.\. (?:current)?module:: ([\w.]+)", line):
                module = match[1]
            elif match := re.match(r"(?:   |\.\. data:: )(\w+)$", line):
                yield module, match[1]


def public_names():
    """(module, name) of every public name that is no folder."""
    for module in ["sklearn_attention", *(f"sklearn_attention.{folder}" for folder in FOLDERS)]:
        for name in set(importlib.import_module(module).__all__) - {"__version__"}:
            if not inspect.ismodule(getattr(importlib.import_module(module), name)):
                yield module, name


def test_every_public_name_has_one_place_on_the_api_pages():
    pages, public = list(described()), list(public_names())
    assert len(public) > 100
    assert sorted(pages) == sorted(public)


def test_no_public_name_has_a_second_place():
    places = collections.Counter(name for _, name in public_names())
    assert not [name for name, n_places in places.items() if n_places > 1]
    values = (getattr(importlib.import_module(module), name) for module, name in public_names())
    objects = collections.Counter(map(id, filter(callable, values)))
    assert max(objects.values()) == 1


def documented_defaults(public):
    """What a docstring says of each parameter's default; None where it names no default."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\S.*\n-{3,}|\Z)", inspect.getdoc(public), re.S | re.M
    )
    for names, text in re.findall(
        r"^(\w+(?:, \w+)*) : (.*)$", section[1] if section else "", re.M
    ):
        default = re.search(r"default=(.*)$", text)
        yield from ((name, default and default[1]) for name in names.split(", "))


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_documented_defaults_are_those_of_the_signatures(folder):
    module = importlib.import_module(f"sklearn_attention.{folder}".rstrip("."))
    for public in filter(callable, (getattr(module, name) for name in module.__all__)):
        parameters = inspect.signature(public).parameters
        for name, documented in documented_defaults(public):
            default = parameters[name].default
            if default is inspect.Parameter.empty:
                assert documented is None, (public.__name__, name)
            elif documented not in {repr(default), getattr(default, "__name__", None)}:
                assert ast.literal_eval(documented) == default, (public.__name__, name)


def test_the_link_of_every_estimator_leads_to_its_page():
    for name in ("LocalPolynomialRegressor", "KernelForecaster", "TransformerClassifier"):
        link = getattr(sklearn_attention, name)()._get_doc_link()
        page = rf"/en/(latest|v[\d.]+)/api/generated/sklearn_attention\.{name}\.html$"
        assert re.search(page, link)


def test_the_page_on_choosing_names_every_estimator():
    public = {name: getattr(sklearn_attention, name) for name in sklearn_attention.__all__}
    estimators = {name for name, value in public.items() if hasattr(value, "fit")}
    assert len(estimators) > 15
    page = (ROOT / "docs" / "choosing.md").read_text("utf-8")
    assert estimators <= set(re.findall(r"`(\w+)`", page))


def test_the_chooser_leads_to_estimators():
    source = (ROOT / "docs" / "_chooser.txt").read_text("utf-8")
    chosen = re.findall(r"> (\w+)$", source, re.M)
    assert len(chosen) > 15
    assert all(hasattr(getattr(sklearn_attention, name), "fit") for name in chosen)
    assert len(chosen) == len(set(chosen))


@pytest.mark.parametrize("peer", ["numpy", "pandas", "scikit-learn", "scipy"])
def test_what_the_stored_inventories_list_exists(peer):
    lines = (ROOT / "docs" / "inventories" / f"{peer}.txt").read_text("utf-8").splitlines()
    names = [line.split()[0] for line in lines if not line.startswith("#")]
    assert names
    for name in names:
        assert pkgutil.resolve_name(name) is not None


def test_the_first_paragraph_of_an_example_is_a_sentence_for_its_card():
    scripts = list(ROOT.glob("examples/*/*.py"))
    assert len(scripts) > 30
    for path in scripts:
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
        sentence = " ".join(
            docstring.strip("=\n").partition("=\n\n")[2].partition("\n\n")[0].split()
        )
        assert re.fullmatch(r"[A-Z][^.:]{20,100}\.", sentence), path


def test_the_page_on_the_house_names_every_folder_and_shared_module():
    page = HOUSE.read_text("utf-8")
    package = ROOT / "sklearn_attention"
    assert all(f"`{path.parent.name}/`" in page for path in package.glob("*/__init__.py"))
    assert all(f"`{path.name}`" in page for path in package.glob("_[a-z]*.py"))
    modules = {path.name for path in package.rglob("*.py")}
    assert set(re.findall(r"`(_\w+\.py)`", page)) <= modules


def test_the_guide_and_the_docstring_name_every_candidate():
    with pytest.raises(ValueError, match="candidates=") as refused:
        sklearn_attention.TransformerForecaster(candidates="none").fit(range(9))
    known = re.findall(r"'(\w+)'", re.search(r"\[(.*)\]", str(refused.value))[1])
    assert "ridge" in known
    guide = (ROOT / "docs" / "forecasting.md").read_text("utf-8")
    assert all(f'`"{name}"`' in guide for name in known)
    described = inspect.getdoc(sklearn_attention.TransformerForecaster)
    assert all(f'"{name}"' in described for name in known)


# Folders that commands make.
MADE = re.compile(r"(\.venv|\.venv-min|demo|dist|docs/_build)/.*")
FILE = re.compile(r"Makefile|[\w.<>/-]+\.(cff|md|py|pyi|rst|toml|txt|ya?ml)")
FOLDER = re.compile(r"[\w.]+/[\w.<>/*-]*")


def test_the_page_for_contributors_names_what_is_there():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    words = {word for code in re.findall(r"`([^`\n]+)`", page) for word in code.split()}
    paths = {word for word in words if FILE.fullmatch(word) or FOLDER.fullmatch(word)}
    paths = {path for path in paths if not MADE.fullmatch(path)}
    assert len(paths) > 40
    patterns = {path: re.sub(r"<\w+>", "*", path).rstrip("/") for path in paths}
    assert not {
        path
        for path, pattern in patterns.items()
        if not [*ROOT.glob(pattern), *ROOT.glob(f"sklearn_attention/{pattern}")]
    }
    commands = re.findall(r"`make ([\w-]+)`", page)
    assert len(commands) > 5
    targets = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(commands) <= set(" ".join(targets).split())


def test_what_holds_a_promise_is_there():
    page = (ROOT / "docs" / "promises.md").read_text("utf-8")
    paths = re.findall(r"`(tests/[^`]+)`", page)
    assert len(paths) > 10
    for path in paths:
        assert list(ROOT.glob(path)), path
    tests = "".join(path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    for name in re.findall(r"`(test_\w+)`", page):
        assert f"def {name}(" in tests


LONG_GUIDES = {
    "density",
    "explaining",
    "forecasting",
    "kernel_attention",
    "recipes",
    "sequences",
    "smoothing",
}


@pytest.mark.parametrize("page", slow_but({*GUIDES} - LONG_GUIDES, GUIDES))
def test_what_a_guide_shows_is_true(page):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    path = str(ROOT / "docs" / f"{page}.md")
    found = doctest.testfile(path, module_relative=False, optionflags=flags)
    assert found.attempted > 5
    assert found.failed == 0

"""The house: imports go down and never in a circle, and tests are where one looks for them."""

import ast
import graphlib
import importlib
from pathlib import Path

import pytest

import sklearn_attention

PACKAGE = sklearn_attention.__name__
ROOT = Path(sklearn_attention.__file__).parent
TESTS = Path(__file__).parent

# A folder may import from folders on lower floors.
FLOORS = {
    "kernels": 0,
    "datasets": 0,
    "text": 0,
    "attention": 1,
    "bandwidth": 2,
    "nn": 2,
    "training": 3,
    "forecasting": 4,
    "kernel_approximation": 4,
    "kernel_attention": 4,
    "sequence": 4,
    "smoothing": 4,
    "transformer": 4,
    "inspection": 5,
}
# What folders need of each other beyond public names, folder by folder: the modules that they
# may import from others. A module that no other folder imports from does not belong here.
INTERNAL = {
    "attention": """
        _algorithms._line _average _leave_one_out _leave_one_out_gradient _pair_sums
        _reduce _smoother _solve _sums _tables _wide_windows
    """,
    "bandwidth": """
        _background _convolution _criteria _density_search _neighbors _rules
        _search
    """,
    "forecasting": "_backtest _forms",
    "kernels": """
        _base _categorical _compact _feature_kernels _frequencies
        _numerics _product_kernel
    """,
    "nn": "_random",
    "smoothing": "_uncertainty",
    "text": "_check _files _learn _special _vocabulary",
    "training": """
        _architecture _batches _fit_network _network _report _training
    """,
}
# Two folders of one floor that are truly one concept: the first may import the second.
SIDEWAYS = set()
# Folders, and modules of others, that may import torch as they are loaded: nobody loads them
# before there is something to compute. tests/test_import.py looks at what is loaded in truth.
TORCH = {
    "attention._algorithms._fused",
    "nn",
    "training",
    *(f"forecasting.{name}" for name in ("_candidate_network", "_network")),
    *(f"sequence.{name}" for name in ("_language_network", "_seq2seq_network")),
    "transformer._network",
}

# Private modules of each folder that have no file of tests named after them yet. This list only
# shrinks.
WITHOUT_TESTS = {
    "attention": """
        _algorithms._boxes _algorithms._chebyshev _algorithms._fused
        _algorithms._keys _algorithms._recurrences
        _algorithms._windows _derivatives _read
    """,
    "bandwidth": "_convolution _density",
    "kernel_approximation": "_fourier_features _positive_features _random_features",
    "kernel_attention": "_kernel",
    "sequence": "_fitted_language_model _fitted_seq2seq _language_network",
    "training": "_architecture",
    "transformer": "_classifier _estimator _regressor _series_baseline _task",
}


def module_name(path):
    """Dotted name of a file's module, relative to the package; "" for the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def modules_of(listed):
    """Full names of modules that are listed by folder."""
    return {
        f"{folder}.{name}".removeprefix(".")
        for folder, names in listed.items()
        for name in names.split()
    }


EXCEPTIONS, SHARED = modules_of(WITHOUT_TESTS), modules_of(INTERNAL)


def folder_of(module):
    """The folder a module lies in; None for the modules at the top."""
    name = module.partition(".")[0]
    return name if (ROOT / name).is_dir() and name else None


def import_statements(node, loading=True):
    """Every import below a node, with whether it runs as the module is loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, loading
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from import_statements(child, loading and not function)


def imported_names(module, path, statement):
    """Absolute names of the modules that a statement imports."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    base = statement.module or ""
    if statement.level:
        here = [PACKAGE, *filter(None, module.split("."))]
        depth = statement.level - (path.name == "__init__.py")
        here = here[: len(here) - depth]
        base = ".".join([*here, base]) if base else ".".join(here)
    # What is imported from a module may be a module itself.
    inner = (f"{base}.{alias.name}" for alias in statement.names)
    return [name if name.removeprefix(f"{PACKAGE}.") in FILES else base for name in inner]


def imports(module):
    """(name, whether it is imported as the module is loaded), for every import."""
    path = FILES[module]
    for statement, loading in import_statements(ast.parse(path.read_text("utf-8"))):
        for name in imported_names(module, path, statement):
            yield name, loading


def house_imports(module):
    """The imports of the package's own modules, named relative to the package."""
    for name, loading in imports(module):
        if name.partition(".")[0] == PACKAGE:
            yield name.removeprefix(PACKAGE).removeprefix("."), loading


def borrowed(module):
    """(folder or module, name) of what a module imports from other folders."""
    path = FILES[module]
    for statement, _ in import_statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(statement, ast.ImportFrom):
            sources = imported_names(module, path, statement)
            for alias, source in zip(statement.names, sources, strict=True):
                source = source.removeprefix(PACKAGE).removeprefix(".")
                if folder_of(source) not in (None, folder_of(module)):
                    yield source, alias.name


def complaint(module, target):
    """What is wrong with a module importing another, or None."""
    mine, other = folder_of(module), folder_of(target)
    if target == "":
        return "the package itself stands above all its modules"
    if other is None or mine == other:
        return None
    if mine is None:
        return "what all folders share imports none of them"
    if FLOORS[mine] < FLOORS[other]:
        return f"{other!r} lies above {mine!r}"
    if FLOORS[mine] == FLOORS[other] and (mine, other) not in SIDEWAYS:
        return f"{other!r} lies beside {mine!r}"
    return None


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_has_a_floor(folder):
    assert folder in FLOORS


def test_imports_go_down():
    pairs = [(module, target) for module in FILES for target, _ in house_imports(module)]
    wrong = {pair: complaint(*pair) for pair in pairs}
    assert len(pairs) > 500
    assert not {pair: why for pair, why in wrong.items() if why}


def test_folders_share_public_names_and_a_stated_set_of_modules():
    for module in FILES:
        for source, name in borrowed(module):
            if source in FOLDERS and name != source:
                public = importlib.import_module(f"{PACKAGE}.{source}").__all__
                assert name in public, f"{module} imports {name} from {source}"
            else:
                assert source in SHARED | set(FOLDERS), f"{module} imports from {source}"


def test_every_module_that_is_shared_is_used_by_another_folder():
    assert {source for module in FILES for source, _ in borrowed(module)} >= SHARED


def test_no_circles():
    # An import inside a function counts too: it loads later, but binds the modules alike.
    graph = {module: {target for target, _ in house_imports(module)} for module in FILES}
    # Raises CycleError, which names the circle.
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert set(FILES) <= set(order)


def test_imports_inside_functions_are_read():
    names = dict(house_imports("training._fit_network"))
    assert names["training._train"] is False


def test_heavy_libraries_are_loaded_late():
    for module in FILES:
        loaded = {name.partition(".")[0] for name, loading in imports(module) if loading}
        assert "matplotlib" not in loaded, module
        assert "torch" not in loaded or {folder_of(module), module} & TORCH, module


def test_the_package_itself_imports_next_to_nothing():
    assert {name for name, _ in imports("")} == {"lazy_loader"}


@pytest.mark.parametrize(
    ("module", "target", "expected"),
    [
        ("attention._algorithms._dense", "kernels", None),
        ("attention._algorithms._dense", "_validation", None),
        ("attention._algorithms._dense", "attention._partial", None),
        ("attention._algorithms._dense", "kernels._base", None),
        ("kernels._base", "attention", "above"),
        ("kernels._base", "datasets", "beside"),
        ("kernels._base", "", "package itself"),
        ("_validation", "kernels", "none of them"),
    ],
)
def test_the_rules(module, target, expected):
    found = complaint(module, target)
    assert found is None if expected is None else expected in found


@pytest.mark.parametrize(
    ("module", "line", "expected"),
    [
        ("kernels._base", "from ._compact import Boxcar", "kernels._compact"),
        ("kernels._base", "from . import _compact", "kernels._compact"),
        ("kernels._base", "from .._validation import check_choice", "_validation"),
        ("kernels._base", "from .. import attention", "attention"),
        ("kernels._base", "from .. import __version__", ""),
        ("kernels", "from ._base import Kernel", "kernels._base"),
        ("kernels", "from .._validation import check_choice", "_validation"),
        ("_validation", "from ._blocks import blocks", "_blocks"),
        ("_validation", "import sklearn_attention.kernels", "kernels"),
    ],
)
def test_imports_are_resolved(module, line, expected):
    (statement, _), *_ = import_statements(ast.parse(line))
    (name,) = imported_names(module, FILES[module], statement)
    assert name == ".".join(filter(None, [PACKAGE, expected]))


@pytest.mark.parametrize(
    ("code", "loading"),
    [
        ("import torch", True),
        ("try:\n    import torch\nexcept ImportError:\n    pass", True),
        ("class A:\n    import torch", True),
        ("def f():\n    import torch", False),
        ("class A:\n    def f(self):\n        import torch", False),
    ],
)
def test_late_imports_are_told_apart(code, loading):
    assert [late for _, late in import_statements(ast.parse(code))] == [loading]


def file_of_tests(module):
    """Where a newcomer looks for the tests of a private module."""
    name = module.rpartition(".")[2]
    return TESTS / (folder_of(module) or "") / f"test{name}.py"


def private_modules(folder):
    """Private modules of a folder, or beside the folders for ""."""
    return {
        module
        for module, path in FILES.items()
        if path.name.startswith("_") and path.name != "__init__.py"
        if (folder_of(module) or "") == folder
    }


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_modules_have_a_file_of_tests_of_their_name(folder):
    without = {name for name in private_modules(folder) if not file_of_tests(name).exists()}
    assert not without - EXCEPTIONS


@pytest.mark.parametrize("module", sorted(EXCEPTIONS))
def test_exceptions_are_needed(module):
    assert module in FILES, "there is no such module: take it off the list"
    assert not file_of_tests(module).exists(), "it has its file of tests: take it off the list"


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("_columns", "test_columns.py"),
        ("kernels._base", "kernels/test_base.py"),
        ("attention._algorithms._line", "attention/test_line.py"),
    ],
)
def test_where_tests_are(module, expected):
    assert module in private_modules(folder_of(module) or "")
    assert file_of_tests(module) == TESTS / expected

"""The house: imports go down and never in a circle, and tests are where one looks for them."""

import ast
import graphlib
import importlib
import re
from pathlib import Path

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
        _average _doubled_windows _leave_one_out
        _leave_one_out_gradient _pair_sums
        _read _reduce _smoother _solve _sums _tables
    """,
    "bandwidth": """
        _background _criteria _density_search _neighbors _rules
        _samples _search
    """,
    "forecasting": "_backtest _forms",
    "kernels": """
        _base _categorical _compact _feature_kernels _frequencies
        _numerics _product_kernel
    """,
    "nn": "_random",
    "smoothing": "_additive_mixture _uncertainty",
    "text": "_check _files _learn _special _vocabulary",
    "training": """
        _architecture _batches _fit_network _network _training
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
    "forecasting._network",
    *(f"sequence.{name}" for name in ("_language_network", "_seq2seq_network")),
    "transformer._network",
}

# Private modules of each folder that have no file of tests named after them yet. This list only
# shrinks.
WITHOUT_TESTS = {
    "attention": """
        _algorithms._boxes _algorithms._chebyshev _algorithms._fused
        _algorithms._keys _algorithms._recurrences
        _algorithms._windows _read
    """,
    "bandwidth": "_density",
    "kernel_approximation": "_fourier_features _positive_features _random_features",
    "sequence": "_fitted_language_model _fitted_seq2seq _language_network",
    "training": "_architecture",
    "transformer": "_classifier _estimator _regressor _series_baseline _task",
}


def module_name(path):
    """Dotted name of a file's module, relative to the package; "" for the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {module: ast.parse(path.read_text("utf-8")) for module, path in FILES.items()}
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def modules_of(listed):
    """Full names of modules that are listed by folder."""
    return {f"{folder}.{name}" for folder, names in listed.items() for name in names.split()}


EXCEPTIONS, SHARED = modules_of(WITHOUT_TESTS), modules_of(INTERNAL)


def folder_of(module):
    """The folder a module lies in; None for the modules at the top."""
    name = module.partition(".")[0]
    return name if name in FOLDERS else None


def import_statements(node, loading=True):
    """Every import below a node, with whether it runs as the module is loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, loading
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from import_statements(child, loading and not function)


def imported_names(module, statement):
    """(module, what is imported from it) of a statement, by absolute names."""
    if isinstance(statement, ast.Import):
        return [(alias.name, "") for alias in statement.names]
    base = statement.module or ""
    if statement.level:
        here = [PACKAGE, *filter(None, module.split("."))]
        here = here[: len(here) - statement.level + (FILES[module].name == "__init__.py")]
        base = ".".join([*here, base] if base else here)
    # What is imported from a module may be a module itself.
    inner = ((f"{base}.{alias.name}", alias.name) for alias in statement.names)
    return [
        (path if path.removeprefix(f"{PACKAGE}.") in FILES else base, name)
        for path, name in inner
    ]


def imports(module):
    """(module, what is imported from it, whether it is as the module is loaded)."""
    for statement, loading in import_statements(TREES[module]):
        for source, name in imported_names(module, statement):
            yield source, name, loading


# The imports of the package's own modules, named relative to the package.
HOUSE = {
    module: [
        (source.removeprefix(PACKAGE).removeprefix("."), name)
        for source, name, _ in imports(module)
        if source.partition(".")[0] == PACKAGE
    ]
    for module in FILES
}
# (module, folder or module, name) of what is imported from other folders
BORROWED = [
    (module, source, name)
    for module, found in HOUSE.items()
    for source, name in found
    if name and folder_of(source) not in (None, folder_of(module))
]


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


def test_imports_go_down():
    assert FLOORS.keys() == {*FOLDERS}
    pairs = {(module, target) for module, found in HOUSE.items() for target, _ in found}
    assert len(pairs) > 500
    wrong = {pair: complaint(*pair) for pair in pairs}
    assert not {pair: why for pair, why in wrong.items() if why}


def test_folders_share_public_names_and_a_stated_set_of_modules():
    for module, source, name in BORROWED:
        if source in FOLDERS and name != source:
            public = importlib.import_module(f"{PACKAGE}.{source}").__all__
            assert name in public, f"{module} imports {name} from {source}"
        else:
            assert source in SHARED | set(FOLDERS), f"{module} imports from {source}"
    assert {source for _, source, _ in BORROWED} >= SHARED


def test_no_circles():
    # An import inside a function counts too: it loads later, but binds the modules alike.
    graph = {module: {target for target, _ in found} for module, found in HOUSE.items()}
    # Raises CycleError, which names the circle.
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert set(FILES) <= set(order)


def test_heavy_libraries_are_loaded_late():
    for module in FILES:
        loaded = {source.partition(".")[0] for source, _, loading in imports(module) if loading}
        assert "matplotlib" not in loaded, module
        assert "torch" not in loaded or {folder_of(module), module} & TORCH, module
    assert {source for source, *_ in imports("")} == {"lazy_loader"}


def has_tests(module):
    """Whether its tests are where a newcomer looks for those of a private module."""
    name = module.rpartition(".")[2]
    return (TESTS / (folder_of(module) or "") / f"test{name}.py").exists()


def test_modules_have_a_file_of_tests_of_their_name():
    private = {m for m, path in FILES.items() if re.match(r"_[a-z]", path.name)}
    assert len(private) > 150
    without = {module for module in private if not has_tests(module)}
    assert without == EXCEPTIONS, "the list of exceptions only shrinks"
    assert has_tests("attention._algorithms._line")  # without the folder within a folder

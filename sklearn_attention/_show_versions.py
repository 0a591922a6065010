"""The report about the installation that a bug report should contain."""

import importlib.metadata
import importlib.util
import platform
import sys

import numpy  # noqa: F401, so that its linear algebra is loaded
from threadpoolctl import threadpool_info

_DISTRIBUTIONS = """
sklearn-attention pip numpy scipy scikit-learn pandas narwhals torch threadpoolctl
array-api-compat lazy-loader dask distributed matplotlib polars rich skops tokenizers
""".split()


def show_versions() -> None:
    """Print the versions of the package, of Python and of all dependencies.

    A bug report should contain the output. It tells about the system, the versions that are
    installed, and the number of threads that linear algebra uses. torch is imported, if it is
    installed, to see whether it has a GPU.

    Examples
    --------
    >>> import sklearn_attention
    >>> sklearn_attention.show_versions()
    <BLANKLINE>
    System
    ...
    Dependencies
    ...
    Threads of linear algebra
    ...
    torch
    ...
    """
    of_torch = _torch_facts()
    sections = {
        "System": [
            ("python", sys.version.replace("\n", " ")),
            ("executable", sys.executable),
            ("machine", platform.platform()),
        ],
        "Dependencies": [(name, _version(name)) for name in _DISTRIBUTIONS],
        # The libraries are known once numpy, and torch if it is installed, are loaded.
        "Threads of linear algebra": [
            (library["prefix"], f"{library['num_threads']} ({library['internal_api']})")
            for library in threadpool_info()
        ],
        "torch": of_torch,
    }
    for title, facts in sections.items():
        print(f"\n{title}")
        width = max((len(name) for name, _ in facts), default=0)
        for name, fact in facts:
            print(f"  {name:>{width}}: {fact}")


def _version(name):
    """Return the version of an installed distribution, or "not installed"."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _torch_facts():
    """Return pairs of a name and a fact about torch: its threads, and its GPU."""
    if importlib.util.find_spec("torch") is None:
        return [("installed", "no")]
    import torch  # it takes a second to load

    has_gpu = torch.cuda.is_available()
    gpu = torch.cuda.get_device_name() if has_gpu else "none that torch can use"
    return [("threads", torch.get_num_threads()), ("GPU", gpu)]

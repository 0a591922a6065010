"""What all tests share."""

import contextlib
import functools
import gc
import os
import sys
from pathlib import Path

import hypothesis
import pytest

from sklearn_attention import _progress

# What tests share is imported by name.
sys.path.insert(0, str(Path(__file__).parent))
# Figures are drawn into memory, whatever screen there is.
os.environ.setdefault("MPLBACKEND", "Agg")

# No deadline: how long an example takes depends on what else the machine does. The same
# examples in every run of a continuous integration, new ones in every run by hand.
hypothesis.settings.register_profile("local", deadline=None, max_examples=30)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    max_examples=30,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


# What is collected stays: the garbage collector need not go through it again and again.
def pytest_collection():
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items):
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needs_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in needs_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def _threads_of_torch(n_threads):
    @pytest.fixture
    def threads():
        """The number of threads for one test, so that a change of it shows."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(n_threads)
        yield
        torch.set_num_threads(before)

    return threads


two_threads_of_torch, four_threads_of_torch = map(_threads_of_torch, (2, 4))


@pytest.fixture(params=["bfloat16", "no bfloat16"])
def autocast(request, monkeypatch):
    """A processor with instructions for bfloat16, then one without, whatever this one has.

    Training with ``autocast=True`` belongs into ``with autocast():``, which knows which of
    them warns.
    """
    import torch

    able = request.param == "bfloat16"
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": able})
    if able:
        return contextlib.nullcontext
    return lambda: pytest.warns(UserWarning, match="autocast=True computes in bfloat16")


@pytest.fixture
def few_convolutions(monkeypatch):
    """Of series, which have one feature for each kernel instead of 10 000 beside a network."""
    monkeypatch.setattr("sklearn_attention.transformer._series_baseline._N_FEATURES", 84)


@pytest.fixture
def few_trees(monkeypatch):
    """Beside a network, twenty instead of a hundred."""
    from sklearn_attention._stacking import fit_trees

    few = functools.partial(fit_trees, max_iter=20)
    monkeypatch.setattr("sklearn_attention.transformer._baselines.fit_trees", few)


@pytest.fixture
def few_rates(monkeypatch):
    """Exponential smoothing tries seven choices of its rates, not eighty at every origin.

    How many it tries does not matter to what is done with its forecasts.
    """
    from sklearn_attention.forecasting import _classical

    few = _classical.methods_of((0.1, 0.3, 0.8), (0.2, 0.7), (0.05,), (0.9,))
    monkeypatch.setattr(_classical, "METHODS", few)


@pytest.fixture
def all_rates():
    """As many as users have, for tests of how good or how sure forecasts are."""


@pytest.fixture
def cluster():
    """Two workers of Dask, each a process, and a client of them."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield cluster, client


@pytest.fixture(scope="session")
def data_folder():
    """Folder of real data that does not come with the package; skips where there is none.

    ``SKLEARN_ATTENTION_DATA`` names it, otherwise it lies beside the repository.
    """
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SKLEARN_ATTENTION_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no data folder {folder}: set SKLEARN_ATTENTION_DATA")
    return folder


class Clock:
    """Time that passes by so much with every look at it."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def monotonic(self):
        self.now += self.tick
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Set the clock of lines of progress, which goes on by a tick with every look at it."""

    def start(tick):
        one = Clock(tick)
        monkeypatch.setattr(_progress, "time", one)
        return one

    return start

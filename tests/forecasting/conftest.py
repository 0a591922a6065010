import sys
from pathlib import Path

import pytest

from sklearn_attention.forecasting import _smoothing

# For the helpers that the tests of this folder share.
sys.path.insert(0, str(Path(__file__).parent))

ALL = {name: getattr(_smoothing, name) for name in ("LEVEL_RATES", "TREND_RATES", "DAMPINGS")}
FEW = {
    "LEVEL_RATES": (0.1, 0.3, 0.8),
    "TREND_RATES": ((0.2, 0.05), (0.7, 0.15)),
    "DAMPINGS": (0.9,),
}


def try_rates(monkeypatch, rates):
    for name, values in rates.items():
        monkeypatch.setattr(_smoothing, name, values)


@pytest.fixture(autouse=True)
def few_rates(monkeypatch):
    """Exponential smoothing tries six choices of its rates, not two hundred at each origin.

    How many it tries does not matter to what is done with its forecasts.
    """
    try_rates(monkeypatch, FEW)


@pytest.fixture
def all_rates(few_rates, monkeypatch):
    """As many as users have, for tests of how good or how sure forecasts are."""
    try_rates(monkeypatch, ALL)

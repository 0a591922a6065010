"""A model that 0.1.0 stored is loaded by 0.2: it is refused by name, to be fitted again."""

import numpy as np
import pytest

from sklearn_attention import NadarayaWatsonRegressor


def test_model_of_last_year():
    x = np.linspace(0, 1, 30)[:, None]
    stored = NadarayaWatsonRegressor(bandwidth=0.1).fit(x, x[:, 0]).__getstate__()
    stored["stored form"] = 1  # as 0.1.0 wrote it, which was not published
    with pytest.raises(ValueError, match=r"stored by 0\.1\.0.* fit it again"):
        NadarayaWatsonRegressor().__setstate__(stored)

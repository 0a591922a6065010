"""A ridge was asked for, but eight months are too few for its windows: it is said so."""

import numpy as np
import pytest

from sklearn_attention import TransformerForecaster


def test_candidates_by_name():
    sales = np.array([12.0, 15.0, 14.0, 18.0, 17.0, 21.0, 20.0, 24.0])
    # Nine classical forecasts must not take the place of the one that was named.
    with pytest.raises(ValueError, match=r"candidates=\['ridge'\].*8 steps are too short"):
        TransformerForecaster(candidates=["ridge"]).fit(sales)
    with pytest.warns(UserWarning, match="without .features., since no features are known"):
        TransformerForecaster(candidates=["classical", "features"]).fit(sales)


def test_features_that_no_candidate_uses():
    rng = np.random.default_rng(0)
    prices, noise = rng.normal(size=(60, 1)), rng.normal(size=60)
    sales = 20 - 3 * prices[:, 0] + noise
    with pytest.warns(UserWarning, match="use none of the 1 features of X: add 'features'"):
        TransformerForecaster(candidates=["classical"]).fit(prices, sales)

"""A forecaster whose attention is made of random features, and how many are searched."""

import numpy as np
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from sklearn_attention import Architecture, Training, TransformerForecaster
from sklearn_attention.datasets import make_periodic_series
from sklearn_attention.kernels import PositiveFeatures

TINY = {
    "d_model": 8,
    "n_heads": 2,
    "n_layers": 1,
    "training": Training(max_steps=3),
    "candidates": None,
}


KERNEL = "architecture__attention_kernel"


def test_the_number_of_features_can_be_searched():
    series = make_periodic_series("sine", 200)
    model = TransformerForecaster(
        2, lookback=24, architecture=Architecture(attention_kernel=PositiveFeatures()), **TINY
    )
    grid = {f"{KERNEL}__n_features": [4, 16], f"{KERNEL}__orthogonal": [True]}
    search = GridSearchCV(model, grid, cv=TimeSeriesSplit(2)).fit(series)
    assert search.best_params_[f"{KERNEL}__n_features"] in (4, 16)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert model.architecture.attention_kernel == PositiveFeatures()

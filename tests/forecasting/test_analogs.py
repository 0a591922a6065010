"""Weights of analogs, and the distribution of what followed them."""

import numpy as np

from sklearn_attention.forecasting._analogs import distribution_quantiles


def test_quantiles_are_those_of_the_weights():
    rng = np.random.default_rng(0)
    weights, values = rng.dirichlet(np.ones(30), size=4), rng.normal(size=(30, 2))
    levels = [0.001, 0.1, 0.5, 0.99]
    found = distribution_quantiles(weights, values, levels)
    for query in range(4):
        for step in range(2):
            places = sorted(zip(values[:, step], weights[query], strict=True))
            reached = np.cumsum([weight for _, weight in places])
            for i, level in enumerate(levels):
                expected = places[np.flatnonzero(reached >= level)[0]][0]
                assert found[query, step, i] == expected

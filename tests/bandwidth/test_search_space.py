"""Points of a search for several bandwidths, and the bandwidths that they stand for."""

import numpy as np
import pytest

from sklearn_attention import Columns
from sklearn_attention.bandwidth._samples import Sample
from sklearn_attention.bandwidth._search import Rows
from sklearn_attention.bandwidth._search_space import SearchSpace

KINDS = "numeric", "unordered", "numeric", "ordered"
LEVELS = None, ("a", "b", "c"), None, ("low", "high")
BANDWIDTH = np.array([0.5, 0.2, 3.0, 0.4])


def make_space(per_feature=True):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * [1.0, 1.0, 9.0, 1.0]
    X[:, 1], X[:, 3] = np.arange(60) % 3, np.arange(60) % 2
    rows = Rows(X=X, columns=Columns(KINDS, LEVELS), per_feature=per_feature)
    return SearchSpace(Sample("loo", rows, 100), rows, canonical_ratio=1.0)


def test_a_point_stands_for_the_bandwidth_that_it_is_nearest_to():
    space = make_space()
    point = space.nearest_point(BANDWIDTH)
    np.testing.assert_allclose(space.bandwidth(point), BANDWIDTH)
    log_bandwidth, log_level_weights = space.log_parameters(point)
    np.testing.assert_allclose(np.exp(log_bandwidth), BANDWIDTH[[0, 2]])
    # lambda / ((c - 1) (1 - lambda)) for the unordered category.
    np.testing.assert_allclose(np.exp(log_level_weights), [0.2 / (2 * 0.8), 0.4])


def test_a_common_scale_is_the_geometric_mean():
    space = make_space(per_feature=False)
    assert space.n_scales == 1
    std = make_space().bandwidth(make_space().common_point(1.0))[[0, 2]]
    widths = space.bandwidth(space.nearest_point(BANDWIDTH))[[0, 2]]
    scale = np.sqrt(np.prod(BANDWIDTH[[0, 2]] / std))
    np.testing.assert_allclose(widths, scale * std)


def test_derivatives_along_a_point_are_those_of_its_parameters():
    space, rng = make_space(per_feature=False), np.random.default_rng(1)
    point, gradient = space.common_point(0.7), rng.normal(size=4)

    def weighted(point):
        return gradient @ np.concatenate(space.log_parameters(point))

    steps = 1e-6 * np.eye(len(point))
    slopes = [(weighted(point + step) - weighted(point - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(space.log_parameters_vjp(gradient), slopes, rtol=1e-6)


def test_relevance_falls_with_the_bandwidth():
    space = make_space()
    point = space.common_point(1.0)
    narrow, wide = space.relevance(point), space.relevance(space.multiply_scales(point, 10.0))
    assert narrow[0] == pytest.approx(1 - np.exp(-1))
    assert (wide[[0, 2]] < 0.1).all()
    np.testing.assert_array_equal(wide[[1, 3]], narrow[[1, 3]])

"""The bandwidth of analogs against loops that leave windows out."""

import numpy as np
import pytest
from forecasting_data import lag_matrix, make_values

from sklearn_attention.forecasting._analog_search import left_out, search_bandwidth
from sklearn_attention.kernels import ProductKernel, as_kernel


def slow_leave_one_out(keys, values, origins, bandwidth, kernel):
    """Mean squared error, every window predicted from those that share no target with it."""
    errors = []
    for key, value, origin in zip(keys, values, origins, strict=True):
        others = np.abs(origins - origin) >= values.shape[1]
        weights = kernel((key / bandwidth)[None], keys[others] / bandwidth)[0]
        errors.append(weights @ values[others] / weights.sum() - value)
    return np.mean(np.square(errors))


@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "product"])
@pytest.mark.parametrize("n_features", [0, 2])
def test_the_bandwidth_is_of_least_leave_one_out_error(kernel, n_features):
    if kernel == "product":
        columns = range(5 + 3 * n_features)
        kernel = ProductKernel([(f"column{i}", "laplacian", [i]) for i in columns])
    kernel = as_kernel(kernel)
    keys, values = lag_matrix(make_values(80), 5, 3)
    keys = keys - keys.mean()
    features = np.random.default_rng(0).normal(size=(len(keys), 3 * n_features))
    keys, origins = np.hstack([keys, features]), np.arange(len(keys)) + 5
    bandwidth, errors = search_bandwidth(left_out(origins, 3), keys, values, 5, kernel)
    score = errors.mean()
    assert score == pytest.approx(slow_leave_one_out(keys, values, origins, bandwidth, kernel))
    assert len(np.unique(bandwidth[:5])) == 1
    for factor in (0.5, 0.7, 1.5, 2.0):
        other = slow_leave_one_out(keys, values, origins, factor * bandwidth, kernel)
        assert other >= score * (1 - 1e-9)
    if n_features:
        # These say nothing, and so have no say.
        spread = keys.std(axis=0)
        assert (bandwidth[5:] / spread[5:] > bandwidth[0] / spread[0]).all()


def test_windows_that_share_targets_do_not_tell_the_bandwidth():
    # In a random walk the window one step later is the best analog by far, if it is let in.
    rng = np.random.default_rng(0)
    walk = rng.normal(size=400).cumsum()
    keys, values = lag_matrix(walk, 3, 20)
    origins = np.arange(len(keys)) + 3
    gaussian = as_kernel("gaussian")
    apart, leaking = (
        search_bandwidth(left_out(steps, 20), keys, values, 3, gaussian)
        for steps in (origins, 20 * origins)
    )
    assert leaking[1].mean() < 0.75 * apart[1].mean()
    assert leaking[0][0] < 0.7 * apart[0][0]


def test_without_others_the_widest_bandwidth_is_taken():
    keys, values = np.array([[0.0], [1.0]]), np.zeros((2, 5))
    groups = left_out(np.arange(2), 5)
    bandwidth, errors = search_bandwidth(groups, keys, values, 1, as_kernel("gaussian"))
    assert len(errors) == 0
    assert bandwidth[0] == 4.0

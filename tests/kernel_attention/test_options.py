"""Parameters of kernel attention, checked once."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention.kernel_attention._encodings import ENCODINGS, Encoding
from sklearn_attention.kernel_attention._estimator import Options
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernels import Gaussian


def options(**parameters):
    model = KernelAttentionRegressor(**parameters)
    model.n_features_in_ = 3
    return Options.of(model)


@pytest.fixture
def standard():
    """The encoding in whose units bandwidths are written."""
    X = StandardScaler().fit_transform(np.random.default_rng(0).normal(size=(40, 3)))
    return Encoding.learn("standard", X * [1, 10, 100], ["numeric"] * 3)


@pytest.fixture
def kernel(standard):
    return LearnedKernel.start([standard.feature], [np.ones(3)], 3, Gaussian())


def test_defaults_leave_all_to_learning(kernel, standard):
    found = options()
    assert found == Options(Gaussian(), encodings=ENCODINGS, boosting=True, seed=found.seed)
    assert found.learns
    fixed, free = found.fix(kernel, standard)
    np.testing.assert_array_equal(fixed.values, kernel.values)
    np.testing.assert_array_equal(free, kernel.is_learned)


def test_a_state_of_random_numbers_draws_the_seed():
    found = [options(random_state=state).seed for state in (0, np.random.RandomState(0), 1)]
    assert found[0] == found[1] != found[2]


def test_a_bandwidth_is_in_units_of_the_features_and_leaves_nothing_but_noise_to_learn(
    kernel, standard
):
    given = options(bandwidth=[2.0, 10.0, 50.0], encodings="standard")
    assert not given.learns
    # Trees join learned kernels alone.
    assert not given.boosting
    fixed, free = given.fix(kernel, standard)
    found = np.exp(fixed.named()["scale"][0])
    np.testing.assert_allclose(found, [0.5, 1.0, 2.0], rtol=1e-12)
    assert list(np.flatnonzero(free)) == [len(free) - 1]
    one = options(bandwidth=0.5, encodings="standard")
    np.testing.assert_array_equal(one.bandwidth, [0.5, 0.5, 0.5])


def test_a_ridge_is_the_variance_of_the_noise(kernel, standard):
    fixed, free = options(ridge=0.25).fix(kernel, standard)
    assert fixed.noise == pytest.approx(0.25)
    assert not free[-1]
    np.testing.assert_array_equal(free[:-1], kernel.is_learned[:-1])
    assert options(ridge=0).fix(kernel, standard)[0].noise == 0

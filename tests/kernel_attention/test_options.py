"""Parameters of kernel attention, checked once."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention.kernel_attention._encodings import ENCODINGS, Encoding
from sklearn_attention.kernel_attention._estimator import Options
from sklearn_attention.kernel_attention._kernel import LearnedKernel
from sklearn_attention.kernels import Gaussian


def options(n_features=3, **parameters):
    model = KernelAttentionRegressor(**parameters)
    model.n_features_in_ = n_features
    return Options.of(model)


def make_kernel():
    X = StandardScaler().fit_transform(np.random.default_rng(0).normal(size=(40, 3)))
    standard = Encoding.learn("standard", X * [1, 10, 100], ["numeric"] * 3)
    kernel = LearnedKernel.start([standard.feature], [np.ones(3)], 3, Gaussian())
    return kernel, standard


def test_defaults_leave_all_to_learning():
    found = options()
    assert found == Options(Gaussian(), encodings=ENCODINGS, boosting=True, seed=found.seed)
    assert found.learns


def test_a_state_of_random_numbers_draws_the_seed():
    found = [options(random_state=state).seed for state in (0, 0, np.random.RandomState(0), 1)]
    assert found[0] == found[1] == found[2] != found[3]


def test_words_become_none_and_numbers_are_pythons_own():
    found = options(max_steps=np.int64(3), ridge=np.float32(0.5), n_folds=np.int32(2))
    assert (found.max_steps, found.ridge, found.n_folds) == (3, 0.5, 2)
    assert type(found.ridge) is float
    assert type(found.max_steps) is type(found.n_folds) is int


def test_encodings_have_an_order_of_their_own():
    assert options(encodings=("quantile", "standard")).encodings == ("standard", "quantile")
    assert options(encodings="quantile").encodings == ("quantile",)


def test_one_bandwidth_is_that_of_every_feature():
    found = options(bandwidth=0.5, encodings="standard")
    np.testing.assert_array_equal(found.bandwidth, [0.5, 0.5, 0.5])
    assert not found.learns


@pytest.mark.parametrize("bandwidth", [-1, 0, [1.0, np.nan]])
def test_a_bandwidth_that_is_none_is_refused_whatever_the_encodings(bandwidth):
    with pytest.raises(ValueError, match="every bandwidth must be finite and greater than 0"):
        options(bandwidth=bandwidth)


@pytest.mark.parametrize("bandwidth", ["learned", 0.5])
def test_trees_join_learned_kernels_only(bandwidth):
    found = options(bandwidth=bandwidth, encodings="standard", boosting="auto")
    assert found.boosting == (bandwidth == "learned")


def test_number_of_steps():
    assert options().n_steps(80) == 80
    assert options(max_steps=10).n_steps(80) == 10
    assert options(max_steps=0).n_steps(80) == 0


class TestFix:
    def test_nothing_is_given(self):
        kernel, standard = make_kernel()
        fixed, free = options().fix(kernel, standard)
        np.testing.assert_array_equal(fixed.values, kernel.values)
        np.testing.assert_array_equal(free, kernel.is_learned)

    def test_a_bandwidth_is_in_units_of_the_features(self):
        kernel, standard = make_kernel()
        given = options(bandwidth=[2.0, 10.0, 50.0], encodings="standard")
        fixed, free = given.fix(kernel, standard)
        found = np.exp(fixed.named()["scale"][0])
        np.testing.assert_allclose(found, [0.5, 1.0, 2.0], rtol=1e-12)
        assert list(np.flatnonzero(free)) == [len(free) - 1]

    def test_a_ridge_is_the_variance_of_the_noise(self):
        kernel, standard = make_kernel()
        fixed, free = options(ridge=0.25).fix(kernel, standard)
        assert fixed.noise == pytest.approx(0.25)
        assert not free[-1]
        np.testing.assert_array_equal(free[:-1], kernel.is_learned[:-1])
        assert options(ridge=0).fix(kernel, standard)[0].noise == 0

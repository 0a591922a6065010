"""scikit-learn's own checks, for the estimators and their main variants."""

import pytest
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_attention import NadarayaWatsonClassifier, NadarayaWatsonRegressor


class UserKernel:
    """A user's own kernel; its name is the same in every process of a test run."""

    def __call__(self, X, Y):
        return laplacian_kernel(X, Y, gamma=1.0)

    def __repr__(self):
        return "UserKernel()"


KERNELS = ["gaussian", "epanechnikov", "matern32", UserKernel()]
VARIANTS = [
    estimator(kernel, bandwidth=bandwidth)
    for estimator in (NadarayaWatsonRegressor, NadarayaWatsonClassifier)
    for kernel in KERNELS
    for bandwidth in (0.5, "loo", "scott")
]


def expected_failures(estimator):
    """At a given bandwidth and by rule of thumb: none."""
    if estimator.bandwidth != "loo":
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "leave-one-out leaves out a row with all its weight, but only one of two copies: "
            "the other copy then predicts it, and another bandwidth is chosen"
        ),
    }


# The checks fit tiny data with repeated rows, of which the search rightly warns.
@pytest.mark.filterwarnings("ignore:bandwidth='loo' ended at its floor:UserWarning")
@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)

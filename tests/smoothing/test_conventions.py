"""scikit-learn's own checks, for the estimators and their main variants."""

import pytest
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_attention import (
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
)
from sklearn_attention.bandwidth import AdaptiveBandwidth

# Many checks are on noise, or on a handful of rows, of which searches warn.
pytestmark = pytest.mark.filterwarnings("ignore:bandwidth=")


class UserKernel:
    """A user's own kernel; its name is the same in every process of a test run."""

    def __call__(self, X, Y):
        return laplacian_kernel(X, Y, gamma=1.0)

    def __repr__(self):
        return "UserKernel()"


# Not each kernel with each bandwidth: tests/test_relations.py has more of them.
CHOICES = [
    ("gaussian", 0.5), ("gaussian", "loo"), ("gaussian", "scott"),
    ("epanechnikov", "loo"), ("matern32", 0.5), (UserKernel(), "scott"), (UserKernel(), "loo"),
]  # fmt: skip
VARIANTS = [
    *(
        estimator(kernel, bandwidth=bandwidth)
        for estimator in (NadarayaWatsonRegressor, NadarayaWatsonClassifier)
        for kernel, bandwidth in CHOICES
    ),
    *(
        estimator(**choice)
        for estimator in (NadarayaWatsonRegressor, NadarayaWatsonClassifier)
        for choice in (
            {"bandwidth": "gcv"},
            {"bandwidth": "knn-loo"},
            {"bandwidth": AdaptiveBandwidth(3)},
            {"per_feature": True},
        )
    ),
    *(LocalPolynomialRegressor(bandwidth=bandwidth) for bandwidth in (0.5, "loo", "aicc")),
    LocalPolynomialRegressor(bandwidth=0.5, degree=2),
    NadarayaWatsonCV(["gaussian"]),
    LocalPolynomialCV(["gaussian"], [0.5, 2.0]),
]
# Some checks have ten features, in which parabolas have 66 coefficients.
SLOW_VARIANTS = [
    LocalPolynomialRegressor(bandwidth=bandwidth, degree=2) for bandwidth in ("loo", "aicc")
]


LEAVES_OUT_ALL_COPIES = (
    "leave-one-out leaves out a row with all its weight, but only one of two copies: the other "
    "copy then predicts it, and another bandwidth is chosen"
)


COUNTS_PLACES = (
    "the criterion counts rows of positive weight, whatever the weights sum to, so that it is "
    "the same for weights in other units; a row of weight 2 is one row, its copies are two"
)


TOO_FEW = (
    "the check has no more rows than the polynomial has coefficients, which leaves no degrees "
    "of freedom at any bandwidth; the error says so"
)
# By degree: lines of ten features have 11 coefficients, parabolas 66.
FEW_ROWS = {
    1: ["check_regressor_multioutput"],
    2: [
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_n_features_in_after_fitting",
        "check_regressor_multioutput",
        "check_regressors_int",
        "check_regressors_no_decision_function",
    ],
}


def expected_failures(estimator):
    """At a given bandwidth and by rule of thumb: none."""
    weights = "check_sample_weight_equivalence_on_dense_data"
    if isinstance(estimator, (NadarayaWatsonCV, LocalPolynomialCV)):
        return {weights: LEAVES_OUT_ALL_COPIES}
    if isinstance(estimator.bandwidth, AdaptiveBandwidth):
        failures = {
            weights: "a row of weight 2 is one neighbour, but its two copies are two",
            "check_fit2d_1sample": (
                "one row has no third neighbour; the error says so, in other words than the "
                "check looks for"
            ),
        }
        if isinstance(estimator, NadarayaWatsonRegressor):
            failures["check_regressors_train"] = (
                "in ten dimensions a Gaussian as wide as the distance to the third neighbour "
                "averages most rows, and R2 in training is less than the check asks"
            )
        return failures
    if estimator.bandwidth == "knn-loo" and isinstance(estimator, NadarayaWatsonRegressor):
        return {weights: LEAVES_OUT_ALL_COPIES}
    if isinstance(estimator, LocalPolynomialRegressor) and estimator.bandwidth == "aicc":
        return {weights: COUNTS_PLACES} | dict.fromkeys(FEW_ROWS[estimator.degree], TOO_FEW)
    if isinstance(estimator, LocalPolynomialRegressor):
        return {}
    if estimator.bandwidth in ("gcv", "penalized-loo"):
        return {weights: COUNTS_PLACES}
    return {weights: LEAVES_OUT_ALL_COPIES} if estimator.bandwidth == "loo" else {}


@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(SLOW_VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions_of_searched_parabolas(estimator, check):
    check(estimator)

"""scikit-learn's own checks, as far as they can apply to what is ordered in time."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_attention import Architecture, KernelForecaster, Training, TransformerForecaster

ROWS_ARE_STEPS = (
    "rows of an array are steps that follow one another, and later ones are forecast from "
    "earlier ones: other rows, or in another order, are other steps"
)
EXPECTED = {
    "check_methods_sample_order_invariance": ROWS_ARE_STEPS,
    "check_methods_subset_invariance": ROWS_ARE_STEPS,
}
TINY = {"d_model": 4, "n_heads": 1, "n_layers": 1, "training": Training(max_steps=2)}
VARIANTS = [
    KernelForecaster(),
    KernelForecaster(bandwidth=0.5, normalize="last"),
    KernelForecaster(3, lookback=2, kernel="epanechnikov", normalize=None),
    TransformerForecaster(**TINY),
    TransformerForecaster(
        **TINY,
        candidates=None,
        architecture=Architecture(instance_norm=None, attention_kernel="gaussian"),
    ),
]


# Some checks have six rows, in which a few steps of the past must do.
@pytest.mark.filterwarnings("ignore:lookback=2 leaves too few windows:UserWarning")
@parametrize_with_checks(VARIANTS, expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)

"""Errors begin with the method that the user called."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sklearn_attention import KernelForecaster, NadarayaWatsonRegressor
from sklearn_attention.inspection import (
    AttentionMapDisplay,
    BacktestDisplay,
    DensityDisplay,
    ExplanationDisplay,
    ForecastDisplay,
    KernelDisplay,
    LayerNormDisplay,
    SmoothDisplay,
)
from sklearn_attention.inspection._errors import named


class Drawing:
    @classmethod
    @named
    def outer(cls, error):
        return cls().inner(error)

    @named
    def inner(self, error):
        raise error


@pytest.mark.parametrize("kind", [ValueError, TypeError, NotFittedError])
def test_the_outermost_method_is_named_once(kind):
    with pytest.raises(kind, match=r"^Drawing\.outer: k=0$"):
        Drawing.outer(kind("k=0"))
    with pytest.raises(kind, match=r"^Drawing\.inner: k=0$"):
        Drawing().inner(kind("k=0"))
    with pytest.raises(TypeError, match=r"^Drawing\.outer: missing 1 required"):
        Drawing.outer()


def test_other_errors_stay_as_they_are():
    with pytest.raises(KeyError, match=r"^'k'$"):
        Drawing.outer(KeyError("k"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda get: SmoothDisplay.from_estimator("a"),
            "estimator is of type str: pass a fitted",
        ),
        (
            lambda get: ForecastDisplay.from_estimator(KernelForecaster),
            "estimator=KernelForecaster is a class: pass a fitted instance",
        ),
        (
            lambda get: BacktestDisplay.from_estimator(KernelForecaster, [1.0]),
            "estimator is KernelForecaster, which has no backtest: pass a forecaster",
        ),
        (
            lambda get: SmoothDisplay.from_estimator(NadarayaWatsonRegressor()),
            "This NadarayaWatsonRegressor instance is not fitted yet",
        ),
        (
            lambda get: SmoothDisplay.from_estimator(get("analogs")),
            "estimator is KernelForecaster, which is no regressor of rows: pass one",
        ),
        (
            lambda get: ForecastDisplay.from_estimator(get("smoother")),
            "estimator is LocalPolynomialRegressor, which is no forecaster: pass Kernel",
        ),
        (
            lambda get: KernelDisplay.from_estimator(get("analogs")),
            "estimator is KernelForecaster, which has not one kernel with a bandwidth: pass",
        ),
        (
            lambda get: ExplanationDisplay.from_estimator(get("averages")),
            "X=None: pass the row that is explained",
        ),
        (
            lambda get: AttentionMapDisplay.from_estimator(get("smoother")),
            "X=None: pass queries",
        ),
        (
            lambda get: AttentionMapDisplay.from_estimator(get("encoder")),
            "X=None: pass queries of a smoother, .* or the row, sequence or text",
        ),
        (
            lambda get: BacktestDisplay.from_estimator(get("analogs")),
            "X=None: pass the series",
        ),
        (
            lambda get: SmoothDisplay.from_estimator(get("smoother"), [[0.5, 1.0]], [0.0]),
            "X has 2 features, but LocalPolynomialRegressor is expecting 1",
        ),
        (
            lambda get: DensityDisplay.from_estimator(get("density"), [[0.5, 1.0, 2.0]]),
            "X has 3 features, but ProductKernelDensity is expecting 2",
        ),
        (
            lambda get: KernelDisplay.from_kernels(["gaussian"], ax=plt.figure()),
            "ax=<Figure .* is no Axes of matplotlib: pass one",
        ),
        (
            lambda get: LayerNormDisplay.from_vectors(np.eye(4), ax=plt.subplots(1, 2)[1]),
            "ax has the projection 'rectilinear': pass axes made with projection='3d'",
        ),
        (
            lambda get: SmoothDisplay.from_estimator(get("smoother"), colour="red"),
            "got an unexpected keyword argument 'colour'",
        ),
        (lambda get: KernelDisplay.from_kernels("gaussian"), r"kernels='gaussian' is no list"),
        (
            lambda get: BacktestDisplay.from_predictions([1.0]),
            "table of type list has no columns .* pass what backtest returns",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_errors_name_method_parameter_and_remedy(call, message, request):
    called = r"^(Smooth|Forecast|Backtest|Kernel|Explanation|AttentionMap|Density|"
    called += r"LayerNorm)Display\.from_(estimator|kernels|vectors|predictions): "
    with pytest.raises((TypeError, ValueError), match=called + message):
        call(request.getfixturevalue)

"""What carries one prediction adds up to it."""

import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import NadarayaWatsonRegressor
from sklearn_attention.inspection import ExplanationDisplay


@pytest.mark.parametrize("model", ["averages", "kernel_attention", "smoother"])
def test_contributions_add_up_to_the_prediction(model, table, curve, request):
    model = request.getfixturevalue(model)
    X = table[0][:1] if model.n_features_in_ == 3 else curve[0][:1]
    display = ExplanationDisplay.from_estimator(model, X, k=4)
    total = display.baseline + display.contributions_.sum()
    assert_allclose(total, model.predict(X)[0])
    _, weights, values = model.explain(X, k=4)
    expected = weights[0] * (values[0] - display.baseline)
    assert_allclose(display.contributions_[:-1], expected)
    bars = display.ax_.patches
    assert_allclose(bars[0].get_x(), display.baseline + min(0, expected[0]))
    assert_allclose(sum(bar.get_width() for bar in bars), total - display.baseline)
    assert len(bars) == 5


def test_all_rows_leave_nothing_for_others(averages, table):
    display = ExplanationDisplay.from_estimator(averages, table[0][:1], k=1000)
    assert_allclose(display.contributions_[-1], 0, atol=1e-12)
    assert len(display.ax_.patches) == len(table[0])


def test_rows_are_named(averages, table):
    names = [f"house {i}" for i in range(len(table[0]))]
    display = ExplanationDisplay.from_estimator(averages, table[0][7:8], k=1, labels=names)
    assert display.ax_.get_yticklabels()[0].get_text().startswith("house 7 ")


def test_candidates_of_a_forecast_add_up(candidates):
    display = ExplanationDisplay.from_estimator(candidates, step=3)
    total = display.baseline + display.contributions_.sum()
    assert_allclose(total, candidates.predict(3).iloc[-1])
    with pytest.raises(ValueError, match="step=13 is not within the horizon"):
        ExplanationDisplay.from_estimator(candidates, step=13)


def test_an_explanation_is_of_one_number(averages, table, analogs):
    with pytest.raises(ValueError, match="pass one row"):
        ExplanationDisplay.from_estimator(averages, table[0][:2])
    with pytest.raises(ValueError, match="KernelForecaster does not explain"):
        ExplanationDisplay.from_estimator(analogs)


def test_a_pipeline_explains_in_its_last_step(table):
    X, y = table
    model = make_pipeline(StandardScaler(), NadarayaWatsonRegressor()).fit(X, y)
    display = ExplanationDisplay.from_estimator(model, X[:1])
    assert_allclose(display.prediction, model.predict(X[:1])[0])

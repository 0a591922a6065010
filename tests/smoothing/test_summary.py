"""What a fitted smoother says of itself, against sums written out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(50, 2))
    return X, np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=50)


class TestScores:
    def test_residuals_and_score_by_leave_one_out(self, data):
        X, y = data[0][:20], data[1][:20]
        model = LocalPolynomialRegressor(bandwidth=0.9, degree=2).fit(X, y)
        np.testing.assert_allclose(model.fitted_values_, model.predict(X), atol=1e-10)
        np.testing.assert_allclose(model.residuals_, y - model.predict(X), atol=1e-10)
        fixed = LocalPolynomialRegressor(bandwidth=model.bandwidth_, degree=2)
        left_out = cross_val_predict(fixed, X, y, cv=LeaveOneOut())
        assert model.loo_score_ == pytest.approx(r2_score(y, left_out), abs=1e-9)
        assert model.loo_score_ < model.score(X, y)

    def test_of_outputs_and_weights(self, data):
        X, y = data
        both = np.column_stack([y, X[:, 1] + y**2])
        weight = np.random.default_rng(1).integers(0, 3, 50)
        model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, both, weight)
        assert model.residuals_.shape == model.fitted_values_.shape == (50, 2)
        each = [
            1 - np.average(e**2, weights=weight) / np.average(
                (v - np.average(v, weights=weight)) ** 2, weights=weight
            )
            for e, v in zip(model.loo_residuals_.T, both.T, strict=True)
        ]  # fmt: skip
        assert model.loo_score_ == pytest.approx(np.mean(each), rel=1e-9)


class TestSummary:
    def test_numbers(self, data):
        X, y = data
        weight = np.where(np.arange(50) < 4, 0.0, 2.0)
        model = LocalPolynomialRegressor(bandwidth="gcv", degree=1).fit(X, y, weight)
        found = model.summary()
        squares = np.sum((weight > 0) * (y - model.predict(X)) ** 2)
        expected = np.sqrt(squares / (46 - model.effective_dof_))
        assert found.residual_std == pytest.approx(expected, rel=1e-9)
        assert found.r2 == pytest.approx(model.score(X, y, weight), rel=1e-9)
        assert found.loo_r2 == model.loo_score_
        assert found.effective_dof == model.effective_dof_
        assert (found.model, found.degrees) == ("LocalPolynomialRegressor", {1: 1.0})
        assert (found.n_samples, found.rule, found.n_neighbors) == (46, "gcv", None)
        assert found.criterion_value == model.criterion_value_
        assert found.p_values is None
        np.testing.assert_array_equal(found.bandwidth, model.bandwidth_)

    def test_table(self, data):
        X, y = data
        lines = str(
            LocalPolynomialRegressor(bandwidth=0.5, degree=1).fit(X, y).summary()
        ).splitlines()
        assert lines[0] == "LocalPolynomialRegressor"
        told = dict(line.split("  ", 1) for line in lines[1:9])
        assert {name: text.strip() for name, text in told.items()}["bandwidth"] == "given"
        assert lines[-1].split() == ["x1", "numeric", "0.5"]
        searched = NadarayaWatsonRegressor().fit(X, y).summary()
        assert f"loo, criterion {searched.criterion_value:.4g}" in str(searched)
        rows = NadarayaWatsonRegressor("boxcar", bandwidth=1e-6, empty="nan").fit(X, y)
        assert np.isnan(
            [rows.loo_score_, rows.summary().loo_r2, rows.summary().residual_std]
        ).all()

    def test_of_frames_with_significance(self, data):
        X, y = data
        frame = pd.DataFrame({"area": X[:, 0], "door": np.where(X[:, 1] > 0, "red", "blue")})
        model = NadarayaWatsonRegressor(bandwidth=[0.3, 0.4]).fit(frame, y)
        found = model.summary(significance=True)
        assert (found.features, found.kinds) == (["area", "door"], ("numeric", "unordered"))
        np.testing.assert_array_equal(found.p_values, model.feature_significance().p_values)
        assert found.p_values[0] < 0.05 < found.p_values[1]
        assert str(found).splitlines()[-2].split() == ["area", "numeric", "0.3", "0.005"]

    def test_of_neighbours_and_of_lists_of_candidates(self, data):
        X, y = data
        model = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(7)).fit(X, y)
        assert model.summary().n_neighbors == 7
        assert "7" in str(model.summary()).split("neighbors")[1].splitlines()[0]
        for model in (NadarayaWatsonCV(["gaussian"]), LocalPolynomialCV(["tricube"])):
            found = model.fit(X, y).summary()
            assert found.rule == "loo"
            assert found.criterion_value == model.criterion_value_ == -model.best_score_

"""What regressors know of their training rows, and slopes: against models fitted again."""

import math
import re

import numpy as np
import pytest
from smoothing_cases import case_of, frame_of, refit_without, take

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)

# Every kind of rows, and every degree, in some combination.
each_case = pytest.mark.parametrize(
    "case",
    [
        "plain-0", "weights-1", "absent-2", "outputs-1", "compact-1", "product-2", "periodic-0",
        "signed-0", "knn-0", "knn-weights-1", "frame-1", "frame-weights-2", "frame-knn-0",
    ],
)  # fmt: skip


class TestTraining:
    @each_case
    def test_errors_are_those_of_models_fitted_again(self, case):
        model, X, y, weight = case_of(case)
        model.fit(X, y, weight)
        rows = range(0, len(y), 4)
        expected = [
            y[i] - refit_without(model, X, y, i, weight).predict(take(X, [i]))[0] for i in rows
        ]
        assert model.loo_residuals_.shape == y.shape
        np.testing.assert_allclose(model.loo_residuals_[rows], expected, rtol=0, atol=1e-8)

    @each_case
    def test_degrees_of_freedom_and_aicc_are_their_formulas(self, case):
        model, X, y, weight = case_of(case)
        model.fit(X, y, weight)
        counts = np.ones(len(y)) if weight is None else weight
        n, kept = np.count_nonzero(counts), counts > 0
        matrix = model.smoother_matrix(X)
        np.testing.assert_allclose(matrix @ y, model.predict(X), rtol=0, atol=1e-9)
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-9)
        assert model.effective_dof_ == pytest.approx(np.trace(matrix), rel=1e-9)
        trace = np.diag(matrix)[kept].sum()
        squares = (y - model.predict(X)) ** 2
        if y.ndim == 2:
            squares = squares / np.cov(y.T, aweights=counts, ddof=0).diagonal()
        rss = np.average(squares.reshape(len(y), -1).mean(axis=1), weights=counts)
        expected = math.log(rss) + (1 + trace / n) / (1 - (trace + 2) / n)
        expected = expected if n > trace + 2 else math.inf
        assert model.aicc_ == pytest.approx(expected, rel=1e-9)


class TestGradient:
    def test_of_averages_over_neighbours_is_refused(self, data):
        model = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(9)).fit(*data)
        for ask in (lambda: model.predict_gradient(data[0]), model.feature_significance):
            with pytest.raises(ValueError, match=r"n_neighbors=9.*pass a fixed bandwidth"):
                ask()

    @pytest.mark.parametrize("degree", [0, 1, 2])
    def test_of_frames_is_0_for_categories(self, degree):
        frame, y = frame_of(40)
        model = LocalPolynomialRegressor(bandwidth=[0.8, 0.1, 0.2], degree=degree)
        gradient = model.fit(frame, y).predict_gradient(frame[:9])
        assert gradient.shape == (9, 3)
        assert (gradient[:, 1:] == 0).all()
        if degree:
            assert (gradient[:, 0] > 0).all()
        else:
            ahead, back = (
                model.predict(frame[:9].assign(x=frame["x"][:9] + move))
                for move in (1e-6, -1e-6)
            )
            np.testing.assert_allclose(gradient[:, 0], (ahead - back) / 2e-6, atol=1e-6)


FAR_APART = {
    "subnormal": np.full((5, 2), 5e-324),
    "huge": np.full((5, 2), 1e300),
    "both": np.array([[1e300, 5e-324], [-1e300, 1e-310], [0.0, 0.0]]),
}


@pytest.mark.parametrize(
    ("estimator", "bandwidth"),
    [(NadarayaWatsonRegressor, "silverman"), (LocalPolynomialRegressor, 0.5)],
)
@pytest.mark.parametrize("rows", FAR_APART.values(), ids=FAR_APART)
def test_partial_fit_of_rows_that_are_far_apart_is_fit_or_refused(estimator, rows, bandwidth):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = estimator(bandwidth=bandwidth).fit(X, X[:, 0])
    before, both = vars(model).copy(), np.vstack([X, rows])
    refused = None
    try:
        model.partial_fit(rows, np.arange(len(rows)))
    except ValueError as error:
        refused = str(error)
    if refused:
        assert re.search("overflow|too small for a bandwidth", refused)
        assert vars(model) == before
    else:
        whole = estimator(bandwidth=bandwidth).fit(both, np.append(X[:, 0], range(len(rows))))
        assert np.isfinite(whole.predict(both)).all()
        np.testing.assert_array_equal(model.predict(both), whole.predict(both))

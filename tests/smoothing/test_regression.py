"""What regressors know of their training rows, and slopes: against models fitted again."""

import math
import re

import numpy as np
import pytest
from sklearn.base import clone
from smoothing_cases import CASES, DEGREES, frame_of, refit_without, take

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.datasets import make_smoothing_curve

each_case = pytest.mark.parametrize("case", CASES[::2], ids=[case[0] for case in CASES[::2]])


class TestTraining:
    @each_case
    def test_errors_are_those_of_models_fitted_again(self, case):
        _, model, X, y, weight = case
        model = clone(model).fit(X, y, weight)
        rows = range(0, len(y), 3)
        expected = [
            y[i] - refit_without(model, X, y, i, weight).predict(take(X, [i]))[0] for i in rows
        ]
        assert model.loo_residuals_.shape == y.shape
        np.testing.assert_allclose(model.loo_residuals_[rows], expected, rtol=0, atol=1e-8)

    @each_case
    def test_degrees_of_freedom_and_aicc_are_their_formulas(self, case):
        _, model, X, y, weight = case
        model = clone(model).fit(X, y, weight)
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

    @pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")
    def test_aicc_has_the_trace_of_its_degree_where_statsmodels_has_not(self):
        nonparametric = pytest.importorskip("statsmodels.nonparametric.kernel_regression")
        X, y = make_smoothing_curve("heavisine", 100, random_state=0)
        theirs = nonparametric.KernelReg(y, X[:, 0], "c", reg_type="ll", bw=[0.03])
        fitted = theirs.fit()[0]
        ours = LocalPolynomialRegressor(bandwidth=0.03, degree=1).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), fitted, rtol=1e-6)

        def formula(trace):
            return math.log(np.mean((y - fitted) ** 2)) + (1 + trace / 100) / (
                1 - (trace + 2) / 100
            )

        of_averages = LocalPolynomialRegressor(bandwidth=0.03, degree=0).fit(X, y)
        wrong = np.trace(of_averages.smoother_matrix(X))
        right = np.trace(ours.smoother_matrix(X))
        assert right > wrong + 0.5
        their_aicc = theirs.aic_hurvich(np.array([0.03]), theirs.est["ll"]).item()
        assert their_aicc == pytest.approx(formula(wrong), rel=1e-6)
        assert ours.aicc_ == pytest.approx(formula(right), rel=1e-6)
        assert abs(ours.aicc_ - their_aicc) > 0.01

    def test_interpolation_has_no_degrees_of_freedom_left(self, data):
        model = NadarayaWatsonRegressor("boxcar", bandwidth=1e-6).fit(*data)
        assert model.effective_dof_ == pytest.approx(40)
        assert model.aicc_ == math.inf
        np.testing.assert_allclose(model.predict(data[0]), data[1])
        assert np.abs(model.loo_residuals_).min() > 1e-3


class TestGradient:
    @pytest.mark.parametrize("kernel", ["gaussian", "biweight", "periodic"])
    def test_of_averages_equals_finite_differences(self, data, kernel):
        X, y = data
        both = np.column_stack([y, X[:, 0] * y])
        model = NadarayaWatsonRegressor(kernel, bandwidth=[1.1, 1.7]).fit(X, both)
        queries, step = X[:15] * 0.7 + 0.03, 1e-6
        found = model.predict_gradient(queries)
        assert found.shape == (15, 2, 2)
        for j in range(2):
            move = step * np.eye(2)[j]
            change = model.predict(queries + move) - model.predict(queries - move)
            np.testing.assert_allclose(found[:, :, j], change / (2 * step), atol=1e-6)

    @pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")
    def test_equals_finite_differences_where_statsmodels_does_not(self):
        nonparametric = pytest.importorskip("statsmodels.nonparametric.kernel_regression")
        X, y = make_smoothing_curve("heavisine", 100, random_state=0)
        x, step = np.linspace(0.1, 0.9, 30), 1e-5
        theirs = nonparametric.KernelReg(y, X[:, 0], "c", reg_type="lc", bw=[0.05])
        values = [theirs.fit(x + move)[0] for move in (-step, step)]
        truth = (values[1] - values[0]) / (2 * step)
        assert np.abs(theirs.fit(x)[1][:, 0] - truth).max() > 0.1 * np.abs(truth).max()
        ours = NadarayaWatsonRegressor(bandwidth=0.05).fit(X, y)
        np.testing.assert_allclose(ours.predict_gradient(x[:, None])[:, 0], truth, rtol=1e-4)

    @pytest.mark.parametrize("degree", DEGREES)
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

    def test_of_averages_over_neighbours_is_refused(self, data):
        model = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(9)).fit(*data)
        for ask in (lambda: model.predict_gradient(data[0]), model.feature_significance):
            with pytest.raises(ValueError, match=r"n_neighbors=9.*pass a fixed bandwidth"):
                ask()
        slope = LocalPolynomialRegressor(bandwidth=AdaptiveBandwidth(9)).fit(*data)
        assert slope.predict_gradient(data[0]).shape == (40, 2)


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
def test_partial_fit_of_rows_that_are_far_apart(estimator, rows, bandwidth):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = estimator(bandwidth=bandwidth).fit(X, X[:, 0])
    before = vars(model).copy()
    try:
        model.partial_fit(rows, np.arange(len(rows)))
    except ValueError as error:
        refused = str(error)
    else:
        whole = estimator(bandwidth=bandwidth)
        whole.fit(np.vstack([X, rows]), np.append(X[:, 0], np.arange(len(rows))))
        predicted = model.predict(np.vstack([X, rows]))
        assert np.isfinite(predicted).all()
        np.testing.assert_array_equal(predicted, whole.predict(np.vstack([X, rows])))
        return
    assert re.search("overflow|too small for a bandwidth", refused)
    assert vars(model) == before

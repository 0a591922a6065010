"""NadarayaWatsonCV and LocalPolynomialCV: the grid search they replace, and good company."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, LeaveOneOut

from sklearn_attention import (
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
)
from sklearn_attention.kernels import Matern32, ProductKernel


class TestSearch:
    def test_equals_grid_search(self, data):
        X, y = data[0][:14], data[1][:14]
        listed = [0.3, (2.0, 4.0), np.array([0.4, 1.8])]
        kernels = [Matern32(), ProductKernel("tricube")]
        ours = NadarayaWatsonCV(kernels, listed).fit(X, y)
        theirs = GridSearchCV(
            NadarayaWatsonRegressor(),
            [{"kernel": [kernel], "bandwidth": listed} for kernel in kernels],
            cv=LeaveOneOut(), scoring="neg_mean_squared_error",
        ).fit(X, y)  # fmt: skip
        for name, error in (("mean_test_score", 1e-10), ("rank_test_score", 0)):
            found, expected = (search.cv_results_[name] for search in (ours, theirs))
            np.testing.assert_allclose(found, expected, rtol=0, atol=error)
        assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-10)
        assert ours.best_index_ == theirs.best_index_
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)

    @pytest.mark.parametrize(
        ("criterion", "weighted"), [("loo", True), ("gcv", True), ("aicc", False)]
    )
    def test_criteria(self, data, criterion, weighted):
        X, y = data
        y = np.column_stack([y, y**2])
        weight = np.random.default_rng(1).integers(0, 3, 40) if weighted else None
        counts = np.ones(40) if weight is None else weight
        model = LocalPolynomialCV(["gaussian"], [0.3, 0.6, 1.2], criterion=criterion)
        model.fit(X, y, weight)
        unit = np.sqrt(np.cov(y.T, aweights=counts, ddof=0).diagonal())
        for params, score in zip(
            model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True
        ):
            one = LocalPolynomialRegressor(**params).fit(X, y, weight)
            if criterion == "loo":
                squares = ((one.loo_residuals_ / unit) ** 2).mean(axis=1)
                expected = np.average(squares, weights=counts)
            elif criterion == "gcv":
                squares = (((y - one.predict(X)) / unit) ** 2).mean(axis=1)
                freedom = 1 - one.effective_dof_ / np.count_nonzero(counts)
                expected = np.average(squares, weights=counts) / freedom**2
            else:
                expected = one.aicc_
            assert score == pytest.approx(-expected, rel=1e-8)

    def test_results_make_a_table(self, data):
        model = LocalPolynomialCV(bandwidths=[[0.2, 0.4], [0.5, 0.5]]).fit(*data)
        table = pd.DataFrame(model.cv_results_)
        assert len(table) == 3 * 3 * 2
        best = table.loc[model.best_index_]
        assert best["rank_test_score"] == 1
        assert best["params"] == model.best_params_
        assert best["mean_test_score"] == model.best_score_ == table["mean_test_score"].max()
        tried = NadarayaWatsonCV().fit(*data).cv_results_
        assert "param_degree" not in tried
        # Thirty by default, of one ratio to the spreads of the features.
        ratios = np.stack(tried["param_bandwidth"]) / data[0].std(axis=0)
        assert ratios.shape == (3 * 30, 2)
        np.testing.assert_allclose(ratios[:, 0], ratios[:, 1])

    def test_candidates_that_leave_rows_alone_lose(self, data):
        X, y = data
        for criterion in ("loo", "gcv"):
            model = NadarayaWatsonCV(
                ["boxcar"], [0.01, 0.9], empty="nan", criterion=criterion
            ).fit(X, y)
            assert model.best_params_["bandwidth"] == 0.9
            assert model.cv_results_["mean_test_score"][0] == -np.inf
        with pytest.raises(ValueError, match=r"no candidate predicts every row.*larger"):
            NadarayaWatsonCV(["boxcar"], [0.01], empty="nan").fit(X, y)


def test_it_knows_what_the_regressors_know(data):
    X, y = data[0][:24], data[1][:24]
    model = LocalPolynomialCV(["gaussian"], [0.3, 0.6], degrees=(1,)).fit(X, y)
    given = LocalPolynomialRegressor(**model.best_params_).fit(X, y)
    for name in ("effective_dof_", "loo_residuals_", "aicc_", "bandwidth_"):
        np.testing.assert_allclose(getattr(model, name), getattr(given, name))
    for name in ("predict_interval", "predict_gradient", "confidence_band", "explain"):
        for ours, theirs in zip(
            *(getattr(m, name)(X[:5]) for m in (model, given)), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, err_msg=name)
    assert -model.best_score_ == pytest.approx(np.mean(model.loo_residuals_**2))


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"kernels": []}, r"kernels=\[\] is not a list of candidates"),
            ({"degrees": [0, True]}, r"degrees=\[0, True\] are not valid: pass some of 0, 1"),
            ({"bandwidths": 0.5}, r"bandwidths=0\.5 is not a list of"),
            ({"bandwidths": [0.5, 0.0]}, "bandwidth=0.0 is not valid.*greater than 0"),
            ({"bandwidths": [[1.0, 2.0, 3.0]]}, r"shape \(3,\), but there are 2 features"),
            ({"criterion": "bic"}, r"criterion='bic' is unknown: choose from \['aicc', "),
        ],
    )
    def test_parameters(self, data, parameters, message):
        with pytest.raises(ValueError, match=message):
            LocalPolynomialCV(**({"kernels": ["gaussian"]} | parameters)).fit(*data)

    def test_signed_kernels(self, data):
        NadarayaWatsonCV(["silverman"], [0.5]).fit(*data)
        with pytest.raises(ValueError, match=r"takes negative values.*degree=0"):
            LocalPolynomialCV(["silverman"], [0.5]).fit(*data)
        LocalPolynomialCV(["silverman"], [0.5], degrees=[0]).fit(*data)

    def test_categories(self):
        frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "c": list("abab")})
        with pytest.raises(ValueError, match=": use NadarayaWatsonRegressor"):
            NadarayaWatsonCV().fit(frame, [1.0, 2.0, 3.0, 4.0])

    def test_few_rows(self):
        with pytest.raises(ValueError, match=r"needs two rows of positive weight.*n_samples=1"):
            LocalPolynomialCV().fit([[1.0]], [2.0])
        model = LocalPolynomialCV(["gaussian"], [1.0]).fit([[1.0], [2.0]], [2.0, 3.0])
        assert model.best_score_ == pytest.approx(-1.0)
        constant = NadarayaWatsonCV().fit(np.ones((5, 2)), np.arange(5.0))
        np.testing.assert_allclose(constant.predict(np.ones((1, 2))), 2.0)

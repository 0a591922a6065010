"""Nadaraya-Watson regression as a user meets it."""

import math
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from recorder import Recorder
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import (
    ConditionalKernelDensity,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
)
from sklearn_attention.datasets import make_smoothing_curve
from sklearn_attention.kernels import Gaussian, Periodic, ProductKernel

PROFILES = {
    "gaussian": lambda r: math.exp(-r * r / 2),
    "epanechnikov": lambda r: max(0.0, 0.75 * (1 - r * r)),
    "tricube": lambda r: max(0.0, 1 - r**3) ** 3,
    "matern52": lambda r: (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r),
}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)


def slow_predict(X, y, weight, queries, profile, bandwidth):
    """The formula, two loops deep."""
    predictions = []
    for query in queries:
        numerator = denominator = 0.0
        for key, value, w in zip(X, y, weight, strict=True):
            distance = math.sqrt(math.fsum(((query - key) / bandwidth) ** 2))
            numerator += w * profile(distance) * value
            denominator += w * profile(distance)
        predictions.append(numerator / denominator)
    return np.array(predictions)


class TestPrediction:
    @pytest.mark.parametrize("kernel", PROFILES)
    @pytest.mark.parametrize("bandwidth", [2.5, [2.0, 3.0, 4.0]])
    def test_equals_a_double_loop(self, data, kernel, bandwidth):
        X, y = data
        weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
        model = NadarayaWatsonRegressor(kernel, bandwidth=bandwidth).fit(X, y, weight)
        expected = slow_predict(X, y, weight, X[:30], PROFILES[kernel], np.array(bandwidth))
        np.testing.assert_allclose(model.predict(X[:30]), expected, rtol=0, atol=1e-12)

    @pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")
    @pytest.mark.parametrize("curve", ["doppler", "bumps", "blocks", "heavisine"])
    def test_equals_statsmodels(self, curve):
        nonparametric = pytest.importorskip("statsmodels.nonparametric.kernel_regression")
        X, y = make_smoothing_curve(curve, n_samples=256, random_state=0)
        theirs = nonparametric.KernelReg(y, X[:, 0], "c", reg_type="lc", bw=[0.03])
        ours = NadarayaWatsonRegressor(bandwidth=0.03).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.fit(X[:, 0])[0], rtol=0, atol=1e-10)

    def test_several_outputs(self, data):
        X, y = data
        both = np.column_stack([y, -2 * y])
        model = NadarayaWatsonRegressor(bandwidth=0.7).fit(X, both)
        single = NadarayaWatsonRegressor(bandwidth=0.7).fit(X, y).predict(X)
        np.testing.assert_allclose(
            model.predict(X), np.column_stack([single, -2 * single]), rtol=1e-12
        )
        assert model.score(X, both) <= 1

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_keeps_the_precision_it_is_given(self, data, dtype):
        X, y = (a.astype(dtype) for a in data)
        assert NadarayaWatsonRegressor(bandwidth=0.7).fit(X, y).predict(X).dtype == dtype
        assert NadarayaWatsonRegressor().fit(X, y).bandwidth_.dtype == np.float64

    @pytest.mark.parametrize("bandwidth", [0.5, "scott"])
    def test_weights_count_rows(self, data, bandwidth):
        X, y = data
        weight = np.random.default_rng(1).integers(0, 4, len(X))
        repeated = np.repeat(np.arange(len(X)), weight)
        weighted = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y, weight)
        copied = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X[repeated], y[repeated])
        np.testing.assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-10)

    def test_far_from_the_data_the_nearest_answers(self, data):
        X, y = data
        nearest = y[((X - 50) ** 2).sum(axis=1).argmin()]
        for kernel in ("gaussian", "epanechnikov"):
            model = NadarayaWatsonRegressor(kernel, bandwidth=0.2).fit(X, y)
            assert model.predict(np.full((1, 3), 50.0))[0] == pytest.approx(nearest)

    def test_empty_policies(self, data):
        X, y = data
        far = np.full((1, 3), 50.0)
        model = NadarayaWatsonRegressor("boxcar", bandwidth=1.0, empty="nan").fit(X, y)
        assert np.isnan(model.predict(far)[0])

    @pytest.mark.parametrize(
        ("gone", "use"), [("mean", "'nan'"), ("raise", "'nan'"), ("widen", "'nearest'")]
    )
    @pytest.mark.parametrize(
        "estimator",
        [
            NadarayaWatsonRegressor, NadarayaWatsonClassifier, NadarayaWatsonCV,
            LocalPolynomialRegressor, LocalPolynomialCV, ConditionalKernelDensity,
        ],
    )  # fmt: skip
    def test_empty_policies_that_are_gone(self, data, estimator, gone, use):
        X, y = data
        y = y > 0 if estimator is NadarayaWatsonClassifier else y
        with pytest.raises(ValueError, match=rf"^empty='{gone}' is gone in 0\.2: use {use}"):
            estimator(empty=gone).fit(X, y)

    def test_kernels_of_other_makers(self, data):
        X, y = data
        ours = NadarayaWatsonRegressor(Gaussian(), bandwidth=0.7).fit(X, y).predict(X)
        rbf = NadarayaWatsonRegressor(RBF(1.0), bandwidth=0.7).fit(X, y).predict(X)
        np.testing.assert_allclose(rbf, ours, rtol=1e-10)
        ours = NadarayaWatsonRegressor("laplacian", bandwidth=0.7).fit(X, y).predict(X)
        function = NadarayaWatsonRegressor(lambda A, B: laplacian_kernel(A, B, gamma=1.0),
                                           bandwidth=0.7)  # fmt: skip
        np.testing.assert_allclose(function.fit(X, y).predict(X), ours, rtol=1e-10)


class TestBandwidth:
    def test_numbers_are_in_the_features_units(self, data):
        X, y = data
        model = NadarayaWatsonRegressor(bandwidth=0.7).fit(X, y)
        np.testing.assert_array_equal(model.bandwidth_, [0.7, 0.7, 0.7])
        assert not hasattr(model, "criterion_value_")

    def test_criterion_is_the_cross_validated_error(self, data):
        X, y = data[0][:25], data[1][:25]
        model = NadarayaWatsonRegressor(bandwidth="loo").fit(X, y)
        fixed = NadarayaWatsonRegressor(bandwidth=model.bandwidth_)
        scores = cross_val_score(
            fixed, X, y, cv=KFold(len(X)), scoring="neg_mean_squared_error"
        )
        assert model.criterion_value_ == pytest.approx(-scores.mean(), rel=1e-10)
        for factor in (0.8, 0.95, 1.05, 1.25):
            other = NadarayaWatsonRegressor(bandwidth=factor * model.bandwidth_).fit(X, y)
            assert np.mean(other.loo_residuals_**2) >= model.criterion_value_

    def test_changing_a_kernel_does_not_change_what_was_fitted(self, data):
        X, y = data
        kernel = Periodic(period=3.0)
        model = NadarayaWatsonRegressor(kernel, bandwidth=1.0).fit(X, y)
        before = model.predict(X)
        model.set_params(kernel__period=1.5)
        kernel.length_scale = 9.0
        np.testing.assert_array_equal(model.predict(X), before)

    def test_refitting_forgets(self, data):
        X, y = data
        model = NadarayaWatsonRegressor().fit(X, y)
        assert not hasattr(model.set_params(bandwidth=1.0).fit(X, y), "criterion_value_")

    def test_recovers_the_curves(self):
        for curve in ("doppler", "heavisine"):
            X, y, truth = make_smoothing_curve(
                curve, n_samples=1024, random_state=0, return_truth=True
            )
            model = NadarayaWatsonRegressor().fit(X, y)
            noise = np.mean((y - truth) ** 2)
            assert np.mean((model.predict(X) - truth) ** 2) < 0.5 * noise


class TestMemory:
    @pytest.mark.parametrize("bandwidth", [0.5, "scott", "loo"])
    def test_partial_fit_equals_fit_on_all(self, data, bandwidth):
        X, y = data[0][:25], data[1][:25]
        whole = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y)
        grown = NadarayaWatsonRegressor(bandwidth=bandwidth)
        for rows in (slice(0, 15), slice(15, 16), slice(16, None)):
            grown.partial_fit(X[rows], y[rows])
        np.testing.assert_array_equal(grown.keys_, X)
        np.testing.assert_allclose(grown.predict(X), whole.predict(X), rtol=1e-12)

    def test_partial_fit_with_and_without_weights(self, data):
        X, y = data
        weight = np.full(40, 2.0)
        grown = NadarayaWatsonRegressor(bandwidth=0.5).partial_fit(X[:40], y[:40])
        grown.partial_fit(X[40:], y[40:], sample_weight=weight)
        whole = NadarayaWatsonRegressor(bandwidth=0.5)
        whole.fit(X, y, np.concatenate([np.ones(40), weight]))
        np.testing.assert_array_equal(grown.predict(X), whole.predict(X))

    def test_partial_fit_refuses_other_shapes(self, data):
        X, y = data
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
        with pytest.raises(ValueError, match=r"y has shape .* as many outputs as before"):
            model.partial_fit(X, np.column_stack([y, y]))
        with pytest.raises(ValueError, match="X has 2 features"):
            model.partial_fit(X[:, :2], y)
        assert len(model.keys_) == len(X)


class TestCompany:
    @pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
    def test_search_with_workers_equals_a_loop_by_hand(self, n_jobs):
        X, y = make_friedman1(120, n_features=5, random_state=0)
        kernels, bandwidths = ["gaussian", "tricube", "laplacian"], [0.3, 0.6, 2.0]
        folds = KFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), NadarayaWatsonRegressor()),
            {
                "nadarayawatsonregressor__kernel": kernels,
                "nadarayawatsonregressor__bandwidth": bandwidths,
            },
            cv=folds,
            n_jobs=n_jobs,
        ).fit(X, y)
        best = (-np.inf, None)
        for kernel in kernels:
            for h in bandwidths:
                scores = []
                for train, test in folds.split(X):
                    mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
                    A, B = (X[train] - mean) / sd, (X[test] - mean) / sd
                    u = (B[:, None] - A) / h
                    r = np.sqrt((u**2).sum(-1))
                    w = {
                        "gaussian": np.exp(-(r**2) / 2),
                        "tricube": np.clip(1 - r**3, 0, None) ** 3,
                        "laplacian": np.exp(-abs(u).sum(-1)),
                    }[kernel]
                    nearest = w.sum(axis=1) == 0
                    w[nearest] = r[nearest] == r[nearest].min(axis=1, keepdims=True)
                    predicted = w @ y[train] / w.sum(axis=1)
                    residual = ((y[test] - predicted) ** 2).sum()
                    scores.append(1 - residual / ((y[test] - y[test].mean()) ** 2).sum())
                best = max(best, (np.mean(scores), (kernel, h)))
        winner = search.best_params_
        assert best[1] == (
            winner["nadarayawatsonregressor__kernel"],
            winner["nadarayawatsonregressor__bandwidth"],
        )
        assert search.best_score_ == pytest.approx(best[0], rel=1e-9)

    def test_grids_reach_into_kernels(self, data):
        X, y = data
        grid = [
            {"kernel": ["gaussian", "tricube"]},
            {"kernel": [Periodic()], "kernel__period": [5.0, 2 * np.pi]},
        ]
        search = GridSearchCV(NadarayaWatsonRegressor(bandwidth=1.0), grid, cv=3).fit(X, y)
        assert len(search.cv_results_["params"]) == 4

    def test_pandas_in_and_names_kept(self, data):
        X, y = data
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(frame, pd.Series(y))
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            predictions = model.predict(frame)
        expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y).predict(X)
        np.testing.assert_array_equal(predictions, expected)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["c", "b", "a"]])

    def test_clone_repr_and_html(self):
        model = NadarayaWatsonRegressor(Periodic(period=3.0), bandwidth=2.0)
        assert clone(model).kernel == Periodic(period=3.0)
        assert repr(model) == (
            "NadarayaWatsonRegressor(bandwidth=2.0, kernel=Periodic(period=3.0))"
        )
        html = model._repr_html_()
        assert "sklearn_attention.NadarayaWatsonRegressor.html" in html

    def test_html_computes_nothing(self, data):
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(*data)
        html = model._repr_html_()
        assert "bandwidth_" in html
        assert "loo_score_" not in html
        assert "training" not in vars(model.smoother_)

    def test_metadata_routing(self, data):
        X, y = data
        with config_context(enable_metadata_routing=True):
            model = NadarayaWatsonRegressor(bandwidth=0.5)
            model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            scores = cross_val_score(model, X, y, params={"sample_weight": np.ones(len(X))})
        assert len(scores) == 5

    @pytest.mark.slow
    def test_workers_use_one_thread_each(self):
        def torch_threads():
            import torch

            NadarayaWatsonRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
            return torch.get_num_threads()

        threads = joblib.Parallel(n_jobs=2)(joblib.delayed(torch_threads)() for _ in range(2))
        assert max(threads) <= max(1, joblib.cpu_count() // 2)


class TestCallbacks:
    def test_every_candidate_is_a_task(self, data):
        recorder = Recorder(lambda model: model.predict(data[0]).shape)
        NadarayaWatsonRegressor().set_callbacks(recorder).fit(*data)
        assert recorder.begun.count("bandwidth") == len(recorder.ended) - 1 > 60
        assert recorder.answers == [(80,)] * len(recorder.ended)

    def test_a_callback_can_end_the_search(self, data):
        recorder = Recorder(stop_after=3)
        model = NadarayaWatsonRegressor().set_callbacks(recorder).fit(*data)
        assert recorder.begun.count("bandwidth") == 3
        assert np.isfinite(model.predict(data[0])).all()

    def test_teardown_also_after_a_failure(self, data):
        recorder = Recorder()
        model = NadarayaWatsonRegressor(bandwidth="scott", gap=2).set_callbacks(recorder)
        with pytest.raises(ValueError, match="gap=2 is for searches"):
            model.fit(*data)
        assert recorder.teardowns == 1

    def test_progress_in_a_search_over_a_pipeline(self, data, capfd):
        pytest.importorskip("rich")
        search = GridSearchCV(
            make_pipeline(StandardScaler(), NadarayaWatsonRegressor()),
            {"nadarayawatsonregressor__kernel": ["gaussian", "tricube"]},
            cv=2,
        ).set_callbacks(ProgressBar())
        search.fit(data[0][:30], data[1][:30])
        assert "GridSearchCV" in capfd.readouterr().out
        assert np.isfinite(search.predict(data[0])).all()


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"bandwidth": 0}, "bandwidth=0 is not valid.*greater than 0"),
            ({"bandwidth": -1.0}, "bandwidth=-1.0 is not valid"),
            ({"bandwidth": [1.0, 2.0]}, r"shape \(2,\), but there are 3 features"),
            (
                {"bandwidth": "lool"},
                r"bandwidth='lool' is unknown: did you mean 'loo'\? choose from \['aicc', ",
            ),
            ({"bandwidth": None}, "bandwidth=None is not valid"),
            ({"bandwidth": True}, "bandwidth=True is not valid"),
            ({"kernel": "gauss"}, r"kernel='gauss' is unknown: did you mean 'gaussian'"),
            ({"kernel": Gaussian}, r"create it, as in Gaussian\(\)"),
            ({"kernel": 3}, "kernel=3 must be a name"),
            ({"kernel": Periodic(period=-1)}, "period=-1 is not valid"),
            ({"empty": None}, "empty=None is unknown: choose from"),
            ({"algorithm": "fft"}, "algorithm='fft' is unknown"),
        ],
    )
    def test_parameters(self, data, parameters, message):
        good = NadarayaWatsonRegressor(bandwidth=0.5).fit(*data)
        before, predictions = dict(vars(good)), good.predict(data[0])
        given = good.get_params()
        good.set_params(**parameters)
        with pytest.raises((ValueError, TypeError), match=message):
            good.fit(data[0][:50], data[1][:50])
        good.set_params(**given)
        assert vars(good).keys() == before.keys()
        np.testing.assert_array_equal(good.predict(data[0]), predictions)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"kernel": Periodic(period=-1)}, "period=-1 is not valid"),
            ({"kernel": ProductKernel([("a", "gaussian", [7])])}, "3 features"),
            ({"kernel": lambda A, B: np.ones(3)}, "returned shape"),
        ],
    )
    def test_parameters_are_checked_in_fit_without_a_search_too(
        self, data, parameters, message
    ):
        model = NadarayaWatsonRegressor(bandwidth=1.0).set_params(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(*data)
        assert not hasattr(model, "keys_")

    def test_targets_too_large_for_the_precision(self, data):
        X, y = data
        with pytest.raises(ValueError, match=r"too large for float32.*float64"):
            NadarayaWatsonRegressor(bandwidth=1.0).fit(X.astype("float32"), y * 1e300)

    @pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    @pytest.mark.parametrize(
        ("spoil", "error", "message"),
        [
            (lambda X, y: (np.where(X > 1, np.nan, X), y), ValueError, "contains NaN"),
            (lambda X, y: (np.where(X > 1, np.inf, X), y), ValueError, "contains infinity"),
            (lambda X, y: (X, np.where(y > 0, np.nan, y)), ValueError, "y has missing values"),
            (lambda X, y: (X[:0], y[:0]), ValueError, "0 sample"),
            (lambda X, y: (X[:, :0], y), ValueError, "0 feature"),
            (lambda X, y: (X[:, 0], y), ValueError, "Reshape your data"),
            (lambda X, y: (sparse.csr_array(X), y), TypeError, "[Ss]parse"),
            (lambda X, y: (X, y[:-1]), ValueError, "inconsistent numbers of samples"),
        ],
    )
    def test_data(self, data, method, spoil, error, message):
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(*data)
        before = dict(vars(model))
        with pytest.raises(error, match=message):
            getattr(model, method)(*spoil(*data))
        assert vars(model) == before

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.zeros(80), "sample_weight is zero for every row"),
            (-np.ones(80), "[Nn]egative"),
            (np.ones(79), r"sample_weight has shape \(79,\): pass one number"),
            (np.full(80, np.nan), "sample_weight has missing values"),
            (np.full(80, 1e308), "sample_weight sums to inf, too large"),
        ],
    )
    def test_weights(self, data, weight, message):
        for model in (NadarayaWatsonRegressor(bandwidth=1.0), NadarayaWatsonRegressor()):
            with pytest.raises(ValueError, match=message):
                model.fit(*data, sample_weight=weight)
            assert not hasattr(model, "n_features_in_")

    def test_one_row(self):
        model = NadarayaWatsonRegressor(bandwidth=1.0).fit([[1.0]], [5.0])
        np.testing.assert_array_equal(model.predict([[0.0], [9.0]]), [5.0, 5.0])
        assert NadarayaWatsonRegressor(bandwidth="scott").fit([[1.0]], [5.0]).bandwidth_[0] > 0
        with pytest.raises(ValueError, match="n_samples=1: pass a number as bandwidth"):
            NadarayaWatsonRegressor().fit([[1.0]], [5.0])

    def test_other_features_at_predict(self, data):
        model = NadarayaWatsonRegressor(bandwidth=1.0).fit(*data)
        with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
            model.predict(data[0][:, :2])
        with pytest.raises(ValueError, match="contains NaN"):
            model.predict(np.full((1, 3), np.nan))

    def test_repeated_rows_are_left_out_together(self, data):
        X, y = np.repeat(data[0], 2, axis=0), np.repeat(data[1], 2)
        once, twice = NadarayaWatsonRegressor().fit(*data), NadarayaWatsonRegressor().fit(X, y)
        np.testing.assert_allclose(twice.bandwidth_, once.bandwidth_, rtol=1e-6)

    def test_not_fitted(self, data):
        for model in (NadarayaWatsonRegressor(), NadarayaWatsonClassifier()):
            with pytest.raises(NotFittedError):
                model.predict(data[0])

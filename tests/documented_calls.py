"""Calls as the guides write them: checkers of types read them, nothing runs them."""

from typing import assert_type

import numpy as np
import pandas as pd

from sklearn_attention import (
    AdaptiveBandwidth,
    Architecture,
    Columns,
    ConditionalKernelDensity,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    KernelForecaster,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
    PositiveRandomFeatures,
    ProductKernelDensity,
    RandomFourierFeatures,
    Training,
    TransformerClassifier,
    TransformerForecaster,
    TransformerLanguageModel,
    TransformerRegressor,
    TransformerSeq2Seq,
    attend,
    attention_weights,
)
from sklearn_attention.attention import LeaveOneOut
from sklearn_attention.bandwidth import rule_bandwidth, select_bandwidth
from sklearn_attention.datasets import make_periodic_series, make_smoothing_curve
from sklearn_attention.forecasting import mase, naive_scale, seasonal_naive
from sklearn_attention.inspection import (
    BandwidthDisplay,
    ExplanationDisplay,
    FeatureEffectsDisplay,
    ForecastDisplay,
    SmoothDisplay,
)
from sklearn_attention.kernels import Constant, Gaussian, Matern32, Periodic, ProductKernel

X, y = make_smoothing_curve("heavisine", 200, signal_to_noise=3, random_state=0)
frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})


def curves() -> None:
    """Smoothers of tables and curves, and what they say."""
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    assert_type(model, NadarayaWatsonRegressor)
    model = NadarayaWatsonRegressor("laplacian", bandwidth=[0.5, 2], empty="nan", gap=3)
    model = NadarayaWatsonRegressor(Gaussian() + Constant(2.0), bandwidth="loo")
    model = NadarayaWatsonRegressor(Periodic(period=7), bandwidth=AdaptiveBandwidth(15))
    assert_type(model.partial_fit(X, y), NadarayaWatsonRegressor)
    print(*model.predict(X, return_std=True))
    assert_type(model.predict_interval(X, coverage=0.9), np.ndarray)
    assert_type(model.predict_quantiles(X, [0.1, 0.9]), np.ndarray)
    assert_type(model.confidence_band(X, coverage=0.9, simultaneous=True), np.ndarray)
    print(model.summary(significance=True), model.explain(frame, k=3)["weight"].sum())
    lines = LocalPolynomialRegressor(bandwidth=0.3, degree=1, robust=True).fit(X, y)
    print(lines.predict_gradient(X)[0], lines.bandwidth_, lines.loo_score_)
    NadarayaWatsonCV(["gaussian", Matern32()], np.geomspace(0.1, 1, 5)).fit(X, y)
    LocalPolynomialCV(["gaussian"], [0.3, 0.5], degrees=[0, 1]).fit(X, y)
    classes = NadarayaWatsonClassifier(class_weight={0: 2.0}, bandwidth=0.5).fit(X, y > 0)
    print(classes.predict_proba(X).argmax(axis=1), classes.score(X, y > 0))


def densities() -> None:
    """Densities and distributions."""
    density = ProductKernelDensity("tricube", bandwidth="scott", bounds=[(0, None)]).fit(X)
    assert_type(density.score_samples(X), np.ndarray)
    given = ConditionalKernelDensity(bandwidth=[0.5], target_bandwidth=0.2).fit(X, y)
    assert_type(given.predict_cdf(X, y), np.ndarray)


def tables() -> None:
    """Kernel attention and encoders."""
    model = KernelAttentionRegressor("average", bandwidth=[1, 2], ridge=0.1, n_folds=3)
    print(model.fit(frame, [1, 2, 3]).predict(frame).round(1), model.transform(frame).shape)
    print(model.feature_relevance_.round(1), model.explain_features(frame).sum(axis=1))
    effects, std = model.explain_features(frame, background=frame[:2], return_std=True)
    print(effects["base value"], std.round(2))
    KernelAttentionClassifier(max_steps=10, categorical_features=["x"], boosting=None)
    encoder = TransformerClassifier(
        d_model=32, max_epochs=5, training=Training(max_steps=9), architecture=Architecture()
    ).fit(["good day", "bad night"], ["a", "b"])
    assert_type(encoder, TransformerClassifier)
    TransformerRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], random_state=None)
    print(Columns.learn(frame).encode(frame))
    print(RandomFourierFeatures(64, kernel="gaussian").fit(X).transform(X).shape)
    print(PositiveRandomFeatures(64).fit_transform(X).shape)


def series() -> None:
    """Forecasters in pandas."""
    heights = pd.Series(make_periodic_series("sine", 400))
    model = TransformerForecaster(12, lookback=24, candidates=["ridge"], bounds=(0, None))
    print(model.fit(heights).predict(coverage=[0.5, 0.9]), model.score(heights))
    table = model.backtest(heights, cv=5, coverage=0.9)
    scale = naive_scale(heights, season_length=7)
    assert_type(mase(table["actual"], table["forecast"], scale), float)
    seasonal_naive(heights.to_numpy()[None], 12, season_length=7)
    analogs = KernelForecaster(6, lookback=12, bandwidth=0.3).fit(heights)
    print(analogs.explain(k=3), analogs.update(heights).predict_quantiles(quantiles=[0.5]))


def sequences() -> None:
    """Language models and translators."""
    model = TransformerLanguageModel("words", max_length=32, batch_size=16).fit(["a b", "b a"])
    print(model.sample("a", max_new_tokens=5, temperature=0), model.perplexity(["a b"]))
    TransformerSeq2Seq(n_beams=4).fit(["a b"], ["b a"]).predict(["a b"])


def parts() -> None:
    """Functions below the estimators."""
    attend(X, X, y, "gaussian", bandwidth=0.5)
    attention_weights(X, X, ProductKernel([("gaussian", [0])]), bandwidth=0.5)
    print(LeaveOneOut(X, y, "gaussian", degree=1).scores([0.5, 1.0]).left_out)
    print(select_bandwidth(X, y, "gaussian").bandwidth, rule_bandwidth(X, "gaussian", "scott"))


def pictures() -> None:
    """Displays."""
    smooth = SmoothDisplay.from_estimator(LocalPolynomialRegressor().fit(X, y), coverage=0.5)
    assert_type(smooth, SmoothDisplay)
    model = KernelAttentionRegressor().fit(frame, [1, 2, 3])
    ExplanationDisplay.from_estimator(model, frame[:1], k=5).plot()
    effects = FeatureEffectsDisplay.from_estimator(model, frame[:1], name="price")
    assert_type(effects.plot(kind="bar", max_features=3), FeatureEffectsDisplay)
    BandwidthDisplay.from_estimator(model)
    ForecastDisplay.from_estimator(TransformerForecaster(3).fit(y), coverage=[0.5, 0.9])

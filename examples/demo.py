"""Four tasks of the package, on data that need no download.

A pipeline with a kernel smoother under a search, a curve, a table beside boosted trees, and a
pandas series with intervals and a backtest. The script prints scores beside those of other
models, and writes them and four pictures to a folder, its one argument. It needs the extra
``plot``.
"""

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_validate, train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from sklearn_attention import (
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    TransformerForecaster,
)
from sklearn_attention.datasets import make_smoothing_curve
from sklearn_attention.forecasting import mase, naive_scale, seasonal_naive
from sklearn_attention.inspection import (
    STYLE,
    BacktestDisplay,
    BandwidthDisplay,
    ExplanationDisplay,
    ForecastDisplay,
    SmoothDisplay,
)

FOLDS = KFold(5, shuffle=True, random_state=0)


def row(job, model, name, error, seconds):
    return {"job": job, "model": model, "measure": name, "error": error, "seconds": seconds}


def compare(job, models, X, y):
    """Root mean squared errors of models over five splits, in units of the deviation of y."""
    for name, model in models.items():
        start = time.process_time()
        scores = cross_validate(model, X, y, cv=FOLDS, scoring="neg_root_mean_squared_error")
        seconds = (time.process_time() - start) / FOLDS.get_n_splits()
        yield row(job, name, "RMSE / sd", -scores["test_score"].mean() / np.std(y), seconds)


def search_a_pipeline(figures):
    """Predict the proline in a wine from twelve other measurements, by similar wines."""
    wine = load_wine(as_frame=True).data
    X, y = wine.drop(columns="proline"), wine["proline"]

    def searched(model, **grid):
        pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
        grid = {f"model__{name}": values for name, values in grid.items()}
        return GridSearchCV(pipeline, grid, cv=FOLDS)

    kernels, bandwidths = ["gaussian", "laplacian", "epanechnikov"], np.geomspace(0.25, 8, 16)
    search = searched(NadarayaWatsonRegressor(), kernel=kernels, bandwidth=bandwidths)
    sizes = {"n_neighbors": [2, 4, 8, 12, 18, 25], "weights": ["uniform", "distance"]}
    models = {
        "NadarayaWatsonRegressor": search,
        "KNeighborsRegressor": searched(KNeighborsRegressor(), **sizes),
    }
    yield from compare("wine: pipeline under a search", models, X, y)

    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
    found = search.fit(X_train, y_train)
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
        for kernel in kernels:
            tried = found.cv_results_["param_model__kernel"] == kernel
            left.plot(bandwidths, found.cv_results_["mean_test_score"][tried], label=kernel)
        left.semilogx(base=2)
        left.xaxis.set_major_formatter("{x:g}")
        left.set(xlabel="bandwidth (standard deviations)", ylabel="R²", ylim=(0, None))
        left.set(title="The search")
        left.legend()
        labels = [f"wine {number}" for number in X_train.index]
        ExplanationDisplay.from_estimator(
            found.best_estimator_, X_test[:1], k=7, labels=labels, ax=right
        )
        right.set_title("The wines behind one prediction of proline (mg/l)")
    figures["search"] = figure


def smooth_a_curve(figures):
    """A curve with a jump, under noise."""
    X, y = make_smoothing_curve("heavisine", 200, signal_to_noise=3, random_state=0)
    splines = make_pipeline(SplineTransformer(20), RidgeCV(np.geomspace(1e-3, 1e3, 13)))
    models = {
        "LocalPolynomialRegressor": LocalPolynomialRegressor(),
        "splines, RidgeCV": splines,
    }
    yield from compare("heavisine: curve", models, X, y)
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
        model = LocalPolynomialRegressor().fit(X, y)
        SmoothDisplay.from_estimator(model, X, y, ax=ax)
        ax.set_title("A curve with its confidence band")
    figures["curve"] = figure


def learn_a_kernel(figures):
    """Progression of diabetes after a year, from ten measurements."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    models = {
        "KernelAttentionRegressor": KernelAttentionRegressor(),
        "HistGradientBoostingRegressor": HistGradientBoostingRegressor(random_state=0),
    }
    yield from compare("diabetes: table", models, X, y)

    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = KernelAttentionRegressor().fit(X_train, y_train)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
        BandwidthDisplay.from_estimator(model, ax=axes[0])
        levels = np.linspace(0.1, 0.9, 9)
        ends = [model.predict_interval(X_test, coverage=level).T for level in levels]
        shares = [np.mean((lower < y_test) & (y_test < upper)) for lower, upper in ends]
        axes[1].axline((0, 0), slope=1, color="0.6", ls="--")
        axes[1].plot(levels, shares, "o-")
        axes[1].set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="coverage asked for")
        axes[1].set(title="Share of targets in intervals")
        # A weighted average of targets is easier to explain than the more accurate default.
        average = KernelAttentionRegressor(readout="average", boosting=None)
        ExplanationDisplay.from_estimator(
            average.fit(X_train, y_train), X_test[:1], k=7, ax=figures["overview"].axes[0]
        )
        figures["overview"].axes[0].set_title("A prediction and the rows it averages")
    figures["table"] = figure


def forecast_a_series(figures):
    """Daily visitors, by a formula: weeks, years, growth and noise that goes on for days."""
    random, days = np.random.default_rng(0), pd.date_range("2021", periods=1461, name="day")
    noise = np.zeros(len(days))
    for i in range(1, len(days)):
        noise[i] = 0.7 * noise[i - 1] + 0.06 * random.standard_normal()
    week = np.array([0, -0.1, -0.15, -0.1, 0.05, 0.35, 0.3])[days.day_of_week]
    year = 0.25 * np.sin(2 * np.pi * (days.day_of_year - 110) / 365.25)
    visitors = np.exp(6 + 0.0002 * np.arange(len(days)) + week + year + noise)
    visitors = pd.Series(visitors, days, name="visitors")

    start = time.process_time()
    model = TransformerForecaster(horizon=28)
    table = model.backtest(visitors, cv=6, coverage=0.9)
    seconds, job = time.process_time() - start, "visitors: 28 days ahead"
    scale = naive_scale(visitors[: -6 * 28])
    yield row(
        job, "TransformerForecaster", "MASE",
        mase(table["actual"], table["forecast"], scale), seconds,
    )  # fmt: skip
    start = time.process_time()
    values = visitors.to_numpy()
    repeated = [
        seasonal_naive(values[None, :end], 28, season_length=7)[0]
        for end in range(len(values) - 6 * 28, len(values), 28)
    ]
    error = mase(values[-6 * 28 :], np.concatenate(repeated), scale)
    yield row(job, "seasonal naive", "MASE", error, time.process_time() - start)

    model.fit(visitors[:-28])
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(13, 4.2), layout="constrained")
        ForecastDisplay.from_estimator(model, y=visitors[-28:], ax=axes[0])
        BacktestDisplay.from_predictions(table, ax=axes[1])
        shown = figures["overview"].axes[1]
        ForecastDisplay.from_estimator(model, y=visitors[-28:], ax=shown)
        shown.set_title("A forecast with its intervals")
    figures["forecast"] = figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the table and the pictures go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        figures = {"overview": plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")[0]}
    rows = []
    for job in (search_a_pipeline, smooth_a_curve, learn_a_kernel, forecast_a_series):
        rows += job(figures)
    table = pd.DataFrame(rows).round({"error": 3, "seconds": 2})
    print(table.to_string(index=False))
    table.to_csv(folder / "scores.csv", index=False)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=120)
    print(f"scores.csv and {', '.join(f'{name}.png' for name in figures)} are in {folder}/")


if __name__ == "__main__":
    main()

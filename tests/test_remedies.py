"""What an error or a warning recommends works when it is followed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    KernelForecaster,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    RandomFourierFeatures,
    TransformerForecaster,
    attend,
)
from sklearn_attention.bandwidth import select_bandwidth
from sklearn_attention.forecasting import mase, naive_scale
from sklearn_attention.kernels import Gaussian, RadialKernel
from sklearn_attention.text import learn_vocabulary, pad

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=40)
LABELS = np.where(Y > 0, "high", "low")
MONTHS = pd.date_range("2018-01-01", periods=48, freq="MS")
SALES = pd.Series(50 + 5 * np.sin(np.arange(48) / 6 * np.pi), MONTHS, name="sales")
PRICE = pd.DataFrame({"price": RNG.normal(size=48)}, MONTHS)
ROWS = pd.DataFrame({
    "store": ["a"] * 48 + ["b"] * 48, "month": [*MONTHS, *MONTHS], "sales": [*SALES, *SALES],
})  # fmt: skip


def smoother(**parameters):
    return NadarayaWatsonRegressor(**({"bandwidth": 0.5} | parameters))


def forecaster(horizon=3, **parameters):
    return KernelForecaster(horizon, **({"lookback": 6, "bandwidth": 1.0} | parameters))


def attention(**parameters):
    options = {"max_steps": 0, "boosting": None, "random_state": 0}
    return KernelAttentionRegressor(**(options | parameters))


class Own(RadialKernel):
    """A kernel without its formula."""


class OwnWithFormula(RadialKernel):
    """The same with it."""

    def log_profile(self, squared):
        """Logarithm of the kernel at squared distances."""
        return -squared


with_gap = SALES.copy()
with_gap.iloc[[20, 21]] = np.nan
season_lost = SALES.copy()
season_lost.iloc[20:33] = np.nan
complex_rows = X * 1j
texts = pd.DataFrame({"size": ["1.5", "2.5", "?"] * 14})[:40]
polars_rows = pl.from_pandas(pd.DataFrame(X, columns=["a", "b"]))

# What is called, the error or warning that names the remedy, and the same as it recommends.
REMEDIES = {
    # smoothers
    "a vector as X": (
        lambda: smoother().fit(X[:, 0], Y),
        r"reshape\(-1, 1\)",
        lambda: smoother().fit(X[:, 0].reshape(-1, 1), Y),
    ),
    "a bandwidth of 0": (
        lambda: smoother(bandwidth=0.0).fit(X, Y),
        "pass a positive number|greater than 0",
        lambda: smoother(bandwidth=0.1).fit(X, Y),
    ),
    "three bandwidths for two features": (
        lambda: smoother(bandwidth=[1, 1, 1]).fit(X, Y),
        "pass one number, or one for each feature",
        lambda: smoother(bandwidth=[1, 1]).fit(X, Y),
    ),
    "missing cells": (
        lambda: attend([[np.nan, 0.0]], X, Y, bandwidth=1.0),
        "impute or drop those rows first",
        lambda: attend(np.nan_to_num([[np.nan, 0.0]]), X, Y, bandwidth=1.0),
    ),
    "complex keys": (
        lambda: attend(X, complex_rows, Y, bandwidth=1.0),
        "pass real and imaginary parts as columns",
        lambda: attend(
            np.hstack([X, X]),
            np.hstack([complex_rows.real, complex_rows.imag]),
            Y,
            bandwidth=1.0,
        ),
    ),
    "queries of other columns": (
        lambda: attend(X[:, :1], X, Y, bandwidth=1.0),
        "pass both with the same columns",
        lambda: attend(X[:, :1], X[:, :1], Y, bandwidth=1.0),
    ),
    "other keys with leave_one_out": (
        lambda: attend(X[:3], X, Y, bandwidth=1.0, leave_one_out=True),
        "the position of each query's own key",
        lambda: attend(X[:3], X, Y, bandwidth=1.0, leave_one_out=[0, 1, 2]),
    ),
    "weights of another length": (
        lambda: smoother().fit(X, Y, sample_weight=np.ones(3)),
        "pass one number for each of the 40 rows",
        lambda: smoother().fit(X, Y, sample_weight=np.ones(40)),
    ),
    "negative weights": (
        lambda: smoother().fit(X, Y, sample_weight=-np.ones(40)),
        "pass 0 or more",
        lambda: smoother().fit(X, Y, sample_weight=np.eye(40)[0]),
    ),
    "an unknown kernel": (
        lambda: smoother(kernel="gauss").fit(X, Y),
        "did you mean 'gaussian'|choose from",
        lambda: smoother(kernel="gaussian").fit(X, Y),
    ),
    "a degree of 5": (
        lambda: LocalPolynomialRegressor(degree=5).fit(X, Y),
        r"pass .*(3|'auto')",
        lambda: LocalPolynomialRegressor(degree=3, bandwidth=2.0).fit(X, Y),
    ),
    "an own kernel without a formula": (
        lambda: attend(X, X, Y, kernel=Own(), bandwidth=1.0),
        r"define log_profile\(squared\): make it a subclass of RadialKernel",
        lambda: attend(X, X, Y, kernel=OwnWithFormula(), bandwidth=1.0),
    ),
    "a function in the place of an own kernel": (
        lambda: attend(X, X, Y, kernel=Own(), bandwidth=1.0),
        r"or pass a function f\(queries, keys\)",
        lambda: attend(X, X, Y, kernel=lambda q, k: np.exp(-abs(q @ k.T)), bandwidth=1.0),
    ),
    "neighbours beyond the rows": (
        lambda: smoother(bandwidth="knn-loo").fit(X[:1], Y[:1]),
        "pass more rows|pass a number",
        lambda: smoother(bandwidth="knn-loo").fit(X, Y),
    ),
    "a gap that leaves nothing": (
        lambda: smoother(bandwidth="loo", gap=30).fit(X, Y),
        "pass a smaller gap",
        lambda: smoother(bandwidth="loo", gap=3).fit(X, Y),
    ),
    "no list of candidates": (
        lambda: NadarayaWatsonCV(bandwidths=0.5).fit(X, Y),
        "pass a list of at least one",
        lambda: NadarayaWatsonCV(bandwidths=[0.5]).fit(X, Y),
    ),
    "classes without a near row": (
        lambda: NadarayaWatsonClassifier("boxcar", bandwidth=0.1, empty="nan")
        .fit(X, LABELS)
        .predict([[90.0, 90.0]]),
        "use predict_proba, empty='nearest'",
        lambda: NadarayaWatsonClassifier("boxcar", bandwidth=0.1, empty="nearest")
        .fit(X, LABELS)
        .predict([[90.0, 90.0]]),
    ),
    "labels of several types": (
        lambda: NadarayaWatsonClassifier(bandwidth=1.0).fit(X, [1, "a"] * 20),
        r"numpy.array\(y, dtype=object\).astype\(str\)",
        lambda: NadarayaWatsonClassifier(bandwidth=1.0).fit(
            X, np.array([1, "a"] * 20, dtype=object).astype(str)
        ),
    ),
    "missing labels": (
        lambda: NadarayaWatsonClassifier(bandwidth=1.0).fit(X, [None, *LABELS[1:]]),
        "drop those rows",
        lambda: NadarayaWatsonClassifier(bandwidth=1.0).fit(X[1:], LABELS[1:]),
    ),
    "bounds the wrong way round": (
        lambda: ProductKernelDensity(bounds=(1, 0)).fit(X),
        r"a pair \(lower, upper\) with lower < upper",
        lambda: ProductKernelDensity(bounds=(-9, 9)).fit(X),
    ),
    "no list of quantiles": (
        lambda: ConditionalKernelDensity(bandwidth=1.0, target_bandwidth=0.1)
        .fit(X, Y)
        .predict_quantiles(X, "half"),
        "pass a list of at least one number",
        lambda: ConditionalKernelDensity(bandwidth=1.0, target_bandwidth=0.1)
        .fit(X, Y)
        .predict_quantiles(X, [0.5]),
    ),
    "one row for leave-one-out": (
        lambda: select_bandwidth(X[:1], Y[:1, None], Gaussian()),
        "pass more rows, or a number",
        lambda: select_bandwidth(X, Y[:, None], Gaussian()),
    ),
    # tables
    "numbers with question marks": (
        lambda: attention().fit(texts.assign(size=[*map(str, range(39)), "?"]), Y),
        r"pandas.to_numeric\(X\['size'\], errors='coerce'\)",
        lambda: attention().fit(
            texts.assign(
                size=pd.to_numeric(pd.Series([*map(str, range(39)), "?"]), errors="coerce")
            ),
            Y,
        ),
    ),
    "other columns to predict": (
        lambda: attention().fit(X, Y).predict(X[:, :1]),
        "expecting 2 features|same columns",
        lambda: attention().fit(X, Y).predict(X),
    ),
    "a lazy frame": (
        lambda: attention().fit(polars_rows.lazy(), Y),
        r"pass what its collect\(\) returns",
        lambda: attention().fit(polars_rows.lazy().collect(), Y),
    ),
    "two columns of one name": (
        lambda: attention().fit(pd.DataFrame(X, columns=["a", "a"]), Y),
        "rename them",
        lambda: attention().fit(pd.DataFrame(X, columns=["a", "b"]), Y),
    ),
    "folds without rows": (
        lambda: attention(n_folds=21).fit(X, Y),
        "pass a smaller n_folds",
        lambda: attention(n_folds=5).fit(X, Y),
    ),
    "an own bandwidth without its encoding": (
        lambda: attention(bandwidth=1.0).fit(X, Y),
        "pass encodings='standard'",
        lambda: attention(bandwidth=1.0, encodings="standard").fit(X, Y),
    ),
    "a kernel without a solution": (
        lambda: attention(kernel="epanechnikov").fit(X, Y),
        "or readout='average'",
        lambda: attention(kernel="epanechnikov", readout="average").fit(X, Y),
    ),
    "missing classes of a table": (
        lambda: KernelAttentionClassifier(max_steps=0, boosting=None).fit(X, [None] * 40),
        "drop those rows|missing",
        lambda: KernelAttentionClassifier(max_steps=0, boosting=None).fit(X, LABELS),
    ),
    "an odd number of random features": (
        lambda: RandomFourierFeatures(n_components=-1).fit(X),
        "pass an",
        lambda: RandomFourierFeatures(n_components=8).fit(X),
    ),
    # series
    "gaps in a series": (
        lambda: forecaster().fit(with_gap),
        "pass missing='interpolate' or missing='seasonal'",
        lambda: forecaster(missing="interpolate").fit(with_gap),
    ),
    "gaps that are filled by the user": (
        lambda: forecaster().fit(with_gap),
        "or fill them",
        lambda: forecaster().fit(with_gap.ffill()),
    ),
    "a season in a gap": (
        lambda: forecaster(missing="interpolate").fit(season_lost),
        "pass missing='seasonal'",
        lambda: forecaster(missing="seasonal").fit(season_lost),
    ),
    "steps that an index lacks": (
        lambda: forecaster().fit(SALES.drop(MONTHS[[5, 6]])),
        "Pass missing='zero'",
        lambda: forecaster(missing="zero").fit(SALES.drop(MONTHS[[5, 6]])),
    ),
    "an unsorted index": (
        lambda: forecaster().fit(SALES[::-1]),
        r"as sort_index\(\) does",
        lambda: forecaster().fit(SALES[::-1].sort_index()),
    ),
    "repeated times": (
        lambda: forecaster().fit(pd.concat([SALES, SALES])),
        "a mean by groupby",
        lambda: forecaster().fit(pd.concat([SALES, SALES]).groupby(level=0).mean()),
    ),
    "rows of stores": (
        lambda: forecaster().fit(ROWS),
        "'unique_id' is the series, 'ds' the date and 'y' the value",
        lambda: forecaster().fit(
            ROWS.rename(columns={"store": "unique_id", "month": "ds", "sales": "y"})
        ),
    ),
    "a column of dates": (
        lambda: forecaster().fit(ROWS[:48].drop(columns="store")),
        r"make them the index, X.set_index\('month'\)",
        lambda: forecaster().fit(ROWS[:48].drop(columns="store").set_index("month")),
    ),
    "a column of dates in polars": (
        lambda: forecaster().fit(pl.from_pandas(ROWS[:48].drop(columns="store"))),
        r"rename it, X.rename\({'month': 'ds'}\)",
        lambda: forecaster().fit(
            pl.from_pandas(ROWS[:48].drop(columns="store")).rename({"month": "ds"})
        ),
    ),
    "dates of days first": (
        lambda: forecaster().fit(SALES.set_axis(MONTHS.strftime("%d.%m.%Y"))),
        r"pandas.to_datetime\(index.map\(str\)\), with dayfirst=True",
        lambda: forecaster().fit(
            SALES.set_axis(
                pd.to_datetime(MONTHS.strftime("%d.%m.%Y").map(str), dayfirst=True)
            )
        ),
    ),
    "series before features": (
        lambda: forecaster().fit(SALES, PRICE),
        r"the order is fit\(X, y\)",
        lambda: forecaster().fit(PRICE, SALES),
    ),
    "a forecast without its features": (
        lambda: forecaster().fit(PRICE[:45], SALES[:45]).predict(),
        "pass these as columns of X, with a row for each step",
        lambda: forecaster().fit(PRICE[:45], SALES[:45]).predict(PRICE[45:]),
    ),
    "a backtest without its features": (
        lambda: forecaster().fit(PRICE, SALES).backtest(SALES),
        "pass these as columns of X.*and the series as y",
        lambda: forecaster().fit(PRICE, SALES).backtest(PRICE, SALES),
    ),
    "a date before the end": (
        lambda: forecaster().fit(SALES).predict("2019"),
        "pass a later date",
        lambda: forecaster().fit(SALES).predict("2022-03"),
    ),
    "no date": (
        lambda: forecaster().fit(SALES).predict("soon"),
        "pass one such as '2024-06'",
        lambda: forecaster().fit(SALES).predict("2024-06"),
    ),
    "a date with a time zone": (
        lambda: forecaster().fit(SALES).predict(pd.Timestamp("2022-03-01", tz="UTC")),
        r"remove it by tz_localize\(None\)",
        lambda: forecaster()
        .fit(SALES)
        .predict(pd.Timestamp("2022-03-01", tz="UTC").tz_localize(None)),
    ),
    "later observations with a gap": (
        lambda: forecaster().fit(SALES[:40]).update(SALES[42:]),
        "pass the observations that follow, without gap",
        lambda: forecaster().fit(SALES[:40]).update(SALES[40:]),
    ),
    "a horizon beyond the series": (
        lambda: forecaster(30).fit(SALES),
        "Pass longer series or a smaller horizon",
        lambda: forecaster(12).fit(SALES),
    ),
    "a lookback beyond the series": (
        lambda: forecaster(lookback=45).fit(SALES),
        "a lookback of at most 41",
        lambda: forecaster(lookback=41).fit(SALES),
    ),
    "logarithms of negative values": (
        lambda: TransformerForecaster(2, log=True).fit(SALES - 50),
        "pass log='auto'",
        lambda: TransformerForecaster(2, log="auto").fit(SALES - 50),
    ),
    "only effects of features": (
        lambda: TransformerForecaster(2, candidates=["features"]).fit(PRICE, SALES),
        "Add some, such as 'classical'",
        lambda: TransformerForecaster(2, candidates=["features", "classical"]).fit(
            PRICE, SALES
        ),
    ),
    "a scale of 0": (
        lambda: mase([1.0, 2.0], [1.0, 2.0], 0.0),
        "pass a number greater than 0",
        lambda: mase([1.0, 2.0], [1.0, 2.0], 0.5),
    ),
    "a season as long as the series": (
        lambda: naive_scale([1.0, 2.0], season_length=2),
        "pass a longer series",
        lambda: naive_scale([1.0, 2.0, 3.0], season_length=2),
    ),
    # texts
    "one text in the place of a list": (
        lambda: learn_vocabulary("words", "a b c"),
        "pass a list of texts",
        lambda: learn_vocabulary("words", ["a b c"]),
    ),
    "ids without a list": (
        lambda: pad([5, 6]),
        r"pass \[\[5, 6\], \[7\]\]",
        lambda: pad([[5, 6], [7]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REMEDIES)
def test_a_remedy_works(case):
    call, remedy, follow = REMEDIES[case]
    # Warnings are errors in the tests.
    with pytest.raises((ValueError, TypeError, NotImplementedError, UserWarning), match=remedy):
        call()
    follow()

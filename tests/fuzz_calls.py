"""Calls of public names with data that are hardly ever passed, drawn at random."""

import copy
import functools
import inspect
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
import torch
from every_estimator import data_for
from sklearn.metrics.pairwise import rbf_kernel

import sklearn_attention as package
from sklearn_attention import attend, attention_weights, bandwidth, kernels, text
from sklearn_attention.attention import (
    LeaveOneOut,
    attend_gradient,
    attend_local,
    attention_sums,
    local_rows,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel
from sklearn_attention.text._check import check_sequences
from sklearn_attention.text._learn import TOKENIZERS

N = 12  # rows of tables
PLAIN = "plain"  # what is finite, moderate and numeric
# Values that hardly any parameter takes.
NONSENSE = ["bad", -1, 0, np.nan, np.inf, None, [], {}, (1, 2), np.arange(3), object()]
NONSENSE += [1e300, 10**30]


@dataclass
class Call:
    """A call to be made, and what is promised of it."""

    name: str
    call: Any
    given: dict = field(default_factory=dict)  # what it is given, by names of what was drawn
    moderate: bool = True  # whether all of that is finite, moderate and numeric
    n_rows: int | None = None  # rows of the result
    model: Any = None  # a fitted estimator, which stays as it is if the call fails

    def __str__(self):
        given = ", ".join(f"{key}={value}" for key, value in self.given.items())
        return f"{self.name}({given})"


class Draw:
    """Draws inputs by name, and keeps account of them."""

    def __init__(self, rng):
        self.rng, self.given, self.moderate = rng, {}, True

    def one_of(self, items):
        return items[self.rng.integers(len(items))]

    def often(self, share=0.5):
        return self.rng.random() < share

    def input(self, key, makers, plain=0.4):
        """An input, often a plain one."""
        name = PLAIN if self.often(plain) else self.one_of(list(makers))
        self.given[key] = name
        self.moderate &= name in MODERATE
        return makers[name](self.rng)

    def option(self, key, nonsense=0.15):
        value = self.one_of(NONSENSE if self.often(nonsense) else VALUES[key])
        self.given[key] = repr(value)
        # A tiny or huge number is no mistake, but what comes of it may be.
        numbers = np.abs(value) if isinstance(value, float | np.ndarray) else 1.0
        self.moderate &= bool(np.all((numbers >= 1e-3) & (numbers <= 1e3)))
        return value

    def options(self, function, most=2, but=()):
        """Some of the optional parameters of a function."""
        known = [name for name in optional(function) if name in VALUES and name not in but]
        some = self.rng.permutation(known)[: self.rng.integers(most + 1)]
        return {str(name): self.option(str(name)) for name in some}


def parameters(function):
    return inspect.signature(function).parameters


def optional(function):
    empty = inspect.Parameter.empty
    return [name for name, own in parameters(function).items() if own.default is not empty]


# Inputs: numbers of some shape, in every form; then what is special to tables, targets, ...


def _last(value):
    def spoil(x):
        x = x.copy()
        x[-1] = value
        return x

    return spoil


def _read_only(x):
    x.flags.writeable = False
    return x


def _typed(dtype):
    return lambda x: abs(3 * x).astype(dtype)


NUMBERS = {
    PLAIN: lambda x: x,
    **{f"of {t}": _typed(t) for t in ("i1", "i4", "i8", "u1", "u4", "f2", "f4", ">f8")},
    "of f16": _typed(np.longdouble),
    "bool": lambda x: x > 0,
    "list": np.ndarray.tolist,
    "read-only": _read_only,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::-2],
    "masked": np.ma.array,
    "duplicates": np.round,
    "constant": lambda x: x * 0 + 3,
    "more rows": lambda x: np.concatenate([x, x[:7]]),
    "tensor": torch.tensor,
    "one row": lambda x: x[:1],
    "two rows": lambda x: x[:2],
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x.reshape(len(x), -1)[:, :0],
    "3-D": lambda x: x.reshape(len(x), -1, 1),
    "scalar": lambda x: 3.0,
    "ragged": lambda x: [*x.tolist(), [1.0, [2.0, 3.0]]],
    "empty list": lambda x: [],
    "dict": lambda x: {"a": [1.0, 2.0]},
    "None": lambda x: None,
    "text": lambda x: "text",
    "sparse": lambda x: scipy.sparse.csr_array(x.reshape(len(x), -1)),
    "complex": lambda x: x + 1j,
    "objects": lambda x: x.astype(object),
    "odd objects": lambda x: np.where(x > 0, None, x.astype(object)),
    "pandas.NA": lambda x: np.where(x > 0, pd.NA, x.astype(object)),
    "strings": lambda x: x.astype(str),
    "dates": lambda x: x.astype("M8[D]"),
    "tensor with gradients": lambda x: torch.tensor(x, requires_grad=True),
    "records": lambda x: np.rec.fromarrays(np.atleast_2d(x.T)),
    "NaN": _last(np.nan),
    "inf": _last(-np.inf),
    "1e300": _last(1e300),
    "1e160": _last(1e160),
    "subnormal": _last(5e-324),
    "all subnormal": lambda x: x * 1e-310,
    "all 1e300": lambda x: x * 1e300,
}


def _numbers(shape, **others):
    """Makers of such numbers, and of others that are made of rows of these."""
    makers = NUMBERS | others
    return {name: _made(make, shape) for name, make in makers.items()}


def _made(make, shape):
    return lambda rng: make(rng.normal(size=shape))


def _frame(**columns):
    def make(X):
        frame = pd.DataFrame(X, columns=["a", "b"])
        return frame.assign(**{name: column(len(X)) for name, column in columns.items()})

    return make


def _letters(n):
    return np.resize(list("bac"), n)


def _polars(frame):
    return pl.DataFrame({str(name): column.tolist() for name, column in frame.items()})


TABLES = _numbers((N, 2)) | {
    name: _made(make, (N, 2))
    for name, make in {
        "frame": _frame(),
        "one column": lambda X: X[:, :1],
        "1-D": lambda X: X[:, 0],
        "frame of letters": _frame(letter=_letters),
        "frame of categories": _frame(kind=lambda n: pd.Categorical(_letters(n))),
        "frame of order": _frame(
            kind=lambda n: pd.Categorical(_letters(n), list("abc"), ordered=True)
        ),
        "frame of nullables": _frame(x=lambda n: pd.array([1, None] * (n // 2), "Int64")),
        "frame of dates": _frame(day=lambda n: pd.date_range("2020", periods=n)),
        "frame of objects": _frame(thing=lambda n: [object()] * n),
        "frame of Decimals": _frame(x=lambda n: [Decimal("1.5"), None] * (n // 2)),
        "cells": lambda X: _frame(letter=_letters)(X).to_numpy(),
        "polars": lambda X: _polars(_frame(letter=_letters)(X)),
        "nested": lambda X: pd.DataFrame({"dim_0": [pd.Series(row) for row in X]}),
        "frame of one name": lambda X: pd.DataFrame(X, columns=["x", "x"]),
    }.items()
}
TARGETS = _numbers(
    N,
    **{
        "classes": lambda y: np.resize(["a", "b"], len(y)),
        "classes of two types": lambda y: [["a", True], ["b", False]] * (len(y) // 2),
        "two outputs": lambda y: np.column_stack([y, -y]),
        "column": lambda y: y[:, None],
        "frame": pd.Series,
        "texts and pandas.NA": lambda y: pd.Series(np.resize(["a", "b", pd.NA], len(y))),
        "nullables": lambda y: pd.array([1, None] * (len(y) // 2), "Int64"),
        "Decimals": lambda y: [Decimal(k % 3) for k in range(len(y))],
        "periods": lambda y: pd.period_range("2020-01", periods=len(y), freq="M"),
        "mixed": lambda y: np.resize(np.array([1, "a", True], dtype=object), len(y)),
        "short": lambda y: y[1:],
    },
)
WEIGHTS = _numbers(N) | _numbers(
    N,
    **{
        PLAIN: lambda w: None,
        "ones": np.ones_like,
        "counts": lambda w: np.arange(len(w)) % 3,
        "one row": lambda w: np.eye(1, len(w))[0],
        "zero": np.zeros_like,
        "negative": lambda w: w,
        "all 1e300": lambda w: np.full(len(w), 1.7e308),
        "all subnormal": lambda w: np.full(len(w), 5e-324),
        "short": lambda w: np.ones(len(w) - 1),
        "column": lambda w: np.ones((len(w), 1)),
        "Decimals": lambda w: [Decimal(1)] * len(w),
    },
)
_DAYS = functools.partial(pd.date_range, "2024-01-01")


def _panel(x):
    ids, days = ["a"] * 40 + ["b"] * 40, [*_DAYS(periods=40)] * 2
    return pd.DataFrame({"unique_id": ids, "ds": days, "y": np.append(x, -x)})


def _indexed(index):
    return lambda x: pd.Series(x, index)


SERIES = _numbers(
    40,
    **{
        "frame": _indexed(_DAYS(periods=40)),
        "two series": lambda x: pd.DataFrame({"u": x, "v": -x}, _DAYS(periods=40)),
        "arrays": lambda x: [x, x[:30]],
        "dict of series": lambda x: {"a": x, "b": x[:35]},
        "gaps in time": lambda x: pd.Series(x[1:], _DAYS(periods=40).delete(7)),
        "unsorted": _indexed(_DAYS(periods=40)[::-1]),
        "twice": _indexed(_DAYS(periods=20).repeat(2)),
        "NaT": _indexed([pd.NaT, *_DAYS(periods=39)]),
        "panel": _panel,
        "polars": lambda x: _polars(_panel(x)),
        "polars series": lambda x: pl.Series("y", x),
        "polars columns": lambda x: _polars(_panel(x)[:40].drop(columns="unique_id")),
        "lazy": lambda x: _polars(_panel(x)).lazy(),
        "float years": _indexed(np.arange(1980.0, 2020.0)),
        "half years": _indexed(np.arange(40) / 2),
        "text dates": _indexed(_DAYS(periods=40).astype(str)),
        "odd dates": lambda x: _panel(x).assign(ds=["2024-01-01", 3, None, "?"] * 20),
        "short": lambda x: x[:3],
        "all NaN": lambda x: x * np.nan,
    },
)
TEXTS = {
    PLAIN: lambda rng: ["".join(rng.choice(list("abc "), 6)) for _ in range(6)],
    "ids": lambda rng: [rng.integers(0, 5, 4) for _ in range(6)],
    "frame": lambda rng: pd.Series(["ab", "ba", "aab"]),
    "emoji": lambda rng: ["\U0001f600é\x00", "\ud7ff ", "ß" * 9],
    "empty": lambda rng: ["", "ab", ""],
    "no rows": lambda rng: [],
    "one row": lambda rng: ["abab"],
    "text": lambda rng: "abab",
    "bytes": lambda rng: [b"ab", b"ba"],
    "numbers": lambda rng: [1, 2, 3],
    "negative ids": lambda rng: [[-1, 2], [3]],
    "huge ids": lambda rng: [[2**62], [1]],
    "floats": lambda rng: [[0.5], [1.0]],
    "mixed": lambda rng: ["ab", None, 3, ["a"]],
    "None": lambda rng: None,
    "3-D": TABLES["3-D"],
    "NaN": lambda rng: ["ab", np.nan],
}
# Of these, results are finite; "no rows" and others that are refused are none.
MODERATE = {
    PLAIN, "of i1", "of i4", "of i8", "of u1", "of u4", "of f4", "of >f8", "bool", "list",
    "read-only", "strided", "masked", "frame", "more rows", "tensor", "classes",
    "two outputs", "column", "ones", "counts", "two series", "arrays", "dict of series",
    "panel", "polars series", "polars columns", "float years", "text dates",
}  # fmt: skip

# Values of parameters by their names, whatever has them: most are taken, some are not.
_KERNELS = [
    "gaussian", "epanechnikov", "laplacian", "matern32", "boxcar", "silverman", "linear",
    "cosine_similarity", "scaled_dot_product", "periodic", kernels.ProductKernel("gaussian"),
    kernels.Polynomial(), kernels.AitchisonAitken(3), rbf_kernel, kernels.Gaussian,
]  # fmt: skip
VALUES = {
    "algorithm": ["auto", "dense"],
    "architecture": [package.Architecture(norm="post"), package.Architecture(positions="x")],
    "bandwidth": [
        1.0, 0.3, [0.5, 2.0], np.array([1, 1]), 1e-300, 1e300, 5e-324, [1.0], "x", "scott",
        "silverman", "penalized-loo", "gcv", package.AdaptiveBandwidth(3),
    ],
    "bandwidths": [[1.0], [], "x"],
    "batch_size": [3, 1],
    "bounds": [None, "auto", (0, None), [(0, None)] * 2, (0, 0), (-1e9, None), (1, 0)],
    "candidates": [[], ["x"], "x"],
    "categorical_features": ["from_dtype", [0], [True, False], ["letter"], [9], "x"],
    "class_weight": ["balanced", {"a": 2.0}, "x"],
    "coverage": [0.5, 0.0, 1.0, 2.0, [0.5, 0.9]],
    "criterion": ["loo", "gcv", "x"],
    "degree": [0, 1, 2, 3, 4, 1.0, True],
    "structure": ["auto", "joint", "additive", "sum", None],
    "dropout": [0.1, 1.0, -0.5],
    "empty": ["nearest", "nan", "mean"],
    "encodings": [("standard",), ("x",), ()],
    "gap": [0, 1, 2, 3, 50, -2, 0.5],
    "horizon": [1, 50],
    "kernel": _KERNELS,
    "kernels": [["gaussian"], ["x"], []],
    "label_smoothing": [0.0, 2.0],
    "learning_rate": [0.1, "x"],
    "leave_one_out": [True, False, np.arange(N), np.full(N, -1), [50], np.zeros(N)],
    "length": [None, 3, 0, 100, 10**15],
    "log": [True, False, "x"],
    "lookback": [2, 39, 50],
    "loss": ["huber", "quantile", "x"],
    "max_epochs": [1],
    "max_tokens": [5, 1, 10**9],
    "min_count": [1, 2, 0.5],
    "missing": ["interpolate", "seasonal", "zero", "x"],
    "n_beams": [1, 2, 0],
    "n_components": [1, 3, 5],
    "n_heads": [2, 3],
    "n_layers": [1, 2],
    "normalize": ["standard", "seasonal", "x"],
    "orthogonal": [True, False],
    "per_feature": [True, False, "auto"],
    "pooling": ["cls", "last", "x"],
    "quantile": [0.9, [0.1, 0.5, 0.9], [0.1, 0.9], [], "x"],
    "quantiles": [[0.1, 0.9], 0.5, [], [0.0], [2.0], "x", [np.nan]],
    "query_scale": [None, np.ones(N), np.full(N, 1e-300), np.ones(3), -np.ones(N)],
    "random_state": [1, "x"],
    "readout": ["solve", "average", "x"],
    "ridge": [1.0, "learned", -1.0],
    "rows": [None, [0, 3], [99], [-1], np.ones(N, bool)],
    "rule": ["scott", "silverman", "normal-reference", "normal"],
    "scale": [1.0, 0.7, 2.0, [0.5, 2.0], 0.0, np.ones((2, N)), [[1.0]], "x"],
    "season_length": [2, 0.5, 100],
    "sensitivity": ["auto", 0.0, 0.5, 2.0],
    "target_kernel": _KERNELS,
    "thresholds": [0.0, [0.0, 1.0], np.zeros((N, 2)), "x", []],
    "tokenizer": [*TOKENIZERS, "auto", "ids", "x"],
    "tokens": ["steps", "features", "text", "x"],
    "training": [package.Training(warm_up="x"), package.Training(optimizer="adam")],
    "widen": [False, True, "yes"],
}  # fmt: skip
_OF_KERNELS = [1, 2, 0.5, 1e-300, True, "x", [1.0, 2.0]]
# What is drawn for arguments that are data.
DATA = {"queries": TABLES, "keys": TABLES, "values": TARGETS, "X": TABLES, "y": TARGETS}
DATA["sample_weight"] = WEIGHTS


def sums(draw):
    """A function of attention."""
    function = draw.one_of(
        [attend, attend_local, attend_gradient, attention_sums, attention_weights, local_rows]
    )
    data = {
        name: draw.input(name, DATA[name], 0.6) for name in parameters(function) if name in DATA
    }
    options = draw.options(function)
    # Their logarithms are infinite where there is no weight.
    draw.moderate &= function is not attention_sums
    draw.moderate &= "empty" not in options and "leave_one_out" not in options

    def call():
        found = function(**data, **options)
        if function is attend:
            return found[0]
        return found._replace(log_normalizers=None) if function is attend_local else found

    return Call(function.__name__, call)


def left_out(draw):
    """Predictions of every row from all others."""
    X, y = draw.input("X", TABLES, 0.6), draw.input("values", TARGETS, 0.7)
    weights = draw.input("sample_weight", WEIGHTS, 0.7)
    options = draw.options(LeaveOneOut, but=["kernel"])
    kernel, scale = draw.option("kernel", nonsense=0.05), draw.option("scale", nonsense=0.05)
    # Sums of similarities of both signs, or of rows of zeros, may be 0.
    draw.moderate &= repr(kernel) != "'cosine_similarity'"
    draw.moderate &= "gap" not in options and "empty" not in options
    method = draw.one_of(["scores", "predictions"])

    def call():
        found = LeaveOneOut(X, y, kernel, sample_weight=weights, **options)
        return getattr(found, method)(scale)

    return Call(f"LeaveOneOut.{method}", call)


def evaluate(draw):
    """A kernel itself, by its name or with parameters of its own."""
    X, Y = draw.input("queries", TABLES), draw.input("keys", TABLES)
    logarithm = draw.often(0.3)
    draw.moderate &= not logarithm
    if draw.often():
        kernel, options = draw.one_of([*KERNELS, *_KERNELS]), {}
    else:
        kernel = draw.one_of(list(KERNELS.values()))
        names = draw.rng.permutation(list(parameters(kernel)))[: draw.rng.integers(3)]
        options = {str(name): draw.one_of(_OF_KERNELS + NONSENSE) for name in names}
        draw.moderate &= not options
    draw.given |= {"kernel": repr(kernel), **options}

    def call():
        found = kernel(**options) if isinstance(kernel, type) else as_kernel(kernel)
        return found.log(X, Y) if logarithm else found(X, Y)

    return Call("kernel", call)


def choose_bandwidth(draw):
    """A bandwidth by a rule."""
    rule, weights = draw.option("rule"), draw.input("sample_weight", WEIGHTS, 0.6)
    X, kernel = draw.input("X", TABLES), kernels.Gaussian()
    call = functools.partial(bandwidth.rule_bandwidth, X, kernel, rule, weights)
    return Call("rule_bandwidth", call)


def read_text(draw):
    """Vocabularies and padding."""
    given, tokenizer = draw.input("sequences", TEXTS), draw.option("tokenizer")
    options, length = draw.options(text.learn_vocabulary), draw.option("length")
    return draw.one_of([
        Call("learn_vocabulary", lambda: text.learn_vocabulary(tokenizer, given, **options)),
        Call("check_sequences", lambda: check_sequences("X", given)),
        Call("pad", lambda: text.pad(given, length=length)),
    ])  # fmt: skip


# Small parameters of estimators; then of those that take longer to fit.
_NETWORK = {"d_model": 4, "n_heads": 1, "n_layers": 1, "max_epochs": 1}
_TEXTS = _NETWORK | {"max_length": 8}
ESTIMATORS = {
    "NadarayaWatsonRegressor": {"bandwidth": 0.5},
    "LocalPolynomialRegressor": {"bandwidth": 0.8},
    "NadarayaWatsonClassifier": {"bandwidth": 0.5},
    "ProductKernelDensity": {"bandwidth": "silverman"},
    "ConditionalKernelDensity": {"bandwidth": 0.5, "target_bandwidth": 0.5},
    "RandomFourierFeatures": {"n_components": 4, "random_state": 0},
    "PositiveRandomFeatures": {"n_components": 4, "random_state": 0},
}
LEARNERS = {
    "NadarayaWatsonCV": {"bandwidths": [0.5, 1.0], "kernels": ["gaussian"]},
    "KernelAttentionRegressor": {"n_folds": 1, "max_steps": 1, "boosting": None},
    "KernelAttentionClassifier": {"n_folds": 1, "max_steps": 1},
    "TransformerRegressor": _NETWORK | {"baseline": False},
    "TransformerClassifier": _NETWORK | {"baseline": False},
    "TransformerLanguageModel": _TEXTS | {"baseline": False},
    "TransformerSeq2Seq": _TEXTS | {"tokenizer": "characters"},
    "KernelForecaster": {"horizon": 2, "lookback": 4, "bandwidth": 1.0, "normalize": "last"},
    "TransformerForecaster": _NETWORK | {"horizon": 2, "lookback": 4, "candidates": None},
}
_METHODS = (
    "attention_maps backtest cdf explain explain_features local_slopes partial_fit perplexity "
    "predict predict_cdf predict_gradient predict_interval predict_proba predict_quantiles "
    "score score_samples smoother_matrix transform update"
).split()
_A_ROW_EACH = "predict", "predict_proba", "smoother_matrix", "transform"


def _inputs(name):
    if name.endswith("Forecaster"):
        return SERIES
    return TEXTS if name in ("TransformerLanguageModel", "TransformerSeq2Seq") else TABLES


@functools.cache
def _fitted(name):
    model = getattr(package, name)(**(ESTIMATORS | LEARNERS)[name])
    if _inputs(name) is not TABLES:
        return model.fit(*data_for(model))
    X, y = np.random.default_rng(0).normal(size=(N, 2)), np.arange(N) % 5.0
    return model.fit(X, np.resize(["a", "b"], N) if name.endswith("Classifier") else y)


def _data(draw, name, function):
    """Data that a method takes: X, and more where it has to be given, or may be."""
    inputs, data = _inputs(name), {}
    for key in parameters(function):
        if key == "X":
            # Forecasts go on from the series that was fitted, unless another is passed.
            if inputs is not SERIES or function.__name__ in (
                "fit",
                "update",
                "score",
                "backtest",
            ):
                data[key] = draw.input(key, inputs)
        elif key == "y" and function.__name__ == "predict_cdf":
            data[key] = draw.option("thresholds")
        elif key == "y" and inputs is TEXTS:
            data[key] = draw.input(key, TEXTS)
        elif key == "y" and name.endswith("Classifier") and draw.often(0.7):
            data[key] = np.resize(["a", "b"], N)
        elif key == "y" and inputs is TABLES:
            data[key] = draw.input(key, TARGETS, 0.7)
        elif key == "sample_weight":
            data[key] = draw.input(key, WEIGHTS, 0.7)
        elif key == "background" and draw.often(0.3):
            data[key] = draw.input(key, TABLES)
        elif key == "class_label" and draw.often(0.1):
            data[key] = draw.one_of(NONSENSE)
            draw.given[key] = repr(data[key])
        elif key in ("quantiles", "coverage") and draw.often(0.7):
            data[key] = draw.option(key)
    return data


def estimate(draw, names=tuple(ESTIMATORS)):
    """A fit, or a method of a fitted estimator."""
    name = draw.one_of(names)
    model = copy.copy(_fitted(name))
    if draw.often(0.4):
        options, data = draw.options(type(model)), _data(draw, name, model.fit)
        try:
            model.set_params(**options)
        except ValueError:
            draw.given["refused"] = "set_params"
        return Call(f"{name}.fit", functools.partial(model.fit, **data), model=model)
    method = draw.one_of([method for method in _METHODS if hasattr(model, method)])
    data = _data(draw, name, getattr(model, method))
    is_plain = draw.given.get("X") == PLAIN and _inputs(name) is TABLES
    n_rows = N if is_plain and method in _A_ROW_EACH else None
    call = lambda: getattr(model, method)(**data)  # noqa: E731
    return Call(f"{name}.{method}", call, n_rows=n_rows, model=model)


CHEAP = [sums, left_out, evaluate, choose_bandwidth, read_text, estimate]
_ALL = [*CHEAP, functools.partial(estimate, names=tuple(LEARNERS))]
_SHARES = np.array([30, 15, 15, 5, 8, 35, 12.0])


def draw_call(rng, *, cheap=False):
    """A call, described by what was drawn for it."""
    draw = Draw(rng)
    shares = _SHARES[: len(CHEAP)] if cheap else _SHARES
    made = (CHEAP if cheap else _ALL)[rng.choice(len(shares), p=shares / shares.sum())](draw)
    made.given, made.moderate = draw.given, draw.moderate
    return made

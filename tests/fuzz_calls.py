"""Calls of public names with data that are hardly ever passed, drawn at random."""

import copy
import functools
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

    def input(self, key, makers, *args, plain=0.4):
        """An input, often a plain one."""
        name = PLAIN if self.often(plain) else self.one_of(list(makers))
        self.given[key] = name
        self.moderate &= name in MODERATE
        return makers[name](self.rng, *args)

    def option(self, key, values, nonsense=0.15):
        value = self.one_of(NONSENSE if self.often(nonsense) else values)
        self.given[key] = repr(value)
        # A tiny or huge number is no mistake, but what comes of it may be.
        numbers = np.abs(value) if isinstance(value, float | np.ndarray) else 1.0
        self.moderate &= bool(np.all((numbers >= 1e-3) & (numbers <= 1e3)))
        return value

    def options(self, values, most=2):
        """Some of the options that a call has."""
        some = self.rng.permutation(list(values))[: self.rng.integers(most + 1)]
        return {str(key): self.option(str(key), values[key]) for key in some}


def _table(rng, n=N, d=2):
    return rng.normal(size=(n, d))


def _cell(value):
    def make(rng, n=N, d=2):
        X = _table(rng, n, d)
        X[rng.integers(n), rng.integers(d)] = value
        return X

    return make


def _read_only(X):
    X.flags.writeable = False
    return X


def _as(convert):
    return lambda rng, n=N, d=2: convert(_table(rng, n, d))


def _typed(dtype):
    return lambda rng, n=N, d=2: abs(rng.normal(size=(n, d)) * 3).astype(dtype)


def _frame(**columns):
    def make(rng, n=N, d=2):
        X = pd.DataFrame(_table(rng, n, d), columns=[f"x{j}" for j in range(d)])
        return X.assign(**{name: make_column(rng, n) for name, make_column in columns.items()})

    return make


def _letters(rng, n):
    return rng.choice(list("abc"), size=n)


def _polars(frame):
    return pl.DataFrame({str(name): column.tolist() for name, column in frame.items()})


def _nested(rng, n=N, d=2):
    cells = [[pd.Series(rng.normal(size=9)) for _ in range(n)] for _ in range(d)]
    return pd.DataFrame({f"dim_{j}": column for j, column in enumerate(cells)})


def _panel(rng):
    ids, days = ["a"] * 40 + ["b"] * 40, [*_DAYS(periods=40)] * 2
    return pd.DataFrame({"unique_id": ids, "ds": days, "y": rng.normal(size=80)})


TABLES = {
    PLAIN: _table,
    **{f"of {t}": _typed(t) for t in ("i1", "i2", "i4", "i8", "u1", "u4", "f2", "f4", ">f8")},
    "bool": _as(lambda X: X > 0),
    "list": _as(np.ndarray.tolist),
    "read-only": _as(_read_only),
    "strided": lambda rng, n=N, d=2: _table(rng, 2 * n, 2 * d)[::2, ::-2],
    "masked": _as(np.ma.array),
    "duplicates": _as(np.round),
    "constant columns": _as(lambda X: X * 0 + 3),
    "frame": _frame(),
    "one column": lambda rng, n=N, d=2: _table(rng, n, 1),
    "one row": lambda rng, n=N, d=2: _table(rng, 1, d),
    "two rows": lambda rng, n=N, d=2: _table(rng, 2, d),
    "more rows": lambda rng, n=N, d=2: _table(rng, n + 7, d),
    "no rows": lambda rng, n=N, d=2: _table(rng, 0, d),
    "no columns": lambda rng, n=N, d=2: _table(rng, n, 0),
    "tensor": _as(torch.tensor),
    "of f16": _typed(np.longdouble),
    "1-D": _as(lambda X: X[:, 0]),
    "3-D": _as(lambda X: X[:, :, None]),
    "scalar": lambda *_: 3.0,
    "ragged": _as(lambda X: [*X.tolist(), [1.0, [2.0, 3.0]]]),
    "empty list": lambda *_: [],
    "dict": lambda *_: {"a": [1.0, 2.0]},
    "None": lambda *_: None,
    "sparse": _as(scipy.sparse.csr_array),
    "sparse matrix": _as(scipy.sparse.coo_matrix),
    "complex": _as(lambda X: X + 1j),
    "objects": _as(lambda X: X.astype(object)),
    "odd objects": _as(lambda X: np.where(X > 0, None, X.astype(object))),
    "strings": _as(lambda X: X.astype(str)),
    "text": lambda *_: "text",
    "dates": _as(lambda X: X.astype("M8[D]")),
    "durations": _as(lambda X: X.astype("m8[s]")),
    "NaN": _cell(np.nan),
    "inf": _cell(-np.inf),
    "1e300": _cell(1e300),
    "1e160": _cell(1e160),
    "subnormal": _cell(5e-324),
    "all subnormal": _as(lambda X: X * 1e-310),
    "all 1e300": _as(lambda X: X * 1e300),
    "frame of letters": _frame(letter=_letters),
    "frame of categories": _frame(kind=lambda rng, n: pd.Categorical(_letters(rng, n))),
    "frame of order": _frame(
        kind=lambda rng, n: pd.Categorical(_letters(rng, n), list("abc"), ordered=True)
    ),
    "frame of nullables": _frame(x=lambda rng, n: pd.array([1, None] * (n // 2), "Int64")),
    "frame of codes": _frame(letter=lambda rng, n: rng.integers(9, size=n)),
    "cells": lambda *args, **kwargs: TABLES["frame of letters"](*args, **kwargs).to_numpy(),
    "frame of dates": _frame(day=lambda rng, n: pd.date_range("2020", periods=n)),
    "frame of objects": _frame(thing=lambda rng, n: [object()] * n),
    "polars": lambda *args, **kwargs: _polars(TABLES["frame of letters"](*args, **kwargs)),
    "nested": lambda rng, n=N, d=2: _nested(rng, n, d),
    "channels first": lambda rng, n=N, d=2: rng.normal(size=(n, d, 9)),
    **{
        f"frame of {name}": _frame(x=lambda rng, n, cells=cells: pd.Series([*cells] * n)[:n])
        for name, cells in {
            "pandas.NA": [1.5, pd.NA, True], "Decimals": [Decimal("1.5"), None],
            "NaT": [pd.NaT, 1], "durations": [pd.Timedelta(1, "h")],
            "periods": [pd.Period("2020-01")], "intervals": [pd.Interval(0, 1)],
        }.items()
    },
    "pandas.NA": _as(lambda X: np.where(X > 0, pd.NA, X.astype(object))),
    "tensor with gradients": _as(lambda X: torch.tensor(X, requires_grad=True)),
    "records": _as(lambda X: np.rec.fromarrays(X.T)),
    "frame of one name": lambda rng, n=N, d=2: pd.DataFrame(_table(rng, n, d), None, ["x"] * d),
}  # fmt: skip


def _of_rows(convert):
    return lambda rng, n=N: convert(rng.normal(size=n))


TARGETS = {
    PLAIN: lambda rng, n=N: rng.normal(size=n),
    "classes": lambda rng, n=N: np.resize(["a", "b"], n),
    "list": _of_rows(np.ndarray.tolist),
    "classes of two types": lambda rng, n=N: [["a", True], ["b", False]] * (n // 2),
    "two outputs": lambda rng, n=N: rng.normal(size=(n, 2)),
    "column": lambda rng, n=N: rng.normal(size=(n, 1)),
    "of i8": _of_rows(lambda y: np.resize([0, 1, 2], len(y))),
    "of f4": _of_rows(lambda y: y.astype("f4")),
    "of f2": _of_rows(lambda y: y.astype("f2")),
    "bool": _of_rows(lambda y: y > 0),
    "constant columns": _of_rows(lambda y: y * 0),
    "frame": _of_rows(pd.Series),
    "masked": _of_rows(np.ma.array),
    "strings": _of_rows(lambda y: y.astype(str)),
    "objects": _of_rows(lambda y: y.astype(object)),
    "odd objects": _of_rows(lambda y: np.where(y > 0, None, y.astype(object))),
    "pandas.NA": _of_rows(lambda y: np.where(y > 0, pd.NA, y.astype(object))),
    "texts and pandas.NA": lambda rng, n=N: pd.Series(np.resize(["a", "b", pd.NA], n)),
    "categories and NaN": lambda rng, n=N: pd.Series(
        np.resize(["a", "b", None], n), dtype="category"
    ),
    "nullables": lambda rng, n=N: pd.array([1, None] * (n // 2), "Int64"),
    "Decimals": lambda rng, n=N: [Decimal(k % 3) for k in range(n)],
    "periods": lambda rng, n=N: pd.period_range("2020-01", periods=n, freq="M"),
    "mixed": lambda rng, n=N: np.resize(np.array([1, "a", True], dtype=object), n),
    "tensor with gradients": _of_rows(lambda y: torch.tensor(y, requires_grad=True)),
    "records": _of_rows(lambda y: np.rec.fromarrays([y, y])),
    "sparse": _of_rows(lambda y: scipy.sparse.csr_array(y[:, None])),
    "complex": _of_rows(lambda y: y + 1j),
    "dates": _of_rows(lambda y: y.astype("M8[D]")),
    "NaN": _of_rows(lambda y: np.append(y[1:], np.nan)),
    "inf": _of_rows(lambda y: np.append(y[1:], np.inf)),
    "1e300": _of_rows(lambda y: np.append(y[1:], 1e300)),
    "all 1e300": _of_rows(lambda y: y * 1e300),
    "all subnormal": _of_rows(lambda y: y * 1e-310),
    "short": _of_rows(lambda y: y[1:]),
    "long": _of_rows(lambda y: np.append(y, y)),
    "no rows": _of_rows(lambda y: y[:0]),
    "no columns": lambda rng, n=N: np.zeros((n, 0)),
    "3-D": lambda rng, n=N: rng.normal(size=(n, 1, 1)),
    "ragged": _of_rows(lambda y: [*y[1:].tolist(), [1.0]]),
    "scalar": lambda *_: 3.0,
    "None": lambda *_: None,
}
WEIGHTS = {
    PLAIN: lambda *_: None,
    "ones": lambda rng, n=N: np.ones(n),
    "counts": lambda rng, n=N: rng.integers(0, 3, n) + np.eye(1, n, dtype=int)[0],
    "one row": lambda rng, n=N: np.eye(1, n)[0],
    "list": lambda rng, n=N: [1.0] * n,
    "zero": lambda rng, n=N: np.zeros(n),
    "negative": lambda rng, n=N: rng.normal(size=n),
    "NaN": lambda rng, n=N: np.append(np.ones(n - 1), np.nan),
    "1e300": lambda rng, n=N: np.append(np.ones(n - 1), 1e300),
    "all 1e300": lambda rng, n=N: np.full(n, 1.7e308),
    "all subnormal": lambda rng, n=N: np.full(n, 5e-324),
    "short": lambda rng, n=N: np.ones(n - 1),
    "column": lambda rng, n=N: np.ones((n, 1)),
    "strings": lambda rng, n=N: ["heavy"] * n,
    "pandas.NA": lambda rng, n=N: [pd.NA, *[1.0] * (n - 1)],
    "None": lambda rng, n=N: [None, *[1.0] * (n - 1)],
    "Decimals": lambda rng, n=N: [Decimal(1)] * n,
    "dates": lambda rng, n=N: pd.date_range("2020", periods=n),
    "tensor with gradients": lambda rng, n=N: torch.ones(n, requires_grad=True),
    "records": lambda rng, n=N: np.rec.fromarrays(np.ones((2, n))),
    "sparse": lambda rng, n=N: scipy.sparse.csr_array(np.ones((n, 1))),
    "scalar": lambda *_: 2.0,
}
_DAYS = functools.partial(pd.date_range, "2024-01-01")
SERIES = {
    PLAIN: lambda rng: np.sin(np.arange(40.0)) + rng.normal(size=40) / 9,
    "frame": lambda rng: pd.Series(rng.normal(size=40), _DAYS(periods=40)),
    "two series": lambda rng: pd.DataFrame(rng.normal(size=(40, 2)), _DAYS(periods=40)),
    "list": lambda rng: rng.normal(size=40).tolist(),
    "arrays": lambda rng: [rng.normal(size=40), rng.normal(size=30)],
    "dict of series": lambda rng: {"a": rng.normal(size=40), "b": rng.normal(size=35)},
    "of i8": lambda rng: rng.integers(0, 9, 40),
    "of f4": lambda rng: rng.normal(size=40).astype("f4"),
    "constant columns": lambda rng: np.full(40, 2.0),
    "bool": lambda rng: np.arange(40) % 2 == 0,
    "gaps in time": lambda rng: pd.Series(np.arange(39.0), _DAYS(periods=40).delete(7)),
    "unsorted": lambda rng: pd.Series(np.arange(40.0), _DAYS(periods=40)[::-1]),
    "twice": lambda rng: pd.Series(np.arange(40.0), _DAYS(periods=20).repeat(2)),
    "NaT": lambda rng: pd.Series(np.arange(9.0), [pd.NaT, *_DAYS(periods=8)]),
    "panel": _panel,
    "polars": lambda rng: _polars(_panel(rng)),
    "polars series": lambda rng: pl.Series("y", rng.normal(size=40)),
    "polars columns": lambda rng: _polars(_panel(rng)[:40].drop(columns="unique_id")),
    "lazy": lambda rng: _polars(_panel(rng)).lazy(),
    "float years": lambda rng: pd.Series(rng.normal(size=40), np.arange(1980.0, 2020.0)),
    "half years": lambda rng: pd.Series(rng.normal(size=40), np.arange(40) / 2),
    "text dates": lambda rng: pd.Series(rng.normal(size=40), _DAYS(periods=40).astype(str)),
    "odd dates": lambda rng: _panel(rng).assign(ds=["2024-01-01", 3, None, "?"] * 20),
    "nested": _nested,
    "short": lambda rng: np.arange(3.0),
    "one row": lambda rng: np.arange(1.0),
    "no rows": lambda rng: np.arange(0.0),
    "NaN": lambda rng: np.append(rng.normal(size=39), np.nan),
    "all NaN": lambda rng: np.full(40, np.nan),
    "inf": lambda rng: np.append(rng.normal(size=39), np.inf),
    "1e300": lambda rng: np.append(rng.normal(size=39), 1e300),
    "all 1e300": lambda rng: rng.normal(size=40) * 1e300,
    "all subnormal": lambda rng: rng.normal(size=40) * 1e-310,
    **{
        name: TABLES[name]
        for name in (
            "2-D", "3-D", "None", "scalar", "text", "strings", "complex", "dates", "objects",
            "odd objects", "sparse", "dict", "ragged", "empty list", "frame of letters",
        )
        if name in TABLES
    },
}  # fmt: skip
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
    "nested": lambda rng: [[["a"]], "b"],
    "None": lambda rng: None,
    "3-D": TABLES["3-D"],
    "NaN": lambda rng: ["ab", np.nan],
}
# Of these, results are finite; "no rows" and others that are refused are none.
MODERATE = {
    PLAIN, "of i1", "of i2", "of i4", "of i8", "of u1", "of u4", "of f4", "of >f8", "bool",
    "list", "read-only", "strided", "masked", "frame", "more rows", "tensor", "classes",
    "two outputs", "column", "ones", "counts", "two series", "arrays", "dict of series",
    "panel", "polars series", "polars columns", "float years", "text dates",
}  # fmt: skip
_KERNELS = [
    "gaussian", "epanechnikov", "laplacian", "matern32", "boxcar", "silverman", "linear",
    "cosine_similarity", "scaled_dot_product", "periodic", kernels.ProductKernel("gaussian"),
    kernels.Polynomial(), kernels.AitchisonAitken(3), rbf_kernel, kernels.Gaussian,
]  # fmt: skip
_OPTIONS = {
    "bandwidth": [1.0, 0.3, [0.5, 2.0], np.array([1, 1]), 1e-300, 1e300, 5e-324, [1.0], "x"],
    "kernel": _KERNELS,
    "empty": ["nearest", "nan", "mean"],
    "algorithm": ["auto", "dense"],
    "leave_one_out": [True, False, np.arange(N), np.full(N, -1), [50], np.zeros(N)],
    "query_scale": [None, np.ones(N), np.full(N, 1e-300), np.ones(3), -np.ones(N)],
    "degree": [0, 1, 2, 3, 4, 1.0, True],
}


def _some(*names):
    return {name: _OPTIONS[name] for name in names}


_FUNCTIONS = {
    attend: _some("bandwidth", "kernel", "empty", "algorithm", "leave_one_out", "query_scale"),
    attend_local: _some(*_OPTIONS) | {"degree": [1, 2, 3, 0]},
    attend_gradient: _some("bandwidth", "kernel"),
    attention_sums: _some("bandwidth", "kernel", "empty", "algorithm"),
    attention_weights: _some("bandwidth", "kernel", "empty", "leave_one_out", "query_scale"),
    local_rows: _some("bandwidth", "kernel", "empty", "degree", "query_scale"),
}


def sums(draw):
    """A function of attention."""
    function = draw.one_of(list(_FUNCTIONS))
    tables = [draw.input("queries", TABLES), draw.input("keys", TABLES, plain=0.6)]
    if function is not attention_weights:
        tables.append(draw.input("values", TARGETS, plain=0.6))
    weights = draw.input("sample_weight", WEIGHTS, plain=0.7)
    options = draw.options(_FUNCTIONS[function])
    # Their logarithms are infinite where there is no weight.
    draw.moderate &= function is not attention_sums
    draw.moderate &= "empty" not in options and "leave_one_out" not in options

    def call():
        found = function(*tables, sample_weight=weights, **options)
        if function is attend:
            return found[0]
        return found._replace(log_normalizers=None) if function is attend_local else found

    return Call(function.__name__, call)


def left_out(draw):
    """Predictions of every row from all others."""
    X, y = draw.input("X", TABLES), draw.input("values", TARGETS, plain=0.6)
    weights = draw.input("sample_weight", WEIGHTS, plain=0.6)
    options = draw.options(
        _some("bandwidth", "degree", "empty", "algorithm")
        | {"gap": [0, 1, 3, 50, -2, 0.5], "rows": [None, [0, 3], [99], [-1], np.ones(N, bool)]}
        | {"widen": [False, True, "yes"]}
    )
    kernel = draw.option("kernel", _KERNELS, nonsense=0.05)
    draw.moderate &= "gap" not in options and "empty" not in options
    scale = draw.option("scale", [1.0, [0.5, 2.0], 0.0, np.ones((2, N)), [[1.0]], "x"])
    method = draw.one_of(["scores", "predictions"])

    def call():
        found = LeaveOneOut(X, y, kernel, sample_weight=weights, **options)
        return getattr(found, method)(scale)

    return Call(f"LeaveOneOut.{method}", call)


def evaluate(draw):
    """A kernel itself."""
    kernel = draw.option("kernel", [*KERNELS, *_KERNELS])
    X, Y = draw.input("queries", TABLES), draw.input("keys", TABLES)
    logarithm = draw.often(0.3)
    draw.moderate &= not logarithm

    def call():
        found = as_kernel(kernel)
        return found.log(X, Y) if logarithm else found(X, Y)

    return Call("kernel", call)


def make_kernel(draw):
    """A kernel with parameters of its own."""
    kind, names = draw.one_of([
        (kernels.Periodic, ("period", "length_scale")),
        (kernels.LocallyPeriodic, ("period", "length_scale")),
        (kernels.RationalQuadratic, ("alpha",)),
        (kernels.Polynomial, ("degree", "coef0")),
        (kernels.AitchisonAitken, ("n_levels", "lam")),
        (kernels.LiRacine, ("lam",)),
        (kernels.WangVanRyzin, ("lam",)),
        (kernels.Constant, ("value",)),
        (kernels.Linear, ("center",)),
    ])  # fmt: skip
    values = [1, 2, 0.5, 1e-300, True, "x", [1.0, 2.0]]
    options = draw.options({name: values for name in names})
    X = draw.input("queries", TABLES)
    draw.moderate &= not options
    return Call(kind.__name__, lambda: kind(**options)(X))


def choose_bandwidth(draw):
    """A bandwidth by a rule."""
    rule = draw.option("rule", ["scott", "silverman", "normal-reference", "normal"])
    weights = draw.input("sample_weight", WEIGHTS, plain=0.6)
    kernel = kernels.Gaussian()
    X = draw.input("X", TABLES)
    call = functools.partial(bandwidth.rule_bandwidth, X, kernel, rule, weights)
    return Call("rule_bandwidth", call)


def read_text(draw):
    """Vocabularies and padding."""
    given = draw.input("sequences", TEXTS)
    options = draw.options({"max_tokens": [5, 1, 10**9], "min_count": [1, 2, 0.5]})
    tokenizer = draw.option("tokenizer", [*TOKENIZERS, "ids"])
    length = draw.option("length", [None, 3, 0, 100, 10**15])
    return draw.one_of([
        Call("learn_vocabulary", lambda: text.learn_vocabulary(tokenizer, given, **options)),
        Call("check_sequences", lambda: check_sequences("X", given)),
        Call("pad", lambda: text.pad(given, length=length)),
    ])  # fmt: skip


_RULES = ["silverman", "scott", 1.0, 0.2, [1.0, 0.5]]
_SMOOTHER = _some("kernel", "empty", "algorithm") | {
    "bandwidth": [*_RULES, "penalized-loo", "loo", "gcv", package.AdaptiveBandwidth(3)],
    "categorical_features": ["from_dtype", [0], [True, False], ["letter"], [9], "x"],
    "gap": [0, 1, 2, 0.5], "per_feature": [True, False, "auto"],
}  # fmt: skip
_NETWORK = {
    "architecture": [package.Architecture(norm="post"), package.Architecture(positions="x")],
    "training": [package.Training(warm_up="x"), package.Training(optimizer="adam")],
    "dropout": [0.1, 1.0, -0.5], "learning_rate": [0.1, "x"], "batch_size": [3, (2, 5), (5, 2)],
    "n_heads": [2, 3], "n_layers": [1, 2], "max_epochs": ["bad", 1], "random_state": [1, "x"],
}  # fmt: skip
_TINY = {"d_model": 4, "n_heads": 1, "n_layers": 1, "max_epochs": 1}
_QUANTILES = [[0.1, 0.9], 0.5, [], [0.0], [2.0], "x", [np.nan]]


@dataclass(frozen=True)
class Kind:
    """An estimator, small parameters, others to be tried, and its methods."""

    name: str
    small: dict
    options: dict
    methods: tuple
    inputs: dict = field(default_factory=lambda: TABLES)

    def make(self, **options):
        return getattr(package, self.name)(**self.small | options)


_OF_REGRESSORS = (
    "predict", "predict_interval", "predict_quantiles", "predict_gradient", "explain",
    "smoother_matrix", "score", "partial_fit", "predict_cdf",
)  # fmt: skip
KINDS = [
    Kind("NadarayaWatsonRegressor", {"bandwidth": 0.5}, _SMOOTHER, _OF_REGRESSORS),
    Kind(
        "LocalPolynomialRegressor",
        {"bandwidth": 0.8},
        _SMOOTHER | {"degree": ["auto", 0, 1, 2, 3, 4]},
        _OF_REGRESSORS,
    ),
    Kind(
        "NadarayaWatsonClassifier",
        {"bandwidth": 0.5},
        _SMOOTHER,
        ("predict", "predict_proba", "score", "explain", "partial_fit"),
    ),
    Kind(
        "ProductKernelDensity",
        {"bandwidth": "silverman"},
        {
            "kernel": _KERNELS,
            "bandwidth": _RULES,
            "bounds": [None, [(0, None)] * 2, (0, 0)],
            "sensitivity": ["auto", 0.0, 0.5, 2.0],
        },
        ("score_samples", "cdf", "score"),
    ),
    Kind(
        "ConditionalKernelDensity",
        {"bandwidth": 0.5, "target_bandwidth": 0.5},
        {
            "kernel": _KERNELS,
            "bandwidth": _RULES,
            "bounds": [None, (-1e9, None), (0, 0)],
            "degree": [0, 1, 2],
            "target_kernel": _KERNELS,
        },
        ("predict", "predict_quantiles", "score_samples", "predict_cdf", "score"),
    ),
    Kind(
        "RandomFourierFeatures",
        {"n_components": 4, "random_state": 0},
        {
            "n_components": [1, 3, 5],
            "kernel": _KERNELS,
            "bandwidth": _RULES,
            "orthogonal": [True, False],
        },
        ("transform",),
    ),
    Kind(
        "PositiveRandomFeatures",
        {"n_components": 4, "random_state": 0},
        {"n_components": [1, 3, 5], "kernel": _KERNELS, "bandwidth": _RULES},
        ("transform",),
    ),
]
LEARNERS = [
    Kind(
        "NadarayaWatsonCV",
        {"bandwidths": [0.5, 1.0], "kernels": ["gaussian"]},
        {
            "criterion": ["loo", "gcv", "x"],
            "bandwidths": [[1.0], [], "x"],
            "kernels": [["x"], []],
        },
        _OF_REGRESSORS,
    ),
    Kind(
        "KernelAttentionRegressor",
        {"n_folds": 1, "max_steps": 1, "boosting": None},
        {
            "readout": ["solve", "average", "x"],
            "encodings": [("standard",), ("x",), ()],
            "ridge": [1.0, "learned"],
            "kernel": _KERNELS,
        },
        (
            "predict",
            "predict_interval",
            "predict_quantiles",
            "explain",
            "score",
            "transform",
            "local_slopes",
        ),
    ),
    Kind(
        "KernelAttentionClassifier",
        {"n_folds": 1, "max_steps": 1},
        {
            "readout": ["solve", "average"],
            "encodings": [("standard",)],
            "ridge": [1.0, -1.0],
            "class_weight": ["balanced", {"a": 2.0}, "x"],
        },
        ("predict", "predict_proba", "score", "explain"),
    ),
    Kind(
        "TransformerRegressor",
        _TINY | {"baseline": False},
        _NETWORK
        | {
            "loss": ["huber", "quantile", "x"],
            "quantile": [0.9, [0.1, 0.5, 0.9], [0.1, 0.9], [], "x"],
            "pooling": ["cls", "last", "x"],
            "tokens": ["steps", "features", "text", "x"],
            "tokenizer": ["auto", "words", "x"],
        },
        ("predict", "transform", "score", "attention_maps", "predict_quantiles"),
    ),
    Kind(
        "TransformerClassifier",
        _TINY | {"baseline": False},
        _NETWORK | {"class_weight": ["balanced", {"a": 2.0}, "x"]},
        ("predict", "predict_proba", "score", "transform"),
    ),
    Kind(
        "TransformerLanguageModel",
        _TINY | {"max_length": 8, "baseline": False},
        _NETWORK | {"tokenizer": ["characters", "words", "x"]},
        ("predict", "score", "perplexity", "transform", "predict_proba"),
        TEXTS,
    ),
    Kind(
        "TransformerSeq2Seq",
        _TINY | {"max_length": 8, "tokenizer": "characters"},
        _NETWORK | {"n_beams": [1, 2, 0], "label_smoothing": [0.0, 2.0]},
        ("predict", "score"),
        TEXTS,
    ),
    Kind(
        "KernelForecaster",
        {"horizon": 2, "lookback": 4, "bandwidth": 1.0, "normalize": "last"},
        {
            "horizon": [1, 50],
            "lookback": [2, 39, 50],
            "normalize": ["standard", "seasonal", "x"],
            "missing": ["interpolate", "seasonal", "zero", "x"],
            "bounds": [(0, None), (1, 0), "x"],
            "season_length": [2, 0.5, 100],
        },
        (
            "predict",
            "predict_interval",
            "predict_quantiles",
            "explain_features",
            "update",
            "score",
            "backtest",
        ),
        SERIES,
    ),
    Kind(
        "TransformerForecaster",
        _TINY | {"horizon": 2, "lookback": 4, "candidates": None},
        _NETWORK
        | {"horizon": [1, 50], "log": [True, False, "x"], "candidates": [[], ["x"], "x"]},
        ("predict", "predict_interval", "update"),
        SERIES,
    ),
]


def _training_data(draw, kind):
    """Names and values of what a fit is given."""
    if kind.inputs is not TABLES:
        given = {"X": draw.input("X", kind.inputs)}
        if kind.name == "TransformerSeq2Seq":
            given["y"] = draw.input("y", TEXTS)
        return given
    given = {"X": draw.input("X", TABLES)}
    if kind.name.endswith("Classifier"):
        # Classes are what is plain for it.
        y = draw.input("y", TARGETS, plain=0.0) if draw.often(0.3) else np.resize(["a", "b"], N)
        given["y"] = y
    elif not kind.name.endswith(("Features", "ProductKernelDensity")):
        given["y"] = draw.input("y", TARGETS, plain=0.6)
    if not kind.name.endswith("Features"):
        given["sample_weight"] = draw.input("sample_weight", WEIGHTS, plain=0.8)
    return given


@functools.cache
def _fitted(kind_index, learner):
    kind = (LEARNERS if learner else KINDS)[kind_index]
    model = kind.make()
    if kind.inputs is not TABLES or kind.name.endswith("Features"):
        return model.fit(*data_for(model))
    X, y = _table(np.random.default_rng(0)), np.random.default_rng(1).normal(size=N)
    y = np.resize(["a", "b"], N) if kind.name.endswith("Classifier") else y
    return model.fit(X) if kind.name == "ProductKernelDensity" else model.fit(X, y)


def estimate(draw, learner=False):
    """A fit, or a method of a fitted estimator."""
    kinds = LEARNERS if learner else KINDS
    index = int(draw.rng.integers(len(kinds)))
    kind = kinds[index]
    model = copy.copy(_fitted(index, learner))
    if draw.often(0.4):
        options, given = draw.options(kind.options), _training_data(draw, kind)
        try:
            model.set_params(**options)
        except ValueError:
            draw.given["refused"] = "set_params"
        return Call(f"{kind.name}.fit", functools.partial(model.fit, **given), model=model)
    method = draw.one_of(kind.methods)
    rows = draw.input("X", kind.inputs)
    further = []
    if method in ("score", "partial_fit", "score_samples") and kind.inputs is TABLES:
        further = [draw.input("y", TARGETS, plain=0.6)]
        further = further if "Density" not in kind.name[:13] else []
    elif method == "predict_quantiles":
        further = [draw.option("quantiles", _QUANTILES)]
    elif method == "predict_cdf":
        further = [draw.option("thresholds", [0.0, [0.0, 1.0], np.zeros((N, 2)), "x", []])]
    elif method == "predict_interval" and draw.often():
        further = [draw.option("coverage", [0.5, 0.0, 1.0, 2.0, [0.5, 0.9]])]
    if kind.inputs is SERIES:
        # Forecasts go on from the series that was fitted, unless another is passed.
        takes_series = method in ("update", "score", "backtest")
        further = [rows, *further] if takes_series else []
        arguments = further if method != "predict_quantiles" else [[0.1, 0.9]]
        return Call(
            f"{kind.name}.{method}", lambda: getattr(model, method)(*arguments), model=model
        )
    is_row = method in ("predict", "predict_proba", "smoother_matrix", "transform")
    n_rows = N if draw.given["X"] == PLAIN and is_row and kind.inputs is TABLES else None
    call = lambda: getattr(model, method)(rows, *further)  # noqa: E731
    return Call(f"{kind.name}.{method}", call, n_rows=n_rows, model=model)


CHEAP = [sums, left_out, evaluate, make_kernel, choose_bandwidth, read_text, estimate]
_ALL = [*CHEAP, functools.partial(estimate, learner=True)]
_SHARES = np.array([30, 15, 10, 5, 5, 8, 35, 12.0])


def draw_call(rng, *, cheap=False):
    """A call, described by what was drawn for it."""
    draw = Draw(rng)
    shares = _SHARES[: len(CHEAP)] if cheap else _SHARES
    made = (CHEAP if cheap else _ALL)[rng.choice(len(shares), p=shares / shares.sum())](draw)
    made.given, made.moderate = draw.given, draw.moderate
    return made

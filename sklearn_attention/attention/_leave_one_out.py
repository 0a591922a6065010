"""Every row predicted from all others, at many bandwidths, from one look at the pairs."""

import functools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_torch_array

from .._blocks import blocks
from ._average import attend
from ._linear_time import linear_time_sums
from ._local_polynomial import attend_local, local_rows
from ._own_key import Predictions, with_own_key
from ._problem import prepare

_DENSE_PAIRS = 2**20


class Scores(NamedTuple):
    """What criteria of a bandwidth are made of, one entry for each bandwidth.

    Attributes
    ----------
    left_out : array of shape (n_scales,)
        Mean squared error of predicting each row from all others.
    fitted : array of shape (n_scales,)
        Mean squared residual.
    trace : array of shape (n_scales,)
        Trace of the smoother matrix, the effective degrees of freedom.
    """

    left_out: Any
    fitted: Any
    trace: Any


class LeaveOneOut:
    """Predicts each row from all others, at one bandwidth after the other.

    What the bandwidths have in common is computed once: checks, and an order of the rows in
    which neighbours lie together. A single feature takes linear time for each bandwidth.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares rows.
    bandwidth : float or ndarray of shape (n_features,), default=1.0
        What the scales asked for later multiply; in the features' own units.
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of keys and of errors. Rows of weight 0 are not predicted.
    rows : int ndarray of shape (n_rows,), default=None
        The rows to predict, from all other rows; None for all.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        As for :func:`attend`; "raise" is "nan" here.
    device : str, default="auto"
        Where to compute.

    Attributes
    ----------
    rows : ndarray of int
        The rows that are predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import LeaveOneOut
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> scores = LeaveOneOut(X, np.sin(9 * X), Gaussian()).scores([0.02, 0.1, 0.5])
    >>> scores.left_out.round(4), scores.trace.round(1)
    (array([0.002 , 0.0664, 0.4755]), array([20.7,  4.5,  1.3]))
    """

    def __init__(
        self,
        X,
        values,
        kernel,
        *,
        bandwidth=1.0,
        degree=0,
        sample_weight=None,
        rows=None,
        empty="nearest",
        device="auto",
    ):
        rows = np.arange(len(X)) if rows is None else np.asarray(rows)
        if sample_weight is not None:
            rows = rows[np.asarray(sample_weight)[rows] > 0]
        self.rows = rows
        self._empty = "nan" if empty == "raise" else empty
        options = {"sample_weight": sample_weight, "device": device}
        self._problem, _, _ = prepare(
            X[rows], X, values, kernel, bandwidth=bandwidth, leave_one_out=rows, **options
        )
        self._given = (X, values, kernel, degree, bandwidth, options)
        weights = self._problem.weights
        # Without what the values have in common, sums of them cancel less.
        self._center = (weights @ self._problem.values) / weights.sum()
        centred = replace(self._problem, values=self._problem.values - self._center)
        self._linear = linear_time_sums(centred, degree)
        self._form = None if kernel.signed is not False else kernel.radial_form(X.shape[1])

    @functools.cached_property
    def _by_distance(self):
        """Predictions from all pairs, for kernels of the distance."""
        from ._algorithms._distances import RadialRows  # torch takes a second to load

        *_, degree, _, options = self._given
        problem = self._problem.tensors(options["device"])
        return RadialRows(problem, self._form, degree, self._empty)

    def scores(self, scales, *, residuals=True, single=False):
        """Errors and degrees of freedom at some bandwidths.

        Parameters
        ----------
        scales : array-like of shape (n_scales,) or (n_scales, n_rows)
            Multiples of the bandwidth; in the second form one for each row.
        residuals : bool, default=True
            Whether `fitted` and `trace` are wanted; they are NaN otherwise.
        single : bool, default=False
            Whether single precision will do, which is faster where it is implemented.

        Returns
        -------
        scores : Scores
            NaN where a row has no prediction.
        """
        scales = np.asarray(scales, dtype=np.float64)
        truth, weights = self._truth, self._row_weights
        found = []
        for predicted in self._predict(scales, residuals, single):
            predicted = Predictions(*map(_to_numpy, predicted))
            errors = [_mean_squares(x, truth, weights) for x in predicted[: 1 + residuals]]
            trace = float(predicted.leverage.sum()) if residuals else math.nan
            found.append((*errors, *[math.nan] * (1 - residuals), trace))
        left_out, fitted, trace = np.array(found, dtype=np.float64).reshape(-1, 3).T
        total = float(weights.sum())
        return Scores(left_out / total, fitted / total, trace)

    def predictions(self, scale=1.0):
        """Each row predicted from all others and from all rows, at one bandwidth.

        Parameters
        ----------
        scale : float or array of shape (n_rows,), default=1.0
            Multiple of the bandwidth.

        Returns
        -------
        predictions : Predictions
            Arrays, in the order of `rows`.
        """
        (found,) = self._predict(np.asarray(scale, dtype=np.float64)[None], True, False)
        return Predictions(*map(_to_numpy, found))

    @property
    def _truth(self):
        return _to_numpy(self._problem.values[self._problem.own_key])

    @property
    def _row_weights(self):
        return _to_numpy(self._problem.weights[self._problem.own_key])

    def _predict(self, scales, residuals, single):
        # In the plane a scale for each row takes all pairs anyway.
        one_scale = scales.ndim == 1 or self._linear is None or len(self._linear.columns) == 1
        if self._linear is not None and one_scale:
            return (self._in_linear_time(scale) for scale in scales)
        if self._form is None:
            return (self._by_attention(scale, residuals) for scale in scales)
        return self._by_distance.predict(scales, residuals, single)

    def _in_linear_time(self, scale):
        keys, problem = self._linear, self._problem
        found = keys.answered(problem, keys.sums(problem, scale), scale, self._empty)
        gram, cross, _ = keys.moments(found.sums, scale)
        own = self._row_weights
        log_total = found.shift + np.log(np.where(found.sums[0, 0] > 0, found.sums[0, 0], 1.0))
        total = np.exp(log_total) / keys.peak
        share = np.divide(own, own + total)
        own_values = self._truth - self._center
        predicted = with_own_key(gram, cross, share, own_values)
        return Predictions(
            predicted.left_out + self._center,
            predicted.fitted + self._center,
            predicted.leverage,
        )

    def _by_attention(self, scale, residuals):
        """For kernels of any kind: the average itself, once for every bandwidth."""
        X, values, kernel, degree, bandwidth, options = self._given
        if scale.ndim:
            raise ValueError(
                f"kernel={kernel!r} does not depend on the distance alone, which a scale of "
                "each row divides: choose a radial kernel such as 'gaussian'."
            )
        options = options | {"bandwidth": scale * np.asarray(bandwidth), "empty": self._empty}
        return by_attention(X, values, kernel, degree, self.rows, residuals, options)


def _to_numpy(x):
    return x.cpu().numpy() if is_torch_array(x) else x


def _mean_squares(predicted, truth, weights):
    errors = predicted - truth
    return float(weights @ (errors * errors).mean(axis=1))


def by_attention(X, values, kernel, degree, rows, residuals, options):
    """Predictions of some rows by :func:`attend` and its like, for any kernel.

    Parameters
    ----------
    X, values : ndarray
        Keys and values, (n, d) and (n, p).
    kernel : Kernel
    degree : int
    rows : ndarray of int
        What to predict.
    residuals : bool
        Whether to compute more than the predictions without each row.
    options : dict
        Bandwidth and other options of :func:`attend`.

    Returns
    -------
    predictions : Predictions
    """
    left_out = _average(X[rows], X, values, kernel, degree, options, leave_one_out=rows)
    fitted, leverage = left_out * math.nan, left_out[:, 0] * math.nan
    if residuals:
        parts = []
        for part in blocks(len(rows), max(1, _DENSE_PAIRS // len(X))):
            found = local_rows(X[rows[part]], X, values, kernel, degree=degree, **options)
            own = rows[part]
            parts.append((found.values, found.smoother[np.arange(len(own)), own]))
        fitted, leverage = (np.concatenate(field) for field in zip(*parts, strict=True))
    return Predictions(left_out, fitted, leverage)


def _average(queries, keys, values, kernel, degree, options, **more):
    if degree == 0:
        return np.asarray(attend(queries, keys, values, kernel, **options, **more)[0])
    fit = attend_local(queries, keys, values, kernel, degree=degree, **options, **more)
    return np.asarray(fit.values)

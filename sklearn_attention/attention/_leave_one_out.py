"""Every row predicted from all others, at many bandwidths."""

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_torch_array

from ._moments import LocalMoments
from ._own_key import Predictions, with_own_key
from ._problem import prepare

# Values of this size have squares that can be summed.
_LARGEST = 1e150


class Scores(NamedTuple):
    """Ingredients of the criteria of a bandwidth, one entry for each bandwidth.

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
    algorithm : {"auto", "dense"}, default="auto"
        "dense" takes all pairs of rows at every bandwidth.
    device : str, default="auto"
        Where to compute.
    gap : int, default=0
        How many rows before and after each are left out with it; for rows in an order, such
        as that of time, in which their noise is alike. Takes all pairs of rows.

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
        algorithm="auto",
        device="auto",
        gap=0,
    ):
        rows = np.arange(len(X)) if rows is None else np.asarray(rows)
        if sample_weight is not None:
            rows = rows[np.asarray(sample_weight)[rows] > 0]
        self.rows = rows
        problem, _, _ = prepare(
            X[rows], X, values, kernel, bandwidth=bandwidth, sample_weight=sample_weight,
            leave_one_out=rows, device=device,
        )  # fmt: skip
        # Without what the values have in common, sums of them cancel less.
        problem, self._center = problem.centred()
        self._own_values = problem.values[problem.own_key]
        self._weights = problem.weights[problem.own_key]
        self._finish = functools.partial(with_own_key, values=self._own_values)
        empty = "nan" if empty == "raise" else empty
        options = {"degree": degree, "empty": empty, "algorithm": algorithm, "device": device}
        self._moments = LocalMoments(problem, **options)
        self._apart = LocalMoments(replace(problem, gap=gap), **options) if gap else None

    def scores(self, scales, *, single=False):
        """Errors and degrees of freedom at some bandwidths.

        Parameters
        ----------
        scales : array-like of shape (n_scales,) or (n_scales, n_rows)
            Multiples of the bandwidth; in the second form one for each row.
        single : bool, default=False
            Whether single precision will do, which is faster where it is implemented.

        Returns
        -------
        scores : Scores
            NaN where a row has no prediction.
        """
        scales = np.asarray(scales, dtype=np.float64)
        truth, weights = _to_numpy(self._own_values), _to_numpy(self._weights)
        largest = np.abs(truth).max(initial=0.0)
        if largest > _LARGEST:
            raise ValueError(
                f"values as large as {largest:g}, such as targets y, have squares that are "
                "infinite: divide them by the largest."
            )
        found = []
        for predicted in self._predict(scales, single):
            left_out, fitted, leverage = map(_to_numpy, predicted)
            errors = [weights @ ((x - truth) ** 2).mean(axis=1) for x in (left_out, fitted)]
            found.append((*errors, leverage.sum()))
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
        scales = np.asarray(scale, dtype=np.float64)[None]
        (predicted,) = self._predict(scales)
        left_out, fitted, leverage = map(_to_numpy, predicted)
        center = _to_numpy(self._center)
        return Predictions(left_out + center, fitted + center, leverage)

    def _predict(self, scales, single=False):
        found = self._moments.reduce(self._finish, scales, single=single)
        if self._apart is None:
            return found
        apart = self._apart.reduce(self._finish, scales, single=single)
        return ((far[0], *near[1:]) for far, near in zip(apart, found, strict=True))


def _to_numpy(x):
    return x.cpu().numpy() if is_torch_array(x) else x

r"""Leave-one-out predictions: every training row from all others, at many bandwidths.

`Reduction` sums over all rows but one; the fit with the row then is an update. Let the *own
weight* of row i be its weight in the sum over all rows,

.. math:: s_i = \frac{w_i K(x_i, x_i)}{\sum_k w_k K(x_i, x_k)}

About :math:`x_i` all terms :math:`\phi` of the row's own polynomial but the constant are 0, so
the Gram matrix of all rows is :math:`E[\phi \phi^\top] = (1 - s_i)\, E_{-i}[\phi \phi^\top] +
s_i\, e_0 e_0^\top`. The *leverage* of row i, on the diagonal of the smoother matrix, is
:math:`s_i (1 + \mu^\top C^{-1} \mu)` for the mean :math:`\mu` and the covariance C of the other
terms; for averages it is :math:`s_i`.

A *scale* is a multiple of the bandwidth, for all rows or for each. The *h-block* of row i is
the row and `gap` rows on either side; with a gap, sums without the h-block predict the row, and
sums without the row alone make the fit. Predictions at a scale take the time of kernel sums
(`_reduce.py`): O(n) in one feature, O(n^2) at most.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._blocks import IN_CACHE, blocks
from .._validation import check_choice, check_flag, check_gap
from ..kernels import Kernel
from ..kernels._numerics import LARGEST
from ._arrays import to_array
from ._doubled_windows import RowsInDoubledWindows
from ._read import check_table, check_weights, key_ranges, read
from ._reduce import ALGORITHMS, Reduction
from ._solve import check_degree, solve
from ._sums import EMPTY_POLICIES

# Rows whose kernel is evaluated at a time, where only its diagonal is needed.
_BLOCK_ROWS = 64
# Polynomials in windows far narrower than the data may overflow, to no prediction.
_may_overflow = np.errstate(over="ignore", invalid="ignore")


class Scores(NamedTuple):
    """Errors and degrees of freedom at each bandwidth, from which criteria are computed.

    It is the result of :meth:`LeaveOneOut.scores`.

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


class Predictions(NamedTuple):
    """Predictions of each training row at one bandwidth, from all rows and from all but itself.

    It is the result of :meth:`LeaveOneOut.predictions`.

    Attributes
    ----------
    left_out : array of shape (n_rows, n_values)
        Each row's prediction from all others.
    fitted : array of shape (n_rows, n_values)
        Its prediction from all rows.
    leverage : array of shape (n_rows,)
        Weight of the row's own value in `fitted`: the diagonal of the smoother matrix.
    """

    left_out: Any
    fitted: Any
    leverage: Any


class LeaveOneOut:
    """Leave-one-out predictions of the training rows, at any bandwidth.

    Use this class to write your own search for a bandwidth;
    :func:`~sklearn_attention.bandwidth.select_bandwidth` has the usual searches. It is not a
    splitter like :class:`sklearn.model_selection.LeaveOneOut`.

    Rows are checked once for all bandwidths, and an order of the rows, in which neighbours are
    next to each other, is computed once. A single feature takes linear time for each bandwidth.

    Parameters
    ----------
    X : array-like or tensor of shape (n_samples, n_features)
        The keys.
    values : array-like or tensor of shape (n_samples,) or (n_samples, n_values)
        Their values.
    kernel : str, Kernel or callable
        Kernel that compares rows.
    bandwidth : float or array-like of shape (n_features,), default=1.0
        Bandwidth at scale 1, in the features' own units. The methods take scales, which
        multiply it.
    degree : {0, 1, 2, 3}, default=0
        Degree of the local polynomials.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of keys and of errors. Rows of weight 0 are not predicted.
    rows : array-like of int of shape (n_rows,), default=None
        The rows to predict, from all other rows; None for all.
    empty : {"nearest", "nan"}, default="nearest"
        As for :func:`attend`.
    widen : bool, default=False
        Whether windows of local polynomials are doubled until their rows determine the
        polynomials, as :class:`~sklearn_attention.LocalPolynomialRegressor` does. It has no
        effect for scales that differ between rows, or if `empty` is "nan".
    algorithm : {"auto", "dense"}, default="auto"
        "dense" takes all pairs of rows at every bandwidth.
    gap : int, default=0
        Number of rows before each row, and after it, that are left out with the row. Use it for
        ordered rows, such as rows in time, whose noise is correlated.

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
        X: Any,
        values: Any,
        kernel: str | Kernel | Callable[..., Any],
        *,
        bandwidth: ArrayLike = 1.0,
        degree: int = 0,
        sample_weight: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        empty: str = "nearest",
        widen: bool = False,
        algorithm: str = "auto",
        gap: int = 0,
    ) -> None:
        degree = check_degree(degree)
        check_choice("empty", empty, EMPTY_POLICIES)
        widen = check_flag("widen", widen) and empty == "nearest"
        check_choice("algorithm", algorithm, ALGORITHMS)
        X = check_table(to_array("X", X), "X")
        if not len(X):
            raise ValueError(
                "X has 0 rows, but each row is predicted from the other rows: pass at least "
                "two rows."
            )
        gap, rows = min(check_gap(gap), len(X)), _check_rows(rows, X, sample_weight)
        self.rows = rows
        # The mean of the values is subtracted, so that their sums cancel less.
        problem, weighted_rows = read(
            X[rows],
            X,
            values,
            kernel,
            bandwidth=bandwidth,
            sample_weight=sample_weight,
            leave_one_out=rows,
            centred=True,
        )
        options = {"empty": empty, "algorithm": algorithm}
        self._rows, self._doubled = _PredictedRows(problem, degree, gap, options), None
        kernel = problem.kernel
        is_local = degree and kernel.numeric_columns(X.shape[1])
        # A doubled window has more weight if the kernel falls with the distance.
        if widen and is_local and kernel.decreasing and not kernel.signed:
            X = X if weighted_rows is None else X[weighted_rows]
            self._doubled = RowsInDoubledWindows(self._rows, X, degree)
        # A window with less than the weight of this number of rows is doubled, unless rows
        # share design points.
        self.min_rows = 1 if self._doubled is None else self._doubled.min_rows

    @_may_overflow
    def scores(self, scales) -> Scores:
        """Compute errors and degrees of freedom at several bandwidths.

        Parameters
        ----------
        scales : array-like of shape (n_scales,) or (n_scales, n_rows)
            Multiples of the bandwidth; in the second form one for each row.

        Returns
        -------
        scores : Scores
            NaN where a row has no prediction.
        """
        scales = _check_scales("scales", scales, len(self.rows), 1)
        values, weights = self._rows.values, self._rows.weights
        if not values.shape[1]:
            raise ValueError(
                f"values has shape {values.shape}, without any column to score: pass at least "
                "one."
            )
        largest = np.abs(values).max(initial=0.0)
        if largest > LARGEST:
            raise ValueError(
                f"values, such as the targets y, reach {largest:g}, whose square overflows: "
                "divide them by their largest absolute value."
            )
        sums_at_scales = []
        for left_out, fitted, leverage in self._predict(scales):
            errors = [weights @ ((x - values) ** 2).mean(axis=1) for x in (left_out, fitted)]
            sums_at_scales.append((*errors, leverage.sum()))
        left_out, fitted, trace = np.array(sums_at_scales, dtype=np.float64).reshape(-1, 3).T
        total_weight = float(weights.sum())
        return Scores(left_out / total_weight, fitted / total_weight, trace)

    @_may_overflow
    def predictions(self, scale: float = 1.0) -> Predictions:
        """Predict each row from all others, and from all rows, at one bandwidth.

        Parameters
        ----------
        scale : float or array of shape (n_rows,), default=1.0
            Multiple of the bandwidth.

        Returns
        -------
        predictions : Predictions
            Arrays, in the order of `rows`.
        """
        scales = _check_scales("scale", scale, len(self.rows), 0)[None]
        ((left_out, fitted, leverage),) = self._predict(scales)
        center = self._rows.problem.value_center
        return Predictions(left_out + center, fitted + center, leverage)

    def _predict(self, scales):
        """Yield the fields of `Predictions` at each scale, for values less their mean."""
        if self._doubled is None or scales.ndim > 1:
            yield from (fields[:3] for fields in self._rows.predict(scales))
            return
        for block in blocks(len(scales), max(1, IN_CACHE // len(self.rows))):
            yield from self._doubled.predict(scales[block])


class _PredictedRows:
    """Training rows that are the queries of a problem, predicted at one scale after the other.

    `options` are the policy `empty` and the `algorithm` of a :class:`Reduction`.
    """

    def __init__(self, problem, degree, gap, options):
        self.problem, self._degree, self._gap, self._options = problem, degree, gap, options
        # Each query leaves out a single key: the row itself.
        self.own_key = problem.left_out[:, 0]
        self.values, self.weights = problem.values[self.own_key], problem.weights[self.own_key]
        self._without_row = self._without_block = Reduction(problem, degree, **options)
        self.h_block = None
        if gap:
            self.h_block = key_ranges(self.own_key, gap).clip(max=len(problem.keys))
            problem = replace(problem, left_out=self.h_block)
            self._without_block = Reduction(problem, degree, **options)

    def of_problem(self, problem, gap=0):
        """Return the predicted rows of another problem, with the same degree and options."""
        return _PredictedRows(problem, self._degree, gap, self._options)

    def each(self, rows, scales):
        """Predict the queries at `rows`, each at its own scale of `scales` (n_rows,).

        Returns the five fields of `predict`, in the order of the rows.
        """
        # Rows whose scales have equal labels form a group, which is predicted in one pass.
        # Labels increase with the scale, so a group has neighbours in the order of the scales.
        order = np.argsort(scales, kind="stable")
        labels = self._without_row.label_scales(scales[order])
        _, starts = np.unique(labels, return_index=True)
        groups, fields_of_groups = np.split(order, starts[1:]), []
        for group in groups:
            group_rows = self.of_problem(self.problem.take(rows[group]), self._gap)
            # For a radial kernel a pass takes a scale for each row, (1, n_group). For other
            # kernels it takes one scale, (1,), which all rows of the group have.
            group_scales = scales[group[:1]]
            if self._without_row.is_radial:
                group_scales = scales[group][None]
            fields_of_groups += group_rows.predict(group_scales)
        input_order = np.argsort(np.concatenate(groups))
        return [
            np.concatenate(field)[input_order] for field in zip(*fields_of_groups, strict=True)
        ]

    def predict(self, scales):
        """Yield five fields at each scale: those of `Predictions`, and two own weights (n,).

        The first own weight is that in the sum over the row and all rows outside its h-block,
        the second that in the sum over all rows. Without a gap they are equal. `scales` are
        (n_scales,), or (n_scales, n) with one for each row.
        """
        fields_at_scales = self._predict_with(self._without_row, scales)
        if self._without_block is self._without_row:
            for *fields, weight in fields_at_scales:
                yield *fields, weight, weight
            return
        without_block = self._predict_with(self._without_block, scales)
        for block_fields, row_fields in zip(without_block, fields_at_scales, strict=True):
            left_out, _, _, weight_in_block = block_fields
            _, fitted, leverage, weight = row_fields
            yield left_out, fitted, leverage, weight_in_block, weight

    def _predict_with(self, reduction, scales):
        """Yield the fields of `Predictions` and the own weights, from sums without the rows.

        The sums of `reduction` leave out each row, or its h-block.
        """
        # The rows' own terms w K(x, x) do not depend on the scale if the kernel between a row
        # and itself is the same everywhere.
        problem = reduction.problem
        are_same = is_same_everywhere(problem.kernel, problem.keys.shape[1])
        log_and_sign = own_terms(problem, self.own_key) if are_same else None
        for group, row_blocks in reduction.each(scales):
            if not are_same:
                log_and_sign = own_terms(problem.rescaled(group[0]), self.own_key)
            fields_of_blocks = [self._finish(log_and_sign, *block) for block in row_blocks]
            fields = [np.concatenate(field) for field in zip(*fields_of_blocks, strict=True)]
            # A group may have several scales, one after the other in each field.
            yield from zip(*(np.split(field, len(group)) for field in fields), strict=True)

    def _finish(self, log_and_sign, rows, sums, moments):
        """Return the fields of `Predictions` and the own weights of the queries at `rows`.

        `log_and_sign` are the results of :func:`own_terms` for all queries; `sums` and
        `moments` are about the queries at `rows`, without their own keys.
        """
        log_and_sign = [field[rows] for field in log_and_sign]
        weight = own_weight(log_and_sign, sums.shift, sums.sums[0, 0])
        return *predict_with_own_row(moments, weight, self.values[rows]), weight


def _check_rows(rows, X, sample_weight):
    """Return the positions of the rows to predict: those of positive weight among `rows`."""
    if rows is None:
        positions = np.arange(len(X))
    else:
        try:
            positions = np.asarray(rows)
        except (TypeError, ValueError):
            positions = np.empty(0)
        is_list = positions.ndim == 1 and positions.dtype.kind in "iu"
        if not is_list or ((positions < 0) | (positions >= len(X))).any():
            raise ValueError(
                f"rows={rows!r} is not valid: pass positions of rows, from 0 to {len(X) - 1}, "
                "or None for all."
            )
        positions = positions.astype(np.intp, copy=False)
    if sample_weight is not None:
        _, _, weighted_rows = check_weights(sample_weight, X)
        if weighted_rows is not None:
            positions = positions[np.isin(positions, weighted_rows)]
    if not len(positions):
        raise ValueError(
            f"rows={rows!r} selects no row of positive weight: pass the position of at "
            "least one."
        )
    return positions


def _check_scales(name, passed, n_rows, n_axes):
    """Return scales as an array with `n_axes` axes, or one more if each row has its own scale.

    The last axis then has the length `n_rows`. `name` is that of the user's parameter.
    """
    try:
        scales = np.asarray(passed, dtype=np.float64)
    except (TypeError, ValueError):
        scales = np.full((), np.nan)
    fits = scales.ndim >= n_axes and scales.shape[n_axes:] in ((), (1,), (n_rows,))
    if not fits or 0 in scales.shape[:n_axes] or not (scales > 0).all():
        what = "numbers" if n_axes else "a number"
        each = f"{name} of shape (n_scales, {n_rows})" if n_axes else f"{n_rows} numbers"
        raise ValueError(
            f"{name}={passed!r} is not valid: pass {what} greater than 0, or {each}, one for "
            "each row that is predicted."
        )
    return scales if scales.ndim == n_axes else scales + np.zeros(n_rows)


def is_same_everywhere(kernel, n_features):
    """Return True if the kernel between a row and itself is the same for all rows."""
    return kernel.stationary or kernel.radial_form(n_features) is not None


def own_terms(problem, own_key):
    """Return the terms w_i K(x_i, x_i) of the queries' own keys in the sums of weights.

    They are two arrays (n,): the logarithm of the absolute value, and the sign. ``own_key``
    (n,) is the position of the key that each query is; with a gap, queries leave out more keys.
    """
    kernel, x = problem.kernel, problem.queries
    if is_same_everywhere(kernel, x.shape[1]):
        x = x[:1]
    log_weights = np.log(problem.weights[own_key])
    if kernel.signed is False:
        return at_rows(kernel.log, x, x) + log_weights, np.ones_like(log_weights)
    values = at_rows(kernel, x, x)
    with np.errstate(divide="ignore"):
        return np.log(np.abs(values)) + log_weights, np.sign(values) + 0 * log_weights


def at_rows(kernel, x, y):
    """Evaluate a kernel, or its logarithm, between each row of `x` and the same row of `y`."""
    diagonals = [np.diagonal(kernel(x[rows], y[rows])) for rows in blocks(len(x), _BLOCK_ROWS)]
    return np.concatenate(diagonals) if diagonals else x[:, 0]


def own_weight(log_and_sign, shift, total_without):
    """Return the own weight (n,) of each left-out row; 1 if no other row has any weight.

    `log_and_sign` are the results of :func:`own_terms`, and ``total_without * exp(shift)`` is
    the sum of all other weights, all (n,).
    """
    log_size, sign = log_and_sign
    # Both are divided by the larger one, so that nothing overflows.
    base = np.maximum(shift, log_size)
    own_term = sign * np.exp(log_size - base)
    # Under the policy "nan", and if there are no nearest keys, the total is NaN.
    other_terms = np.where(shift > -np.inf, total_without, 0.0) * np.exp(shift - base)
    return np.where(own_term == 0, own_term, own_term / (own_term + other_terms))


def predict_with_own_row(moments, weight, values):
    """Predict each row without itself and with itself; return :class:`Predictions`.

    `moments` are those without the row, `weight` (n,) are the own weights, and `values` (n, p)
    those of the rows.
    """
    gram, cross = moments.gram, moments.cross
    if gram.shape[1] == 1:  # averages need no solution, which saves two thirds of the time
        left_out, column = cross[:, 0], weight[:, None]
        mixture = left_out + column * (values - left_out)
        return Predictions(left_out, np.where(column == 1, values, mixture), weight)
    without_row = solve(gram, cross)
    fitted = solve(*add_own_rows(gram, cross, weight, values))
    leverage = weight * (1 + (fitted.solved_mean * fitted.mean).sum(axis=1))
    return Predictions(without_row.value, fitted.value, leverage)


def add_own_rows(gram, cross, weight, values):
    """Return the moments with each row itself, from those without it.

    `gram` (n, P, P) and `cross` (n, P, p) are the fields of :class:`Moments`, `weight` (n,) are
    the own weights, and `values` (n, p) those of the rows.
    """
    # At the row itself only the constant term, the first one, is not 0. So the moments with the
    # row are (1 - s) gram + s e0 e0' and (1 - s) cross + s e0 v', with the own weight s, the
    # row's values v, and the unit vector e0. If no other row has weight, the moments are not
    # finite, and only the row itself counts.
    other_weight = (1 - weight)[:, None, None]
    gram = np.where(np.isfinite(gram), gram, 0.0) * other_weight
    cross = np.where(np.isfinite(cross), cross, 0.0) * other_weight
    gram[:, 0, 0] += weight
    cross[:, 0] += weight[:, None] * values
    return gram, cross

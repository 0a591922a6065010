"""Every row predicted from all others, at many bandwidths."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._blocks import IN_CACHE, IN_MEMORY, blocks
from .._validation import check_choice, check_flag, check_gap
from ..kernels import Kernel
from ..kernels._numerics import LARGEST
from ._doubled_windows import MAX_RANGES, Windows, blend, double_windows
from ._read import check_table, check_weights, key_ranges, read, to_array
from ._reduce import ALGORITHMS, Reduction
from ._solve import Basis, check_degree, solve
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

    It is no splitter such as :class:`sklearn.model_selection.LeaveOneOut`. Use it to write your
    own search for a bandwidth; :func:`~sklearn_attention.bandwidth.select_bandwidth` has the
    usual searches.

    Checks, and an order of the rows in which neighbours lie together, are computed once for
    all bandwidths. A single feature takes linear time for each bandwidth.

    Parameters
    ----------
    X : array-like or tensor of shape (n_samples, n_features)
        The keys.
    values : array-like or tensor of shape (n_samples,) or (n_samples, n_values)
        Their values.
    kernel : str, Kernel or callable
        Compares rows.
    bandwidth : float or array-like of shape (n_features,), default=1.0
        Multiplied by the scales passed later; in the features' own units.
    degree : {0, 1, 2, 3}, default=0
        Degree of the local polynomials.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of keys and of errors. Rows of weight 0 are not predicted.
    rows : array-like of int of shape (n_rows,), default=None
        The rows to predict, from all other rows; None for all.
    empty : {"nearest", "nan"}, default="nearest"
        As for :func:`attend`.
    widen : bool, default=False
        Whether windows of local polynomials are widened as
        :class:`~sklearn_attention.LocalPolynomialRegressor` does: at scales that all rows
        share, unless `empty` is "nan".
    algorithm : {"auto", "dense"}, default="auto"
        "dense" takes all pairs of rows at every bandwidth.
    gap : int, default=0
        Number of rows before and after each that are left out with it; for ordered rows, as
        in time, whose noise is correlated.

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
        gap, rows = min(check_gap(gap), len(X)), _check_rows(rows, len(X))
        if sample_weight is not None:
            _, _, weighted = check_weights(sample_weight, X)
            rows = rows if weighted is None else rows[np.isin(rows, weighted)]
        if not len(rows):
            raise ValueError(
                f"rows={rows!r} selects no row of positive weight: pass the position of at "
                "least one."
            )
        self.rows = rows
        # Without what the values have in common, sums of them cancel less.
        problem, weighted = read(
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
        self._rows, self._widened = _PredictedRows(problem, degree, gap, options), None
        kernel = problem.kernel
        local = degree and kernel.numeric_columns(X.shape[1])
        if widen and local and kernel.decreasing and not kernel.signed:
            X = X if weighted is None else X[weighted]
            self._widened = _WidenedRows(self._rows, X, degree, options)
        # The fewest rows whose weight a window needs, unless rows of one place have it.
        self.fewest = 1 if self._widened is None else self._widened.fewest

    @_may_overflow
    def scores(self, scales) -> Scores:
        """Errors and degrees of freedom at some bandwidths.

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
        truth, weights = self._rows.values, self._rows.weights
        if not truth.shape[1]:
            raise ValueError(
                f"values has shape {truth.shape}, without any column to score: pass at least "
                "one."
            )
        largest = np.abs(truth).max(initial=0.0)
        if largest > LARGEST:
            raise ValueError(
                f"values, such as the targets y, reach {largest:g}, whose square overflows: "
                "divide them by their largest absolute value."
            )
        scores = []
        for left_out, fitted, leverage in self._predict(scales):
            errors = [weights @ ((x - truth) ** 2).mean(axis=1) for x in (left_out, fitted)]
            scores.append((*errors, leverage.sum()))
        left_out, fitted, trace = np.array(scores, dtype=np.float64).reshape(-1, 3).T
        total = float(weights.sum())
        return Scores(left_out / total, fitted / total, trace)

    @_may_overflow
    def predictions(self, scale: float = 1.0) -> Predictions:
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
        scales = _check_scales("scale", scale, len(self.rows), 0)[None]
        (predicted,) = self._predict(scales)
        left_out, fitted, leverage = predicted
        center = self._rows.problem.value_center
        return Predictions(left_out + center, fitted + center, leverage)

    def _predict(self, scales):
        if self._widened is None or scales.ndim > 1:
            yield from (fields[:3] for fields in self._rows.predict(scales))
            return
        for block in blocks(len(scales), max(1, IN_CACHE // len(self.rows))):
            yield from self._widened.predict(scales[block])


class _PredictedRows:
    """The queries of a problem, which are rows, predicted at one bandwidth after the other."""

    def __init__(self, problem, degree, gap, options):
        self.problem, self._arguments = problem, (degree, gap, options)
        self.own_key = problem.left_out[:, 0]
        self.values, self.weights = problem.values[self.own_key], problem.weights[self.own_key]
        self._sums = self._sums_without_gap = Reduction(problem, degree, **options)
        if gap:
            left_out = key_ranges(self.own_key, gap).clip(max=len(problem.keys))
            problem = replace(problem, left_out=left_out)
            self._sums_without_gap = Reduction(problem, degree, **options)

    def each(self, rows, scales):
        """Predict some rows, each at a scale of its own; return fields as `predict` does."""
        # Rows whose scales are alike are predicted in one pass.
        order = np.argsort(scales, kind="stable")
        _, starts = np.unique(self._sums.label_scales(scales[order]), return_index=True)
        groups, fields = np.split(order, starts[1:]), []
        for group in groups:
            predicted = _PredictedRows(self.problem.take(rows[group]), *self._arguments)
            # Sums of a radial kernel take a scale for each row, and others one for all rows,
            # which is the same within a group.
            group_scales = scales[group[:1]]
            if self._sums.is_radial:
                group_scales = scales[group][None]
            fields += predicted.predict(group_scales)
        input_order = np.argsort(np.concatenate(groups))
        return [np.concatenate(field)[input_order] for field in zip(*fields, strict=True)]

    def predict(self, scales):
        """Yield the fields of `Predictions` at each scale, and shares of the rows in weights.

        The first share is that in the sum without the gap, the second that in the full sum.
        """
        fields = self._at(self._sums, scales)
        if self._sums_without_gap is self._sums:
            return ((*predicted, predicted[-1]) for predicted in fields)
        pairs = zip(self._at(self._sums_without_gap, scales), fields, strict=True)
        return (
            (left_out, fitted, leverage, share_without, share)
            for (left_out, _, _, share_without), (_, fitted, leverage, share) in pairs
        )

    def _at(self, sums, scales):
        """Yield predictions and shares of the rows at each scale, from sums without them."""
        problem, terms = sums.problem, None
        if is_same_everywhere(problem.kernel, problem.keys.shape[1]):
            terms = own_terms(problem)
        for group, blocks_of_rows in sums.each(scales):
            of_group = own_terms(problem.rescaled(group[0])) if terms is None else terms
            fields = [self._finish(of_group, *block) for block in blocks_of_rows]
            fields = map(np.concatenate, zip(*fields, strict=True))
            yield from zip(*(np.split(field, len(group)) for field in fields), strict=True)

    def _finish(self, terms, rows, sums, moments):
        terms = [field[rows] for field in terms]
        share = own_share(terms, sums.shift, sums.sums[0, 0])
        return *with_own_key(moments, share, self.values[rows]), share


class _WidenedRows:
    """Rows predicted in windows, with and without themselves, that are doubled if need be."""

    def __init__(self, rows, X, degree, options):
        problem, self._rows = rows.problem, rows
        columns = problem.kernel.numeric_columns(problem.keys.shape[1])
        size = Basis(degree, len(columns)).size
        self._windows = Windows(X, problem.values, problem.weights, size)
        self.fewest = self._windows.fewest
        largest = np.ptp(problem.keys[:, columns], axis=0).max(initial=0.0)
        self._max_distance = (1 + 2 * MAX_RANGES) * largest
        # Groups of the scales that were tried last, which may be doubles of narrower windows.
        self._tried = {}
        if self._windows.repeat:
            first = self._windows.first
            points = replace(
                problem,
                queries=problem.keys[first],
                keys=problem.keys[first],
                values=problem.values[first][:, :0],
                weights=np.ones(len(first)),
                left_out=key_ranges(np.arange(len(first))),
            )
            self._points = _PredictedRows(points, degree, 0, options)

    def predict(self, scales):
        """Yield the fields of `Predictions` at each scale."""
        groups, all_rows = {}, np.arange(len(self._rows.values))
        plain = list(self._rows.predict(scales))
        for k in np.argsort(-scales):
            scale = np.full(len(all_rows), scales[k])
            groups[k] = self._groups(all_rows, scale, plain[k])
            wider = self._tried.get(_key(2 * scales[k]))
            if wider is not None:
                blend(groups[k], wider)
            else:

                def evaluate(times, rows, plain=groups[k], scale=scale):
                    wide = scale[rows] * 2.0**times
                    return self._groups(all_rows[rows], wide, None) if times else plain

                double_windows(evaluate, self._max_distance / scales[k])
            self._keep(scales[k], groups[k])
        for k in range(len(scales)):
            (_, left_out), (_, fitted, leverage) = groups[k]
            yield left_out, fitted, leverage

    def _groups(self, rows, scales, fields):
        """Return groups of windows without and with each row, for :func:`double_windows`."""
        key, weight = self._rows.own_key[rows], self._rows.weights[rows]
        if fields is None:
            fields = self._rows.each(rows, scales)
        left_out, fitted, leverage, share_without, share = fields
        inverse_leverage = self._inverse_leverage(key, scales)
        with np.errstate(divide="ignore"):
            total, without = weight / share, weight * (1 - share_without) / share_without
        adequacy = self._windows.adequacy_without(
            key, without, inverse_leverage, inverse_leverage - 1
        )
        is_adequate = self._windows.adequacy(total, inverse_leverage)
        return [(adequacy, left_out), (is_adequate, fitted, leverage)]

    def _keep(self, scale, groups):
        """Remember a scale, and forget the first ones if there are too many."""
        self._tried[_key(scale)] = groups
        n_numbers = sum(field.size for group in groups for field in group)
        for first in list(self._tried)[: -max(1, IN_MEMORY // 2 // n_numbers)]:
            del self._tried[first]

    def _inverse_leverage(self, keys, scales):
        """Return the inverse leverage of the design points of keys, each at its scale."""
        if not self._windows.repeat:
            return 0.0
        points = self._windows.point_of_rows[keys]
        # Rows at one design point and scale are alike.
        _, first, back = np.unique(points + 1j * scales, return_index=True, return_inverse=True)
        _, _, leverage, *_ = self._points.each(points[first], scales[first])
        return 1 / leverage[back]


def _check_rows(rows, n_samples):
    """Return the positions of the rows to predict as an array of int."""
    if rows is None:
        return np.arange(n_samples)
    try:
        checked = np.asarray(rows)
    except (TypeError, ValueError):
        checked = np.empty(0)
    is_list = checked.ndim == 1 and checked.dtype.kind in "iu"
    if not is_list or ((checked < 0) | (checked >= n_samples)).any():
        raise ValueError(
            f"rows={rows!r} is not valid: pass positions of rows, from 0 to {n_samples - 1}, "
            "or None for all."
        )
    return checked.astype(np.intp, copy=False)


def _check_scales(name, passed, n_rows, n_axes):
    """Return scales as an array of `n_axes` axes, and one more if rows have their own."""
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


def own_terms(problem):
    """Return what the queries' own keys, which lie at the queries, add to the sums of weights.

    The results are the logarithm of the absolute value, and the sign, each (n,).
    """
    kernel, x = problem.kernel, problem.queries
    if is_same_everywhere(kernel, x.shape[1]):
        x = x[:1]
    evaluate = kernel.log if kernel.signed is False else kernel
    terms, log_weights = (
        at_rows(evaluate, x, x),
        np.log(problem.weights[problem.left_out[:, 0]]),
    )
    if kernel.signed is False:
        return terms + log_weights, np.ones_like(log_weights)
    with np.errstate(divide="ignore"):
        return np.log(np.abs(terms)) + log_weights, np.sign(terms) + 0 * log_weights


def at_rows(kernel, x, y):
    """Evaluate a kernel, or its logarithm, between each row of a table and that of another."""
    diagonals = [np.diagonal(kernel(x[rows], y[rows])) for rows in blocks(len(x), _BLOCK_ROWS)]
    return np.concatenate(diagonals) if diagonals else x[:, 0]


def own_share(terms, shift, total):
    """Return the share (n,) of a left-out key in the sum of all weights.

    It is 1 where no other key has any weight. `terms` are those of :func:`own_terms`, and the
    sum without the key is ``total * exp(shift)``.
    """
    log_size, sign = terms
    # Relative to the larger of both, nothing overflows.
    base = np.maximum(shift, log_size)
    itself = sign * np.exp(log_size - base)
    # Under the policy "nan", and beside nearest keys that do not exist, the total is NaN.
    without = np.where(shift > -np.inf, total, 0.0) * np.exp(shift - base)
    return np.where(itself == 0, itself, itself / (itself + without))


def with_own_key(moments, share, own_values):
    """Return local fits without each row and with it, from the moments without it."""
    gram, cross = moments.gram, moments.cross
    if gram.shape[1] == 1:  # averages need no solution, which saves two thirds of the time
        left_out, weight = cross[:, 0], share[:, None]
        mixture = left_out + weight * (own_values - left_out)
        return Predictions(left_out, np.where(weight == 1, own_values, mixture), share)
    without = solve(gram, cross)
    fitted = solve(*with_themselves(gram, cross, share, own_values))
    leverage = share * (1 + (fitted.solved_mean * fitted.mean).sum(axis=1))
    return Predictions(without.value, fitted.value, leverage)


def with_themselves(gram, cross, share, own_values):
    """Return the moments with the rows themselves, which have a share of the weights."""
    # At the row itself only the polynomial's constant is not 0. With the row's share s of the
    # weights, E[f f'] = (1 - s) E_without[f f'] + s e_0 e_0'. Where no other row has weight,
    # only the row itself is left.
    weight = (1 - share)[:, None, None]
    gram = np.where(np.isfinite(gram), gram, 0.0) * weight
    cross = np.where(np.isfinite(cross), cross, 0.0) * weight
    gram[:, 0, 0] += share
    cross[:, 0] += share[:, None] * own_values
    return gram, cross


def _key(scale):
    """Round the logarithm of a scale: scales that differ by rounding have the same key."""
    return round(float(np.log2(scale)), 9)

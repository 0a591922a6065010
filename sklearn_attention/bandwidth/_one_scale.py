"""The bandwidth at which a criterion of the smoother is smallest."""

from dataclasses import dataclass

import numpy as np

from .._blocks import blocks
from .._columns import Columns
from .._validation import check_choice
from ..attention._leave_one_out import LeaveOneOut
from ..attention._reduce import form_along
from ..kernels._compact import CompactKernel
from ..kernels._product_kernel import mixed_kernel
from ._criteria import SMOOTHER_CRITERIA, judge, without_rounding
from ._minimize import PRECISION, STEP, WIDE_STEP, minimize_scale
from ._per_feature import search_bandwidths, search_several
from ._search import (
    MAX_KEYS,
    MAX_PAIRS,
    MAX_SEARCH_ROWS,
    BandwidthChoice,
    BandwidthRule,
    Rows,
    Trials,
    ValueSample,
    canonical_ratio,
    narrower,
    search_range,
)

# Where a bandwidth takes time that is linear in the rows, more than these of one feature, and
# of two, are sampled once and for all.
MAX_KEYS_IN_LINEAR_TIME = {1: 1_000_000, 2: 50_000}
# How far, in logarithms, the minimum may be from that of a sample.
_NEAR = 0.4
# Rows that are predicted to lay out a curve whose minimum need not be precise. With 2000 rows
# `degree="auto"` takes 1.15 times as long in two features, and errors are the same.
_COARSE_ROWS = 500
# Bandwidths that are evaluated together: more take as long, and callbacks get reports later.
# Where windows are doubled, those of all of them are doubled in one pass.
_N_TOGETHER = 8
# The curve is flat where its minimum without the penalty takes so many times the degrees of
# freedom; an average of no more than these is the mean.
_FLAT, _NO_DEPENDENCE = 2.0, 1.05
_NARROWEST = (
    "bandwidth={!r} ended at the narrowest bandwidth tried, where rows are predicted by their "
    "nearest neighbours: neighbouring rows may be copies of each other, or their noise "
    "dependent. Drop copies (sample_weight can count them), set gap to about n_samples ** "
    "(1 / 3) if rows are in order, or pass a number."
)
_MEAN = (
    "bandwidth={!r} ended where all rows weigh alike and predictions are the mean: no "
    "dependence on X was found."
)
_FLAT_MINIMUM = (
    "bandwidth='penalized-loo': the leave-one-out error is flat. It is smallest at {:.0f} "
    "degrees of freedom, and penalised at {:.0f}: rows next to each other may have dependent "
    "noise. If they are in their order set gap={} to about n_samples ** (1 / 3), or more if it "
    "is. The attribute bandwidth_search_ has the whole curve."
)


def select_bandwidth(
    X,
    values,
    kernel,
    criterion: str = "loo",
    *,
    columns=None,
    per_feature: bool | str = False,
    degree: int = 0,
    sample_weight=None,
    random_state=None,
    observe=None,
    standardize: bool = False,
    gap: int = 0,
    empty: str = "nearest",
    algorithm: str = "auto",
) -> BandwidthChoice:
    r"""Search for the bandwidth with the smallest criterion, such as the leave-one-out error.

    Smoothers call it with ``bandwidth="loo"``. Call it yourself to get bandwidths from arrays,
    without fitting an estimator. Either one factor multiplies the standard deviations of all
    features, or each feature has its own bandwidth.

    .. math:: h_j = c\, \hat\sigma_j,\quad c = \arg\min_c \text{criterion}(c\, \hat\sigma)

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys, at least two rows of positive weight; categories as codes from 0.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares the numeric columns; with gradients, where more than one scale is searched.
    criterion : {"loo", "penalized-loo", "gcv", "aicc"}, default="loo"
        Leave-one-out error, the same penalised for degrees of freedom, generalised
        cross-validation, or the corrected Akaike criterion.
    columns : sklearn_attention.Columns, default=None
        Kind of each column; None for numbers throughout. The lambdas of categories are
        chosen along with the bandwidth.
    per_feature : bool or "auto", default=False
        Whether every number has its own bandwidth, or all share one scale on their spread;
        "auto" where that is clearly better, as for
        :class:`~sklearn_attention.NadarayaWatsonRegressor`.
    degree : {0, 1, 2, 3}, default=0
        Degree of the local polynomials.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of keys and of errors. For "gcv" and "aicc" the number of rows is that of rows
        with positive weight, whatever they sum to.
    random_state : int, numpy.random.RandomState or None, default=None
        Draws the sample where there are many rows.
    observe : callable, default=None
        Called for each bandwidth on trial as ``observe(value, bandwidth)``; returns whether
        to end the search there.
    standardize : bool, default=False
        Whether several columns of values count in units of their own deviation, and the
        criterion with them.
    gap : int, default=0
        Number of rows before and after each that are left out with it [1]_: for ordered rows
        whose noise is correlated. Of many rows a stretch is drawn. One scale only.
    empty : {"nearest", "nan"}, default="nearest"
        Policy for rows where no other row has weight, as for
        :class:`~sklearn_attention.LocalPolynomialRegressor`: with "nearest" windows of degree
        1 and 2 are widened where rows have little weight, unless they are in partitions of
        Dask; "nan" takes all windows as they are.
    algorithm : {"auto", "dense"}, default="auto"
        Evaluation of one scale: "dense" takes all pairs of rows, and never counts as linear
        time.

    Returns
    -------
    choice : BandwidthChoice

    Raises
    ------
    ValueError, TypeError
        If there are fewer than two rows, no bandwidth predicts every row, `gap` is not for
        such a search, or the kernel has no gradient where one is needed.

    Notes
    -----
    Of equally good bandwidths the widest is taken. Rows that repeat others in features and
    values, where nearly all values are distinct, are left out together: a copy would predict
    its original exactly. Along a single feature most kernels take linear time, and all rows are
    used, up to a million; with the Gaussian of two features up to 50 000. Otherwise of more
    than 2000 rows a sample of 2000 first locates the minima, at bandwidths larger by the rate
    of optimal ones, and more than 20 000 are replaced by a sample of these. Of more than ten
    million rows, which may be memory maps, rows that repeat others are joined in the sample
    only.

    Several scales, and lambdas, are found by L-BFGS-B from several starts, with the
    criterion's exact gradient in the logarithms. Of more than 300 rows so many are searched
    first, for a point to start from besides the best common scale. A feature whose bandwidth
    may be as large as a thousand times its extent at no loss gets that: the criterion does not
    depend on it. Where windows are widened, of which gradients know nothing, all bandwidths are
    multiplied by the factor that is best with such windows; and for kernels of bounded support,
    whose criteria have kinks, those of a Gaussian are. With more than 2000 rows a sample of
    these is used, and bandwidths are scaled at the rate :math:`n^{-1/(d+4)}`, lambdas at its
    square.

    The relevance of a feature lies between 0 (it does not matter) and 1:
    :math:`1 - \exp(-\hat\sigma_j^2 / h_j^2)`, by which a Gaussian kernel falls over the
    typical difference of two rows; for categories, by which it falls to the next level.

    `warnings` are set where the search of one scale ended at the narrowest bandwidth, or where
    averages are the mean; or, along a single feature, where the minimum of "penalized-loo" is
    flat, since plain leave-one-out would take more than twice the degrees of freedom.

    References
    ----------
    .. [1] Burman, P., Chow, E. and Nolan, D. (1994). A cross-validatory method for dependent
       data. Biometrika 81, 351-358.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import select_bandwidth
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X) + 0.1 * np.random.default_rng(0).normal(size=X.shape)
    >>> select_bandwidth(X, y, Gaussian()).bandwidth.round(2)
    array([0.13])
    """
    check_choice("bandwidth", criterion, SMOOTHER_CRITERIA)
    rows = Rows(
        X=X,
        values=values,
        columns=columns or Columns.numbers(X.shape[1]),
        degree=degree,
        sample_weight=sample_weight,
        random_state=random_state,
        standardize=standardize,
        per_feature=per_feature,
        gap=gap,
        empty=empty,
        algorithm=algorithm,
    )
    return CriterionSearch(criterion).choose(rows, kernel, observe)


@dataclass(frozen=True)
class CriterionSearch(BandwidthRule):
    """The bandwidth, or the bandwidths, at which a criterion of the smoother is smallest."""

    criterion: str
    searches = serves_each_degree = True

    def choose(self, rows, kernel, observe=None):
        ended = False

        def watch(*trial):
            nonlocal ended
            ended = observe is not None and bool(observe(*trial))
            return ended

        if rows.many_scales:
            rows.refuse_gap()
            choice = search_bandwidths(self.criterion, rows, kernel, watch)
        else:
            choice = _search_scale(self.criterion, rows, kernel, watch)
        if ended or not rows.may_have_several(kernel):
            return choice
        several = search_several(self.criterion, rows, kernel, watch, choice.bandwidth)
        return several or choice


def _search_scale(criterion, rows, kernel, observe):
    """Search the factor on the standard deviations of all features."""
    curve = _Curve(criterion, rows, kernel, observe)
    sample = curve.sample
    fewest = curve.left_out.fewest
    Z = (sample.X / sample.spread)[:, rows.columns.numeric]
    low, high = search_range(Z, canonical_ratio(kernel), fewest=fewest)
    layout = {"step": STEP, "precision": rows.precision} | curve.layout()
    if fewest > 1:
        # Windows of twice the width are then on the grid, too.
        step = layout["step"] = np.log(2) / np.ceil(np.log(2) / layout["step"])
        high = low * np.exp(step * np.ceil(np.log(high / low) / step))
    lowest = low
    if rows.start is not None:
        of_all = sample.rescale_to_all_rows(sample.spread, decreasing=kernel.decreasing)
        scale = np.median((rows.start / of_all)[rows.columns.numeric])
        lowest = np.clip(scale, low, high / 2)
        layout |= {"step": WIDE_STEP}
    with curve.trials as trials:
        best, _ = minimize_scale(curve, lowest, high, **layout)
        if low < lowest and best < lowest * np.exp(rows.precision):
            minimize_scale(curve, low, lowest, **layout)
    scales = np.array(sorted(curve.tried))
    columns = np.array([curve.tried[scale] for scale in scales.tolist()]).T
    results = {"bandwidth": scales[:, None] * sample.spread}
    results |= zip(("criterion", "loo_error", "degrees_of_freedom"), columns, strict=True)
    best = scales.searchsorted(trials.best)
    narrow = trials.best < 1.05 * low and fewest < len(sample) / 2
    warnings = [_NARROWEST.format(criterion)] if narrow else []
    freedoms, errors = results["degrees_of_freedom"], results["loo_error"]
    if rows.degree == 0 and freedoms[best] < _NO_DEPENDENCE and errors[best] > 0:
        warnings.append(_MEAN.format(criterion))
    if criterion == "penalized-loo" and len(rows.columns.numeric) == 1:
        plain = freedoms[np.flatnonzero(errors == np.nanmin(errors))[-1]]
        if plain > _FLAT * max(freedoms[best], 2.0):
            warnings.append(_FLAT_MINIMUM.format(plain, freedoms[best], rows.gap))
    bandwidth = results["bandwidth"][best]
    bandwidth = sample.rescale_to_all_rows(bandwidth, decreasing=kernel.decreasing)
    return BandwidthChoice(bandwidth, float(results["criterion"][best]), results, warnings)


class _Curve:
    """A criterion as a function of the scale, and its values at all scales that were tried."""

    def __init__(self, criterion, rows, kernel, observe):
        self.criterion, self.rows, self.kernel = criterion, rows, kernel
        n_features = len(rows.columns.numeric)
        self.linear = (
            not rows.gap
            and rows.algorithm != "dense"
            and form_along(kernel, n_features, rows.degree) is not None
        )
        max_keys = MAX_KEYS_IN_LINEAR_TIME[min(n_features, 2)] if self.linear else MAX_KEYS
        self.sample = sample = ValueSample(criterion, rows, max_keys)
        if len(sample) < 2 * rows.gap + 2:
            raise ValueError(
                f"gap={rows.gap} leaves out {2 * rows.gap + 1} rows for each row that is "
                f"predicted, but there are only n_samples={len(sample)} rows of positive "
                "weight: pass a smaller gap."
            )
        # If time is linear in the rows, all of them are predicted.
        predicted = None
        if not self.linear:
            predicted = sample.positions(max(MAX_PAIRS // len(sample), 2))
        tables = sample.X, sample.values, sample.sample_weight
        self.left_out = self._left_out(*tables, rows=predicted)
        self.trials, self.tried = Trials(criterion, rows, observe), {}

    def __call__(self, scales):
        values, several = np.empty(len(scales)), self.left_out.fewest > 1
        order = np.arange(len(scales))
        if several:  # from wide to narrow, since narrow windows are doubled to wide ones
            order = order[::-1]
        for block in blocks(len(scales), _N_TOGETHER):
            values[order[block]] = self._evaluate(scales[order[block]])
        return values

    def _evaluate(self, scales):
        sample = self.sample
        scores = without_rounding(self.left_out.scores(scales), sample.units.size)
        # The trace is that of the rows that are predicted, and becomes that of all.
        share = len(self.left_out.rows) / len(sample)
        scores = scores._replace(trace=scores.trace / share)
        values = self._values(scores, len(sample))
        for k, scale in enumerate(scales.tolist()):
            value = sample.in_units(values[k], self.criterion)
            error = sample.in_units(scores.left_out[k], "loo")
            self.tried[scale] = (value, error, scores.trace[k])
            # Of equally good scales the widest is taken.
            self.trials.add(values[k], scale, tie=-scale)
            self.trials.report(value, scale * sample.spread)
        return values

    def layout(self):
        """Return options of :func:`minimize_scale`: a step, or a sample that approximates."""
        sample, n_features = self.sample, len(self.rows.columns.numeric)
        is_compact, is_local = isinstance(self.kernel, CompactKernel), self.rows.degree > 0
        if self.linear and n_features == 1:
            # Curves of few rows are bumpy. Those of polynomials, which extrapolate in sparse
            # tails, are more so, and those of compact kernels have kinks.
            if is_compact and is_local and len(sample) <= MAX_SEARCH_ROWS:
                return {"step": STEP / 3}
            n_bumpy = MAX_SEARCH_ROWS * (10 if is_compact else 1) // (1 if is_local else 4)
            return {"step": STEP if len(sample) <= n_bumpy else WIDE_STEP}
        layout = {"step": STEP if is_compact or n_features == 1 else WIDE_STEP}
        is_coarse = self.rows.precision > PRECISION
        n_keys = min(len(sample), MAX_SEARCH_ROWS)
        n_predicted = min(n_keys, _COARSE_ROWS) if is_coarse else n_keys
        if len(sample) == n_predicted or self.rows.gap:
            return layout
        subset = sample.subset(n_keys)
        tables = subset.X, subset.values, subset.sample_weight
        left_out = self._left_out(*tables, rows=subset.spread_out(n_predicted))
        times, decreasing = len(sample) / n_keys, self.kernel.decreasing
        factor = narrower(times, n_features, decreasing=decreasing)

        def approximate(scales):
            scores = left_out.scores(scales / factor)
            scores = scores._replace(trace=scores.trace * n_keys / n_predicted)
            return self._values(scores, n_keys)

        return layout | {"approximate": approximate, "error": _NEAR}

    def _left_out(self, X, values, sample_weight, rows=None):
        kernel = mixed_kernel(self.kernel, self.rows.columns, None)
        return LeaveOneOut(
            X,
            values,
            kernel,
            bandwidth=self.sample.spread,
            sample_weight=sample_weight,
            rows=rows,
            gap=self.rows.gap,
            **self.rows.options,
        )

    def _values(self, scores, n_samples):
        return judge(self.criterion, scores, n_samples, self.sample.units.size)

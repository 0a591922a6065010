"""The search for the bandwidth at which a criterion of the smoother is smallest.

If all columns are numeric and share one scale, this module searches for it. The scale c is a
factor on their standard deviations: column j has the bandwidth h_j = c std_j. `_per_feature`
has the searches for several bandwidths and for lambdas.

The criterion at a scale is computed from leave-one-out predictions of a sample, whose best
bandwidth is rescaled to all rows. For polynomials, LeaveOneOut doubles the windows of rows that
have too little weight in them: less than the weight of `LeaveOneOut.min_rows` rows. With a
`gap`, a row is left out with the `gap` rows before and after it, whose noise is correlated.
"""

from dataclasses import dataclass

import numpy as np

from .._blocks import blocks
from .._columns import Columns
from .._validation import check_choice
from ..attention._leave_one_out import LeaveOneOut
from ..attention._reduce import form_along
from ..kernels._compact import CompactKernel
from ..kernels._product_kernel import mixed_kernel
from ._criteria import SMOOTHER_CRITERIA, evaluate_criterion, zero_rounding_errors
from ._minimize import PRECISION, STEP, WIDE_STEP, minimize_scale
from ._per_feature import search_bandwidths, search_per_feature
from ._samples import ValueSample, optimal_rate_factor
from ._search import (
    MAX_KEYS,
    MAX_PAIRS,
    MAX_SEARCH_ROWS,
    BandwidthChoice,
    BandwidthRule,
    Rows,
    Trials,
    canonical_ratio,
    search_range,
)

# Maximum number of rows of the sample, by number of features, if a bandwidth takes linear time.
MAX_KEYS_IN_LINEAR_TIME = {1: 1_000_000, 2: 50_000}
# Maximum distance between a minimum of the criterion and one on a sample, as a difference of
# logarithms of the scale.
_SAMPLE_ERROR = 0.4
# Number of rows that are predicted on the grid if the minimum need not be precise. With 2000
# rows `degree="auto"` takes 1.15 times as long in two features, and errors are the same.
_COARSE_ROWS = 500
# Number of rows from which the grid is computed in one feature, if a bandwidth takes linear
# time. Bottoms of valleys are computed from all rows, so that the best bandwidth is the same;
# searches with 300 000 rows take 0.5 times as long.
_GRID_ROWS = 100_000
# Number of scales that are evaluated together. With more scales a search takes as long, and
# callbacks are called later. Doubled windows of all of them are computed in one pass.
_SCALES_AT_ONCE = 8
# The curve is flat if its minimum without the penalty has more than this multiple of the
# degrees of freedom.
_FLAT_RATIO = 2.0
# An average with fewer degrees of freedom than this is the mean of all rows.
_DOF_OF_MEAN = 1.05
# Warnings about the result; the first two are formatted with the criterion's name.
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
        Compares the numeric columns. It needs gradients if several bandwidths, or lambdas, are
        searched.
    criterion : {"loo", "penalized-loo", "gcv", "aicc"}, default="loo"
        Leave-one-out error, the same penalised for degrees of freedom, generalised
        cross-validation, or the corrected Akaike criterion.
    columns : sklearn_attention.Columns, default=None
        Kind of each column; None for numbers throughout. The lambdas of categories are
        chosen along with the bandwidth.
    per_feature : bool or "auto", default=False
        Whether each numeric column has its own bandwidth, or all share one factor on their
        standard deviations. "auto" takes several bandwidths if they are clearly better, as for
        :class:`~sklearn_attention.NadarayaWatsonRegressor`.
    degree : {0, 1, 2, 3}, default=0
        Degree of the local polynomials.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of keys and of errors. For "gcv" and "aicc" the number of rows is that of rows
        with positive weight, whatever the sum of the weights.
    random_state : int, numpy.random.RandomState or None, default=None
        Draws the sample if there are many rows.
    observe : callable, default=None
        Called for each bandwidth that is tried as ``observe(value, bandwidth)``; returns True
        to end the search.
    standardize : bool, default=False
        Whether each of several columns of values, and the criterion with it, is measured in
        its own standard deviation.
    gap : int, default=0
        Number of rows before and after each that are left out with it [1]_: for ordered rows
        whose noise is correlated. From many rows a sample of consecutive ones is drawn. Only
        for one factor on all features.
    empty : {"nearest", "nan"}, default="nearest"
        Policy for rows where no other row has weight, as for
        :class:`~sklearn_attention.LocalPolynomialRegressor`: with "nearest", windows of degree
        1 and 2 are widened where rows have little weight, unless rows are in partitions of
        Dask; with "nan" all windows stay as they are.
    algorithm : {"auto", "dense"}, default="auto"
        Evaluation of one factor on all features: "dense" evaluates all pairs of rows, never in
        linear time.

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
    Of equally good bandwidths the largest is taken. If nearly all values are distinct, rows
    that are equal in features and values are left out together, since a copy would predict its
    original exactly.

    Along a single feature most kernels take linear time, and all rows are used, up to a
    million; with a Gaussian kernel of two features up to 50 000. Otherwise a sample of 20 000
    rows replaces a larger number. A part of it, 2000 rows, locates the minima first, at
    bandwidths that are larger by the rate :math:`n^{-1/(d+4)}`. If there are more than ten
    million rows, which may be memory maps, the sample is drawn before copies are searched for.

    Several bandwidths, and lambdas, are found by L-BFGS-B from several starting points, with
    exact gradients in the logarithms. If there are more than 2000 rows, a sample of 2000 is
    used. Its bandwidths are rescaled at the rate :math:`n^{-1/(d+4)}` of optimal ones, its
    lambdas at the square of this rate. If there are more than 300 rows, 300 of them are
    searched first, for a point to start from besides the best common scale. A feature whose
    bandwidth may be a thousand times its extent at no loss gets this bandwidth: the criterion
    does not depend on the feature. Gradients do not know that windows are widened; if they are,
    all bandwidths are multiplied by the factor that is best with widened windows. For kernels
    of bounded support, whose criteria have kinks, the bandwidths for a Gaussian kernel are
    multiplied by the best factor.

    The relevance of a feature lies between 0 (it does not matter) and 1:
    :math:`1 - \exp(-\hat\sigma_j^2 / h_j^2)`, the fraction by which a Gaussian kernel falls
    over the typical difference of two rows; for a category, the fraction by which the kernel
    falls from a level to the next.

    The search for one scale sets `warnings` if it ended at the smallest bandwidth, or if
    averages are the mean of all rows; and, along a single feature, if the minimum of
    "penalized-loo" is flat, so that the minimum of "loo" would have more than twice the degrees
    of freedom.

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
        """Return the BandwidthChoice for Rows whose numeric columns the kernel compares.

        With per_feature="auto", a search for one scale comes first. A search for several
        bandwidths follows unless the callback has ended the first one.
        """
        was_stopped = False

        def observe_and_remember(*trial):
            nonlocal was_stopped
            was_stopped = observe is not None and bool(observe(*trial))
            return was_stopped

        arguments = self.criterion, rows, kernel, observe_and_remember
        if rows.has_several_parameters:  # lambdas, or a bandwidth of each feature
            rows.refuse_gap()
            choice = search_bandwidths(*arguments)
        else:
            choice = _search_scale(*arguments)
        if was_stopped or not rows.may_be_per_feature(kernel):
            return choice
        # The second search returns None if several bandwidths are not clearly better.
        return search_per_feature(*arguments, choice.bandwidth) or choice


def _search_scale(criterion, rows, kernel, observe):
    """Search the scale, and return the BandwidthChoice.

    The arguments are the criterion's name, Rows without categories, their kernel, and the
    callback.
    """
    curve = _ScaleCriterion(criterion, rows, kernel, observe)
    # A window that has less than the weight of `min_rows` rows is doubled.
    sample, min_rows = curve.sample, curve.leave_one_out.min_rows
    # 1. Find the range of scales, and the options of the minimisation.
    Z = (sample.X / sample.std)[:, rows.columns.numeric]
    low, high = search_range(Z, canonical_ratio(kernel), min_rows=min_rows)
    options = {"step": STEP, "precision": rows.precision} | curve.minimizer_options()
    if min_rows > 1:
        # If windows may be doubled, the factor 2 is a whole number of steps of the grid. So the
        # doubled windows are the windows at other scales on the grid.
        step = options["step"] = np.log(2) / np.ceil(np.log(2) / options["step"])
        high = low * np.exp(step * np.ceil(np.log(high / low) / step))
    start = low
    if rows.start is not None:
        # The start is a bandwidth of all rows. It is divided by the bandwidth of all rows that
        # belongs to scale 1 of the sample.
        bandwidth = sample.rescale_to_all_rows(sample.std, decreasing=kernel.decreasing)
        start = np.median((rows.start / bandwidth)[rows.columns.numeric])
        start = np.clip(start, low, high / 2)
        options |= {"step": WIDE_STEP}
    # 2. Minimise the criterion. Scales below the start are tried only if the start is best. A
    # candidate of the trials is a scale.
    with curve.trials as trials:
        best_scale, _ = minimize_scale(curve, start, high, **options)
        if low < start and best_scale < start * np.exp(rows.precision):
            minimize_scale(curve, low, start, **options)
    # 3. Collect results and warnings, and turn the best bandwidth into one of all rows.
    scales, results = curve.results()
    best = scales.searchsorted(trials.best)
    is_narrowest = trials.best < 1.05 * low and min_rows < len(sample) / 2
    warnings = [_NARROWEST.format(criterion)] if is_narrowest else []
    warnings += _curve_warnings(criterion, rows, results, best)
    bandwidth = results["bandwidth"][best]
    bandwidth = sample.rescale_to_all_rows(bandwidth, decreasing=kernel.decreasing)
    return BandwidthChoice(bandwidth, float(results["criterion"][best]), results, warnings)


def _curve_warnings(criterion, rows, results, best):
    """Return a list of warnings if averages are the mean of all rows, or if the curve is flat.

    `results` has an array with an entry for each scale that was tried, and `best` is the
    position of the best scale in these arrays.
    """
    dof, errors = results["degrees_of_freedom"], results["loo_error"]
    warnings = []
    if rows.degree == 0 and dof[best] < _DOF_OF_MEAN and errors[best] > 0:
        warnings.append(_MEAN.format(criterion))
    if criterion == "penalized-loo" and len(rows.columns.numeric) == 1:
        # The minimum without the penalty is that of "loo". Of equal errors the last counts,
        # which has the largest scale.
        unpenalized_dof = dof[np.flatnonzero(errors == np.nanmin(errors))[-1]]
        if unpenalized_dof > _FLAT_RATIO * max(dof[best], 2.0):
            warnings.append(_FLAT_MINIMUM.format(unpenalized_dof, dof[best], rows.gap))
    return warnings


class _ScaleCriterion:
    """A criterion as a function of the scale; it stores its values.

    Attributes
    ----------
    sample : ValueSample
        The rows from which the criterion is computed.
    leave_one_out : LeaveOneOut
        Predicts these rows, or a part of them if there are too many pairs.
    trials : Trials
        The scales that were tried.
    """

    def __init__(self, criterion, rows, kernel, observe):
        # `criterion` is the criterion's name. `rows` are Rows without categories, whose columns
        # the kernel compares. `observe` is the callback or None.
        self._criterion, self._rows, self._kernel = criterion, rows, kernel
        n_features = len(rows.columns.numeric)
        # `form_along` returns None if no algorithm takes linear time for the kernel.
        self._in_linear_time = (
            not rows.gap
            and rows.algorithm != "dense"
            and form_along(kernel, n_features, rows.degree) is not None
        )
        max_keys = MAX_KEYS
        if self._in_linear_time:
            max_keys = MAX_KEYS_IN_LINEAR_TIME[min(n_features, 2)]
        self.sample = sample = ValueSample(criterion, rows, max_keys)
        if len(sample) < 2 * rows.gap + 2:
            raise ValueError(
                f"gap={rows.gap} leaves out {2 * rows.gap + 1} rows for each row that is "
                f"predicted, but there are only n_samples={len(sample)} rows of positive "
                "weight: pass a smaller gap."
            )
        # All rows of the sample are predicted (None) if that takes linear time. Otherwise the
        # number of predicted rows is limited, so that there are at most MAX_PAIRS pairs.
        predicted = None
        if not self._in_linear_time:
            predicted = sample.positions(max(MAX_PAIRS // len(sample), 2))
        self.leave_one_out = self._make_leave_one_out(sample, predicted)
        self.trials = Trials(criterion, rows, observe)
        # For each scale that was evaluated: a tuple of the criterion, the leave-one-out error
        # and the degrees of freedom. Errors are in the unit of the targets as passed.
        self._evaluated = {}

    def __call__(self, scales):
        """Compute the criterion at ascending scales (n,)."""
        order = np.arange(len(scales))
        if self.leave_one_out.min_rows > 1:
            # Windows of a small scale may be doubled, and then need the sums at twice this
            # scale. LeaveOneOut keeps the sums of the scales that it has evaluated last, so
            # larger scales are evaluated first.
            order = order[::-1]
        values = np.empty(len(scales))
        for block in blocks(len(scales), _SCALES_AT_ONCE):
            values[order[block]] = self._evaluate(scales[order[block]])
        return values

    def _evaluate(self, scales):
        """Compute the criterion (n,) at a few scales (n,); store and report the results."""
        sample = self.sample
        # Errors far below the square of `units.size`, the size of the targets, are rounding
        # errors.
        scores = zero_rounding_errors(self.leave_one_out.scores(scales), sample.units.size)
        # The trace is a sum over the predicted rows, and is extrapolated to all rows.
        predicted_fraction = len(self.leave_one_out.rows) / len(sample)
        scores = scores._replace(trace=scores.trace / predicted_fraction)
        values = self._values(scores, len(sample))
        for k, scale in enumerate(scales.tolist()):
            # Values for the user are in the unit of the targets as passed.
            value = sample.restore_criterion(values[k], self._criterion)
            error = sample.restore_criterion(scores.left_out[k], "loo")
            self._evaluated[scale] = (value, error, scores.trace[k])
            # Of equally good scales the largest is taken.
            self.trials.add(values[k], scale, tie=-scale)
            self.trials.report(value, scale * sample.std)
        return values

    def results(self):
        """Return the scales that were tried, ascending, and the `results` of a BandwidthChoice.

        The results are a dict of arrays with an entry for each scale.
        """
        scales = np.array(sorted(self._evaluated))
        values, errors, dof = np.array([self._evaluated[scale] for scale in scales.tolist()]).T
        return scales, {
            "bandwidth": scales[:, None] * self.sample.std,
            "criterion": values,
            "loo_error": errors,
            "degrees_of_freedom": dof,
        }

    def minimizer_options(self):
        """Choose options of :func:`minimize_scale`: the step of the grid, and an approximation.

        There is no approximation if rows are left out in blocks, whose neighbours a subset
        would lack.
        """
        options = {"step": self._step()}
        return options if self._rows.gap else options | self._approximation()

    def _step(self):
        """Return the step of the grid, which is smaller for curves with many local minima."""
        n_features, n_rows = len(self._rows.columns.numeric), len(self.sample)
        is_compact, is_local = isinstance(self._kernel, CompactKernel), self._rows.degree > 0
        if not (self._in_linear_time and n_features == 1):
            return STEP if is_compact or n_features == 1 else WIDE_STEP
        # Curves of few rows are bumpy. Those of polynomials, which extrapolate in sparse tails,
        # stay so for more rows, and those of compact kernels, which have kinks, for many more.
        if is_compact and is_local and n_rows <= MAX_SEARCH_ROWS:
            return STEP / 3
        max_bumpy_rows = MAX_SEARCH_ROWS * (10 if is_compact else 1) // (1 if is_local else 4)
        return STEP if n_rows <= max_bumpy_rows else WIDE_STEP

    def _approximation(self):
        """Return options of :func:`minimize_scale` with which it computes its grid fast.

        ``approximate(scales)`` computes the criterion of a subset of the sample, of which some
        rows are predicted, and ``error`` is how far its minimum may be from that of the sample.
        There are no options if this would predict all rows of the sample.
        """
        sample, n_features = self.sample, len(self._rows.columns.numeric)
        if self._in_linear_time and n_features == 1:
            n_predicted = n_subset = min(len(sample), _GRID_ROWS)
        else:
            n_predicted = n_subset = min(len(sample), MAX_SEARCH_ROWS)
            # Only some rows of the subset are predicted if the minimum need not be precise.
            if self._rows.precision > PRECISION:
                n_predicted = min(n_subset, _COARSE_ROWS)
        if len(sample) == n_predicted:
            return {}
        subset = sample.subset(n_subset)
        predicted = subset.representative_positions(n_predicted)
        leave_one_out = self._make_leave_one_out(subset, predicted)
        # The subset has fewer rows, and needs larger bandwidths: the scales of the sample are
        # divided by this factor, which is below 1.
        n_ratio, decreasing = len(sample) / n_subset, self._kernel.decreasing
        factor = optimal_rate_factor(n_ratio, n_features, decreasing=decreasing)

        def approximate(scales):
            scores = leave_one_out.scores(scales / factor)
            # The trace is a sum over the predicted rows, and is extrapolated to the subset.
            scores = scores._replace(trace=scores.trace * n_subset / n_predicted)
            return self._values(scores, n_subset)

        return {"approximate": approximate, "error": _SAMPLE_ERROR}

    def _make_leave_one_out(self, sample, predicted):
        """Return the LeaveOneOut of `sample`, which is `self.sample` or a subset of it.

        Scale 1 stands for the standard deviations of `self.sample` in both cases, so that a
        scale means the same bandwidth. `predicted` has the positions of the rows to predict;
        None for all.
        """
        return LeaveOneOut(
            sample.X,
            sample.values,
            mixed_kernel(self._kernel, self._rows.columns, lam=None),
            bandwidth=self.sample.std,
            sample_weight=sample.sample_weight,
            rows=predicted,
            gap=self._rows.gap,
            **self._rows.options,
        )

    def _values(self, scores, n_samples):
        """Return the criterion (n_scales,) of Scores of `n_samples` rows."""
        size = self.sample.units.size
        return evaluate_criterion(self._criterion, scores, n_samples, size)

"""What all forecasters share: everything but how a window is answered."""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from .._base import AttentionEstimator, keeps_state_on_failure
from .._validation import check_in_open_interval, check_positive, check_probabilities
from ._backtest import backtest
from ._calibration import (
    calibrated,
    calibration_without_origins,
    drift_since,
    growth,
    interval_margin,
    quantile_shift,
)
from ._checks import refuse_leakage, resolve_past
from ._features import with_features
from ._inputs import (
    check_follows,
    read_given,
    read_later,
    read_request,
    with_known,
    without_gaps,
)
from ._measures import naive_scales
from ._origins import evenly_spread
from ._season import season_of
from ._table import Form, Table
from ._time import TimeIndex

# Origins since the fit whose errors are looked at, of each series.
_SINCE = 20


class Forecaster(AttentionEstimator, ABC):
    """Base class of forecasters: reads series, keeps time, calibrates.

    A subclass says how to learn from series, :meth:`_learn`, and what follows origins in them,
    :meth:`_forecast`. If it knows a distribution, it also defines :meth:`_quantiles`.

    Parameters
    ----------
    horizon : int, default=1
        How many steps are forecast at once. Further ones are forecast from forecasts.
    lookback : int or "auto", default="auto"
        How many past steps a forecast is made from. "auto" is three seasons, at least the
        horizon and 10, and at most a quarter of the longest series.
    season_length : int or "auto", default="auto"
        Steps in a season. "auto" goes by the frequency, or by the autocorrelation.
    past_features : sequence of str or int, default=None
        Columns of X that are known only up to now, by name, or by position in arrays.
    missing : {"raise", "interpolate", "seasonal"}, default="raise"
        What is done about missing values between others: an error, values on the line between
        their neighbours, or values as one season before and after, a trend apart. Features
        are interpolated by both.

    Attributes
    ----------
    lookback_, horizon_, season_length_ : int
        Steps of a window, of what is forecast at once, and of a season.
    scale_ : ndarray of shape (n_series,)
        Of each training series the mean absolute difference between neighbours.
    observed_ : Table
        The series and features observed so far.
    calibration_ : dict
        Held-out ``errors``, in units of those of their series, which are the ``unit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.

    See Also
    --------
    KernelForecaster : Averages what followed similar windows of the past.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import Forecaster
    >>> class SeasonalNaive(Forecaster):
    ...     def _learn(self, observations, context, task_data):
    ...         self.lookback_ = self.season_length_
    ...         origins = observations.origins(self.horizon_, self.lookback_)
    ...         self._calibrate(origins, self._forecast(origins))
    ...
    ...     def _forecast(self, origins):
    ...         steps = np.arange(self.horizon_) % self.lookback_
    ...         return origins.past(self.lookback_)[:, steps]
    >>> model = SeasonalNaive(3, season_length=4).fit(np.tile([1.0, 2.0, 5.0, 3.0], 10))
    >>> model.predict(6)
    array([1., 2., 5., 3., 1., 2.])
    """

    def __init__(
        self,
        horizon=1,
        *,
        lookback="auto",
        season_length="auto",
        past_features=None,
        missing="raise",
    ):
        self.horizon = horizon
        self.lookback = lookback
        self.season_length = season_length
        self.past_features = past_features
        self.missing = missing

    @keeps_state_on_failure
    def fit(self, X, y=None):
        """Learn from series, and remember them to forecast from.

        Parameters
        ----------
        X : Series, DataFrame, dict, array, or features
            The series if `y` is None: a Series or 1-D array; a frame or 2-D array with a
            series in each column, whose missing values at the ends mean that a series is
            shorter; a dict of Series or of arrays; a Series with an index of two levels,
            series and time; or a frame with the columns "unique_id", "ds" (time) and "y", whose
            further columns are features. Otherwise features, a row for each observation: a
            frame, an array, an empty frame with an index, or the index itself. One of plain
            time is for all series alike.
        y : Series, DataFrame, dict or array, default=None
            The series, if X is not. An array takes its index from X, and an array X from `y`;
            beside an index alone an array is a Series or a frame, and so are the forecasts.

        Returns
        -------
        self : Forecaster
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        self._check_parameters()
        table = without_gaps(self, *read_given(self, X, y))
        return self._fit_table(table, {"X": X, "y": y, "metadata": {}})

    @with_callbacks
    def _fit_table(self, table, task_data):
        """Learn from a table, whose features this forecaster has read, and remember it."""
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        texts = names if hasattr(self, "feature_names_in_") else []
        self.past_names_, self.known_columns_ = resolve_past(
            self.past_features, self.n_features_in_, texts
        )
        self.observed_ = table = replace(table, known=self.known_columns_)
        if table.n_features:
            refuse_leakage(table, names)
        self.horizon_ = int(self.horizon)
        self.season_length_ = season_of(table, self.season_length)
        self.scale_ = naive_scales(table.values)
        context = self._init_callback_context(max_subtasks=self._max_subtasks)
        context.call_on_fit_task_begin(estimator=self, **task_data)
        self._learn(table, context, task_data)
        context.call_on_fit_task_end(estimator=self, **task_data, reconstruction_attributes={})
        return self

    @keeps_state_on_failure
    def update(self, X, y=None):
        """Append observations to forecast from, without learning from them.

        Parameters
        ----------
        X, y
            As for :meth:`fit`: observations that follow the last ones. An array has no index,
            and follows. Series of new names are forecast as well from then on.

        Returns
        -------
        self : Forecaster
            The same estimator.

        Raises
        ------
        ValueError
            If observations overlap with those known, or leave a gap.

        Notes
        -----
        Intervals of a new series are in units of the differences between its neighbours so
        far, which a handful of observations do not tell well.
        """
        check_is_fitted(self)
        self._append(*read_later(self, X, y, may_add=True))
        return self

    def _append(self, later, rows):
        """Append observations that follow, with rows of features, to those known."""
        check_follows(self.observed_, later)
        if rows is not None and self.n_features_in_:
            later = with_features(later, rows, self.missing)
        self.observed_ = self.observed_.append(later)

    def predict(self, X=None, *, history=None, coverage=None):
        """Forecast.

        Parameters
        ----------
        X : None, int, date, Index, DataFrame or array, default=None
            What to forecast: None for `horizon` steps after the last observation, a number
            for so many, a date for all up to it (a text such as "2024-06" or a Period up to
            its end), a frame of features or an index for one step each row, an array of
            features for the steps that follow. Steps after a gap are forecast across it.
            Steps already observed are forecast one ahead, from the observations before them.
        history : Series, DataFrame, dict or array, default=None
            Fresh observations to forecast from in the place of those known; an array of
            shape (n_windows, lookback) is answered row by row. A forecaster with features
            finds those of `history` in further rows of X, which then needs an index.
        coverage : float or list of float, default=None
            Probabilities of intervals, as for :meth:`predict_interval`, to be returned beside
            the forecasts.

        Returns
        -------
        forecasts : Series, DataFrame, dict or ndarray
            In the form of the series, with the index of X or the continued one. With a
            `coverage` as for :meth:`predict_interval`, with the columns "forecast", and for a
            coverage of 0.9 "lower_90" and "upper_90".

        Notes
        -----
        Beyond the horizon forecasts are made from forecasts. Features that are known only up
        to now then stay as they were last. Where X ends within a horizon, its last row stands
        for those after it. Near the beginning of a series windows are filled up with its first
        observation.
        """
        check_is_fitted(self)
        check_coverage(coverage)
        table, requested = read_request(self, X, history)
        answers, columns = self._answer_rows(table, requested, coverage, history is not None)
        return requested.wrap(answers, columns)

    def _answer_rows(self, table, requested, coverage=None, fresh=False):
        """Forecasts, with the ends of intervals beside them if there is a coverage."""
        forecasts = self._answer(table, requested)
        if coverage is None:
            return forecasts, None
        parts, columns = [forecasts], ["forecast"]
        for level in check_coverage(coverage):
            parts.append(self._interval(table, requested, level, fresh))
            columns += [f"{end}_{100 * level:g}" for end in ("lower", "upper")]
        return np.column_stack(parts), columns

    def predict_interval(self, X=None, coverage=0.9, *, history=None):
        """Intervals that contain an observation with a given probability, step by step.

        Parameters
        ----------
        X, history
            As for :meth:`predict`.
        coverage : float, default=0.9
            Probability, between 0 and 1.

        Returns
        -------
        intervals : DataFrame, dict or ndarray
            Columns "lower" and "upper" for a Series, below each series' name for a frame. For
            arrays of shape (n_steps, 2), (n_steps, 2, n_series) for several series, and
            (n_windows, n_steps, 2) for an array of windows.

        Notes
        -----
        Split-conformal, for each step ahead: intervals are widened until they contain the
        share wanted, a little more for finite samples, of held-out windows in training. A step
        with too few of these for the coverage borrows the errors of all steps. The guarantee
        is for windows that are exchangeable; those of a series are only about so. After
        :meth:`update` errors since the fit count as well, though not for a `history`. In the
        i-th block of forecasts made from forecasts, distances to the forecast are multiplied
        by the root of i, as in a random walk: a rule without guarantee.
        """
        check_is_fitted(self)
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        table, requested = read_request(self, X, history)
        ends = self._interval(table, requested, coverage, history is not None)
        return requested.wrap(ends, ["lower", "upper"])

    def predict_quantiles(self, X=None, quantiles=(0.1, 0.5, 0.9), *, history=None):
        """Quantiles of the distribution of each step.

        Parameters
        ----------
        X, history
            As for :meth:`predict`.
        quantiles : array-like of shape (n_quantiles,), default=(0.1, 0.5, 0.9)
            Probabilities, between 0 and 1.

        Returns
        -------
        forecasts : DataFrame, dict or ndarray
            As for :meth:`predict_interval`, with a column for each quantile.

        Notes
        -----
        Each quantile is moved by the quantile of its errors on the hold-out.
        """
        check_is_fitted(self)
        levels = check_probabilities("quantiles", quantiles)
        table, requested = read_request(self, X, history)
        errors, kept = self.calibration_["errors"], self.calibration_["levels"]
        shifts = [quantile_shift(errors, kept, level) for level in levels]
        shifts, fresh = np.stack(shifts, axis=-1), history is not None
        answers = self._answer(table, requested, levels, shifts, fresh)
        return requested.wrap(answers, levels.tolist())

    def score(self, X, y=None):
        """Minus the mean absolute scaled error; higher is better.

        Parameters
        ----------
        X, y
            As for :meth:`fit`. Observations after the training series, or within.

        Returns
        -------
        score : float

        Notes
        -----
        Errors are divided by `scale_`, the error of the naive forecast on the training series
        [1]_, and averaged over steps, then over series. A gap after the training series is
        forecast across.

        References
        ----------
        .. [1] Hyndman, R. J. and Koehler, A. B. (2006). Another look at measures of forecast
           accuracy. International Journal of Forecasting 22, 679-688.
        """
        check_is_fitted(self)
        later, rows = read_later(self, X, y)
        table = with_known(self, self.observed_, rows, later)
        answers = np.split(self._answer(table, later), later.first[1:])
        scale = naive_scales(self.observed_.values)
        scale[: len(self.scale_)] = self.scale_
        errors = [
            np.abs(found - actual).mean() / unit
            for found, actual, unit in zip(answers, later.values, scale, strict=True)
            if len(actual)
        ]
        return -float(np.mean(errors))

    def backtest(self, X, y=None, *, cv=5, refit=False, coverage=None):
        """Forecasts from several points in the past, beside what happened.

        Parameters
        ----------
        X, y
            As for :meth:`fit`.
        cv : int or cross-validation splitter, default=5
            How steps, from the first of any series to the last of any, are split into the
            past and what is to be forecast. A number stands for so many folds of `horizon`
            steps at the end, ``TimeSeriesSplit(cv, test_size=horizon)``.
        refit : bool, default=False
            Whether to learn anew for every fold. Otherwise a fold learns nothing but the
            observations before it: learning ends with the past of the first.
        coverage : float or list of float, default=None
            Probabilities of intervals to be returned as well.

        Returns
        -------
        forecasts : DataFrame
            Columns "fold", "cutoff" (the last step before the forecasts are made), "time",
            "actual" and "forecast", for a coverage of 0.9 "lower_90" and "upper_90", and
            first "series" unless `fit` takes a single series for it. Steps without an
            observation, and series that begin after the cutoff, are left out.

        See Also
        --------
        mase, msis, crps : Errors of forecasts, intervals and quantiles.
        """
        return backtest(self, X, y, cv, refit, coverage)

    @abstractmethod
    def _learn(self, observations, context, task_data):
        """Learn from series, and set `lookback_` and `calibration_`.

        Parameters
        ----------
        observations : Table
            The training series.
        context : CallbackContext
            Of the fit; further tasks are its subcontexts.
        task_data : dict
            What callbacks may ask for.
        """

    @abstractmethod
    def _forecast(self, origins):
        """Forecasts at some origins.

        Parameters
        ----------
        origins : Origins
            Their targets are not known.

        Returns
        -------
        forecasts : ndarray of shape (n_origins, horizon)
        """

    def _quantiles(self, origins, forecasts, levels):
        """Quantiles of what follows origins; the forecasts if there is no distribution.

        Parameters
        ----------
        origins : Origins
        forecasts : ndarray of shape (n_origins, horizon)
        levels : sequence of float

        Returns
        -------
        quantiles : ndarray of shape (n_origins, horizon, n_levels)
        """
        return np.repeat(forecasts[:, :, None], len(levels), axis=2)

    def _disagreement(self, origins):
        """How far candidate forecasts lie from their mean; 0 if there is but one forecast.

        Parameters
        ----------
        origins : Origins

        Returns
        -------
        disagreement : float or ndarray of shape (n_origins, horizon)
        """
        return 0.0

    def _encode(self, values):
        """Values of a series in the units that are computed in."""
        return values

    def _decode(self, values):
        """The reverse of :meth:`_encode`."""
        return values

    @property
    def _least_history(self):
        """How many steps a fresh series needs to have."""
        return self.lookback_

    @property
    def _max_subtasks(self):
        """How many tasks `_learn` reports to callbacks; None if that is not known before."""
        return 0

    def _check_parameters(self):
        check_positive("horizon", self.horizon, integer=True)

    _held = Table, TimeIndex, Form

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.target_tags.multi_output = True
        return tags

    def _calibrate(self, origins, forecasts, levels=(0.5,), block=0, disagreement=0.0):
        """Remember errors of held-out forecasts, in units of the errors of each series.

        Parameters
        ----------
        origins : Origins
            That were not learned from.
        forecasts : ndarray of shape (n_origins, horizon)
        levels : sequence of float, default=(0.5,)
            Whose quantiles are calibrated.
        block : int or ndarray of int of shape (n_origins,), default=0
            Which block of time each origin is in.
        disagreement : float or ndarray of shape (n_origins, horizon), default=0.0
            As :meth:`_disagreement` finds.
        """
        observations = origins.table
        if len(origins) == 0:
            calibration = calibration_without_origins(origins, levels)
        else:
            missed = origins.targets()[:, :, None] - self._quantiles(origins, forecasts, levels)
            scale = naive_scales(observations.values)
            calibration = calibrated(missed, origins.series, block, scale, disagreement)
        self.calibration_ = {"levels": np.array(levels), "until": observations.lengths}
        self.calibration_ |= calibration

    def _encoded(self, table):
        """The table that is forecast from, in the units that forecasts are made in."""
        return table.with_values(list(map(self._encode, table.values)))

    def _answer(self, table, requested, levels=None, shifts=None, fresh=False):
        """Forecasts of the rows of a table, or quantiles shifted in units of the errors."""
        observations, series = self._encoded(table), requested.series
        ahead = requested.step - table.ends[series]
        if levels is not None:
            ranks = np.argsort(np.argsort(levels))
            drift = np.ones(len(table)) if fresh else self._drift(observations)

        def describe(origins, forecasts, block):
            if levels is None:
                return self._decode(forecasts)
            found = self._quantiles(origins, forecasts, levels)
            unit = drift[origins.series][:, None] * self._units(origins)
            found = found + unit[:, :, None] * shifts
            center = forecasts[:, :, None]
            found = center + np.sqrt(block + 1) * (found - center)
            # Corrections may make quantiles cross.
            return self._decode(np.sort(found, axis=2)[:, :, ranks])

        ends, blocks = observations.at_ends(self.horizon_), []
        found = np.empty((len(ahead), *(() if levels is None else (len(levels),))))
        within = np.flatnonzero(ahead < 0)
        within = within[np.argsort(series[within], kind="stable")]
        # Nothing is known before the first step, which stands for itself.
        places = np.maximum(requested.step - table.starts[series], 0)
        origins = ends.at(series[within], places[within])
        for block in range(-(-(ahead.max() + 1) // self.horizon_)):
            # Each block is forecast from the forecasts of those before.
            forecasts = self._forecast(ends)
            blocks.append(describe(ends, forecasts, block))
            ends = ends.table.extended(forecasts).at_ends(self.horizon_)
        if blocks:
            later = ahead >= 0
            found[later] = np.concatenate(blocks, axis=1)[series[later], ahead[later]]
        if len(within):
            found[within] = describe(origins, self._forecast(origins), 0)[:, 0]
        return found

    def _units(self, origins):
        """What errors are to be expected at some origins; (n_origins, horizon or 1)."""
        observations, series = origins.table, origins.series
        known, calibration = observations.identity >= 0, self.calibration_
        scale = 1.0 if known.all() else naive_scales(observations.values)
        error, unit = (
            np.where(known, calibration[name][observations.identity], scale * usual)[series]
            for name, usual in zip(("error", "unit"), calibration["usual"], strict=True)
        )
        return unit[:, None] * growth(self._disagreement(origins), error)

    def _drift(self, observations):
        """By what errors since the fit exceed those held out, of each series; (n_series,)."""
        horizon, first = self.horizon_, self.calibration_["until"]
        width = np.maximum(observations.lengths[: len(first)] - first - horizon + 1, 0)
        parts = [evenly_spread(n, _SINCE) for n in width]
        series = np.repeat(np.arange(len(first)), list(map(len, parts)))
        n_series = len(observations.values)
        if len(series) == 0:
            return np.ones(n_series)
        origins = observations.at_ends(horizon).at(
            series, first[series] + np.concatenate(parts)
        )
        levels, held_out = self.calibration_["levels"], self.calibration_["errors"]
        found = self._quantiles(origins, self._forecast(origins), levels)
        errors = (origins.targets()[:, :, None] - found) / self._units(origins)[:, :, None]
        n_horizons = np.zeros(n_series)
        n_horizons[: len(first)] = (width - 1) / horizon + 1
        return drift_since(errors, held_out, series, n_series, n_horizons)

    def _interval(self, table, requested, coverage, fresh):
        """Lower and upper ends of the intervals of a coverage; (n_rows, 2)."""
        errors, levels = self.calibration_["errors"], self.calibration_["levels"]
        margin = interval_margin(errors, levels, coverage)  # (horizon,)
        ends = [(1 - coverage) / 2, (1 + coverage) / 2]
        shifts = np.stack([-margin, margin], axis=-1)
        return self._answer(table, requested, ends, shifts, fresh)


def check_coverage(coverage):
    """Probabilities of intervals beside forecasts; none for None."""
    return [] if coverage is None else check_probabilities("coverage", coverage).tolist()

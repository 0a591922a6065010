"""Base class of forecasters: data, time and intervals, but not the forecasts."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._base import (
    AttentionEstimator,
    keeps_state_on_failure,
    parameters,
    warn_user,
    with_callbacks,
)
from .._columns import Columns
from .._report import Report
from .._shapley import refuse_column
from .._validation import check_in_open_interval, check_positive, check_target_bounds
from ._backtest import backtest
from ._calibration import Calibration
from ._checks import (
    check_levels,
    fill_features,
    fill_values,
    refuse_leakage,
    refuse_too_small,
)
from ._feature_effects import (
    added_by_features,
    columns_by_name,
    level_shares,
    rare_events,
    usual_features,
    with_unknown_levels,
)
from ._feature_rows import column_of_each_feature, with_features
from ._inputs import (
    continue_series,
    make_training_table,
    read_later_data,
    read_request,
    read_training_data,
    with_future_covariates,
)
from ._origins import Origins
from ._output_forms import wrap
from ._panels import over_groups
from ._season_length import choose_season_length
from ._step_forecasts import StepForecasts
from ._stored_forms import BUILDERS
from ._table import Form, Table, naive_scales
from ._time import TimeIndex
from ._transform import Transform, damped

# Column of forecasts where features have their usual values.
_USUAL = "usual"


@parameters
class Forecaster(StepForecasts, AttentionEstimator, ABC):
    """Base class of forecasters, which reads series and calibrates intervals.

    Derive from it to write a forecaster of your own that takes arrays, pandas objects, one
    series or many. To forecast, take :class:`~sklearn_attention.TransformerForecaster`.

    A subclass has two methods. ``_learn(table, report)`` learns from a ``Table``, and sets
    `lookback_` and `calibration_`. ``_forecasts(origins, levels=None)`` returns ``Forecasts``
    at ``Origins``, only from steps before them; with `levels` their quantiles, if there is a
    distribution, and the disagreement of candidates. The modules of `forecasting` whose names
    begin with an underscore have these three classes.

    Parameters
    ----------
    horizon : int, default=1
        Number of steps to forecast at once. Further ones are forecast from forecasts.
    lookback : int or "auto", default="auto"
        Number of past steps that a forecast is made from. "auto" is three seasons, at least the
        horizon and 10, and at most a quarter of the longest series.
    season_length : int or "auto", default="auto"
        Steps in a season. "auto" chooses it by the frequency, or by the autocorrelation.
    past_features : sequence of str or int, default=None
        Columns of X that are known only up to the origin, by name, or by position in arrays.
        Unless `missing` is "raise", one that is published late keeps its last known value up to
        the end of the series.
    missing : {"raise", "interpolate", "seasonal", "zero"}, default="raise"
        Treatment of missing values between others, and of steps that an index lacks: an error,
        values on the line between their neighbours, values as one season before and after, up
        to a trend, or 0, as in sales without rows of days on which nothing was sold. But with
        "raise" a series is shorter where values are missing at its ends, and features are
        interpolated.
    bounds : "auto", (float, float) or None, default="auto"
        Bounds to which forecasts and intervals are clipped; None is an open end, or no bounds.
        "auto" is 0 from below for series without a negative value, both in training and up to
        the origin of the forecast.

    Attributes
    ----------
    lookback_, horizon_, season_length_ : int
        Steps of a window, of what is forecast at once, and of a season.
    scale_ : ndarray of shape (n_series,)
        Mean absolute difference between neighbours of each training series, single outliers
        damped.
    observed_ : Table
        The series and features observed so far.
    calibration_ : Calibration
        Residuals of held-out forecasts, scaled by their expected size, and these sizes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.
    columns_ : Columns
        Kinds of the features, and the levels of categories.
    events_ : list of int
        Known columns of features that have two values, one of them rarely and for less than a
        season, such as holidays. The steps since and until then are further features.

    See Also
    --------
    KernelForecaster : Averages what followed similar windows of the past.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import Calibration, Forecaster, Forecasts, Origins
    >>> class SeasonalNaive(Forecaster):
    ...     def _learn(self, table, report):
    ...         self.lookback_ = self.season_length_
    ...         origins = Origins.within(table, self.horizon_, self.lookback_)
    ...         self.calibration_ = Calibration.fit(self._forecasts(origins))
    ...
    ...     def _forecasts(self, origins, levels=None):
    ...         steps = np.arange(self.horizon_) % self.lookback_
    ...         return Forecasts(origins, origins.past(self.lookback_)[:, steps])
    >>> model = SeasonalNaive(3, season_length=4).fit(np.tile([1.0, 2.0, 5.0, 3.0], 10))
    >>> model.predict(6)
    array([1., 2., 5., 3., 1., 2.])
    """

    horizon: int = 1
    _: KW_ONLY
    lookback: int | str = "auto"
    season_length: int | str = "auto"
    past_features: Any = None
    missing: str = "raise"
    bounds: Any = "auto"

    @keeps_state_on_failure
    @over_groups
    def fit(self, X, y=None) -> Self:
        """Learn from series, and store them to forecast from.

        Parameters
        ----------
        X : Series, DataFrame, dict, array, or features
            The series if `y` is None: a Series or 1-D array; a frame or 2-D array with a
            series in each column, whose missing values at the ends mean that a series is
            shorter; a dict of Series or of arrays; a Series with an index of two levels,
            series and time; or a frame with the columns "unique_id", "ds" (time) and "y", or
            "ds" and "y" of one series, whose further columns are features. Frames of polars
            have times in "ds"; their rows follow one another without. A Dask frame with
            "unique_id" may have any number of series; see Notes. With `y`, features, a row for
            each observation: a frame, whose texts and categorical dtypes are categories, an
            array, or only an index. Rows of frames are found by their index, and may be more;
            one of only time is for all series alike.
        y : Series, DataFrame, dict or array, default=None
            The series, if X is not. An array takes its index from X, and an array X from `y`;
            with only an index or dates as X an array becomes a Series or a frame, and so do
            the forecasts.

        Returns
        -------
        self : Forecaster
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid, or `y` cannot be a series, as where it is
            passed first. The estimator then is as it was before.

        Notes
        -----
        Of a Dask frame a forecaster is fitted to each group of about 500 series, which a hash
        of "unique_id" forms; if that is the index, and divisions are known, each partition is a
        group. `panel_` then holds the forecasters of the groups, and other fitted attributes
        are only those that all groups share. Methods that return frames return Dask frames,
        which are computed later; their first group is computed at once, for the columns.
        """
        self._check_every_parameter()
        table = make_training_table(self, *read_training_data(self, X, y))
        return self._fit_table(table, {"X": X, "y": y, "metadata": {}})

    @with_callbacks
    def _fit_table(self, table, task_data):
        """Learn from a table, whose features this forecaster has read, and store it."""
        columns = column_of_each_feature(self)
        self.observed_, self.known_columns_ = table, table.future_columns
        refuse_leakage(table, columns)
        refuse_too_small(table)
        self.scale_ = naive_scales(damped(table).observations)
        # Series are learned from in an order of their content. So the order in which they are
        # passed changes nothing, even if rows are drawn.
        order = table.order_of_content()
        self.observed_ = replace(self.observed_, training_index=np.argsort(order))
        table = table.take_series(order)
        self.transform_ = Transform.without_log(self.bounds, table.observations)
        self.horizon_ = int(self.horizon)
        usual = usual_features(table, columns)
        shares = level_shares(table, columns)
        self._keep("missing", usual=usual, min_break=self._min_break, level_shares=shares)
        self.season_length_ = choose_season_length(damped(table), self.season_length)
        table = damped(self._aligned(table)[0])
        events = {}
        if self._sees_events and len(table.future_columns):
            events = rare_events(table, self.season_length_, usual)
        self.events_, self._kept["event_values"] = list(events), list(events.values())
        table = self._with_events(table)
        length = int(table.lengths.max())
        at_once = self._kept["at_once"] = self._steps_at_once(length)
        if at_once < self.horizon_:
            warn_user(
                f"horizon={self.horizon_} is more than can be learned from series of up to "
                f"{length} steps: {at_once} are forecast directly, and later steps from these "
                "forecasts. Pass longer series or a smaller horizon to avoid this."
            )
        report = Report(self, **task_data)
        report.begin(self._max_subtasks)
        self._learn(table, report)
        report.end()
        return self

    @keeps_state_on_failure
    @over_groups
    def update(self, X, y=None) -> Self:
        """Append observations to forecast from, without learning from them.

        Parameters
        ----------
        X, y
            As for :meth:`fit`: observations that follow the last ones, as an array without
            index always does. Series of new names are forecast as well from then on. Missing
            values are filled from earlier observations too; at the end they stay missing until
            the next update.

        Returns
        -------
        self : Forecaster
            The same estimator.

        Raises
        ------
        ValueError
            If observations overlap with earlier ones, or leave a gap.

        Notes
        -----
        Intervals of a new series are in units of the differences between its neighbours so
        far, which a handful of observations do not determine well.
        """
        check_is_fitted(self)
        self._append(*read_later_data(self, X, y, may_add=True))
        return self

    def _append(self, later, rows, what="y"):
        """Append observations that follow, with rows of features, and fill gaps by both."""
        missing = self._kept["missing"]
        later = continue_series(self.observed_, later, missing)
        if rows is not None and self.n_features_in_:
            later = with_features(later, rows)
        options = {"missing": missing, "season_length": self.season_length_, "what": what}
        table = fill_values(self.observed_.append(later), **options)
        self.observed_ = fill_features(table, missing, column_of_each_feature(self))

    @over_groups
    def predict(self, X=None, *, history=None, coverage=None) -> Any:
        """Forecast series.

        Parameters
        ----------
        X : None, int, date, Index, DataFrame or array, default=None
            Steps to forecast: None for `horizon` steps after the last observation, a number
            for so many, a date for all up to it (a text such as "2024-06" or a Period up to
            its end), a frame of features or an index for one step each row, an array of
            features for the steps that follow. Steps after a gap are forecast across it.
            Steps already observed are forecast one ahead, from the observations before them.
        history : Series, DataFrame, dict or array, default=None
            Observations to forecast from in the place of the stored ones; an array of shape
            (n_windows, lookback) is forecast row by row. A forecaster with features
            finds those of `history` in further rows of X, which then needs an index.
        coverage : float or list of float, default=None
            Probabilities of intervals, as for :meth:`predict_interval`, to be returned with
            the forecasts.

        Returns
        -------
        forecasts : Series, DataFrame, dict or ndarray
            In the form of the series, of pandas or polars, with the index of X or the continued
            one. With a `coverage` as for :meth:`predict_interval`, with the columns "forecast",
            and for a coverage of 0.9 "lower_90" and "upper_90".

        Notes
        -----
        Beyond the horizon forecasts are made from forecasts. Features known only up to the
        origin then keep their last values. Where X ends within a horizon, its last row is
        repeated. Near the beginning of a series windows are filled up with its first
        observation.

        Where one change within the last three seasons or horizons is far larger than all
        others, and the level stays another one for three steps or more, steps before it count
        as if they had been at the level after it. If the last three values are farther from the
        forecasts than at any time that was held out, these go on from the last value.
        """
        check_is_fitted(self)
        if coverage is not None:
            coverage = check_levels("coverage", coverage)
        table, requested = read_request(self, X, history)
        is_history = history is not None
        forecast_rows, columns = self._forecast_rows(table, requested, coverage, is_history)
        return wrap(requested, forecast_rows, columns)

    def _forecast_rows(self, table, requested, coverages=None, is_history=False):
        """Forecast the requested steps; return an array and the names of its columns.

        Without `coverages` the array (n_rows,) has the forecasts, and the names are None.
        Otherwise it (n_rows, 1 + 2 n_coverages) has the ends of the intervals beside them.
        """
        if coverages is None:
            return self._requested_columns(table, requested)[:, 0], None
        ends = [f"{end}_{100 * level:g}" for level in coverages for end in ("lower", "upper")]
        return self._intervals(table, requested, coverages, is_history), ["forecast", *ends]

    @over_groups
    def predict_interval(self, X=None, coverage: float = 0.9, *, history=None) -> Any:
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
        Split conformal prediction. Residuals of held-out forecasts in training are divided by
        the size that is expected of them: by series, by steps ahead, and by how far candidate
        forecasts differ. An interval is widened until it contains the share `coverage` of these
        scaled residuals, a little more for finite samples. A forecaster with few held-out
        windows also uses the residuals of a random walk. The guarantee is for exchangeable
        residuals; those of a series are so only approximately. After :meth:`update` the
        residuals since the fit count as well, though not for a `history`. A wider coverage
        never lies inside a narrower one.

        Three rules have no guarantee. Beyond the horizon the squared width grows in every
        further horizon by what lies between the first and the last step of the first one: as
        for a random walk, or not at all. Where the last value, moved by the seasonal pattern,
        is farther from the forecast than one and a half times what was seen before, the series
        may have jumped: the interval reaches it. No end is farther from the forecast than 1.75
        times the largest change of the series within as many steps.

        After a break squared widths are 1 + 12 / n times as large, n steps after it.
        """
        check_is_fitted(self)
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        table, requested = read_request(self, X, history)
        ends = self._intervals(table, requested, [coverage], history is not None)[:, 1:]
        return wrap(requested, ends, ["lower", "upper"])

    @over_groups
    def predict_quantiles(
        self, X=None, quantiles: ArrayLike = (0.1, 0.5, 0.9), *, history=None
    ) -> Any:
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
        Each quantile is moved by the quantile of its held-out residuals; see
        :meth:`predict_interval`. Then quantiles are sorted, so that they do not cross.
        """
        check_is_fitted(self)
        levels = check_levels("quantiles", quantiles)
        table, requested = read_request(self, X, history)

        def ends_from(forecasts, drift, jump):
            return self.calibration_.quantiles(forecasts, levels, drift, jump)

        is_history = history is not None
        quantiles = self._requested_columns(table, requested, ends_from, is_history, levels)
        return wrap(requested, quantiles[:, 1:], levels)

    @over_groups
    def score(self, X, y=None) -> float:
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
        later, rows, _ = read_later_data(self, X, y)
        table = with_future_covariates(self, self.observed_, rows, later)
        forecasts = np.split(self._requested_columns(table, later)[:, 0], later.first_rows[1:])
        scale = naive_scales(self.observed_.observations)
        scale[: len(self.scale_)] = self.scale_
        errors = [
            np.abs(forecast - actual).mean() / unit
            for forecast, actual, unit in zip(forecasts, later.observations, scale, strict=True)
            if len(actual)
        ]
        return -float(np.mean(errors))

    @over_groups
    def backtest(self, X, y=None, *, cv: Any = 5, refit: bool = False, coverage=None) -> Any:
        """Forecasts from several points in the past, with the observed values.

        Parameters
        ----------
        X, y
            As for :meth:`fit`.
        cv : int or cross-validation splitter, default=5
            Splits of the steps, from the first of any series to the last of any, into the past
            and the steps to forecast. A number stands for so many folds of `horizon` steps at
            the end, ``TimeSeriesSplit(cv, test_size=horizon)``.
        refit : bool, default=False
            Whether to fit for every fold. Otherwise there is one fit, on the past of the first
            fold, and later folds only add the observations before them.
        coverage : float or list of float, default=None
            Probabilities of intervals to be returned as well.

        Returns
        -------
        forecasts : DataFrame
            Columns "fold", "cutoff" (the last step before the forecasts are made), "time",
            "actual" and "forecast", for a coverage of 0.9 "lower_90" and "upper_90", and
            first "series" unless `fit` takes a single series for it. Of a frame of
            observations "unique_id", "ds" and "y" take the place of "series", "time" and
            "actual", so that it can be handed to ``utilsforecast.evaluation.evaluate``. Steps
            without an observation, and series that begin after the cutoff, are left out.

        See Also
        --------
        mase, msis, crps : Errors of forecasts, intervals and quantiles.
        """
        return backtest(self, X, y, cv, refit, coverage)

    @over_groups
    def explain_features(self, X=None, *, history=None) -> Any:
        """Explain what each known feature adds to forecasts of the steps after the series.

        Parameters
        ----------
        X, history
            As for :meth:`predict`, but only of steps after the last observation.

        Returns
        -------
        effects : DataFrame, dict or ndarray
            In the form of :meth:`predict` with a `coverage`: the column "usual" is the forecast
            if all features that are known beforehand had their usual values, the median or the
            most frequent category of the fit. A column for each feature is what its values in X
            add. The columns of a step sum to its forecast.

        Raises
        ------
        ValueError
            If no features are known beforehand, one is named "usual", or steps have been
            observed.

        Notes
        -----
        Features take their values one after the other, in the order of the columns and in the
        opposite one, and the difference each makes is averaged over both. Of two features these
        are Shapley values [1]_, of more an estimate of them by two permutations.

        References
        ----------
        .. [1] Shapley, L. S. (1953). A value for n-person games. Contributions to the Theory of
           Games 2, 307-317.
        """
        check_is_fitted(self)
        names = column_of_each_feature(self)
        features = columns_by_name(names, self.known_columns_)
        if not features:
            raise ValueError(
                "explain_features needs features that are known in advance, but the "
                "forecaster was fitted with none: fit it with X and y, and leave at least one "
                "column of X out of past_features."
            )
        refuse_column(names, _USUAL, "forecast without effects")
        table, requested = read_request(self, X, history)
        observed = np.flatnonzero(requested.step < table.ends[requested.series])
        if len(observed):
            raise ValueError(
                f"X has {len(observed)} steps that were observed already, from "
                f"{table.time.name_steps(requested.step[observed[:1]])} on: pass only steps "
                "after the end of the series."
            )

        def forecast(table):
            return self._requested_columns(table, requested)[:, 0]

        added = added_by_features(forecast, table, self._kept["usual"], features)
        return wrap(requested, added, [_USUAL, *(names[columns[0]] for columns in features)])

    @abstractmethod
    def _learn(self, table, report):
        """Learn from a Table; set `lookback_` and `calibration_`."""
        # Forecasts are made of `self.transform_.encode(table)`; `transform_` may be replaced by
        # another with the same bounds. `report` tells callbacks of tasks within the fit.

    @abstractmethod
    def _forecasts(self, origins, levels=None):
        """Make Forecasts at `origins`, only from steps before them.

        With `levels` they have quantiles at these levels, if there is a distribution, and the
        `ensemble_mad`.
        """

    @property
    def _least_history(self):
        """Smallest number of steps of a series passed as `history`."""
        return self.lookback_

    def _check_every_parameter(self):
        """Raise for parameters that are not valid, of all forecasters and of a subclass."""
        check_positive("horizon", self.horizon, integer=True)
        if not (isinstance(self.lookback, str) and self.lookback == "auto"):
            check_positive("lookback", self.lookback, integer=True)
        check_target_bounds(self.bounds)
        self._check_parameters()

    def _check_parameters(self):
        """Refuse parameters of a subclass that are not valid."""

    def _steps_at_once(self, length):
        """Choose how many steps are forecast at once where the longest series has `length`."""
        return self.horizon_

    @property
    def _at_once(self):
        """Number of steps that are forecast at once; further ones from forecasts."""
        return self._kept.get("at_once", self.horizon_)

    # True if the numbers of steps since and until rare events are features, too.
    _sees_events = False

    # A change is a break if its ratio to the largest other change is at least this.
    _min_break = 2.0

    # Number of tasks that `_learn` reports to callbacks; None if it is not known before.
    _max_subtasks = 0

    _held = Table, TimeIndex, Form, Calibration, Transform, Columns
    _builders = BUILDERS

    def __getattr__(self, name):
        """Explain why an attribute is missing after a fit to partitions of Dask."""
        if name.endswith("_") and not name.startswith("_") and "panel_" in vars(self):
            raise AttributeError(
                f"this {type(self).__name__} has no {name}: it was fitted to partitions of "
                "Dask, where each group of series has a forecaster of its own. To look at "
                "fitted attributes, fit a frame in memory, such as a few of the series."
            )
        # The error of Python, or that of a property.
        return super().__getattribute__(name)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.target_tags.multi_output = True
        return tags

    def _ends(self, X, history):
        """Read the series to forecast, for explanations.

        Returns
        -------
        encoded : Origins
            Origins at the ends of the series, on the scale of forecasts.
        plain : Origins
            The same origins in the series as they were passed.
        names : list
            Names of the series.
        """
        table, requested = read_request(self, X, history)
        if (requested.step < table.ends[requested.series]).all():
            raise ValueError(f"X={X!r} has no steps after the series: pass some to explain.")
        plain = Origins.at_ends(table, self._at_once)
        table, _ = with_unknown_levels(table, self._kept.get("level_shares", ()))
        moved = self._encoded(self._aligned(table)[0])
        return replace(plain, table=moved), plain, table.names

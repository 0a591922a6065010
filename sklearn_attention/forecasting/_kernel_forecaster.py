"""Forecasting by analogs: averages of what followed similar windows of the past."""

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._base import parameters
from .._validation import check_choice, check_in_open_interval
from ..kernels import Kernel
from ..kernels._base import as_kernel
from ._analog_search import choose_analogs
from ._analogs import MAX_KEYS, Analogs, refuse_negative
from ._calibration import MAX_CALIBRATION_ORIGINS, Calibration
from ._feature_effects import (
    FeatureBasis,
    FeatureEffects,
    learn_effects,
    without_future_covariates,
)
from ._forecaster import Forecaster
from ._origins import (
    SEASONAL,
    Forecasts,
    Origins,
    Validation,
    min_windows,
    split_at_ends,
)
from ._output_forms import to_library
from ._panels import over_groups
from ._season_length import choose_lookback, min_series_length, short_season
from ._table import naive_scales, spread_over_phases

_LEVELS = (0.01, 0.025, 0.05, *np.arange(0.1, 0.91, 0.1).round(1).tolist(), 0.95, 0.975, 0.99)
# The lookback "auto" tries 2 and 7 seasons, and only 2 for several series.
_SEASONS = (2, 7)
# Errors in three stretches of time choose the normalisation: on fifteen sets they lead to
# errors that are 0.96 of those with one stretch, 0.82 to 1.014.
_N_STRETCHES = 3
# In these stretches at most 2000 windows of a series are remembered: with 4000 a fit takes 1.2
# times the seconds, and errors are 0.999 of those.
_MAX_TRIED = 2000
# Intervals of a long single series are calibrated on this share of it, its last steps. At a
# coverage of 0.9 they contain 0.87 of the steps after random walks; with a share of 0.2 it is
# 0.84. With a share of 0.6 they contain only 0.2 of the steps soon after some series stopped.
_CALIBRATED = 0.35
# Before logarithms are taken, 0.01 is added to errors in units of their series.
_ADDED_ERROR = 0.01

# Values of the parameter `normalize`.
_NORMALIZE = ("auto", "last", "seasonal", "standard", "standard_seasonal")


@parameters
class KernelForecaster(Forecaster):
    r"""Forecast by averaging what followed similar windows of the past.

    Take it for one series or many if you want to see which windows of the past a forecast comes
    from. :class:`TransformerForecaster` combines several methods and has smaller errors on most
    series.

    .. math:: \hat y(q) = \frac{\sum_i K((q - k_i) / h)\, v_i}{\sum_j K((q - k_j) / h)}

    Nadaraya-Watson regression on windows: keys :math:`k_i` are windows of `lookback` steps,
    each normalised by itself, and values :math:`v_i` the `horizon` steps that followed, in
    the same units. Also called analog forecasting [1]_. Only the bandwidth :math:`h` is
    learned.

    Parameters
    ----------
    horizon : int, default=1
        Number of steps to forecast at once. Further ones are forecast from forecasts. If the
        longest series is too short for a season and two horizons, one of them in the share that
        is held out, fewer steps are forecast at once, and a warning says how many.
    lookback : int or "auto", default="auto"
        Number of past steps to compare. "auto" is two seasons, and of a single series two or
        seven, whichever has the least leave-one-out error; at least the horizon and 10, and at
        most a quarter of the longest series, or a season of up to 24 steps. With a given
        bandwidth it is two seasons.
    season_length : int or "auto", default="auto"
        Steps in a season. "auto" chooses it by the frequency, or by the autocorrelation.
    past_features : sequence of str or int, default=None
        Columns of X that are known only up to the origin, by name, or by position in arrays.
    missing : {"raise", "interpolate", "seasonal", "zero"}, default="raise"
        Treatment of missing values between others, and of steps that an index lacks: an error,
        values on the line between their neighbours, values as one season before and after, up
        to a trend, or 0.
    bounds : "auto", (float, float) or None, default="auto"
        Bounds to which forecasts and intervals are clipped; None is an open end, or no bounds.
        "auto" is 0 from below for series without a negative value, both in training and up to
        the origin of the forecast.
    validation_fraction : float, default=0.2
        Share of the windows, the last ones, from which bandwidths are not learned. They help
        choose the normalisation, and intervals of several series are calibrated on them. They
        become analogs like all others after that.
    kernel : str, Kernel or callable, default="gaussian"
        Similarity of windows; see :mod:`sklearn_attention.kernels`.
    bandwidth : "loo", float or array-like, default="loo"
        Divides the keys before they are compared, in their own units: one number, or one for
        each column of the keys. "loo" takes the multiple of the keys' spread of least squared
        error, every window predicted from those that share no targets with it.
    normalize : str or None, default="auto"
        Units of windows, and of the steps that followed them:

        * "standard" subtracts the mean and divides by the standard deviation;
        * "last" subtracts the last value, and of several series divides by the mean absolute
          difference between neighbours;
        * "seasonal" does so with the mean of the last season, and takes what followed relative
          to this season repeated, shrunk towards its mean by least squares;
        * "standard_seasonal" the same, in units of the standard deviation;
        * None does nothing.

        "auto" takes the seasonal one, and of a single series that of these and "standard" with
        least error on three stretches of later windows. Without a season in the window it is
        "standard" or "last", and with a given bandwidth "standard".

    Attributes
    ----------
    lookback_, horizon_, season_length_ : int
        Steps of a window, of a forecast at once, and of a season.
    normalize_ : str or None
        Units of windows, as in `normalize`.
    bandwidth_ : ndarray of shape (n_columns,)
        The bandwidth of each column of the keys: the steps of the window, then the features
        of these steps, then the known features of the steps to forecast.
    effects_ : FeatureEffects or None
        Effects of features known beforehand, which are not among the keys then.
    pooled_ : bool
        Whether a series is forecast from the windows of all series, as a single one always is,
        or from its own.
    loo_score_ : float
        Least mean squared leave-one-out error, of up to 24 of the steps ahead, in units of
        windows of the shortest lookback tried; only with the bandwidth "loo".
    kernel_ : Kernel
        The kernel, resolved.
    n_windows_ : int
        Number of windows that are remembered.
    analogs_ : Analogs
        The windows: their `keys`, of shape (n_windows, n_columns), and `values`, of shape
        (n_windows, horizon), which followed, both in units of the window; `series`, the series
        of each, by its position in the order in which series were learned from; `steps`, the
        position of the step after it on the training index; and `last_share`, of shape
        (horizon,), the shares with which forecasts follow the last value.
    scale_ : ndarray of shape (n_series,)
        Mean absolute difference between neighbours of each training series.
    observed_ : Table
        The series and features observed so far.
    calibration_ : Calibration
        Held-out ``scaled_residuals``; the ``unit`` of a series is the mean size of its own.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.
    columns_ : Columns
        Kinds of the features, and the levels of categories.

    See Also
    --------
    NadarayaWatsonRegressor : The same average for rows; with a given bandwidth, a horizon of 1
        and ``normalize=None`` the two agree on the matrix of lags.
    TransformerForecaster : Averages the forecasts of several methods.

    Notes
    -----
    Forecasts are in the units of the window they are made from. With ``normalize="last"`` they
    follow a series to levels not in training, with "standard" also to amplitudes not in
    training. With the seasonal ones the season comes from the window, and analogs determine
    only how the next season differs.

    With the bandwidth "loo" effects of known features, learned by a ridge regression of
    differences over a season, are subtracted from series before windows are compared, and added
    to forecasts, if they explain a twentieth of such differences. Otherwise, and with a given
    bandwidth, features are columns of the keys.

    Predictive distributions have the weights of the average at the values that followed. Their
    quantiles are calibrated, for several series on the last windows of each, for a single one
    in blocks of time, each forecast from all windows that share no steps with it; see
    :meth:`predict_interval`. Kernels that take negative values are refused.

    With the bandwidth "loo" and a normalisation that subtracts a mean, forecasts follow the
    last value if that has less error. It deviates from what the mean and the season before lead
    to expect by :math:`d`. Values k steps ahead are relative to :math:`\rho_k d`, with shares
    :math:`\rho_k` between 0 and 1. These are fitted by least squares after kernel averages are
    subtracted from values and deviations, as in a partially linear model [2]_.

    In units of standard deviations, windows that vary less than a tenth of the median one of
    their series, or much less than together with what followed, as before a jump, are left out,
    since what followed is measured in their unit. No bandwidth "loo" is tried with which most
    windows are predicted from their nearest one alone. Of more than
    20 000 windows, of all series or of the one that is forecast, as many are remembered; they
    are spread evenly over time and over the phases of any season. Of these 4000, and 24 of the
    steps ahead, choose the bandwidth.

    Of several series either all windows are averaged, or only those of the series that is
    forecast: whichever has the smaller leave-one-out error over all series. Series with less
    than 20 windows, and those that were not learned from, in `history` or after :meth:`update`,
    are forecast from the windows of all series in any case. Observations that :meth:`update`
    appends are forecast from, but become analogs only by a `fit`.

    References
    ----------
    .. [1] Lorenz, E. N. (1969). Atmospheric predictability as revealed by naturally occurring
       analogues. Journal of the Atmospheric Sciences 26, 636-646.
    .. [2] Robinson, P. M. (1988). Root-n-consistent semiparametric regression. Econometrica 56,
       931-954.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_attention import KernelForecaster
    >>> from sklearn_attention.datasets import make_periodic_series
    >>> days = pd.date_range("2024-01-01", periods=400, freq="D")
    >>> series = pd.Series(make_periodic_series("sine", 400), index=days, name="height")
    >>> model = KernelForecaster(horizon=3, lookback=20).fit(series)
    >>> model.predict().round(1)
    2025-02-04    0.7
    2025-02-05    0.7
    2025-02-06    0.6
    Freq: D, Name: height, dtype: float64
    """

    _: KW_ONLY
    validation_fraction: float = 0.2
    kernel: str | Kernel | Callable[..., Any] = "gaussian"
    bandwidth: str | ArrayLike = "loo"
    normalize: str | None = "auto"

    @over_groups
    def explain(self, X=None, k: int = 5, *, history=None) -> Any:
        """Windows of the past with the largest weights in the forecast.

        Parameters
        ----------
        X, history
            As for :meth:`predict`. The forecast of the first `horizon` steps after the end of
            each series is explained.
        k : int, default=5
            Number of windows; at most all that the forecast is averaged from.

        Returns
        -------
        analogs : DataFrame
            For each series its analogs, the heaviest first, with their "weight" in the
            average; all of them together have weight 1. "time" is the last step of the window.
            With several series "series" is the one that is forecast, "analog" the window's.
        """
        check_is_fitted(self)
        origins, _, series_names = self._ends(X, history)
        if self.effects_ is not None:
            origins = replace(origins, table=self.effects_.remove_from(origins.table))
        rows, windows, weights = self.analogs_.heaviest(origins, k)
        time, names = self.observed_.time, self.observed_.learned_names
        ends = time.index_between(0, len(time))[self.analogs_.steps[windows] - 1]
        table = pd.DataFrame({"time": ends, "weight": weights})
        if len(origins) > 1 or len(self.observed_) > 1 or self.observed_.form.named_rows:
            table.insert(0, "analog", [names[i] for i in self.analogs_.series[windows]])
            table.insert(0, "series", [series_names[i] for i in rows])
        return to_library(table, self.observed_.form.library)

    def _learn(self, table, report):
        # 1. Subtract the effects of features, if there are any.
        scale = naive_scales(table.observations)
        with_effects = table = self.transform_.encode(table)
        self.effects_ = None
        if isinstance(self.bandwidth, str) and len(table.future_columns):
            validation = Validation.from_table(table, self._at_once, self.season_length_)
            self.effects_ = learn_effects(validation, self.season_length_)[0]
        if self.effects_ is not None:
            table = self.effects_.remove_from(table)
        # 2. Choose the best analogs for each normalisation.
        lookbacks = self._lookbacks(table)
        self.kernel_ = as_kernel(clone(self.kernel, safe=False))
        train, _ = self._split(table, lookbacks[-1])
        tried = []
        for normalize in self._normalizations(table, lookbacks[0]):
            analogs = Analogs(
                lookbacks[0], self.kernel_, normalize, scale, season=self.season_length_
            )
            analogs = analogs.with_seasonal_share(train)
            tried += choose_analogs(analogs, train, lookbacks, self.bandwidth)
        # 3. Compare them on three stretches of later windows, if there are several.
        stretches = list(self._stretches(table, lookbacks[-1])) if len(tried) > 1 else []
        errors = np.zeros((len(tried), len(stretches)))
        for i, k in np.ndindex(*errors.shape):
            train, held_out = stretches[k]
            self.analogs_ = tried[i][0].fit(train, _MAX_TRIED)
            held_out = _sample(replace(held_out, table=with_effects))
            errors[i, k] = _log_error(self._forecasts(held_out), scale)
        analogs, loo_error = tried[errors.sum(axis=1).argmin()]
        if isinstance(self.bandwidth, str):
            self.loo_score_ = loo_error
        self.normalize_, self.lookback_ = analogs.normalize, analogs.lookback
        self.bandwidth_, self.pooled_ = analogs.bandwidth, analogs.pooled
        # 4. Calibrate intervals on held-out windows, and remember all windows.
        blocks = []
        for train, held_out in self._calibration_splits(table):
            self.analogs_ = analogs.fit(train, MAX_KEYS)
            held_out = _sample(replace(held_out, table=with_effects))
            blocks.append(self._forecasts(held_out, _LEVELS))
        block = np.repeat(np.arange(len(blocks)), [len(f.origins) for f in blocks])
        self.calibration_ = Calibration.fit(
            Forecasts.joined(blocks), _LEVELS, block, self.season_length_
        )
        self.analogs_ = analogs.fit(Origins.within(table, self._at_once, self.lookback_))

    def _steps_at_once(self, length):
        """Choose how many steps are forecast at once, so that a season fits before them."""
        if length < min_series_length(1):
            raise ValueError(
                f"the longest series has {length} sample{'s' if length > 1 else ''}, but "
                f"KernelForecaster needs at least {min_series_length(1)}: pass a longer series."
            )
        season = short_season(self.season_length_)
        is_auto = isinstance(self.lookback, str) and length >= 2 * season
        min_lookback = season if is_auto else 1
        n_steps = min(self.horizon_, (length - 1 - min_lookback) // 2)
        while n_steps > 1 and self._max_lookback(length, n_steps) < min_lookback:
            n_steps -= 1
        return n_steps

    def _max_lookback(self, length, horizon):
        """Compute the longest lookback with windows both to learn from and to hold out."""
        return length + 1 - horizon - min_windows(horizon, self.validation_fraction)

    def _lookbacks(self, table):
        """List the lookbacks to be tried, ascending."""
        sizes = table.lengths.max(), self.lookback, self._at_once, self.season_length_
        is_searched = len(table) == 1 and isinstance(self.bandwidth, str)
        seasons = _SEASONS if is_searched else _SEASONS[:1]
        max_lookback = np.inf
        if isinstance(self.lookback, str):
            max_lookback = max(1, self._max_lookback(sizes[0], self._at_once))
        return sorted(
            {min(choose_lookback(*sizes, n_seasons=n), max_lookback) for n in seasons}
        )

    def _normalizations(self, table, lookback):
        """List the values of `normalize` to be tried."""
        if self.normalize != "auto":
            return [self.normalize]
        if not isinstance(self.bandwidth, str):
            return ["standard"]
        if lookback < self.season_length_:
            return ["standard", "last"]
        # A season of one series can be averaged over its windows; of many it is too diverse.
        return list(SEASONAL) if len(table) > 1 else ["standard", *SEASONAL]

    def _split(self, table, lookback):
        """Split windows into those to learn from, and the last ones of each series."""
        origins = Origins.within(table, self._at_once, lookback)
        train, holdout = split_at_ends(origins, self.validation_fraction)
        if len(train) == 0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} leaves none of "
                f"{len(origins)} windows to learn from: pass a smaller one, or longer series."
            )
        return train, holdout

    def _stretches(self, table, lookback):
        """Yield windows to learn from, and later ones to forecast, for three stretches of time.

        Each stretch is the part `validation_fraction` of the windows, the latest first.
        """
        origins = Origins.within(table, self._at_once, lookback)
        for k in range(_N_STRETCHES):
            train, late = split_at_ends(origins, min((k + 1) * self.validation_fraction, 1))
            held_out = split_at_ends(late, k / (k + 1))[0] if k else late
            if len(train) and len(held_out):
                yield train, held_out

    def _calibration_splits(self, table):
        """List pairs of windows to learn from, and others to calibrate intervals on.

        For a single series these are blocks of time, each with all windows that share no steps
        with it; otherwise they are the last windows of each series.
        """
        pairs = []
        if len(table) == 1:
            validation = Validation.from_table(
                table, self._at_once, self.lookback_, _CALIBRATED
            )
            origins = Origins.within(table, self._at_once, self.lookback_)
            for block, (rows, _) in enumerate(validation.folds()):
                overlaps = validation.overlapping(origins.series, origins.n_known, block)
                if not overlaps.all():
                    pairs.append((origins.take(~overlaps), validation.tests.take(rows)))
        return pairs or [self._split(table, self.lookback_)]

    def _forecasts(self, origins, levels=None):
        def averages(origins):
            """Join means and quantiles; (n_origins, 1 + n_levels, horizon)."""
            mean, quantiles = self.analogs_.forecast(origins, levels)
            if levels is None:
                return mean[:, None]
            return np.concatenate([mean[:, None], np.moveaxis(quantiles, 2, 1)], axis=1)

        def averages_without_features(origins):
            table = without_future_covariates(origins.table)
            return averages(replace(origins, table=table))

        if self.effects_ is None:
            forecasts = averages(origins)
        else:
            forecasts = self.effects_.added_to(averages_without_features, origins)
        quantiles = None if levels is None else np.moveaxis(forecasts[:, 1:], 1, 2)
        return Forecasts(origins, forecasts[:, 0], quantiles=quantiles)

    @property
    def n_windows_(self):
        """Number of windows that are remembered."""
        return len(self.analogs_.keys)

    @property
    def _sees_events(self):
        # A given bandwidth has a number for each column that was passed, and none for others.
        return isinstance(self.bandwidth, str)

    def _check_parameters(self):
        check_in_open_interval("validation_fraction", self.validation_fraction, 0, 1)
        if self.normalize is not None:
            check_choice("normalize", self.normalize, _NORMALIZE)
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, ("loo",))
        refuse_negative(bool(as_kernel(self.kernel).signed), self.kernel)

    _held = (*Forecaster._held, Analogs, FeatureBasis, FeatureEffects)


def _sample(origins):
    """Choose up to 250 held-out origins, spread over time."""
    return origins.take(spread_over_phases(len(origins), MAX_CALIBRATION_ORIGINS))


def _log_error(forecasts, scale):
    """Average the logarithms of mean absolute errors, so that large windows do not dominate.

    Errors are in units of `scale` (n_series,).
    """
    origins = forecasts.origins
    errors = np.abs(origins.targets() - forecasts.mean).mean(axis=1) / scale[origins.series]
    return np.log(errors + _ADDED_ERROR).mean()

"""Forecasts and intervals of the steps that a user asks for.

A forecaster forecasts a horizon at *origins*, from the steps before them. A user asks for
steps: observed ones are forecast as the first step of a horizon, and later ones from the ends
of the series, in blocks of a horizon. Single outliers are damped before, series are moved to
the level after a break, and intervals reach the last values after a jump.
"""

from dataclasses import replace

import numpy as np

from .._new_levels import EffectDistribution
from ._breaks import aligned
from ._calibration import max_end_distances
from ._feature_effects import with_distances, with_unknown_levels
from ._origins import Origins
from ._transform import damped

# A jump may last if the last 3 steps have jumped. Squared widths of intervals are 1 + 12 / n
# times as large n steps after a break, if the steps before it were moved to the present level.
_LASTING_STEPS, _STEPS_OF_DOUBLE_VARIANCE = 3, 12
# Breaks of the last 3 seasons, or horizons if these are longer, count.
_MAX_SEASONS_SINCE_BREAK = 3


class StepForecasts:
    """The part of a fitted forecaster that makes forecasts of requested steps.

    A subclass has ``_forecasts(origins, levels)``, as :class:`Forecaster` describes, and the
    attributes of a fitted forecaster.
    """

    def _encoded(self, table):
        """Make the series that are forecast from: damp single outliers, and transform."""
        return self.transform_.encode(self._with_events(damped(table)))

    def _aligned(self, table):
        """Move series to the level after a break; return them, and the steps since then.

        The latter (n_series,) are infinite without a break.
        """
        max_since = _MAX_SEASONS_SINCE_BREAK * max(self.season_length_, self.horizon_)
        # Forecasters of 0.2.0 have learned from series as they are.
        min_break = self._kept.get("min_break", np.inf)
        return aligned(table, self.season_length_, min_break, max_since)

    def _with_events(self, table):
        """Add distances from rare events as features, if there are any events."""
        if not self.events_:
            return table
        # Flags of files of 0.2.0 are 1 at events.
        values = self._kept.get("event_values", np.ones(len(self.events_)))
        return with_distances(table, dict(zip(self.events_, values, strict=True)))

    def _intervals(self, table, requested, coverages, is_history):
        """Forecast the requested steps with intervals; (n_rows, 1 + 2 n_coverages)."""

        def ends_from(forecasts, drift, jump):
            return self.calibration_.intervals(forecasts, coverages, drift, jump)

        levels = [(1 + side * coverage) / 2 for coverage in coverages for side in (-1, 1)]
        return self._requested_columns(table, requested, ends_from, is_history, levels)

    def _requested_columns(self, table, requested, ends_from=None, is_history=False, levels=()):
        """Compute forecasts and ends for the requested steps; (n_rows, 1 + n_ends).

        An end is the end of an interval, or a quantile.

        Parameters
        ----------
        table : Table
            Series to forecast from, on the original scale.
        requested : Table
            Steps to forecast.
        ends_from : callable, default=None
            ``ends_from(forecasts, drift, jump)`` returns the ends (n_origins, horizon, n_ends)
            of Forecasts. The further arguments are those of `Calibration.intervals`. None for
            no ends.
        is_history : bool, default=False
            Whether the table was passed as `history`. The model may have learned from any of
            its steps, so that training series have no drift since the fit.
        levels : sequence of float, default=()
            Level of each end.
        """
        table, unknown = with_unknown_levels(table, self._kept.get("level_shares", ()))
        columns = self._columns_of_table(table, requested, ends_from, is_history)
        # An unknown level of a category may have the effect of any level. The variance of the
        # forecasts with each of the levels is added to that of the forecast.
        variance, dof = np.zeros((len(columns), 1)), 2.0
        for category_columns, rows in unknown if ends_from is not None else ():
            forecasts, features = [], table.features.copy()
            for indicators in np.eye(len(category_columns)):
                features[np.ix_(rows, category_columns)] = indicators
                with_level = replace(table, features=features)
                forecasts.append(self._columns_of_table(with_level, requested)[:, :1])
            variance += np.var(forecasts, axis=0, ddof=1)
            dof = max(dof, len(category_columns) - 1)
        if variance.any():
            effects = EffectDistribution(np.sqrt(variance), np.full(variance.shape, dof))
            ends = effects.inflate(columns[:, 1:, None], columns[:, :1], levels)[:, :, 0]
            series = requested.series
            n_known = np.clip(requested.step - table.starts[series], 0, table.lengths[series])
            origins = Origins(table, series, n_known, self._at_once)
            columns[:, 1:] = self.transform_.clip(ends, origins)
        return columns

    def _columns_of_table(self, table, requested, ends_from=None, is_history=False):
        """Compute `_requested_columns` of a table in which all levels are known."""
        # 1. Forecast observed steps, each from the steps before it, as first steps of a
        # horizon.
        plain, series = Origins.at_ends(table, self._at_once), requested.series
        # Nothing is known before the first step, which stands for itself.
        n_known = np.maximum(requested.step - table.starts[series], 0)
        ahead = requested.step - table.ends[series]
        observed, later = np.flatnonzero(ahead < 0), np.flatnonzero(ahead >= 0)
        columns = []
        if len(observed) or not len(later):
            origins = Origins(table, series[observed], n_known[observed], self._at_once)
            origins = origins.with_shared_patterns()
            forecasts, distances = self._with_distances(origins, ends_from, is_history)
            columns.append((forecasts.mean[:, :, None] + distances)[:, 0])
        # 2. Forecast later steps from the ends of the series, moved to the level after a break.
        if len(later):
            moved, since = self._aligned(table)
            ends = Origins.at_ends(moved, self._at_once)
            wider = np.sqrt(1 + _STEPS_OF_DOUBLE_VARIANCE / since)[:, None, None]
            blocks = self._blocks_ahead(ends, ahead.max() + 1, ends_from, is_history, wider)
            columns.append(blocks[series[later], ahead[later]])
        # 3. Convert both back to the original scale, in the order in which they are requested.
        in_order = np.concatenate(columns)[np.argsort(np.append(observed, later))]
        origins = plain.at_steps(series, np.minimum(n_known, plain.n_known[series]))
        in_order = self.transform_.decode(in_order, origins)
        # 4. Limit the distances of ends from forecasts by the largest moves of the series.
        if ends_from is not None and len(later):
            max_distances = self._max_end_distances(table, ahead.max() + 1, is_history)
            max_distance = max_distances[series[later], ahead[later], None]
            center = in_order[later, :1]
            in_order[later] = np.clip(
                in_order[later], center - max_distance, center + max_distance
            )
        return in_order

    def _max_end_distances(self, table, n_steps, is_history):
        """Return how far interval ends may be from forecasts; (n_series, n_steps).

        k steps ahead it is the largest change of the series within k steps, times 1.75; see
        `max_end_distances`. A `history` may be much shorter than what was observed of the same
        series in training, where it may have changed more: the larger distance of both counts.
        """
        distances = max_end_distances(table, n_steps)
        if not is_history:
            return distances
        training_index = self.observed_.training_index
        is_observed = training_index >= 0
        learned = np.empty((len(self.scale_), n_steps))
        learned[training_index[is_observed]] = max_end_distances(self.observed_, n_steps)[
            is_observed
        ]
        larger = np.maximum(distances, learned[table.training_index])
        return np.where((table.training_index >= 0)[:, None], larger, distances)

    def _blocks_ahead(self, ends, n_steps, ends_from, is_history, wider):
        """Forecast at least `n_steps` after the ends of series, in blocks of a horizon.

        Parameters
        ----------
        ends : Origins
            Origin at the end of each series.
        n_steps : int
        ends_from, is_history
            As for `_requested_columns`.
        wider : ndarray of shape (n_series, 1, 1)
            Factor of the distances of interval ends from forecasts.

        Returns
        -------
        columns : ndarray of shape (n_series, n_blocks * horizon, 1 + n_ends)
            Forecasts, and ends of intervals.
        """
        forecasts, distances = self._with_distances(ends, ends_from, is_history)
        first, table, distances = forecasts, forecasts.origins.table, wider * distances
        blocks = [forecasts.mean[:, :, None] + distances]
        while len(blocks) * self._at_once < n_steps:
            # The next block is forecast from the forecasts of this one.
            table = table.with_forecasts(forecasts.mean)
            forecasts = self._forecasts(Origins.at_ends(table, self._at_once))
            forecasts, _ = self._follow(forecasts, forecasts.origins.past(_LASTING_STEPS))
            factor = 1 if ends_from is None else self.calibration_.growth(first, len(blocks))
            blocks.append(forecasts.mean[:, :, None] + factor * distances)
        return np.concatenate(blocks, axis=1)

    def _with_distances(self, origins, ends_from, is_history):
        """Forecast at origins in series on the original scale.

        Returns
        -------
        forecasts : Forecasts
        distances : ndarray of shape (n_origins, horizon, 1 + n_ends)
            0, and the ends minus the forecasts. Without `ends_from` there are no ends.
        """
        # The last values include outliers, since an outlier may be a jump.
        last = replace(origins, table=self.transform_.encode(origins.table)).past(
            _LASTING_STEPS
        )
        origins = replace(origins, table=self._encoded(origins.table))
        if ends_from is None:
            forecasts, _ = self._follow(self._forecasts(origins), last)
            return forecasts, np.zeros((*forecasts.mean.shape, 1))
        calibration, n, drift = self.calibration_, len(origins), np.ones(len(origins))
        since, rows = calibration.origins_since(origins, is_history)
        if len(since):
            forecasts = self._forecasts(origins.joined(since), calibration.levels)
            drift = calibration.drift(forecasts.take(slice(n, None)), rows, origins)
            forecasts = forecasts.take(slice(n))
        else:
            forecasts = self._forecasts(origins, calibration.levels)
        forecasts, jump = self._follow(forecasts, last)
        columns = forecasts.mean[:, :, None], ends_from(forecasts, drift, jump)
        return forecasts, np.concatenate(columns, axis=2) - columns[0]

    def _follow(self, forecasts, last):
        """Move forecasts by jumps that last, and find how far intervals have to reach.

        Parameters
        ----------
        forecasts : Forecasts
        last : ndarray of shape (n_origins, n_last)
            Last values of each series, outliers included.

        Returns
        -------
        forecasts : Forecasts
        distance : ndarray of shape (n_origins, horizon)
            Distance from these forecasts to a level that intervals have to contain: the present
            one, or after a jump that lasts the one of the forecasts that were not moved. It is
            0 without a jump.
        """
        if not hasattr(self, "calibration_"):  # while fitting
            return forecasts, np.zeros_like(forecasts.mean)
        jump, lasting = self.calibration_.jumps(forecasts, last)
        # After a jump that lasts, `jump` equals `lasting`, and the distance is -lasting: that
        # from the moved forecasts back to the forecasts before.
        return forecasts.moved(lasting), jump - 2 * lasting

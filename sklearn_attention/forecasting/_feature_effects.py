"""Effects of future covariates on series, which are subtracted before candidates forecast.

Future covariates are features that are known beforehand, such as holidays. Their effect g(x_t)
is what they add to the series at step t.

Forecasts: candidates forecast the series minus the effects, and the effects at the steps to
forecast are added to their forecasts.

Learns: g, linear in the features and in hinges at four quantiles of each (`FeatureBasis`). A
level that drifts and a season hide the effects; both nearly vanish in differences over a season
of m steps, y_t - y_{t-m}, to which a ridge regression fits g(x_t) - g(x_{t-m}). Effects count
if they explain 5 % of squared differences in blocks that were not learned from.

Costs: products of the basis functions at all steps, and one linear system for each penalty and
block.

An event is a second value of a feature that is rare and lasts less than a season, such as the
flag of a holiday. Steps since and until events can be added as features (`with_distances`).
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from .._column_stats import mean_and_scale
from .._shapley import effects_in_order
from ._classical import Classical
from ._origins import Origins
from ._ridges import PENALTIES, BlockRidge
from ._table import Table, chunks

# Hinges are at these quantiles of features.
_KNOTS = (0.2, 0.4, 0.6, 0.8)
# Effects have to explain 5 % of the squared differences in blocks that were not learned from.
_MIN_EXPLAINED = 0.05
# With 25 differences for each coefficient, effects fit so little noise that out-of-fold effects
# are not needed for out-of-fold forecasts.
_ROWS_PER_COEFFICIENT = 25
# Events are at most a tenth of all steps, and at most 4 steps away.
_MAX_EVENT_SHARE, _MAX_DISTANCE = 0.1, 4
# Copies of series that are cut at origins have at most 2 million values at once.
_MAX_VALUES = 2_000_000


def usual_features(table, names):
    """Find the usual value of each column of features, relative to which features add.

    Parameters
    ----------
    table : Table
    names : list
        Feature of each column; a category has several columns, one for each level.

    Returns
    -------
    usual : ndarray of shape (n_columns,)
        Lower medians, which occur among the values, and for the columns of a category those of
        its most frequent level.
    """
    usual = np.quantile(table.features, 0.5, axis=0, method="lower")
    for columns in columns_by_name(names, table.future_columns):
        if len(columns) > 1:
            rows, counts = np.unique(table.features[:, columns], axis=0, return_counts=True)
            usual[columns] = rows[counts.argmax()]
    return usual


def level_shares(table, names):
    """List the categories among future covariates, and how frequent their levels are.

    A category has a column for each of its levels, which is 1 in the rows of this level. If
    only the most frequent levels have columns, some rows have no level, and the category is
    left out.

    Parameters
    ----------
    table : Table
    names : list
        Feature of each column.

    Returns
    -------
    shares : list of (list of int, ndarray)
        The columns of each category, and the share of rows with each of its levels.
    """
    categories = [c for c in columns_by_name(names, table.future_columns) if len(c) > 1]
    return [
        (columns, table.features[:, columns].mean(axis=0))
        for columns in categories
        if table.features[:, columns].any(axis=1).all()
    ]


def with_unknown_levels(table, shares):
    """Replace levels that are not known by the shares of all levels, as if each were possible.

    Parameters
    ----------
    table : Table
    shares : list of (list of int, ndarray)
        Columns of each category and shares of its levels, the result of `level_shares`.

    Returns
    -------
    table : Table
    unknown : list of (list of int, ndarray of int)
        Columns of each category that has unknown levels, and its rows without a known level.
    """
    unknown = []
    for columns, share in shares:
        rows = np.flatnonzero(~table.features[:, columns].any(axis=1))
        if len(rows):
            features = table.features.copy()
            features[np.ix_(rows, columns)] = share
            table = replace(table, features=features)
            unknown.append((columns, rows))
    return table, unknown


def columns_by_name(names, future_columns):
    """Group the `future_columns`, numbers of columns, by feature; a list of lists.

    `names` are the features of all columns.
    """
    columns_of = {}
    for column in future_columns:
        columns_of.setdefault(names[column], []).append(int(column))
    return list(columns_of.values())


def added_by_features(forecast, table, usual, features):
    """Compute what each feature adds to forecasts; (n_rows, 1 + n).

    All features first have their usual values at the steps after the end of a series. They get
    their own values one after the other, in one order and in the opposite one. What a feature
    adds is the change that its own values make, averaged over both orders. This is its Shapley
    value if there are two features.

    Parameters
    ----------
    forecast : callable
        ``forecast(table)`` returns forecasts (n_rows,).
    table : Table
    usual : ndarray of shape (n_columns,)
        Usual values of the columns.
    features : list of list of int
        Columns of each of the n features.

    Returns
    -------
    columns : ndarray of shape (n_rows, 1 + n)
        The forecast if all features are usual, and what each adds; rows sum to the forecast.
    """
    later = np.flatnonzero(np.isnan(table.value))

    def forecast_with(has_value):
        """Forecast with the values of some features, and the usual ones of the others."""
        values = table.features.copy()
        for columns in itertools.compress(features, ~has_value):
            values[np.ix_(later, columns)] = usual[columns]
        return forecast(replace(table, features=values))

    base, added = effects_in_order(
        lambda masks: np.array([forecast_with(mask) for mask in masks]),
        np.arange(len(features)),
    )
    return np.column_stack([base, *added])


def rare_events(table, season_length, usual):
    """Find the future covariates that are flags of events.

    They have a second value, beside the usual one, that is rare and lasts less than a season.
    If several columns have it at the same steps, only the first counts.

    Parameters
    ----------
    table : Table
    season_length : float
        Number of steps in a season.
    usual : ndarray of shape (n_columns,)
        Usual values of the columns.

    Returns
    -------
    events : dict of {int: float}
        The rare value of each column that flags events.
    """
    # Distances in days from holidays in hourly series changed errors by -3 to 5 %.
    events = {}
    for column in table.future_columns:
        values = table.features[:, column]
        is_rare = values != usual[column]
        if 0 < is_rare.mean() <= _MAX_EVENT_SHARE and np.ptp(values[is_rare]) == 0:
            n_runs = np.sum(is_rare & ~np.append(False, is_rare[:-1]))
            if is_rare.sum() < max(2, season_length) * n_runs:
                rare_value = float(values[is_rare][0])
                events.setdefault(is_rare.tobytes(), (int(column), rare_value))
    return dict(events.values())


def with_distances(table, events):
    """Add the numbers of steps since the last and until the next event as future covariates.

    Numbers are at most 4. `events` is the result of `rare_events`.
    """
    rows, distances = np.arange(len(table.value)), []
    first = table.first_rows[table.series]
    end = (table.first_rows + table.row_counts)[table.series]
    for column, rare_value in events.items():
        # For each row, the row of the last event up to it, and of the next event from it on.
        is_rare = table.features[:, column] == rare_value
        last = np.maximum.accumulate(np.where(is_rare, rows, -1))
        following = np.minimum.accumulate(np.where(is_rare, rows, len(rows))[::-1])[::-1]
        # An event of the series before or after it does not count.
        for in_series, steps in (
            (last >= first, rows - last),
            (following < end, following - rows),
        ):
            steps = np.minimum(steps, _MAX_DISTANCE)
            distances.append(np.where(in_series, steps, _MAX_DISTANCE))
    features = np.column_stack([table.features, *distances])
    future_columns = np.append(
        table.future_columns, np.arange(table.n_features, features.shape[1])
    )
    return replace(table, features=features, future_columns=future_columns)


@dataclass(frozen=True, eq=False)
class FeatureBasis:
    """Basis functions of features: x itself and hinges max(x - q, 0), for standardised x.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation of each feature.
    hinge_features : ndarray of int of shape (n_hinges,)
        Feature of each hinge.
    knots : ndarray of shape (n_hinges,)
        Its quantile q, standardised.
    """

    center: np.ndarray
    scale: np.ndarray
    hinge_features: np.ndarray
    knots: np.ndarray

    @classmethod
    def from_features(cls, features):
        """Place hinges at quantiles of the features (n_rows, n_features)."""
        center, scale = mean_and_scale(features)
        pairs = [
            (i, knot)
            for i, column in enumerate(((features - center) / scale).T)
            for knot in np.unique(np.quantile(column, _KNOTS))
            if column.min() < knot < column.max()
        ]
        hinge_features = np.array([i for i, _ in pairs], dtype=np.int64)
        return cls(center, scale, hinge_features, np.array([knot for _, knot in pairs]))

    def __call__(self, features, columns):
        """Evaluate the basis functions of some features; (..., n_basis).

        `features` (..., len(columns)) are the values of only these features, and `columns` are
        their numbers among all features.
        """
        scaled = np.zeros((*features.shape[:-1], len(self.center)))
        scaled[..., columns] = (features - self.center[columns]) / self.scale[columns]
        is_used = np.isin(self.hinge_features, columns)
        hinges = np.maximum(scaled[..., self.hinge_features[is_used]] - self.knots[is_used], 0)
        return np.concatenate([scaled[..., columns], hinges], axis=-1)


@dataclass(frozen=True, eq=False)
class FeatureEffects:
    """Effects of future covariates, which are the same for all series in units of each.

    Attributes
    ----------
    basis : FeatureBasis
    coef : ndarray of shape (n_basis,)
        Coefficients of the basis functions.
    unit : ndarray of shape (n_series,)
        Naive scale of each training series.
    """

    basis: FeatureBasis
    coef: np.ndarray
    unit: np.ndarray

    def subtract_from(self, table):
        """Subtract the effects from the series of a table."""
        effects = self._effects_of_rows(table)
        units = Origins.at_ends(table, 1).series_units(self.unit)
        adjusted = [
            values - units[i] * effects[table.feature_rows(i, np.arange(len(values)))]
            for i, values in enumerate(table.observations)
        ]
        return table.with_observations(adjusted)

    def remove_from(self, table):
        """Subtract the effects from the series of a table, and drop their features."""
        return without_future_covariates(self.subtract_from(table))

    def added_to(self, forecast, origins):
        """Forecast series without the effects, and add them; (n_origins, n_names, horizon).

        ``forecast(origins)`` returns forecasts of this shape.
        """
        # `subtract_from` measures the unit of a new series by all values in the table. These
        # must be only those known at the origin, so that the series is cut there.
        has_new_series = (origins.training_index < 0).any()
        longest = origins.n_known.max(initial=0) if has_new_series else 0
        forecasts = []
        for rows in chunks(np.arange(len(origins)), _MAX_VALUES, longest):
            cut = cut_at_origins(origins.take(rows)) if has_new_series else origins
            adjusted = forecast(replace(cut, table=self.subtract_from(cut.table)))
            forecasts.append(adjusted + self.at_targets(cut)[:, None])
        return np.concatenate(forecasts)

    def at_targets(self, origins):
        """Compute the effects at the steps to forecast; (n_origins, horizon)."""
        rows = origins.table.feature_rows(origins.series[:, None], origins.target_steps)
        effects = self._effects_of_rows(origins.table)[rows]
        return origins.series_units(self.unit)[:, None] * effects

    def _effects_of_rows(self, table):
        """Compute the effect of each row of features, in units of the series; (n_rows,)."""
        features = table.features[:, table.future_columns]
        return self.basis(features, table.future_columns) @ self.coef


def without_future_covariates(table):
    """Drop the features of a table that are known beforehand."""
    past = np.setdiff1d(np.arange(table.n_features), table.future_columns)
    return replace(
        table, features=table.features[:, past], future_columns=table.future_columns[:0]
    )


def cut_at_origins(origins):
    """Cut each series that is not in training at its origins, one copy for each of them.

    Units of the copies are then measured by what is known at the origin. Features reach to the
    end of the horizon.
    """
    table, is_new = origins.table, origins.training_index < 0
    ends = np.where(is_new, np.maximum(origins.n_known, 1), table.lengths[origins.series])
    # Origins with the same series and end share a copy.
    pairs = np.column_stack([origins.series, ends])
    pairs, copy_of_origin = np.unique(pairs, axis=0, return_inverse=True)
    series = pairs[:, 0]
    values = [table.observations[i][:end] for i, end in pairs]
    n_rows = np.where(table.training_index < 0, 0, table.row_counts)[series]
    n_rows_needed = np.minimum(pairs[:, 1] + origins.horizon, table.row_counts[series])
    features = [
        table.features[table.first_rows[i] : table.first_rows[i] + n]
        for i, n in zip(series, np.maximum(n_rows, n_rows_needed), strict=True)
    ]
    cut = Table.from_arrays(
        values,
        table.starts[series],
        table.training_index[series],
        features,
        table.future_columns,
    )
    return replace(origins, table=cut, series=copy_of_origin)


def learn_effects(validation, season_length):
    """Learn effects of future covariates, if they explain differences over a season.

    Parameters
    ----------
    validation : Validation
    season_length : float
        Number of steps in a season.

    Returns
    -------
    effects : FeatureEffects or None
    out_of_fold : list of FeatureEffects
        For each block of validation origins the effects that are learned from differences of
        other steps. The list is empty if there are so many differences that `effects` hardly
        fit the noise of a block, and can be used in its place.
    """
    table, lag = validation.origins.table, max(1, round(season_length))
    series = np.flatnonzero(table.lengths > lag)
    if not len(table.future_columns) * len(series):
        return None, []
    # 1. Take differences of values and of basis functions over a season.
    basis = FeatureBasis.from_features(table.features)
    x, y, in_block = _seasonal_differences(validation, series, basis, lag)
    # 2. Fit a ridge regression to all of them, and to those outside of each block, with the
    # penalty of least error in the blocks. Columns that copy others, or are constant, would
    # only change the penalty.
    distinct = _distinct_columns(x)
    n_basis, x = x.shape[1], x[:, distinct]
    xy = np.column_stack([x, y])
    blocks = [xy[rows] for rows in in_block.T]
    ridge = BlockRidge.from_blocks(x.T @ xy, [block[:, :-1].T @ block for block in blocks])

    def error(coefs):
        """Sum squared errors of each block by the coefficients that were learned without it.

        `coefs[0]` is learned from all differences, `coefs[1 + b]` without block b.
        """
        return sum(
            np.sum((block[:, -1] - block[:, :-1] @ coef) ** 2)
            for block, coef in zip(blocks, coefs[1:], strict=True)
        )

    tried = [
        [ridge.coef(fold, penalty)[:, 0] for fold in range(1 + len(blocks))]
        for penalty in PENALTIES
    ]
    coefs = min(tried, key=error)
    # 3. Keep the effects if they explain enough.
    if error(coefs) >= (1 - _MIN_EXPLAINED) * error(np.zeros_like(coefs)):
        return None, []
    basis_coefs = np.zeros((len(coefs), n_basis))
    basis_coefs[:, distinct] = coefs
    effects, *out_of_fold = (
        FeatureEffects(basis, coef, validation.scale) for coef in basis_coefs
    )
    return effects, [] if len(x) >= _ROWS_PER_COEFFICIENT * x.shape[1] else out_of_fold


def _seasonal_differences(validation, series, basis, lag):
    """Take differences over a season of values and basis functions of some series.

    Returns
    -------
    x : ndarray of shape (n_differences, n_basis)
        Differences of basis functions.
    y : ndarray of shape (n_differences,)
        Differences of values, in naive scales of their series.
    in_block : ndarray of bool of shape (n_differences, n_blocks)
        True where one of both steps is a target of a block of validation origins.
    """
    table, differences = validation.origins.table, []
    for i in series:
        values = table.observations[i] / validation.scale[i]
        steps = np.arange(len(values))
        features = table.features[table.feature_rows(i, steps)][:, table.future_columns]
        columns = basis(features, table.future_columns)
        is_target = validation.in_blocks(i, steps)
        differences.append(
            (
                columns[lag:] - columns[:-lag],
                values[lag:] - values[:-lag],
                is_target[lag:] | is_target[:-lag],
            )
        )
    return [np.concatenate(arrays) for arrays in zip(*differences, strict=True)]


def _distinct_columns(x):
    """List the numbers of the columns that are neither 0 nor copies of earlier ones."""
    first = {}
    for i, column in enumerate(x.T):
        first.setdefault(column.tobytes(), i)
    return [i for i in first.values() if x[:, i].any()]


def fit_each(candidates, validation):
    """Fit candidates; return them, and out-of-fold forecasts of all names.

    The forecasts are of shape (n_validation, n_names, horizon).
    """
    n_validation, horizon = validation.tests.target_steps.shape
    fitted, forecasts = [], [np.empty((n_validation, 0, horizon))]
    for candidate in candidates:
        fitted_candidate, out_of_fold_forecasts = candidate.fit(validation)
        fitted.append(fitted_candidate)
        forecasts.append(out_of_fold_forecasts)
    return fitted, np.concatenate(forecasts, axis=1)


def fit_without_effects(candidates, validation, effects, out_of_fold):
    """Fit candidates to series without the effects of their features.

    Parameters
    ----------
    candidates : list
    validation : Validation
        Validation of series with the effects.
    effects : FeatureEffects
    out_of_fold : list of FeatureEffects
        For each block the effects that are learned without it; if it is empty, `effects` are
        used in all blocks.

    Returns
    -------
    fitted : list
        Fitted candidates.
    forecasts : ndarray of shape (n_validation, n_names, horizon)
        Out-of-fold forecasts of validation origins, with effects.
    """
    if not out_of_fold:
        fitted, forecasts = fit_each(candidates, _without_effects(validation, effects))
        return fitted, forecasts + effects.at_targets(validation.tests)[:, None]
    # The series differ from block to block, by the effects that are learned without it. So
    # candidates are fitted for each block, as if it were the only one.
    n_names = sum(len(candidate.names) for candidate in candidates)
    forecasts = np.empty((len(validation.tests), n_names, validation.origins.horizon))
    for block, block_effects in enumerate(out_of_fold):
        rows = np.flatnonzero(validation.block == block)
        tests = validation.tests.take(rows)
        only_block = replace(validation, tests=tests, block=np.zeros_like(rows))
        _, adjusted = fit_each(candidates, _without_effects(only_block, block_effects))
        forecasts[rows] = adjusted + block_effects.at_targets(tests)[:, None]
    validation = _without_effects(validation, effects)
    fitted = []
    for candidate in candidates:
        has_nothing_to_learn = isinstance(candidate, Classical)
        fitted.append(candidate if has_nothing_to_learn else candidate.fit(validation)[0])
    return fitted, forecasts


def _without_effects(validation, effects):
    """Make the same validation of series without effects."""
    table = effects.subtract_from(validation.origins.table)
    return replace(
        validation,
        origins=replace(validation.origins, table=table),
        tests=replace(validation.tests, table=table),
    )

"""Effects of known features on series, which are taken out before candidates forecast."""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from .._column_stats import mean_and_scale
from .._shapley import effects_in_order
from ._classical import Classical
from ._origins import Origins
from ._ridges import PENALTIES, BlockRidge
from ._table import Table, chunks

# Quantiles that features bend at.
_KNOTS = (0.2, 0.4, 0.6, 0.8)
# Share of squared differences in blocks not learned from that features have to explain.
_LEAST_EXPLAINED = 0.05
# Steps for each coefficient from which effects fit too little noise to be learned apart.
_ROWS_OF_COEFFICIENT = 25
# Share of steps up to which events are rare, and the distance from which on they are far.
_RARE, _FARTHEST = 0.1, 4
# Values of series cut at origins, at once.
_MOST_VALUES = 2_000_000


def usual_features(table, names):
    """Values (n_features,) of known features that add nothing; `names` are of their columns."""
    # The lower median, which occurs; of categories, which have a column for each level, those
    # of the most frequent.
    usual = np.quantile(table.features, 0.5, axis=0, method="lower")
    for columns in columns_by_name(names, table.future_columns):
        if len(columns) > 1:
            rows, counts = np.unique(table.features[:, columns], axis=0, return_counts=True)
            usual[columns] = rows[counts.argmax()]
    return usual


def level_shares(table, names):
    """List the known categories: their columns, and the shares of the levels in training.

    Categories with rows of no level, since only the most frequent have columns, are left out.
    """
    categories = [c for c in columns_by_name(names, table.future_columns) if len(c) > 1]
    return [
        (columns, table.features[:, columns].mean(axis=0))
        for columns in categories
        if table.features[:, columns].any(axis=1).all()
    ]


def with_unknown_levels(table, shares):
    """Give rows whose level is not known the shares of all levels, as if it were any of them.

    Returns the table, and a list of the columns of each category and its rows without a level.
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


def columns_by_name(names, known):
    """Positions of the known columns of each feature; a list of lists."""
    found = {}
    for column in known:
        found.setdefault(names[column], []).append(int(column))
    return list(found.values())


def added_by_features(forecast, table, usual, features):
    """Forecasts where features are usual, and what each adds to them; (n_rows, 1 + n)."""
    # `forecast(table)` is (n_rows,), `features` are lists of columns. Steps after the end of a
    # series are given the values of one feature after the other, in one order and in the
    # opposite one: what features add sums to the forecast, and is the Shapley value of two.
    later = np.flatnonzero(np.isnan(table.value))

    def forecast_with(mask):
        values = table.features.copy()
        for columns in itertools.compress(features, ~mask):
            values[np.ix_(later, columns)] = usual[columns]
        return forecast(replace(table, features=values))

    base, added = effects_in_order(
        lambda masks: np.array([*map(forecast_with, masks)]), np.arange(len(features))
    )
    return np.column_stack([base, *added])


def rare_events(table, season_length, usual):
    """Find known columns with a second value that is rare and lasts less than a season.

    Such are flags of holidays. `usual` (n_features,) are the values at all other times. Returns
    a dict of columns and their rare values. Of columns that have these at the same steps the
    first counts.
    """
    # Distances in days from holidays in hourly series changed errors by -3 to 5 %.
    events = {}
    for column in table.future_columns:
        values = table.features[:, column]
        is_rare = values != usual[column]
        if 0 < is_rare.mean() <= _RARE and np.ptp(values[is_rare]) == 0:
            n_runs = np.sum(is_rare & ~np.append(False, is_rare[:-1]))
            if is_rare.sum() < max(2, season_length) * n_runs:
                rare_value = float(values[is_rare][0])
                events.setdefault(is_rare.tobytes(), (int(column), rare_value))
    return dict(events.values())


def with_distances(table, events):
    """Add the steps since `events` of :func:`rare_events` and until the next ones as features.

    These are known beforehand.
    """
    rows, further = np.arange(len(table.value)), []
    first, end = (
        steps[table.series] for steps in (table.first_rows, table.first_rows + table.row_counts)
    )
    for column, rare_value in events.items():
        is_rare = table.features[:, column] == rare_value
        last = np.maximum.accumulate(np.where(is_rare, rows, -1))
        following = np.minimum.accumulate(np.where(is_rare, rows, len(rows))[::-1])[::-1]
        for there, steps in ((last >= first, rows - last), (following < end, following - rows)):
            further.append(np.where(there, np.minimum(steps, _FARTHEST), _FARTHEST))
    features = np.column_stack([table.features, *further])
    future_columns = np.append(
        table.future_columns, np.arange(table.n_features, features.shape[1])
    )
    return replace(table, features=features, future_columns=future_columns)


@dataclass(frozen=True, eq=False)
class FeatureBasis:
    r"""Standardised features, and hinges :math:`\max(x - q, 0)` at four of their quantiles."""

    center: np.ndarray  # (n_features,)
    scale: np.ndarray
    bends: np.ndarray  # (n_bends,), which feature bends
    knots: np.ndarray  # where it does, standardised

    @classmethod
    def of(cls, features):
        """The basis of a table of features, (n_rows, n_features)."""
        center, scale = mean_and_scale(features)
        pairs = [
            (i, knot)
            for i, column in enumerate(((features - center) / scale).T)
            for knot in np.unique(np.quantile(column, _KNOTS))
            if column.min() < knot < column.max()
        ]
        bends = np.array([i for i, _ in pairs], dtype=np.int64)
        return cls(center, scale, bends, np.array([knot for _, knot in pairs]))

    def __call__(self, features, columns):
        """Some columns, which are all that `features` has, and hinges; (..., n_basis)."""
        whole = np.zeros((*features.shape[:-1], len(self.center)))
        whole[..., columns] = (features - self.center[columns]) / self.scale[columns]
        kept = np.isin(self.bends, columns)
        bent = np.maximum(whole[..., self.bends[kept]] - self.knots[kept], 0)
        return np.concatenate([whole[..., columns], bent], axis=-1)


@dataclass(frozen=True, eq=False)
class FeatureEffects:
    """Effects of known features, which add to series, in units in which they are alike."""

    # A level that drifts and a season hide the effects g of features. Both nearly vanish in
    # differences over a season of m steps, which a ridge regression explains: y_t - y_{t-m} is
    # about g(x_t) - g(x_{t-m}).

    basis: FeatureBasis
    coef: np.ndarray  # (n_basis,)
    unit: np.ndarray  # of each training series

    def take_out(self, table):
        """A table of the same series less the effects of their features."""
        effects, units = self._of_rows(table), Origins.at_ends(table, 1).series_units(self.unit)
        rest = [
            values - units[i] * effects[table.feature_rows(i, np.arange(len(values)))]
            for i, values in enumerate(table.observations)
        ]
        return table.with_observations(rest)

    def rest(self, table):
        """A table of series less effects, without the features that these are of."""
        return without_known(self.take_out(table))

    def added_to(self, forecast, origins):
        """Forecasts by `forecast(origins)` of series without effects, and these effects.

        All of shape (n_origins, n_names, horizon).
        """
        fresh = (origins.training_index < 0).any()
        longest = origins.n_known.max(initial=0) if fresh else 0
        found = []
        for rows in chunks(np.arange(len(origins)), _MOST_VALUES, longest):
            cut = cut_at_origins(origins.take(rows)) if fresh else origins
            rest = forecast(replace(cut, table=self.take_out(cut.table)))
            found.append(rest + self.ahead(cut)[:, None])
        return np.concatenate(found)

    def ahead(self, origins):
        """Effects on the steps to forecast; (n_origins, horizon)."""
        rows = origins.table.feature_rows(origins.series[:, None], origins.target_steps)
        return origins.series_units(self.unit)[:, None] * self._of_rows(origins.table)[rows]

    def _of_rows(self, table):
        return (
            self.basis(table.features[:, table.future_columns], table.future_columns)
            @ self.coef
        )


def without_known(table):
    """A table without the features that are known beforehand."""
    past = np.setdiff1d(np.arange(table.n_features), table.future_columns)
    return replace(
        table, features=table.features[:, past], future_columns=table.future_columns[:0]
    )


def cut_at_origins(origins):
    """The same origins, where each series that was not learned from ends at its origin.

    Its unit is then that of what is known there.
    """
    table, unknown = origins.table, origins.training_index < 0
    ends = np.where(unknown, np.maximum(origins.n_known, 1), table.lengths[origins.series])
    pairs = np.column_stack([origins.series, ends])
    pairs, place = np.unique(pairs, axis=0, return_inverse=True)
    series = pairs[:, 0]
    values = [table.observations[i][:end] for i, end in pairs]
    last = np.where(table.training_index < 0, 0, table.row_counts)[series]
    last = np.maximum(last, np.minimum(pairs[:, 1] + origins.horizon, table.row_counts[series]))
    features = [
        table.features[table.first_rows[i] : table.first_rows[i] + n]
        for i, n in zip(series, last, strict=True)
    ]
    cut = Table.from_arrays(
        values,
        table.starts[series],
        table.training_index[series],
        features,
        table.future_columns,
    )
    return replace(origins, table=cut, series=place)


def learn_effects(validation, season_length):
    """Effects of features, if known ones explain differences over a season; else None."""
    # With the list of those for each block of validation origins, learned from differences of
    # other steps; an empty one where there are many.
    table, lag = validation.origins.table, max(1, round(season_length))
    series = np.flatnonzero(table.lengths > lag)
    if not len(table.future_columns) * len(series):
        return None, []
    basis = FeatureBasis.of(table.features)
    x, y, blocks = [], [], []
    for i in series:
        values = table.observations[i] / validation.scale[i]
        steps = np.arange(len(values))
        columns = table.features[table.feature_rows(i, steps)]
        columns = basis(columns[:, table.future_columns], table.future_columns)
        x.append(columns[lag:] - columns[:-lag])
        y.append(values[lag:] - values[:-lag])
        inside = validation.in_blocks(i, steps)
        blocks.append(inside[lag:] | inside[:-lag])
    x, y, blocks = (np.concatenate(parts) for parts in (x, y, blocks))
    # Copies of a feature, and constants, change nothing.
    distinct = _distinct_columns(x)
    n_basis, x = x.shape[1], x[:, distinct]
    both = np.column_stack([x, y])
    parts = [both[out] for out in blocks.T]
    ridge = BlockRidge.from_blocks(x.T @ both, [part[:, :-1].T @ part for part in parts])

    def error(coefs):
        pairs = zip(parts, coefs[1:], strict=True)
        return sum(np.sum((part[:, -1] - part[:, :-1] @ coef) ** 2) for part, coef in pairs)

    tried = [
        [ridge.coef(part, penalty)[:, 0] for part in range(1 + len(parts))]
        for penalty in PENALTIES
    ]
    coefs = min(tried, key=error)
    if error(coefs) >= (1 - _LEAST_EXPLAINED) * error(np.zeros_like(coefs)):
        return None, []
    every_coef = np.zeros((len(coefs), n_basis))
    every_coef[:, distinct] = coefs
    effects, *apart = (FeatureEffects(basis, coef, validation.scale) for coef in every_coef)
    return effects, [] if len(x) >= _ROWS_OF_COEFFICIENT * x.shape[1] else apart


def _distinct_columns(x):
    """Return positions of the columns that are not 0 and no copies of earlier ones."""
    first = {}
    for i, column in enumerate(x.T):
        first.setdefault(column.tobytes(), i)
    return [i for i in first.values() if x[:, i].any()]


def fit_each(candidates, validation):
    """Fitted candidates, and their held-out forecasts side by side."""
    pairs, shape = (
        [one.fit(validation) for one in candidates],
        validation.tests.target_steps.shape,
    )
    none = np.empty((shape[0], 0, shape[1]))
    return [one for one, _ in pairs], np.concatenate([none, *(f for _, f in pairs)], axis=1)


def fit_without_effects(candidates, validation, effects, apart):
    """Candidates fitted to series less effects, and forecasts of validation origins."""
    # The latter (n_validation, n_names, horizon) are of candidates that have not learned from
    # their block, as are effects where there are some `apart`.
    if not apart:
        fitted, found = fit_each(candidates, _without(validation, effects))
        return fitted, found + effects.ahead(validation.tests)[:, None]
    names = sum(len(one.names) for one in candidates)
    found = np.empty((len(validation.tests), names, validation.origins.horizon))
    for block, effects_of_block in enumerate(apart):
        rows = np.flatnonzero(validation.block == block)
        tests = validation.tests.take(rows)
        part = replace(validation, tests=tests, block=np.zeros_like(rows))
        part, ahead = _without(part, effects_of_block), effects_of_block.ahead(tests)
        found[rows] = fit_each(candidates, part)[1] + ahead[:, None]
    validation = _without(validation, effects)
    # Classical methods have nothing to learn.
    fitted = [
        one if isinstance(one, Classical) else one.fit(validation)[0] for one in candidates
    ]
    return fitted, found


def _without(validation, effects):
    """Training on series without effects."""
    table = effects.take_out(validation.origins.table)
    parts = (validation.origins, validation.tests)
    origins, tests = (replace(origins, table=table) for origins in parts)
    return replace(validation, origins=origins, tests=tests)

"""Attention over candidate forecasts, learned from the series of a panel."""

from dataclasses import dataclass

import numpy as np

from ._classical import Classical
from ._combination import best_share
from ._origins import Origins
from ._season import SeasonalAdjustment
from ._table import positions

# Steps of the window that a network reads, and origins that it is trained on.
_WINDOW, _MOST_ORIGINS = 32, 40_000


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a network at some origins, relative to `level`, in a `unit` of the series."""

    # `past` (n_origins, window), `candidates` (n_origins, n_names, horizon), `statistics`
    # (n_origins, 5), `targets` (n_origins, horizon), NaN beyond the end of a series, `unit`
    # (n_origins, 1), and in `level` (n_origins, horizon) the last value with the season.

    past: np.ndarray
    candidates: np.ndarray
    statistics: np.ndarray
    targets: np.ndarray
    unit: np.ndarray
    level: np.ndarray


@dataclass(frozen=True, eq=False)
class CandidateAttention:
    """A network that weights classical forecasts by the state of a series and corrects them."""

    # A small network gets the last steps, the candidates and a few statistics of a series,
    # seasonally adjusted, relative to the origin and in units of the mean absolute difference
    # between neighbours so far. For each step k ahead it returns logits z of the candidates f
    # and a correction r: y_k = sum_b softmax_b(z_bk) f_bk + r_k. It is trained on all series by
    # absolute errors, from candidates that use only what came before each origin. `share` is
    # that of the network in the forecast; the rest is the fixed combination, which is all of
    # the forecast of series that mostly are 0, whose median the network would learn.

    classical: Classical
    share: float
    network: dict
    without: np.ndarray  # (n_series,) of the training series
    logs: bool  # whether series are logarithms

    def forecast(self, origins, combined):
        """Fixed combinations (n_origins, horizon) with the share of the network."""
        if self.share == 0:
            return combined
        identity = origins.identity
        apart = (identity >= 0) & self.without[identity]
        share = np.where(apart, 0.0, self.share)[:, None]
        return share * self._learned(origins) + (1 - share) * combined

    def _learned(self, origins):
        """Forecasts of the network; (n_origins, horizon)."""
        from ._candidate_network import apply  # torch takes a second to load

        return apply(self.network, inputs_at(origins, self.classical, self.logs))


def fit_attention(training, combined, classical, logs, random_state):
    """Train a network on a panel, with a share by errors at the ends of its series."""
    # Held-out forecasts (n_validation, horizon) are, at origins within a horizon of the end,
    # those with the share of a network that was trained on earlier steps, otherwise the fixed
    # combination.
    from ._candidate_network import train

    validation, table = training.validation, training.validation.table
    without = training.mostly_least
    left = table.lengths[validation.series] - validation.known
    near = np.flatnonzero((left <= validation.horizon) & ~without[validation.series])
    until = training.earliest(near)

    def learn(end):
        end = np.where(without, 0, end)
        origins = _training_origins(table, end, validation.horizon, random_state)
        before = origins.steps < end[origins.series][:, None]
        inputs, seed = inputs_at(origins, classical, logs), random_state.randint(2**31 - 1)
        return train(inputs, before, origins.series, logs, seed)

    trial = CandidateAttention(classical, 1.0, learn(until), without, logs)
    found = np.full_like(combined, np.nan)
    found[near] = trial._learned(validation.take(near).with_season_before(until))
    share, _ = best_share(training, combined, found)
    held_out = np.where(np.isnan(found), combined, share * found + (1 - share) * combined)
    network = learn(table.lengths) if share else {}
    return CandidateAttention(classical, share, network, without, logs), held_out


def inputs_at(origins, classical, logs):
    """Inputs of a network, seasonally adjusted, at some origins."""
    season = SeasonalAdjustment.of(origins, classical.season_length)
    row, known = season.row[:, None], np.maximum(origins.known, 1)[:, None]
    steps = np.maximum(origins.known[:, None] - _WINDOW + np.arange(_WINDOW), 0)
    past = origins.past(_WINDOW) - season.at(row, steps)
    unit, least = _units(origins, season)
    if logs:
        unit = unit + 1e-3
    else:
        unit = np.where(unit + least > 0, unit + 1e-3 * least, 1.0)
    now, later = past[:, -1:], season.at(row, origins.steps)
    candidates = classical.forecast(origins) - (now + later)[:, None]
    candidates, past = candidates / unit[:, None], (past - now) / unit
    statistics = np.hstack([
        np.log(unit) if logs else np.zeros_like(unit),
        np.log(known),
        np.minimum(known, _WINDOW) / _WINDOW,
        np.abs(past).mean(axis=1, keepdims=True) / 10,
        candidates.std(axis=(1, 2))[:, None],
    ])  # fmt: skip
    targets = (origins.targets() - later - now) / unit
    return Inputs(past, candidates, statistics, targets, unit, now + later)


def _units(origins, season):
    """Mean absolute differences of adjusted series, (n_origins, 1).

    Of the steps that are known, and of those that patterns are learned from.
    """
    counts = np.maximum([origins.known, origins.season_known], 1)
    units, order = np.empty(counts.shape), np.argsort(season.row, kind="stable")
    ends = np.searchsorted(season.row[order], np.arange(1, len(season.series)))
    for rows in np.split(order, ends):
        longest = counts[:, rows].max(keepdims=True)[0]
        adjusted = season.adjusted(season.row[rows[:1]], longest)[0]
        changes = np.cumsum(np.abs(np.diff(adjusted, prepend=adjusted[0])))
        units[:, rows] = changes[counts[:, rows] - 1] / np.maximum(counts[:, rows] - 1, 1)
    return units[:, :, None]


def _training_origins(table, until, horizon, random_state):
    """Origins of all series that something is known after, with one pattern a series."""
    series, known = positions(1, np.maximum(until - 1, 0))
    if len(series) > _MOST_ORIGINS:
        rows = random_state.choice(len(series), _MOST_ORIGINS, replace=False)
        series, known = series[rows], known[rows]
    return Origins(table, series, known, horizon, until[series])

"""Attention over candidate forecasts, learned from the series of a panel."""

from dataclasses import dataclass

import numpy as np

from ._adjustment import SeasonalAdjustment
from ._classical import Classical
from ._origins import positions
from ._table import Table

# Seasons and steps of the window that a network sees.
_SEASONS, _FEWEST_STEPS, _MOST_STEPS = 2, 16, 64
# Origins of each series, and of all, that are learned from, and what must be known there.
_RECENT, _MOST_ORIGINS, _LEAST_KNOWN = 400, 100_000, 5
# Networks that are averaged.
_N_NETWORKS = 2
# Shares of the network in the forecast that are tried.
_SHARES = np.linspace(0, 1, 11)
_LARGEST = 60.0


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a network sees at some origins, in units of the series.

    Attributes
    ----------
    past : ndarray of shape (n_origins, window)
    candidates : ndarray of shape (n_origins, n_names, horizon)
    statistics : ndarray of shape (n_origins, 5)
    targets : ndarray of shape (n_origins, horizon)
        NaN beyond the end of a series.
    unit : ndarray of shape (n_origins, 1)
    level : ndarray of shape (n_origins, horizon)
        Last value and season, which forecasts are relative to.
    """

    past: np.ndarray
    candidates: np.ndarray
    statistics: np.ndarray
    targets: np.ndarray
    unit: np.ndarray
    level: np.ndarray


@dataclass(frozen=True, eq=False)
class CandidateAttention:
    r"""Networks that weigh classical forecasts by what they see, and correct them.

    Attributes
    ----------
    season_length : float
    logs : bool
        Whether the series are logarithms.
    share : float
        Of the networks in the forecast; the rest is the fixed combination.
    networks : list of dict of str to ndarray
        Weights of the networks, which are averaged.

    Notes
    -----
    A small network sees the last steps, the candidates and a few statistics of a series, all
    seasonally adjusted, relative to the origin :math:`t` and in units of the mean absolute
    difference :math:`\sigma_t` between neighbours so far. For each step :math:`k` ahead it
    answers with logits of the candidates :math:`f_b` and a correction:

    .. math:: \hat y_k = \sum_b \operatorname{softmax}_b(z_{bk}) f_{bk} + r_k .

    It is trained on all series by absolute errors, from candidates that know nothing but what
    came before each origin.
    """

    season_length: float
    logs: bool
    share: float
    networks: list

    @property
    def _classical(self):
        return Classical(self.season_length, self.logs)

    def forecast(self, origins, combined):
        """Forecasts at some origins, with the share of the networks.

        Parameters
        ----------
        origins : Origins
        combined : ndarray of shape (n_origins, horizon)
            The fixed combination.

        Returns
        -------
        forecasts : ndarray of shape (n_origins, horizon)
        """
        if self.share == 0:
            return combined
        inputs = inputs_at(origins, self._classical, origins.table.lengths)
        learned = self._learned(inputs)
        return self.share * learned + (1 - self.share) * combined

    def _learned(self, inputs):
        from ._candidate_network import ask  # torch takes a second to load

        return np.mean([ask(weights, inputs) for weights in self.networks], axis=0)


def fit_attention(training, combination, classical, random_state):
    """Train networks on a panel, and choose their share by the ends of its series.

    Parameters
    ----------
    training : Training
    combination : Combination
        The fixed combination of candidates.
    classical : Classical
        The candidates that networks attend over.
    random_state : RandomState

    Returns
    -------
    attention : CandidateAttention
    held_out : ndarray of shape (n_validation, horizon)
        Of validation origins within a horizon of the end the forecasts with the share of a
        network that has not seen what followed; of others the fixed combination.
    """
    from ._candidate_network import train

    validation, observations = training.validation, training.validation.table
    lengths, horizon = observations.lengths, validation.horizon
    near = np.flatnonzero(lengths[validation.series] - validation.known <= horizon)
    until = training.earliest(near)
    n_runs = 1 + _N_NETWORKS
    seeds = random_state.randint(np.iinfo(np.int32).max, size=n_runs)

    def run(number, end):
        origins = _training_origins(observations, end, horizon, random_state)
        inputs = inputs_at(origins, classical, end)
        seen = origins.steps < end[origins.series][:, None]
        return train(inputs, seen, origins.series, classical.logs, int(seeds[number]))

    trial = CandidateAttention(classical.season_length, classical.logs, 1.0, [run(0, until)])
    origins = validation.take(near)
    learned = trial._learned(inputs_at(origins, classical, until))
    fixed, targets = combination.held_out[near], origins.targets()
    scale = training.scale[origins.series, None]
    errors = [
        np.nanmean(np.abs(share * learned + (1 - share) * fixed - targets) / scale)
        for share in _SHARES
    ]
    share = float(_SHARES[np.argmin(errors)])
    held_out = combination.held_out.copy()
    held_out[near] = share * learned + (1 - share) * fixed
    networks = [run(number, lengths) for number in range(1, n_runs)] if share else []
    found = CandidateAttention(classical.season_length, classical.logs, share, networks)
    return found, held_out


def inputs_at(origins, classical, until):
    """What a network sees at some origins.

    Parameters
    ----------
    origins : Origins
    classical : Classical
    until : ndarray of int of shape (n_series,)
        Steps of each series that seasonal patterns and the least unit are learned from.

    Returns
    -------
    inputs : Inputs
    """
    observations, m = origins.table, classical.season_length
    learned = [own[:end] for own, end in zip(observations.values, until, strict=True)]
    season = SeasonalAdjustment.of(learned, m, observations.starts)
    adjusted = [
        own - season.at(i, np.arange(len(own))) for i, own in enumerate(observations.values)
    ]
    changes = [
        np.cumsum(np.abs(np.diff(own, prepend=own[0]))) / np.maximum(np.arange(len(own)), 1)
        for own in adjusted
    ]
    own = Table.of(adjusted).at_ends(origins.horizon).at(origins.series, origins.known)
    window = int(np.clip(_SEASONS * m, _FEWEST_STEPS, _MOST_STEPS))
    past = own.past(window)
    unit = Table.of(changes).at_ends(1).at(origins.series, origins.known).past(1)
    if classical.logs:
        unit = unit + 1e-3
    else:
        last = np.array([own[end - 1] for own, end in zip(changes, until, strict=True)])
        last = last[origins.series, None]
        unit = np.where(unit + last > 0, unit + 1e-3 * last, 1.0)
    now, later = past[:, -1:], season.at(origins.series[:, None], origins.steps)
    candidates = classical.forecast(origins, until) - (now + later)[:, None]
    candidates = np.clip(candidates / unit[:, None], -_LARGEST, _LARGEST)
    past = (past - now) / unit
    known = np.maximum(origins.known, 1)[:, None]
    statistics = np.concatenate(
        [
            np.log(unit) if classical.logs else np.zeros_like(unit),
            np.log(known),
            np.minimum(known, window) / window,
            np.abs(past).mean(axis=1, keepdims=True) / 10,
            candidates.std(axis=(1, 2))[:, None],
        ],
        axis=1,
    )
    targets = (own.targets() - now) / unit
    return Inputs(past, candidates, statistics, targets, unit, now + later)


def _training_origins(observations, until, horizon, random_state):
    """Recent origins of all series that something is known after."""
    first = np.maximum(until - _RECENT, _LEAST_KNOWN)
    series, known = positions(first, np.maximum(until - first, 0))
    if len(series) > _MOST_ORIGINS:
        rows = random_state.choice(len(series), _MOST_ORIGINS, replace=False)
        series, known = series[rows], known[rows]
    return observations.at_ends(horizon).at(series, known)

"""Effects of known features on series, which are taken out before candidates forecast."""

from dataclasses import dataclass, replace

import numpy as np

from ._classical import Classical
from ._feature_basis import FeatureBasis
from ._feature_ridge import solve_ridges
from ._profiles import SeasonalProfiles

# Penalties that are tried, relative to the mean square of a column.
_ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
# Share of squared differences in blocks not learned from that features have to explain.
_LEAST_EXPLAINED = 0.05
_LEARN_NOTHING = (Classical, SeasonalProfiles)


@dataclass(frozen=True, eq=False)
class FeatureEffects:
    r"""Effects of known features, which add to series.

    Attributes
    ----------
    basis : FeatureBasis
    coef : ndarray of shape (n_basis,)
        In units of the series, in which effects are alike.
    unit : ndarray of shape (n_series,)
        Of the training series.

    Notes
    -----
    A level that drifts and a season hide the effects :math:`g` of features. Both all but
    vanish in differences over a season of :math:`m` steps, which a ridge regression explains:

    .. math:: y_t - y_{t-m} \approx g(x_t) - g(x_{t-m}) .
    """

    basis: FeatureBasis
    coef: np.ndarray
    unit: np.ndarray

    def take_out(self, observations):
        """A table without the effects of their features."""
        effects, units = self._of_rows(observations), observations.units(self.unit)
        rest = [
            values - units[i] * effects[observations.feature_rows(i, np.arange(len(values)))]
            for i, values in enumerate(observations.values)
        ]
        return observations.with_values(rest)

    def ahead(self, origins):
        """Effects on the steps to forecast; (n_origins, horizon)."""
        observations, series = origins.table, origins.series[:, None]
        effects = self._of_rows(observations)[observations.feature_rows(series, origins.steps)]
        return observations.units(self.unit)[series] * effects

    def _of_rows(self, observations):
        known = observations.known
        return self.basis(observations.features[:, known], known) @ self.coef


def learn_effects(training, season_length):
    """Effects of features, if known ones explain what happens.

    Parameters
    ----------
    training : Training
    season_length : float
        Steps in a season, over which differences are taken.

    Returns
    -------
    effects : FeatureEffects or None
    held_out : list of FeatureEffects
        For each block of validation origins, learned from differences of other steps.
    """
    observations, lag = training.origins.table, max(1, round(season_length))
    series = np.flatnonzero(observations.lengths > lag)
    if not observations.n_features or not len(observations.known) * len(series):
        return None, []
    basis = FeatureBasis.of(observations.features)
    x, y, blocks = [], [], []
    for i in series:
        values = observations.values[i] / training.scale[i]
        steps = np.arange(len(values))
        table = observations.features[observations.feature_rows(i, steps)]
        table = basis(table[:, observations.known], observations.known)
        x.append(table[lag:] - table[:-lag])
        y.append(values[lag:] - values[:-lag])
        inside = training.within(i, steps)
        blocks.append(inside[lag:] | inside[:-lag])
    x, y, blocks = (np.concatenate(parts) for parts in (x, y, blocks))
    parts = [(x[out], y[out]) for out in blocks.T]
    gram = np.array([x.T @ x - own.T @ own for own, _ in [(x[:0], 0), *parts]])
    cross = np.array([x.T @ y - own.T @ aim for own, aim in [(x[:0], y[:0]), *parts]])
    tried = []
    for alpha in _ALPHAS:
        coefs = solve_ridges(gram, cross, alpha)
        pairs = zip(parts, coefs[1:], strict=True)
        error = sum(np.sum((aim - own @ coef) ** 2) for (own, aim), coef in pairs)
        tried.append((error, coefs))
    error, coefs = min(tried, key=lambda one: one[0])
    if error >= (1 - _LEAST_EXPLAINED) * sum(np.sum(aim**2) for _, aim in parts):
        return None, []
    effects, *held_out = (FeatureEffects(basis, coef, training.scale) for coef in coefs)
    return effects, held_out


def fit_without_effects(candidates, training, effects, held_out):
    """Fit candidates to what effects leave, and forecast each block by others than its own.

    Parameters
    ----------
    candidates : list of candidates
    training : Training
    effects, held_out
        As :func:`learn_effects` returns them.

    Returns
    -------
    fitted : list of candidates
    held_out : ndarray of shape (n_validation, n_names, horizon)
    """
    names = sum(len(one.names) for one in candidates)
    found = np.empty((len(training.validation), names, training.origins.horizon))
    for block, own in enumerate(held_out):
        rows = np.flatnonzero(training.block == block)
        validation = training.validation.take(rows)
        part = replace(training, validation=validation, block=np.zeros_like(rows))
        part, ahead = _without(part, own), own.ahead(validation)
        left = np.concatenate(fit_each(candidates, part)[1], axis=1)
        found[rows] = left + ahead[:, None]
    training = _without(training, effects)
    fitted = [
        one if isinstance(one, _LEARN_NOTHING) else fit_each([one], training)[0][0]
        for one in candidates
    ]
    return fitted, found


def fit_each(candidates, training):
    """Fitted candidates, and their held-out forecasts."""
    found = [one.fit(training) for one in candidates]
    pairs = zip(candidates, found, strict=True)
    found = [own if isinstance(own, tuple) else (one, own) for one, own in pairs]
    return [one for one, _ in found], [held_out for _, held_out in found]


def _without(training, effects):
    """Training in series without effects."""
    observations = effects.take_out(training.origins.table)
    origins, validation = (
        replace(own, table=observations) for own in (training.origins, training.validation)
    )
    return replace(training, origins=origins, validation=validation)

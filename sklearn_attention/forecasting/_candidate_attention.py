"""Weights of candidates by their errors where the states of series were similar.

The query is the state of a series at an origin: logarithms of how far the candidates differ,
how far their mean moves, and how far it departs from the last value, in units of the mean
difference of neighbouring values. The keys are the states at past origins of all series of a
panel, the values the errors of the candidates there. The Gaussian kernel average of the values
is the error to be expected at the query. A softmax turns expected errors into weights.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from .._blocks import evenly_spread
from .._column_stats import replace_zeros
from ..attention._average import attend
from ._origins import combine, ensemble_mad
from ._table import mean_differences

# Temperatures of the softmax; the weights are averaged over both. On twenty sets errors are
# 0.996 of those with temperatures chosen on other blocks, at most 1.017.
_TEMPERATURES = (0.05, 0.2)
# Smaller weights become 0, so that not every candidate has to be computed.
MIN_WEIGHT = 0.01
# The 31 differences of the last 32 steps are the unit of a state. At most 3000 origins are
# remembered, and bandwidths, in standard deviations of the states, are compared on 1000.
_WINDOW, _MAX_KEYS, _MAX_TESTS, _BANDWIDTHS = 32, 3000, 1000, (0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
# States are clipped at three standard deviations, and errors at ten times those of the series.
_MAX_STATE, _MAX_ERROR = 3.0, 10.0


def softmax_weights(log_errors, panel_log_errors, panel_share):
    """Compute weights in proportion to exp(-(E / min(E) - 1) / t), means over temperatures t.

    E is the geometric mean of the relative error of a candidate on a series, `log_errors`
    (n_rows, n_candidates), NaN if unknown, and, with weight `panel_share`, on all series,
    `panel_log_errors` (n_candidates,) or (n_rows, n_candidates).
    """
    is_unknown = np.isnan(log_errors)
    mixed = np.where(is_unknown, panel_log_errors, log_errors)
    mixed = panel_share * panel_log_errors + (1 - panel_share) * mixed
    # A candidate that could not be validated on a series, where others could, has no weight.
    mixed[is_unknown & ~is_unknown.all(axis=1, keepdims=True)] = np.inf
    mixed -= mixed.min(axis=1, keepdims=True)
    excess = np.expm1(np.minimum(mixed, 100.0))
    return np.mean([softmax(-excess / t, axis=1) for t in _TEMPERATURES], axis=0)


@dataclass(frozen=True, eq=False)
class CandidateAttention:
    """Attention over the errors of candidates at past origins of a panel.

    Attributes
    ----------
    log_errors : ndarray of shape (n_series + 1, n_candidates)
        Logarithms of the relative errors on each series; the last row, of new series, is NaN.
    is_excluded : ndarray of bool of shape (n_series,)
        True for series that mostly are at their minimum, whose weights do not depend on the
        state.
    panel_share : float
        Weight, from 0 to 1, of the errors expected in similar states. Errors of the series
        itself have the remaining weight.
    states : ndarray of shape (n_keys, 3)
    errors : ndarray of shape (n_keys, 2 * n_candidates)
        Errors in units of the mean error of their series, 0 where unknown, then indicators of
        those that are known.
    steps_left : ndarray of shape (n_keys,)
        Steps of the series after each origin.
    center, scale : ndarray of shape (3,)
        Mean and standard deviation of the states.
    bandwidth : float
        In these standard deviations.
    """

    log_errors: np.ndarray
    is_excluded: np.ndarray
    panel_share: float
    states: np.ndarray
    errors: np.ndarray
    steps_left: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    bandwidth: float

    @classmethod
    def fit(cls, origins, forecasts, errors, error_of, **fields):
        """Remember errors and choose the bandwidth; None if states do not clearly matter.

        Parameters
        ----------
        origins : Origins
            Past ones of n_origins, each once.
        forecasts : ndarray of shape (n_origins, n_candidates, horizon)
        errors : ndarray of shape (n_origins, n_candidates)
            Relative to the mean error of the series; NaN if unknown.
        error_of : callable
            ``error_of(rows, expected)`` returns the errors (n_rows,) of the combined forecasts
            at origins in these rows. Weights are made of the expected logarithms of errors.
        **fields
            The first three attributes.
        """
        keys = evenly_spread(np.arange(len(origins)), _MAX_KEYS)
        states, is_known = states_at(origins, forecasts), ~np.isnan(errors[keys])
        errors = np.minimum(np.where(is_known, errors[keys], 0.0), _MAX_ERROR)
        center, scale = states[keys].mean(axis=0), states[keys].std(axis=0) + 1e-9
        attention = cls(
            **fields,
            states=states[keys],
            errors=np.hstack([errors, is_known]),
            steps_left=origins.take(keys).steps_left,
            center=center,
            scale=scale,
            bandwidth=1e3,
        )
        rows = evenly_spread(np.arange(len(origins)), _MAX_TESTS)
        tests = origins.take(rows)
        results = []
        for bandwidth in (attention.bandwidth, *_BANDWIDTHS):
            narrower = replace(attention, bandwidth=bandwidth)
            expected = narrower.expected(tests, forecasts[rows], leave_out=True)
            results.append((error_of(rows, expected), narrower))
        best_error, best = min(results, key=lambda result: result[0].mean())
        # It has to save one standard error of the mean. Series count as independent.
        saved = results[0][0] - best_error
        by_series = np.bincount(tests.series, saved - saved.mean())
        return best if saved.sum() > np.sqrt(np.sum(by_series**2)) else None

    def expected(self, origins, forecasts, leave_out=False):
        """Compute logarithms of average errors in similar states; (n_origins, n_candidates).

        With `leave_out`, keys of all series are left out whose number of steps to the end of
        their series differs by less than a horizon: series that end together share shocks, with
        which bandwidths would be far too small. If no key is left, all candidates are alike.
        """
        keys, queries = (
            np.clip((states - self.center) / self.scale, -_MAX_STATE, _MAX_STATE)
            for states in (self.states, states_at(origins, forecasts))
        )
        steps_left = origins.steps_left if leave_out else np.full(len(origins), -np.inf)
        averages = np.ones((len(origins), self.errors.shape[1]))
        for number in np.unique(steps_left):
            rows = steps_left == number
            is_far = np.abs(self.steps_left - number) >= origins.horizon
            if is_far.any():
                averages[rows], _ = attend(
                    queries[rows], keys[is_far], self.errors[is_far], bandwidth=self.bandwidth
                )
        error, known = np.split(averages, 2, axis=1)
        log_error = np.log(np.maximum(error, 1e-9) / np.maximum(known, 1e-9))
        return np.where(known > 1e-9, log_error, 1e9)  # unknown candidates are as bad as can be

    def weights(self, origins, forecasts, weights):
        """Replace the weights (n_origins, n_names) of the candidates that it knows."""
        n_candidates = self.log_errors.shape[1]
        expected = self.expected(origins, forecasts[:, :n_candidates])
        attended = softmax_weights(
            self.log_errors[origins.training_index], expected, self.panel_share
        )
        attended[attended < MIN_WEIGHT] = 0.0
        before, of_others = np.split(weights, [n_candidates], axis=1)
        attended *= before.sum(axis=1, keepdims=True) / attended.sum(axis=1, keepdims=True)
        attended = np.append(attended, of_others, axis=1)
        return np.where(origins.series_flags(self.is_excluded)[:, None], weights, attended)


def states_at(origins, forecasts):
    """Compute the state of a series at each origin; (n_origins, 3).

    `forecasts` (n_origins, n_candidates, horizon) are NaN where a candidate has none.
    """
    past = origins.past(_WINDOW)
    # Differences below 1e-9 of the values are rounding errors.
    rounding = 1e-9 * np.abs(past).max(axis=1)
    unit = replace_zeros(np.maximum(mean_differences(past, origins.n_known), rounding))
    mean = combine(forecasts, np.ones(forecasts.shape[:2]), otherwise=0.0)
    spread = ensemble_mad(forecasts).mean(axis=1)
    departure = np.abs(mean.mean(axis=1) - past[:, -1])
    logarithms = np.log1p([mean.std(axis=1) / unit, departure / unit])
    return np.column_stack([np.log(1e-3 + spread / unit), *logarithms])

"""Ensemble weights by the errors of candidates where the states of series were similar.

Weights: a softmax of the negative errors that are expected of the candidates. The expected
error is a Gaussian kernel average (Nadaraya-Watson regression). Its query is the state of a
series at an origin, three numbers: how far the candidate forecasts differ, how far their mean
moves over the horizon, and how far it is from the last value. They are logarithms, in units of
the mean difference of neighbouring values. The keys are the states at past origins of all
series of a panel, and the values are the errors of the candidates there.

Learns: the bandwidth of least error of the weighted mean at validation origins. If none saves
more than a standard error, weights do not depend on the state.

Costs: the kernel of up to 3000 keys at each origin; a search compares six bandwidths at 1000.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from .._blocks import evenly_spread
from .._column_stats import replace_zeros
from ..attention._average import attend
from ._origins import combine, ensemble_mad
from ._table import mean_differences

# Temperatures of the softmax, without unit; the weights are averaged over both. On twenty sets
# errors are 0.996 of those with temperatures that are chosen on other blocks, at most 1.017.
_TEMPERATURES = (0.05, 0.2)
# Smaller weights become 0, so that not every candidate has to be computed.
MIN_WEIGHT = 0.01
# States are in units of the mean of the 31 differences of the last 32 values. At most 3000
# origins are remembered. Bandwidths, in standard deviations of the states, are compared at 1000
# origins.
_WINDOW, _MAX_KEYS, _MAX_TESTS, _BANDWIDTHS = 32, 3000, 1000, (0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
# States are clipped at three standard deviations, and errors at ten times the mean error of the
# series.
_MAX_STATE, _MAX_ERROR = 3.0, 10.0
# This bandwidth is so large that all keys have the same weight.
_EQUAL_WEIGHTS = 1e3


def softmax_weights(log_errors, panel_log_errors, panel_share):
    """Compute weights proportional to exp(-(E / min(E) - 1) / t), averaged over temperatures t.

    E is the error of a candidate, log E = (1 - s) (log error on the series) + s (log error on
    the panel) with the panel share s, and min(E) is that of the best candidate.

    Parameters
    ----------
    log_errors : ndarray of shape (n_rows, n_names)
        Logarithms of relative errors on the series of each row, NaN if unknown.
    panel_log_errors : ndarray of shape (n_names,) or (n_rows, n_names)
        Logarithms of relative errors on all series, or of the errors that attention expects.
    panel_share : float
        Weight s, from 0 to 1, of the panel's errors.

    Returns
    -------
    weights : ndarray of shape (n_rows, n_names)
        Rows sum to 1.
    """
    is_unknown = np.isnan(log_errors)
    series_log_errors = np.where(is_unknown, panel_log_errors, log_errors)
    mixed = panel_share * panel_log_errors + (1 - panel_share) * series_log_errors
    # A candidate that could not be validated on a series gets no weight if others could.
    mixed[is_unknown & ~is_unknown.all(axis=1, keepdims=True)] = np.inf
    mixed -= mixed.min(axis=1, keepdims=True)
    excess = np.expm1(np.minimum(mixed, 100.0))
    return np.mean([softmax(-excess / t, axis=1) for t in _TEMPERATURES], axis=0)


@dataclass(frozen=True, eq=False)
class CandidateAttention:
    """Attention over the errors of candidates at past origins of a panel.

    Attributes
    ----------
    log_errors : ndarray of shape (n_series + 1, n_names)
        Logarithms of the relative errors on each series; the last row, of new series, is NaN.
    is_excluded : ndarray of bool of shape (n_series,)
        True for intermittent series, whose weights do not depend on the state.
    panel_share : float
        Weight, from 0 to 1, of the errors expected in similar states. Errors of the series
        itself have the remaining weight.
    states : ndarray of shape (n_keys, 3)
        Keys.
    errors : ndarray of shape (n_keys, 2 * n_names)
        Errors in units of the mean error of their series, 0 where unknown, and then 1 for each
        error that is known and 0 for others.
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
        """Remember errors and choose the bandwidth.

        Parameters
        ----------
        origins : Origins
            Validation origins, each once.
        forecasts : ndarray of shape (n_origins, n_names, horizon)
        errors : ndarray of shape (n_origins, n_names)
            Relative to the mean error of the series; NaN if unknown.
        error_of : callable
            ``error_of(rows, expected)`` returns the errors (n_rows,) of the combined forecasts
            at the origins `rows`, if `expected` (n_rows, n_names) are the logarithms of the
            expected errors.
        **fields
            The attributes `log_errors`, `is_excluded` and `panel_share`.

        Returns
        -------
        attention : CandidateAttention or None
            None if no bandwidth clearly saves error.
        """
        keys = evenly_spread(np.arange(len(origins)), _MAX_KEYS)
        states, is_known = states_at(origins, forecasts), ~np.isnan(errors[keys])
        key_errors = np.minimum(np.where(is_known, errors[keys], 0.0), _MAX_ERROR)
        attention = cls(
            **fields,
            states=states[keys],
            errors=np.hstack([key_errors, is_known]),
            steps_left=origins.take(keys).steps_left,
            center=states[keys].mean(axis=0),
            scale=states[keys].std(axis=0) + 1e-9,
            bandwidth=_EQUAL_WEIGHTS,
        )
        rows = evenly_spread(np.arange(len(origins)), _MAX_TESTS)
        tests = origins.take(rows)
        results = []
        for bandwidth in (_EQUAL_WEIGHTS, *_BANDWIDTHS):
            tried = replace(attention, bandwidth=bandwidth)
            expected = tried.expected(tests, forecasts[rows], leave_out=True)
            results.append((error_of(rows, expected), tried))
        best_error, best = min(results, key=lambda result: result[0].mean())
        # The best bandwidth has to save one standard error of the sum, in which errors of
        # different series are independent.
        error_with_equal_weights, _ = results[0]
        saved = error_with_equal_weights - best_error
        series_sums = np.bincount(tests.series, saved - saved.mean())
        return best if saved.sum() > np.sqrt(np.sum(series_sums**2)) else None

    def expected(self, origins, forecasts, leave_out=False):
        """Average errors in similar states; return their logarithms, (n_origins, n_names).

        With `leave_out`, keys whose number of steps to the end of their series differs from
        that of the query by less than a horizon are left out, whatever their series. Series
        that end together share shocks, and with these keys bandwidths would be far too small.
        If no key is left, all candidates get the same expected error.
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
        # The average of errors over the keys where they are known is a ratio of two averages. A
        # candidate whose error is known at none of the keys gets a huge expected error, and so
        # no weight.
        error, known_share = np.split(averages, 2, axis=1)
        log_error = np.log(np.maximum(error, 1e-9) / np.maximum(known_share, 1e-9))
        return np.where(known_share > 1e-9, log_error, 1e9)

    def weights(self, origins, forecasts, weights):
        """Adapt weights to the states of the series at origins; (n_origins, n_names).

        `weights` (n_origins, n_names) are those without attention. Candidates that were added
        after the attention had been fitted, and intermittent series, keep them.
        """
        n_names = self.log_errors.shape[1]
        expected = self.expected(origins, forecasts[:, :n_names])
        attended = softmax_weights(
            self.log_errors[origins.training_index], expected, self.panel_share
        )
        attended[attended < MIN_WEIGHT] = 0.0
        adapted, added_later = np.split(weights, [n_names], axis=1)
        attended *= adapted.sum(axis=1, keepdims=True) / attended.sum(axis=1, keepdims=True)
        attended = np.append(attended, added_later, axis=1)
        return np.where(origins.series_flags(self.is_excluded)[:, None], weights, attended)


def states_at(origins, forecasts):
    """Compute the state of the series at each origin; (n_origins, 3).

    Its numbers are logarithms of the mean absolute deviation of candidates from their mean, of
    the standard deviation of this mean over the horizon, and of its distance from the last
    value. `forecasts` (n_origins, n_names, horizon) are NaN where a candidate has none.
    """
    past = origins.past(_WINDOW)
    # Differences below 1e-9 of the values are rounding errors.
    rounding = 1e-9 * np.abs(past).max(axis=1)
    unit = replace_zeros(np.maximum(mean_differences(past, origins.n_known), rounding))
    mean = combine(forecasts, np.ones(forecasts.shape[:2]), otherwise=0.0)
    mad = ensemble_mad(forecasts).mean(axis=1)
    departure = np.abs(mean.mean(axis=1) - past[:, -1])
    logarithms = np.log1p([mean.std(axis=1) / unit, departure / unit])
    return np.column_stack([np.log(1e-3 + mad / unit), *logarithms])

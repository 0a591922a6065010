"""Noise of rows: its variance, and its correlation between neighbours."""

import dataclasses
from typing import Any

import numpy as np
from scipy.linalg import matmul_toeplitz
from scipy.signal import lfilter

# Number of rows after which the effect of a shock on an autoregression counts as 0.
_MEMORY = 1000


@dataclasses.dataclass(frozen=True)
class Noise:
    """Noise of rows, in units of the noise of a row of mean weight."""

    variances: Any  # (n,), one over relative weights; 1 for rows without weight
    autoregressions: tuple = (None,)  # coefficients for each output; None for independent rows

    def of_sums(self, effects):
        """Return variances (m, n_outputs) of sums of noise, with effects (m, n) of the rows."""
        if self.autoregressions[0] is None:
            return (effects**2 @ self.variances)[:, None]
        effects, variances = effects * np.sqrt(self.variances), []
        for coefficients in self.autoregressions:
            correlations = autocorrelation(coefficients, effects.shape[1])
            correlated = matmul_toeplitz(correlations, effects.T).T
            variances.append(np.sum(effects * correlated, axis=1))
        return np.maximum(np.stack(variances, axis=1), 0.0)

    def draws(self, n_draws, random_state):
        """Draw normal noise of all rows `n_draws` times, (n_outputs, n, n_draws)."""
        n, noise = len(self.variances), []
        for coefficients in self.autoregressions:
            if coefficients is None:
                drawn = random_state.standard_normal((n, n_draws))
            else:
                shocks = random_state.standard_normal((_MEMORY + n, n_draws))
                drawn = lfilter([1.0], np.append(1.0, -coefficients), shocks, axis=0)[_MEMORY:]
                drawn /= np.linalg.norm(_response(coefficients))
            noise.append(drawn * np.sqrt(self.variances)[:, None])
        return np.stack(noise)


def autoregression(series, max_lags):
    """Fit autoregressions of up to `max_lags` lags; return the coefficients of least AICc."""
    n = len(series)
    covariances = np.array([series[: n - k] @ series[k:] for k in range(max_lags + 1)]) / n
    coefficients, variance = np.zeros(0), covariances[0]
    best, lowest = coefficients, np.inf
    if not variance:
        return best
    for order in range(min(max_lags, n - 3) + 1):
        if order:  # one step of Levinson's recursion
            last = covariances[order] - coefficients @ covariances[order - 1 : 0 : -1]
            last /= variance
            coefficients = np.append(coefficients - last * coefficients[::-1], last)
            variance *= 1 - last**2
        criterion = n * np.log(variance) + 2 * (order + 1) * n / (n - order - 2)
        if criterion < lowest:
            best, lowest = coefficients, criterion
    return best


def autocorrelation(coefficients, n):
    """Return the autocorrelations of an autoregression at lags 0 to n - 1."""
    response = _response(coefficients)
    covariances = np.correlate(response, response, "full")[_MEMORY - 1 :][:n]
    return np.pad(covariances / covariances[0], (0, n - len(covariances)))


def _response(coefficients):
    """Return the effects of a shock on the rows after it, (_MEMORY,)."""
    return lfilter([1.0], np.append(1.0, -coefficients), np.eye(1, _MEMORY)[0])

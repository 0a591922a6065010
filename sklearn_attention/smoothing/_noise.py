"""Noise of rows: its variance, and its autocorrelation in the order of the rows.

An autoregression with the coefficients :math:`a_1, a_2, ...` is a series
:math:`x_t = a_1 x_{t-1} + a_2 x_{t-2} + ... + e_t` with independent shocks :math:`e_t`.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.linalg import matmul_toeplitz
from scipy.signal import lfilter

# Number of rows after which the effect of a shock on a series counts as 0.
_MEMORY = 1000


@dataclasses.dataclass(frozen=True)
class Noise:
    """Noise of the n rows, in units of the noise of a row of mean weight.

    All outputs have the same variances, each in its own unit.
    """

    variances: Any  # (n,), 1 / weights for weights of mean 1; 1 for rows of weight 0
    # Coefficients (n_lags,) of an autoregression for each output. None, which stands for all
    # outputs, if rows are independent.
    autoregressions: tuple = (None,)

    def variances_of_sums(self, coefficients):
        """Return the variances of m weighted sums of the noise of all rows.

        Each row of `coefficients` (m, n) has the weights of a sum. The result has the shape
        (m, n_outputs), or (m, 1) if rows are independent.
        """
        if self.autoregressions[0] is None:
            return (coefficients**2 @ self.variances)[:, None]
        scaled, variances = coefficients * np.sqrt(self.variances), []
        for autoregression_coefficients in self.autoregressions:
            # A variance is c' R c, with the autocorrelations in the Toeplitz matrix R.
            correlations = autocorrelation(autoregression_coefficients, scaled.shape[1])
            correlated = matmul_toeplitz(correlations, scaled.T).T
            variances.append(np.sum(scaled * correlated, axis=1))
        return np.maximum(np.stack(variances, axis=1), 0.0)

    def draws(self, n_draws, random_state):
        """Draw normal noise of all rows `n_draws` times.

        The shape is (n_outputs, n, n_draws), with one output if rows are independent.
        """
        n, noise = len(self.variances), []
        for coefficients in self.autoregressions:
            if coefficients is None:
                standard = random_state.standard_normal((n, n_draws))
            else:
                # The series begins earlier than the rows, so that its variance is stationary:
                # the sum of the squared effects of a shock. It is divided by the root of this
                # sum.
                shocks = random_state.standard_normal((_MEMORY + n, n_draws))
                series = lfilter([1.0], np.append(1.0, -coefficients), shocks, axis=0)
                standard = series[_MEMORY:] / np.linalg.norm(_impulse_response(coefficients))
            noise.append(standard * np.sqrt(self.variances)[:, None])
        return np.stack(noise)


def autoregression(series, max_lags):
    """Fit autoregressions of 0 to `max_lags` lags to a series (n,), by Levinson's recursion.

    Returns the coefficients (n_lags,) of the autoregression with the smallest corrected Akaike
    criterion, that of lag 1 first.
    """
    n = len(series)
    covariances = np.array([series[: n - k] @ series[k:] for k in range(max_lags + 1)]) / n
    coefficients, variance = np.zeros(0), covariances[0]
    best_coefficients, min_criterion = coefficients, np.inf
    if not variance:
        return best_coefficients
    for order in range(min(max_lags, n - 3) + 1):
        if order:
            # The coefficients of one lag more, and the variance of the shocks, follow from
            # those of one lag less.
            reflection = covariances[order] - coefficients @ covariances[order - 1 : 0 : -1]
            reflection /= variance
            shorter = coefficients - reflection * coefficients[::-1]
            coefficients = np.append(shorter, reflection)
            variance *= 1 - reflection**2
        criterion = n * np.log(variance) + 2 * (order + 1) * n / (n - order - 2)
        if criterion < min_criterion:
            best_coefficients, min_criterion = coefficients, criterion
    return best_coefficients


def autocorrelation(coefficients, n):
    """Return the autocorrelations (n,) of an autoregression, at lags 0 to n - 1."""
    response = _impulse_response(coefficients)
    # An autocovariance is the sum of products of effects of a shock, at this lag from each
    # other.
    covariances = np.correlate(response, response, "full")[_MEMORY - 1 :][:n]
    return np.pad(covariances / covariances[0], (0, n - len(covariances)))


def _impulse_response(coefficients):
    """Return the effects of a shock of 1 on its own row and those that follow, (_MEMORY,)."""
    return lfilter([1.0], np.append(1.0, -coefficients), np.eye(1, _MEMORY)[0])

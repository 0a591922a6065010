"""Jackknife+ intervals."""

import math

import numpy as np

# Rounding must not push a quantile to the next value.
_SLACK = 1e-12


def jackknife_intervals(left_out, errors, scale, coverage):
    """Jackknife+ intervals (n, 2, n_outputs) of queries; infinite where rows are too few.

    Of predictions without each row (n, n_samples, n_outputs), leave-one-out errors
    :math:`R_i` (n_samples, n_outputs), and their scale :math:`s` (n, n_outputs).
    """
    # From the quantile alpha of m_without_i(x) - s(x) R_i to the quantile 1 - alpha of
    # m_without_i(x) + s(x) R_i, counted from 0.
    place = math.ceil(coverage * (len(errors) + 1) * (1 - _SLACK)) - 1
    if place >= len(errors):
        return np.stack([np.full_like(scale, -np.inf), np.full_like(scale, np.inf)], axis=1)
    sizes = scale[:, None] * errors
    low, high = sizes - left_out, sizes + left_out
    low.partition(place, axis=1)
    high.partition(place, axis=1)
    return np.stack([-low[:, place], high[:, place]], axis=1)

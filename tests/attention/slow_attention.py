"""Slow, obvious references for weighted averages."""

import math

import numpy as np


def slow_log_weights(queries, keys, kernel, bandwidth, sample_weight=None):
    """log(w_i K(q, k_i)) of a kernel given as a function of two scaled rows."""
    weights = np.ones(len(keys)) if sample_weight is None else sample_weight
    table = np.full((len(queries), len(keys)), -math.inf)
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            if weights[j] > 0:
                log_kernel = kernel((query - key) / bandwidth)
                table[i, j] = log_kernel + math.log(weights[j])
    return table


def slow_average(log_weights, values):
    """Softmax average of each row, in plain Python."""
    averages = np.empty((len(log_weights), values.shape[1]))
    log_sums = np.empty(len(log_weights))
    for i, row in enumerate(log_weights):
        top = max(row)
        weights = [math.exp(score - top) for score in row]
        total = math.fsum(weights)
        for c in range(values.shape[1]):
            terms = (w * v for w, v in zip(weights, values[:, c], strict=True))
            averages[i, c] = math.fsum(terms) / total
        log_sums[i] = top + math.log(total)
    return averages, log_sums


def log_gaussian(u):
    return -0.5 * math.fsum(x * x for x in u) - 0.5 * math.log(2 * math.pi)


def log_matern32(u):
    r = math.sqrt(3 * math.fsum(x * x for x in u))
    return math.log1p(r) - r


def log_epanechnikov(u):
    squared = math.fsum(x * x for x in u)
    return math.log(0.75 * (1 - squared)) if squared < 1 else -math.inf


LOG_KERNELS = {
    "gaussian": log_gaussian,
    "matern32": log_matern32,
    "epanechnikov": log_epanechnikov,
}

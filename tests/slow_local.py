"""Slow, obvious references for local polynomials and for leaving rows out."""

import itertools

import numpy as np


def slow_terms(U, degree):
    """Monomials of total degree 1 to ``degree`` of each row, products of features included."""
    terms = [
        np.prod(U[:, list(factors)], axis=1)
        for total in range(1, degree + 1)
        for factors in itertools.combinations_with_replacement(range(U.shape[1]), total)
    ]
    return np.column_stack([np.ones(len(U)), *terms])


def slow_local(query, keys, values, weights, degree, scale, columns=None):
    """Value and slopes of the weighted least-squares polynomial at one query.

    It is read at the query, or where its terms are three deviations each from their mean.
    """
    columns = list(range(keys.shape[1])) if columns is None else columns
    offset = ((keys - query) / scale)[:, columns]
    root = np.sqrt(weights / weights.max())[:, None]
    design = slow_terms(offset, degree)
    found = np.linalg.lstsq(root * design, root * values, rcond=None)[0]
    slopes = np.zeros((values.shape[1], keys.shape[1]))
    if degree:
        slopes[:, columns] = found[1 : 1 + len(columns)].T
    terms, share = design[:, 1:], weights / weights.sum()
    mean, average = share @ terms, share @ values
    covariance = (terms - mean).T @ (share[:, None] * (terms - mean))
    distance = np.sqrt(max(mean @ np.linalg.pinv(covariance, hermitian=True) @ mean, 1e-300))
    read = min(1.0, 3 * np.sqrt(len(mean)) / distance)
    return average + read * (found[0] - average), slopes / scale


def slow_fit(query, keys, values, weights, degree, scale):
    """`slow_local` for any degree, 0 included, its value alone."""
    return slow_local(query, keys, values, weights, degree, scale)[0]

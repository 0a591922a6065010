r"""Sums over keys, by whichever algorithm is the fastest.

.. math:: S(q) = \sum_i w_i\, K(q, k_i)\, \phi_i

is all that averages, local polynomials, densities and their leave-one-out errors need.
"""

import numpy as np

from ._algorithms._near_keys import near_keys
from ._linear_time import linear_time_sums
from ._partial import Part
from ._problem import prepare

# "dense" compares every query with every key.
ALGORITHMS = ("auto", "dense")


def kernel_sums(problem, algorithm="auto", device="auto"):
    """Sums of the weights, and of these times the values, for every query.

    Parameters
    ----------
    problem : Problem
    algorithm : {"auto", "dense"}, default="auto"
    device : str, default="auto"
        Where to compute what needs torch.

    Returns
    -------
    part : Part
        Without fallback; in float64 unless every query made do with float32. Of arrays for
        a problem of arrays.
    """
    name, keys = _fastest(problem, algorithm, device)
    if name == "linear":
        found = keys.sums(problem)
        return Part(found.shift, found.sums[0, 1:].T, found.sums[0, 0])
    from ._algorithms._dense import dense_part
    from ._algorithms._near_sums import near_part

    part = near_part(keys) if name == "near" else dense_part(problem.tensors(device))
    if not problem.on_arrays:
        return part._replace(shift=part.shift.double())
    fields = (None if field is None else field.cpu().numpy() for field in part[:4])
    part = Part(*fields)
    return part._replace(shift=part.shift.astype(np.float64))


def fastest_algorithm(
    queries,
    keys,
    kernel="gaussian",
    *,
    bandwidth=1.0,
    query_scale=None,
    degree=0,
    device="auto",
):
    """Name of the algorithm that ``algorithm="auto"`` stands for.

    Parameters
    ----------
    queries, keys, kernel, bandwidth, query_scale, device
        As for :func:`attend`.
    degree : {0, 1, 2}, default=0
        Of local polynomials.

    Returns
    -------
    name : {"linear", "near", "dense"}
        Time linear in queries and keys; each query with the keys near it; or all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import fastest_algorithm
    >>> X = np.random.default_rng(0).normal(size=(3000, 3))
    >>> fastest_algorithm(X[:, :1], X[:, :1], bandwidth=0.1)
    'linear'
    >>> fastest_algorithm(X, X, bandwidth=0.01), fastest_algorithm(X, X, bandwidth=1.0)
    ('near', 'dense')
    """
    problem, _, _ = prepare(
        queries, keys, None, kernel, bandwidth=bandwidth, sample_weight=None,
        leave_one_out=False, device=device, query_scale=query_scale,
    )  # fmt: skip
    name, _ = _fastest(problem, "auto", device, degree)
    return name


def _fastest(problem, algorithm, device, degree=0):
    """Name of the algorithm to take, and the keys as it needs them."""
    if algorithm == "auto":
        linear = linear_time_sums(problem, degree)
        if linear is not None:
            return "linear", linear
        near = near_keys(problem, device, degree)
        if near is not None:
            return "near", near
    return "dense", None

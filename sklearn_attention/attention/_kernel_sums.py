r"""Sums over keys, by whichever algorithm is the fastest.

.. math:: S(q) = \sum_i w_i\, K(q, k_i)\, \phi_i

is all that averages, local polynomials, densities and their leave-one-out errors need.
"""

import numpy as np

from ._algorithms._near_keys import near_keys
from ._linear_time import linear_time_sums
from ._partial import Part

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
    keys = linear_time_sums(problem) if algorithm == "auto" else None
    if keys is not None:
        found = keys.sums(problem)
        return Part(found.shift, found.sums[0, 1:].T, found.sums[0, 0])
    from ._algorithms._dense import dense_part
    from ._algorithms._near_sums import near_part

    near = near_keys(problem, device) if algorithm == "auto" else None
    part = dense_part(problem.tensors(device)) if near is None else near_part(near)
    if not problem.on_arrays:
        return part._replace(shift=part.shift.double())
    fields = (None if field is None else field.cpu().numpy() for field in part[:4])
    part = Part(*fields)
    return part._replace(shift=part.shift.astype(np.float64))

"""What answers for queries without any weight, whatever the algorithm."""

import math

from array_api_compat import array_namespace

from ._algorithms._nearest import nearest_by_tree
from ._linear_time import linear_time_sums
from ._partial import Fallback


def fallback(problem, part, empty, *, all_keys=True):
    """The averages that answer for queries without weights, if the policy has any.

    Parameters
    ----------
    problem : Problem
    part : Part
        The averages.
    empty : str
        The policy.
    all_keys : bool, default=True
        Whether no further keys will be merged in.

    Returns
    -------
    fallback : Fallback or None
    """
    if empty not in ("nearest", "mean"):
        return None
    # Relative weights do for one problem; parts of several need them as they were given.
    scale = 1.0 if all_keys else math.exp(problem.log_weight_scale)
    if empty == "mean":
        found = _mean(problem)
        return Fallback(found.distance, found.numerator * scale, found.denominator * scale)
    xp = array_namespace(part.numerator)
    # Signed weights of further keys may cancel these, so any query may come to need it.
    final = all_keys or problem.kernel.signed is False
    needed = ~part.usable if final else xp.ones_like(part.usable)
    if problem.seen is not None:
        needed &= ~(problem.seen > -xp.inf)
    n_queries, n_values = part.numerator.shape
    options = {"dtype": xp.float64, "device": part.numerator.device}
    found = Fallback(
        xp.full((n_queries,), xp.inf, **options),
        xp.zeros((n_queries, n_values), **options),
        xp.zeros((n_queries,), **options),
    )
    (rows,) = xp.nonzero(needed)
    if len(rows):
        nearest = _nearest(problem.take(rows))
        found.distance[rows] = nearest.distance
        found.numerator[rows] = nearest.numerator * scale
        found.denominator[rows] = nearest.denominator * scale
    return found


def _nearest(problem):
    """The average over the nearest keys alone; distances are Euclidean, in bandwidths."""
    keys = linear_time_sums(problem)
    if keys is not None:
        distance, sums = keys.nearest(problem)
        return Fallback(distance, sums[1:].T, sums[0])
    found = nearest_by_tree(problem)
    if found is not None:
        return found
    from ._algorithms._tiles import nearest_fallback

    found = nearest_fallback(problem.tensors())
    return Fallback(*(field.cpu().numpy() for field in found)) if problem.on_arrays else found


def _mean(problem):
    """The average over all keys, each query's own left out where asked."""
    xp = array_namespace(problem.weights)
    weights = problem.weights
    sums = xp.concat([weights[:, None] * problem.values, weights[:, None]], axis=1)
    n_queries = len(problem.queries)
    totals = xp.zeros((n_queries, sums.shape[1]), dtype=sums.dtype, device=sums.device)
    totals += sums.sum(axis=0)
    if problem.own_key is not None:
        own = problem.own_key.clip(0)
        totals -= xp.where(problem.own_key[:, None] >= 0, sums[own], 0.0)
        # A key that outweighs all others cannot be subtracted without loss.
        heaviest = int(weights.argmax())
        rest = sums[:heaviest].sum(axis=0) + sums[heaviest + 1 :].sum(axis=0)
        totals[problem.own_key == heaviest] = rest
    distance = xp.zeros(n_queries, dtype=sums.dtype, device=sums.device)
    return Fallback(distance, totals[:, :-1], totals[:, -1])

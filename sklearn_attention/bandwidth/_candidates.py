"""A criterion at given bandwidths."""

import numpy as np

from .._spread import feature_spread
from ..attention._leave_one_out import LeaveOneOut
from ._criteria import SMOOTHER_CRITERIA
from ._search import canonical_ratio, search_range

_N_BANDWIDTHS = 30


def default_bandwidths(X, kernel, sample_weight=None):
    """Thirty multiples of the spread, from the distance of neighbours to the extent."""
    spread = feature_spread(X, sample_weight)
    low, high = search_range(X / spread, canonical_ratio(kernel))
    return [scale * spread for scale in np.geomspace(low, high, _N_BANDWIDTHS)]


def criterion_of_candidates(
    X, values, kernel, bandwidths, criterion="loo", *, sample_weight=None, **options
):
    """A criterion at every bandwidth on a list, infinite where a row has no prediction.

    Bandwidths that are multiples of one another share the work.
    """
    n = len(X) if sample_weight is None else np.count_nonzero(sample_weight)
    found = np.empty(len(bandwidths))
    for unit, members in _multiples(bandwidths):
        smoother = LeaveOneOut(
            X, values, kernel, bandwidth=unit, sample_weight=sample_weight, **options,
        )  # fmt: skip
        positions, scales = zip(*members, strict=True)
        scores = smoother.scores(scales)
        found[list(positions)] = SMOOTHER_CRITERIA[criterion](scores, n)
    return np.where(np.isnan(found), np.inf, found)


def _multiples(bandwidths):
    """Groups of bandwidths that are multiples of one: (that one, [(position, factor)])."""
    groups = []
    for position, bandwidth in enumerate(bandwidths):
        shape = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64))
        factor = shape.max()
        for unit, members in groups:
            # Relative to each: features may differ in their units by any power of ten.
            if len(unit) == len(shape) and np.allclose(shape / factor, unit, 1e-12, 0):
                members.append((position, factor))
                break
        else:
            groups.append((shape / factor, [(position, factor)]))
    found = []
    for unit, members in groups:
        # In a size of theirs, so that features divided by it do not overflow.
        size = np.ldexp(1.0, np.frexp(members[0][1])[1] - 1)
        unit = unit * size
        members = [(position, factor / size) for position, factor in members]
        found.append((unit if len(unit) > 1 else float(unit[0]), members))
    return found

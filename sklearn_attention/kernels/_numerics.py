"""Distances, roots and logarithms of arrays and tensors, accurate and with finite gradients."""

import math

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from scipy.spatial.distance import cdist

# Numbers up to this, such as keys in bandwidths from their middle, have squares that can be
# summed.
LARGEST = 1e151
# What is this little further may be within reach, since trees and boxes round otherwise.
ROUNDED_UP = 1 + 1e-9
# Up to here torch's direct differences beat a matrix product followed by repairs.
_DIRECT_FEATURES = 16
# Share of pairs beyond which all are computed as close ones are.
_MANY_CLOSE = 0.02


def squared_distances(X, Y):
    """Squared Euclidean distances (n, m) of rows of X (n, d) to rows of Y (m, d)."""
    # The expansion |x|^2 + |y|^2 - 2 x.y loses all digits for close rows far from the origin,
    # which matter most to kernels. Here rows are subtracted before they are squared, at least
    # for every close pair.
    if is_numpy_array(X):
        with np.errstate(over="ignore"):
            return cdist(X, Y, "sqeuclidean").astype(np.result_type(X, Y), copy=False)
    if X.shape[1] <= _DIRECT_FEATURES:
        return _by_differences(X, Y)
    import torch

    center = Y.mean(dim=0)
    U, V = X - center, Y - center
    norms = U.square().sum(1)[:, None] + V.square().sum(1)
    squared = (norms - 2 * (U @ V.T)).clamp_min(0)
    # The matrix product has lost a fifth of the digits of close pairs; and infinity - infinity
    # gave NaN.
    close = ~(squared >= torch.finfo(X.dtype).eps ** 0.2 * norms)
    rows, columns = close.nonzero(as_tuple=True)
    if len(rows) > _MANY_CLOSE * squared.numel():
        return _by_differences(X, Y)
    # Not U - V: where the rows are far apart, centring has rounded off digits.
    return squared.index_put((rows, columns), (X[rows] - Y[columns]).square().sum(1))


def _by_differences(X, Y):
    import torch

    # torch.cdist is slower on few features and does not take half precision.
    if X.shape[1] > 6 and X.dtype.itemsize >= 4:
        return torch.cdist(X, Y, compute_mode="donot_use_mm_for_euclid_dist").square()
    squared = X.new_zeros(()) if X.shape[1] else X.new_zeros((len(X), len(Y)))
    for x, y in zip(X.T, Y.T.contiguous(), strict=True):
        difference = x[:, None] - y
        squared = torch.addcmul(squared, difference, difference)
    return squared


def log(values):
    """Natural logarithm with log 0 = -inf, without NumPy's warning or a gradient of NaN."""
    return _of_positive("log", values, -math.inf)


def square_root(squared):
    """Square root whose gradient at 0 is 0 rather than infinite."""
    return _of_positive("sqrt", squared, 0.0)


def per_distance(slope, distance):
    """Derivatives in the squared distance from those in the distance, 0 at distance 0."""
    xp = array_namespace(distance)
    positive = distance > 0
    return xp.where(positive, 0.5 * slope / xp.where(positive, distance, 1.0), 0.0)


def _of_positive(name, values, at_zero):
    """A function of positive numbers, continued by a constant that has no gradient."""
    xp = array_namespace(values)
    function = getattr(xp, name)
    if getattr(values, "requires_grad", False):
        positive = values > 0
        return xp.where(positive, function(xp.where(positive, values, 1.0)), at_zero)
    with np.errstate(divide="ignore"):
        return function(values)


def with_slopes(compare, queries, keys, columns):
    """A kernel's table, and `pull` from derivatives along it to those along some columns.

    By torch, for kernels without slopes of their own: those of queries (n, d) and keys (m, d).
    """
    import torch

    moving, whole = [], []
    for x in (torch.tensor(queries), torch.tensor(keys)):
        # Codes of categories stay outside the graph: their kernels need no derivative.
        moving.append(x[:, columns].requires_grad_())
        whole.append(x.index_copy(1, torch.tensor(columns, dtype=torch.long), moving[-1]))
    with torch.enable_grad():
        table = compare(*whole)

    def pull(of_table):
        if not table.requires_grad:  # a step function is flat
            return [np.zeros(tuple(x.shape)) for x in moving]
        slopes = torch.autograd.grad(
            table, moving, torch.tensor(of_table), retain_graph=True, materialize_grads=True
        )
        return [slope.numpy() for slope in slopes]

    return table.detach().numpy(), pull

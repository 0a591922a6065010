"""Distances, roots and logarithms of arrays and tensors, accurate and with finite gradients."""

import math

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from scipy.spatial.distance import cdist

# Largest absolute value of a coordinate, such as a key in bandwidths, whose squared distances
# can be summed without overflow.
LARGEST = 1e151
# Factor on the support of a compact kernel within which trees and boxes search for keys: they
# round distances otherwise than the kernel does, by at most this.
ROUNDED_UP = 1 + 1e-9
# Number of features up to which torch computes differences of rows directly. With more, a
# matrix product and repairs of close pairs are faster.
_DIRECT_FEATURES = 16
# Fraction of pairs that are close, above which the repairs take longer than computing all pairs
# directly.
_MANY_CLOSE = 0.02


def squared_distances(X, Y):
    """Compute squared Euclidean distances (n, m) of rows of X (n, d) to rows of Y (m, d)."""
    # The expansion |x|^2 + |y|^2 - 2 x.y loses all digits if two close rows are far from the
    # origin, and close pairs matter most to kernels. So rows are subtracted before the squares
    # are summed, at least for all close pairs.
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
    # Pairs are close if the matrix product has lost a fifth of the digits of their distance.
    # The negation also selects NaN, which comes from infinity - infinity.
    close = ~(squared >= torch.finfo(X.dtype).eps ** 0.2 * norms)
    rows, columns = close.nonzero(as_tuple=True)
    if len(rows) > _MANY_CLOSE * squared.numel():
        return _by_differences(X, Y)
    # X - Y is used, not U - V: if rows are far from the center, centring has rounded digits
    # off.
    return squared.index_put((rows, columns), (X[rows] - Y[columns]).square().sum(1))


def _by_differences(X, Y):
    """Compute squared distances (n, m) of tensors from the differences of all pairs of rows."""
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
    """Compute the natural logarithm, -inf at 0, without a warning or a gradient of NaN."""
    return _apply_to_positive("log", values, at_zero=-math.inf)


def square_root(squared):
    """Compute the square root, whose gradient at 0 is set to 0 instead of infinity."""
    return _apply_to_positive("sqrt", squared, at_zero=0.0)


def slope_in_square(slope, distance):
    """Convert derivatives in the distance to those in its square; 0 at distance 0."""
    xp = array_namespace(distance)
    positive = distance > 0
    return xp.where(positive, 0.5 * slope / xp.where(positive, distance, 1.0), 0.0)


def _apply_to_positive(name, values, *, at_zero):
    """Apply the function `name` of NumPy or torch; the gradient at 0 is 0.

    `at_zero` is the value of the function at 0.
    """
    xp = array_namespace(values)
    function = getattr(xp, name)
    if getattr(values, "requires_grad", False):
        # Zeros are replaced before the function is applied, since torch would multiply its
        # infinite derivative at 0 by 0.
        positive = values > 0
        return xp.where(positive, function(xp.where(positive, values, 1.0)), at_zero)
    with np.errstate(divide="ignore"):
        return function(values)


def kernel_and_vjp(compare, queries, keys, columns):
    """Evaluate a kernel, and return a function for its vector-Jacobian products.

    This uses torch, for kernels that do not define their derivatives.

    Parameters
    ----------
    compare : callable
        ``compare(queries, keys)`` returns the kernel (n, m) of tensors.
    queries, keys : ndarray of shape (n, d) and (m, d)
    columns : list of int
        The columns with respect to which the kernel is differentiated.

    Returns
    -------
    table : ndarray of shape (n, m)
        The kernel.
    vjp : callable
        ``vjp(table_gradient)`` turns derivatives (n, m) of a number with respect to the kernel
        into those with respect to queries and keys, a list of (n, n_columns) and
        (m, n_columns).
    """
    import torch

    variables, inputs = [], []
    for x in (torch.tensor(queries), torch.tensor(keys)):
        # Columns that are not among `columns` are codes of categories, which stay constants: no
        # derivative with respect to a category exists.
        variables.append(x[:, columns].requires_grad_())
        inputs.append(x.index_copy(1, torch.tensor(columns, dtype=torch.long), variables[-1]))
    with torch.enable_grad():
        table = compare(*inputs)

    def vjp(table_gradient):
        if not table.requires_grad:  # the kernel is a step function, whose derivative is 0
            return [np.zeros(tuple(x.shape)) for x in variables]
        slopes = torch.autograd.grad(
            table,
            variables,
            torch.tensor(table_gradient),
            retain_graph=True,
            materialize_grads=True,
        )
        return [slope.numpy() for slope in slopes]

    return table.detach().numpy(), vjp

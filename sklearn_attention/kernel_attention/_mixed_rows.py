"""Sums of kernels at mixed rows, which have some features of one row and all others of another.

Partial dependence and Shapley values predict many mixed rows: for each mask of features, each
of the rows and each row of the background, the row that has the features of the mask from
the former and all others from the latter. The squared distance between a mixed row and a key is
a sum of two distances: one in the features that come from the row, one in the features that
come from the background. A Gaussian of the sum is a product of two factors, so that a product
of two matrices has the sums for all pairs of rows. The rough part of the kernel is a sum of
Gaussians, to 3e-6. Names and terms are those of `_kernel`.
"""

import math

import numpy as np

from .._blocks import blocks
from ._kernel import KINK, affine_part, as_keys, augment, squared_distances

# Maximum number of keys in a tile; numbers in its squared distances by feature; and numbers in
# an array of the masks that are evaluated together. With other sizes of half to four times
# these, sums take 1.0 to 1.3 times as long.
_MAX_KEYS, _DISTANCES_SIZE, _MASKS_SIZE = 256, 2**22, 2**18
# Larger squared distances count as this, so that they stay finite and may be multiplied by 0.
_MAX_DISTANCE = 1e30
# A Gaussian counts as 0 if its exponent is below minus this, where it is less than 6e-6.
_MAX_EXPONENT = 12.0
# Number of Gaussians from one exponential, all but the first by squaring, which doubles the
# error of rounding: in single precision sums of them err by 3e-5 at most.
_N_SQUARED = 16
# Added to numbers that are squared, as some processors are slow where these become subnormal.
_TINY = np.float32(1e-18)


def sums_of_mixed_rows(kernel, keys, coefficients, rows, background, masks, *, mean=False):
    """Compute the sums of `KernelSum` at mixed rows.

    Parameters
    ----------
    kernel : LearnedKernel
        Its formula is Gaussian.
    keys, rows, background : list of ndarray of shape (n, n_columns)
        Rows in all encodings.
    coefficients : ndarray of shape (n_keys, n_outputs)
    masks : ndarray of bool of shape (n_masks, n_features)
        True for the features that mixed rows have from `rows`; they have all others from the
        `background`.
    mean : bool, default=False
        Whether to average over the background, in about a tenth of the time.

    Returns
    -------
    sums : ndarray of shape (n_masks, n_rows, n_background, n_outputs)
        With `mean`, n_background is 1.
    """
    dtype, coefficients = keys[0].dtype, coefficients.astype(np.float64)
    # Features whose columns of `masks` are equal form a group.
    masks, group_of_feature = np.unique(masks, axis=1, return_inverse=True)
    group_of_column = [group_of_feature.reshape(-1)[feature] for feature in kernel.features]
    n_groups = masks.shape[1]

    # The linear part is a sum over groups, the constant part a number.
    slopes, constant = affine_part(kernel, keys, coefficients)
    terms = [
        products_by_feature(z[0], slopes, group_of_column[0], n_groups)
        for z in (rows, background)
    ]
    sums = add_mixed_terms(*terms, masks, mean) + constant

    # All other parts are Gaussians; each has its own multiple of the coefficients.
    named = kernel.named()
    rates, rough_sizes = _gaussians_of_rough(named)
    sizes = np.concatenate([np.exp(2 * named["amplitude"]), rough_sizes])
    sized_coefficients = (sizes[:, None, None] * coefficients).astype(dtype)

    grouped_rows, grouped_background, grouped_keys = (
        _augment_by_group(kernel, z, group_of_column, n_groups)
        for z in (rows, background, keys)
    )
    grouped_keys = [[as_keys(x) for x in groups] for groups in grouped_keys]
    # Masks are numbers here, which distances are multiplied by.
    from_rows, from_background = masks.astype(dtype), (~masks).astype(dtype)
    n_queries = len(rows[0]) + len(background[0])
    n_keys = int(np.clip(_DISTANCES_SIZE // (n_groups * n_queries), 1, _MAX_KEYS))
    for tile in blocks(len(coefficients), n_keys):
        row_distances = _squared_by_group(grouped_rows, grouped_keys, tile)
        background_distances = _squared_by_group(grouped_background, grouped_keys, tile)
        for block in blocks(len(masks), max(1, _MASKS_SIZE // (n_queries * n_keys))):
            row_masks, background_masks = from_rows[block], from_background[block]
            left = [np.tensordot(row_masks, squared, 1) for squared in row_distances]
            right = [
                np.tensordot(background_masks, squared, 1) for squared in background_distances
            ]
            # The Gaussians end early if no key is near. `zip` asks for coefficients first, so
            # that it does not take a Gaussian without using it.
            pairs = zip(
                sized_coefficients[:, tile], _gaussians(left, right, rates), strict=False
            )
            for tile_coefficients, (*factors, near_keys) in pairs:
                _add_products(sums[block], *factors, tile_coefficients[near_keys], mean)
    return sums


def _augment_by_group(kernel, rows, group_of_column, n_groups):
    """Return augmented queries in the columns of each group, a list for each encoding."""
    return [
        [augment(z[:, group == j], scale[group == j]) for j in range(n_groups)]
        for z, scale, group in zip(rows, kernel.column_scales, group_of_column, strict=True)
    ]


def _squared_by_group(grouped_queries, grouped_keys, tile):
    """Return squared distances to a tile of keys, (n_groups, n, n_keys) for each encoding."""
    distances = []
    for queries, keys in zip(grouped_queries, grouped_keys, strict=True):
        squared = [
            np.minimum(squared_distances(z, key[tile]), _MAX_DISTANCE)
            for z, key in zip(queries, keys, strict=True)
        ]
        distances.append(np.stack(squared))
    return distances


def _add_products(sums, left, right, coefficients, mean):
    """Add a Gaussian's sum over keys to `sums` (n_masks, n_rows, n_background, n_outputs).

    The Gaussian is the product of `left` (n_masks, n_rows, n_keys) and `right`
    (n_masks, n_background, n_keys); coefficients are (n_keys, n_outputs).
    """
    if mean:
        # A product, since a mean over the middle axis takes eight times as long.
        n_background = right.shape[1]
        mean_weights = np.full((1, n_background), 1 / n_background, right.dtype)
        means = (mean_weights @ right).swapaxes(1, 2)
        sums[:, :, 0] += left @ (means * coefficients)
        return
    for output, column in enumerate(coefficients.T):
        sums[..., output] += (left * column) @ right.swapaxes(1, 2)


def products_by_feature(rows, slopes, feature_of_column, n_features):
    """Return products of columns and slopes, summed over the columns of each feature.

    Rows are (n, n_columns), slopes (n_columns, n_terms), `feature_of_column` (n_columns,), and
    products (n, n_features, n_terms).
    """
    columns = [feature_of_column == j for j in range(n_features)]
    return np.stack([rows[:, is_own] @ slopes[is_own] for is_own in columns], axis=1)


def add_mixed_terms(row_terms, background_terms, masks, mean=False):
    """Add up terms (n, n_features, n_terms) over the features of mixed rows.

    The other arguments and the result (n_masks, n_rows, n_background, n_terms) are as for
    :func:`sums_of_mixed_rows`.
    """
    if mean:
        background_terms = background_terms.mean(axis=0, keepdims=True)
    from_rows = np.tensordot(masks, row_terms, (1, 1))
    from_background = np.tensordot(~masks, background_terms, (1, 1))
    return from_rows[:, :, None] + from_background[:, None]


def _gaussians(left, right, rates):
    """Yield Gaussians of squared distances in each encoding, then of their sum at all rates.

    `left` and `right` are lists of squared distances (n_masks, n, n_keys) in each encoding,
    from the rows and from the background. Each of `rates` has to be twice the one before.

    Yields (left factor, right factor, keys): a Gaussian is the product of the two factors, for
    these keys; all other keys are so far away that it is 0. The factors are overwritten when
    the next ones are asked for. The generator ends if all keys are far away.
    """
    for pair in zip(left, right, strict=True):
        yield *(np.exp(-0.5 * squared) for squared in pair), slice(None)
    totals = [sum(left), sum(right)]
    # No pair of rows is nearer to a key than this.
    min_distances = sum(total.min(axis=(0, 1)) for total in totals)
    near_keys = np.arange(len(min_distances))
    factors = [np.exp(-float(rate) * total) for rate in rates[:1] for total in totals]
    for number, rate in enumerate(rates):
        is_near = rate * min_distances[near_keys] < _MAX_EXPONENT
        # To copy the near keys takes less time than to keep the far ones if these are many.
        if 2 * is_near.sum() < len(near_keys):
            near_keys = near_keys[is_near]
            factors = [factor[..., is_near] for factor in factors]
        if not len(near_keys):
            return
        if number % _N_SQUARED:
            for factor in factors:
                np.square(factor, out=factor)
                factor += _TINY
        elif number:
            factors = [np.exp(-float(rate) * total[..., near_keys]) for total in totals]
        yield *factors, near_keys


def _gaussians_of_rough(named):
    r"""Return rates and sizes of Gaussians whose sum is the rough part, to 3e-6 of its size.

    The rough part is :math:`e^{-\sqrt s}` with s the squared distance, the kink included, times
    the squared rate. With :math:`u = e^t` it is :math:`\int e^{-us - 1/(4u)} / (2 \sqrt{\pi u})
    dt`, and the integral becomes a sum over steps of log 2. For u < 1/32 terms are negligible,
    and so they are where u s > 8 for the smallest s, that of the kink.
    """
    size, squared_rate = math.exp(2 * named["rough"][0]), math.exp(2 * named["rate"][0])
    if size == 0:
        return np.zeros(0), np.zeros(0)
    min_squared = KINK * squared_rate
    n_doublings = max(0, math.ceil(math.log2(8 / min_squared)))
    u = 2.0 ** np.arange(-5, n_doublings + 1)
    weights = math.log(2) / (2 * np.sqrt(math.pi * u)) * np.exp(-1 / (4 * u) - u * min_squared)
    return squared_rate * u, size * weights

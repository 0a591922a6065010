"""One kernel for numbers and categories side by side."""

from ._categorical import AitchisonAitken, LiRacine
from ._product_kernel import ProductKernel


def mixed_kernel(kernel, kinds, n_levels, lam):
    """Product of a kernel on the numeric columns and one for each categorical column.

    Parameters
    ----------
    kernel : Kernel
        Compares the numeric columns, all at once.
    kinds : list of {"numeric", "unordered", "ordered"}
        What each column is.
    n_levels : list of int
        How many levels each column has; ignored for numbers.
    lam : array-like of shape (n_features,)
        The lambda of each categorical column; ignored for numbers.

    Returns
    -------
    kernel : ProductKernel
        With :class:`AitchisonAitken` on unordered and :class:`LiRacine` on ordered columns,
        under the names ``category0``, ``category1``, by position.

    Examples
    --------
    >>> from sklearn_attention.kernels import Gaussian, mixed_kernel
    >>> mixed_kernel(Gaussian(), ["numeric", "unordered"], [0, 3], [0, 0.1])
    ProductKernel(kernels=[('numbers', Gaussian(), [0]),
                           ('category1', AitchisonAitken(lam=0.1, n_levels=3), [1])])
    """
    numbers = [j for j, kind in enumerate(kinds) if kind == "numeric"]
    parts = [("numbers", kernel, numbers)] if numbers else []
    for j, kind in enumerate(kinds):
        if kind == "unordered":
            part = AitchisonAitken(n_levels=max(2, n_levels[j]), lam=float(lam[j]))
        elif kind == "ordered":
            part = LiRacine(lam=float(lam[j]))
        else:
            continue
        parts.append((f"category{j}", part, [j]))
    return ProductKernel(parts)

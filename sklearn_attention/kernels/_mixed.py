"""One kernel for numbers and categories side by side."""

from ._categorical import AitchisonAitken, LiRacine
from ._product_kernel import ProductKernel


def mixed_kernel(kernel, columns, lam):
    """Product of a kernel on the numeric columns and one for each categorical column.

    Parameters
    ----------
    kernel : Kernel
        Compares the numeric columns, all at once.
    columns : sklearn_attention.Columns
        What each column is.
    lam : array-like of shape (n_features,)
        The lambda of each categorical column; ignored for numbers.

    Returns
    -------
    kernel : Kernel
        A :class:`ProductKernel` with :class:`AitchisonAitken` on unordered and
        :class:`LiRacine` on ordered columns, under the names ``category0``, ``category1``,
        by position; `kernel` itself where all columns are numbers.

    Examples
    --------
    >>> from sklearn_attention import Columns
    >>> from sklearn_attention.kernels import Gaussian, mixed_kernel
    >>> columns = Columns(("numeric", "unordered"), (None, ("blue", "green", "red")))
    >>> mixed_kernel(Gaussian(), columns, [0, 0.1])
    ProductKernel(kernels=[('numbers', Gaussian(), [0]),
                           ('category1', AitchisonAitken(lam=0.1, n_levels=3), [1])])
    """
    if not columns.categorical:
        return kernel
    parts = [("numbers", kernel, columns.numeric)] if columns.numeric else []
    for j in columns.categorical:
        if columns.kinds[j] == "unordered":
            part = AitchisonAitken(n_levels=max(2, columns.n_levels[j]), lam=float(lam[j]))
        else:
            part = LiRacine(lam=float(lam[j]))
        parts.append((f"category{j}", part, [j]))
    return ProductKernel(parts)

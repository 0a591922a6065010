"""Kernels that come from elsewhere: a function, or scikit-learn's Gaussian processes."""

import numpy as np
from array_api_compat import array_namespace, is_torch_array

from ._base import Kernel, log


class FunctionKernel(Kernel):
    """Any function of queries and keys as a kernel.

    Passing the function itself as ``kernel=function`` is the same. Computed on the CPU
    through NumPy, and not differentiable by torch.

    Parameters
    ----------
    function : callable
        ``function(queries, keys)`` receives arrays of shape (n_queries, n_features) and
        (n_keys, n_features), in units of the bandwidth, and returns the kernel's values
        as a finite array of shape (n_queries, n_keys). It is called on blocks of rows, so
        a value may depend on its own query and key alone.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import laplacian_kernel
    >>> from sklearn_attention.kernels import FunctionKernel
    >>> FunctionKernel(laplacian_kernel)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    signed = None  # a function may return anything

    def __init__(self, function):
        self.function = function

    def _values(self, queries, keys):
        if getattr(queries, "requires_grad", False) or getattr(keys, "requires_grad", False):
            raise TypeError(
                f"kernel={self.function!r} is computed by NumPy and has no gradient: use "
                "one of the kernels of sklearn_attention.kernels where a gradient is needed."
            )
        xp = array_namespace(queries, keys)
        arrays = [_to_numpy(X) for X in (queries, keys)]
        values = np.asarray(self.function(*arrays))
        expected = (len(queries), len(keys))
        if values.shape != expected:
            raise ValueError(
                f"kernel={self.function!r} returned shape {values.shape} for "
                f"{expected[0]} queries and {expected[1]} keys: it must return one value "
                f"for each pair, shape {expected}."
            )
        if not np.isfinite(values).all():
            raise ValueError(
                f"kernel={self.function!r} returned NaN or infinity: it must return a "
                "finite value for each pair of query and key."
            )
        return xp.asarray(values, dtype=queries.dtype, device=queries.device)

    def _log_values(self, queries, keys):
        values = self._values(queries, keys)
        if (values < 0).any():
            raise ValueError(
                f"kernel={self.function!r} returned negative values and so has no logarithm: "
                "it must be positive here."
            )
        return log(values)


def _to_numpy(X):
    return X.cpu().numpy() if is_torch_array(X) else X

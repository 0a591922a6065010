"""What every kernel is: a function of a query and a key, with its parameters."""

import math
import numbers

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from sklearn.base import BaseEstimator


class Kernel(BaseEstimator):
    r"""Base class of all kernels: :math:`K(q, k)`, how similar a query is to a key.

    Calling a kernel compares every query with every key. It runs on NumPy arrays and on
    torch tensors alike, with gradients on the latter. Kernels see their inputs in units
    of the bandwidth, that is, after :meth:`rescale`.

    Kernels are added and multiplied with ``+`` and ``*``, compared with ``==``, cloned by
    :func:`sklearn.base.clone`, and tuned through ``get_params`` and ``set_params``, so a
    grid such as ``{"kernel": [Periodic()], "kernel__period": [1, 2]}`` works.

    Attributes
    ----------
    signed : bool or None
        Whether the kernel takes negative values; None where nobody can know beforehand.
    stationary : bool
        Whether the kernel depends on the difference of query and key alone.
    support : float
        Distance, in bandwidths, beyond which the kernel is exactly 0.
    decreasing : bool
        Whether the kernel falls with the distance, at the scale of the bandwidth, so that
        a smaller bandwidth means a smaller neighbourhood.
    scaled : bool
        Whether the bandwidth divides the features. False for categories.
    positive_definite : bool
        Whether the matrix of the kernel between any rows, of any number of features, has no
        negative eigenvalues; False also where nobody has shown it.
    polynomial : tuple of float or None
        Coefficients :math:`c_k` with :math:`K(u) = \sum_k c_k |u|^k` for :math:`|u| \le 1`,
        and 0 beyond, if such is the kernel along one feature.
    exponential_polynomial : (float, tuple of float) or None
        Rate and coefficients with :math:`K(u) = e^{-\text{rate}\, |u|} \sum_k c_k |u|^k`, if
        such is the kernel along one feature.
    analytic_strip : float
        Distance from the real line to the nearest singularity of :math:`K(u)`, along one
        feature, in the complex plane; 0 if it is not analytic, or nobody has shown it.
    """

    signed = False
    stationary = False
    support = math.inf
    decreasing = False
    scaled = True
    positive_definite = False
    polynomial = None
    exponential_polynomial = None
    analytic_strip = 0.0

    def __call__(self, queries, keys=None):
        """Compare every query with every key.

        Parameters
        ----------
        queries : array or tensor of shape (n_queries, n_features)
            In units of the bandwidth.
        keys : array or tensor of shape (n_keys, n_features), default=None
            In units of the bandwidth. None compares the queries with themselves.

        Returns
        -------
        values : array or tensor of shape (n_queries, n_keys)
            The kernel's value for each pair.

        Raises
        ------
        ValueError
            If the inputs are not two-dimensional or differ in their number of features.
        """
        return self._values(*self._check_pair(queries, keys))

    def log(self, queries, keys=None):
        """Logarithm of the kernel for every pair; -inf where the kernel is 0.

        Parameters
        ----------
        queries, keys : array or tensor
            As for calling the kernel.

        Returns
        -------
        log_values : array or tensor of shape (n_queries, n_keys)
            Accurate far beyond the distance at which the kernel itself underflows.

        Raises
        ------
        ValueError
            If the kernel takes negative values.
        """
        if self.signed:
            raise ValueError(
                f"kernel={self!r} takes negative values and so has no logarithm: choose a "
                "kernel that is positive, such as 'gaussian'."
            )
        return self._log_values(*self._check_pair(queries, keys))

    def rescale(self, X, bandwidth):
        """Express features in units of the bandwidth: ``X / bandwidth``.

        Parameters
        ----------
        X : array or tensor of shape (n_samples, n_features)
            Queries or keys.
        bandwidth : float or array of shape (n_features,)
            In the features' own units.

        Returns
        -------
        X_scaled : array or tensor of shape (n_samples, n_features)
            What the kernel is to be called with.
        """
        X = as_floats(X)
        _, categories = self._column_kinds(X.shape[1])
        if len(categories) == X.shape[1]:
            return X
        if isinstance(bandwidth, numbers.Real):
            scaled = X / float(bandwidth)
        else:
            xp = array_namespace(X)
            if not is_torch_array(bandwidth):
                bandwidth = xp.asarray(bandwidth, dtype=X.dtype, device=X.device)
            scaled = X / bandwidth
        codes = sorted(categories)
        if codes:
            scaled[:, codes] = X[:, codes]
        return scaled

    def as_dot_product(self, queries, keys):
        """Write the log-kernel as a dot product, if it is one; else return None.

        Parameters
        ----------
        queries, keys : array or tensor
            In units of the bandwidth.

        Returns
        -------
        form : DotProductForm or None
            What scaled dot-product attention needs to compute this kernel's averages.
        """
        return None

    def radial_form(self, n_features):
        """Split off a kernel of the distance, if the bandwidth acts through one alone.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        form : RadialForm or None
            A kernel of the distance in some of the columns, times one that no bandwidth
            divides in the others.
        """
        return None

    def numeric_columns(self, n_features):
        """Positions of the columns that are compared as numbers.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        columns : list of int
        """
        return sorted(self._column_kinds(n_features)[0])

    @property
    def spread(self):
        """Root of the kernel's second moment in bandwidths, its natural width; 1 if unknown."""
        return 1.0

    def _values(self, queries, keys):
        xp = array_namespace(queries, keys)
        return xp.exp(self._log_values(queries, keys))

    def _log_values(self, queries, keys):
        return log(self._values(queries, keys))

    def _column_kinds(self, n_features):
        """Columns compared as numbers and columns compared as categories, as two sets."""
        columns = set(range(n_features))
        return (columns, set()) if self.scaled else (set(), columns)

    def _check_pair(self, queries, keys):
        queries = as_floats(queries)
        keys = queries if keys is None else as_floats(keys)
        for name, X in (("queries", queries), ("keys", keys)):
            if X.ndim != 2 or X.shape[1] == 0:
                raise ValueError(
                    f"{name} must have shape (n_{name}, n_features), got {tuple(X.shape)}: "
                    "use reshape(-1, 1) for a single feature."
                )
        if queries.shape[1] != keys.shape[1]:
            raise ValueError(
                f"queries have {queries.shape[1]} features but keys have {keys.shape[1]}: "
                "give both the same columns."
            )
        self._column_kinds(queries.shape[1])  # refuses a column that is of both kinds
        xp = array_namespace(queries, keys)
        dtype = xp.result_type(queries, keys)
        return xp.astype(queries, dtype, copy=False), xp.astype(keys, dtype, copy=False)

    def __add__(self, other):
        from ._composition import Sum

        return Sum(self, other)

    def __radd__(self, other):
        from ._composition import Sum

        return Sum(other, self)

    def __mul__(self, other):
        from ._composition import Product

        return Product(self, other)

    def __rmul__(self, other):
        from ._composition import Product

        return Product(other, self)

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self):
        # Equal kernels share their class; parameters may be arrays and mutable.
        return hash(type(self))


def log(values):
    """Natural logarithm with log 0 = -inf, without NumPy's warning or a gradient of NaN."""
    xp = array_namespace(values)
    if getattr(values, "requires_grad", False):
        positive = values > 0
        return xp.where(positive, xp.log(xp.where(positive, values, 1.0)), -math.inf)
    with np.errstate(divide="ignore"):
        return xp.log(values)


def as_floats(X):
    """A float array or tensor; lists, frames and whole numbers become float64."""
    X = X if is_torch_array(X) else np.asarray(X)
    xp = array_namespace(X)
    return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)


def _same(mine, theirs):
    """Whether two parameters are equal: numbers, arrays, kernels, and lists of these."""
    if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    return np.array_equal(mine, theirs)


def combined_sign(parts):
    """``signed`` of kernels added or multiplied: True, else unknown (None), else False."""
    signs = {part.signed for part in parts}
    return True if True in signs else None if None in signs else False


def combined_columns(kernel, kinds):
    """Columns of several kernels together: numbers and categories, which must not mix."""
    numeric, categories = (set().union(*columns) for columns in zip(*kinds, strict=True))
    if numeric & categories:
        raise ValueError(
            f"{kernel!r} compares the same columns both as numbers and as categories: "
            "use ProductKernel to say which columns each kernel is for."
        )
    return numeric, categories

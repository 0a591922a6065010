"""Kernels: the base class, sums and products, and kernels by name.

A kernel compares queries (n_queries, n_features) with keys (n_keys, n_features), both divided
by the bandwidth, and returns a number for each pair, (n_queries, n_keys). Formulas run on NumPy
arrays and on torch tensors: `xp` is the module of either, from `array_namespace`. Columns are
compared as numbers, or as codes of categories, which the bandwidth does not divide.
"""

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from sklearn.base import BaseEstimator

from .._validation import check_choice, check_in_interval
from ._numerics import log

# Classes by name. A class registers itself: ``class Linear(Kernel, name="linear")``.
KERNELS = {}
# Names that other libraries and books use, by our names. Error messages suggest ours.
_OTHER_NAMES = {
    "gaussian": "rbf gauss gau normal squared_exponential exponentiated_quadratic",
    "boxcar": "tophat uniform uni box rectangular rectangle",
    "triangular": "triangle tri",
    "epanechnikov": "parabolic epa",
    "biweight": "quartic bisquare biw",
    "cosine": "cos optcosine",
    "sigmoid": "sech hyperbolic_secant",
    "laplacian": "laplace",
    "exponential": "exp matern12 ornstein_uhlenbeck",
    "matern32": "matern",
    "matern52": "matern",
    "rational_quadratic": "rq cauchy",
    "periodic": "exp_sine_squared",
    "scaled_dot_product": "dot_product dot softmax attention",
    "polynomial": "poly",
    "positive_features": "favor performer",
    "trigonometric_features": "rff fourier random_fourier",
}


class Kernel(BaseEstimator):
    r"""Base class of all kernels: :math:`K(q, k)`, the similarity of a query to a key.

    Calling a kernel with queries and keys returns the matrix of their similarities: a NumPy
    array, or a torch tensor with gradients. Inputs have to be divided by the bandwidth first,
    by :meth:`rescale`.

    For a formula of your own pass a function of queries and keys, or write a class: of the
    distance a :class:`RadialKernel`, of all else one with ``_log_values(queries, keys)`` or
    ``_values(queries, keys)``, which return an array or a tensor (n_queries, n_keys).

    Kernels are added and multiplied with ``+`` and ``*``, compared with ``==``, cloned by
    :func:`sklearn.base.clone`, and tuned through ``get_params`` and ``set_params``, so a
    grid such as ``{"kernel": [Periodic()], "kernel__period": [1, 2]}`` works.

    Attributes
    ----------
    signed : bool or None
        Whether the kernel takes negative values; None if unknown.
    stationary : bool
        Whether the kernel depends only on the difference of query and key.
    support : float
        Distance, in bandwidths, beyond which the kernel is exactly 0.
    compact : bool
        Whether the kernel is exactly 0 beyond some distance in the columns that the bandwidth
        divides.
    decreasing : bool
        Whether the kernel falls with the distance, at the scale of the bandwidth, so that
        a smaller bandwidth means a smaller neighbourhood.
    scaled : bool
        Whether the bandwidth divides the features. False for categories.
    positive_definite : bool
        Whether the kernel's matrix between any rows, of any number of features, has no
        negative eigenvalue; False also if unknown.
    polynomial : tuple of float or None
        Coefficients :math:`c_k` if the kernel along one feature is
        :math:`K(u) = \sum_k c_k |u|^k` for :math:`|u| \le 1`, and 0 beyond; otherwise None.
    exponential_polynomial : (float, tuple of float) or None
        Rate and coefficients if the kernel along one feature is
        :math:`K(u) = e^{-\text{rate}\, |u|} \sum_k c_k |u|^k`; otherwise None.
    analytic_strip : float
        Distance from the real line to the nearest singularity of :math:`K(u)`, along one
        feature, in the complex plane; 0 if the kernel is not analytic, or that is unknown.
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

    def __call__(self, queries, keys=None) -> Any:
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

    def log(self, queries, keys=None) -> Any:
        """Compute the logarithm of the kernel for every pair; it is -inf where the kernel is 0.

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

    def rescale(self, X, bandwidth) -> Any:
        """Express features in units of the bandwidth: ``X / bandwidth``.

        Parameters
        ----------
        X : array or tensor of shape (n_samples, n_features)
            Queries or keys.
        bandwidth : float or array of shape (n_features,)
            The bandwidth of all features, or of each, in the features' own units.

        Returns
        -------
        X_scaled : array or tensor of shape (n_samples, n_features)
            Input of the kernel.
        """
        X = as_floats(X)
        _, categorical = self._column_kinds(X.shape[1])
        if len(categorical) == X.shape[1]:
            return X
        if isinstance(bandwidth, numbers.Real):
            scaled = X / float(bandwidth)
        else:
            xp = array_namespace(X)
            if not is_torch_array(bandwidth):
                bandwidth = xp.asarray(bandwidth, dtype=X.dtype, device=X.device)
            scaled = X / bandwidth
        for column in categorical:
            scaled[:, column] = X[:, column]  # codes stay as they are
        return scaled

    def as_dot_product(self, queries, keys) -> Any:
        """Write the log-kernel as a dot product, if it is one; else return None.

        Parameters
        ----------
        queries, keys : array or tensor
            In units of the bandwidth.

        Returns
        -------
        form : DotProductForm or None
            Terms from which scaled dot-product attention computes this kernel's averages.
        """
        return None

    def radial_form(self, n_features) -> Any:
        """Split off a kernel of the distance, if the bandwidth divides only that.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        form : RadialForm or None
            A kernel of the distance in some of the columns, times a kernel of the other
            columns, which the bandwidth does not divide.
        """
        return None

    def radial_factors(self, n_features) -> Any:
        """Split off the factors of a product that are kernels of the distance.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        factors : list of (RadialKernel, list of int)
            Kernels, and the columns in which each measures the distance.
        remainder : Kernel or None
            The product of all other factors, as a kernel of all columns; None if there are
            none.
        """
        form = self.radial_form(n_features)
        if form is None:
            return [], self
        return [(form.kernel, form.columns)], form.categorical

    def numeric_columns(self, n_features) -> list[int]:
        """Return the positions of the columns that are compared as numbers.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        columns : list of int
        """
        return sorted(self._column_kinds(n_features)[0])

    def categorical_columns(self, n_features) -> list[int]:
        """Return the positions of the columns that are compared as codes of categories.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        columns : list of int
        """
        return sorted(self._column_kinds(n_features)[1])

    @property
    def compact(self):
        return math.isfinite(self.support)

    @property
    def spread(self):
        """Root of the kernel's second moment in bandwidths, its natural width; 1 if unknown."""
        return 1.0

    def _values(self, queries, keys):
        """Evaluate the kernel; a subclass defines this method or the next one."""
        self._need_formula(Kernel, "_log_values")
        xp = array_namespace(queries, keys)
        return xp.exp(self._log_values(queries, keys))

    def _log_values(self, queries, keys):
        """Evaluate the logarithm of the kernel."""
        self._need_formula(Kernel, "_values")
        return log(self._values(queries, keys))

    def _need_formula(self, base, name):
        """Raise an error if a subclass overrides neither of two methods that call each other.

        The caller is one of the methods, and `name` that of the other one. `base` is the class
        in which each method calls the other.
        """
        if getattr(type(self), name) is getattr(base, name):
            raise NotImplementedError(
                f"{type(self).__name__} does not define log_profile(squared): make it a "
                "subclass of RadialKernel in which this method returns the logarithm of the "
                "kernel at squared distances, or pass a function f(queries, keys) as kernel."
            )

    def _column_kinds(self, n_features):
        """Return the columns compared as numbers and those compared as categories, as sets."""
        columns = set(range(n_features))
        return (columns, set()) if self.scaled else (set(), columns)

    def _check_pair(self, queries, keys):
        """Validate queries and keys, and return them as floating arrays of the same type."""
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
                f"queries have {queries.shape[1]} features but keys have {keys.shape[1]}: pass "
                "both with the same columns."
            )
        self._column_kinds(queries.shape[1])  # raises an error if a column is of both kinds
        xp = array_namespace(queries, keys)
        dtype = xp.result_type(queries, keys)
        return xp.astype(queries, dtype, copy=False), xp.astype(keys, dtype, copy=False)

    def __init_subclass__(cls, name=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if name is not None:
            KERNELS[name] = cls

    def __add__(self, kernel):
        return Sum(self, kernel)

    def __radd__(self, kernel):
        return Sum(kernel, self)

    def __mul__(self, kernel):
        return Product(self, kernel)

    def __rmul__(self, kernel):
        return Product(kernel, self)

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_equal_parameters(mine[name], theirs[name]) for name in mine)

    def __hash__(self):
        # Equal kernels share their class; parameters may be arrays and mutable.
        return hash(type(self))


class ComposedKernel(Kernel):
    """Base class of kernels that are composed of the kernels in ``_components``."""

    @property
    def signed(self):
        signs = {kernel.signed for kernel in self._components}
        return True if True in signs else None if None in signs else False

    @property
    def stationary(self):
        return all(kernel.stationary for kernel in self._components)

    @property
    def decreasing(self):
        return all(kernel.decreasing or not kernel.scaled for kernel in self._components)

    @property
    def scaled(self):
        return any(kernel.scaled for kernel in self._components)

    def _groups(self, n_features):
        """Return a pair of a kernel and its columns for each component."""
        return [(kernel, range(n_features)) for kernel in self._components]

    def _column_kinds(self, n_features):
        """Return the columns compared as numbers and those compared as categories, as sets."""
        numeric, categories = set(), set()
        for kernel, columns in self._groups(n_features):
            # These are positions among the columns of this kernel.
            numeric_positions, category_positions = kernel._column_kinds(len(columns))
            numeric |= {columns[position] for position in numeric_positions}
            categories |= {columns[position] for position in category_positions}
        if numeric & categories:
            raise ValueError(
                f"{self!r} compares the same columns both as numbers and as categories: "
                "pass a ProductKernel, which has columns for each kernel."
            )
        return numeric, categories


class _Pair(ComposedKernel):
    """Base class of the sum and the product of two kernels of the same columns."""

    def __init__(
        self, left: Kernel | str | Callable[..., Any], right: Kernel | str | Callable[..., Any]
    ) -> None:
        self.left = left
        self.right = right

    @property
    def _components(self):
        return [
            Constant(operand) if isinstance(operand, numbers.Real) else as_kernel(operand)
            for operand in (self.left, self.right)
        ]


class Sum(_Pair):
    r"""Sum of two kernels, :math:`K(q, k) = K_1(q, k) + K_2(q, k)`.

    A key has a large weight if either kernel gives it one. Usually written ``kernel1 +
    kernel2``.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The two kernels; a number stands for a constant kernel.

    Examples
    --------
    >>> from sklearn_attention.kernels import Boxcar, Triangular
    >>> (Boxcar() + Triangular())([[0.0]], [[0.5]])
    array([[1.]])
    """

    @property
    def support(self):
        return max(kernel.support for kernel in self._components)

    def _values(self, queries, keys):
        return sum(kernel._values(queries, keys) for kernel in self._components)

    def _log_values(self, queries, keys):
        # The logarithm of a sum is computed from the logarithms of both kernels.
        log_1, log_2 = (kernel._log_values(queries, keys) for kernel in self._components)
        xp = array_namespace(log_1, log_2)
        # If both kernels are 0, both logarithms are -inf, and the gradient of logaddexp would
        # be NaN.
        both_zero = xp.maximum(log_1, log_2) == -math.inf
        total = xp.logaddexp(xp.where(both_zero, 0.0, log_1), log_2)
        return xp.where(both_zero, -math.inf, total)


class Product(_Pair):
    r"""Product of two kernels, :math:`K(q, k) = K_1(q, k) K_2(q, k)`.

    A key has a large weight only if both kernels give it one. Usually written ``kernel1 *
    kernel2``. If each kernel has columns of its own, use :class:`ProductKernel`.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The two kernels; a number stands for a constant kernel.

    Examples
    --------
    >>> from sklearn_attention.kernels import Boxcar, Triangular
    >>> (Boxcar() * Triangular())([[0.0]], [[0.5]])
    array([[0.25]])
    """

    @property
    def support(self):
        return min(kernel.support for kernel in self._components)

    def _values(self, queries, keys):
        return math.prod(kernel._values(queries, keys) for kernel in self._components)

    def _log_values(self, queries, keys):
        return sum(kernel._log_values(queries, keys) for kernel in self._components)


class Constant(Kernel):
    r"""Constant kernel, :math:`K(q, k) = \text{value}`, which gives all keys the same weight.

    By itself it makes the plain mean; added to another kernel it pulls averages to the mean of
    all values. A number in a sum or a product of kernels becomes one.

    Parameters
    ----------
    value : float, default=1.0
        The value; a negative one makes the kernel signed.

    Examples
    --------
    >>> from sklearn_attention.kernels import Boxcar
    >>> (Boxcar() + 0.1)([[0.0]], [[0.5], [3.0]])
    array([[0.6, 0.1]])
    """

    stationary = True
    scaled = False

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    @property
    def _checked_value(self):
        return check_in_interval("value", self.value, -math.inf, math.inf)

    @property
    def signed(self):
        return self._checked_value < 0

    def _column_kinds(self, n_features):
        return set(), set()  # a constant may be combined with kernels of either kind

    def _values(self, queries, keys):
        xp = array_namespace(queries, keys)
        shape = (queries.shape[0], keys.shape[0])
        return xp.full(shape, self._checked_value, dtype=queries.dtype, device=queries.device)


class FunctionKernel(Kernel):
    """Kernel that calls a function of your own.

    Passing the function itself, ``kernel=function``, does the same. The function runs in NumPy
    on the CPU, so that it cannot be used where torch needs gradients.

    Parameters
    ----------
    function : callable
        ``function(queries, keys)`` receives arrays of shape (n_queries, n_features) and
        (n_keys, n_features), in units of the bandwidth, and returns the kernel's values
        as a finite array of shape (n_queries, n_keys). It is called on blocks of rows, so
        a value may depend only on its own query and key.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import laplacian_kernel
    >>> from sklearn_attention.kernels import FunctionKernel
    >>> FunctionKernel(laplacian_kernel)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    signed = None  # a function may return anything

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def _values(self, queries, keys):
        if getattr(queries, "requires_grad", False) or getattr(keys, "requires_grad", False):
            raise TypeError(
                f"kernel={self.function!r} is computed by NumPy and has no gradient: use "
                "one of the kernels of sklearn_attention.kernels where a gradient is needed."
            )
        xp = array_namespace(queries, keys)
        # The function is called with NumPy arrays.
        arrays = [X.cpu().numpy() if is_torch_array(X) else X for X in (queries, keys)]
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


def as_kernel(kernel):
    """Return the :class:`Kernel` that a name, a callable or a kernel of scikit-learn means.

    Callables ``f(X, Y) -> (n, m)`` and scikit-learn's kernels become :class:`FunctionKernel`.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return KERNELS[check_choice("kernel", kernel, KERNELS, _OTHER_NAMES)]()
    is_class = isinstance(kernel, type)
    if callable(kernel) and not is_class:
        return FunctionKernel(kernel)
    remedy = f"create it, as in {kernel.__name__}()" if is_class else "pass one of these"
    raise TypeError(
        f"kernel={kernel!r} must be a name, a Kernel, a function f(X, Y), or a kernel of "
        f"sklearn.gaussian_process: {remedy}."
    )


def _equal_parameters(mine, theirs):
    """Return True if two parameters are equal: numbers, arrays, kernels, or lists of these."""
    if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(mine) == len(theirs) and all(map(_equal_parameters, mine, theirs))
    return np.array_equal(mine, theirs)


def as_floats(X):
    """Convert X to a floating array or tensor; lists, frames and integers become float64."""
    X = X if is_torch_array(X) else np.asarray(X)
    xp = array_namespace(X)
    return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)

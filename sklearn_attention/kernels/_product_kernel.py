"""Different kernels for different columns."""

import itertools
import math
from typing import Any, Self

from .._spread import deviation_of
from .._validation import check_columns
from ._base import ComposedKernel, Kernel, as_kernel
from ._categorical import AitchisonAitken, LiRacine
from ._radial import RadialForm
from ._unbounded import Gaussian, GaussianProduct


class ProductKernel(ComposedKernel):
    r"""Product of kernels, each on its own columns.

    Take it if columns need different kernels, such as a periodic one for hours and a Gaussian
    for temperatures.

    .. math:: K(q, k) = \prod_j K_j(q_{C_j}, k_{C_j})

    For mixed data: one kernel for numbers, another for categories. A single kernel compares
    each column on its own: the product form of a multivariate smoothing kernel, where
    :class:`RadialKernel` is the radial form.

    Parameters
    ----------
    kernels : Kernel, str, or list of (name, kernel, columns)
        Either one kernel for every column, or for each group of columns a name, a kernel
        and the columns' positions (an int, a list of ints or a slice), in the manner of
        :class:`sklearn.compose.ColumnTransformer`. The names give access to the kernels'
        parameters, as in ``set_params(sex__lam=0.1)``.

    Notes
    -----
    The bandwidth divides the columns of kernels for numbers, and not the codes of categorical
    kernels. Columns that are not named are not compared.

    Examples
    --------
    >>> from sklearn_attention.kernels import AitchisonAitken, ProductKernel
    >>> kernel = ProductKernel([
    ...     ("age", "epanechnikov", [0]),
    ...     ("sex", AitchisonAitken(n_levels=2, lam=0.2), [1]),
    ... ])
    >>> kernel([[0.0, 0]], [[0.0, 0], [0.0, 1], [2.0, 0]])
    array([[0.6 , 0.15, 0.  ]])
    >>> kernel.set_params(sex__lam=0.5)([[0.0, 0]], [[0.0, 1]])
    array([[0.375]])
    """

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this kernel and, if ``deep``, of the named kernels within."""
        if not deep or not self._is_list:
            return super().get_params(deep=deep)
        params = {"kernels": self.kernels}
        for name, kernel, _ in self._named:
            params[name] = kernel
            inner = kernel.get_params() if isinstance(kernel, Kernel) else {}
            params.update({f"{name}__{key}": value for key, value in inner.items()})
        return params

    def set_params(self, **params) -> Self:
        """Set ``kernels``, a name to a new kernel, or ``name__parameter`` to a value."""
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        if self._is_list:
            self.kernels = [(name, params.pop(name, old), of) for name, old, of in self._named]
        return super().set_params(**params)

    @property
    def _is_list(self):
        return isinstance(self.kernels, list | tuple)

    @property
    def _named(self):
        """The list of (name, kernel, columns), its names checked."""
        try:
            names = [name for name, _, _ in self.kernels]
        except (TypeError, ValueError):
            names = []
        valid = all(
            isinstance(name, str) and "__" not in name and name != "kernels" for name in names
        )
        if not names or not valid or len(set(names)) < len(names):
            raise ValueError(
                f"kernels={self.kernels!r} is not valid: pass one kernel, or a list of (name, "
                "kernel, columns) whose names differ, are not 'kernels' and contain no '__'."
            )
        return self.kernels

    @property
    def _parts(self):
        kernels = [kernel for _, kernel, _ in self._named] if self._is_list else [self.kernels]
        return [as_kernel(kernel) for kernel in kernels]

    def _groups(self, n_features):
        """One (kernel, columns) for every group of columns."""
        if not self._is_list:
            return [(part, [j]) for part in self._parts for j in range(n_features)]
        columns = [check_columns(name, given, n_features) for name, _, given in self._named]
        return list(zip(self._parts, columns, strict=True))

    def _flat_groups(self, n_features):
        """The same, with the groups of products within in their place."""
        for kernel, columns in self._groups(n_features):
            inner = [(kernel, range(len(columns)))]
            if isinstance(kernel, ProductKernel):
                inner = kernel._flat_groups(len(columns))
            for part, positions in inner:
                yield part, [columns[position] for position in positions]

    def _radial_groups(self, n_features):
        """Kernels of the distance in groups that are a product of such; product of others."""
        radial, others = [], []
        for kernel, columns in self._flat_groups(n_features):
            factors, rest = kernel.radial_factors(len(columns))
            if rest is not None:
                others.append((kernel, columns))
            else:
                radial += [
                    (factor, [columns[i] for i in members]) for factor, members in factors
                ]
        named = [(f"part{i}", *group) for i, group in enumerate(others)]
        return radial, ProductKernel(named) if named else None

    def radial_form(self, n_features) -> RadialForm | None:
        radial, rest = self._radial_groups(n_features)
        if not radial or (rest is not None and rest.scaled):
            return None
        kernel, columns = radial[0]
        if len(radial) > 1:
            columns = sorted(itertools.chain.from_iterable(of for _, of in radial))
            gaussian = all(type(kernel) is Gaussian for kernel, _ in radial)
            if not gaussian or len(set(columns)) < len(columns):
                return None
            kernel = GaussianProduct(len(radial))
        return RadialForm(kernel, columns, rest)

    def radial_factors(self, n_features) -> Any:
        whole = self.radial_form(n_features) is not None
        return super().radial_factors(n_features) if whole else self._radial_groups(n_features)

    def as_dot_product(self, queries, keys) -> Any:
        form = self.radial_form(queries.shape[1])
        if form is None or form.rest is not None:
            return None
        return form.kernel.as_dot_product(queries[:, form.columns], keys[:, form.columns])

    @property
    def compact(self):
        scaled = [part for part in self._parts if part.scaled]
        return bool(scaled) and all(part.compact for part in scaled)

    @property
    def spread(self):
        scaled = [part for part in self._parts if part.scaled]
        return scaled[0].spread if len(scaled) == 1 else 1.0

    def _values(self, queries, keys):
        groups = self._groups(queries.shape[1])
        return math.prod(part._values(queries[:, of], keys[:, of]) for part, of in groups)

    def _log_values(self, queries, keys):
        groups = self._groups(queries.shape[1])
        return sum(part._log_values(queries[:, of], keys[:, of]) for part, of in groups)


def compared_columns(columns, spread, *kernels):
    """The columns, without numbers that do not vary: they would count as features.

    Unless nothing is left, or a kernel is made for columns in their places.
    """
    if spread is None:
        return columns
    varies = deviation_of(spread) > 0
    left = columns.is_numeric & varies
    listed = any(isinstance(part, ProductKernel) and part._is_list for part in kernels)
    if listed or not (left.any() or columns.categorical):
        return columns
    alike = [p.stationary or p.radial_factors(len(varies))[1] is None for p in kernels]
    if not all(alike):
        return columns
    return columns.without(columns.is_numeric & ~varies)


def mixed_kernel(kernel, columns, lam):
    """Product of a kernel on the numeric columns and one for each categorical column.

    The latter are ``category0``, ``category1``, by position; `kernel` itself of numbers alone.
    """
    if len(columns.numeric) == len(columns.kinds):
        return kernel
    parts = [("numbers", kernel, columns.numeric)] if columns.numeric else []
    for j in columns.categorical:
        if columns.kinds[j] == "unordered":
            part = AitchisonAitken(n_levels=max(2, columns.n_levels[j]), lam=float(lam[j]))
        else:
            part = LiRacine(lam=float(lam[j]))
        parts.append((f"category{j}", part, [j]))
    return ProductKernel(parts)

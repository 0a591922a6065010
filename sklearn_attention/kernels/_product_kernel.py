"""Different kernels for different columns.

A group is a pair of a kernel and its columns, a list of positions. A radial kernel is a
function of the distance between rows in its columns.
"""

import itertools
import math
from typing import Any, Self

from .._column_stats import std_above_rounding
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
        """Return the parameters of this kernel and, if ``deep``, of the named kernels in it."""
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
            new = {name: params.pop(name, kernel) for name, kernel, _ in self._named}
            self.kernels = [(name, new[name], columns) for name, _, columns in self._named]
        return super().set_params(**params)

    @property
    def _is_list(self):
        return isinstance(self.kernels, list | tuple)

    @property
    def _named(self):
        """The parameter `kernels`; its names are checked, which prefix nested parameters."""
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
    def _components(self):
        kernels = [kernel for _, kernel, _ in self._named] if self._is_list else [self.kernels]
        return [as_kernel(kernel) for kernel in kernels]

    def _groups(self, n_features):
        """Return a pair of a kernel and its columns for each group of columns."""
        if not self._is_list:
            return [(kernel, [j]) for kernel in self._components for j in range(n_features)]
        groups = [check_columns(name, columns, n_features) for name, _, columns in self._named]
        return list(zip(self._components, groups, strict=True))

    def _flat_groups(self, n_features):
        """Yield the groups, with those of a nested product in the place of that product."""
        for kernel, columns in self._groups(n_features):
            inner = [(kernel, range(len(columns)))]
            if isinstance(kernel, ProductKernel):
                inner = kernel._flat_groups(len(columns))
            for component, positions in inner:
                yield component, [columns[position] for position in positions]

    def _radial_groups(self, n_features):
        """Separate the groups whose kernels are products of radial kernels from all others.

        Returns a list of groups of these radial kernels, and the product of the kernels of all
        other groups, or None.
        """
        radial, not_radial = [], []
        for kernel, columns in self._flat_groups(n_features):
            factors, remainder = kernel.radial_factors(len(columns))
            if remainder is not None:
                not_radial.append((kernel, columns))
                continue
            for factor, positions in factors:  # positions are those among `columns`
                radial.append((factor, [columns[position] for position in positions]))
        named = [(f"part{i}", *group) for i, group in enumerate(not_radial)]
        return radial, ProductKernel(named) if named else None

    def radial_form(self, n_features) -> RadialForm | None:
        # The bandwidth must divide only one distance: that of one radial kernel, or of several
        # Gaussians.
        radial, remainder = self._radial_groups(n_features)
        if not radial or (remainder is not None and remainder.scaled):
            return None
        kernel, columns = radial[0]
        if len(radial) > 1:
            # Only a product of Gaussians of different columns depends on one distance.
            columns = sorted(itertools.chain.from_iterable(group for _, group in radial))
            all_gaussian = all(type(factor) is Gaussian for factor, _ in radial)
            if not all_gaussian or len(set(columns)) < len(columns):
                return None
            kernel = GaussianProduct(len(radial))
        return RadialForm(kernel, columns, remainder)

    def radial_factors(self, n_features) -> Any:
        if self.radial_form(n_features) is not None:
            return super().radial_factors(n_features)
        return self._radial_groups(n_features)

    def as_dot_product(self, queries, keys) -> Any:
        form = self.radial_form(queries.shape[1])
        if form is None or form.categorical is not None:
            return None
        return form.kernel.as_dot_product(queries[:, form.columns], keys[:, form.columns])

    @property
    def compact(self):
        scaled = [kernel for kernel in self._components if kernel.scaled]
        return bool(scaled) and all(kernel.compact for kernel in scaled)

    @property
    def spread(self):
        scaled = [kernel for kernel in self._components if kernel.scaled]
        return scaled[0].spread if len(scaled) == 1 else 1.0

    def _values(self, queries, keys):
        groups = self._groups(queries.shape[1])
        return math.prod(kernel._values(queries[:, j], keys[:, j]) for kernel, j in groups)

    def _log_values(self, queries, keys):
        groups = self._groups(queries.shape[1])
        return sum(kernel._log_values(queries[:, j], keys[:, j]) for kernel, j in groups)


def compared_columns(columns, stats, *kernels):
    """Mark numeric columns that do not vary as constant, so that they do not count as features.

    `columns` is a Columns, and `stats` the ColumnStats of the rows, or None if they are
    unknown. Nothing is marked if no other column would be left. Nothing is marked either if a
    kernel lists the positions of columns, or depends on more than differences of rows, since it
    would change without a constant column.
    """
    if stats is None:
        return columns
    varies = std_above_rounding(stats) > 0
    has_other_columns = (columns.is_numeric & varies).any() or columns.categorical
    have_positions = any(isinstance(k, ProductKernel) and k._is_list for k in kernels)
    if not has_other_columns or have_positions:
        return columns
    # Radial kernels and products of these are functions of differences, too.
    depend_on_differences = [
        kernel.stationary or kernel.radial_factors(len(varies))[1] is None for kernel in kernels
    ]
    if not all(depend_on_differences):
        return columns
    return columns.without(columns.is_numeric & ~varies)


def mixed_kernel(kernel, columns, lam):
    """Multiply a kernel of the numeric columns by one for each categorical column.

    `columns` is a Columns, and `lam` (n_columns,) has the lambda of each category. The kernels
    of categories are named ``category0``, ``category1``, ..., after their columns. If all
    columns are numeric, `kernel` itself is returned.
    """
    if len(columns.numeric) == len(columns.kinds):
        return kernel
    groups = [("numbers", kernel, columns.numeric)] if columns.numeric else []
    for j in columns.categorical:
        if columns.kinds[j] == "unordered":
            n_levels = max(2, columns.n_levels[j])
            categorical = AitchisonAitken(n_levels=n_levels, lam=float(lam[j]))
        else:
            categorical = LiRacine(lam=float(lam[j]))
        groups.append((f"category{j}", categorical, [j]))
    return ProductKernel(groups)

"""Different kernels for different columns."""

from .._validation import check_columns
from ._base import Kernel, combined_columns, combined_sign
from ._radial import RadialForm


class ProductKernel(Kernel):
    r"""Product of kernels, each on its own columns.

    .. math:: K(q, k) = \prod_j K_j(q_{C_j}, k_{C_j})

    For mixed data: a kernel for numbers here, one for categories there. With a single
    kernel, that kernel compares each column on its own: the product form of a
    multivariate smoothing kernel, where :class:`RadialKernel` is the radial form.

    Parameters
    ----------
    kernels : Kernel, str, or list of (name, kernel, columns)
        Either one kernel for every column, or for each group of columns a name, a kernel
        and the columns' positions (an int, a list of ints or a slice), in the manner of
        :class:`sklearn.compose.ColumnTransformer`. The names give access to the kernels'
        parameters, as in ``set_params(sex__lam=0.1)``.

    Notes
    -----
    The bandwidth divides the columns of kernels for numbers and leaves the codes of
    categorical kernels alone. Columns that are not named are not compared.

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

    def __init__(self, kernels):
        self.kernels = kernels

    def get_params(self, deep=True):
        """Parameters of this kernel and, if ``deep``, of the named kernels within.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add ``name`` and ``name__parameter`` for every named kernel.

        Returns
        -------
        params : dict
        """
        if not deep or not isinstance(self.kernels, (list, tuple)):
            return super().get_params(deep=deep)
        params = {"kernels": self.kernels}
        for name, kernel, _ in self._named:
            params[name] = kernel
            if isinstance(kernel, Kernel):
                inner = kernel.get_params(deep=True)
                params.update({f"{name}__{key}": value for key, value in inner.items()})
        return params

    def set_params(self, **params):
        """Set parameters of this kernel, or of the kernels within by their names.

        Parameters
        ----------
        **params : dict
            ``kernels``, a name with a new kernel, or ``name__parameter`` with a value.

        Returns
        -------
        self : ProductKernel
        """
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        if isinstance(self.kernels, (list, tuple)):
            self.kernels = [
                (name, params.pop(name, kernel), columns)
                for name, kernel, columns in self._named
            ]
        super().set_params(**params)
        return self

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

    def _groups(self, n_features):
        """One (kernel, columns) for every group of columns."""
        from ._registry import as_kernel

        if not isinstance(self.kernels, (list, tuple)):
            kernel = as_kernel(self.kernels)
            return [(kernel, [j]) for j in range(n_features)]
        return [
            (as_kernel(kernel), check_columns(name, columns, n_features))
            for name, kernel, columns in self._named
        ]

    @property
    def _parts(self):
        from ._registry import as_kernel

        if not isinstance(self.kernels, (list, tuple)):
            return [as_kernel(self.kernels)]
        return [as_kernel(kernel) for _, kernel, _ in self._named]

    @property
    def stationary(self):
        return all(part.stationary for part in self._parts)

    @property
    def decreasing(self):
        return all(part.decreasing or not part.scaled for part in self._parts)

    @property
    def signed(self):
        return combined_sign(self._parts)

    @property
    def scaled(self):
        return any(part.scaled for part in self._parts)

    def radial_form(self, n_features):
        groups = self._groups(n_features)
        scaled = [(kernel, columns) for kernel, columns in groups if kernel.scaled]
        if len(scaled) != 1:
            return None
        ((kernel, columns),) = scaled
        inner = kernel.radial_form(len(columns))
        if inner is None or inner.rest is not None:
            return None
        others = [
            (f"part{i}", part, positions)
            for i, (part, positions) in enumerate(groups)
            if not part.scaled
        ]
        columns = [columns[position] for position in inner.columns]
        return RadialForm(inner.kernel, columns, ProductKernel(others) if others else None)

    @property
    def spread(self):
        scaled = [part for part in self._parts if part.scaled]
        return scaled[0].spread if len(scaled) == 1 else 1.0

    def _column_kinds(self, n_features):
        kinds = []
        for kernel, columns in self._groups(n_features):
            inner = kernel._column_kinds(len(columns))
            kinds.append([{columns[position] for position in kind} for kind in inner])
        return combined_columns(self, kinds)

    def _values(self, queries, keys):
        product = 1
        for kernel, columns in self._groups(queries.shape[1]):
            product = product * kernel._values(queries[:, columns], keys[:, columns])
        return product

    def _log_values(self, queries, keys):
        total = 0
        for kernel, columns in self._groups(queries.shape[1]):
            total = total + kernel._log_values(queries[:, columns], keys[:, columns])
        return total

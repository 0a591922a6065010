"""Kernels as curves."""

from typing import Any, Self

import numpy as np

from .._validation import check_positive
from ..kernels import Kernel
from ..kernels._base import as_kernel
from ._grid import feature_names
from ._pipelines import last_step, unfit
from ._style import COLORS, Display


class KernelDisplay(Display):
    """Picture of kernels as functions of the distance between a query and a key.

    Use it to compare kernels before you choose one.

    Make one by :meth:`from_kernels` or :meth:`from_estimator`.

    Parameters
    ----------
    keys : ndarray of shape (n_keys,)
        Differences between keys and the query.
    values : dict of str to ndarray of shape (n_keys,)
        For each curve, by its name, the kernel in units of its largest value.
    xlabel : str, default="key - query"
        Label of the axis of keys, with their unit.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from sklearn_attention.inspection import KernelDisplay
    >>> display = KernelDisplay.from_kernels(["gaussian", "epanechnikov", "laplacian"])
    >>> [text.get_text() for text in display.figure_.legends[0].get_texts()]
    ['gaussian', 'epanechnikov', 'laplacian']
    """

    def __init__(self, keys: np.ndarray, values: Any, *, xlabel: str = "key - query") -> None:
        self.keys, self.values, self.xlabel = keys, values, xlabel

    @classmethod
    def from_kernels(
        cls, kernels, *, bandwidth: float = 1.0, reach: float = 3.0, query: float = 0.0, ax=None
    ) -> Self:
        """Draw kernels of one feature.

        Parameters
        ----------
        kernels : list of str or Kernel
            As for `kernel` of estimators.
        bandwidth : float, default=1.0
            Bandwidth, by which differences between keys and the query are divided.
        reach : float, default=3.0
            Largest difference to draw, in bandwidths.
        query : float, default=0.0
            The query, in bandwidths. Kernels of the distance do not depend on it.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        display : KernelDisplay
        """
        check_positive("bandwidth", bandwidth)
        check_positive("reach", reach)
        if isinstance(kernels, str | Kernel):
            raise ValueError(f"kernels={kernels!r} is not a list: pass [{kernels!r}].")
        places = np.linspace(-reach, reach, 401)
        values = {}
        for kernel in kernels:
            weights = as_kernel(kernel)(np.array([[query]]), (query + places)[:, None])[0]
            values[str(kernel)] = np.asarray(weights) / np.max(np.abs(weights))
        return cls(bandwidth * places, values).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs) -> Self:
        """Draw the kernel of a fitted smoother or density along each numeric feature.

        Parameters
        ----------
        estimator : smoother or ProductKernelDensity
            A fitted estimator with `kernel_`, `bandwidth_` and `keys_`.
        X, y : None
            Ignored; all displays have them.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : KernelDisplay
            Its differences are in standard deviations of each feature. All other features of a
            key are equal to those of the query.
        """
        estimator, _ = last_step(estimator)
        needed = "kernel_", "bandwidth_", "keys_", "columns_"
        has_several_kernels = hasattr(estimator, "members_")
        if has_several_kernels or not all(hasattr(estimator, name) for name in needed):
            remedy = (
                "a smoother such as NadarayaWatsonRegressor, or a density such as "
                "ProductKernelDensity"
            )
            raise unfit(estimator, "does not have exactly one kernel with a bandwidth", remedy)
        h, names = estimator.bandwidth_, feature_names(estimator)
        std = np.std(estimator.keys_, axis=0)
        query = np.mean(estimator.keys_, axis=0, keepdims=True) / estimator.columns_.divisors(h)
        places, values = np.linspace(-3.0, 3.0, 401), {}
        for j in estimator.columns_.numeric:
            keys = np.repeat(query, len(places), axis=0)
            keys[:, j] += places * std[j] / h[j]
            (weights,) = np.asarray(estimator.kernel_(query, keys))
            values[f"{names[j]}, h = {h[j]:.3g}"] = weights / np.max(weights)
        label = "key - query (standard deviations)"
        return cls(places, values, xlabel=label).plot(ax=ax, **kwargs)

    def _draw(self, ax):
        """Draw a curve for each kernel."""
        # Line styles distinguish more curves than there are colours.
        for number, (name, values) in enumerate(self.values.items()):
            style, color = divmod(number, len(COLORS))
            line = ("-", "--", ":", "-.")[style % 4]
            ax.plot(self.keys, values, lw=1.8, label=name, color=COLORS[color], ls=line)
        ax.set(xlabel=self.xlabel, ylabel="kernel, relative")

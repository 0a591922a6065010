"""Densities of one or two features, and conditional densities."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from .._partitions import need_all_rows
from .._validation import check_size
from ._grid import feature_names
from ._pipelines import last_step, need_both, unfit
from ._style import BLUE, GREY, INK, WEIGHTS, Display

# Shares of the distribution that contours enclose.
_SHARES = (0.95, 0.8, 0.5)
_QUANTILES = (0.1, 0.5, 0.9)


class DensityDisplay(Display):
    """Picture of an estimated density of one or two features.

    Use it for :class:`~sklearn_attention.ProductKernelDensity` and
    :class:`~sklearn_attention.ConditionalKernelDensity`.

    Make one by :meth:`from_estimator`. The density of one feature is a curve, that of two has
    contours around its regions of highest density, which contain 50, 80 and 95 % of the
    distribution. A conditional density is shaded along the feature, with its quantiles 0.1,
    0.5 and 0.9.

    Parameters
    ----------
    grid : list of ndarray
        Places along each axis.
    density : ndarray of shape (n_places,) or (n_places_y, n_places_x)
        The density at these places.
    points : ndarray of shape (n_samples, 1) or (n_samples, 2)
        Rows to mark.
    names : list of str
        Names of the axes.
    levels : ndarray or None, default=None
        Densities along the contours, in ascending order, for two features.
    quantiles : ndarray of shape (n_places_x, 3) or None, default=None
        Quantiles 0.1, 0.5 and 0.9 of a conditional density at the places along the feature.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Notes
    -----
    In the region of highest density that contains a share s of the distribution, the density
    is at least the quantile 1 - s of the densities at the training rows [1]_. If there are many
    rows, about 20 000 of them are used.

    References
    ----------
    .. [1] Hyndman, R. J. (1996). Computing and graphing highest density regions. The American
       Statistician 50, 120-126.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import ProductKernelDensity
    >>> from sklearn_attention.inspection import DensityDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> display = DensityDisplay.from_estimator(ProductKernelDensity().fit(X))
    >>> display.density.shape
    (100, 100)
    """

    def __init__(
        self,
        grid: Sequence[Any],
        density: np.ndarray,
        points: np.ndarray,
        names: Sequence[str],
        levels: np.ndarray | None = None,
        quantiles: np.ndarray | None = None,
    ) -> None:
        self.grid, self.density, self.points, self.names = grid, density, points, names
        self.levels, self.quantiles = levels, quantiles

    @classmethod
    def from_estimator(
        cls, estimator, X=None, y=None, *, grid_resolution: int = 100, ax=None, **kwargs
    ) -> Self:
        """Draw a fitted density.

        Parameters
        ----------
        estimator : ProductKernelDensity or ConditionalKernelDensity
            A fitted density of one or two numeric features, or a conditional density with one
            feature.
        X : array-like or data frame of shape (n_samples, n_features), default=None
            Rows to mark, which also set the range of the axes; None takes the training rows.
        y : array-like of shape (n_samples,), default=None
            Targets of X for a conditional density; others ignore it.
        grid_resolution : int, default=100
            Number of places along each axis.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : DensityDisplay

        Raises
        ------
        ValueError
            If the density has more features, or categories.
        """
        estimator, rows = last_step(estimator, X)
        conditional = hasattr(estimator, "target_bandwidth_")
        if not hasattr(estimator, "score_samples") or not hasattr(estimator, "columns_"):
            remedy = "ProductKernelDensity or ConditionalKernelDensity"
            raise unfit(estimator, "is not a density", remedy)
        n_features = estimator.n_features_in_
        if estimator.columns_.categorical or n_features > 2 - conditional:
            raise ValueError(
                f"estimator was fitted on {n_features} features, "
                f"{len(estimator.columns_.categorical)} of them categories, which cannot be "
                f"drawn: pass one that was fitted on at most {2 - conditional} features, all "
                "numeric."
            )
        places = [grid_resolution] * (n_features + conditional - 1)
        check_size("grid_resolution", grid_resolution, 8, *places)
        if conditional:
            points, name = _pairs(estimator, rows, y)
            values = _conditional_density(estimator, points, name, grid_resolution)
        else:
            values = _joint_density(estimator, _points(estimator, rows), grid_resolution)
        return cls(*values).plot(ax=ax, **kwargs)

    def _draw(self, ax):
        """Draw a density as a curve, as contours or as shades, and mark the rows."""
        opacity = float(np.clip(20 / np.sqrt(len(self.points)), 0.05, 0.6))
        if len(self.grid) == 1:
            self._draw_curve(ax, opacity)
        else:
            is_joint = self.quantiles is None
            (self._draw_contours if is_joint else self._draw_shades)(ax)
            color = GREY if is_joint else INK
            ax.scatter(*self.points.T, s=10, color=color, alpha=opacity, lw=0)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])

    def _draw_curve(self, ax, opacity):
        """Draw the density of one feature, with a mark for each row on the x-axis."""
        ax.fill_between(self.grid[0], self.density, color=BLUE, alpha=0.15, lw=0)
        ax.plot(self.grid[0], self.density, color=BLUE, lw=2)
        marks = {"color": INK, "alpha": opacity, "ms": 10, "clip_on": False}
        at_bottom = ax.get_xaxis_transform()
        ax.plot(
            self.points[:, 0], np.zeros(len(self.points)), "|", transform=at_bottom, **marks
        )
        ax.set_ylim(bottom=0)

    def _draw_contours(self, ax):
        """Draw the density of two features, with contours that are labelled by shares."""
        levels, index = np.unique(self.levels, return_index=True)
        ends = [*levels, self.density.max() * 1.001]
        ax.contourf(*self.grid, self.density, ends, cmap=WEIGHTS, alpha=0.8)
        lines = ax.contour(*self.grid, self.density, levels, colors=INK, linewidths=0.8)
        shares = {level: f"{_SHARES[i]:.0%}" for level, i in zip(levels, index, strict=True)}
        ax.clabel(lines, fmt=shares, fontsize="small")

    def _draw_shades(self, ax):
        """Draw a conditional density as shades, with curves of its quantiles."""
        ax.pcolormesh(*self.grid, self.density, cmap=WEIGHTS, shading="auto")
        for level, quantile in zip(_QUANTILES, self.quantiles.T, strict=True):
            style = {"lw": 1.8} if level == 0.5 else {"lw": 1, "ls": "--"}
            ax.plot(self.grid[0], quantile, color=INK, label=f"quantile {level}", **style)
        ax.legend()


def _points(estimator, rows):
    """Return the rows to mark, (n, n_features): the training rows if `rows` is None."""
    if rows is not None:
        return estimator._read_rows(rows, np.float64)
    remedy = "pass those to be marked, such as a sample"
    need_all_rows("marks, with X=None,", estimator.keys_, remedy=remedy)
    return estimator.keys_.astype(np.float64)


def _pairs(estimator, rows, y):
    """Return features and targets of the rows to mark, (n, 2), and the name of the target."""
    need_both(rows, y)
    x = _points(estimator, rows)[:, 0]
    values = np.asarray(estimator.values_ if y is None else y, dtype=np.float64)
    if values.shape != x.shape:
        raise ValueError(
            f"y has shape {values.shape}, but X has {len(x)} rows: pass a target for each."
        )
    return np.column_stack([x, values]), str(getattr(y, "name", None) or "y")


def _joint_density(estimator, points, n_places):
    """Evaluate the density of one or two features on a grid of `n_places` along each axis.

    The grid reaches beyond the `points` (n, n_features), which are marked, by three bandwidths.
    Returns the arguments of DensityDisplay: grid, density, points and names, and for two
    features the levels of the contours.
    """
    widths = 3 * estimator.bandwidth_
    if hasattr(estimator, "log_offsets_"):
        # Bandwidths of such features are in units of their logarithms.
        extent = 0.1 * np.ptp(points, axis=0)
        widths = np.where(np.isnan(estimator.log_offsets_), widths, extent)
    ends = zip(points.min(axis=0) - widths, points.max(axis=0) + widths, strict=True)
    grid = [np.linspace(low, high, n_places) for low, high in ends]
    places = np.column_stack([axis.ravel() for axis in np.meshgrid(*grid)])
    density = np.exp(estimator.score_samples(_in_fitted_form(estimator, places)))
    names = feature_names(estimator)
    if len(grid) == 1:
        return grid, density, points, [*names, "density"]
    # About 20 000 training rows are enough for the densities along contours.
    sample = slice(None, None, -(-len(estimator.keys_) // 20_000))
    keys, weights = (
        np.asarray(estimator.keys_[sample], dtype=np.float64),
        estimator.key_weights_,
    )
    weights = None if weights is None else np.asarray(weights[sample])
    at_keys = np.exp(estimator.score_samples(_in_fitted_form(estimator, keys)))
    levels = np.quantile(at_keys, 1 - np.array(_SHARES), weights=weights, method="inverted_cdf")
    return grid, density.reshape(n_places, n_places), points, names, levels


def _conditional_density(estimator, points, name, n_places):
    """Evaluate a conditional density on a grid of `n_places` along each axis.

    `points` (n, 2) are the features and targets of the marked rows, and `name` is that of the
    target. Returns the arguments of DensityDisplay: grid, density, points, names, None for the
    levels, and quantiles.
    """
    x, y = points.T
    width = 3 * float(np.max(estimator.target_bandwidth_))
    grid = [
        np.linspace(x.min(), x.max(), n_places),
        np.linspace(y.min() - width, y.max() + width, n_places),
    ]
    along, across = np.meshgrid(*grid)
    rows = _in_fitted_form(estimator, along.reshape(-1, 1))
    logs = estimator.score_samples(rows, across.ravel())
    rows = _in_fitted_form(estimator, grid[0][:, None])
    quantiles = estimator.predict_quantiles(rows, _QUANTILES)
    names = [*getattr(estimator, "feature_names_in_", ["x"]), name]
    density = np.exp(logs).reshape(n_places, n_places)
    return grid, density, points, names, None, quantiles


def _in_fitted_form(estimator, places):
    """Return places (n, n_features), as a frame if the estimator was fitted on one."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return places
    return pd.DataFrame(places, columns=names)

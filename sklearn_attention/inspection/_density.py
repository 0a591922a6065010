"""Densities, as a curve, as contours, or as the distribution along a feature."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_positive
from ._style import BLUE, GREY, INK, WEIGHTS, canvas

# Shares of the distribution that contours enclose.
_SHARES = (0.95, 0.8, 0.5)
_QUANTILES = (0.1, 0.5, 0.9)


class DensityDisplay:
    """An estimated density.

    Make one by :meth:`from_estimator`. Of one feature it is a curve; of two contours around the
    regions where the density is highest, which hold 50, 80 and 95 % of it; of a conditional
    density, shades along the feature with the quantiles 0.1, 0.5 and 0.9.

    Parameters
    ----------
    grid : list of ndarray
        Places along each axis.
    density : ndarray of shape (n_places,) or (n_places_y, n_places_x)
        The density there.
    points : ndarray of shape (n_samples, 1) or (n_samples, 2)
        The data.
    levels : ndarray or None, default=None
        Densities of the contours, ascending.
    quantiles : ndarray of shape (n_places_x, 3) or None, default=None
        Of a conditional density.
    names : tuple of str, default=("x", "y")
        Of the axes.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Notes
    -----
    A region of highest density that holds a share of the distribution is where the density is
    at least the quantile, at one less that share, of the densities at the training rows [1]_.

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

    def __init__(self, grid, density, points, *, levels=None, quantiles=None, names=("x", "y")):
        self.grid, self.density, self.points = grid, density, points
        self.levels, self.quantiles, self.names = levels, quantiles, names

    @classmethod
    def from_estimator(cls, estimator, *, grid_resolution=100, ax=None):
        """Draw a fitted density.

        Parameters
        ----------
        estimator : ProductKernelDensity or ConditionalKernelDensity
            Of one or two numeric features; conditional of one.
        grid_resolution : int, default=100
            Places along each axis.
        ax : Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : DensityDisplay

        Raises
        ------
        ValueError
            If there are more features, or categories.
        """
        check_is_fitted(estimator)
        check_positive("grid_resolution", grid_resolution, integer=True)
        conditional = hasattr(estimator, "target_bandwidth_")
        n_features = estimator.n_features_in_
        if not hasattr(estimator, "score_samples"):
            raise ValueError(
                f"{type(estimator).__name__} is no density: pass ProductKernelDensity or "
                "ConditionalKernelDensity."
            )
        if estimator.columns_.categorical or n_features > 2 - conditional:
            raise ValueError(
                f"The density has {n_features} features, {len(estimator.columns_.categorical)} "
                f"of them categories: pass one of {2 - conditional} numeric features at most."
            )
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = ["x", "y"] if n_features == 1 else ["x0", "x1"]
        keys = estimator.keys_.astype(np.float64)
        if conditional:
            points = np.column_stack([keys, estimator.values_])
            widths = np.append(estimator.bandwidth_, estimator.target_bandwidth_)
            names = [*names[:1], "y"]
        else:
            points, widths = keys, estimator.bandwidth_
        grid = [
            np.linspace(x.min() - 3 * h * (j == 1 or not conditional),
                        x.max() + 3 * h * (j == 1 or not conditional), grid_resolution)
            for j, (x, h) in enumerate(zip(points.T, widths, strict=True))
        ]  # fmt: skip
        options = {"names": tuple(map(str, names))}
        if conditional:
            x, y = np.meshgrid(*grid)
            found = estimator.score_samples(x.reshape(-1, 1), y.ravel())
            density = np.exp(found).reshape(x.shape)
            options["quantiles"] = estimator.predict_quantiles(grid[0][:, None], _QUANTILES)
        else:
            places = np.column_stack([own.ravel() for own in np.meshgrid(*grid)])
            density = np.exp(estimator.score_samples(_like(estimator, places)))
            density = density.reshape([len(own) for own in grid])
            own = np.exp(estimator.score_samples(_like(estimator, keys)))
            weights = estimator.key_weights_
            if n_features == 2:
                options["levels"] = np.array([_share(own, weights, 1 - s) for s in _SHARES])
        return cls(grid, density, points, **options).plot(ax=ax)

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : DensityDisplay
        """
        faint = float(np.clip(20 / np.sqrt(len(self.points)), 0.05, 0.6))
        with canvas(self, ax) as ax:
            if len(self.grid) == 1:
                ax.fill_between(self.grid[0], self.density, color=BLUE, alpha=0.15, lw=0)
                ax.plot(self.grid[0], self.density, color=BLUE, lw=2)
                ax.plot(
                    self.points[:, 0], np.zeros(len(self.points)), "|", color=INK, alpha=faint,
                    ms=10, transform=ax.get_xaxis_transform(), clip_on=False,
                )  # fmt: skip
                ax.set(xlabel=self.names[0], ylabel="density")
                ax.set_ylim(bottom=0)
                return self
            dots = {"s": 10, "color": GREY, "alpha": faint, "lw": 0}
            if self.quantiles is None:
                levels, index = np.unique(self.levels, return_index=True)
                ax.contourf(
                    *self.grid, self.density, [*levels, self.density.max() * 1.001],
                    cmap=WEIGHTS, alpha=0.8,
                )  # fmt: skip
                lines = ax.contour(*self.grid, self.density, levels, colors=INK, linewidths=0.8)
                marks = {
                    level: f"{_SHARES[i]:.0%}" for level, i in zip(levels, index, strict=True)
                }
                ax.clabel(lines, fmt=marks, fontsize="small")
            else:
                ax.pcolormesh(*self.grid, self.density, cmap=WEIGHTS, shading="auto")
                for level, own in zip(_QUANTILES, self.quantiles.T, strict=True):
                    middle = level == 0.5
                    ax.plot(
                        self.grid[0], own, color=INK, lw=1.8 if middle else 1,
                        ls="-" if middle else "--", label=f"quantile {level}",
                    )  # fmt: skip
                ax.legend()
                dots["color"] = INK
            ax.scatter(*self.points.T, **dots)
            ax.set(xlabel=self.names[0], ylabel=self.names[1])
        return self


def _like(estimator, places):
    """Places in the form that the estimator has been fitted on."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return places
    import pandas as pd

    return pd.DataFrame(places, columns=names)


def _share(values, weights, share):
    """Quantile of values that have weights."""
    order = np.argsort(values)
    weights = np.ones(len(values)) if weights is None else weights
    total = np.cumsum(weights[order])
    return values[order][np.searchsorted(total, share * total[-1])]

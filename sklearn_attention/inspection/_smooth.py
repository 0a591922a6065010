"""A fitted curve with its band and intervals."""

from typing import Any, Self

import numpy as np
from scipy.stats import norm
from sklearn.base import is_regressor

from .._validation import check_choice, check_in_open_interval, check_size
from ..smoothing._additive_mixture import AdditiveMixture
from ..smoothing._uncertainty import UncertaintyMixin
from ._grid import column_of, position_of, rows_along
from ._pipelines import last_step, need_both, remembered_rows, unfit
from ._style import BLUE, GREY, Display


class SmoothDisplay(Display):
    r"""Picture of the data and the fitted curve, with a confidence band and intervals.

    Use it for smoothers of one feature, and for the components of an additive stage.

    Make one by :meth:`from_estimator`.

    Parameters
    ----------
    x, y : ndarray of shape (n_samples,)
        Values of the feature, and targets.
    grid, curve : ndarray of shape (n_places,)
        Places along the feature, and predictions there.
    band, interval : ndarray of shape (n_places, 2) or None, default=None
        Lower and upper ends of the band of the curve, and of intervals of new targets.
    coverage : float, default=0.9
        Probability of the band and of the intervals.
    names : tuple of str, default=("x", "y")
        Names of the feature and of the target.
    bias_corrected : bool, default=False
        Whether the band is around a fit with less bias than the curve.
    is_component : bool, default=False
        Whether the curve is a component of an additive stage, and y its partial residuals.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Notes
    -----
    The band of a smoother is around another fit, which has less bias than the one with the best
    predictions: see :meth:`~sklearn_attention.LocalPolynomialRegressor.confidence_band`. So the
    prediction is not in the middle of the band, and may lie outside of it where the bias of the
    prediction is largest.

    The component :math:`f_j` of an additive stage (see
    :class:`~sklearn_attention.LocalPolynomialRegressor`) is what a feature adds to the sum,
    less its mean over the training rows. Its band has the variance that the coefficients have
    given the data, if each is normal with mean 0 and the variance of the noise divided by its
    penalty [1]_: with the columns :math:`Z`, the penalties :math:`\Lambda` and the weights
    :math:`W`,

    .. math:: \operatorname{Var} = \hat\sigma^2\,
              z_j(x)^\top \bigl[(Z^\top W Z + \Lambda)^{-1}\bigr]_{jj}\, z_j(x)

    So the coverage holds on average over the rows, and not at each place. In five simulated
    sums, 90 % bands contained the component at 0.88 to 0.94 of the rows. Partial residuals are
    the component plus the residuals of the stage.

    References
    ----------
    .. [1] Marra, G. and Wood, S. N. (2012). Coverage properties of confidence intervals for
       generalized additive model components. Scandinavian Journal of Statistics 39, 53-74.

    Examples
    --------
    >>> from sklearn_attention import LocalPolynomialRegressor
    >>> from sklearn_attention.datasets import make_smoothing_curve
    >>> from sklearn_attention.inspection import SmoothDisplay
    >>> X, y = make_smoothing_curve("heavisine", 200, signal_to_noise=3, random_state=0)
    >>> model = LocalPolynomialRegressor().fit(X, y)
    >>> display = SmoothDisplay.from_estimator(model, band="simultaneous")
    >>> display.band.shape
    (200, 2)
    """

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        grid: np.ndarray,
        curve: np.ndarray,
        *,
        band: np.ndarray | None = None,
        interval: np.ndarray | None = None,
        coverage: float = 0.9,
        names: Any = ("x", "y"),
        bias_corrected: bool = False,
        is_component: bool = False,
    ) -> None:
        self.x, self.y, self.grid, self.curve = x, y, grid, curve
        self.band, self.interval, self.coverage, self.names = band, interval, coverage, names
        self.bias_corrected, self.is_component = bias_corrected, is_component

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        y=None,
        *,
        feature: int | str = 0,
        band: str | None = "auto",
        interval: bool | str = "auto",
        coverage: float = 0.9,
        grid_resolution: int = 200,
        ax=None,
        **kwargs,
    ) -> Self:
        """Draw the predictions of a fitted regressor along a feature, or a component.

        If a regressor of several features has an additive stage, its component is drawn: the
        function of the feature, with a pointwise band and partial residuals. Pass `X` and `y`,
        ``interval=True`` or ``band="simultaneous"`` to draw predictions.

        Parameters
        ----------
        estimator : regressor
            A fitted regressor, or a fitted pipeline or search that ends with one.
        X : array-like or data frame of shape (n_samples, n_features), default=None
            Rows to draw; None takes those that the estimator stores. Along the curve, all other
            features are fixed: numbers at their medians, and categories at their most frequent
            level.
        y : array-like of shape (n_samples,), default=None
            Targets of these rows.
        feature : int or str, default=0
            A numeric feature, by position or by name.
        band : {"auto", "pointwise", "simultaneous", None}, default="auto"
            Band that contains the curve with the probability `coverage`, at each place or at
            all places at once. "auto" is "pointwise", or None if there is no such band, as for
            kernels with negative weights and for rows in Dask.
        interval : bool, "auto" or "heteroscedastic", default="auto"
            Whether to draw intervals that contain a new target with the probability `coverage`.
            "auto" draws them if the estimator has any and its rows are not in Dask.
            "heteroscedastic" draws intervals whose width varies with the noise, which smoothers
            have.
        coverage : float, default=0.9
            Probability, between 0 and 1.
        grid_resolution : int, default=200
            Number of places.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : SmoothDisplay
        """
        _check_options(band, interval, grid_resolution)
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        model, _ = last_step(estimator)
        if not is_regressor(model) or hasattr(model, "backtest"):
            fault = "is not a regressor that predicts a target for each row of X"
            raise unfit(model, fault, "one such as NadarayaWatsonRegressor")
        need_both(X, y)
        # 1. Decide whether predictions or a component are drawn.
        smoother = getattr(model, "smoother_", None)
        is_pointwise = band != "simultaneous" and interval in ("auto", False)
        has_components = isinstance(smoother, AdditiveMixture) and smoother.keys.shape[1] > 1
        is_component = X is None and is_pointwise and has_components
        target_name = str(getattr(y, "name", None) or "y")
        if X is None:
            X, y = remembered_rows(estimator)
        (name, x), target = column_of(X, feature), np.asarray(y)
        _check_targets(target, len(x))
        # 2. Compute the curve and its uncertainty along the feature.
        grid = np.linspace(np.nanmin(x), np.nanmax(x), grid_resolution)
        along = rows_along(X, feature, grid)
        if is_component:
            j, rows = position_of(X, feature), model._read_rows(along)
            curve, ends = _component(smoother, j, rows, coverage)
            target, target_name = smoother.partial_residuals(j)[:, 0], f"component of {name}"
            options = {"band": None if band is None else ends, "is_component": True}
        else:
            model, rows = last_step(estimator, along)
            curve = _predictions(model, rows)
            options = _uncertainty(model, rows, band, interval, coverage)
        options |= {"coverage": coverage, "names": (name, target_name)}
        display = cls(x, target, grid, curve, **options)
        return display.plot(ax=ax, **kwargs)

    def _draw(self, ax):
        """Draw the data, the curve, and the band and intervals as far as they were passed."""
        percent = f"{100 * self.coverage:g} %"
        if self.interval is not None:
            label = f"new observations, {percent}"
            ax.fill_between(
                self.grid, *self.interval.T, color=BLUE, alpha=0.12, lw=0, label=label
            )
        if self.band is not None:
            label = "component" if self.is_component else "curve"
            label += f", {percent}" + ", bias-corrected" * self.bias_corrected
            ax.fill_between(self.grid, *self.band.T, color=BLUE, alpha=0.35, lw=0, label=label)
        # Many opaque points would hide the curve.
        opacity = float(np.clip(20 / np.sqrt(len(self.x)), 0.1, 0.7))
        ax.scatter(self.x, self.y, s=16, color=GREY, alpha=opacity, lw=0, zorder=1.5)
        has_ends = self.interval is not None or self.band is not None
        label = "component" if self.is_component else "prediction"
        label = label if has_ends else None
        ax.plot(self.grid, self.curve, color=BLUE, lw=2, label=label)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])


def _check_options(band, interval, grid_resolution):
    """Raise ValueError unless parameters of :meth:`SmoothDisplay.from_estimator` are valid."""
    if band is not None:
        check_choice("band", band, ("auto", "pointwise", "simultaneous"))
    if not isinstance(interval, bool):
        check_choice("interval", interval, ("auto", "heteroscedastic"))
    check_size("grid_resolution", grid_resolution, 8)


def _check_targets(target, n_rows):
    """Raise ValueError unless there is one target for each row."""
    if target.ndim != 1:
        raise ValueError(
            f"y has shape {target.shape}, but only one output can be drawn: pass y of "
            "shape (n_samples,), and a model that was fitted on such a y."
        )
    if len(target) != n_rows:
        raise ValueError(
            f"y has {len(target)} targets, but X has {n_rows} rows: pass one target for "
            "each row."
        )


def _component(smoother, j, rows, coverage):
    """Return the component (n,) of feature `j` for rows, and the ends of its band (n, 2)."""
    component, std = smoother.component(j, rows)
    half_width = norm.ppf((1 + coverage) / 2) * std
    ends = np.hstack([component - half_width, component + half_width])
    return component[:, 0], ends


def _predictions(model, rows):
    """Return predictions (n,) of a regressor; raise ValueError if it has several outputs."""
    predictions = np.asarray(model.predict(rows))
    if predictions.ndim != 1:
        remedy = "one that was fitted on a single output"
        raise unfit(model, f"has {predictions.shape[1]} outputs", remedy)
    return predictions


def _uncertainty(model, rows, band, interval, coverage):
    """Compute the band and the intervals of predictions for rows (n, n_features).

    `band` and `interval` are the parameters of :meth:`SmoothDisplay.from_estimator`. The result
    is a dict of arguments of SmoothDisplay: `band` and `bias_corrected` if a band is drawn, and
    `interval` if intervals are.
    """
    is_in_memory = getattr(getattr(model, "smoother_", None), "is_in_memory", True)
    # By default there are no bands and intervals that would be errors or load all rows.
    if band == "auto":
        has_negative_weights = getattr(getattr(model, "kernel_", None), "signed", False)
        has_band = is_in_memory and not has_negative_weights
        band = "pointwise" if has_band and hasattr(model, "confidence_band") else None
    if interval == "auto":
        interval = is_in_memory and hasattr(model, "predict_interval")
    options, is_smoother = {}, isinstance(model, UncertaintyMixin)
    if band is not None:
        _require(hasattr(model, "confidence_band"), model, "band", band, "None")
        is_simultaneous = band == "simultaneous"
        options["band"] = model.confidence_band(rows, coverage, simultaneous=is_simultaneous)
        options["bias_corrected"] = is_smoother
    if interval == "heteroscedastic":
        _require(is_smoother, model, "interval", interval, "True")
        options["interval"] = model.predict_interval(rows, coverage, heteroscedastic=True)
    elif interval:
        _require(hasattr(model, "predict_interval"), model, "interval", interval, "False")
        options["interval"] = model.predict_interval(rows, coverage)
    return options


def _require(is_possible, model, name, value, remedy):
    """Raise an error if the value of a parameter is not possible for a model."""
    if not is_possible:
        raise ValueError(
            f"{name}={value!r} is not available for a {type(model).__name__}: pass {remedy}."
        )

"""Bandwidths of fitted estimators, and the criterion by which they were chosen."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ._grid import feature_names
from ._pipelines import last_step, unfit
from ._style import BLUE, COLORS, GREY, INK, Display, write_bar_names, write_plainly

# Largest number of features that have a bar.
_MAX_BARS = 20


class BandwidthDisplay(Display):
    """Picture of a search for a bandwidth: the criterion, or the bandwidth of each feature.

    Use it to see how well the data determine the bandwidth of a smoother.

    Make one by :meth:`from_estimator`. If one factor for the bandwidths of all features was
    searched, the picture shows the criterion over the bandwidths that were tried. Bandwidths
    whose criterion is at most 1 % above its minimum are shaded: if their range is wide, the
    data do not determine the bandwidth.

    Other estimators have a bandwidth, or a length-scale, for each feature. The length of a bar
    is the relevance of a feature, and the number beside it is its bandwidth. At most the twenty
    most relevant features are drawn.

    Parameters
    ----------
    bandwidth : Series of shape (n_features,)
        Bandwidth of each feature in its own units, by its name; infinite for features without
        effect.
    measure : str
        Name of the criterion, or how relevance is measured.
    search : DataFrame or None, default=None
        A row for each candidate that was tried: ``"bandwidth"`` of the first feature,
        ``"criterion"``, ``"name"`` of its curve, and maybe ``"degrees_of_freedom"``, which are
        written along the top if there is a single curve.
    relevance : Series of shape (n_features,) or None, default=None
        Relevance of each feature, by its name, if there is no search.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes
    flat_ : tuple of float
        Smallest and largest shaded bandwidth of a search.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn_attention import KernelAttentionRegressor, NadarayaWatsonRegressor
    >>> from sklearn_attention.datasets import make_smoothing_curve
    >>> from sklearn_attention.inspection import BandwidthDisplay
    >>> X, y = make_smoothing_curve("heavisine", 200, signal_to_noise=3, random_state=0)
    >>> display = BandwidthDisplay.from_estimator(NadarayaWatsonRegressor().fit(X, y))
    >>> [round(float(end), 3) for end in display.flat_]
    [0.012, 0.019]
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = KernelAttentionRegressor().fit(X, y)
    >>> display = BandwidthDisplay.from_estimator(model)
    >>> sorted(display.relevance.nlargest(3).index)
    ['x0', 'x1', 'x2']
    """

    def __init__(
        self, bandwidth: Any, measure: str, *, search: Any = None, relevance: Any = None
    ) -> None:
        self.bandwidth, self.measure = bandwidth, measure
        self.search, self.relevance = search, relevance

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs) -> Self:
        """Draw the bandwidths of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A smoother, a density, or kernel attention. The search of a smoother is drawn if it
            was for one factor for all features. Otherwise the relevance of a feature is drawn:
            `relevance_` if each bandwidth was searched; for kernel attention, its share of the
            squared distance; else its standard deviation divided by its bandwidth.
        X, y : None
            Ignored; all displays have them.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : BandwidthDisplay

        Raises
        ------
        ValueError
            If the estimator has no bandwidths.
        """
        estimator, _ = last_step(estimator)
        if not hasattr(estimator, "bandwidth_") or not hasattr(estimator, "keys_"):
            remedy = (
                "a KernelAttentionRegressor, a smoother such as NadarayaWatsonRegressor, or a "
                "density such as ProductKernelDensity"
            )
            raise unfit(estimator, "has no bandwidths for its features", remedy)
        names = feature_names(estimator)
        bandwidth = pd.Series(estimator.bandwidth_, names, dtype=np.float64)
        search = relevance = None
        if hasattr(estimator, "cv_results_"):
            search, measure = _candidates(estimator), estimator.criterion
        elif hasattr(estimator, "bandwidth_search_"):
            measure, tried = estimator.bandwidth, estimator.bandwidth_search_
            search = pd.DataFrame(
                tried | {"bandwidth": np.asarray(tried["bandwidth"])[:, 0], "name": measure}
            )
        elif hasattr(estimator, "feature_relevance_"):
            relevance, measure = estimator.feature_relevance_, "share of the squared distance"
        elif hasattr(estimator, "relevance_"):
            relevance, measure = estimator.relevance_, "relevance"
        else:
            relevance = (
                np.std(estimator.keys_.astype(np.float64), axis=0) / estimator.bandwidth_
            )
            measure = "standard deviations / bandwidth"
        if relevance is not None:
            relevance = pd.Series(np.asarray(relevance), names)
        return cls(bandwidth, measure, search=search, relevance=relevance).plot(ax=ax, **kwargs)

    @property
    def _figure_size(self):
        """Width and height in inches; bars need more height the more there are."""
        if self.search is not None:
            return 6.4, 4.0
        return 6.4, 1.1 + 0.3 * min(len(self.relevance), _MAX_BARS)

    def _draw(self, ax):
        """Draw the search, or bars of relevance if there was none."""
        if self.search is not None:
            self._draw_search(ax, self.search, float(self.bandwidth.iloc[0]))
            return
        shown = np.argsort(-self.relevance.to_numpy(), kind="stable")[:_MAX_BARS]
        self._draw_bars(ax, self.relevance.iloc[shown], self.bandwidth.iloc[shown])

    def _draw_bars(self, ax, relevance, bandwidth):
        """Draw bars of the relevance of features, with their bandwidths beside them."""
        ax.barh(range(len(relevance)), relevance, color=BLUE, height=0.7)
        for line, (end, h) in enumerate(zip(relevance, bandwidth, strict=True)):
            text = f"  {h:.3g}" if np.isfinite(h) else "  ∞"
            ax.text(end, line, text, va="center", color=INK, size="small")
        write_bar_names(ax, relevance.index.tolist())
        ax.margins(x=0.2)
        ax.set_xlim(left=0)
        ax.set(xlabel=self.measure, title="relevance, and length-scale")

    def _draw_search(self, ax, search, chosen):
        """Draw the criterion over bandwidths, and mark the `chosen` bandwidth."""
        curves = dict(list(search.groupby("name", sort=False)))
        lowest = search["criterion"].min()
        for number, (name, curve) in enumerate(curves.items()):
            curve = curve.sort_values("bandwidth")
            style = {"color": COLORS[number % len(COLORS)], "marker": ".", "ms": 4, "lw": 1.8}
            label = name if len(curves) > 1 else None
            ax.plot(curve["bandwidth"], curve["criterion"], label=label, **style)
        # Akaike's criterion is the logarithm of an error, so that 1 % is a difference of 0.01.
        tolerance = 0.01 if self.measure == "aicc" else 0.01 * abs(lowest)
        best = min(curves.values(), key=lambda curve: curve["criterion"].min())
        flat = best.loc[best["criterion"] <= lowest + tolerance, "bandwidth"]
        self.flat_ = float(flat.min()), float(flat.max())
        ax.axvspan(*self.flat_, color=BLUE, alpha=0.12, lw=0)
        ax.axvline(chosen, color=INK, lw=1, ls="--")
        # The axis ends at the largest criterion of wider bandwidths than the chosen one, which
        # is about that of a global fit. Narrow windows are nearly empty: their criterion may be
        # arbitrarily large, and would stretch the axis.
        wider = search.loc[search["bandwidth"] >= chosen, "criterion"]
        height = wider[np.isfinite(wider)].to_numpy().max(initial=lowest) - lowest
        height = max(height, 0.1 * abs(lowest), 1e-300)
        low, high = lowest - 0.08 * height, lowest + 1.2 * height
        style = {"rotation": 90, "ha": "right", "va": "top", "color": INK, "fontsize": "small"}
        offset = {"xytext": (-3, -3), "textcoords": "offset points"}
        ax.annotate(f"h = {chosen:.3g}", (chosen, high), **offset, **style)
        ax.set(xscale="log", xlabel="bandwidth", ylabel=f"{self.measure} criterion")
        ax.set_ylim(low, high)
        write_plainly(ax.xaxis)
        if len(curves) == 1 and "degrees_of_freedom" in search:
            _mark_degrees_of_freedom(ax, search)


def _candidates(estimator):
    """Return the bandwidth, the criterion and the name of each candidate of a search.

    Candidates of one name, such as a kernel and a degree, are drawn as one curve.
    """
    results = estimator.cv_results_
    keys = [key for key in results if key.startswith("param_") and key != "param_bandwidth"]
    names = []
    for values in zip(*(results[key] for key in keys), strict=True):
        words = [f"degree {v}" if isinstance(v, int) else str(v) for v in values]
        names.append(", ".join(words))
    columns = {
        "bandwidth": [float(np.max(h)) for h in results["param_bandwidth"]],
        "criterion": -np.asarray(results["mean_test_score"]),
        "name": names,
    }
    return pd.DataFrame(columns)


def _mark_degrees_of_freedom(ax, search):
    """Write round degrees of freedom along the top, at the bandwidths that have them."""
    search = search.sort_values("degrees_of_freedom")
    freedom, log_bandwidths = (
        search["degrees_of_freedom"].to_numpy(),
        np.log(search["bandwidth"]),
    )
    candidates = np.outer(10.0 ** np.arange(7), [1, 2, 5]).ravel()
    low, high = np.log(ax.get_xlim())
    ticks, last = {}, np.inf  # from degrees of freedom to the logarithm of the bandwidth
    for tick in candidates[(candidates >= freedom[0]) & (candidates <= freedom[-1])]:
        position = np.interp(tick, freedom, log_bandwidths)
        # A tick is left out if its label would touch that of the tick before.
        if abs(position - last) > 0.09 * (high - low):
            ticks[tick] = last = position
    top = ax.twiny()
    top.set(xscale="log", xlim=ax.get_xlim(), xlabel="degrees of freedom")
    top.set_xticks(np.exp(list(ticks.values())), [f"{tick:g}" for tick in ticks])
    top.minorticks_off()
    top.tick_params(colors=GREY, labelsize="small")
    top.xaxis.label.set(color=GREY, size="small")

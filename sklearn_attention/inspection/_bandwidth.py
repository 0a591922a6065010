"""The criterion of a bandwidth search."""

import numpy as np

from .._validation import check_positive
from ._errors import named
from ._pipelines import last_step
from ._style import BLUE, COLORS, GREY, INK, canvas, write_legend, write_plainly

# Degrees of freedom that are marked if the axis has room for them.
_MARKS = np.outer(10.0 ** np.arange(7), [1, 2, 5]).ravel()
# Least distance of two marks, as a share of the axis.
_APART = 0.09


class BandwidthDisplay:
    """Criterion of a bandwidth search over the bandwidths that were tried.

    Make one by :meth:`from_estimator`. Bandwidths whose criterion is almost as low as that of
    the chosen one are shaded: if the range is wide, the data do not determine the bandwidth.

    Parameters
    ----------
    searches : dict of str to dict of ndarray
        For each curve, by its name, ``"bandwidth"`` and ``"criterion"``, and maybe
        ``"degrees_of_freedom"``, of shape (n_bandwidths,). The last are marked of a single
        curve.
    bandwidth : float
        The chosen one.
    criterion : str
        Name of the criterion.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes
    flat_ : tuple of float
        Smallest and largest shaded bandwidth.

    Examples
    --------
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> from sklearn_attention.datasets import make_smoothing_curve
    >>> from sklearn_attention.inspection import BandwidthDisplay
    >>> X, y = make_smoothing_curve("heavisine", 200, signal_to_noise=3, random_state=0)
    >>> display = BandwidthDisplay.from_estimator(NadarayaWatsonRegressor().fit(X, y))
    >>> [round(float(end), 3) for end in display.flat_]
    [0.014, 0.02]
    """

    def __init__(self, searches, *, bandwidth, criterion):
        self.searches = searches
        self.bandwidth = bandwidth
        self.criterion = criterion

    @classmethod
    @named
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs):
        """Draw the search of a fitted smoother.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor, LocalPolynomialRegressor, \
NadarayaWatsonClassifier, NadarayaWatsonCV or LocalPolynomialCV
            It has searched one factor for all features.
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
            If the estimator has not searched one bandwidth.
        """
        estimator, _ = last_step(estimator)
        if hasattr(estimator, "cv_results_"):
            searches, criterion = _candidates(estimator), estimator.criterion
        elif hasattr(estimator, "bandwidth_search_"):
            tried = estimator.bandwidth_search_
            bandwidths = np.asarray(tried["bandwidth"])[:, 0]
            searches = {estimator.bandwidth: tried | {"bandwidth": bandwidths}}
            criterion = estimator.bandwidth
        else:
            given = getattr(estimator, "bandwidth", None)
            given = "" if given is None else f"(bandwidth={given!r})"
            raise ValueError(
                f"estimator is {type(estimator).__name__}{given}, which has not searched one "
                "factor for all features: pass a smoother with bandwidth='penalized-loo', "
                "'loo', 'gcv' or 'aicc', and per_feature=False."
            )
        display = cls(searches, bandwidth=float(estimator.bandwidth_[0]), criterion=criterion)
        return display.plot(ax=ax, **kwargs)

    @named
    def plot(self, ax=None, *, tolerance=0.01):
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        tolerance : float, default=0.01
            Largest relative excess of the criterion over its minimum in the shaded range.

        Returns
        -------
        self : BandwidthDisplay
        """
        check_positive("tolerance", tolerance)
        with canvas(self, ax) as ax:
            alone = len(self.searches) == 1
            lowest = min(np.nanmin(own["criterion"]) for own in self.searches.values())
            for number, (name, own) in enumerate(self.searches.items()):
                order = np.argsort(own["bandwidth"])
                h, values = own["bandwidth"][order], np.asarray(own["criterion"])[order]
                style = {"color": COLORS[number % len(COLORS)], "marker": ".", "ms": 4}
                ax.plot(h, values, lw=1.8, label=None if alone else name, **style)
            self.flat_ = self._shade(ax, lowest, tolerance)
            ax.axvline(self.bandwidth, color=INK, lw=1, ls="--")
            low, high = self._limits(lowest)
            ax.annotate(
                f"h = {self.bandwidth:.3g}", (self.bandwidth, high), rotation=90, ha="right",
                va="top", xytext=(-3, -3), textcoords="offset points", color=INK,
                fontsize="small",
            )  # fmt: skip
            ax.set(xscale="log", xlabel="bandwidth", ylabel=f"{self.criterion} criterion")
            ax.set_ylim(low, high)
            write_plainly(ax.xaxis)
            if alone:
                _mark_degrees_of_freedom(ax, *self.searches.values())
            else:
                write_legend(ax)
        return self

    def _shade(self, ax, lowest, tolerance):
        # Akaike's criterion is the logarithm of an error.
        slack = tolerance if self.criterion == "aicc" else tolerance * abs(lowest)
        best = min(self.searches.values(), key=lambda own: np.nanmin(own["criterion"]))
        h = np.asarray(best["bandwidth"])[np.asarray(best["criterion"]) <= lowest + slack]
        ax.axvspan(h.min(), h.max(), color=BLUE, alpha=0.12, lw=0)
        return float(h.min()), float(h.max())

    def _limits(self, lowest):
        """Limits of the axis around the minimum, without values far above it."""
        h, found = (
            np.concatenate([own[name] for own in self.searches.values()])
            for name in ("bandwidth", "criterion")
        )
        # Nearly empty windows may have any error; wide ones have that of a global fit.
        wide = found[(h >= self.bandwidth) & np.isfinite(found)]
        height = max(wide.max(initial=lowest) - lowest, 0.1 * abs(lowest), 1e-300)
        return lowest - 0.08 * height, lowest + 1.2 * height


def _candidates(estimator):
    """Curves of a search over a list, one for each kernel and degree."""
    results = estimator.cv_results_
    names = [key for key in results if key.startswith("param_") and key != "param_bandwidth"]
    curves = {}
    for i, score in enumerate(results["mean_test_score"]):
        parts = [results[key][i] for key in names]
        name = ", ".join(f"degree {p}" if isinstance(p, int) else str(p) for p in parts)
        h = float(np.max(results["param_bandwidth"][i]))
        curves.setdefault(name, []).append((h, -score))
    return {
        name: dict(zip(("bandwidth", "criterion"), np.transpose(found), strict=True))
        for name, found in curves.items()
    }


def _mark_degrees_of_freedom(ax, search):
    """Degrees of freedom along the top, at the bandwidths that have them."""
    if "degrees_of_freedom" not in search:
        return
    order = np.argsort(search["degrees_of_freedom"])
    freedom = np.asarray(search["degrees_of_freedom"])[order]
    h = np.asarray(search["bandwidth"])[order]
    places = {
        mark: np.interp(mark, freedom, np.log(h))
        for mark in _MARKS[(_MARKS >= freedom[0]) & (_MARKS <= freedom[-1])]
    }
    low, high = np.log(ax.get_xlim())
    kept = []
    for mark, place in places.items():
        if not kept or abs(place - places[kept[-1]]) > _APART * (high - low):
            kept.append(mark)
    top = ax.twiny()
    top.set(xscale="log", xlim=ax.get_xlim(), xlabel="degrees of freedom")
    top.set_xticks(np.exp([places[mark] for mark in kept]), [f"{mark:g}" for mark in kept])
    top.minorticks_off()
    top.tick_params(colors=GREY, labelsize="small")
    top.xaxis.label.set(color=GREY, size="small")

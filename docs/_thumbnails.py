"""Pictures for cards of examples that need a cluster, and so have no pictures of their own."""

import numpy as np

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.datasets import make_smoothing_curve
from sklearn_attention.inspection import STYLE


def draw_thumbnails(folder):
    """Draw ``thumb_panel.svg`` and ``thumb_search.svg``, unless they are there."""
    import matplotlib.pyplot as plt

    for name, draw in (("panel", _draw_panel), ("search", _draw_search)):
        path = folder / f"thumb_{name}.svg"
        if not path.exists():
            with plt.rc_context(STYLE):
                draw(plt)
                plt.savefig(path)
                plt.close("all")


def _draw_panel(plt):
    """Draw many series, with their last steps in blue, as those of a forecast."""
    rng, steps = np.random.default_rng(0), np.arange(36)
    _, axes = plt.subplots(5, 6, figsize=(4.8, 3.4), layout="constrained")
    for ax in axes.flat:
        season = np.sin(2 * np.pi * (steps + rng.integers(12)) / 12)
        series = rng.normal() * steps / 18 + season + 0.2 * rng.normal(size=36)
        ax.plot(steps[:25], series[:25], color="0.5", lw=1.5)
        ax.plot(steps[24:], series[24:], color="C0", lw=2)
        ax.axis("off")


def _draw_search(plt):
    """Draw the errors that a search compares, of bandwidths and degrees."""
    X, y = make_smoothing_curve("heavisine", 200, signal_to_noise=3, random_state=0)
    bandwidths = np.geomspace(0.008, 0.15, 20)
    _, ax = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
    for degree in range(3):
        models = (LocalPolynomialRegressor(degree=degree, bandwidth=h) for h in bandwidths)
        errors = [model.fit(X, y).loo_score_ for model in models]
        ax.semilogx(bandwidths, errors, "o-", label=f"degree {degree}")
    ax.set(xticks=[], yticks=[], xlabel="bandwidth", ylabel="error")
    ax.minorticks_off()
    ax.legend()

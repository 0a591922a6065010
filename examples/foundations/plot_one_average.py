r"""
=========================
One average, seven models
=========================

Compute seven models, from a smoother to a language model, by one formula.

A smoother, a density, kernel regression, attention, a layer of a transformer, a forecast and a
language model are one formula,

.. math:: \hat y(q) = \frac{\sum_i K(q, k_i)\, v_i}{\sum_i K(q, k_i)} ,

with different queries, keys, values and kernels. This example computes and draws each of them;
the guide :doc:`/one_average` explains the pictures.
"""

# %%
# A smoother
# ----------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import (
    KernelForecaster,
    NadarayaWatsonClassifier,
    ProductKernelDensity,
    attend,
    attention_weights,
)
from sklearn_attention.datasets import make_periodic_series, make_smoothing_curve
from sklearn_attention.inspection import STYLE

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)


def panels(n=2, **options):
    """Axes side by side."""
    return plt.subplots(1, n, figsize=(10, 3.8), layout="constrained", **options)[1]


X, y = make_smoothing_curve("heavisine", 120, signal_to_noise=3, random_state=0)
weights = attention_weights(X, X, bandwidth=0.03)

window, matrix = panels(width_ratios=[1.4, 1])
window.scatter(X, y, s=12 + 1500 * weights[40], color=GREY, alpha=0.5, lw=0)
window.plot(X, weights @ y, color=BLUE, lw=2.5)
window.plot(X, 60 * weights[40] - 9, color=ORANGE, lw=2)
window.plot(X[40], weights[40] @ y, "o", color=ORANGE, ms=9)
window.set(title="Weights of one query", xlabel="x", ylabel="y")
matrix.imshow(weights, cmap="Blues", vmax=0.1)
matrix.axhline(40, color=ORANGE, lw=2)
matrix.set(title="Weights of all queries", xlabel="key", ylabel="query")
plt.show()

# %%
# A density
# ---------

rows = np.random.default_rng(1).normal([[2.0], [4.3]], 0.4, size=(2, 12)).ravel()
grid = np.linspace(0.5, 6, 300)
density = ProductKernelDensity(bandwidth=0.3).fit(rows[:, None])

(axis,) = np.atleast_1d(panels(1))
hills = np.exp(-(((grid - rows[:, None]) / 0.3) ** 2) / 2) / (24 * 0.3 * np.sqrt(2 * np.pi))
axis.plot(grid, hills.T, color=ORANGE, lw=1)
axis.plot(grid, np.exp(density.score_samples(grid[:, None])), color=BLUE, lw=2.5)
axis.plot(rows, np.zeros(24), "|", color=INK, ms=12)
axis.set(title="A kernel around each row, and their sum", xlabel="x", ylabel="density")
plt.show()

# %%
# Kernel regression
# -----------------

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 1, 60))[:, None]
target = np.sin(7 * x[:, 0]) + 0.3 * rng.normal(size=60)
grid = np.linspace(0, 1, 200)[:, None]
numerator = np.exp(-(((grid - x.T) / 0.06) ** 2) / 2) @ target / 60
denominator = np.exp(-(((grid - x.T) / 0.06) ** 2) / 2).sum(axis=1) / 60

parts, curve = panels()
parts.plot(grid, numerator, color=ORANGE, lw=2, label="sum of kernels times targets")
parts.plot(grid, denominator, color=GREY, lw=2, label="sum of kernels")
parts.set(title="Two sums", xlabel="x")
parts.legend(frameon=False, loc="lower left")
curve.scatter(x, target, s=20, color=GREY, alpha=0.6, lw=0)
curve.plot(grid, attend(grid, x, target, bandwidth=0.06)[0], color=BLUE, lw=2.5)
curve.set(title="Their quotient", xlabel="x", ylabel="y")
plt.show()

# %%
# Attention
# ---------
#
# The kernel of transformers is :math:`e^{q^\top k / \sqrt d}`. It depends on the component of a
# key along the query, not on the distance between both.

keys = rng.normal(size=(250, 2))
query = np.array([[1.2, 0.6]])

near, along = panels(sharex=True, sharey=True)
near.set_title("Gaussian: near keys")
along.set_title("Dot product: keys far along q")
for axis, kernel in [(near, "gaussian"), (along, "scaled_dot_product")]:
    share = attention_weights(query, keys, kernel, bandwidth=0.7)[0]
    axis.scatter(*keys.T, s=8 + 1500 * share, color=BLUE, alpha=0.5, lw=0)
    axis.annotate("", query[0], (0, 0), arrowprops={"color": ORANGE, "width": 2})
    axis.set(aspect="equal", xlim=(-4, 4.5), ylim=(-4, 4))
plt.show()

# %%
# The sphere of LayerNorm
# -----------------------
#
# Layer normalisation subtracts the mean of each token and scales it to norm :math:`\sqrt d`: in
# three dimensions all tokens lie on a circle, and the weights of the two kernels agree.

tokens = rng.normal(size=(60, 3)) * [2, 1, 0.5] + [0.5, 1, 0]
centred = tokens - tokens.mean(axis=1, keepdims=True)
normal = np.sqrt(3) * centred / np.linalg.norm(centred, axis=1, keepdims=True)
plane = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])

circle, agreement = panels()
circle.plot(*(plane @ centred.T), "o", color=GREY, ms=4)
circle.plot(*(plane @ normal.T), "o", color=BLUE, ms=6)
circle.set(title="Tokens before and after", aspect="equal")
for some, color, name in [(tokens, GREY, "before"), (normal, BLUE, "normalised")]:
    softmax = attention_weights(some[:12], some, "scaled_dot_product")
    gaussian = attention_weights(some[:12], some, "gaussian", bandwidth=3**0.25)
    agreement.loglog(gaussian.ravel(), softmax.ravel(), "o", color=color, ms=4, label=name)
agreement.set(title="Weights of both kernels", xlabel="Gaussian", ylabel="softmax")
agreement.set(xlim=(1e-4, 1), ylim=(1e-4, 1))
agreement.legend(frameon=False)
plt.show()

# %%
# Heads and layers
# ----------------
#
# A layer moves every token towards an average of tokens, and the next layer compares the moved
# tokens. With a Gaussian kernel and no projections this is the mean-shift algorithm.

centres = np.repeat([[-2, 0], [2, 0.5], [0, 2.5]], 40, axis=0)
layers = [centres + 0.8 * rng.normal(size=(120, 2))]
for _ in range(3):
    layers.append(attend(layers[-1], layers[-1], layers[-1], bandwidth=0.8)[0])

titles = ["Tokens", "One layer", "Two", "Three"]
for axis, tokens, title in zip(
    panels(4, sharex=True, sharey=True), layers, titles, strict=True
):
    axis.plot(*tokens.T, "o", color=BLUE, ms=4, alpha=0.6)
    axis.set(title=title, aspect="equal")
plt.show()

# %%
# Forecasts and language
# ----------------------
#
# The past is cut into windows. A prediction averages the values that followed similar windows:
# numbers in a series, indicators of letters in a text.

past = make_periodic_series("sine", 360) + 0.2 * rng.normal(size=360)
forecaster = KernelForecaster(horizon=60, lookback=30).fit(past)
text = "the cat sat on the mat and the cat saw the rat near the hat " * 4
before = pd.DataFrame([list(text[i : i + 3]) for i in range(len(text) - 3)])
language = NadarayaWatsonClassifier(bandwidth=0.1).fit(before, list(text[3:]))
chances = language.predict_proba(pd.DataFrame([list("he ")]))[0]

future, letters = panels(width_ratios=[1.6, 1])
future.plot(past, color=GREY, lw=1.5)
future.plot(np.arange(360, 420), forecaster.predict(), color=BLUE, lw=2.5)
windows = forecaster.explain(k=5)
for row in windows.itertuples():
    strength = 0.6 * row.weight / windows["weight"].max()
    future.axvspan(row.time - 29, row.time, color=ORANGE, alpha=strength, lw=0)
future.axvspan(330, 359, fill=False, edgecolor=INK)
future.set(title="Similar windows, and the forecast", xlabel="step")
letters.bar(language.classes_[chances > 0.01], chances[chances > 0.01], color=BLUE)
letters.set(title='After "he "', ylabel="probability")
plt.show()

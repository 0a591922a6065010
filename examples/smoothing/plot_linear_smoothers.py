r"""
==========================
Every smoother is a matrix
==========================

Draw smoothers and least squares as matrices, and read their degrees of freedom.

Local averages, local lines, nearest neighbours and ordinary least squares have one form:
each prediction is a weighted sum of the training targets,

.. math:: \hat m(x) = \sum_i \alpha_i(x)\, y_i ,

with weights that depend on the features of the rows but not on the targets. The weights
describe the smoother completely.
"""

# %%
# Five smoothers of one data set
# ------------------------------
#
# The curve has a slope at both edges. The three local polynomials have the same bandwidth and
# differ only in their degree. A boxcar kernel that extends to the ninth neighbour averages nine
# rows. Least squares is a local line in a boxcar so wide that all rows have the same weight
# for every query.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.inspection import STYLE

rng = np.random.default_rng(7)
n = 60
X = (np.arange(n)[:, None] + rng.uniform(size=(n, 1))) / n
truth = np.sin(7 * X[:, 0] + 0.4) + 2 * X[:, 0]
y = truth + 0.3 * rng.normal(size=n)

h = 0.07
models = {
    "averages": NadarayaWatsonRegressor(bandwidth=h),
    "lines": LocalPolynomialRegressor(bandwidth=h, degree=1),
    "parabolas": LocalPolynomialRegressor(bandwidth=h, degree=2),
    "nearest neighbours": NadarayaWatsonRegressor("boxcar", bandwidth=AdaptiveBandwidth(9)),
    "least squares": LocalPolynomialRegressor("boxcar", bandwidth=2.0, degree=1),
}
matrices = {name: model.fit(X, y).smoother_matrix(X) for name, model in models.items()}

# %%
# A row of the smoother matrix :math:`S` contains the weights of one prediction, and
# :math:`S y` the predictions of all training rows. Two of the matrices have another
# well-known form. That of least squares is the hat matrix
# :math:`A (A^\top A)^{-1} A^\top`, where :math:`A` has a column of ones and the feature.

A = np.column_stack([np.ones(n), X])
hat = A @ np.linalg.inv(A.T @ A) @ A.T
differences = {
    "S y from predict": [S @ y - models[name].predict(X) for name, S in matrices.items()],
    "least squares from the hat matrix": matrices["least squares"] - hat,
    "S y from LinearRegression": matrices["least squares"] @ y
    - LinearRegression().fit(X, y).predict(X),
    "S y from KNeighborsRegressor": matrices["nearest neighbours"] @ y
    - KNeighborsRegressor(9).fit(X, y).predict(X),
}
print("largest differences")
for what, difference in differences.items():
    print(f"    {what:<36}{np.abs(difference).max():.0e}")

# %%
# The trace of :math:`S` is the sum of the weights of all rows in their own predictions. For
# least squares it is the number of coefficients, and for all smoothers it is called the
# *effective degrees of freedom*.

INK, GREY = "#25313d", "#8a949e"
COLORS = ["C1", "C0", "C2", "C3", "C5"]
plt.rcParams.update(STYLE)

grid = np.linspace(0, 1, 501)[:, None]
figure, axes = plt.subplots(
    1, 5, figsize=(14, 3.6), layout="constrained", sharex=True, sharey=True
)
for axis, (name, model), color in zip(axes, models.items(), COLORS, strict=True):
    axis.scatter(X, y, s=14, color=GREY, alpha=0.6, lw=0)
    axis.plot(X, truth, color=INK, lw=1, ls="--")
    axis.plot(grid, model.predict(grid), color=color, lw=2)
    axis.set_title(name.capitalize())
    axis.text(0.03, 2.75, f"tr S = {np.trace(matrices[name]):.1f}", color=color)
    axis.set(xlabel="x", xticks=[0, 0.5, 1], ylim=(None, 3.1))
axes[0].set_ylabel("y")
plt.show()

# %%
# Weights in the middle and at the edge
# -------------------------------------
#
# In the middle, local averages and local lines have the same weights: those of the kernel,
# symmetric about the query. At the edge half of the kernel is cut off: all rows of the average
# lie to the right of the query, and since the curve has a slope there, the average is biased.
# The weights of the line correct this bias: they are larger for rows at the edge, and negative
# for rows further in, from whose targets the line extrapolates. A parabola has negative
# weights everywhere. Least squares has no neighbourhood: at the edge every row has weight,
# and that of the farthest ones is negative.

figure, axes = plt.subplots(2, 5, figsize=(14, 5), layout="constrained", sharex=True)
places = {"middle": 0.5, "edge": 0.0}
for (where, place), row in zip(places.items(), axes, strict=True):
    for axis, model, color in zip(row, models.values(), COLORS, strict=True):
        weights = model.smoother_matrix([[place]])[0]
        axis.axhline(0, color=GREY, lw=0.8)
        axis.axvline(place, color=GREY, lw=1, ls=":")
        axis.vlines(X, 0, 100 * weights, color=color, lw=1.3)
        axis.set(xticks=[0, 0.5, 1])
        axis.locator_params(axis="y", nbins=5)
    row[0].set_ylabel(f"weight (%) in the {where}" if place else "weight (%) at the edge")
for axis, name in zip(axes[0], models, strict=True):
    axis.set_title(name.capitalize())
for axis in axes[1]:
    axis.set_xlabel("x")
plt.show()

# %%
# The bias follows from the moments of the weights,
# :math:`\sum_i \alpha_i(x) (x_i - x)^k`. All weights sum to 1, so smoothers reproduce
# constants. If the first moment is 0, they reproduce lines; if the second is 0 too, parabolas,
# at the edge as elsewhere. The moments of an average are not 0.

print("moments of the weights at the edge")
for name, model in models.items():
    weights = model.smoother_matrix([[0.0]])[0]
    moments = [weights @ X[:, 0] ** k for k in range(3)]
    print(f"    {name:<20}" + "".join(f"{moment:9.4f}" for moment in moments))

# %%
# From many degrees of freedom to few
# -----------------------------------
#
# With a small bandwidth every row predicts itself, and the trace is the number of rows.
# With a large one the local polynomial is the global one, and the trace is the number of
# its coefficients. ``effective_dof_`` computes it without the matrix.

bandwidths = np.geomspace(2e-3, 2, 40)
figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
for degree, name, color in zip(range(3), models, COLORS, strict=False):
    freedom = [
        LocalPolynomialRegressor(bandwidth=b, degree=degree).fit(X, y).effective_dof_
        for b in bandwidths
    ]
    axis.plot(bandwidths, freedom, color=color, lw=2.2, label=name)
    axis.axhline(degree + 1, color=color, lw=0.8, ls=":")
axis.axvline(h, color=GREY, lw=1, ls=":")
axis.set(title="Effective degrees of freedom", xlabel="bandwidth", xscale="log", yscale="log")
axis.set_yticks([1, 2, 3, 5, 10, 20, 50], ["1", "2", "3", "5", "10", "20", "50"])
axis.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
axis.minorticks_off()
axis.legend(frameon=False, loc="upper right")
plt.show()

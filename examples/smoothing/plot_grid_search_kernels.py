"""
===============================================
Choose kernel and bandwidth by cross-validation
===============================================

Choose the kernel and the bandwidth of a smoother by cross-validation in a pipeline.

A Nadaraya-Watson regressor predicts a weighted average of the training targets, with the
weights of a kernel. The kernel and its bandwidth are ordinary parameters, so
:class:`~sklearn.model_selection.GridSearchCV` chooses them, here in a pipeline that
standardises the features.
"""

# %%
# Two data sets
# -------------
#
# Both come with scikit-learn. The 178 wines are of three cultivars, each a cluster of similar
# wines; the task is to predict the proline in a wine, an amino acid, from the other twelve
# measurements. The diabetes target depends almost linearly on ten features.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import NadarayaWatsonRegressor
from sklearn_attention.inspection import STYLE

wine = load_wine().data
data_sets = {"wine": (wine[:, :12], wine[:, 12]), "diabetes": load_diabetes(return_X_y=True)}

# %%
# Three models, one protocol
# --------------------------
#
# Each model is tuned by cross-validation within the training rows and scored on rows outside
# its search. Kernel ridge has no intercept, so its target is centred.

kernels, bandwidths = ["gaussian", "laplacian", "epanechnikov"], np.geomspace(0.25, 8, 16)
penalties, gammas = np.geomspace(1e-3, 1, 4), np.geomspace(1e-4, 0.1, 4)
sizes, votes = [2, 4, 8, 12, 18, 25, 35, 50, 70], ["uniform", "distance"]
ridge = TransformedTargetRegressor(KernelRidge(kernel="rbf"), transformer=StandardScaler())


def tuned(model, **grid):
    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
    grid = {f"model__{name}": values for name, values in grid.items()}
    folds = KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(pipeline, grid, cv=folds, scoring="r2", n_jobs=2)


models = {
    "Nadaraya-Watson": tuned(NadarayaWatsonRegressor(), kernel=kernels, bandwidth=bandwidths),
    "nearest neighbours": tuned(KNeighborsRegressor(), n_neighbors=sizes, weights=votes),
    "kernel ridge": tuned(ridge, regressor__alpha=penalties, regressor__gamma=gammas),
}
splits = KFold(5, shuffle=True, random_state=1)
scores = {}
for data, (X, y) in data_sets.items():
    for name, model in models.items():
        r2 = scores[data, name] = cross_val_score(model, X, y, cv=splits, scoring="r2")
        print(f"{data:<10}{name:<20}R² {r2.mean():.3f} ± {r2.std():.3f} over the splits")

# %%
# The wines form clusters, which suits a local average: the three models differ by far less than
# the spread over the splits. On the diabetes data kernel ridge is better: few patients are
# similar in all ten features, so a local average needs a wide kernel.
#
# One prediction explained
# ------------------------
#
# For a wine that was held out, ``explain`` returns the training wines that its prediction
# averages, and their weights.

X_train, X_test, y_train, y_test = train_test_split(*data_sets["wine"], random_state=0)
search = models["Nadaraya-Watson"].fit(X_train, y_train)
scaler, smoother = search.best_estimator_
query = scaler.transform(X_test[:1])
indices, weights, values = (part[0] for part in smoother.explain(query, k=len(X_train)))
prediction, observed = weights @ values, y_test[0]
print(f"{prediction:.0f} mg/l predicted, {observed:.0f} mg/l observed")

# %%
# The figure
# ----------
#
# Left: scores of the search over the bandwidth, in standard deviations of the features. A
# narrow kernel predicts the value of the nearest wine, a wide one the mean of all. Middle:
# held-out scores, one dot for each split. Right: the training wines in the plane of their first
# two principal components, with areas by weight; the prediction averages their colours.

INK, GREY, COLORS = "#25313d", "#8a949e", ["C0", "C1", "C2"]
plt.rcParams.update(STYLE)
layout = {"layout": "constrained", "width_ratios": [7, 5, 8]}
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.8), **layout)

for kernel, color in zip(kernels, COLORS, strict=True):
    tried = search.cv_results_["param_model__kernel"] == kernel
    r2 = search.cv_results_["mean_test_score"][tried]
    left.plot(bandwidths, r2, color=color, lw=2.2, label=kernel)
    left.plot(bandwidths[r2.argmax()], r2.max(), "o", ms=8, mfc="white", mec=color, mew=2.2)
left.semilogx(base=2)
left.set(ylim=(0, 0.7), title="The search", xlabel="bandwidth", ylabel="cross-validated R²")
left.xaxis.set_major_formatter("{x:g}")
left.text(0.25, 0.31, "nearest wine", color=GREY)
left.legend(frameon=False, loc="lower left")

for row, ((_, name), r2) in zip([0, 1, 2, 4, 5, 6], scores.items(), strict=True):
    color = INK if name == "Nadaraya-Watson" else GREY
    middle.plot(r2, [row] * len(r2), "o", ms=7, color=color, alpha=0.35, mew=0)
    middle.plot(r2.mean(), row, "|", ms=22, mew=3, color=color)
    middle.text(0.9, row, f"{r2.mean():.2f}", va="center", ha="right", color=color)
middle.text(0.3, -0.8, "wine", weight="bold", va="center")
middle.text(0.3, 3.2, "diabetes", weight="bold", va="center")
middle.set_yticks([0, 1, 2, 4, 5, 6], [name for _, name in scores])
middle.tick_params(axis="y", length=0)
middle.spines["left"].set_visible(False)
middle.set(xlim=(0.3, 0.9), ylim=(6.6, -1.2), title="The comparison", xlabel="held-out R²")

plane = PCA(2).fit(smoother.keys_)
places, place = plane.transform(smoother.keys_[indices]), plane.transform(query)
style = {"cmap": "viridis", "vmin": y_train.min(), "vmax": y_train.max(), "lw": 0.8}
points = right.scatter(*places.T, s=14 + 5000 * weights, c=values, ec="white", **style)
right.scatter(*place.T, s=500, c=[prediction], marker="*", ec=INK, **style)
right.text(-4, 4.4, f"★ {prediction:.0f} mg/l predicted\n    {observed:.0f} mg/l observed")
right.set(ylim=(-4, 5.4), title="One prediction", xlabel="axis 1", ylabel="axis 2")
figure.colorbar(points, label="proline (mg/l)", aspect=30).outline.set_visible(False)

plt.show()

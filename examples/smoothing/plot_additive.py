"""
======================================
Ten features, of which a sum needs two
======================================

Fit a sum of curves, one for each feature, where rows are few for ten features.

A local polynomial in ten features needs many rows: few of them are near each other in all
features. If the target is mainly a sum of functions of single features, these functions can be
learned from far fewer rows. :class:`~sklearn_attention.LocalPolynomialRegressor` has both, and
lets leave-one-out errors decide how much of each is in the prediction.
"""

# %%
# The data
# --------
#
# Two of the ten features matter: one as a wave, the other as half of a parabola.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.inspection import STYLE, SmoothDisplay

rng = np.random.default_rng(0)


def mean_of(X):
    return np.sin(2 * np.pi * X[:, 0]) + 2 * X[:, 1] ** 2


X, new = rng.uniform(size=(400, 10)), rng.uniform(size=(2000, 10))
y = mean_of(X) + 0.4 * rng.normal(size=len(X))

# %%
# Joint, additive, or both
# ------------------------
#
# The additive stage is a ridge regression, which takes hundredths of a second. By default
# (``structure="auto"``) a joint smoother of its residuals looks for what is no sum.

models = {
    structure: LocalPolynomialRegressor(structure=structure).fit(X, y)
    for structure in ("joint", "auto", "additive")
}
for structure, model in models.items():
    error = np.sqrt(np.mean((model.predict(new) - mean_of(new)) ** 2))
    print(f"{structure:9} error {error:.3f}, weight of the sum {model.additive_share_:.2f}")

# %%
# What each feature adds
# ----------------------
#
# The importance of a feature is the standard deviation of its component over the rows. The
# penalties, which restricted maximum likelihood chooses, leave hardly anything of the
# eight features that do not matter.

model = models["auto"]
print(model.components_.round(3).to_string(index=False))

# %%
# The components with their bands of 90 %. The points are partial residuals: the component plus
# what the sum of all components does not explain. The dashed lines are the true functions.

truths = [
    lambda x: np.sin(2 * np.pi * x),
    lambda x: 2 * x**2 - 2 / 3,
    lambda x: 0 * x,
]
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained", sharey=True)
for feature, (ax, truth) in enumerate(zip(axes, truths, strict=True)):
    display = SmoothDisplay.from_estimator(model, feature=feature, ax=ax)
    ax.plot(display.grid, truth(display.grid), color="black", lw=1, ls="--")

# %%
# The third component is 0, and so is its band: the chosen penalties leave it no variance. Bands
# hold for a component on average over its range, not at each place, and know nothing of
# interactions, which a sum cannot show.

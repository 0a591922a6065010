r"""
=======================================
LayerNorm as a projection and a scaling
=======================================

See in three dimensions what layer normalisation does to vectors, and how it helps attention.

Layer normalisation subtracts the mean of a vector and divides by its standard deviation. In
geometry (Brody, Alon and Yahav 2023) these steps are a projection onto the hyperplane
orthogonal to :math:`(1, \dots, 1)` and a scaling onto a sphere. Both help attention: after the
scaling each key has the largest weight for some query, and after the projection one query gives
all keys the same weight.
"""

# %%
# The two steps
# -------------
#
# With the projection :math:`P = I - \tfrac1d \mathbf 1 \mathbf 1^\top` layer normalisation,
# without gain and bias, is :math:`\sqrt d\, P x / \lVert P x \rVert`. torch computes both steps
# together.

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.linalg import helmert
from scipy.optimize import linprog

from sklearn_attention import attention_weights
from sklearn_attention.inspection import STYLE


def layer_norm_steps(keys):
    """Return keys (n_keys, d) after the projection, and after projection and scaling."""
    projected = keys - keys.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    return projected, np.sqrt(keys.shape[1]) * projected / lengths


keys = np.random.default_rng(0).normal(size=(14, 4)) + 0.5
projected, scaled = layer_norm_steps(keys)
by_torch = torch.nn.functional.layer_norm(torch.from_numpy(keys), (4,), eps=0).numpy()
print(f"largest difference from torch: {np.abs(scaled - by_torch).max():.1e}")
print("norms after both steps:", np.unique(np.linalg.norm(scaled, axis=1).round(12)))

# %%
# Keys that no query selects
# --------------------------
#
# A query selects the key with the largest dot product. By Farkas' lemma no query selects a key
# that is an average of other keys, that is, in their convex hull, which a linear programme
# decides. On a sphere no point is an average of others.


def is_unselectable(keys):
    """Return, for each of keys (n_keys, d), whether it is in the convex hull of the others."""
    result = []
    for i, key in enumerate(keys):
        others = np.delete(keys, i, axis=0)
        # Weights of the others that sum to 1 and whose average is the key.
        equations = np.vstack([others.T, np.ones(len(others))])
        solution = linprog(np.zeros(len(others)), A_eq=equations, b_eq=np.append(key, 1.0))
        result.append(solution.status == 0)
    return np.array(result)


# %%
# Keys have four numbers, so that the hyperplane has three dimensions and can be drawn. Crosses
# are keys that no query selects ("cannot win"); after the scaling there are none.

basis = helmert(4)  # orthonormal rows, orthogonal to (1, 1, 1, 1)
turn, height = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
sphere = np.cos(turn) * np.sin(height), np.sin(turn) * np.sin(height), np.cos(height)
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1, 2, figsize=(8.4, 4.6), layout="constrained", subplot_kw={"projection": "3d"}
    )
    parts = {"projected": projected, "projected and scaled": scaled}
    for ax, (title, part) in zip(axes, parts.items(), strict=True):
        lost = is_unselectable(part)
        ax.scatter(*(part[~lost] @ basis.T).T, s=36, label="can win")
        ax.scatter(*(part[lost] @ basis.T).T, s=48, c="#d55e00", marker="x", label="cannot win")
        ax.set_title(f"{title}: {lost.sum()} cannot win", fontsize="small")
        ax.set_axis_off()
    axes[1].plot_wireframe(*(2 * np.array(sphere)), color="#8a949e", lw=0.4, alpha=0.5)
    for ax in axes:
        ax.set(aspect="equal")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %%
# In more dimensions fewer keys lie in the convex hull of the others, but of many keys some do.

for d in (4, 8, 16):
    many = np.random.default_rng(1).normal(size=(200, d))
    before, after = (is_unselectable(part).mean() for part in (many, layer_norm_steps(many)[1]))
    print(f"{d:>2} numbers: {before:4.0%} of 200 keys cannot win, {after:.0%} after LayerNorm")

# %%
# Equal weights
# -------------
#
# To count, to find a majority or to take a mean, a query must give all keys the same weight. It
# must be orthogonal to all differences of keys, and in general only 0 is. After the projection
# the query :math:`(1, \dots, 1)` is orthogonal to every key of every set, so it need not be
# learned for each set.

query = 3.0 * np.ones((1, 4))
weights = {
    "original keys": attention_weights(query, keys, "scaled_dot_product")[0],
    "projected keys": attention_weights(query, projected, "scaled_dot_product")[0],
}
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained", sharey=True)
    for ax, (title, row) in zip(axes, weights.items(), strict=True):
        ax.bar(range(len(row)), row)
        ax.set(title=title, xlabel="key")
    axes[0].set_ylabel("weight of the query (1, ..., 1)")
plt.show()

r"""
=======================================
LayerNorm as a projection and a scaling
=======================================

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
# Keys have four numbers, so that the hyperplane has three dimensions and can be drawn. torch
# computes both steps together.

import matplotlib.pyplot as plt
import numpy as np
import torch

from sklearn_attention import attention_weights
from sklearn_attention.inspection import (
    STYLE,
    LayerNormDisplay,
    layer_norm_decomposition,
    unselectable_keys,
)

keys = np.random.default_rng(0).normal(size=(14, 4)) + 0.5
projected, scaled = layer_norm_decomposition(keys)
by_torch = torch.nn.functional.layer_norm(torch.from_numpy(keys), (4,), eps=0).numpy()
print(f"largest difference from torch: {np.abs(scaled - by_torch).max():.1e}")
print("norms after both steps:", np.unique(np.linalg.norm(scaled, axis=1).round(12)))

# %%
# Keys that no query selects
# --------------------------
#
# A query selects the key with the largest dot product. No query selects a key in the convex
# hull of other keys, that is, an average of them. On a sphere no point is an average of others.
# Crosses are keys that no query selects ("cannot win"); after the scaling there are none.

display = LayerNormDisplay.from_vectors(keys)
plt.show()

# %%
# In more dimensions fewer keys lie in the convex hull of the others, but of many keys some do.

for d in (4, 8, 16):
    many = np.random.default_rng(1).normal(size=(200, d))
    both = many, layer_norm_decomposition(many).scaled
    before, after = (unselectable_keys(own).mean() for own in both)
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
    for ax, (title, own) in zip(axes, weights.items(), strict=True):
        ax.bar(range(len(own)), own)
        ax.set(title=title, xlabel="key")
    axes[0].set_ylabel("weight of the query (1, ..., 1)")
plt.show()

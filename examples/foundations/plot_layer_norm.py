r"""
=================
What LayerNorm is
=================

Layer normalisation takes the mean of a vector away and divides by the deviation. As geometry
(Brody, Alon and Yahav 2023) these are a projection, onto the hyperplane orthogonal to
:math:`(1, \dots, 1)`, and a scaling, onto a sphere. Both help attention: after the scaling
every key can win, and after the projection there is a query to which all keys are alike.
"""

# %%
# A projection and a scaling
# --------------------------
#
# Keys of four numbers, so that the hyperplane is a space that can be seen. The two steps
# together are what torch computes.

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
# Every key can win
# -----------------
#
# A query selects the key with which its dot product is largest. A key that is an average of
# other keys is never that one, whatever the query: it lies in their convex hull. On a sphere
# no point is an average of others. The crosses are keys that cannot win; after the scaling
# there are none.

display = LayerNormDisplay.from_vectors(keys)
plt.show()

# %%
# In more dimensions fewer keys lie within the hull of the others, but of many keys some do.

for d in (4, 8, 16):
    many = np.random.default_rng(1).normal(size=(200, d))
    both = many, layer_norm_decomposition(many).scaled
    before, after = (unselectable_keys(own).mean() for own in both)
    print(f"{d:>2} numbers: {before:4.0%} of 200 keys cannot win, {after:.0%} after LayerNorm")

# %%
# Equal attention is easy
# -----------------------
#
# To count, to find a majority or to take a mean, a query has to look at all keys alike.
# Without the projection such a query must be orthogonal to all differences of keys, which no
# query but 0 is as a rule. After it the query :math:`(1, \dots, 1)` is orthogonal to every
# key, whatever the keys are: it need not be learned for each set of keys anew.

query = 3.0 * np.ones((1, 4))
weights = {
    "keys as they are": attention_weights(query, keys, "scaled_dot_product")[0],
    "projected keys": attention_weights(query, projected, "scaled_dot_product")[0],
}
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained", sharey=True)
    for ax, (title, own) in zip(axes, weights.items(), strict=True):
        ax.bar(range(len(own)), own)
        ax.set(title=title, xlabel="key")
    axes[0].set_ylabel("weight of the query (1, ..., 1)")
plt.show()

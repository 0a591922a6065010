"""
==============================
Attention is kernel regression
==============================

Compute attention by kernel regression, and kernel regression by attention.

The attention of transformers and the regression of Nadaraya and Watson (1964) are the same
formula: a kernel compares the query with the keys, its values are divided by their sum, and
the result is the average with these weights. This example computes each by the code of the
other.
"""

# %%
# Kernel regression, computed by attention
# ----------------------------------------
#
# The Gaussian kernel compares a query :math:`q` with a key :math:`k`, both in units of the
# bandwidth, by
#
# .. math:: -\tfrac12 \lVert q - k \rVert^2 =
#           q^\top k - \tfrac12 \lVert k \rVert^2 - \tfrac12 \lVert q \rVert^2 .
#
# The last term is the same for all keys and cancels when the weights are divided by their
# sum. The rest is the dot product of the query with a further entry 1, and the key with a
# further entry :math:`-\lVert k \rVert^2 / 2`. So the attention function of torch computes
# kernel regression.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from sklearn_attention import NadarayaWatsonRegressor, attend, attention_weights
from sklearn_attention.datasets import make_smoothing_curve
from sklearn_attention.inspection import STYLE

X, y = make_smoothing_curve(
    "heavisine", 80, signal_to_noise=4, design="uniform", random_state=0
)
grid = np.linspace(0, 1, 200)[:, None]
h = 0.03

queries = np.column_stack([grid / h, np.ones(len(grid))])
keys = np.column_stack([X / h, -0.5 * (X / h) ** 2])
batch = [torch.from_numpy(part)[None] for part in (queries, keys, y[:, None])]
by_attention = scaled_dot_product_attention(*batch, scale=1.0)[0, :, 0].numpy()

by_regression = NadarayaWatsonRegressor(bandwidth=h).fit(X, y).predict(grid)
by_attend, _ = attend(grid, X, y, "gaussian", bandwidth=h)
weights = attention_weights(grid, X, "gaussian", bandwidth=h)

print("largest difference from scaled_dot_product_attention")
print(f"    NadarayaWatsonRegressor:    {np.abs(by_regression - by_attention).max():.1e}")
print(f"    attend:                     {np.abs(by_attend - by_attention).max():.1e}")
print(f"    attention_weights @ values: {np.abs(weights @ y - by_attention).max():.1e}")

# %%
# Left: both curves, which coincide. Right: the attention map of this regression, with a row for
# each query and a column for each key. Each row sums to 1 and is the kernel, centred at the
# query; where keys are sparse, each of them has more weight.

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[1.25, 1]
)
left.scatter(X, y, s=22, color=GREY, alpha=0.6, lw=0, label="keys and values")
left.plot(grid, by_regression, color=BLUE, lw=3, label="Nadaraya-Watson")
left.plot(grid, by_attention, color=ORANGE, lw=2, ls=(0, (2, 3)), label="attention")
left.set(ylim=(-9, 9), title="The same curve", xlabel="x", ylabel="y")
left.legend(frameon=False, loc="upper right")
picture = right.pcolormesh(np.arange(80), grid[:, 0], 100 * weights, cmap="Blues", vmax=30)
figure.colorbar(picture, label="weight (%)", extend="max").outline.set_visible(False)
right.set(title="Its attention map", xlabel="number of the key", ylabel="query x")
right.invert_yaxis()
plt.show()

# %%
# Attention, computed by kernel regression
# ----------------------------------------
#
# The weights of transformers are the softmax of :math:`q^\top k / \sqrt d`, without the term of
# the key's norm. If all keys have the same norm, for instance after layer normalisation, that
# term cancels too: the weights are those of a Gaussian kernel with the squared bandwidth
# :math:`\sqrt d`, so :math:`h = d^{1/4}` (Song et al. 2021, *Implicit kernel attention*). With
# keys of different norm the weights differ: they are large for keys of large norm in the
# direction of the query, and those of the Gaussian for keys near the query.

d = 16
rng = np.random.default_rng(0)
query, free_keys = rng.normal(size=(1, d)), rng.normal(size=(400, d))
equal_keys = np.sqrt(d) * free_keys / np.linalg.norm(free_keys, axis=1, keepdims=True)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharey=True)
for axis, keys, title in [
    (axes[0], equal_keys, "Keys of one norm"),
    (axes[1], free_keys, "Keys of any norm"),
]:
    softmax = attention_weights(query, keys, "scaled_dot_product")[0]
    gaussian = attention_weights(query, keys, "gaussian", bandwidth=d**0.25)[0]
    print(f"{title}: largest difference of the weights {np.abs(softmax - gaussian).max():.1e}")
    norms = np.linalg.norm(keys, axis=1)
    ends = np.array([min(softmax.min(), gaussian.min()), max(softmax.max(), gaussian.max())])
    axis.plot(100 * ends, 100 * ends, color=GREY, lw=1, zorder=0)
    points = axis.scatter(
        100 * gaussian, 100 * softmax, c=norms, s=26, lw=0, cmap="viridis", vmin=2, vmax=6
    )
    axis.set(title=title, xscale="log", yscale="log", xlabel="Gaussian weight (%)")
axes[0].set_ylabel("softmax weight (%)")
figure.colorbar(points, ax=axes, label="norm of the key").outline.set_visible(False)
plt.show()

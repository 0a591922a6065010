r"""
=====================================
Linear attention with random features
=====================================

Compute attention in linear time, and see how its error depends on the number of features.

With a kernel that is a dot product of features, :math:`K(q, k) = \phi(q)^\top \phi(k)`, the
weighted average can be computed in another order:

.. math:: \frac{\sum_i \phi(q)^\top \phi(k_i)\, v_i}{\sum_i \phi(q)^\top \phi(k_i)}
          = \frac{\phi(q)^\top \sum_i \phi(k_i)\, v_i^\top}{\phi(q)^\top \sum_i \phi(k_i)}

The sums on the right do not depend on the query. They are computed once, and each query needs a
product with them, so time is linear in the number of tokens, not quadratic. The softmax of
transformers has no such features of finite number, but unbiased random ones. This example
measures their error.
"""

# %%
# Two kinds of features
# ---------------------
#
# Positive features are exponentials :math:`e^{\omega^\top x}` along random directions,
# trigonometric ones are sines and cosines of :math:`\omega^\top x`, with a factor for the norm
# of each key. Directions are independent, or orthogonal in blocks. For all four the error of an
# average falls with the square root of the number of features. Orthogonal directions help from
# the first whole block on, here of 16 directions, which give 32 features.

import time

import matplotlib.pyplot as plt
import numpy as np
import torch

from sklearn_attention.inspection import STYLE
from sklearn_attention.kernels import PositiveFeatures, ScaledDotProduct, TrigonometricFeatures
from sklearn_attention.nn import attention

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

KINDS = {"positive": (PositiveFeatures, BLUE), "trigonometric": (TrigonometricFeatures, ORANGE)}
sizes = [16, 32, 64, 128, 256, 512, 1024]
generator = torch.Generator().manual_seed(0)
# Queries and keys of 16 entries; logits have a standard deviation of a quarter.
queries, keys = (torch.randn(1, 1, 300, 16, generator=generator).double() / 2 for _ in range(2))
values = keys + 0.5
exact, _ = attention(queries, keys, values)


def relative_error(kernel):
    """Median over queries and over draws of the directions."""
    draws = []
    for seed in range(10):
        average, _ = attention(queries, keys, values, kernel.set_params(random_state=seed))
        draws.append(((average - exact).norm(dim=-1) / exact.norm(dim=-1)).median().item())
    return np.median(draws)


figure, axis = plt.subplots(figsize=(8, 4.4), layout="constrained")
for name, (kind, color) in KINDS.items():
    for orthogonal, style in ((False, "--"), (True, "-")):
        errors = [relative_error(kind(size, orthogonal=orthogonal)) for size in sizes]
        label = f"{name}, {'orthogonal' if orthogonal else 'independent'}"
        axis.plot(sizes, 100 * np.array(errors), style, color=color, lw=2, label=label)
        print(f"{label:28s} {100 * errors[0]:5.1f} % to {100 * errors[-1]:4.1f} %")
guide = 100 * errors[0] * np.sqrt(sizes[0] / np.array(sizes)) / 4
axis.plot(sizes, guide, color=GREY, lw=1)
axis.text(sizes[1], guide[1] / 1.9, r"slope $-\frac{1}{2}$", color=GREY)
axis.set(xscale="log", yscale="log", xlabel="features", ylabel="relative error (%)")
axis.set_title("Error of attention")
axis.set_xticks(sizes[::2], [str(size) for size in sizes[::2]])
axis.set_yticks([1, 3, 10, 30], ["1", "3", "10", "30"])
axis.minorticks_off()
axis.legend(frameon=False, fontsize=9.5)
plt.show()

# %%
# For single keys: one query, and keys of the same norm at every angle to it. Positive features
# have small errors where the kernel is small and large ones where it is large; for
# trigonometric features it is the reverse, and they are exact for a key that equals the query.
# At angles between the errors are equal. Small weights by trigonometric features may be
# negative. So where the sum of the weights is not greater than its own standard error, the
# layers return 0.

angles = np.linspace(0, np.pi, 60)
length = 1.2 * 16**0.25
query = np.zeros((1, 16))
query[0, 0] = length
circle = np.zeros((60, 16))
circle[:, 0], circle[:, 1] = length * np.cos(angles), length * np.sin(angles)
truth = ScaledDotProduct()(query, circle)[0]
figure, axis = plt.subplots(figsize=(8, 4.4), layout="constrained")
for name, (kind, color) in KINDS.items():
    found = [kind(64, random_state=seed)(query, circle)[0] for seed in range(200)]
    spread = np.sqrt(np.mean((np.array(found) - truth) ** 2, axis=0))
    axis.fill_between(
        np.degrees(angles), truth - spread, truth + spread, color=color, alpha=0.3, lw=0,
        label=f"{name}, ± one standard error",
    )  # fmt: skip
axis.plot(np.degrees(angles), truth, color=INK, lw=1.8, label="exact")
axis.axhline(0, color=GREY, lw=0.8)
axis.set(xlabel="angle between query and key (°)", ylabel=r"$\exp(q^\top k / \sqrt{d})$")
axis.set_title("Kernel by 64 features")
axis.set_xticks([0, 45, 90, 135, 180])
axis.legend(frameon=False, fontsize=9.5)
plt.show()

# %%
# Time against length
# -------------------
#
# The fused kernel of torch computes the exact average; its time grows with the square of the
# length. The time with features is linear but has a higher constant: short sequences are faster
# without them.

lengths = [512, 1024, 2048, 4096, 8192]
ways = {
    "exact": ("scaled_dot_product", INK),
    "64 features": (PositiveFeatures(64), BLUE),
    "256 features": (PositiveFeatures(256), "C4"),
}


def seconds(kernel, heads, causal):
    """The best of three runs."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        attention(*heads, kernel, causal=causal)
        taken.append(time.process_time() - start)
    return min(taken)


figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
for axis, causal in zip(axes, (False, True), strict=True):
    for name, (kernel, color) in ways.items():
        taken = []
        for length in lengths:
            heads = [torch.randn(1, 1, length, 32, generator=generator) for _ in range(3)]
            with torch.inference_mode():
                taken.append(seconds(kernel, heads, causal))
        axis.plot(lengths, 1000 * np.array(taken), "o-", color=color, lw=2, ms=4, label=name)
        print(f"{name}, causal {causal}: {1000 * taken[-1]:.0f} ms for {lengths[-1]} steps")
    axis.set(xscale="log", yscale="log", xlabel="length (steps)")
    axis.set_title("Causal" if causal else "All steps")
    axis.set_xticks(lengths[::2], [f"{length:,}" for length in lengths[::2]])
    axis.minorticks_off()
axes[0].set_ylabel("processor time of one head (ms)")
axes[0].legend(frameon=False)
plt.show()

# %%
# The necessary number of features depends on the norms of queries and keys. If the softmax
# selects single keys, no affordable number is enough; if weights are spread over many keys,
# hundreds are. ``attention_kernel="positive_features"`` uses them in a transformer, and
# ``attention_kernel=PositiveFeatures(512)`` sets their number.

r"""
====================
Where a token stands
====================

Attention is an average, and an average does not know the order of what it averages. So a
transformer tells every token its position, by a vector that is added to the token or put
beside it. The classic vector has sines and cosines of the position,

.. math:: p_{t, 2k} = \sin(\omega_k t),\quad p_{t, 2k+1} = \cos(\omega_k t),\quad
          \omega_k = 10000^{-2k/d},

and this example looks at what it can say.
"""

# %%
# Hands of many clocks
# --------------------
#
# Every pair of columns is the hand of a clock, seen from two sides. The first clock goes
# round in :math:`2\pi` steps, each next one is slower, and the last ones hardly move in a
# hundred steps: together they say the time as seconds, minutes and hours do.

import matplotlib.pyplot as plt
import numpy as np
import torch

from sklearn_attention.inspection import STYLE
from sklearn_attention.nn import (
    MultiHeadAttention,
    SinusoidalPositions,
    attention,
    sinusoidal_encoding,
)
from sklearn_attention.nn._initialize import initialize

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

n_steps, width = 100, 128
encoding = sinusoidal_encoding(n_steps, width).numpy()  # (n_steps, width)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1.35, 1]
)
picture = left.imshow(encoding, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
left.set(title="The encoding", xlabel="column", ylabel="position (steps)")
figure.colorbar(picture, label="value").outline.set_visible(False)
for column, color in [(0, BLUE), (16, ORANGE), (40, INK), (80, GREY)]:
    right.plot(encoding[:, column], color=color, lw=1.8, label=f"column {column}")
right.set(title="Four of its columns", xlabel="position (steps)", ylim=(-1.15, 1.6))
right.set_yticks([-1, 0, 1])
right.legend(frameon=False, ncols=2, loc="upper right")
plt.show()

# %%
# A step is the same turn everywhere
# ----------------------------------
#
# Moving on by :math:`\Delta` steps turns the hand of clock :math:`k` by the angle
# :math:`\omega_k \Delta`, wherever it stood. That is a linear map, the same for all positions,
# so a layer can learn to look a given number of steps back. And two positions have a dot
# product that depends on their distance alone: it is largest for a position with itself.

shift = 7
angles = shift * 10_000.0 ** (-np.arange(0, width, 2) / width)
turn = np.zeros((width, width))
for k, angle in enumerate(angles):
    turn[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [
        [np.cos(angle), np.sin(angle)],
        [-np.sin(angle), np.cos(angle)],
    ]
moved = encoding[:-shift] @ turn.T
error = np.abs(moved - encoding[shift:]).max()
print(f"one matrix moves all positions by {shift} steps, largest error {error:.1e}")

x = torch.from_numpy(encoding)[None, None]  # (B, n_heads, n_steps, width)
_, weights = attention(x, x, x, "scaled_dot_product", need_weights=True)
products = encoding @ encoding.T

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[1.35, 1]
)
for position, color in [(20, BLUE), (50, ORANGE), (80, INK)]:
    left.plot(products[position], color=color, lw=1.8, label=f"position {position}")
left.set(
    title="Dot product with all positions",
    xlabel="position (steps)",
    ylabel="dot product",
    ylim=(10, 78),
)
left.legend(frameon=False, ncols=3, loc="upper left")
picture = right.imshow(100 * weights[0, 0].numpy(), cmap="Blues", vmin=0)
figure.colorbar(picture, label="weight (%)").outline.set_visible(False)
right.set(
    title="Attention of positions alone", xlabel="position of the key", ylabel="of the query"
)
plt.show()

# %%
# The map on the right is constant along its diagonals, but for its ends: such a matrix is
# called Toeplitz, and multiplying by it is a convolution. A transformer whose tokens were
# nothing but positions would be a moving average.
#
# What changes when nobody says where tokens stand
# ------------------------------------------------
#
# The same tokens in another order, with and without an encoding. Without, attention gives
# back the same answers in that order; it has not noticed. With an encoding, added to the
# token or beside it, it has.

generator = torch.Generator().manual_seed(0)
tokens = torch.randn(1, 30, 32, generator=generator)  # (B, T, d_model)
order = torch.randperm(30, generator=generator)


def order_matters(positions, d_model):
    layer = initialize(MultiHeadAttention(d_model, n_heads=4), generator)
    with torch.no_grad():
        straight, _ = layer(positions(tokens))
        shuffled, _ = layer(positions(tokens[:, order]))
    return (straight[:, order] - shuffled).abs().max().item()


print("largest change of an answer when tokens change places")
print(f"    no encoding:               {order_matters(torch.nn.Identity(), 32):.1e}")
print(f"    added, 32 wide:            {order_matters(SinusoidalPositions(32), 32):.1e}")
beside = SinusoidalPositions(16, combine="concatenate")
print(f"    beside the token, 16 wide: {order_matters(beside, 48):.1e}")

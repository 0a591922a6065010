r"""
====================
Positional encodings
====================

Draw how transformers encode the positions of tokens, and see that a shift is a rotation.

Attention is an average, which does not depend on the order of the tokens. So transformers
encode the position of every token in a vector, which they add to the token or concatenate with
it. The standard vector has sines and cosines of the position,

.. math:: p_{t, 2k} = \sin(\omega_k t),\quad p_{t, 2k+1} = \cos(\omega_k t),\quad
          \omega_k = 10000^{-2k/d},

and this example shows its properties.
"""

# %%
# Rotations at many frequencies
# -----------------------------
#
# Every pair of columns has the coordinates of a point that moves around a circle at constant
# speed. The period of the first pair is :math:`2\pi` steps; each next one is slower, and the
# last ones hardly move in a hundred steps.

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
# A shift is a rotation
# ---------------------
#
# A shift by :math:`\Delta` steps rotates pair :math:`k` by the angle :math:`\omega_k \Delta` at
# every position. This is one linear map for all positions, so a layer can learn to attend a
# given number of steps back. The dot product of two positions depends only on their distance,
# and is largest for a position with itself.

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
    title="Attention between positions", xlabel="position of the key", ylabel="of the query"
)
plt.show()

# %%
# Away from its ends the map on the right is constant along its diagonals, a Toeplitz matrix,
# and a product with it is a convolution. Attention between tokens that contain only positions
# is a moving average.
#
# Attention with and without positions
# ------------------------------------
#
# The same tokens in another order, with and without an encoding. Without one, the outputs of
# attention are the same in that order. With one, added or concatenated, they change.

torch.manual_seed(0)
tokens = torch.randn(1, 30, 32)  # (B, T, d_model)
order = torch.randperm(30)


def order_matters(positions, d_model):
    layer = MultiHeadAttention(d_model, n_heads=4)
    with torch.no_grad():
        straight, _ = layer(positions(tokens))
        shuffled, _ = layer(positions(tokens[:, order]))
    return (straight[:, order] - shuffled).abs().max().item()


print("largest change of an output when the order of tokens changes")
print(f"    no encoding:               {order_matters(torch.nn.Identity(), 32):.1e}")
print(f"    added, 32 wide:            {order_matters(SinusoidalPositions(32), 32):.1e}")
beside = SinusoidalPositions(16, combine="concatenate")
print(f"    concatenated, 16 wide:     {order_matters(beside, 48):.1e}")

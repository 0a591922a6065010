"""
============================
Classify digits as sequences
============================

Classify sequences of several channels, and see which steps the transformer attends to.

A handwritten digit of 8 by 8 pixels is a sequence of eight steps, its rows from the top, each
with eight channels. :class:`~sklearn_attention.TransformerClassifier` makes a token of every
row, applies self-attention, and classifies the mean of the tokens. It is compared with boosted
trees of the 64 pixels.
"""

# %%
# Sequences and tables
# --------------------
#
# ``X`` has three dimensions, ``(n_samples, n_steps, n_channels)``, so ``tokens="auto"`` makes
# tokens of steps. Sequences of different lengths are passed as a list of arrays.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from sklearn_attention import TransformerClassifier
from sklearn_attention.inspection import STYLE

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

X, y = load_digits(return_X_y=True)
X = X.reshape(-1, 8, 8)
train_X, test_X, train_y, test_y = train_test_split(
    X, y, test_size=0.25, random_state=0, stratify=y
)

start = time.perf_counter()
model = TransformerClassifier().fit(train_X, train_y)
seconds = time.perf_counter() - start
trees = HistGradientBoostingClassifier(random_state=0).fit(train_X.reshape(-1, 64), train_y)

errors = 1 - model.score(test_X, test_y)
errors_of_trees = 1 - trees.score(test_X.reshape(-1, 64), test_y)
print(f"errors, transformer: {errors:.1%}, fitted in {seconds:.0f} s")
print(f"errors, boosted trees: {errors_of_trees:.1%}")

# %%
# Shorter sequences
# -----------------
#
# Sequences may be shorter than those in training. Here the model predicts from the first rows
# of the test digits. Seven of the eight rows are as good as all.

shares = []
for n_rows in range(1, 9):
    # A list, as for sequences of different lengths.
    starts = [digit[:n_rows] for digit in test_X]
    shares.append(np.mean(model.predict(starts) == test_y))

# %%
# Attention weights
# -----------------
#
# ``attention_maps`` returns the weights of each layer and head. The figure has means over the
# heads of the last layer. Bars beside one digit of each class are the mean weights of each row,
# over all queries and all test digits of the class.

maps = model.attention_maps(test_X)  # (n, n_layers, n_heads, 8, 8)
print(maps.shape)
taken = maps[:, -1].mean(axis=(1, 2))  # (n, 8): weight of each row, mean over queries

fig = plt.figure(figsize=(10.5, 7.2), layout="constrained")
top, bottom = fig.subfigures(2, 1, height_ratios=[1.25, 1])
axes = top.subplots(2, 5)
for digit, ax in enumerate(axes.flat):
    of_digit = np.flatnonzero(test_y == digit)
    ax.imshow(test_X[of_digit[0]], cmap="Greys", extent=(0, 8, 8, 0))
    weight = taken[of_digit].mean(axis=0)
    ax.barh(np.arange(8) + 0.5, 25 * weight, left=9, height=0.8, color=BLUE)
    ax.set(xlim=(0, 20), ylim=(8, 0), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
top.suptitle("Mean weight of each row", x=0.01, ha="left", fontweight="bold")

left, right = bottom.subplots(1, 2, width_ratios=[1, 1.6])
image = left.imshow(maps[:, -1].mean(axis=(0, 1)), cmap="Blues", vmin=0)
left.set(title="Last layer, all digits", xlabel="key (row)", ylabel="query (row)")
left.spines[:].set_visible(False)
bottom.colorbar(image, ax=left, label="weight")
right.plot(range(1, 9), shares, "o-", color=BLUE, label="transformer, first rows")
right.axhline(1 - errors_of_trees, color=ORANGE, ls="--", label="boosted trees, all 64 pixels")
right.set(title="Accuracy from the first rows", xlabel="number of rows", ylim=(0, 1.02))
right.set_ylabel("accuracy")
right.legend(frameon=False, loc="lower right")
plt.show()

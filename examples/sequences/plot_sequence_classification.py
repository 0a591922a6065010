"""
======================
Digits read row by row
======================

A handwritten digit of 8 by 8 pixels is read as a sequence of eight steps, its rows from the
top, each with eight channels. :class:`~sklearn_attention.TransformerClassifier` makes a token
of every row, lets the tokens attend to each other, and names the digit by the mean of what
comes out. It competes with boosted trees that see all 64 pixels side by side.
"""

# %%
# Two ways to look at a digit
# ---------------------------
#
# ``X`` has three dimensions, ``(n_samples, n_steps, n_channels)``, and so ``tokens="auto"``
# takes steps for tokens. Sequences of different lengths would be a list of arrays.

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
print(f"errors, transformer: {errors:.1%}, learned in {seconds:.0f} s")
print(f"errors, boosted trees: {errors_of_trees:.1%}")

# %%
# Half a digit
# ------------
#
# A sequence may end sooner than those in training. Here the model sees only the first rows of
# the digits in the test. Seven of the eight rows are as good as all of them.

shares = []
for n_rows in range(1, 9):
    # A list, as it might be of sequences of all lengths.
    seen = [digit[:n_rows] for digit in test_X]
    shares.append(np.mean(model.predict(seen) == test_y))

# %%
# What the rows look at
# ---------------------
#
# ``attention_maps`` returns, for every layer and head, what each row averages. Shown is the
# mean over the heads of the last layer, for one digit of each kind and over all digits of that
# kind: the strength of a column is how much the other rows take from that row.

maps = model.attention_maps(test_X)  # (n, n_layers, n_heads, 8, 8)
print(maps.shape)
taken = maps[:, -1].mean(axis=(1, 2))  # (n, 8): from which row the others take

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
top.suptitle("How much all rows take from each row", x=0.01, ha="left", fontweight="bold")

left, right = bottom.subplots(1, 2, width_ratios=[1, 1.6])
image = left.imshow(maps[:, -1].mean(axis=(0, 1)), cmap="Blues", vmin=0)
left.set(title="Last layer, all digits", xlabel="row that is looked at", ylabel="row")
left.spines[:].set_visible(False)
bottom.colorbar(image, ax=left, label="weight")
right.plot(range(1, 9), shares, "o-", color=BLUE, label="transformer, first rows alone")
right.axhline(1 - errors_of_trees, color=ORANGE, ls="--", label="boosted trees, all 64 pixels")
right.set(title="How much of a digit it takes", xlabel="rows seen", ylim=(0, 1.02))
right.set_ylabel("share of digits named rightly")
right.legend(frameon=False, loc="lower right")
plt.show()

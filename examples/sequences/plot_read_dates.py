r"""
===============================
Translate dates between formats
===============================

Train a transformer that translates dates in eight formats into one, from examples alone.

"Saturday, 21 Nov 2026", "11/21/26" and "21.11.2026" are the same day. A transformer learns such
formats from examples, without a rule for each. Its encoder reads the characters of a text, and
its decoder writes the date in the format of ISO 8601, with attention to the text.
"""

# %%
# Dates in eight formats
# ----------------------

import datetime

import matplotlib.pyplot as plt
import numpy as np

from sklearn_attention import TransformerSeq2Seq
from sklearn_attention.inspection import STYLE

INK, GREY, BLUE = "#25313d", "#8a949e", "C0"
plt.rcParams.update(STYLE)

FORMATS = [
    "%A, %d %b %Y", "%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%m/%d/%y", "%b %d %Y", "%a %d %B %y",
    "%Y, %B %d",
]  # fmt: skip
rng = np.random.default_rng(0)
first = datetime.date(1980, 1, 1)
days = [first + datetime.timedelta(int(n)) for n in rng.integers(0, 25_000, 6000)]
texts = [day.strftime(rng.choice(FORMATS)) for day in days]
dates = [day.isoformat() for day in days]
for text, date in zip(texts[:4], dates[:4], strict=True):
    print(f"{text:30}{date}")

# %%
# Fit and accuracy
# ----------------
#
# The estimator fits lists of texts and predicts a list of texts. Most test days do not occur
# in the training set.

model = TransformerSeq2Seq("characters", d_model=64, n_layers=1)
model.fit(texts[500:], dates[500:])
written = model.predict(texts[:500])
right = np.array(written) == np.array(dates[:500])
print(f"{right.mean():.1%} of 500 dates are right")
model.predict(["Saturday, 21 Nov 2026", "11/21/26", "2026, November 21"])

# %%
# Cross-attention
# ---------------
#
# `attention_maps` has the weights of the cross-attention of the decoder: a row for each written
# character, the last for the end token, and a column for each character of the source. Here
# they are averaged over heads. The weights of year, month and day lie at their places in the
# text, which has another order.

sources = ["November 21, 2026", "Saturday, 21 Nov 2026"]
maps = model.attention_maps(sources)
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.9), layout="constrained")
for axis, text, weights in zip(axes, sources, maps, strict=True):
    (target,) = model.predict([text])
    axis.imshow(weights[0].mean(axis=0), cmap="Blues", vmin=0, aspect="auto")
    axis.set_xticks(range(len(text) + 1), [*text.replace(" ", "␣"), "end"])
    axis.set_yticks(range(len(target) + 1), [*target, "end"])
    axis.set(title=f"{text} → {target}", xlabel="read", ylabel="written")
    axis.tick_params(length=0)
plt.show()

# %%
# Probabilities
# -------------
#
# `predict_log_proba` returns the log-probability of every character; their sum is that of the
# whole date. Nearly all dates have a probability near 1, but most wrong ones do not, so a
# threshold on the probability finds most errors.

log_proba = np.array([logs.sum() for logs in model.predict_log_proba(texts[:500])])
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
bins = np.linspace(0, 1, 21)
axis.hist(np.exp(log_proba[right]), bins, color=BLUE, alpha=0.8, label="right")
axis.hist(np.exp(log_proba[~right]), bins, color=INK, label="wrong")
axis.set(title="Probability of the date that was written", xlabel="probability", yscale="log")
axis.set_ylabel("dates (logarithmic)")
axis.legend(frameon=False)
plt.show()

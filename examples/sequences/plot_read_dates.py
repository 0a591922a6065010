r"""
===========================
Dates, as people write them
===========================

"Saturday, 21 Nov 2026", "11/21/26" and "21.11.2026" are the same day. To read them all one
could write a rule for each way of writing; here a transformer learns them from examples. Its
encoder reads the text, character by character, and its decoder writes the date as ISO 8601 has
it, each character an average of what was read.
"""

# %%
# The same day in eight ways
# --------------------------

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
# A fit, and what it is worth
# ---------------------------
#
# The estimator takes lists of texts, and writes a list of texts. Days of the test set were
# seen in no way of writing, but for chance.

model = TransformerSeq2Seq("characters", d_model=64, n_layers=1)
model.fit(texts[500:], dates[500:])
written = model.predict(texts[:500])
right = np.array(written) == np.array(dates[:500])
print(f"{right.mean():.1%} of 500 dates are right")
model.predict(["Saturday, 21 Nov 2026", "11/21/26", "2026, November 21"])

# %%
# Where it looks
# --------------
#
# `attention_maps` has the weights of the second attention of the decoder: a row for each
# character that is written, its last for the end, and a column for each that is read. They
# are averaged over the heads here. Year, month and day stand in another order in the text, and
# the weights follow them.

asked = ["November 21, 2026", "Saturday, 21 Nov 2026"]
maps = model.attention_maps(asked)
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.9), layout="constrained")
for axis, text, weights in zip(axes, asked, maps, strict=True):
    (target,) = model.predict([text])
    axis.imshow(weights[0].mean(axis=0), cmap="Blues", vmin=0, aspect="auto")
    axis.set_xticks(range(len(text) + 1), [*text.replace(" ", "␣"), "end"])
    axis.set_yticks(range(len(target) + 1), [*target, "end"])
    axis.set(title=f"{text} → {target}", xlabel="read", ylabel="written")
    axis.tick_params(length=0)
plt.show()

# %%
# How sure it is
# --------------
#
# `predict_log_proba` gives the log-probability of every character; their sum is that of the
# whole date. Nearly all dates are nearly certain, and those that are wrong mostly are not:
# who needs certainty may ask a person about the others.

log_proba = np.array([logs.sum() for logs in model.predict_log_proba(texts[:500])])
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
bins = np.linspace(0, 1, 21)
axis.hist(np.exp(log_proba[right]), bins, color=BLUE, alpha=0.8, label="right")
axis.hist(np.exp(log_proba[~right]), bins, color=INK, label="wrong")
axis.set(title="Probability of the date that was written", xlabel="probability", yscale="log")
axis.set_ylabel("dates (logarithmic)")
axis.legend(frameon=False)
plt.show()

r"""
==============================
A language model of characters
==============================

Train a language model on first sentences of docstrings, and let it write new ones.

A language model predicts the probability of each token, given those before it:

.. math:: p(w_1, \dots, w_T) = \prod_t p(w_t \mid w_1, \dots, w_{t-1}).

Repeated draws from these probabilities generate text. Here tokens are characters, and the texts
are the first sentences of the docstrings of NumPy, SciPy, pandas and scikit-learn. The model is
a small transformer, averaged with probabilities from counts of short contexts. It documents
functions that do not exist.
"""

# %%
# Training
# --------
#
# A text is one sentence, such as "Return the mean accuracy on the given test data and labels."
# The fit holds out a tenth of them for validation.

import importlib
import inspect
import math

import matplotlib.pyplot as plt
import numpy as np

from sklearn_attention import TransformerLanguageModel
from sklearn_attention.inspection import STYLE

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

MODULES = """
    numpy numpy.fft numpy.linalg numpy.ma numpy.random pandas scipy.cluster.hierarchy scipy.fft
    scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal
    scipy.sparse scipy.spatial scipy.special scipy.stats sklearn.cluster sklearn.covariance
    sklearn.datasets sklearn.decomposition sklearn.ensemble sklearn.feature_selection
    sklearn.linear_model sklearn.manifold sklearn.metrics sklearn.mixture sklearn.neighbors
    sklearn.pipeline sklearn.preprocessing sklearn.svm sklearn.tree sklearn.utils
"""


def first_sentence(thing):
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


sentences = set()
for module in map(importlib.import_module, MODULES.split()):
    for name in module.__all__:
        public = getattr(module, name)
        sentences.add(first_sentence(public))
        if inspect.isclass(public):
            methods = inspect.getmembers(public, inspect.isroutine)
            sentences.update(first_sentence(value) for key, value in methods if key[0] != "_")
# Only ASCII, and short enough for a window of 64 characters.
texts = sorted(s for s in sentences if 20 <= len(s) < 64 and s.isascii() and s.endswith("."))
np.random.default_rng(0).shuffle(texts)
print(f"{len(texts)} sentences of {sum(map(len, texts))} characters")

model = TransformerLanguageModel(max_length=64, d_model=64, n_layers=3, max_epochs=16)
model.fit(texts)
history = model.training_history_
loss = min(history["validation_loss"])
print(f"perplexity of the transformer on held-out sentences: {math.exp(loss):.2f}")
print(f"weight of the counts: {model.baseline_weight_:.2f}")

# %%
# ``training_history_`` has the mean negative log-likelihood of a character after each epoch,
# for the transformer without the counts; the weights of the best epoch are kept. Dotted lines
# are simple models: with equally likely characters the loss is the logarithm of their number,
# with their frequencies it is the entropy.

counts = np.unique(list("".join(texts)), return_counts=True)[1]
share = counts / counts.sum()
levels = {"all equally likely": math.log(len(counts)), "frequencies": -share @ np.log(share)}

figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
epochs = np.arange(1, len(history["loss"]) + 1)
axis.plot(epochs, history["loss"], color=BLUE, lw=2, label="training")
axis.plot(epochs, history["validation_loss"], color=ORANGE, lw=2, label="held out")
for name, level in levels.items():
    axis.axhline(level, color=GREY, lw=1, ls=":")
    axis.text(epochs[-1], level + 0.04, name, color=GREY, ha="right")
axis.set(title="Loss of a character", xlabel="epoch", ylabel="nats", ylim=(0, None))
axis.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Sampling
# --------
#
# Without a prompt the model writes whole sentences, each until the end token. Near temperature
# 0 the most likely character is always taken; at 1 characters are drawn with the probabilities
# of the model.

for temperature in (0.3, 0.7, 1.0):
    written = model.sample([""] * 6, 80, temperature=temperature, random_state=0)
    print(f"temperature {temperature}")
    for sentence in written:
        print(f"  {sentence}{'  (known)' if sentence in sentences else ''}")

# %%
# The model continues a prompt, here with draws from the six most likely characters.

for sentence in model.sample(["Compute the kernel "] * 4, 60, top_k=6, random_state=1):
    print(sentence)

# %%
# Surprisal
# ---------
#
# The surprisal of a character is its negative log-probability. It is large at the beginning of
# words, small at their end, and large at a spelling mistake (orange).

sentence = "Return the avreage of the sample."
prefixes = [sentence[:i] for i in range(len(sentence))]
log_proba = model.predict_log_proba(prefixes)
columns = [model.tokens_.index(character) for character in sentence]
surprise = -log_proba[np.arange(len(sentence)), columns]

figure, axis = plt.subplots(figsize=(11, 3.6), layout="constrained")
mistake = sentence.index("re", sentence.index("av"))
colors = [ORANGE if mistake <= i < mistake + 2 else BLUE for i in range(len(sentence))]
axis.bar(range(len(sentence)), surprise, color=colors)
axis.set_xticks(range(len(sentence)), [c.replace(" ", "␣") for c in sentence])
axis.tick_params(axis="x", length=0)
axis.set(title="Surprisal of each character", ylabel="nats")
plt.show()

# %%
# Attention weights
# -----------------
#
# ``attention_maps`` has the attention weights of each layer and head. A row has the weights of
# one character over itself and the characters before. Some heads attend to the last one or two
# characters, others further back.

word = "Return the mean."
maps = model.attention_maps(word)  # (n_layers, n_heads, T, T)
labels = ["start", *word.replace(" ", "␣")]
steps = np.arange(len(labels))
back = steps[:, None] - steps
# The mean distance to attended characters, by which three different heads are chosen.
distance = (maps * back).sum(axis=-1).mean(axis=-1).ravel()
chosen = np.argsort(distance)[[0, len(distance) // 2, -1]]

figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
for axis, head in zip(axes, chosen, strict=True):
    layer, number = divmod(int(head), maps.shape[1])
    axis.imshow(maps[layer, number], cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(steps, labels, rotation=90)
    axis.set_yticks(steps, labels)
    axis.set_title(f"layer {layer + 1}, head {number + 1}")
    axis.tick_params(length=0)
axes[0].set(ylabel="character (query)", xlabel="character (key)")
plt.show()

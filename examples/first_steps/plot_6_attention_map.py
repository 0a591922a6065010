"""
An attention map
================

Draw which tokens of a text a transformer attends to.
"""

import matplotlib.pyplot as plt

from sklearn_attention import TransformerClassifier
from sklearn_attention.inspection import AttentionMapDisplay

texts = ["the red lamp is broken", "the blue lamp works", "a broken shoe", "this shoe works"]
labels = ["bad", "good", "bad", "good"]
model = TransformerClassifier(random_state=0).fit(texts * 10, labels * 10)
AttentionMapDisplay.from_estimator(model, ["the red shoe is broken"])
plt.show()

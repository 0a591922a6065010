"""
A table with missing cells
==========================

Predict a table with missing cells, with intervals, and show the rows behind one prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention.inspection import ExplanationDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)  # a tenth of the cells is missing
X["sex"] = X["sex"].astype("category")
model = KernelAttentionRegressor().fit(X[:-100], y[:-100])
table = X[-100:].assign(prediction=model.predict(X[-100:]), target=y)
table[["lower", "upper"]] = model.predict_interval(X[-100:], coverage=0.9)
print(table[["prediction", "lower", "upper", "target"]].head(3).round(0))
print("inside:", table["target"].between(table["lower"], table["upper"]).mean())
# A weighted average of targets is easier to explain than the more accurate default.
average = KernelAttentionRegressor(readout="average", boosting=None).fit(X[:-100], y[:-100])
ExplanationDisplay.from_estimator(average, X[-1:])
plt.show()

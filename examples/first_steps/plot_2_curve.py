"""
A curve with its band
=====================

Smooth a noisy curve, and draw it with its confidence band.
"""

import matplotlib.pyplot as plt

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.datasets import make_smoothing_curve
from sklearn_attention.inspection import SmoothDisplay

X, y = make_smoothing_curve("heavisine", 200, signal_to_noise=3, random_state=0)
model = LocalPolynomialRegressor().fit(X, y)  # the bandwidth by leave-one-out
print(model.summary())
SmoothDisplay.from_estimator(model, X, y)
plt.show()

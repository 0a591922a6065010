"""
A density in the plane
======================

Estimate the joint density of two columns, and draw it in the plane.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from sklearn_attention import ProductKernelDensity
from sklearn_attention.inspection import DensityDisplay

X = load_wine(as_frame=True).data[["flavanoids", "color_intensity"]]
model = ProductKernelDensity().fit(X)  # bandwidths by leave-one-out likelihood
print(model.bandwidth_, model.score_samples(X[:3]))
DensityDisplay.from_estimator(model, X)
plt.show()

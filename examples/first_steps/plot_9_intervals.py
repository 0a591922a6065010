"""
Intervals behind a pipeline
===========================

Predict intervals behind a pipeline, and see how many targets lie inside.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import KernelAttentionRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), KernelAttentionRegressor()).fit(X_train, y_train)
mean, deviation = model.predict(X_test, return_std=True)
# Pipelines have no other method of intervals: the last step has, for rows as they reach it.
lower, upper = model[-1].predict_interval(model[:-1].transform(X_test), coverage=0.8).T
print(f"{((lower < y_test) & (y_test < upper)).mean():.0%} of the targets are inside")
plt.vlines(mean, lower, upper, alpha=0.3)
plt.plot(mean, y_test, ".")
plt.gca().set(xlabel="prediction", ylabel="target, and 80 % interval")

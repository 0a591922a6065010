"""
A search over kernels
=====================

Let a grid search choose a kernel, behind a pipeline that encodes the columns.
"""

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_attention import NadarayaWatsonRegressor
from sklearn_attention.inspection import KernelDisplay
from sklearn_attention.kernels import Matern32

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
numbers, categories = (StandardScaler(), ["bmi", "bp", "s5"]), (OneHotEncoder(), ["sex"])
columns = make_column_transformer(numbers, categories)
model = Pipeline([("columns", columns), ("smoother", NadarayaWatsonRegressor())])
kernels = ["gaussian", "epanechnikov", Matern32()]
grid = {"smoother__kernel": kernels, "smoother__bandwidth": ["loo", 0.5, 1.0]}
search = GridSearchCV(model, grid).fit(X, y)
print(pd.DataFrame(search.cv_results_)[["params", "mean_test_score"]].to_string())
KernelDisplay.from_kernels(kernels)

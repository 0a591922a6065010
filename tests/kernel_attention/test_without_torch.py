"""Kernel attention computes with NumPy alone."""

import subprocess
import sys

import pytest

CODE = """
import sys
import numpy as np
from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = X[:, 0] + 0.1 * rng.normal(size=60)
for readout in ("solve", "average"):
    for estimator, target in (
        (KernelAttentionRegressor, y),
        (KernelAttentionClassifier, (y > 0).astype(int)),
    ):
        model = estimator(readout, max_steps=2, n_folds=1).fit(X, target)
        for method in ("predict", "transform", "explain", "local_slopes"):
            getattr(model, method)(X)
        further = "predict_interval" if "Reg" in estimator.__name__ else "predict_proba"
        getattr(model, further)(X)
print("torch" in sys.modules)
"""


@pytest.mark.slow
def test_fitting_and_predicting_load_no_torch():
    command = [sys.executable, "-c", CODE]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert found.strip() == "False"

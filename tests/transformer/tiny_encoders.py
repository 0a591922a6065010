"""Encoders that are trained for two steps, to see how rows are read."""

import numpy as np

from sklearn_attention import Training, TransformerRegressor

TINY = {
    "d_model": 8,
    "n_heads": 2,
    "n_layers": 1,
    "training": Training(max_steps=2, validation_fraction=None),
}


def regress(X, y=None, tokens="auto", **parameters):
    """A fitted regressor of rows, by default of their numbers."""
    y = np.arange(len(X)) if y is None else y
    return TransformerRegressor(tokens, **TINY | parameters).fit(X, y)


def in_units(model, outputs):
    """Outputs of a network or a baseline in units of the targets."""
    task = model.encoder_.task
    return task.center + task.scale * outputs

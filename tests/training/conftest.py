"""A small module and rows for it."""

import dataclasses
import sys
from pathlib import Path

import pytest
import torch

from sklearn_attention.nn import Dropout
from sklearn_attention.training import train
from sklearn_attention.training._network import torch_seed

# What the tests share is imported by name.
sys.path.insert(0, str(Path(__file__).parent))


@dataclasses.dataclass
class Task:
    """Regression by a small network with dropout."""

    x: torch.Tensor
    y: torch.Tensor

    def module(self, dropout=0.2, seed=0):
        """The same parameters for the same seed."""
        with torch_seed(seed):
            return torch.nn.Sequential(
                torch.nn.Linear(2, 8),
                torch.nn.Tanh(),
                torch.nn.LayerNorm(8),
                Dropout(dropout),
                torch.nn.Linear(8, 1),
            )

    def loss(self, module, rows):
        """Mean squared error of the rows."""
        return (module(self.x[rows])[:, 0] - self.y[rows]).square().mean()

    def fit(self, module=None, *, batch_loss=None, random_state=0, **options):
        """Return the trained module and the history; options are of `Training` and `train`."""
        from plans import split_options

        plan, options = split_options(options)
        module = self.module() if module is None else module
        batch_loss = self.loss if batch_loss is None else batch_loss
        return module, train(
            module, batch_loss, len(self.x), plan, random_state=random_state, **options
        )


@pytest.fixture(scope="session")
def task():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(50, 2, generator=generator)
    return Task(x, torch.sin(x[:, 0]) + 0.1 * torch.randn(50, generator=generator))

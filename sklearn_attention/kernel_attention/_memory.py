"""What members read: training rows in their views, with targets and weights."""

import numpy as np
import torch

from ..attention import resolve_device
from ..nn import ViewKernel
from ._landmarks import n_landmarks as usual_n_landmarks
from ._views import look

# Rows that averages are taken over, at most.
_MOST_AVERAGED = 50_000
# Up to so many rows in double precision, which systems with little noise need.
_DOUBLE_SOLVED, _DOUBLE_AVERAGED = 12_000, 2000
# Features along which local lines run, at most: their moments are as many squared.
_MOST_SLOPES = 16


class Memory:
    """Training rows and how to look at them.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    targets : ndarray of shape (n, n_outputs)
        What solving reproduces: of mean 0.
    values : ndarray of shape (n, n_outputs)
        What averages are taken of.
    weights : ndarray of shape (n,)
        Of mean 1, positive.
    views : list of dict
    line_view : dict
        The standard view: coordinates along which local lines run.
    n_heads : int
        Heads for each view.
    kernel : RadialKernel
    n_landmarks : int or None
        Rows that carry what is solved, at most; None for as many as there is time for.
    device : str
    """

    def __init__(
        self, X, targets, values, weights, *, views, line_view, n_heads, kernel,
        n_landmarks, device,
    ):  # fmt: skip
        self.X, self.targets, self.values, self.weights = X, targets, values, weights
        self.mean = np.average(values, axis=0, weights=weights)
        self.views, self.line_view, self.kernel = views, line_view, kernel
        self.heads = [view for view in range(len(views)) for _ in range(n_heads)]
        self.n_landmarks, self.device = n_landmarks, resolve_device(device)
        self.features = [torch.as_tensor(views[v]["feature"]) for v in self.heads]

    def __len__(self):
        return len(self.X)

    def precision(self, way):
        """Of the arithmetic in which a way reads."""
        limit = _DOUBLE_SOLVED if way.reads == "solve" else _DOUBLE_AVERAGED
        return torch.float64 if len(self) <= limit else torch.float32

    def coordinates(self, X, dtype):
        """Rows as each head sees them, before the kernel scales them."""
        kind = np.float32 if dtype == torch.float32 else np.float64
        seen = [self.tensor(look(view, X, kind), dtype) for view in self.views]
        return [seen[head] for head in self.heads]

    def line_coordinates(self, X, columns, dtype):
        """Rows where local lines run."""
        return self.tensor(look(self.line_view, X)[:, columns], dtype)

    def line_columns(self, rows):
        """Columns of numbers along which lines run: those that go with the targets most."""
        n_numbers = len(self.line_view["center"])
        if n_numbers <= _MOST_SLOPES:
            return np.arange(n_numbers)
        x = look(self.line_view, self.X[rows])[:, :n_numbers]
        y = self.values[rows] - self.values[rows].mean(axis=0)
        size = np.abs(x.T @ y).max(axis=1) / np.sqrt(np.square(x).sum(axis=0) + 1e-300)
        return np.sort(np.argsort(-size, kind="stable")[:_MOST_SLOPES])

    def support(self, way, generator):
        """Rows that carry what is read: all of them, or as many as there is time for."""
        most = _MOST_AVERAGED
        if way.reads == "solve":
            most = self.n_landmarks or usual_n_landmarks(len(self))
        size = min(most, len(self))
        if size == len(self):
            return np.arange(size)
        return np.sort(torch.randperm(len(self), generator=generator)[:size].numpy())

    def view_kernel(self, member, dtype):
        """The kernel that a member has learned."""
        names = ("scale", "column", "amplitude", "noise", "ridge")
        parameters = {name: self.tensor(member[name], dtype) for name in names}
        return ViewKernel(self.features, self.kernel, parameters, member["constant"])

    def space(self, member, X):
        """Rows where distances are those that a member's kernel compares; (n, n_columns)."""
        kernel = self.view_kernel(member, torch.float64)
        scaled = kernel.scaled(self.coordinates(X, torch.float64))
        sizes = torch.exp(kernel.parameters["amplitude"])
        parts = [x * size for x, size in zip(scaled, sizes, strict=True)]
        return torch.cat(parts, dim=1).cpu().numpy()

    def tensor(self, array, dtype):
        """An array on the device."""
        return torch.as_tensor(np.asarray(array)).to(self.device, dtype)

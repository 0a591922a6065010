"""A member at work: it reads the memory with the kernel it has learned."""

import numpy as np
import torch

from .._blocks import blocks
from ..nn import local_average, without_own
from ._solve import SolvedMemory
from ._views import look
from ._ways import WAYS

_BLOCK_PAIRS = 2**24
# A row of less weight has so much noise that it tells nothing.
_LEAST_WEIGHT = 1e-12
# Of slopes that nobody has learned a ridge for.
_USUAL_RIDGE = 1e-4


class Reader:
    """Reads a memory as a member does.

    Parameters
    ----------
    memory : Memory
    member : dict
        What :func:`learn_members` returns.
    """

    def __init__(self, memory, member):
        self.memory, self.member = memory, member
        self.way = WAYS[member["way"]]
        self.support = member["support"]
        self.dtype = memory.precision(self.way)
        self.kernel = memory.view_kernel(member, self.dtype)
        rows = memory.X[self.support]
        self.keys = self.kernel.scaled(memory.coordinates(rows, self.dtype))
        lines = self.way.reads == "local_linear"
        self.ridge = torch.exp(self.kernel.parameters["ridge"]) if lines else _USUAL_RIDGE
        self._counts = memory.tensor(np.log(memory.weights[self.support]), self.dtype)
        self._values = memory.tensor(memory.values[self.support], self.dtype)
        self._line_keys = memory.line_coordinates(rows, member["slopes"], self.dtype)
        self._system = None

    def __call__(self, X, own=None):
        """What the member says of queries; (n_queries, n_outputs).

        Parameters
        ----------
        X : ndarray of shape (n_queries, n_features)
        own : ndarray of shape (n_queries,), default=None
            Keys of the support to be left out of the averages, -1 for none.
        """
        parts = [
            self._read(X[rows], None if own is None else own[rows]) for rows in self._blocks(X)
        ]
        return torch.cat(parts).double().cpu().numpy()

    def weights(self, X):
        """Effective weight of every training row in what the member says; (n_queries, n)."""
        if self.way.reads == "solve":
            if self._system is None:
                self._system = solved_system(self.memory, self.member, self.kernel)
            matrix = self.kernel.matrix(self._scaled(X), self.keys)
            return self._system.weights(matrix).double().cpu().numpy()
        weights = self._attention(X)
        if self.way.reads == "local_linear":
            weights = self._line_weights(weights, X)
        full = np.zeros((len(X), len(self.memory)))
        full[:, self.support] = weights.double().cpu().numpy()
        return full

    def slopes(self, X):
        """Local slopes of the values along the features; (n_queries, n_features, n_outputs).

        For one unit of the feature.
        """
        full = np.zeros((len(X), self.memory.X.shape[1], self.memory.values.shape[1]))
        view, columns = self.memory.line_view, self.member["slopes"]
        for rows in self._blocks(X):
            _, found = self._lines(self._attention(X[rows]), X[rows], self._values)
            if found is not None:
                inside = np.abs(look(view, X[rows])[:, columns]) < view["limit"]
                found = found.double().cpu().numpy() / view["scale"][columns][None, :, None]
                full[rows, view["feature"][columns]] = found * inside[:, :, None]
        return full

    def likeness(self, X, rows):
        """Logarithm of the kernel between queries and training rows."""
        keys = self._scaled(self.memory.X[rows])
        return self.kernel.log_matrix(self._scaled(X), keys).double().cpu().numpy()

    def _blocks(self, X):
        return blocks(len(X), max(1, _BLOCK_PAIRS // len(self.support)))

    def _read(self, X, own):
        if self.way.reads == "solve":
            coefficients = self.memory.tensor(self.member["coefficients"], self.dtype)
            return self.kernel.matrix(self._scaled(X), self.keys) @ coefficients
        weights = self._attention(X, own)
        if self.way.reads == "average":
            return weights @ self._values
        return self._lines(weights, X, self._values)[0]

    def _lines(self, weights, X, values):
        at_queries = self.memory.line_coordinates(X, self.member["slopes"], self.dtype)
        return local_average(weights, values, at_queries, self._line_keys, self.ridge)

    def _line_weights(self, weights, X):
        # A fit is linear in the values: what it makes of unit vectors are its weights.
        unit = torch.eye(len(self.support), dtype=self.dtype, device=weights.device)
        parts = [self._lines(weights, X, some)[0] for some in unit.split(512, dim=1)]
        return torch.cat(parts, dim=1)

    def _attention(self, X, own=None):
        """Weights of the keys in the averages; rows sum to 1."""
        queries, counts = self._scaled(X), self._counts
        logits = self.kernel.log_matrix(queries, self.keys) + counts
        if own is not None:
            own = torch.as_tensor(own, device=logits.device)
            logits = without_own(logits, own)
        lost = torch.isneginf(logits).all(dim=1)
        if lost.any():
            # Beyond a compact kernel's support the nearest keys answer.
            squared = sum(
                torch.cdist(q[lost], k).square()
                for q, k in zip(queries, self.keys, strict=True)
            )
            near = -squared if own is None else without_own(-squared, own[lost])
            nearest = near == near.max(dim=1, keepdim=True).values
            logits[lost] = torch.where(nearest, counts, -torch.inf)
        return torch.softmax(logits, dim=1)

    def _scaled(self, X):
        return self.kernel.scaled(self.memory.coordinates(X, self.dtype))


def solved_system(memory, member, kernel):
    """The system whose solution a member reads.

    Parameters
    ----------
    memory : Memory
    member : dict
    kernel : ViewKernel
        In the precision to solve in.

    Returns
    -------
    system : SolvedMemory
    """
    support = member["support"]
    dtype = kernel.parameters["scale"].dtype
    landmarks = None if len(support) == len(memory) else torch.as_tensor(support)
    carrying = kernel.scaled(memory.coordinates(memory.X[support], dtype))

    def at(rows):
        if rows is None:
            return carrying
        if landmarks is None:
            return [x[rows] for x in carrying]
        # All rows at once, in all views, might not fit into memory.
        return kernel.scaled(memory.coordinates(memory.X[rows.numpy()], dtype))

    variance = float(torch.exp(2 * kernel.parameters["noise"].double()))
    return SolvedMemory(
        lambda a, b: kernel.matrix(at(a), at(b)),
        memory.tensor(memory.targets, dtype),
        memory.tensor(variance / np.maximum(memory.weights, _LEAST_WEIGHT), dtype),
        landmarks,
    )

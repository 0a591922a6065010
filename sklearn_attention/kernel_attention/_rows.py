"""Rows in their encodings: those of training, with targets, and queries."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._blocks import blocks

# Numbers that are kept once they have been computed: 128 MB in single precision.
_MOST_KEPT = 2**25
# Numbers of queries that members share.
_MOST_SHARED = 2**23


@dataclass(frozen=True)
class EncodedRows:
    """Rows of any kind, encoded when first needed; what is small is kept."""

    X: np.ndarray  # (n, n_features)
    encodings: list
    _kept: dict = field(default_factory=dict, init=False, repr=False)

    def __len__(self):
        return len(self.X)

    def coordinates(self, rows, dtype):
        """Some of the rows, given by an index or a slice, in all encodings."""
        dtype = np.dtype(dtype)
        if len(self) * sum(map(len, self.encodings)) > _MOST_KEPT:
            return [encoding.encode(self.X[rows], dtype) for encoding in self.encodings]
        if dtype not in self._kept:
            self._kept[dtype] = [encoding.encode(self.X, dtype) for encoding in self.encodings]
        return [z[rows] for z in self._kept[dtype]]


@dataclass(frozen=True)
class TrainingRows:
    """Rows in their encodings, with targets and weights."""

    X: np.ndarray  # numbers and codes
    # Of mean 0 and about unit variance, unless the bandwidth is given; (n, n_outputs).
    targets: np.ndarray
    weights: np.ndarray  # of mean 1, positive
    encodings: list

    def __len__(self):
        return len(self.X)

    @property
    def features(self):
        """For each encoding, the feature that each column belongs to."""
        return [encoding.feature for encoding in self.encodings]

    def encode(self, X, dtype):
        """Any rows in all encodings."""
        return [encoding.encode(X, dtype) for encoding in self.encodings]

    def coordinates(self, rows, dtype):
        """Some of the training rows in all encodings."""
        return self._encoded.coordinates(rows, dtype)

    def queries(self, X):
        """Queries, which members encode once for all of them."""
        return X if isinstance(X, EncodedRows) else EncodedRows(X, self.encodings)

    def query_blocks(self, X):
        """Queries in blocks, no more in memory than half the training rows or so."""
        n_columns = max(1, sum(map(len, self.encodings)))
        for rows in blocks(len(X), max(_MOST_SHARED // n_columns, len(self) // 2, 1)):
            yield self.queries(X[rows])

    @cached_property
    def _encoded(self):
        return EncodedRows(self.X, self.encodings)

"""The training rows as members see them."""

from dataclasses import dataclass, field

import numpy as np

# Numbers that are kept once they have been computed: 128 MB in single precision.
_MOST_KEPT = 2**25


@dataclass(frozen=True)
class TrainingRows:
    """Rows in their encodings, with targets and weights."""

    X: np.ndarray  # numbers and codes
    # Of mean 0 and about unit variance, unless the bandwidth is given; (n, n_outputs).
    targets: np.ndarray
    weights: np.ndarray  # of mean 1, positive
    encodings: list
    _kept: dict = field(default_factory=dict, init=False, repr=False)

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
        """Some of the rows in all encodings."""
        n_columns = sum(map(len, self.encodings))
        if len(self) * n_columns > _MOST_KEPT:
            return self.encode(self.X[rows], dtype)
        if dtype not in self._kept:
            self._kept[dtype] = self.encode(self.X, dtype)
        return [z[rows] for z in self._kept[dtype]]

"""Partitions of Dask that are counted, of a table each, of which keys and values are parts."""

import weakref

import numpy as np

# Schedulers, and how many workers they have.
SCHEDULERS = [
    ({"scheduler": "synchronous"}, 1),
    ({"scheduler": "threads", "num_workers": 1}, 1),
    ({"scheduler": "threads", "num_workers": 2}, 2),
]
_COUNTED = weakref.WeakValueDictionary()


class Counted:
    """How many partitions were made, and how many of them there were at the same time."""

    def __init__(self, n_partitions=8, n_rows=100):
        import dask
        import dask.array as da

        self.forget()
        _COUNTED[id(self)] = self
        parts = [dask.delayed(self._make, nout=2)(k, n_rows) for k in range(n_partitions)]
        keys = [da.from_delayed(part[0], (n_rows, 1), float) for part in parts]
        values = [da.from_delayed(part[1], (n_rows,), float) for part in parts]
        self.keys, self.values = da.concatenate(keys), da.concatenate(values)

    def forget(self):
        self.alive, self.most, self.made = set(), 0, 0

    def _make(self, k, n_rows):
        rows = np.random.default_rng(k).normal(size=(n_rows, 2))
        self.made += 1
        self.alive.add(id(rows))
        weakref.finalize(rows, self.alive.discard, id(rows))
        self.most = max(self.most, len(self.alive))
        return rows[:, :1], rows[:, 1]

    def __reduce__(self):
        # Workers in other threads are to count here.
        return _known, (id(self),)


def _known(key):
    return _COUNTED[key]

"""Sorted keys of one feature in cells of one width, where there are any."""

import numpy as np


class Cells:
    """Cells that hold keys.

    Gaps that nothing reaches across cut the line into stretches, and each stretch counts
    its cells from its own first key: positions within cells lose no digits to the extent
    of the data.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Keys in ascending order.
    width : float
        Of a cell.
    reach : float
        How far a query may be from a key that matters to it.

    Attributes
    ----------
    starts : int ndarray of shape (n_cells + 1,)
        First key of each cell, and the number of keys.
    number : ndarray of shape (n_cells,)
        Ascending numbers; neighbours in one stretch differ by 1.
    place : ndarray of shape (n,)
        Of each key within its cell, from -1 to 1.
    """

    def __init__(self, x, width, reach):
        self.width, self._apart = width, 2 * np.ceil(reach / width) + 4
        cuts = np.flatnonzero(np.diff(x) > 2 * reach + width) + 1
        first = np.append(0, cuts)
        self._origin = x[first]
        # Queries belong to the nearer stretch.
        self._borders = x[cuts - 1] + (x[cuts] - x[cuts - 1]) / 2
        self._lengths = np.floor((x[np.append(cuts, len(x)) - 1] - self._origin) / width) + 1
        self._base = np.cumsum(self._lengths + self._apart) - self._lengths
        stretch = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(x))))
        z = (x - self._origin[stretch]) / width
        inside = np.floor(z)
        number = self._base[stretch] + inside
        self.place = 2 * (z - inside) - 1
        new = np.append(0, np.flatnonzero(np.diff(number)) + 1)
        self.starts, self.number = np.append(new, len(x)), number[new]
        self._stretch, self._middle = stretch[new], inside[new] + 0.5

    @property
    def counts(self):
        """How many keys each cell has."""
        return np.diff(self.starts)

    def offset(self, cell, queries):
        """From queries to the middles of cells, in widths."""
        origin = self._origin[self._stretch[cell]]
        return self._middle[cell] - (queries - origin) / self.width

    def of_queries(self, queries):
        """Cells of sorted queries, of which some may hold no key.

        Parameters
        ----------
        queries : ndarray of shape (m,)
            In ascending order.

        Returns
        -------
        starts : int ndarray of shape (n_cells + 1,)
            First query of each cell, and the number of queries.
        number : ndarray of shape (n_cells,)
        place : ndarray of shape (m,)
            As that of keys; 0 where no key is within reach.
        """
        stretch = np.searchsorted(self._borders, queries, "right")
        z = (queries - self._origin[stretch]) / self.width
        low, high = -self._apart / 2, self._lengths[stretch] + self._apart / 2 - 1
        inside = np.clip(np.floor(z), low, high)
        number = self._base[stretch] + inside
        new = np.append(0, np.flatnonzero(np.diff(number)) + 1)
        starts = np.append(new, len(queries))
        return starts, number[new], np.where(inside == np.floor(z), 2 * (z - inside) - 1, 0.0)

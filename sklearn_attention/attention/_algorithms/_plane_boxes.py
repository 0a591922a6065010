"""Gaussian sums in the plane through Chebyshev interpolation between squares."""

import math

import numpy as np

# Width of a square, in standard deviations, and the Chebyshev polynomials along each side:
# what the polynomials leave is below rounding.
_WIDTH, _TERMS = 5.0, 32
# Squares further apart, in standard deviations, do not see each other; and the Gaussian there.
_REACH = 9.6
_FAR = math.exp(-0.5 * _REACH**2)
_ROUNDING = 2e-14
# Squares further out cannot be told apart in double precision.
_FURTHEST = 2**40
# Rows at a time: what is made of them stays in the processor's cache.
_BLOCK_ROWS = 2**12
# Numbers of the terms of some squares, for the same reason.
_BLOCK_NUMBERS = 2**16
# Numbers held at a time for all squares, about.
_MOST_NUMBERS = 2**24


class GaussianBoxes:
    r"""Sums of a Gaussian with peak 1 in time linear in keys and queries.

    Between two squares the Gaussian is a polynomial of few terms in either position [1]_,
    and a product over the two axes:

    .. math:: e^{-(x - q)^2 / 2} \approx \sum_{k,l} B_{kl}(\text{offset})\, T_k(x)\, T_l(q)

    A square's keys are summed once, times each product of Chebyshev polynomials. The sums
    are carried to the squares around along the first axis, and from there along the second.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    queries : ndarray of shape (m, 2)
        The same object as the points for the points themselves.
    scale : float
        The standard deviation.
    degree : {0, 1}

    References
    ----------
    .. [1] Fong, W. and Darve, E. (2009). The black-box fast multipole method. Journal of
       Computational Physics 228, 8712-8725.
    """

    def __init__(self, points, queries, scale, degree):
        self.degree, self.powers = degree, powers(degree)
        self._squares = Squares(points, queries, scale)
        self._width = self._squares.width / scale
        furthest = math.ceil(_REACH / _WIDTH)
        self._offsets = np.arange(-furthest, furthest + 1)
        self._routes = Routes(self._squares, self._offsets)

    @property
    def n_carried(self):
        """How often the terms of a square are carried to another, for each column."""
        legs = self._routes.first, self._routes.second
        return sum(len(source) for leg in legs for source, _ in leg)

    def __call__(self, columns):
        """Sums for all queries over all keys.

        Parameters
        ----------
        columns : ndarray of shape (c, n)

        Returns
        -------
        sums : ndarray of shape (n_powers, c, m)
            Powers above the degree of the first column alone.
        error : ndarray of shape (m,)
            Bound on the error of the first sum.
        """
        keys, queries = self._squares.keys, self._squares.queries
        between = self._between()
        sums = np.zeros((len(self.powers), len(columns), queries.n_rows))
        for some, first, last in self._groups(len(columns)):
            local = self._carry(keys.moments(columns[first:last]), between, some)
            found = queries.evaluate(local)
            for power, of_power in zip(some, found, strict=True):
                sums[self.powers.index(power), first:last] = of_power
        error = queries.spread(self._error(columns[0]))
        error[self._squares.outside] = np.inf
        return sums, error

    def _groups(self, n_columns):
        """Powers and ranges of columns that are summed together."""
        n_squares = max(len(self._squares.keys.codes), len(self._squares.queries.codes))
        at_once = max(1, _MOST_NUMBERS // (_TERMS**2 * n_squares))
        low = [power for power in self.powers if sum(power) <= self.degree]
        # The first column has powers of its own, unless the degree is 0.
        of_columns = [(self.powers, 0, 1), (low, 1, n_columns)] if self.degree else []
        for powers_, first, last in of_columns or [(low, 0, n_columns)]:
            for k in range(0, len(powers_), at_once):
                some = powers_[k : k + at_once]
                step = max(1, at_once // len(some))
                for start in range(first, last, step):
                    yield some, start, min(start + step, last)

    def _between(self):
        """Coefficients between intervals: for each power and offset, (source, target)."""
        nodes = np.cos(np.pi * (np.arange(_TERMS) + 0.5) / _TERMS)
        coefficients = _chebyshev(nodes) * 2 / _TERMS
        coefficients[0] /= 2
        offsets = self._offsets[:, None, None]
        u = ((nodes[:, None] - nodes) / 2 + offsets) * self._width
        values = np.exp(-0.5 * u * u)
        return [
            coefficients @ (values * u**e) @ coefficients.T for e in range(2 * self.degree + 1)
        ]

    def _carry(self, moments, between, some):
        """Coefficients of the sums in each square of queries, for each power."""
        routes = self._routes
        local = [np.zeros((routes.n_targets, *moments.shape[1:])) for _ in some]
        for stops, targets in routes.bands(_MOST_NUMBERS // moments[0].size):
            along = {}
            for e in {e for e, _ in some}:
                found = np.zeros((stops.stop - stops.start, *moments.shape[1:]))
                _carry_terms(moments, found, 0, stops.start, routes.first, between[e])
                along[e] = np.ascontiguousarray(found.swapaxes(2, 3))
            for found, (e, f) in zip(local, some, strict=True):
                start = stops.start, targets.start
                _carry_terms(along[e], found[targets], *start, routes.second, between[f])
        return local

    def _error(self, column):
        """Bound on the error of the sums in each square of queries."""
        apart = (np.abs(self._offsets) - 1).clip(0) * self._width
        largest = np.exp(-0.5 * apart**2)
        sizes, routes = self._squares.keys.totals(column), self._routes
        for legs, n in ((routes.first, routes.n_stops), (routes.second, routes.n_targets)):
            found = np.zeros(n)
            for weight, (source, target) in zip(largest, legs, strict=True):
                found[target] += weight * sizes[source]
            sizes = found
        return _ROUNDING * sizes + _FAR * column.sum()


def _carry_terms(terms, found, first_source, first_target, legs, between):
    """Add over offsets the terms of the sources, times the matrix of the offset.

    Both are ranges of all sources and targets, which begin somewhere.
    """
    shape = terms.shape[1:]
    step = max(1, _BLOCK_NUMBERS // math.prod(shape))
    borders = np.append(np.arange(0, len(found), step), len(found))
    cuts = [np.searchsorted(target, borders + first_target) for _, target in legs]
    for block, first in enumerate(borders[:-1]):
        of_block = found[first : first + step]
        for (source, target), cut, matrix in zip(legs, cuts, between, strict=True):
            some = slice(cut[block], cut[block + 1])
            moved = terms[source[some] - first_source].reshape(-1, _TERMS) @ matrix
            of_block[target[some] - (first_target + first)] += moved.reshape(-1, *shape)


class Squares:
    """Keys and queries in squares of one width, where there are any.

    The width has few digits and squares are counted from 0, so that borders are exact and
    positions within squares lose no digits, wherever these lie.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    queries : ndarray of shape (m, 2)
        The same object as the points for the points themselves.
    scale : float
        The standard deviation of the Gaussian.

    Attributes
    ----------
    width : float
    keys, queries : Rows
    x, y : int ndarray
        Ascending numbers of the columns and rows of squares.
    outside : bool ndarray of shape (m,)
        Queries whose square is not known.
    """

    def __init__(self, points, queries, scale):
        fraction, exponent = math.frexp(_WIDTH * scale)
        self.width = math.ldexp(math.floor(256 * fraction), exponent - 8)
        same = queries is points
        both = points if same else np.concatenate([points, queries])
        number = np.floor(both / self.width)
        furthest = np.abs(number).max(axis=1)
        inside = furthest < 2 * _FURTHEST
        number = np.where(inside[:, None], number, 4 * _FURTHEST)
        with np.errstate(invalid="ignore"):
            place = 2 * (both - number * self.width) / self.width - 1
        place[~inside] = 0.0
        self.x, column = np.unique(number[:, 0], return_inverse=True)
        self.y, row = np.unique(number[:, 1], return_inverse=True)
        code = column * len(self.y) + row
        n = len(points)
        self.keys = Rows(code[:n], place[:n])
        self.queries = self.keys if same else Rows(code[n:], place[n:])
        # Those further in see only squares that are known.
        self.outside = (furthest if same else furthest[n:]) >= _FURTHEST


class Routes:
    """How sums are carried: from squares of keys, over stops, to squares of queries.

    A stop has the column of the target and the row of the source.

    Attributes
    ----------
    first, second : list of (int ndarray, int ndarray)
        For each offset, positions of sources and of stops; of stops and of targets.
    n_stops, n_targets : int
    """

    def __init__(self, squares, offsets):
        n_rows = len(squares.y)
        # Columns of the targets, from each column of sources; rows of sources of targets.
        columns = [_position(squares.x, squares.x - d) for d in offsets]
        rows = [_position(squares.y, squares.y + d) for d in offsets]
        sources, targets = squares.keys.codes, squares.queries.codes
        column, row = np.divmod(sources, n_rows)
        ahead = [np.where(to[column] < 0, -1, to[column] * n_rows + row) for to in columns]
        column, row = np.divmod(targets, n_rows)
        behind = [np.where(to[row] < 0, -1, column * n_rows + to[row]) for to in rows]
        stops = np.intersect1d(np.unique(ahead), np.unique(behind))
        stops = stops[stops >= 0]
        self.first, self.second = [], []
        for codes in ahead:
            stop = _position(stops, codes)
            some = np.flatnonzero(stop >= 0)
            self.first.append((some, stop[some]))
        for codes in behind:
            stop = _position(stops, codes)
            some = np.flatnonzero(stop >= 0)
            self.second.append((stop[some], some))
        self.n_stops, self.n_targets = len(stops), len(targets)
        # Where the columns of stops begin, among stops and targets.
        begin = np.unique(stops // n_rows) * n_rows
        self._columns = [np.searchsorted(codes, begin) for codes in (stops, targets)]

    def bands(self, at_once):
        """Ranges of stops, about so many, and of targets: those of some columns."""
        of_stops, of_targets = self._columns
        new = np.flatnonzero(np.diff(of_stops // max(1, at_once), prepend=-1))
        stops = np.append(of_stops[new], self.n_stops)
        targets = np.append(of_targets[new], self.n_targets)
        for k in range(len(new)):
            yield slice(*stops[k : k + 2]), slice(*targets[k : k + 2])


class Rows:
    """Points ordered by their squares, in chunks of equal size that lie in one square.

    Parameters
    ----------
    codes : int ndarray of shape (n,)
        The square of each point.
    place : ndarray of shape (n, 2)
        Of each point within its square, from -1 to 1.

    Attributes
    ----------
    codes : int ndarray of shape (n_squares,)
        Ascending codes of the squares that hold points.
    counts : int ndarray of shape (n_squares,)
    """

    def __init__(self, codes, place):
        self.n_rows = len(codes)
        order = np.argsort(codes)
        codes = codes[order]
        first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        self.codes = codes[first]
        self.counts = np.diff(np.append(first, len(codes)))
        mean = len(codes) / len(first)
        self._size = size = 2 ** int(np.clip(round(math.log2(mean)), 2, 6))
        n_chunks = -(-self.counts // size)
        before = np.cumsum(n_chunks) - n_chunks
        self._square = np.repeat(np.arange(len(first)), n_chunks)
        slot = np.arange(len(codes)) + np.repeat(before * size - first, self.counts)
        # Where each point lies among the places of all chunks, of which some are empty.
        self._slot = np.empty_like(slot)
        self._slot[order] = slot
        self._x, self._y = self._in_chunks(place.T)

    def _in_chunks(self, columns):
        found = np.zeros((len(columns), len(self._square) * self._size))
        found[:, self._slot] = columns
        return found.reshape(len(columns), -1, self._size)

    def _blocks(self):
        """Chunks, and their Chebyshev polynomials in both directions, a block at a time."""
        step = max(1, _BLOCK_ROWS // self._size)
        for first in range(0, len(self._square), step):
            chunks = slice(first, first + step)
            yield chunks, _polynomials(self._x[chunks]), _polynomials(self._y[chunks])

    def moments(self, columns):
        """Sums of columns times Chebyshev polynomials, (n_squares, c, terms, terms).

        The last axis has the polynomials along the first axis of the plane.
        """
        columns = self._in_chunks(columns).swapaxes(0, 1)
        moments = np.zeros((len(self.codes), columns.shape[1], _TERMS, _TERMS))
        for chunks, x, y in self._blocks():
            terms = (columns[chunks, :, None] * y[:, None]).reshape(len(y), -1, self._size)
            sums = (terms @ x.swapaxes(1, 2)).reshape(-1, *moments.shape[1:])
            square = self._square[chunks]
            first = np.flatnonzero(np.append(True, square[1:] != square[:-1]))
            moments[square[first]] += np.add.reduceat(sums, first)
        return moments

    def evaluate(self, local):
        """Polynomials of the squares at their points, (n_polynomials, c, n)."""
        n_columns = local[0].shape[1]
        found = np.empty((len(local), n_columns, len(self._square), self._size))
        for chunks, x, y in self._blocks():
            square = self._square[chunks]
            for terms, to in zip(local, found, strict=True):
                along = terms[square].reshape(len(square), -1, _TERMS) @ y
                along = along.reshape(len(square), n_columns, _TERMS, self._size)
                along *= x[:, None]
                to[:, chunks] = along.sum(axis=2).swapaxes(0, 1)
        return found.reshape(len(local), n_columns, -1)[:, :, self._slot]

    def totals(self, column):
        """Sums of a column in each square."""
        square = np.repeat(self._square, self._size)[self._slot]
        return np.bincount(square, column, len(self.codes))

    def spread(self, of_squares):
        """What a square has, for each of its points."""
        return np.repeat(of_squares[self._square], self._size)[self._slot]


def powers(degree):
    """Exponents of the two distances, by their sum."""
    return [(s - f, f) for s in range(2 * degree + 1) for f in range(s + 1)]


def _chebyshev(t):
    return np.cos(np.outer(np.arange(_TERMS), np.arccos(t)))


def _polynomials(t):
    """Chebyshev polynomials at (chunks, rows), as (chunks, terms, rows)."""
    found = np.empty((_TERMS, *t.shape))
    found[0], found[1] = 1.0, t
    twice = 2 * t
    for k in range(2, _TERMS):
        np.multiply(twice, found[k - 1], out=found[k])
        found[k] -= found[k - 2]
    return np.ascontiguousarray(found.swapaxes(0, 1))


def _position(values, wanted):
    """Where each wanted value is among ascending ones; -1 where it is not."""
    if not len(values):
        return np.full(np.shape(wanted), -1)
    place = np.searchsorted(values, wanted)
    place[place == len(values)] = 0
    return np.where(values[place] == wanted, place, -1)

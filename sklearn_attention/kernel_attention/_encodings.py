"""Encodings: rows in coordinates in which distances mean different things."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from .._blocks import IN_CACHE, IN_MEMORY, blocks, blocks_of_queries
from .._columns import UNORDERED
from .._spread import dividing

ENCODINGS = ("standard", "quantile", "piecewise_linear")
# Units of a coordinate from the mean to the furthest training row, at most.
_FURTHEST_ROW = 6.0
# Units beyond which squares of scaled coordinates would not be finite.
_FURTHEST = 1e15
# Normal scores beyond this are rows at the edge, whose distance from one another is a guess.
_FURTHEST_SCORE = 2.5
_MOST_KNOTS = 1000
_MOST_BINS = 48
# Of many features together.
_MOST_BINS_TOGETHER = 1200
# Levels beyond which a category is only in the first encoding, and may be an identifier of
# rows, which does not generalise.
_MANY_LEVELS = 64
# Levels of fewer rows are one, in categories of more levels than these and so many rows, unless
# such a share of the variance is between them: errors of flights' delays are .91 to .94, of
# films .92 to .95, in a third of the seconds; of 220 rows they were up to 1.3, of shops that
# have half of the variance 1.3 to 1.5.
_TOLD = 0.25
_RARE, _FEW_LEVELS, _ROWS_OF_RARE = 5, 20, 600
# Rows by which spreads and directions are known, at most.
SAMPLED = 4000


@dataclass(frozen=True)
class Encoding:
    """Coordinates in which rows are compared."""

    # Numbers become one column or several, categories one column for each level; a feature with
    # missing cells has a further column that marks them. Coordinates of numbers are, in
    # "standard", distances from the mean; in "quantile", normal scores, both in standard
    # deviations, or larger units where rows are further away than 6; in "piecewise_linear",
    # clip((x - e_b) / (e_{b+1} - e_b), 0, 1) for each bin between quantiles, less its mean
    # (Gorishniy, Rubachev and Babenko 2022, NeurIPS 35).

    name: str
    numeric: np.ndarray  # features that are numbers and vary
    knots: list  # for each of them edges of bins, or values
    scores: list  # with their normal scores
    # Feature and code of each level of a category, NaN for all codes without a column.
    levels: np.ndarray
    missing: np.ndarray  # features with missing cells
    feature: np.ndarray  # the feature that each column belongs to
    center: np.ndarray  # of each column of numbers, in units of the scale
    scale: np.ndarray

    @classmethod
    def learn(cls, name, X, kinds, fewest_bins=12, most_levels=np.inf, targets=None):
        """The encoding of the columns of X: numbers, NaN where missing, and codes of levels."""
        # The number of bins grows with that of rows, up to 48, and 1200 of all features.
        # Categories of more than `most_levels` are left out. Rare levels that do not tell
        # `targets` (n, n_outputs) are one.
        learn = {"standard": _standard, "quantile": _quantile, "piecewise_linear": _bins}[name]
        numeric, knots, scores = [], [], []
        levels, missing = [], []
        n_bins = max(fewest_bins, _usual_n_bins(len(X)))
        together = _MOST_BINS_TOGETHER // max(1, sum(kind != UNORDERED for kind in kinds))
        n_bins = min(n_bins, max(1, together))
        for j, kind in enumerate(kinds):
            column = X[:, j]
            known = column[~np.isnan(column)]
            varies = len(known) > 0 and known.min() < known.max()
            if kind == UNORDERED:
                told = targets is not None and tells_rare(known, targets[~np.isnan(column)])
                found = _levels(known, told)
                levels += [(j, level) for level in found] if len(found) <= most_levels else []
            elif varies:
                x, u = learn(known, n_bins)
                numeric.append(j)
                knots.append(x)
                scores.append(u)
            if 0 < len(known) < len(X):
                missing.append(j)
        levels = np.array(levels, dtype=np.float64).reshape(-1, 2)
        width = [len(x) - 1 if name == "piecewise_linear" else 1 for x in knots]
        feature = np.concatenate([np.repeat(numeric, width), levels[:, 0], missing])
        moments = [
            _moments(name, X[:, j], x, u)
            for j, x, u in zip(numeric, knots, scores, strict=True)
        ]
        center, scale = np.concatenate([np.zeros((2, 0)), *moments], axis=1)
        return cls(
            name, np.array(numeric, dtype=np.int64), knots, scores, levels,
            np.array(missing, dtype=np.int64), feature.astype(np.int64), center, scale,
        )  # fmt: skip

    @classmethod
    def learn_all(cls, names, X, kinds, fewest_bins, targets=None):
        """Encodings of the same rows; only the first one has categories of many levels."""
        most = [np.inf] + [_MANY_LEVELS] * (len(names) - 1)
        return [
            cls.learn(name, X, kinds, fewest_bins, most_levels, targets)
            for name, most_levels in zip(names, most, strict=True)
        ]

    def __len__(self):
        return len(self.feature)

    def level_columns(self, feature):
        """Positions of the columns of a category's levels."""
        return len(self.center) + np.flatnonzero(self.levels[:, 0] == feature)

    def largest_level(self, feature, codes):
        """Number of codes of the most frequent level of a category; rare levels are one."""
        alone = np.isin(codes, self.levels[self.levels[:, 0] == feature, 1])
        counts = np.unique(codes[alone], return_counts=True)[1]
        return max(counts.max(initial=0), np.count_nonzero(~alone))

    @property
    def many_levels(self):
        """Categories of so many levels that only the first encoding has them."""
        features, counts = np.unique(self.levels[:, 0], return_counts=True)
        return features[counts > _MANY_LEVELS].astype(np.int64)

    def encode(self, X, dtype=np.float64):
        """Rows in the coordinates of the encoding, (n, n_columns)."""
        coordinates = np.empty((len(X), len(self)), dtype=dtype)
        n_numbers, n_levels = len(self.center), len(self.levels)
        features = self.levels[:, 0].astype(np.int64)
        for rows in blocks_of_queries(len(X), max(1, len(self))):
            x, z = X[rows], coordinates[rows]
            self._place(x, z[:, :n_numbers])
            own = x[:, features] == self.levels[:, 1]
            for rest in np.flatnonzero(np.isnan(self.levels[:, 1])):
                own[:, rest] = ~own[:, features == features[rest]].any(axis=1)
            z[:, n_numbers : n_numbers + n_levels] = own
            z[:, n_numbers + n_levels :] = np.isnan(x[:, self.missing])
        return coordinates

    def derivative(self, X):
        """Derivative of each coordinate in its own feature, (n, n_columns).

        0 for categories and missing cells; at edges of bins, the lower one's.
        """
        found = np.zeros((len(X), len(self)))
        start = 0
        for j, knots, scores in zip(self.numeric, self.knots, self.scores, strict=True):
            x = X[:, [j]]
            if self.name == "standard":
                slopes = np.ones_like(x)
            elif self.name == "quantile":
                steps = np.diff(scores) / np.diff(knots)
                bin_of = np.clip(np.searchsorted(knots, x) - 1, 0, len(steps) - 1)
                slopes = np.where((x > knots[0]) & (x <= knots[-1]), steps[bin_of], 0.0)
            else:
                slopes = ((x > knots[:-1]) & (x <= knots[1:])) / np.diff(knots)
            found[:, start : start + slopes.shape[1]] = np.where(np.isnan(x), 0.0, slopes)
            start += slopes.shape[1]
        found[:, :start] /= self.scale
        return found

    def column_names(self, names):
        """Names of the columns, from those of the features."""
        bins, columns = {}, []
        for j in self.feature[: len(self.center)]:
            bins[j] = bins.get(j, -1) + 1
            several = self.name == "piecewise_linear"
            columns.append(f"{self.name}__{names[j]}" + (f"_{bins[j]}" if several else ""))
        columns += [f"{self.name}__{names[int(j)]}_level{level:g}" for j, level in self.levels]
        columns += [f"{self.name}__{names[j]}_missing" for j in self.missing]
        return columns

    def _place(self, X, coordinates):
        """Write the coordinates of the numbers; missing ones lie where the average row does."""
        if not len(self.numeric):
            return
        if self.name == "piecewise_linear":
            self._place_bins(X, coordinates)
        else:
            x = X[:, self.numeric].astype(np.float64)
            if self.name == "quantile":
                for own, knots, scores in zip(x.T, self.knots, self.scores, strict=True):
                    own[:] = np.interp(own, knots, scores)
            x = (x - self.center) / self.scale
            coordinates[:] = np.clip(x, -_FURTHEST, _FURTHEST)
        missing = np.isnan(X[:, self.numeric])
        if missing.any():
            own = np.searchsorted(self.numeric, self.feature[: len(self.center)])
            np.copyto(coordinates, 0, where=missing[:, own])

    def _place_bins(self, X, coordinates):
        lower = np.concatenate([knots[:-1] for knots in self.knots])
        width = np.concatenate([np.diff(knots) for knots in self.knots])
        feature, center = self.feature[: len(lower)], self.center.astype(coordinates.dtype)
        for rows in blocks(len(X), max(1, IN_CACHE // len(lower))):
            covered = X[rows].astype(np.float64).take(feature, axis=1)
            covered -= lower
            with np.errstate(over="ignore"):
                covered /= width
            np.maximum(covered, 0, out=covered)
            coordinates[rows] = np.minimum(covered, 1, out=covered)
            coordinates[rows] -= center


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
        if len(self) * sum(map(len, self.encodings)) > IN_MEMORY:
            return [encoding.encode(self.X[rows], dtype) for encoding in self.encodings]
        if dtype not in self._kept:
            self._kept[dtype] = [encoding.encode(self.X, dtype) for encoding in self.encodings]
        return [z[rows] for z in self._kept[dtype]]


@dataclass(frozen=True)
class TrainingRows:
    """Rows in their encodings, with targets and weights."""

    X: np.ndarray  # numbers and codes
    values: np.ndarray  # (n,) or (n, n_outputs)
    weights: np.ndarray  # of mean 1, positive
    encodings: list
    center: np.ndarray  # of the values in units of the targets, (n_outputs,)
    scale: np.ndarray

    def __len__(self):
        return len(self.X)

    @cached_property
    def targets(self):
        """Values as members learn them, of mean 0 and about unit variance, (n, n_outputs)."""
        return (self.values.reshape(len(self), -1) - self.center) / self.scale

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
        for rows in blocks(len(X), max(IN_MEMORY // 4 // n_columns, len(self) // 2, 1)):
            yield self.queries(X[rows])

    @cached_property
    def _encoded(self):
        return EncodedRows(self.X, self.encodings)


def _value(name, x, knots, scores):
    return np.interp(x, knots, scores) if name == "quantile" else x


def _moments(name, x, knots, scores):
    """Mean and unit of a number's coordinates, (2, n_columns)."""
    x = x[~np.isnan(x)]
    if name != "piecewise_linear":
        z = _value(name, x, knots, scores)
        # In units of a power of two, in which no square overflows, and not all vanish.
        exponent = np.frexp(np.abs(z).max())[1]
        z = np.ldexp(z, -exponent)
        mean = z.mean()
        # Where nearly all rows share a value, the few others are many deviations away, and
        # the linear part, alike in all columns, would learn a large effect from them.
        unit = max(z.std(), np.abs(z - mean).max() / _FURTHEST_ROW)
        return np.ldexp([[mean], [unit]], exponent)
    # Of a bin: how far those within it reach, and one for all beyond.
    n_bins = len(knots) - 1
    bin_of, covered = _covered(x, knots)
    counts = np.bincount(bin_of, minlength=n_bins)
    mean = np.bincount(bin_of, covered, minlength=n_bins) + len(x) - np.cumsum(counts)
    return np.stack([mean / len(x), np.ones(n_bins)])


def _covered(x, knots):
    """The bin of each number, and how far it reaches into it."""
    bin_of = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    return bin_of, np.clip((x - knots[bin_of]) / np.diff(knots)[bin_of], 0, 1)


def tells_rare(codes, targets):
    """True if rare levels tell much of the targets, (n_rows, n_outputs)."""
    # By the intraclass correlation: the share of variance that is between levels, of those of
    # more than one row (Fisher 1925). Outputs count in units of their deviations.
    _, level, counts = np.unique(codes, return_inverse=True, return_counts=True)
    rows = (counts[level] > 1) & (counts[level] < _RARE)
    group = np.unique(level[rows], return_inverse=True)[1]
    n, n_groups = len(group), group.max(initial=-1) + 1
    if n_groups < 2:
        return False
    y = targets[rows] - targets[rows].mean(axis=0)
    y /= dividing(np.abs(y).max(axis=0))  # whose squares are finite
    y /= dividing(y.std(axis=0))
    sizes = np.bincount(group)
    means = np.stack([np.bincount(group, own) / sizes for own in y.T], axis=1)
    between = (sizes @ np.square(means)).sum() / (n_groups - 1)
    within = np.square(y - means[group]).sum() / (n - n_groups)
    size = (n - np.square(sizes).sum() / n) / (n_groups - 1)
    return bool(between - within > _TOLD * (between + (size - 1) * within))


def _levels(codes, tells_rare):
    """The levels that occur, if there are two: a constant compares nothing.

    Rare ones of many are one if they tell little, and in few rows those of one row each, where
    most rows have such.
    """
    found, counts = np.unique(codes, return_counts=True)
    least, many = 1, len(codes) >= _ROWS_OF_RARE and len(found) > _FEW_LEVELS
    if many and not tells_rare and counts.max() >= _RARE:
        least = _RARE
    elif len(found) > _MANY_LEVELS and (counts == 1).sum() > len(codes) / 2:
        least = 2
    if (counts < least).any():
        found = np.append(found[counts >= least], np.nan)
    return found if len(found) > 1 else found[:0]


def _usual_n_bins(n_samples):
    return min(round(n_samples**0.37), _MOST_BINS)


def _standard(x, n_bins):
    return np.zeros(1), np.zeros(1)


def _quantile(x, n_bins):
    """Normal scores at the values that occur, or at quantiles of many."""
    values, counts = np.unique(x, return_counts=True)
    share = (np.cumsum(counts) - counts / 2) / len(x)
    if len(values) > _MOST_KNOTS:
        kept = np.unique(np.searchsorted(share, np.linspace(0, 1, _MOST_KNOTS)))
        kept = kept[kept < len(values)]
        values, share = values[kept], share[kept]
    return values, np.clip(ndtri(share), -_FURTHEST_SCORE, _FURTHEST_SCORE)


def _bins(x, n_bins):
    """Edges at quantiles; every value that occurs is one where there are few."""
    edges = np.unique(x)
    if len(edges) > n_bins + 1:
        edges = np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)))
    return edges, np.zeros(1)

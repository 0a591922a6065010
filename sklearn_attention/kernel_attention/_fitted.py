"""Fits of kernel attention, and all that is computed from them, for numbers and classes."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np
from scipy import ndimage

from .._columns import Columns
from .._stacking import nonnegative_weights
from .._thread_pools import one_blas_thread
from ._distribution import HeldOutRows
from ._encodings import SAMPLED, Encoding, TrainingRows
from ._members import LocalAverage
from ._ridge import RidgeMember

# Rows that a fold holds out, at most.
_MOST_HELD_OUT = 1000
# A column with so many different values, as a share of the different rows, is one in which
# rows do not agree by chance.
_LEAST_DIFFERENT = 0.5
# Equal rows so many times as many as most of the same target has are observations.
_MOST_COPIES = 10


@dataclasses.dataclass(frozen=True)
class Task:
    """Differences between regression and classification."""

    # From readout, frequencies of classes and outputs to a loss of leave-one-out errors.
    loss: Callable
    # From numbers of rows and folds to the KernelRidge of each kind.
    ridges: Callable
    # From names, held-out predictions, targets and weights of the first fold to the names of
    # the kinds that are worth their time.
    keep: Callable
    folds: Mapping  # number of folds, by the number of rows at most
    scales_targets: bool
    fewest_bins: int


@dataclasses.dataclass(frozen=True)
class Rows:
    """Training rows as they were read."""

    X: np.ndarray  # (n, n_features), numbers and codes
    values: np.ndarray  # (n,) or (n, n_columns)
    weights: np.ndarray | None
    columns: Columns
    outputs: list  # slices, the columns of the values that are one output


@dataclasses.dataclass(frozen=True)
class Fitted:
    """Training rows, members of every kind, and the rows that were held out."""

    training: TrainingRows
    positions: np.ndarray  # of the stored rows among those passed
    kinds: list
    members: list  # for each kind those of all folds
    shares: np.ndarray  # of each kind in predictions, (n_kinds, n_outputs)
    folds: list  # rows held out by each fold

    @property
    def held_out(self):
        """Positions of the rows held out, fold by fold."""
        return np.concatenate(self.folds)

    def scores(self, X):
        """Predictions of each kind, the mean over its members, (n_kinds, n, n_outputs)."""
        with one_blas_thread():
            found = [
                [
                    sum(member.predict(self.training, queries) for member in members)
                    / len(members)
                    for members in self.members
                ]
                for queries in self.training.query_blocks(X)
            ]
            return np.concatenate(found, axis=1)

    def predict(self, X):
        """Predictions of all kinds together, in units of the members, (n, n_outputs)."""
        return np.einsum("kno,ko->no", self.scores(X), self.shares)

    def weights(self, X, outputs):
        """Effective weights of the training rows in predictions, (n, n_training, *outputs).

        `outputs` is an index of one or several outputs, whose blends may differ.
        """
        total = 0.0
        for members, share in zip(self.members, self.shares[:, outputs], strict=True):
            weights = [member.weights(self.training, X) for member in members]
            total = total + np.multiply.outer(np.mean(weights, axis=0), share)
        if self.training.center.any():
            # What is left of weight 1 is that of the mean, which is all rows'.
            of_mean = self.training.weights / self.training.weights.sum()
            rest = np.multiply.outer(1 - total.sum(axis=1), of_mean)
            total += np.moveaxis(rest, -1, 1)
        return total

    def slopes(self, X):
        """Derivatives of predictions, in units of the values, (n, n_outputs, n_features)."""
        total = 0.0
        for members, share in zip(self.members, self.shares, strict=True):
            slopes = [member.slopes(self.training, X) for member in members]
            total = total + np.mean(slopes, axis=0) * share[:, None]
        return total * self.training.scale[:, None]

    def space(self, X):
        """Rows in the learned space of the first member, (n, n_columns)."""
        return self.members[0][0].kernel.space(self.training.encode(X, np.float64))

    def scores_of_held_out(self):
        """Predictions of the rows held out by the members of their folds, with these rows.

        (n_kinds, n_held_out, n_outputs), fold by fold.
        """
        return np.stack([
            np.concatenate([
                member.predict(self.training, self.training.X[fold])
                for member, fold in zip(members, self.folds, strict=True)
            ])
            for members in self.members
        ])  # fmt: skip

    @functools.cached_property
    def held_out_rows(self):
        """Rows held out, as distributions of errors compare them with queries."""
        member, training = self.members[0][0], self.training
        rows = training.encode(training.X[self.held_out], np.float64)
        varied = isinstance(member, RidgeMember)
        return HeldOutRows(member.kernel, rows, training.weights[self.held_out], varied)

    def attributes(self):
        """Public attributes of an estimator."""
        length_scales = self._length_scales()
        return {
            "keys_": self.training.X,
            "values_": self.training.values,
            "key_weights_": self.training.weights,
            "encodings_": self.training.encodings,
            "members_": [member for members in self.members for member in members],
            "held_out_rows_": self.held_out,
            "length_scales_": length_scales,
            "bandwidth_": length_scales[0].copy(),
            "feature_relevance_": self._relevance(),
        }

    @property
    def _kernels(self):
        return [member.kernel for members in self.members for member in members]

    def _length_scales(self):
        """Geometric means over the members, (n_encodings, n_features)."""
        encodings = self.training.encodings
        means = np.mean([kernel.named()["scale"] for kernel in self._kernels], axis=0)
        found = np.full((len(encodings), self.training.X.shape[1]), np.inf)
        for own, encoding, log_scales in zip(found, encodings, means, strict=True):
            used = np.unique(encoding.feature)
            own[used] = np.exp(-log_scales[used])
            if encoding.name == "standard":
                own[encoding.numeric] *= encoding.scale
        return found

    def _relevance(self):
        """Share of each feature in the mean squared distance, (n_features,)."""
        training = self.training
        sample = training.encode(training.X[:SAMPLED], np.float64)
        variances = np.concatenate([z.var(axis=0) for z in sample])
        squares = sum(np.square(np.concatenate(k.column_scales)) for k in self._kernels)
        features = np.concatenate(training.features)
        relevance = np.bincount(features, variances * squares, training.X.shape[1])
        total = relevance.sum()
        return relevance / total if total > 0 else relevance


def fit_kernel_attention(rows, task, options, report):
    """Learn encodings and members; return Fitted, and predictions of the rows held out."""
    # The latter (n_kinds, n_held_out, n_outputs), in units of the members, are each by members
    # that have not learned from the row, and without it.
    positions, weights = _remembered(rows)
    X, values = rows.X[positions], rows.values[positions]
    center, scale = _units(values.reshape(len(X), -1), weights, task, options)
    encodings = Encoding.learn_all(
        options.encodings, X, rows.columns.kinds, task.fewest_bins, values.reshape(len(X), -1)
    )
    training = TrainingRows(X, values, weights, encodings, center, scale)
    folds = _folds(len(X), task, options, np.random.default_rng(options.seed))
    learners = {options.readout: LocalAverage()}
    if options.readout == "solve":
        learners = task.ridges(len(X), len(folds))
    loss = task.loss(options.readout, center, rows.outputs)
    report.begin(len(folds) * len(learners))
    found = {kind: [] for kind in learners}
    for number, fold in enumerate(folds):
        for order, kind in enumerate(list(found)):
            rng = np.random.default_rng([options.seed, number, order])
            found[kind].append(learners[kind].fit(training, fold, loss, rng, options))
            report.done()
        if number == 0 and len(found) > 1:
            first = np.stack([fits[0][1] for fits in found.values()])
            known = training.targets[fold], weights[fold]
            found = {kind: found[kind] for kind in task.keep(list(found), first, *known)}
    left_out = np.stack([np.concatenate([left for _, left in fits]) for fits in found.values()])
    held_out = np.concatenate(folds)
    shares = np.ones((1, len(center)))
    if len(found) > 1:
        shares = blend(left_out, training.targets[held_out], weights[held_out])
    used = shares.any(axis=1)
    members = [[member for member, _ in fits] for fits in found.values()]
    fitted = Fitted(
        training, positions,
        kinds=[kind for kind, kept in zip(found, used, strict=True) if kept],
        members=[own for own, kept in zip(members, used, strict=True) if kept],
        shares=shares[used], folds=folds,
    )  # fmt: skip
    return fitted, left_out[used]


def _remembered(rows):
    """Positions and weights, of mean 1, of rows without copies and those of weight 0."""
    positions, weights = np.arange(len(rows.X)), np.ones(len(rows.X))
    if rows.weights is not None:
        positions = np.flatnonzero(rows.weights)
        weights = rows.weights[positions]
    own, weights = join_copies(rows.X[positions], rows.values[positions], weights)
    return positions[own], weights / weights.mean()


def join_copies(X, values, weights):
    """Positions of the first of equal rows, and their joint weights."""
    # Rows are copies if they agree in all features and targets, and one of these, a number that
    # hardly ever repeats, shows that this is no coincidence. Where all columns have few values,
    # as counts and categories do, equal rows are observations like any others. So they are
    # where one is there many times, as the background of pictures, and others of its target are
    # not: in samples with replacement all are. As one row, left out as one, it would rule what
    # is learned: of mammograms, three in ten of which are equal, the log-loss is .78 to .97 of
    # that with them joined; of samples with replacement as observations .6 to 1.1.
    table = np.column_stack([X, values])
    # A missing cell equals another one; infinite ones there are not.
    table = np.where(np.isnan(table), np.inf, table)
    first = _first_of_equals(table)
    kept, group = np.unique(first, return_inverse=True)
    if len(kept) == len(table):
        return kept, weights
    most = max(len(np.unique(column)) for column in table[kept].T)
    copies = np.bincount(group)
    target = np.unique(_first_of_equals(table[kept, X.shape[1] :]), return_inverse=True)[1]
    usual = ndimage.median(copies, target, np.arange(target.max() + 1))
    many = (copies > _MOST_COPIES * usual[target]).any()
    if many or most < _LEAST_DIFFERENT * len(kept):
        return np.arange(len(table)), weights
    return kept, np.bincount(group, weights)


def _first_of_equals(table):
    """For each row the first one that equals it."""
    # Equal rows have equal sums, so that they are neighbours once these are sorted.
    mix = np.random.default_rng(0).uniform(0.5, 1.5, table.shape[1])
    spread = np.where(np.isfinite(table), table, 0.0)
    largest = np.abs(spread).max(axis=0)
    sums = (spread / np.where(largest > 0, largest, 1.0) * mix).sum(axis=1)
    order = np.argsort(sums, kind="stable")
    equal = (table[order[1:]] == table[order[:-1]]).all(axis=1)
    starts = np.concatenate([[True], ~equal])
    first = np.empty(len(table), dtype=np.int64)
    first[order] = order[starts][np.cumsum(starts) - 1]
    return first


def _units(values, weights, task, options):
    """Mean and deviation of the values, 0 and 1 where members learn them as they are."""
    center, scale = np.zeros(values.shape[1]), np.ones(values.shape[1])
    if options.learns or not task.scales_targets:
        center = np.average(values, axis=0, weights=weights)
    if options.learns and task.scales_targets:
        with np.errstate(over="ignore"):
            squares = np.square(values - center)
        spread = np.sqrt(np.average(squares, axis=0, weights=weights))
        if not np.isfinite(spread).all():
            raise ValueError(
                f"y has values as large as {np.abs(values).max():g}, whose squares are "
                "infinite: divide it by its largest value."
            )
        tiny = 1e-12 * np.abs(values).max(axis=0)
        scale = np.where(spread > tiny, spread, 1.0)
    return center, scale


def _folds(n, task, options, rng):
    """Rows that members do not learn from, of each fold."""
    n_folds = options.n_folds
    if n_folds is None:
        n_folds = next(folds for most, folds in task.folds.items() if n <= most)
        n_folds = 1 if n < 2 * n_folds else n_folds
    if n_folds > max(1, n // 2):
        raise ValueError(
            f"n_folds={n_folds!r} folds need two rows each, but only {n} rows "
            "have weight: pass fewer, or more rows."
        )
    shuffled = rng.permutation(n)
    if not options.learns or n // 4 < 2:
        # There is nothing to learn, or a fold would be a single row.
        folds = [shuffled]
    elif n_folds < 4:
        folds = np.split(shuffled[: n // 4 * n_folds], n_folds)
    else:
        folds = np.array_split(shuffled, n_folds)
    return [np.sort(fold[:_MOST_HELD_OUT]) for fold in folds]


def blend(left_out, targets, weights):
    """Non-negative weights (n_kinds, n_outputs), by which held-out predictions fit best."""
    found = np.zeros((len(left_out), targets.shape[1]))
    for output, target in enumerate(targets.T):
        columns = left_out[:, :, output].T
        found[:, output] = nonnegative_weights(columns, target, weights)
        if not found[:, output].any():
            # None predicts better than the mean; the least bad one is near it.
            found[(weights @ np.square(columns - target[:, None])).argmin(), output] = 1.0
    return found

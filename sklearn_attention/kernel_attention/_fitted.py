"""Fits of kernel attention, and all that is computed from them, for numbers and classes."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np
from scipy import ndimage

from .._columns import Columns
from .._shapley import mixed_rows
from .._thread_pools import one_blas_thread
from ..kernels import Gaussian
from ._additive import AdditivePart, fit_additive
from ._distribution import HeldOutRows
from ._encodings import SAMPLE_SIZE, Encoding, TrainingRows
from ._members import AverageLearner
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
    ridge: Callable  # from the number of rows to a RidgeLearner
    folds: Mapping  # number of folds, by the number of rows at most
    scales_targets: bool
    min_bins: int
    fewest_additive_rows: int  # with which an additive part is tried


@dataclasses.dataclass(frozen=True)
class ReadRows:
    """Training rows as they were read."""

    X: np.ndarray  # (n, n_features), numbers and codes
    values: np.ndarray  # (n,) or (n, n_columns)
    weights: np.ndarray | None
    columns: Columns
    outputs: list  # slices, the columns of the values that are one output


@dataclasses.dataclass(frozen=True)
class Fitted:
    """Training rows, members, and the rows that were held out."""

    training: TrainingRows
    positions: np.ndarray  # of the stored rows among those passed
    members: list  # of all folds
    folds: list  # rows held out by each fold
    # None where it does not help, and in files of 0.2.0.
    additive: AdditivePart | None = None

    @property
    def kernel_weights(self):
        """Weight of every member beside its additive part, (n_members,)."""
        return np.ones(len(self.members)) if self.additive is None else 1 - self.additive.shares

    @property
    def n_outputs(self):
        """Number of columns of predictions."""
        return self.training.targets.shape[1]

    @property
    def held_out(self):
        """Positions of the rows held out, fold by fold."""
        return np.concatenate(self.folds)

    def predict(self, X):
        """Mean of the members' predictions, in their units, (n, n_outputs)."""
        with one_blas_thread():
            predictions = [
                self._mean_of_members("predict", queries)
                for queries in self.training.query_blocks(X)
            ]
        return np.concatenate(predictions)

    def weights(self, X):
        """Effective weights of the training rows in predictions, (n, n_training)."""
        total = self._mean_of_members("weights", X)
        if self.training.center.any():
            # What is left of weight 1 is that of the mean, which is all rows'.
            of_mean = self.training.weights / self.training.weights.sum()
            total += np.outer(1 - total.sum(axis=1), of_mean)
        return total

    def slopes(self, X):
        """Derivatives of predictions, in units of the values, (n, n_outputs, n_features)."""
        return self._mean_of_members("slopes", X) * self.training.scale[:, None]

    def predict_mixed(self, rows, others, masks, *, mean=False):
        """Predict rows that have some features of other rows.

        Parameters
        ----------
        rows, others : ndarray of shape (n, n_features)
            Numbers and codes of levels.
        masks : ndarray of bool of shape (n_masks, n_features)
            Features that mixed rows have from `rows`; they have the rest from `others`.
        mean : bool, default=False
            Whether to average over `others`.

        Returns
        -------
        predictions : ndarray of shape (n_masks, n_rows, n_others, n_outputs)
            In the units of the members. With `mean`, n_others is 1.
        """
        kernels = [member.kernel for member in self.members if isinstance(member, RidgeMember)]
        if kernels and isinstance(kernels[0].formula, Gaussian):
            with one_blas_thread():
                return self._mean_of_members("predict_mixed", rows, others, masks, mean)
        mixed = mixed_rows(rows, others, masks)
        predictions = self.predict(mixed.reshape(-1, masks.shape[1]))
        predictions = predictions.reshape(*mixed.shape[:3], -1)
        return predictions.mean(axis=2, keepdims=True) if mean else predictions

    def _mean_of_members(self, method, *arguments):
        """Mean of what a method of all members and their additive parts returns."""
        members = zip(self.kernel_weights, self.members, strict=True)
        total = sum(
            weight * getattr(member, method)(self.training, *arguments)
            for weight, member in members
            if weight > 0
        )
        if self.additive is not None:
            total = total + getattr(self.additive, method)(self.training, *arguments)
        return total / len(self.members)

    def space(self, X):
        """Rows in the learned space of the first member, (n, n_columns)."""
        return self.members[0].kernel.space(self.training.encode(X, np.float64))

    def predict_held_out(self):
        """Of the rows held out, by the members of their folds, with these rows."""
        predictions = []
        for number, (member, fold) in enumerate(zip(self.members, self.folds, strict=True)):
            X, additive = self.training.X[fold], self.additive
            prediction = self.kernel_weights[number] * member.predict(self.training, X)
            if additive is not None:
                coefficients = additive.shares[number] * additive.coefficients[number]
                prediction += additive.columns.predict(X, coefficients)
            predictions.append(prediction)
        return np.concatenate(predictions)

    @functools.cached_property
    def held_out_rows(self):
        """Rows held out, as distributions of errors compare them with queries."""
        member, training = self.members[0], self.training
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
            "members_": list(self.members),
            "held_out_rows_": self.held_out,
            "length_scales_": length_scales,
            "bandwidth_": length_scales[0].copy(),
            "additive_share_": 1 - float(self.kernel_weights.mean()),
        }

    def _length_scales(self):
        """Geometric means over the members, (n_encodings, n_features)."""
        encodings = self.training.encodings
        means = np.mean([member.kernel.named()["scale"] for member in self.members], axis=0)
        found = np.full((len(encodings), self.training.X.shape[1]), np.inf)
        for own, encoding, log_scales in zip(found, encodings, means, strict=True):
            used = np.unique(encoding.feature)
            own[used] = np.exp(-log_scales[used])
            if encoding.name == "standard":
                own[encoding.numeric] *= encoding.scale
        return found

    @functools.cached_property
    def relevance(self):
        """Share of each feature in the mean squared distance, (n_features,)."""
        training = self.training
        sample = training.encode(training.X[:SAMPLE_SIZE], np.float64)
        variances = np.concatenate([z.var(axis=0) for z in sample])
        scales = [np.concatenate(member.kernel.column_scales) for member in self.members]
        squares = np.square(scales).sum(axis=0)
        features = np.concatenate(training.features)
        relevance = np.bincount(features, variances * squares, training.X.shape[1])
        total = relevance.sum()
        return relevance / total if total > 0 else relevance


def fit_kernel_attention(rows, task, options, report):
    """Learn encodings and members; return Fitted, and predictions of the rows held out."""
    # The latter (n_held_out, n_outputs), in units of the members, are each by a member that has
    # not learned from the row, and without it.
    positions, weights = _remembered(rows)
    X, values = rows.X[positions], rows.values[positions]
    center, scale = _units(values.reshape(len(X), -1), weights, task, options)
    encodings = Encoding.learn_all(
        options.encodings, X, rows.columns.kinds, task.min_bins, values.reshape(len(X), -1)
    )
    training = TrainingRows(X, values, weights, encodings, center, scale)
    folds = _folds(len(X), task, options, np.random.default_rng(options.seed))
    learner = task.ridge(len(X)) if options.readout == "solve" else AverageLearner()
    loss = task.loss(options.readout, center, rows.outputs)
    report.begin(len(folds))
    members, left_out = [], []
    for number, fold in enumerate(folds):
        rng = np.random.default_rng([options.seed, number, 0])
        member, left = learner.fit(training, fold, loss, rng, options)
        members.append(member)
        left_out.append(left)
        report.done("member")
    additive, learns = None, options.learns and options.ridge is None
    if options.readout == "solve" and learns and len(X) >= task.fewest_additive_rows:
        additive, left_out = fit_additive(training, rows.columns.kinds, folds, left_out, loss)
    # A copy, without the coordinates that the training has kept.
    training = dataclasses.replace(training)
    return Fitted(training, positions, members, folds, additive), np.concatenate(left_out)


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
    # is learned: of mammograms, three in ten of which are equal, the log-loss is 0.78 to 0.97
    # of that with them joined; of samples with replacement as observations 0.6 to 1.1.
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
            f"n_folds={n_folds!r} needs two rows in each fold, but only {n} rows have positive "
            "weight: pass a smaller n_folds, or more rows of positive weight."
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

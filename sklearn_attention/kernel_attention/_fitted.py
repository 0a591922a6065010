"""Fits of kernel attention, and all that is computed from them, for numbers and classes.

A fit is an ensemble of members, one for each fold. A member learns its kernel without the rows
of its fold, then takes all rows into account, and predicts each row of its fold without this
row. These leave-one-out predictions of the rows held out choose the weight of the additive part
and of boosted trees, and their errors make intervals. Members predict outputs: standardised
targets, or for classes scores, which are indicators of the classes minus their frequencies.
"""

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

# Maximum number of rows that a fold holds out.
_MAX_HELD_OUT = 1000
# Equal rows are copies only if some column has at least this many distinct values, as a
# fraction of the number of distinct rows, so that rows do not agree in it by chance.
_MIN_DISTINCT = 0.5
# Equal rows are separate observations if one row occurs more often than this number times the
# median number of occurrences of rows with the same target.
_MAX_COPIES = 10


@dataclasses.dataclass(frozen=True)
class Task:
    """Differences between regression and classification."""

    # loss(readout, frequencies of classes, outputs) returns a loss, as RidgeLearner needs it.
    loss: Callable
    ridge: Callable  # ridge(number of rows) returns a RidgeLearner
    folds: Mapping  # from maximum numbers of rows, ascending, to numbers of folds
    scales_targets: bool  # whether targets are divided by their standard deviation
    min_bins: int  # minimum number of bins of the piecewise linear encoding
    min_additive_rows: int  # minimum number of rows with which an additive part is tried


@dataclasses.dataclass(frozen=True)
class ReadRows:
    """Training rows as they were read."""

    X: np.ndarray  # (n, n_features), numbers and codes of levels
    values: np.ndarray  # (n,) or (n, n_columns)
    weights: np.ndarray | None
    columns: Columns
    outputs: list  # for classes, a slice for each output: its columns of the values


@dataclasses.dataclass(frozen=True)
class Fitted:
    """Training rows, members, and the rows that were held out."""

    training: TrainingRows
    positions: np.ndarray  # positions of the training rows among the rows that were passed
    members: list  # a RidgeMember or AverageMember of each fold
    folds: list  # positions of the training rows that each fold holds out
    # None if it does not help, and in files of version 0.2.0.
    additive: AdditivePart | None = None

    @property
    def kernel_weights(self):
        """Weight of each member's kernel, 1 minus its additive weight, (n_members,)."""
        return np.ones(len(self.members)) if self.additive is None else 1 - self.additive.shares

    @property
    def n_outputs(self):
        """Number of columns of members' predictions."""
        return self.training.targets.shape[1]

    @property
    def held_out(self):
        """Positions of all rows held out, fold by fold, (n_held_out,)."""
        return np.concatenate(self.folds)

    def predict(self, X):
        """Return the mean of the members' predictions, in their units, (n, n_outputs)."""
        with one_blas_thread():
            predictions = [
                self._mean_of_members("predict", queries)
                for queries in self.training.query_blocks(X)
            ]
        return np.concatenate(predictions)

    def weights(self, X):
        """Return the effective weights of training rows in predictions, (n, n_training)."""
        total = self._mean_of_members("weights", X)
        if self.training.center.any():
            # Members predict deviations from the mean of the targets, which is also a weighted
            # sum of targets.
            weights_in_mean = self.training.weights / self.training.weights.sum()
            total += np.outer(1 - total.sum(axis=1), weights_in_mean)
        return total

    def slopes(self, X):
        """Return slopes of predictions in units of the values, (n, n_outputs, n_features)."""
        return self._mean_of_members("slopes", X) * self.training.scale[:, None]

    def predict_mixed(self, rows, background, masks, *, mean=False):
        """Predict mixed rows, which have some features of other rows.

        Parameters
        ----------
        rows, background : ndarray of shape (n, n_features)
            Numbers and codes of levels.
        masks : ndarray of bool of shape (n_masks, n_features)
            True for the features that mixed rows have from `rows`; they have all others from
            the `background`.
        mean : bool, default=False
            Whether to average over the background.

        Returns
        -------
        predictions : ndarray of shape (n_masks, n_rows, n_background, n_outputs)
            In the units of the members. With `mean`, n_background is 1.
        """
        first = self.members[0]
        if isinstance(first, RidgeMember) and isinstance(first.kernel.formula, Gaussian):
            with one_blas_thread():
                return self._mean_of_members("predict_mixed", rows, background, masks, mean)
        mixed = mixed_rows(rows, background, masks)
        predictions = self.predict(mixed.reshape(-1, masks.shape[1]))
        predictions = predictions.reshape(*mixed.shape[:3], -1)
        return predictions.mean(axis=2, keepdims=True) if mean else predictions

    def _mean_of_members(self, method, *arguments):
        """Return the mean over members of what a method of theirs returns.

        A member's result is mixed with that of its additive part, by their weights.
        """
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
        """Return rows in the learned space of the first member, (n, n_columns)."""
        return self.members[0].kernel.space(self.training.encode(X, np.float64))

    def predict_held_out(self):
        """Predict the rows held out, each by the member of its fold, (n_held_out, n_outputs).

        Unlike leave-one-out predictions, these use the targets of the rows themselves.
        """
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
        """Rows held out, which distributions of errors compare with queries."""
        member, training = self.members[0], self.training
        rows = training.encode(training.X[self.held_out], np.float64)
        has_noise = isinstance(member, RidgeMember)
        return HeldOutRows(member.kernel, rows, training.weights[self.held_out], has_noise)

    def attributes(self):
        """Return the public attributes of an estimator, by name."""
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
        """Return geometric means of the members' length-scales, (n_encodings, n_features).

        They are infinite for features that an encoding does not have, and in the features'
        units for the standard encoding.
        """
        encodings = self.training.encodings
        log_scales = np.mean(
            [member.kernel.named()["scale"] for member in self.members], axis=0
        )
        length_scales = np.full((len(encodings), self.training.X.shape[1]), np.inf)
        for e, encoding in enumerate(encodings):
            used = np.unique(encoding.feature)
            length_scales[e, used] = np.exp(-log_scales[e, used])
            if encoding.name == "standard":
                length_scales[e, encoding.numeric] *= encoding.scale
        return length_scales

    @functools.cached_property
    def relevance(self):
        """Part of each feature in the mean squared distance, as a fraction, (n_features,)."""
        # The mean squared distance in a column is proportional to its variance.
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
    """Learn encodings and members.

    Parameters
    ----------
    rows : ReadRows
    task : Task
    options : Options
    report : Report
        It is told of each member that is done.

    Returns
    -------
    fitted : Fitted
    left_out : ndarray of shape (n_held_out, n_outputs)
        Leave-one-out predictions of the rows held out, in units of the members. The kernel that
        predicts a row has not learned from it.
    """
    # 1. Join copies of rows, and standardise targets.
    positions, weights = _stored_rows(rows)
    X, values = rows.X[positions], rows.values[positions]
    center, scale = _center_and_scale(values.reshape(len(X), -1), weights, task, options)
    # 2. Learn the encodings.
    encodings = Encoding.learn_all(
        options.encodings, X, rows.columns.kinds, task.min_bins, values.reshape(len(X), -1)
    )
    training = TrainingRows(X, values, weights, encodings, center, scale)
    # 3. Fit a member for each fold.
    folds = _folds(len(X), task, options, np.random.default_rng(options.seed))
    learner = task.ridge(len(X)) if options.readout == "solve" else AverageLearner()
    loss = task.loss(options.readout, center, rows.outputs)
    report.begin(len(folds))
    members, left_out = [], []
    for number, fold in enumerate(folds):
        rng = np.random.default_rng([options.seed, number, 0])
        member, predictions = learner.fit(training, fold, loss, rng, options)
        members.append(member)
        left_out.append(predictions)
        report.done("member")
    # 4. Mix in an additive part if it helps, unless the user has chosen the kernel.
    additive, learns_all = None, options.learns and options.ridge is None
    if options.readout == "solve" and learns_all and len(X) >= task.min_additive_rows:
        additive, left_out = fit_additive(training, rows.columns.kinds, folds, left_out, loss)
    # A copy, without the coordinates that `training` has cached.
    training = dataclasses.replace(training)
    return Fitted(training, positions, members, folds, additive), np.concatenate(left_out)


def _stored_rows(rows):
    """Return positions and weights of the rows without copies and rows of weight 0.

    Both are (n,); the weights have mean 1.
    """
    positions, weights = np.arange(len(rows.X)), np.ones(len(rows.X))
    if rows.weights is not None:
        positions = np.flatnonzero(rows.weights)
        weights = rows.weights[positions]
    first, weights = join_copies(rows.X[positions], rows.values[positions], weights)
    return positions[first], weights / weights.mean()


def join_copies(X, values, weights):
    """Join copies of rows: return positions of the first of equal rows, and total weights.

    Rows are copies if they agree in all features and targets, and one of these, a number that
    hardly ever repeats, shows that this is no coincidence. In two cases equal rows are
    separate observations, and all positions and weights are returned:

    - All columns have few values, as counts and categories do.
    - One row occurs many times, as the background of pictures does, but other rows of its
      target do not. (In samples with replacement, all rows occur several times.) If such rows
      were one row, left out as one, it would dominate what is learned: of mammograms, three in
      ten of which are equal, the log-loss is 0.78 to 0.97 of that with them joined; of samples
      with replacement as observations 0.6 to 1.1.
    """
    table = np.column_stack([X, values])
    # A missing cell equals another one, and there are no infinite cells.
    table = np.where(np.isnan(table), np.inf, table)
    first_equal = _first_equal(table)
    first, group = np.unique(first_equal, return_inverse=True)
    if len(first) == len(table):
        return first, weights
    max_distinct = max(len(np.unique(column)) for column in table[first].T)
    n_copies = np.bincount(group)
    targets = _first_equal(table[first, X.shape[1] :])
    target = np.unique(targets, return_inverse=True)[1]
    usual = ndimage.median(n_copies, target, np.arange(target.max() + 1))
    is_dominant = n_copies > _MAX_COPIES * usual[target]
    if is_dominant.any() or max_distinct < _MIN_DISTINCT * len(first):
        return np.arange(len(table)), weights
    return first, np.bincount(group, weights)


def _first_equal(table):
    """Return for each row the position of the first row that equals it, (n,)."""
    # Equal rows have equal weighted sums, so that they are neighbours once these are sorted.
    column_weights = np.random.default_rng(0).uniform(0.5, 1.5, table.shape[1])
    finite = np.where(np.isfinite(table), table, 0.0)
    largest = np.abs(finite).max(axis=0)
    sums = (finite / np.where(largest > 0, largest, 1.0) * column_weights).sum(axis=1)
    order = np.argsort(sums, kind="stable")
    equals_previous = (table[order[1:]] == table[order[:-1]]).all(axis=1)
    starts_run = np.concatenate([[True], ~equals_previous])
    first = np.empty(len(table), dtype=np.int64)
    first[order] = order[starts_run][np.cumsum(starts_run) - 1]
    return first


def _center_and_scale(values, weights, task, options):
    """Return the mean and standard deviation of values, (n_columns,) each.

    Targets that are numbers are standardised, and indicators of classes only centred. If the
    kernel is given (`options.learns` is False), numbers stay as they are.
    """
    center, scale = np.zeros(values.shape[1]), np.ones(values.shape[1])
    if options.learns or not task.scales_targets:
        center = np.average(values, axis=0, weights=weights)
    if options.learns and task.scales_targets:
        with np.errstate(over="ignore"):
            squares = np.square(values - center)
        std = np.sqrt(np.average(squares, axis=0, weights=weights))
        if not np.isfinite(std).all():
            raise ValueError(
                f"y has values as large as {np.abs(values).max():g}, whose squares are "
                "infinite: divide it by its largest value."
            )
        # A smaller standard deviation is rounding.
        min_std = 1e-12 * np.abs(values).max(axis=0)
        scale = np.where(std > min_std, std, 1.0)
    return center, scale


def _folds(n, task, options, rng):
    """Return the positions of the rows that each fold holds out, a list of ascending arrays."""
    n_folds = options.n_folds
    if n_folds is None:
        n_folds = next(folds for max_rows, folds in task.folds.items() if n <= max_rows)
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
        # Each fold holds out a quarter, so that enough rows are left to learn from.
        folds = np.split(shuffled[: n // 4 * n_folds], n_folds)
    else:
        folds = np.array_split(shuffled, n_folds)
    return [np.sort(fold[:_MAX_HELD_OUT]) for fold in folds]

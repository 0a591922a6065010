"""The additive part of predictions: a sum of functions of single features."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from .._blocks import blocks_of_queries
from .._spline_ridge import NormalEquations, SplineColumns, reml_penalties
from ._boosting import CHANCE, MIN_GAIN, largest_error
from ._encodings import HIGH_CARDINALITY, Encoding
from ._kernel import add_mixed_terms, products_by_feature
from ._members import LossOfClasses

# Functions of one number, and columns of all numbers together; levels and markers of missing
# cells may be as many more, beyond which there is no additive part. On five additive truths the
# error with 10 functions was 1.002 of that with 20.
_MAX_FUNCTIONS, _MAX_COLUMNS = 20, 240
# Weights of the additive part on trial.
_SHARES = (0.15, 0.3, 0.5, 0.7, 0.85, 1.0)


@dataclass(frozen=True)
class AdditiveColumns:
    """Columns whose weighted sums are sums of functions of single features.

    A constant, the SplineColumns of every number, an indicator of every level of categories,
    and a marker of the missing cells of every feature that has some.
    """

    encoding: Encoding  # whose columns of levels and of missing cells are taken
    splines: list  # SplineColumns of each of its numbers

    @classmethod
    def learn(cls, X, kinds):
        """Learn the columns of rows of numbers and codes."""
        encoding = Encoding.learn("standard", X, kinds, max_levels=HIGH_CARDINALITY)
        n_functions = min(_MAX_COLUMNS, len(X) // 2) // max(1, len(encoding.numeric))
        n_functions = int(np.clip(n_functions, 2, _MAX_FUNCTIONS))
        numbers = X[:, encoding.numeric].T.astype(np.float64)
        splines = [SplineColumns.learn(x[~np.isnan(x)], n_functions) for x in numbers]
        return cls(encoding, splines)

    def __len__(self):
        return 1 + len(self.group)

    @property
    def group(self):
        """Group of every column but the constant, from 0: columns of a group share a penalty.

        A number has a group for its line and one for its curve, a category one for its levels.
        """
        numbers = zip(self.encoding.numeric, self.splines, strict=True)
        of_numbers = [2 * j + (np.arange(s.values.shape[1]) > 0) for j, s in numbers]
        group = np.concatenate([*of_numbers, 2 * self.encoding.feature[len(self.splines) :]])
        return np.unique(group, return_inverse=True)[1]

    def encode(self, X):
        """Return rows in these columns, (n, n_columns)."""
        splines = [s.interpolate(x, s.values) for s, x in self._numbers(X)]
        return np.hstack([np.ones((len(X), 1)), *splines, self._levels(X)])

    def predict(self, X, coefficients):
        """Return products of the columns and coefficients, (n, n_outputs)."""
        return coefficients[0] + self.terms(X, coefficients).sum(axis=1)

    def terms(self, X, coefficients):
        """Return what each feature adds to `predict`, (n, n_features, n_outputs)."""
        _, functions, effects = self._split(coefficients)
        of_levels = self.encoding.feature[len(self.splines) :]
        terms = products_by_feature(self._levels(X), effects, of_levels, X.shape[1])
        splines = zip(self.encoding.numeric, self._numbers(X), functions, strict=True)
        for feature, (spline, x), values in splines:
            terms[:, feature] += spline.interpolate(x, values)
        return terms

    def slopes(self, X, coefficients):
        """Return derivatives of `predict`, (n, n_outputs, n_features)."""
        slopes = np.zeros((len(X), coefficients.shape[1], X.shape[1]))
        functions = zip(self.encoding.numeric, self._split(coefficients)[1], strict=True)
        for (spline, x), (feature, values) in zip(self._numbers(X), functions, strict=True):
            slopes[:, :, feature] = spline.slopes(x, values)
        return slopes

    def _numbers(self, X):
        return zip(self.splines, X[:, self.encoding.numeric].T.astype(np.float64), strict=True)

    def _levels(self, X):
        return self.encoding.encode(X)[:, len(self.splines) :]

    def _split(self, coefficients):
        """Return the constant, functions of numbers at their nodes, and effects of levels."""
        ends = np.cumsum([1, *(spline.values.shape[1] for spline in self.splines)])
        constant, *of_splines, effects = np.split(coefficients, ends)
        functions = [s.values @ b for s, b in zip(self.splines, of_splines, strict=True)]
        return constant, functions, effects


@dataclass(frozen=True)
class AdditivePart:
    """Ridge regressions of additive columns, one beside every member, and their weights.

    Predictions of member m are (1 - shares[m]) times those of its kernel, and shares[m] times
    those of the ridge, whose penalties were learned without the rows that the member holds out.
    """

    columns: AdditiveColumns
    penalties: np.ndarray  # (n_members, n_columns)
    coefficients: np.ndarray  # (n_members, n_columns, n_outputs)
    shares: np.ndarray  # (n_members,), from 0 to 1

    @property
    def total_coefficients(self):
        """Sum over the members of their coefficients times their shares."""
        return np.tensordot(self.shares, self.coefficients, 1)

    def predict(self, training, X):
        """Return the sum over members of their additive parts, (n, n_outputs)."""
        return self.columns.predict(training.queries(X).X, self.total_coefficients)

    def predict_mixed(self, training, rows, others, masks, mean=False):
        """Return `predict` of mixed rows, (n_masks, n_rows, n_others, n_outputs).

        `rows` and `others` are numbers and codes; `masks` and `mean` are as for
        `sums_of_mixed_rows`.
        """
        coefficients = self.total_coefficients
        terms = [self.columns.terms(X, coefficients) for X in (rows, others)]
        return coefficients[0] + add_mixed_terms(*terms, masks, mean)

    def slopes(self, training, X):
        """Return derivatives of `predict`, (n, n_outputs, n_features)."""
        return self.columns.slopes(X, self.total_coefficients)

    def weights(self, training, X):
        """Return weights of the targets of training rows in `predict`, (n, n_training)."""
        equations = _equations(self.columns, training)
        inverse = sum(
            share * equations.inverse(penalties)[0]
            for share, penalties in zip(self.shares, self.penalties, strict=True)
        )
        queries = self.columns.encode(X) @ inverse
        blocks = _blocks(self.columns, training)
        return np.hstack([queries @ (Z * weights[:, None]).T for Z, _, weights in blocks])


def fit_additive(training, kinds, folds, left_out, loss):
    """Fit ridges of additive columns, and choose their weights beside the members.

    `left_out` are the members' leave-one-out predictions of the rows held out, a list of
    (n_held_out, n_outputs). Returns an AdditivePart, None if its weight is 0, and the
    predictions of the rows held out by both.
    """
    if training.X.shape[1] > _MAX_COLUMNS or not np.square(training.targets).any():
        return None, left_out
    columns = AdditiveColumns.learn(training.X, kinds)
    if not 1 < len(columns) <= 2 * _MAX_COLUMNS:
        return None, left_out
    equations, fits = _equations(columns, training), []
    for fold in folds:
        held_out = _rows(columns, training, fold)
        others = equations.plus(NormalEquations.from_rows(*held_out), -1)
        penalties = reml_penalties(others, columns.group)
        predictions = equations.left_out(*held_out, penalties)
        fits.append((penalties, equations.solve(penalties), predictions))
    penalties, coefficients, additive = zip(*fits, strict=True)
    data = folds, left_out, additive
    shares = np.array([_share(training, loss, *_without(m, data)) for m in range(len(folds))])
    if not shares.any():
        return None, left_out
    mixtures = zip(shares, left_out, additive, strict=True)
    mixed = [(1 - share) * kernel + share * ridge for share, kernel, ridge in mixtures]
    return AdditivePart(columns, np.stack(penalties), np.stack(coefficients), shares), mixed


def _equations(columns, training):
    """Return the normal equations of all training rows."""
    blocks = _blocks(columns, training)
    return reduce(NormalEquations.plus, (NormalEquations.from_rows(*block) for block in blocks))


def _blocks(columns, training):
    """Yield columns, targets and weights of blocks of training rows."""
    for rows in blocks_of_queries(len(training), len(columns)):
        yield _rows(columns, training, rows)


def _rows(columns, training, rows):
    """Return columns, targets and weights of training rows."""
    return columns.encode(training.X[rows]), training.targets[rows], training.weights[rows]


def _without(fold, lists):
    """Join the arrays of all folds but one, or of the only fold."""
    return [np.concatenate(arrays[:fold] + arrays[fold + 1 :] or arrays) for arrays in lists]


def _share(training, loss, rows, kernel, additive):
    """Choose the weight of additive predictions of rows held out; 0 if they gain too little."""
    # A member's share is chosen on the rows that other members hold out, so that the errors of
    # its own rows, from which intervals are made, have not chosen it.
    targets, weights = training.targets[rows], training.weights[rows]
    weights = weights / weights.sum()
    is_classes, limit = isinstance(loss, LossOfClasses), np.inf
    if not is_classes:
        limit = largest_error(np.abs(np.column_stack([targets - kernel, targets - additive])))

    def loss_of(share):
        errors = targets - (1 - share) * kernel - share * additive
        return loss(np.clip(errors, -limit, limit), targets, weights)[0]

    alone, *losses = map(loss_of, (0.0, *_SHARES))
    # The squared error is in units of itself; a deviance is twice the log-loss.
    by_chance = CHANCE / len(rows) * (0.5 if is_classes else alone)
    best = int(np.argmin(losses))
    gains = alone - losses[best] > max(MIN_GAIN * alone, by_chance)
    return _SHARES[best] if gains else 0.0

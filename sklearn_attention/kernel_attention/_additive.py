"""The additive part of predictions: a sum of functions of single features.

Beside the kernel of each member, a ridge regression predicts the targets by a constant, a line
and a smooth curve of every number, an effect of every level of a category, and an effect of
every feature's missing cells. These are columns of a design matrix Z; groups of columns share
a penalty, which restricted maximum likelihood (REML) chooses. A member's prediction is 1 - b
times that of the kernel plus b times that of the ridge. The additive weight b is chosen on rows
held out. `shares` are the additive weights of all members.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from .._blocks import blocks_of_queries
from .._spline_ridge import NormalEquations, SplineColumns, reml_penalties
from ._boosting import CHANCE, MIN_GAIN, largest_error
from ._encodings import HIGH_CARDINALITY, Encoding
from ._members import LossOfClasses
from ._mixed_rows import add_mixed_terms, products_by_feature

# Maximum number of functions of one number, and of columns of all numbers together. Levels and
# indicators of missing cells may be as many more columns, beyond which there is no additive
# part. On five additive truths the error with 10 functions was 1.002 of that with 20.
_MAX_FUNCTIONS, _MAX_COLUMNS = 20, 240
# Additive weights on trial, besides 0.
_TRIAL_WEIGHTS = (0.15, 0.3, 0.5, 0.7, 0.85, 1.0)


@dataclass(frozen=True)
class AdditiveColumns:
    """Columns whose weighted sums are sums of functions of single features.

    They are, in this order: a constant, the SplineColumns of every number, an indicator of
    every level of categories, and an indicator of the missing cells of every feature that has
    some.
    """

    encoding: Encoding  # The level columns and missing columns are those of this encoding.
    splines: list  # SplineColumns of each number of the encoding

    @classmethod
    def learn(cls, X, kinds):
        """Learn the columns from rows of numbers and codes; `kinds` are the features' kinds."""
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
        """Penalty group of every column but the constant, counted from 0; (n_columns - 1,).

        A number has a group for its line and one for its curve, a category one for its levels.
        """
        # Feature j has the numbers 2j, and 2j + 1 for its curve; then they become consecutive.
        numbers = []
        for j, spline in zip(self.encoding.numeric, self.splines, strict=True):
            is_curve = np.arange(spline.values.shape[1]) > 0
            numbers.append(2 * j + is_curve)
        numbers.append(2 * self.encoding.feature[len(self.splines) :])
        return np.unique(np.concatenate(numbers), return_inverse=True)[1]

    def encode(self, X):
        """Return the design matrix Z of rows, (n, n_columns)."""
        splines = [spline.interpolate(x, spline.values) for spline, x in self._numbers(X)]
        return np.hstack([np.ones((len(X), 1)), *splines, self._levels(X)])

    def predict(self, X, coefficients):
        """Return the product of Z and coefficients (n_columns, n_outputs), (n, n_outputs)."""
        return coefficients[0] + self.terms(X, coefficients).sum(axis=1)

    def terms(self, X, coefficients):
        """Return what each feature adds to `predict`, (n, n_features, n_outputs).

        Coefficients are (n_columns, n_outputs).
        """
        _, functions, effects = self._split(coefficients)
        feature_of_level = self.encoding.feature[len(self.splines) :]
        terms = products_by_feature(self._levels(X), effects, feature_of_level, X.shape[1])
        numbers = zip(self.encoding.numeric, self._numbers(X), functions, strict=True)
        for feature, (spline, x), node_values in numbers:
            terms[:, feature] += spline.interpolate(x, node_values)
        return terms

    def slopes(self, X, coefficients):
        """Return derivatives of `predict`, (n, n_outputs, n_features)."""
        slopes = np.zeros((len(X), coefficients.shape[1], X.shape[1]))
        functions = self._split(coefficients)[1]
        numbers = zip(self.encoding.numeric, self._numbers(X), functions, strict=True)
        for feature, (spline, x), node_values in numbers:
            slopes[:, :, feature] = spline.slopes(x, node_values)
        return slopes

    def _numbers(self, X):
        """Return pairs of each number's SplineColumns, and its values in the rows."""
        return zip(self.splines, X[:, self.encoding.numeric].T.astype(np.float64), strict=True)

    def _levels(self, X):
        """Return the columns of levels and of missing cells, (n, n_level_columns)."""
        return self.encoding.encode(X)[:, len(self.splines) :]

    def _split(self, coefficients):
        """Split coefficients (n_columns, n_outputs) by features.

        Returns the constant (1, n_outputs), for each number the values of its function at the
        nodes of its spline (n_nodes, n_outputs), and the effects of levels and of missing cells
        (n_level_columns, n_outputs).
        """
        ends = np.cumsum([1, *(spline.values.shape[1] for spline in self.splines)])
        constant, *spline_coefficients, effects = np.split(coefficients, ends)
        functions = [
            spline.values @ b
            for spline, b in zip(self.splines, spline_coefficients, strict=True)
        ]
        return constant, functions, effects


@dataclass(frozen=True)
class AdditivePart:
    """Ridge regressions of additive columns, one beside every member, and additive weights.

    Predictions of member m are (1 - shares[m]) times those of its kernel, plus shares[m] times
    those of the ridge, whose penalties were learned without the rows that the member holds out.
    """

    columns: AdditiveColumns
    penalties: np.ndarray  # (n_members, n_columns)
    coefficients: np.ndarray  # (n_members, n_columns, n_outputs)
    shares: np.ndarray  # (n_members,), additive weights from 0 to 1

    @property
    def total_coefficients(self):
        """Sum over members of additive weight times coefficients, (n_columns, n_outputs)."""
        return np.tensordot(self.shares, self.coefficients, 1)

    def predict(self, training, X):
        """Return the sum over members of their additive parts, (n, n_outputs)."""
        return self.columns.predict(training.queries(X).X, self.total_coefficients)

    def predict_mixed(self, training, rows, background, masks, mean=False):
        """Return `predict` of mixed rows, (n_masks, n_rows, n_background, n_outputs).

        `rows` and `background` are numbers and codes; `masks` and `mean` are as for
        `sums_of_mixed_rows`.
        """
        coefficients = self.total_coefficients
        terms = [self.columns.terms(X, coefficients) for X in (rows, background)]
        return coefficients[0] + add_mixed_terms(*terms, masks, mean)

    def slopes(self, training, X):
        """Return derivatives of `predict`, (n, n_outputs, n_features)."""
        return self.columns.slopes(X, self.total_coefficients)

    def weights(self, training, X):
        """Return weights of the targets of training rows in `predict`, (n, n_training)."""
        equations = _equations(self.columns, training)
        # Coefficients are (Z' W Z + Lambda)^-1 Z' W y, with the penalty Lambda of a member.
        inverse = sum(
            additive_weight * equations.inverse(penalties)[0]
            for additive_weight, penalties in zip(self.shares, self.penalties, strict=True)
        )
        queries = self.columns.encode(X) @ inverse
        blocks = _blocks(self.columns, training)
        return np.hstack([queries @ (Z * weights[:, None]).T for Z, _, weights in blocks])


def fit_additive(training, kinds, folds, left_out, loss):
    """Fit ridges of additive columns, and choose their weights beside the members.

    Parameters
    ----------
    training : TrainingRows
    kinds : sequence of str
        Kinds of the features.
    folds : list of ndarray of int
        Positions of the rows that each member holds out.
    left_out : list of ndarray of shape (n_held_out, n_outputs)
        Each member's leave-one-out predictions of these rows.
    loss : callable
        As for `RidgeLearner`.

    Returns
    -------
    additive : AdditivePart or None
        None if all additive weights are 0.
    left_out : list of ndarray of shape (n_held_out, n_outputs)
        The predictions of kernels and ridges together.
    """
    if training.X.shape[1] > _MAX_COLUMNS or not np.square(training.targets).any():
        return None, left_out
    columns = AdditiveColumns.learn(training.X, kinds)
    if not 1 < len(columns) <= 2 * _MAX_COLUMNS:
        return None, left_out
    equations, fits = _equations(columns, training), []
    for fold in folds:
        held_out = _rows(columns, training, fold)
        # Penalties are learned without the rows held out, coefficients with all rows.
        equations_without = equations.plus(NormalEquations.from_rows(*held_out), -1)
        penalties = reml_penalties(equations_without, columns.group)
        predictions = equations.left_out(*held_out, penalties)
        fits.append((penalties, equations.solve(penalties), predictions))
    penalties, coefficients, additive = zip(*fits, strict=True)
    # A member's additive weight is chosen on the rows that other members hold out, so that the
    # errors of its own rows, from which intervals are made, have not chosen it.
    shares = []
    for m in range(len(folds)):
        rows, kernel, ridge = (
            _join_without(m, arrays) for arrays in (folds, left_out, additive)
        )
        shares.append(_choose_weight(training, loss, rows, kernel, ridge))
    shares = np.array(shares)
    if not shares.any():
        return None, left_out
    mixed = [
        (1 - share) * kernel + share * ridge
        for share, kernel, ridge in zip(shares, left_out, additive, strict=True)
    ]
    return AdditivePart(columns, np.stack(penalties), np.stack(coefficients), shares), mixed


def _equations(columns, training):
    """Return the normal equations of all training rows."""
    blocks = _blocks(columns, training)
    return reduce(NormalEquations.plus, (NormalEquations.from_rows(*block) for block in blocks))


def _blocks(columns, training):
    """Yield the design matrix, targets and weights of blocks of training rows."""
    for rows in blocks_of_queries(len(training), len(columns)):
        yield _rows(columns, training, rows)


def _rows(columns, training, rows):
    """Return the design matrix, targets and weights of training rows."""
    return columns.encode(training.X[rows]), training.targets[rows], training.weights[rows]


def _join_without(fold, arrays):
    """Join the arrays of all folds but one, or of the only fold."""
    return np.concatenate(arrays[:fold] + arrays[fold + 1 :] or arrays)


def _choose_weight(training, loss, rows, kernel, additive):
    """Choose the additive weight of least loss on rows held out; 0 if it gains too little.

    `rows` (n,) are positions of training rows, `kernel` and `additive` (n, n_outputs) their
    predictions by kernels and by additive columns.
    """
    targets, weights = training.targets[rows], training.weights[rows]
    weights = weights / weights.sum()
    is_classes, limit = isinstance(loss, LossOfClasses), np.inf
    if not is_classes:
        limit = largest_error(np.abs(np.column_stack([targets - kernel, targets - additive])))

    def loss_of(additive_weight):
        errors = targets - (1 - additive_weight) * kernel - additive_weight * additive
        return loss(np.clip(errors, -limit, limit), targets, weights)[0]

    loss_without, *losses = [loss_of(weight) for weight in (0.0, *_TRIAL_WEIGHTS)]
    # The squared error is in units of itself; a deviance is twice the log-loss.
    gain_by_chance = CHANCE / len(rows) * (0.5 if is_classes else loss_without)
    best = int(np.argmin(losses))
    is_better = loss_without - losses[best] > max(MIN_GAIN * loss_without, gain_by_chance)
    return _TRIAL_WEIGHTS[best] if is_better else 0.0

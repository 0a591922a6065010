"""Effects of new levels on kernel attention: rows are predicted without their level.

`_new_levels` estimates how much errors grow at a level that no training row has, such as a new
shop, from errors of rows that are predicted without the rows of their level. This module makes
these predictions: for each group of levels, by the rows of a sample that are outside the group.
Arguments named `groups` are pairs of masks: which queries are in a group (n_queries,), and
which rows of the sample are left out for these queries (n_sample,).
"""

import numpy as np

from .._blocks import evenly_spread
from .._new_levels import MAX_ROWS, LevelEffects, with_new_levels
from .._spline_ridge import NormalEquations
from .._thread_pools import one_blas_thread
from ._averages import AverageMember
from ._boosting import predict_trees
from ._distribution import weights_of_errors
from ._ridge import System


class LeaveLevelOut(LevelEffects):
    """Effects of new levels on a fitted kernel attention.

    `distribution` is the ErrorDistribution of the rows held out. `stacking` (2, n_outputs) has
    the weights of the kernel and of boosted trees, and `boosters` the trees of each fold for
    every output, or an empty list.
    """

    def __init__(self, fitted, distribution, stacking, boosters, columns):
        rows = fitted.training.X, slice(None), np.sort(fitted.held_out)
        super().__init__(*rows, columns, len(boosters))
        self._fitted, self._distribution, self._columns = fitted, distribution, columns
        self._stacking, self._boosters = stacking, boosters

    def deviations(self, X, queries):
        """Return standard deviations of new targets at queries as if all levels were known.

        X (n_queries, n_features) has numbers and codes, `queries` the same rows in all
        encodings; the result is (n_queries,). A new level is replaced by the level of the row
        held out that is most similar to the query: the effect of a new level is estimated
        separately, and the kernel must not add it a second time. With a replaced level, no
        deviation is below the median of the rows' leave-one-out deviations.
        """
        training, held_out = self._fitted.training, self._fitted.held_out_rows
        deviations, is_new = held_out.deviations_of(queries), self.is_new(X)
        if is_new.any():
            nearest = self._fitted.held_out[held_out.log_kernel(queries).argmax(axis=1)]
            known = training.encode(np.where(is_new, self._keys[nearest], X), np.float64)
            known_deviations = held_out.deviations_of(known)
            known_deviations = np.maximum(known_deviations, np.median(held_out.deviations))
            deviations = np.where(is_new.any(axis=1), known_deviations, deviations)
        return deviations

    def _errors(self, category, rows, groups):
        """Return errors of rows without their level, and without the row, (n, n_outputs) each.

        The latter are leave-one-out errors of rows held out; the former add the change of the
        prediction when the other rows of the level are left out too. Each member predicts the
        rows of its fold twice for this: by all other rows of a sample, and by those of other
        levels. Trees were fitted with the level, but predict as if it were missing. Here the
        `groups` are pairs of positions of rows, and a mask (n_training,) of the same levels.
        """
        # Errors are in standardised units until the end; those of rows held out are known.
        training, folds = self._fitted.training, self._fitted.folds
        additive = self._fitted.additive
        other_rows = np.setdiff1d(np.arange(len(training)), rows)
        sample = np.union1d(rows, evenly_spread(other_rows, MAX_ROWS - len(rows)))
        errors, changes = np.zeros((2, *training.targets.shape))
        deviations = self._fitted.held_out_rows.deviations[:, None]
        errors[self._fitted.held_out] = deviations * self._distribution.errors
        for number, (member, fold) in enumerate(zip(self._fitted.members, folds, strict=True)):
            # 1. Predict the rows of this fold with known and with new levels.
            predicted = np.intersect1d(rows, fold)
            known = training.X[predicted]
            new = with_new_levels(known, category)
            masks = [(np.isin(predicted, group), mask[sample]) for group, mask in groups]
            predict = _predict_averages if isinstance(member, AverageMember) else _predict_ridge
            data = training, sample, new, masks
            with one_blas_thread():
                predictions = [(self._fitted.kernel_weights[number], predict(member, *data))]
                if additive is not None:
                    additive_predictions = _predict_additive(additive, number, *data)
                    predictions.append((additive.shares[number], additive_predictions))
            # 2. Add up the changes of the kernel, of the additive part and of trees.
            positions = np.searchsorted(sample, predicted)
            change = sum(
                weight * (without_row[positions] - without_level)
                for weight, (without_row, without_level) in predictions
            )
            tree_change = self._change_of_trees(number, known, new)
            changes[predicted] = self._stacking[0] * change + self._stacking[1] * tree_change
        return training.scale * (errors + changes)[rows], training.scale * errors[rows]

    def _weights_near(self, category, X, rows):
        """Return weights of training rows at queries, (n_queries, n_rows).

        They are the weights of errors in predictive distributions, with all levels of the
        category taken to be new.
        """
        training = self._fitted.training
        new = training.encode(with_new_levels(training.X[rows], category), np.float64)
        log_kernel = self._fitted.held_out_rows.log_kernel(training.encode(X, np.float64), new)
        return weights_of_errors(
            log_kernel, training.weights[rows], self._distribution.sharpness
        )

    def _change_of_trees(self, number, known, new):
        """Return predictions of a fold's trees at known levels minus those at new levels.

        `known` and `new` are the same rows (n, n_features) with either; the result is
        (n, n_outputs).
        """
        change = np.zeros((len(known), len(self._boosters)))
        for output, boosters in enumerate(self._boosters):
            if boosters:
                trees = boosters[number : number + 1]
                change[:, output] = predict_trees(trees, known, self._columns)
                change[:, output] -= predict_trees(trees, new, self._columns)
        return change


def _predict_ridge(member, training, sample, queries, groups):
    """Predict each row of a sample by its other rows, and queries without their group's rows.

    Returns predictions (n_sample, n_outputs) and (n_queries, n_outputs).
    """
    system = System(member.kernel, training, sample, np.float64)
    inverse, coefficients = system.weights(np.eye(len(sample))), system.coefficients
    kernel = member.kernel.matrix(training.encode(queries, np.float64), system.keys)
    without_level = np.empty((len(queries), coefficients.shape[1]))
    for group, left_out in groups:
        # With the inverse A of the system and rows l that are left out, the coefficients of the
        # remaining rows k are c_k - A_kl A_ll^-1 c_l.
        remaining, block = ~left_out, inverse[np.ix_(left_out, left_out)]
        solution = np.linalg.solve(block, coefficients[left_out])
        solution = coefficients[remaining] - inverse[np.ix_(remaining, left_out)] @ solution
        without_level[group] = kernel[np.ix_(group, remaining)] @ solution
    return system.leave_one_out(len(sample)), without_level


def _predict_averages(member, training, sample, queries, groups):
    """Predict what `_predict_ridge` predicts, by weighted averages."""
    full_average = AverageMember(member.kernel, sample)
    without_row = full_average.predict(
        training, training.X[sample], left_out=np.arange(len(sample))
    )
    without_level = np.empty((len(queries), training.targets.shape[1]))
    for group, left_out in groups:
        if group.any():
            average = AverageMember(member.kernel, sample[~left_out])
            without_level[group] = average.predict(training, queries[group])
    return without_row, without_level


def _predict_additive(additive, number, training, sample, queries, groups):
    """Predict what `_predict_ridge` predicts, by the ridge of additive columns of a member."""
    penalties, encode = additive.penalties[number], additive.columns.encode
    rows = encode(training.X[sample]), training.targets[sample], training.weights[sample]
    equations, queries = NormalEquations.from_rows(*rows), encode(queries)
    without_level = np.empty((len(queries), training.targets.shape[1]))
    for group, left_out in groups:
        remaining = NormalEquations.from_rows(*(values[~left_out] for values in rows))
        without_level[group] = queries[group] @ remaining.solve(penalties)
    return equations.left_out(*rows, penalties), without_level

"""Kernel attention for classes.

Members predict scores of the classes, which approximate indicators minus frequencies; the link
of `_boosting` turns them into probabilities. Indicators of several outputs stand side by side.
"""

import itertools
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from .._base import keeps_state_on_failure, parameters, with_callbacks
from .._labels import (
    ClassLabels,
    check_labels,
    classes_of_outputs,
    indicators,
    multiply_class_weights,
    read_labels,
    sorted_classes,
    split_classes,
)
from .._report import Report
from .._sample_weight import check_key_weights
from .._stacking import MIN_PROBABILITY
from .._thread_pools import one_blas_thread
from ._boosting import MIN_ROWS, MultinomialLink, predict_trees, stack_classifier
from ._estimator import KernelAttention, Options
from ._fitted import ReadRows, Task, fit_kernel_attention
from ._members import LossOfClasses, RidgeLearner, cross_entropy, log_loss_of_votes

# Up to 1000 rows, kernels are held near the one they start with, and have no rough part; up to
# 5000, batches are drawn at random. With a rough part beyond 1000 rows, log-losses of phonemes
# are 0.85, of computing times 0.98, of leaves of 32 species 1.07, and of twelve other sets 0.99
# to 1.01 of those without; of smaller sets 1.00 to 1.04. Up to 1000 rows there is no additive
# part: with 300 rows of twenty sets log-losses with it are 1.00 of those without, but for
# leaves (0.76) and wine, and fits take 1.35 times as long.
_FEW_ROWS, _MAX_RANDOM_ROWS = 1000, 5000


def _ridge(n_rows):
    """Return the RidgeLearner for a number of rows."""
    learner = RidgeLearner(max_fraction=0.4, noise=0.5, linear=True, constant=False)
    n_steps = 25 if n_rows <= _MAX_RANDOM_ROWS else 150
    learner = replace(learner, n_steps=n_steps, max_random_rows=_MAX_RANDOM_ROWS)
    if n_rows > _FEW_ROWS:
        return learner
    return replace(learner, rough=False, batch=256, rate=0.1, scale_precision=0.2)


def _loss(readout, center, outputs):
    """Return the loss of scores from which kernels are learned."""
    loss_of_output = cross_entropy if readout == "solve" else log_loss_of_votes
    return LossOfClasses(loss_of_output, _frequencies(center), outputs)


def _frequencies(center):
    """Return frequencies of classes, none of which is 0, from the mean of their indicators."""
    # All rows of a class may have weight 0.
    return np.maximum(center, MIN_PROBABILITY)


# Targets are indicators minus their frequencies, and not scaled.
CLASSIFICATION = Task(
    loss=_loss,
    ridge=_ridge,
    folds=MappingProxyType({_FEW_ROWS: 8, _MAX_RANDOM_ROWS: 4, 30_000: 2, np.inf: 1}),
    scales_targets=False,
    min_bins=12,
    min_additive_rows=_FEW_ROWS + 1,
)


@parameters
class KernelAttentionClassifier(ClassLabels, ClassifierMixin, KernelAttention):
    r"""Predict classes in tables by weighting the training rows with a learned kernel.

    Take it for tables of about 100 to 100 000 rows if the accuracy of the probabilities matters
    more than computing time. Boosted trees are faster to fit and to predict with.

    As :class:`KernelAttentionRegressor`, over the indicators of the classes.

    Parameters
    ----------
    readout : {"solve", "average"}, default="solve"
        Form of the predictions. ``"solve"``: kernel ridge regression of the indicators, learned
        by the log-loss of their leave-one-out predictions, which go through a calibrated
        multinomial link; see Notes. ``"average"``: the weighted votes of the rows.
    kernel, encodings, bandwidth, ridge
        As for :class:`KernelAttentionRegressor`.
    n_folds : int or "auto", default="auto"
        As for :class:`KernelAttentionRegressor`, but "auto" is 8 up to 1000 rows, 4 up to 5000,
        and 2 up to 30 000.
    max_steps : int or "auto", default="auto"
        As for :class:`KernelAttentionRegressor`, but "auto" is 25 up to 5000 rows, and 150
        beyond.
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        As for :class:`KernelAttentionRegressor`.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Factor of the `sample_weight` of the rows of each class; "balanced" is in inverse
        proportion to the frequency of the class. Several outputs have a dict each, whose
        factors multiply.
    boosting : None or "auto", default="auto"
        Whether boosted trees are stacked with kernel attention. "auto": if a few trees lower
        the log-loss of the first fold by a quarter of the gain that all held-out rows need,
        scikit-learn's `HistGradientBoosting` is fitted for each fold without the rows held
        out, and stacked if the log-loss of these then falls by at least 0.3 % and by more than
        chance. Never with a given bandwidth, or fewer than 50 rows.
    random_state : int, RandomState instance or None, default=0
        Draws folds, starting points and batches.
    max_rows : int, default=100_000
        As for :class:`KernelAttentionRegressor`. A class of which no row is drawn is unknown.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        The classes; a list if there are several outputs.
    links_ : list of (dict or None)
        For each output the parameters of the link; None for "average" without trees.
    boosters_ : list of list of HistGradientBoostingClassifier
        For each output those of the folds, none where they are not used. Their classes are
        positions in `classes_`.
    length_scales_, feature_relevance_, bandwidth_, held_out_rows_, encodings_, members_, keys_
        As for :class:`KernelAttentionRegressor`.
    additive_share_ : float
        As for :class:`KernelAttentionRegressor`.
    columns_
        As for :class:`KernelAttentionRegressor`.
    values_ : ndarray of shape (n_samples, n_indicators)
        Indicators of the classes, side by side for all outputs.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are all strings.

    See Also
    --------
    KernelAttentionRegressor : The same for numbers, where the method is described.
    NadarayaWatsonClassifier : Votes with a bandwidth that is not learned in encodings.
    sklearn.ensemble.HistGradientBoostingClassifier : Trees, faster to fit and to predict with.

    Notes
    -----
    Scores :math:`f_c` are predictions of the indicators less the frequencies :math:`\pi_c` of
    the classes. The kernel has a linear part, no constant, and of more than 1000 rows a rough
    part. It is learned by the cross-entropy of :math:`P(c) \propto \pi_c e^{\theta f_c}` on
    batches, with leave-one-out scores in closed form. The link makes probabilities of scores,

    .. math:: P(c \mid x) = (1 - \epsilon)\, \frac{\pi_c e^{z_c}}{\sum_k \pi_k e^{z_k}}
              + \epsilon\, \pi_c, \quad
              z_c = b_c + \theta f_c + \vartheta \operatorname{arsinh}\frac{f_c + \pi_c}{.04}

    with the parameters of least log-loss on rows that the members have not learned from, none
    of :math:`\theta` and :math:`\vartheta` negative.

    Beyond 1000 rows scores may have an additive part, as for :class:`KernelAttentionRegressor`:
    a sum of smooth functions of single features, one for each class, whose weight has the least
    cross-entropy on rows held out.

    With ``boosting="auto"`` trees are stacked by one more term in :math:`z_c`,
    :math:`\theta_t (\log p_c - \log \pi_c)` with :math:`\theta_t \ge 0`, where
    :math:`\log p_c` is the mean over the folds' boosters. Votes ("average") then go through
    the link too. Where a category has a level that no training row has, probabilities of trees
    are means over the levels of 32 training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_attention import KernelAttentionClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelAttentionClassifier(max_steps=20).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _: KW_ONLY
    class_weight: dict[Any, Any] | Sequence[Any] | str | None = None

    @keeps_state_on_failure
    @one_blas_thread()
    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
        """Store the training data and learn the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; data frames may have categorical columns, numbers may be missing.
            From partitions of Dask at most `max_rows` rows are drawn.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights, as for :class:`KernelAttentionRegressor`.

        Returns
        -------
        self : KernelAttentionClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.

        Warns
        -----
        UserWarning
            If partitions of Dask have more than `max_rows` rows.
        """
        X, y, sample_weight = self._draw_rows(X, y, sample_weight)
        X, y = self._learn_rows(X, y=read_labels(y), multi_output=True)
        y = check_labels(y)
        weights = multiply_class_weights(sample_weight, self.class_weight, y)
        weights = check_key_weights(weights, X, np.float32)
        options = Options.from_estimator(self)
        report = Report(self, X=X, y=y, metadata={"sample_weight": sample_weight})
        self.classes_ = sorted_classes(y)
        values = indicators(y, self.classes_, np.float64)
        ends = np.cumsum([0, *map(len, classes_of_outputs(self.classes_))])
        outputs = [slice(*pair) for pair in itertools.pairwise(ends)]
        rows = ReadRows(X, values, weights, self.columns_, outputs)
        fitted, left_out = fit_kernel_attention(rows, CLASSIFICATION, options, report)
        self._fitted = fitted
        vars(self).update(fitted.attributes())
        boosts = options.boosting and len(self.keys_) >= MIN_ROWS
        trees_and_links = [
            _fit_link(fitted, left_out, self.values_, classes, self.columns_, options, boosts)
            for classes in outputs
        ]
        self.boosters_, links = map(list, zip(*trees_and_links, strict=True))
        self.links_ = [link and vars(link) for link in links]
        report.end()
        return self

    def predict_proba(self, X) -> Any:
        """Predict the probability of each class for each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        probabilities : ndarray of shape (n_queries, n_classes), or list of such arrays
            Rows sum to 1. A list if there are several outputs.
        """
        return self._predict_rows(self._read_rows(X))

    def _predict_rows(self, X, scores=None):
        """Return what `predict_proba` returns, for rows of numbers and codes of levels.

        If `scores` of the members are passed, only trees need X.
        """
        probabilities = [p.astype(self.keys_.dtype) for p in self._probabilities(X, scores)]
        return probabilities if isinstance(self.classes_, list) else probabilities[0]

    def _response(self, X, scores):
        """Return probabilities of all classes of all outputs side by side, (n, n_classes).

        Of a single output with two classes, only those of the second class are returned.
        """
        probabilities = self._probabilities(X, scores)
        is_binary = len(probabilities) == 1 and probabilities[0].shape[1] == 2
        return probabilities[0][:, 1:] if is_binary else np.hstack(probabilities)

    def _probabilities(self, X, scores=None):
        """Return the probabilities of each output's classes, a list of (n, n_classes).

        `scores` are those of the members, (n, n_classes of all outputs), if they are known.
        Only trees need X then.
        """
        if scores is None:
            scores = self._fitted.predict(X)
        scores = split_classes(scores, self.classes_)
        centers = split_classes(self._fitted.training.center, self.classes_)
        outputs = zip(scores, centers, self.links_, self.boosters_, strict=True)
        probabilities = []
        for scores_of_output, center, link, boosters in outputs:
            if link is None:
                # Averages of indicators are votes already.
                votes = np.clip(scores_of_output + center, 0, None)
                probabilities.append(votes / votes.sum(axis=1, keepdims=True))
                continue
            trees = None
            if boosters:
                trees = predict_trees(boosters, X, self.columns_, _frequencies(center))
            probabilities.append(MultinomialLink(**link)(scores_of_output, trees))
        return probabilities


def _fit_link(fitted, left_out, values, classes, columns, options, boosts):
    """Fit the boosted trees and the link of one output.

    Parameters
    ----------
    fitted : Fitted
    left_out : ndarray of shape (n_held_out, n_classes of all outputs)
        Leave-one-out scores of the rows held out.
    values : ndarray of shape (n, n_classes of all outputs)
        Indicators of the training rows.
    classes : slice
        The output's columns of these.
    columns : Columns
    options : Options
    boosts : bool
        Whether trees are tried.

    Returns
    -------
    boosters : list
        The trees of each fold, none if they do not help.
    link : MultinomialLink or None
        None for averages without trees.
    """
    training, held_out = fitted.training, fitted.held_out
    frequencies, scores = _frequencies(training.center[classes]), left_out[:, classes]
    indicators_of_output = values[:, classes]
    boosters, link = [], None
    if boosts:
        data = training.X, columns, indicators_of_output, training.weights, fitted.folds
        boosters, link = stack_classifier(*data, scores, frequencies)
    if link is None and options.readout != "average":
        known_indicators, weights = indicators_of_output[held_out], training.weights[held_out]
        link = MultinomialLink.fit(scores, known_indicators, weights, frequencies)
    return boosters, link

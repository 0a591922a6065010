"""Kernel attention for classes."""

import dataclasses
import itertools
from types import MappingProxyType

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from .._base import keeps_state_on_failure
from .._blas_threads import one_blas_thread
from .._labels import (
    ClassLabels,
    check_labels,
    classes_of_outputs,
    indicators,
    known_classes,
    split_classes,
)
from ._blend import MultinomialLink
from ._boosting import predict_trees, stack_classifier
from ._estimator import KernelAttention
from ._losses import CrossEntropy, LogLossOfShares
from ._members import KernelRidge

# Rows up to which kernels are held near their start, and batches are drawn at random.
_FEW, _RANDOM = 1000, 5000
# A class that weight 0 has left without rows.
_LEAST_FREQUENCY = 1e-9


class KernelAttentionClassifier(ClassLabels, ClassifierMixin, KernelAttention):
    r"""Classification by attention over the training rows, with a learned kernel.

    As :class:`KernelAttentionRegressor`, over the indicators of the classes.

    Parameters
    ----------
    readout : {"solve", "local_linear", "average"}, default="solve"
        How predictions are made of the training rows. ``"solve"``: kernel ridge regression of
        the indicators, learned by the log-loss of their leave-one-out predictions.
        ``"average"``: the weighted votes of the rows. ``"local_linear"``: local lines through
        them. All but "average" go through a calibrated multinomial link; see Notes.
    kernel, encodings, bandwidth, ridge, clip
        As for :class:`KernelAttentionRegressor`.
    n_folds : int or "auto", default="auto"
        As there, but "auto" is 8 up to 1000 rows, 4 up to 5000, and 2 up to 30 000.
    max_steps : int or "auto", default="auto"
        As there, but "auto" is 25 up to 5000 rows, and 150 beyond.
    boosting : None or "auto", default=None
        Whether boosted trees are stacked with kernel attention. "auto": for each fold
        scikit-learn's `HistGradientBoosting` is fitted without the rows that judge, and joins
        where the log-loss of these then falls by at least 0.3 %. Never where the bandwidth is
        given, or there are fewer than 50 rows.
    random_state : int, RandomState instance or None, default=0
        Draws folds, starting points and batches.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        The classes; a list if there are several outputs.
    links_ : list of (dict or None)
        For each output the parameters of the link; None for "average" without trees.
    boosters_ : list of list of HistGradientBoostingClassifier
        For each output those of the folds, none where they are not used. Their classes are
        positions in `classes_`.
    length_scales_, feature_relevance_, bandwidth_, judged_rows_, encodings_, members_, keys_
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

    Notes
    -----
    Scores :math:`f_c` are predictions of the indicators less the frequencies :math:`\pi_c` of
    the classes. The kernel has a linear part, and neither a constant nor a rough one. It is
    learned by the cross-entropy of :math:`P(c) \propto \pi_c e^{\theta f_c}` on batches, with
    leave-one-out scores in closed form. The link makes probabilities of the scores,

    .. math:: P(c \mid x) = (1 - \epsilon)\, \frac{\pi_c e^{z_c}}{\sum_k \pi_k e^{z_k}}
              + \epsilon\, \pi_c, \quad
              z_c = b_c + \theta f_c + \vartheta \operatorname{arsinh}\frac{f_c + \pi_c}{.04}

    with the parameters of least log-loss on rows that the members have not learned from, none
    of :math:`\theta` and :math:`\vartheta` negative.

    Boosted trees, if asked for, are stacked by one more term in :math:`z_c`,
    :math:`\theta_t (\log p_c - \log \pi_c)` with :math:`\theta_t \ge 0`, where
    :math:`\log p_c` is the mean over the folds' boosters. Votes ("average") then go through
    the link too.

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

    @keeps_state_on_failure
    @one_blas_thread()
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Remember the training data and learn the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; data frames may have categorical columns, numbers may be missing.
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
        """
        X, y = self._check_training(X, y)
        y = check_labels(y)
        self.classes_ = known_classes(y)
        task_data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        left_out, folds, context = self._remember(
            X, indicators(y, self.classes_, np.float64), sample_weight, task_data
        )
        self._describe()
        rows = self.judged_rows_
        judged, weights = self.values_[rows], self.key_weights_[rows]
        self.links_, self.boosters_ = [], []
        of_outputs = split_classes(left_out, self.classes_)
        for classes, scores in zip(self._outputs, of_outputs, strict=True):
            frequencies = self._frequencies[classes]
            boosters, link = [], None
            if self._may_boost:
                boosters, link = stack_classifier(
                    self.keys_, self.columns_, self.values_[:, classes], self.key_weights_,
                    folds, scores, frequencies,
                )  # fmt: skip
            if link is None and self.readout != "average":
                link = MultinomialLink.fit(scores, judged[:, classes], weights, frequencies)
            self.boosters_.append(boosters)
            self.links_.append(link and vars(link))
        context.call_on_fit_task_end(estimator=self, **task_data, reconstruction_attributes={})
        return self

    def predict_proba(self, X):
        """Probability of each class for each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        probabilities : ndarray of shape (n_queries, n_classes), or list of such arrays
            Rows sum to 1. A list if there are several outputs.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        found = [p.astype(self.keys_.dtype) for p in self._probabilities(X)]
        return found if isinstance(self.classes_, list) else found[0]

    def _probabilities(self, X):
        """Of every output, (n_queries, n_classes)."""
        scores = self._scores(X)
        found = []
        outputs = zip(self._outputs, self.links_, self.boosters_, strict=True)
        for classes, link, boosters in outputs:
            if link is None:
                votes = np.clip(scores[0][:, classes] + self.center_[classes], 0, None)
                found.append(votes / votes.sum(axis=1, keepdims=True))
                continue
            frequencies, trees = self._frequencies[classes], None
            if boosters:
                trees = predict_trees(boosters, X, self.columns_, frequencies)
            found.append(MultinomialLink(**link)(scores[:, :, classes], trees))
        return found

    # Indicators stay indicators.
    _scales_targets = False
    _fewest_bins = 12

    @property
    def _frequencies(self):
        return np.maximum(self.center_, _LEAST_FREQUENCY)

    @property
    def _outputs(self):
        """Columns of the indicators of each output."""
        ends = np.cumsum([0, *map(len, classes_of_outputs(self.classes_))])
        return [slice(*pair) for pair in itertools.pairwise(ends)]

    def _loss(self):
        loss = LogLossOfShares if self.readout != "solve" else CrossEntropy
        return loss(self._frequencies, self._outputs)

    # By the number of rows, at most.
    _usual_folds = MappingProxyType({_FEW: 8, _RANDOM: 4, 30_000: 2, np.inf: 1})

    def _ridges(self, n_rows, n_folds):
        usual = KernelRidge(
            share=0.4, n_steps=25 if n_rows <= _RANDOM else 150, most_at_random=_RANDOM,
            noise=0.5, rough=False, linear=True, constant=False,
        )  # fmt: skip
        if n_rows <= _FEW:
            usual = dataclasses.replace(usual, batch=256, rate=0.1, precision=0.2)
        return {"solve": usual}

    def _shares_of_kinds(self):
        return np.ones((1, self.values_.shape[1]))

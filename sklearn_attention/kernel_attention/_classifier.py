"""Kernel attention for classes."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from .._base import keeps_state_on_failure
from .._labels import ClassLabels, check_labels, known_classes
from ._blend import MultinomialLink, log_odds
from ._estimator import KernelAttention
from ._ways import WAYS


class KernelAttentionClassifier(ClassLabels, ClassifierMixin, KernelAttention):
    r"""Classification by attention over the training rows, with a learned kernel.

    As :class:`KernelAttentionRegressor`, over the indicators of the classes.

    Parameters
    ----------
    readout : {"blend", "solve", "local_linear", "average"}, default="blend"
        How the memory is read. ``"average"``: the weighted votes of the rows, learned by
        their leave-one-out log-loss. ``"local_linear"``: the same of local lines.
        ``"solve"``: kernel logistic regression up to 2000 rows, kernel ridge regression of
        the indicators beyond. ``"blend"``: solve and average, and up to 2000 rows a second,
        more firmly held solve. All but "average" go through a calibrated multinomial link;
        see Notes.
    kernel, views, n_heads, n_estimators, max_steps, bandwidth, ridge, clip, device
        As for :class:`KernelAttentionRegressor`.
    n_landmarks : int or "auto", default="auto"
        As there; where it is less than the number of rows, indicators are solved by ridge
        regression.
    random_state : int, RandomState instance or None, default=0
        Draws folds, starting points and batches.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        The classes; a list if there are several outputs.
    blend_weights_ : dict of str to float
        Strength of each way to read in the link, the mean over outputs.
    links_ : list of dict
        For each output the strengths, the bias of every class, and the least score.
    n_heads_, length_scales_, feature_relevance_, bandwidth_, judged_rows_, members_, keys_
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
    NadarayaWatsonClassifier : Votes with a bandwidth that is not learned in views.

    Notes
    -----
    What a way says of class :math:`c` is a score :math:`f_{mc}`, about a probability, or the
    log-odds of kernel logistic regression. The link makes probabilities of the scores of all
    ways,

    .. math:: P(c \mid x) \propto \exp\Bigl(b_c + \sum_m \theta_m\, g(f_{mc})\Bigr),
              \quad \theta_m \ge 0,\quad
              g(f) = \log \tfrac12 \bigl(f + \sqrt{f^2 + 4\epsilon^2}\bigr)

    with :math:`g(f) = f` for log-odds, and the parameters of least log-loss of leave-one-out
    predictions, of rows that the members have not learned from.

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
        left_out, context = self._remember(
            X, self._indicators(y, np.float64), sample_weight, attending="average",
            loss="log", centered=False, task_data=task_data,
        )  # fmt: skip
        rows = self.judged_rows_
        judged, weights = self.values_[rows], self.key_weights_[rows]
        self.links_ = []
        if self.readout != "average":
            scores = self._as_scores(left_out)
            outputs = zip(self._of_outputs(scores), self._of_outputs(judged), strict=True)
            for of_classes, indicators in outputs:
                link = MultinomialLink.fit(of_classes, indicators, weights, self._are_log_odds)
                self.links_.append(vars(link))
        strengths = [link["strengths"] for link in self.links_] or [np.ones(1)]
        self._shares = np.mean(strengths, axis=0)
        self.blend_weights_ = dict(zip(self.ways_, self._shares, strict=True))
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

    def predict(self, X):
        """Most probable class of each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Classes; of equally probable ones the first.
        """
        probabilities = self.predict_proba(X)
        several = isinstance(self.classes_, list)
        return self._winners(probabilities if several else [probabilities])

    def _probabilities(self, X):
        """Of every output, (n_queries, n_classes)."""
        scores = self._as_scores(self._answers(X))
        if not self.links_:
            found = self._of_outputs(np.clip(scores[0], 0, None))
            return [p / p.sum(axis=1, keepdims=True) for p in found]
        outputs = zip(self.links_, self._of_outputs(scores), strict=True)
        return [MultinomialLink(**link)(of_classes) for link, of_classes in outputs]

    def _as_scores(self, answers):
        """What was solved without the means of the indicators gets them back."""
        solved = np.array([WAYS[way].reads == "solve" for way in self.ways_])
        of_odds = self._are_log_odds[:, None, None]
        less = np.where(of_odds, log_odds(self.center_), self.center_)
        return answers + np.where(solved[:, None, None], less, 0.0)

    @property
    def _are_log_odds(self):
        return np.array(
            [
                any("log_odds" in member for member in self.members_ if member["way"] == way)
                for way in self.ways_
            ]
        )

    def _averaged(self, targets, values):
        return values

    def _way_shares(self):
        return self._shares / max(self._shares.sum(), np.finfo(float).tiny)

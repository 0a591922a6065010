"""Parameters and methods that the regressor and the classifier have in common."""

import functools

import numpy as np
from sklearn.base import MultiOutputMixin, TransformerMixin, is_classifier
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._columns import Columns, MixedRows
from .._labels import targets_at
from ..attention._tables import Explanation, heaviest
from ._averages import AverageMember
from ._distribution import ErrorDistribution
from ._encodings import ENCODINGS, Encoding, TrainingRows
from ._fitted import Fitted
from ._kernel import LearnedKernel
from ._ridge import Partition, RidgeMember


class KernelAttention(MultiOutputMixin, TransformerMixin, MixedRows):
    """Mixin of estimators that hold a Fitted: parameters, and views of what is learned."""

    _reads_missing = True
    _held = (
        Columns, Encoding, Fitted, LearnedKernel, Partition, RidgeMember, AverageMember,
        TrainingRows, ErrorDistribution,
    )  # fmt: skip

    def __init__(
        self,
        readout="solve",
        *,
        kernel="gaussian",
        encodings=ENCODINGS,
        n_folds="auto",
        max_steps="auto",
        bandwidth="learned",
        ridge="learned",
        boosting=None,
        random_state=0,
    ):
        self.readout = readout
        self.kernel = kernel
        self.encodings = encodings
        self.n_folds = n_folds
        self.max_steps = max_steps
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.boosting = boosting
        self.random_state = random_state

    def transform(self, X):
        """Rows in the learned space, where near rows have similar targets.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_queries, n_columns)
            The columns of all encodings in learned length-scales, those of the first member:
            its kernel falls with the Euclidean distance between these rows.
        """
        X = self._read_rows(X)
        return self._fitted.space(X).astype(self.keys_.dtype, copy=False)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; if given, those of `fit`.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        columns = [
            name for encoding in self.encodings_ for name in encoding.column_names(names)
        ]
        return np.array(columns, dtype=object)

    def explain(self, X, k=5):
        """Training rows of largest weight in each prediction.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries whose predictions are explained.
        k : int, default=5
            Number of training rows; at most all of them.

        Returns
        -------
        explanation : Explanation
            Named tuple of ``indices``, ``weights`` and ``values``, the heaviest first. The
            weights are effective: a prediction is the sum of weights times targets, over all
            rows, which also share the mean of the targets. A regressor of several outputs has
            weights for each, (n_queries, k, n_outputs), and the rows are in the order of
            their largest. A classifier's are those of the scores of its classes, before the
            link, the same for all outputs. Rows of weight 0 in `fit` do not count. Where
            boosted trees are stacked, they are the weights of the kernel part.
        """
        X, fitted = self._read_rows(X), self._fitted
        several = self.values_.ndim == 2 and not is_classifier(self)
        weights_of = functools.partial(fitted.weights, outputs=slice(None) if several else 0)
        indices, weights = heaviest(weights_of, X, len(self.keys_), k)
        return Explanation(fitted.positions[indices], weights, targets_at(self, indices))

    def local_slopes(self, X):
        """Slopes of predictions along the features.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        slopes : ndarray of shape (n_queries, n_features) or (n_queries, n_outputs, n_features)
            In units of the target for one unit of the feature; 0 for categories and for missing
            cells. For "solve" the gradient of the prediction, which takes steps at the edges
            of bins; 0 for "average". The outputs of a classifier are its classes, before the
            link. Where boosted trees are stacked, they are the slopes of the kernel part.
        """
        X = self._read_rows(X)
        slopes = self._fitted.slopes(X).astype(self.keys_.dtype, copy=False)
        return slopes[:, 0] if self.values_.ndim == 1 else slopes

    @property
    def _n_features_out(self):
        return sum(map(len, self.encodings_))

"""Base class of transformers that draw random features."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import OwnInit, keeps_state_on_failure
from .._blocks import check_memory
from .._frames import numeric_table
from .._validation import check_bandwidth, check_flag, check_size
from ..kernels._base import as_kernel
from ..kernels._frequencies import random_frequencies

_DTYPES = (np.float64, np.float32)


class RandomFeatures(
    OwnInit, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Base class: ``fit`` draws directions, and ``transform`` projects rows on them.

    A subclass defines the kernel of the directions in ``_spectral_kernel``, and turns
    projections into features in ``_features``.
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        kernel: Any = "gaussian",
        bandwidth: Any = 1.0,
        orthogonal: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.orthogonal = orthogonal
        self.random_state = random_state

    @keeps_state_on_failure
    def fit(self, X, y=None) -> Any:
        """Draw the directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : None
            Not used.

        Returns
        -------
        self
        """
        X = validate_data(self, numeric_table(X), dtype=_DTYPES, order="C")
        # 2 d + 8 is an estimate of how many numbers are in memory for each component.
        n_components = check_size("n_components", self.n_components, 2 * X.shape[1] + 8)
        bandwidth = check_bandwidth(self.bandwidth, X.shape[1])
        orthogonal = check_flag("orthogonal", self.orthogonal)
        random_state = check_random_state(self.random_state)
        n_directions = -(-n_components // 2)  # half of n_components, rounded up
        self.directions_ = random_frequencies(
            self._spectral_kernel(),
            n_directions,
            X.shape[1],
            orthogonal=orthogonal,
            random_state=random_state,
        )
        # Parameters are copied, so that changing them later does not change a fitted estimator.
        self.kernel_ = as_kernel(clone(self.kernel, safe=False))
        self.bandwidth_ = np.full(X.shape[1], bandwidth)
        self._n_features_out = n_components
        self._learn(X, random_state)
        return self

    def transform(self, X) -> np.ndarray:
        """Compute the features of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of those in `fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            In single precision if `X` is in single precision, otherwise in double precision.
        """
        check_is_fitted(self)
        X = validate_data(self, numeric_table(X), dtype=_DTYPES, order="C", reset=False)
        # Projections, exponents and features are in memory together.
        shape = 3, len(X), self._n_features_out
        check_memory("n_components of all rows", shape, "pass fewer rows at a time", X.itemsize)
        with np.errstate(over="ignore", invalid="ignore"):
            features = self._features(X, self.bandwidth_.astype(X.dtype))
        self._refuse_overflow(features)
        return features

    @abstractmethod
    def _spectral_kernel(self):
        """Return the kernel from whose spectral density the directions are drawn."""

    @abstractmethod
    def _features(self, X, bandwidth):
        """Compute features (n_samples, n_components); X and bandwidth have one precision."""

    def _refuse_overflow(self, numbers):
        """Raise ValueError if a number is not finite."""
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"features overflow at bandwidth={self.bandwidth!r}: pass a larger bandwidth, "
                "or scale X down."
            )

    def _learn(self, X, random_state):
        """Set the fitted attributes that ``transform`` needs besides the directions."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

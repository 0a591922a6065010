"""Parameters, reading and views that the regressor and the classifier have in common."""

from dataclasses import KW_ONLY

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from .._base import AttentionEstimator, parameters, warn_user
from .._columns import Columns
from .._partitions import to_memory
from .._report import Report
from .._shapley import FeatureEffectsMixin
from .._validation import (
    TRUE_FALSE_AUTO,
    check_choice,
    check_key_weights,
    check_positive,
    has_validation_set,
    is_one_of,
    weight_unit,
)
from ..text._learn import TOKENIZERS
from ..training._architecture import check_series_parts
from ..training._fit_network import FittedNetwork, NetworkParameters, NetworkSettings
from ._baselines import TableBaseline, TextBaseline
from ._fitted import Data, FittedEncoder, fit_encoder
from ._forms import FORMS, form_of
from ._series_baseline import LeftOutRidge, RandomConvolutions, SeriesBaseline
from ._series_reader import SeriesReader
from ._table_reader import TableReader
from ._task import Classes, Loss, Numbers
from ._text_reader import TextReader


@parameters
class TransformerEstimator(
    FeatureEffectsMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    NetworkParameters,
    AttentionEstimator,
):
    """Base class of estimators that encode rows by a transformer."""

    _held = (
        Classes, Columns, FittedEncoder, FittedNetwork, LeftOutRidge, Loss, Numbers,
        RandomConvolutions, SeriesBaseline, SeriesReader, TableBaseline, TableReader,
        TextBaseline, TextReader,
    )  # fmt: skip

    _views = ("tokens_", "classes_", "quantiles_", "baseline_weight_", "transformer_weight_")
    tokens_ = property(lambda self: self.encoder_.reader.form)
    network_ = property(lambda self: self.encoder_.network)
    baseline_ = property(lambda self: self.encoder_.baseline)
    baseline_weight_ = property(lambda self: self.encoder_.baseline_weight)
    transformer_weight_ = property(lambda self: self.encoder_.transformer_weight)

    tokens: str = "auto"
    _: KW_ONLY
    tokenizer: str = "auto"
    max_tokens: int | None = None
    max_length: int | None = None
    pooling: str = "auto"
    baseline: bool | str = "auto"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        return tags

    def transform(self, X) -> np.ndarray:
        """Vectors of rows, from which the transformer predicts linearly.

        A baseline has no part in them, since it predicts from the rows.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        X_new : ndarray of shape (n_queries, width)
            Tokens after the last layer, pooled.

        Warns
        -----
        UserWarning
            If `transformer_weight_` is below .1, so that predictions hardly depend on them.
        """
        rows, dtype = self._read(X)
        self._warn_of_little_weight("vectors")
        return self.encoder_.vectors(rows, self.device).astype(dtype)

    def attention_maps(self, X) -> np.ndarray:
        """Weights of the transformer's attention as rows are encoded.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        weights : ndarray of shape (n_queries, n_layers, n_heads, n_tokens, n_tokens)
            Weights of the tokens (last axis) in the average of each token; rows sum to 1. With
            ``pooling="cls"`` the token [CLS] comes first; then features in their order, or
            steps. Sequences that are shorter than the longest have 0 behind their end.

        Warns
        -----
        UserWarning
            If `transformer_weight_` is below .1, so that predictions hardly depend on them.
        """
        rows, _ = self._read(X)
        self._warn_of_little_weight("maps")
        return self.encoder_.maps(rows, self.device)

    def _fit_parts(self, settings, read_y, *parts, **checks):
        """A reader, and of each part rows with weight, all targets and all weights."""
        # Each part is of X, y and weights as users pass them; one or two are returned. Only
        # here is the form of rows guessed: all others are read by the reader of that form.
        named = zip(("y", "y_val"), (to_memory(*part) for part in parts), strict=True)
        training, validation = ((X, read_y(y, name), own) for name, (X, y, own) in named)
        X, *targets = training
        if settings.start is not None:
            reader = self.encoder_.reader
            self._refuse_other_reader(reader, settings.architecture)
            found = self._read_examples(reader, *training, **checks)
        else:
            y, weights = self._check_targets(*targets, **checks)
            for name in ("n_features_in_", "feature_names_in_"):
                vars(self).pop(name, None)
            form = form_of(X) if self.tokens == "auto" else self.tokens
            kinds = {kind.form: kind for kind in (TableReader, SeriesReader, TextReader)}
            reader, rows = kinds[form].learn(X, weights > 0, self, settings.architecture)
            found = rows, y, weights
        X, y, weights = validation
        if not has_validation_set(X, y):
            if weights is not None:
                raise ValueError("sample_weight_val was passed without X_val: pass both.")
            return reader, [found]
        try:
            judged = self._read_examples(reader, X, y, weights, **checks)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X_val and y_val do not fit: {error}") from error
        before, after = found[1].shape, judged[1].shape
        if before[1:] != after[1:]:
            raise ValueError(
                f"y_val has shape {after}, but y {before}: pass the same number of outputs in "
                "both."
            )
        return reader, [found, judged]

    def _refuse_other_reader(self, reader, architecture):
        """Raise ValueError where the reader of the last fit is not what parameters ask for."""
        given = {"tokens": (self.tokens, reader.form)}
        if reader.form != "features":
            # With learned positions None stands for the longest that was learned.
            any_length = self.max_length is None and architecture.positions == "learned"
            given["max_length"] = "auto" if any_length else self.max_length, reader.max_length
        if reader.form == "text" and reader.vocabulary["tokenizer"] != "ids":
            given["tokenizer"] = self.tokenizer, reader.vocabulary["tokenizer"]
        for name, (now, before) in given.items():
            if now not in ("auto", before):
                raise ValueError(
                    f"{name}={now!r} does not fit warm_start=True, which reads rows as in the "
                    f"last fit, where it was {before!r}: pass that, or warm_start=False."
                )

    def _check_targets(self, y, sample_weight, **checks):
        """Targets and weights of rows, checked; all weights are 1 where there are none."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = _check_y(y, **checks, estimator=self)
        weights = check_key_weights(sample_weight, y, np.float32)
        return y, np.ones(len(y)) if weights is None else weights / weight_unit(weights)

    def _read_examples(self, reader, X, y, sample_weight, **checks):
        """Rows that have weight, all targets and all weights."""
        rows, _ = reader.read(X, self)
        y, weights = self._check_targets(y, sample_weight, **checks)
        check_consistent_length(range(len(rows)), y)
        return rows.take(np.flatnonzero(weights)), y, weights

    def _read(self, X):
        """Rows of the form and with the columns of those in `fit`, and their precision."""
        check_is_fitted(self)
        return self.encoder_.reader.read(*to_memory(X), self)

    def _read_rows(self, X):
        """Read a table as numbers and codes of levels."""
        form = self.encoder_.reader.form
        if form != "features":
            raise ValueError(
                f"explain_features explains tables, but tokens={form!r} were fitted: call "
                "attention_maps, which shows which tokens attend to each other."
            )
        return self.encoder_.reader.read_cells(X, self)

    def _training_rows(self):
        reader = self.encoder_.reader
        if reader.sample is None:
            raise ValueError("background=None, but files of 0.2.0 hold no rows: pass a table.")
        return reader.sample, None, reader.columns.categorical

    def _predict_rows(self, cells):
        """Predict targets, or probabilities, of numbers and codes of levels."""
        return self._predict(self.encoder_.reader.rows_of(cells), cells.dtype)

    def _learn(self, settings, reader, task, examples, task_data, strata=None):
        """Learn from a first part of Examples, validate with the second, or with rows held out.

        `strata` (n_rows,) are classes, held out in proportion.
        """
        data = Data.of(settings, *examples, strata=strata)
        report = Report(self, **task_data)
        report.begin(settings.n_epochs(len(data.learned)))
        self.encoder_ = fit_encoder(
            data, reader, task, settings, self.pooling, self.baseline, report
        )
        report.end()

    def _warn_of_little_weight(self, found):
        """Warn where a transformer whose vectors or maps are returned has little weight."""
        most = np.max(self.transformer_weight_)
        if most < 0.1:
            warn_user(
                f"transformer_weight_ is {most:.2g}: predictions come almost entirely from the "
                f"baseline, so that {found} of the transformer say little about them. Pass "
                "baseline=False to predict without the baseline.",
            )

    @property
    def _n_features_out(self):
        shape = self.network_.shape
        return shape["d_model"] + (shape["d_position"] or 0)

    def _check_parameters(self):
        """Settings of the network; ValueError unless all parameters are valid."""
        check_choice("tokens", self.tokens, ("auto", *FORMS))
        check_choice("tokenizer", self.tokenizer, ("auto", *TOKENIZERS))
        check_choice("pooling", self.pooling, ("auto", "cls", "last", "mean"))
        if not is_one_of(self.baseline, *TRUE_FALSE_AUTO):
            raise ValueError(
                f"baseline={self.baseline!r} is not valid: pass True, False or 'auto'."
            )
        for name in ("max_tokens", "max_length"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), integer=True)
        # The shape of the network is checked once it is known whether tokens have an order.
        settings = NetworkSettings.of(
            self, widening=2, largest_batch=256, fewest_epochs=10, foreign=("instance_norm",)
        )
        check_series_parts(settings.architecture)
        return settings

"""Parameters, reading of rows, and views that the regressor and the classifier share.

A *reader* turns tables, sequences or texts into rows that a network takes. The *task* knows the
kind of the targets, their scale or classes, and their loss.
"""

from dataclasses import KW_ONLY

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from .._base import AttentionEstimator, parameters, warn_user
from .._columns import Columns
from .._partitions import to_memory
from .._report import Report
from .._rows_in_partitions import RowsInPartitions
from .._sample_weight import check_key_weights, weight_unit
from .._validation import (
    TRUE_FALSE_AUTO,
    check_choice,
    check_positive,
    has_validation_set,
    is_one_of,
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
    RowsInPartitions,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    NetworkParameters,
    AttentionEstimator,
):
    """Base class of estimators that encode rows by a transformer."""

    _held = (Classes, FittedEncoder, FittedNetwork, Loss, Numbers)
    _held += (Columns, SeriesReader, TableReader, TextReader)
    _held += (LeftOutRidge, RandomConvolutions, SeriesBaseline, TableBaseline, TextBaseline)

    _builders = (("RandomConvolutions", RandomConvolutions.from_stored),)
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
        """Encode rows as vectors, from which the transformer predicts linearly.

        The vectors do not depend on the baseline, which predicts from the rows themselves.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        X_new : ndarray of shape (n_queries, width)
            For each row one vector: its tokens after the last layer, pooled.

        Warns
        -----
        UserWarning
            If `transformer_weight_` is below 0.1, so that predictions hardly depend on the
            vectors.
        """
        rows, dtype = self._read(X)
        self._warn_of_little_weight("vectors")
        return self.encoder_.vectors(rows, self.device).astype(dtype)

    def attention_maps(self, X) -> np.ndarray:
        """Return the weights of the transformer's attention as rows are encoded.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        weights : ndarray of shape (n_queries, n_layers, n_heads, n_tokens, n_tokens)
            Weights of the tokens (last axis) in the average of each token; rows sum to 1. With
            ``pooling="cls"`` the token [CLS] comes first. Then come features in their order, or
            steps, or the tokens of a text. Weights after the end of a sequence are 0.

        Warns
        -----
        UserWarning
            If `transformer_weight_` is below 0.1, so that predictions hardly depend on the
            weights.
        """
        rows, _ = self._read(X)
        self._warn_of_little_weight("maps")
        return self.encoder_.maps(rows, self.device)

    def _read_data(self, settings, read_y, training, validation, **checks):
        """Read training and validation data by one reader, which a first fit learns.

        Parameters
        ----------
        settings : NetworkSettings
            Its `start` has the weights of the last fit if this is continued, and is None if a
            first fit has to learn a reader.
        read_y : callable
            ``read_y(y, name)`` returns an array of targets that were passed as `name`, or
            None if they are None.
        training, validation : tuple of (X, y, sample_weight)
            Arguments of `fit`. X and y of the validation are None if no set was passed.
        **checks
            Options of scikit-learn's check of targets.

        Returns
        -------
        reader : TableReader, SeriesReader or TextReader
        data : list of tuple of (rows, y, weights)
            The training data, and the validation data if there are any. `rows` are only those
            that have weight; `y` and `weights` have an entry for every row.
        """
        X, y, sample_weight = self._draw_rows(*training)
        y = read_y(y, "y")
        X_val, y_val, weight_val = self._draw_rows(*validation)
        y_val = read_y(y_val, "y_val")
        if settings.start is not None:
            reader = self.encoder_.reader
            self._refuse_other_reader(reader, settings.architecture)
            training = self._read_examples(reader, X, y, sample_weight, **checks)
        else:
            y, weights = self._check_targets(y, sample_weight, **checks)
            for name in ("n_features_in_", "feature_names_in_"):
                vars(self).pop(name, None)
            # The form is guessed only here. The reader of this form reads all later rows.
            form = form_of(X) if self.tokens == "auto" else self.tokens
            kinds = {kind.form: kind for kind in (TableReader, SeriesReader, TextReader)}
            reader, rows = kinds[form].learn(X, weights > 0, self, settings.architecture)
            training = rows, y, weights
        if not has_validation_set(X_val, y_val):
            if weight_val is not None:
                raise ValueError("sample_weight_val was passed without X_val: pass both.")
            return reader, [training]
        try:
            validation = self._read_examples(reader, X_val, y_val, weight_val, **checks)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X_val and y_val do not fit: {error}") from error
        shape, shape_val = training[1].shape, validation[1].shape
        if shape[1:] != shape_val[1:]:
            raise ValueError(
                f"y_val has shape {shape_val}, but y {shape}: pass the same number of outputs "
                "in both."
            )
        return reader, [training, validation]

    def _refuse_other_reader(self, reader, architecture):
        """Raise ValueError if parameters ask for another reader than that of the last fit."""
        # For each parameter: its value now, and the value that the reader was learned with.
        values = {"tokens": (self.tokens, reader.form)}
        if reader.form != "features":
            # With learned positions, None stands for the longest sequence of the last fit.
            any_length = self.max_length is None and architecture.positions == "learned"
            values["max_length"] = "auto" if any_length else self.max_length, reader.max_length
        if reader.form == "text" and reader.vocabulary["tokenizer"] != "ids":
            values["tokenizer"] = self.tokenizer, reader.vocabulary["tokenizer"]
        for name, (now, before) in values.items():
            if now not in ("auto", before):
                raise ValueError(
                    f"{name}={now!r} does not fit warm_start=True, which reads rows as in the "
                    f"last fit, where it was {before!r}: pass that, or warm_start=False."
                )

    def _check_targets(self, y, sample_weight, **checks):
        """Check targets and weights; return both, with weights of 1 if none were passed."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = _check_y(y, **checks, estimator=self)
        weights = check_key_weights(sample_weight, y, np.float32)
        return y, np.ones(len(y)) if weights is None else weights / weight_unit(weights)

    def _read_examples(self, reader, X, y, sample_weight, **checks):
        """Read rows by a fitted reader; return those with weight, all targets, all weights."""
        rows, _ = reader.read(X, self)
        y, weights = self._check_targets(y, sample_weight, **checks)
        check_consistent_length(range(len(rows)), y)
        return rows.take(np.flatnonzero(weights)), y, weights

    def _read(self, X):
        """Read rows of the same form as those in `fit`; return them and their dtype."""
        check_is_fitted(self)
        return self.encoder_.reader.read(*to_memory(X), self)

    def _read_rows(self, X):
        """Read a table as cells, which are numbers and codes, for `explain_features`."""
        form = self.encoder_.reader.form
        if form != "features":
            raise ValueError(
                f"explain_features explains tables, but tokens={form!r} were fitted: call "
                "attention_maps, which shows which tokens attend to each other."
            )
        return self.encoder_.reader.read_cells(X, self)

    def _training_rows(self):
        """Return the background of `explain_features`: rows, None for weights, and categories.

        Rows are cells (n_rows, n_features), and categories the positions of their columns.
        """
        reader = self.encoder_.reader
        if reader.sample is None:
            raise ValueError("background=None, but files of 0.2.0 hold no rows: pass a table.")
        return reader.sample, None, reader.columns.categorical

    def _predict_rows(self, cells):
        """Predict targets, or probabilities of classes, from cells."""
        return self._predict(self.encoder_.reader.rows_of(cells), cells.dtype)

    def _learn(self, settings, reader, task, examples, task_data, strata=None):
        """Fit the encoder, and store it.

        Parameters
        ----------
        settings : NetworkSettings
            Parameters of the network and of its training.
        reader : TableReader, SeriesReader or TextReader
            The reader of the rows of `examples`.
        task : Numbers or Classes
            The targets, and their loss.
        examples : list of Examples
            The training examples, and the validation examples if the user passed some. If not,
            some training examples are held out.
        task_data : dict
            Arguments of `fit`, which callbacks receive: "X", "y" and "metadata".
        strata : ndarray of shape (n_rows,), default=None
            Classes; the same fraction of the rows of each class is held out.
        """
        data = Data.split(settings, *examples, strata=strata)
        report = Report(self, **task_data)
        report.begin(settings.count_epochs(len(data.trained)))
        self.encoder_ = fit_encoder(
            data, reader, task, settings, self.pooling, self.baseline, report
        )
        report.end()

    def _warn_of_little_weight(self, results):
        """Warn if predictions hardly depend on what is returned: `results`, such as "maps"."""
        max_weight = np.max(self.transformer_weight_)
        if max_weight < 0.1:
            warn_user(
                f"transformer_weight_ is {max_weight:.2g}: predictions come almost entirely "
                f"from the baseline, so that {results} of the transformer say little "
                "about them. Pass baseline=False to predict without the baseline.",
            )

    @property
    def _n_features_out(self):
        """Width of the vectors that `transform` returns."""
        shape = self.network_.shape
        return shape["d_model"] + (shape["d_position"] or 0)

    def _check_parameters(self):
        """Return settings of the network; raise ValueError unless all parameters are valid."""
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
        # Pooling and positions are checked when the network is made, since it is not known yet
        # whether tokens have an order.
        settings = NetworkSettings.of(
            self, widening=2, largest_batch=256, fewest_epochs=10, foreign=("instance_norm",)
        )
        check_series_parts(settings.architecture)
        return settings

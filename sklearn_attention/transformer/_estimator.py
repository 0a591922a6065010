"""Parameters, network and training that the regressor and the classifier have in common."""

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import AttentionEstimator
from .._columns import Columns
from .._partitions import in_memory
from .._validation import check_choice, check_positive, is_one_of
from ..text._learn import TOKENIZERS
from ..training._architecture import check_series_parts
from ..training._fit_network import (
    FittedNetwork,
    NetworkParameters,
    NetworkSettings,
    fit_network,
)
from ..training._report import reported
from ._baselines import SeriesBaseline, TableBaseline, TextBaseline
from ._blend import warn_of_little_weight, weights_of_outputs
from ._convolutions import RandomConvolutions
from ._forms import FORMS, form_of
from ._left_out_ridge import LeftOutRidge
from ._reader import READERS, check_targets, read_examples, read_validation, reader_of
from ._series_reader import patched

POOLINGS = ("cls", "last", "mean")
# "auto" makes patches of so many steps, or as many as leave so many of them.
_LONGEST_PATCH, _FEWEST_PATCHES = 16, 8
# Fitted attributes of only some forms of rows.
_OF_FORMS = ("n_features_in_", "feature_names_in_", "columns_", "scales_", "vocabulary_")
_OF_FORMS += ("max_length_", "patch_length_")


class TransformerEstimator(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    NetworkParameters,
    AttentionEstimator,
):
    """Base class of estimators that encode rows by a transformer."""

    _held = (
        Columns, FittedNetwork, LeftOutRidge, RandomConvolutions, SeriesBaseline, TableBaseline,
        TextBaseline,
    )  # fmt: skip

    def __init__(self, **parameters):
        # Subclasses name them, with their defaults and one more.
        vars(self).update(parameters)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        return tags

    def transform(self, X):
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
        warn_of_little_weight(self, "vectors")
        return self._encode(rows)[1].astype(dtype)

    def attention_maps(self, X):
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
        warn_of_little_weight(self, "maps")
        from ._learning import attention_maps  # torch takes a second to load

        return attention_maps(self.module_, self._tokens_of(rows))

    def _read_parts(self, settings, read_y, *parts, **checks):
        """Rows with weight, all targets and all weights: to learn from, to validate with."""
        # Each part is of X, y and weights as users pass them; one or two are returned. Only
        # here is the form of rows guessed: all others are read by the reader of that form.
        named = zip(("y", "y_val"), (in_memory(*part) for part in parts), strict=True)
        training, validation = ((X, read_y(y, name), own) for name, (X, y, own) in named)
        if settings.start is not None:
            found = read_examples(self, *training, **checks)
        else:
            X, *targets = training
            y, weights = check_targets(self, *targets, **checks)
            for name in _OF_FORMS:
                vars(self).pop(name, None)
            self.tokens_ = form_of(X) if self.tokens == "auto" else self.tokens
            learned_positions = settings.architecture.positions == "learned"
            reader, rows = READERS[self.tokens_].learn(X, weights > 0, self, learned_positions)
            vars(self).update({f"{name}_": value for name, value in vars(reader).items()})
            found = rows, y, weights
        return [found, *read_validation(self, found[1], *validation, **checks)]

    def _read(self, X):
        """Rows of the form and with the columns of those in `fit`, and their precision."""
        check_is_fitted(self)
        return reader_of(self).read(*in_memory(X), self)

    def _encode(self, rows):
        """Outputs of the network for rows, and their vectors."""
        from ._learning import outputs_of

        return outputs_of(self.module_, self._tokens_of(rows))

    def _outputs(self, rows):
        """Predictions for rows, in units of the targets, or as logits."""
        outputs, classes = 0.0, getattr(self, "classes_", None)
        # Weights are of outputs, each of which has as many columns as classes.
        sizes = [*map(len, classes)] if isinstance(classes, list) else 1
        ours, theirs = (
            np.repeat(weight, sizes) if np.ndim(weight) else weight
            for weight in (self.transformer_weight_, self.baseline_weight_)
        )
        if np.any(ours):
            outputs = ours * self._encode(rows)[0].astype(np.float64)
        if self.baseline_ is not None:
            outputs = outputs + theirs * self.baseline_.outputs(rows)
        return outputs

    def _tokens_of(self, rows):
        """Rows as the network takes them: steps of series in patches."""
        return patched(rows, self.patch_length_) if self.tokens_ == "steps" else rows

    def _learn(self, settings, parts, loss, task_data, strata=None):
        """Learn from a first part of Examples, validate with the second, or with rows held out.

        `strata` (n_rows,) are classes, held out in proportion.
        """
        from . import _learning  # torch takes a second to load
        from ._network import RowEncoder
        from ._output_shares import OutputShares

        whole, *others = parts = [part.of_mean_weight_1() for part in parts]
        training, held_out = np.arange(len(whole.targets)), np.arange(0)
        if not others:
            training, held_out = settings.split(len(whole.targets), strata)
            parts = [whole.take(training), whole.take(held_out)]
        judged = parts[1]
        n_judged = len(judged.targets)
        has_baseline = self._has_baseline(n_judged, loss)
        n_outputs = whole.targets.shape[1] if loss.n_classes is None else sum(loss.n_classes)
        self.baseline_, self.baseline_weight_, self.transformer_weight_ = None, 0.0, 1.0
        if self.tokens_ == "steps" and settings.start is None:
            self.patch_length_ = _patch_length(settings.architecture, whole.rows.lengths)
        how = _learning.row_losses(loss), OutputShares(whole.targets.shape[1])
        learned, seen = (part._replace(rows=self._tokens_of(part.rows)) for part in parts)
        judge = _learning.HeldOutRows(*seen, *how) if n_judged else None

        with reported(self, settings, len(training), **task_data) as report:
            self.network_ = fit_network(
                RowEncoder, self._network_shape(settings, n_outputs), settings,
                _learning.loss_of(*learned, *how), len(training), validate=judge,
                lengths=_learning.padded_lengths(learned.rows),
                data=[*learned.arrays(), *seen.arrays()], report=report,
                n_tokens=int(np.ceil(learned.rows.lengths.mean())),
            )  # fmt: skip
            if not has_baseline:
                return
            self.baseline_, outputs = self._fit_baseline(whole, loss, held_out)
            self.baseline_weight_, self.transformer_weight_ = 1.0, 0.0
            if n_judged < 2:
                return
            if others:
                outputs = self.baseline_.outputs(judged.rows)
            network = judge.outputs.numpy().astype(np.float64)
            chosen = weights_of_outputs(loss, *judged[1:], outputs, network)
            several = whole.targets.shape[1] > 1
            chosen = chosen if several else map(float, chosen[:, 0])
            self.baseline_weight_, self.transformer_weight_ = chosen

    def _fit_baseline(self, examples, loss, held_out):
        """A baseline, and what one without the rows held out predicts for them."""
        given = *examples, loss, held_out
        if self.tokens_ == "text":
            return TextBaseline.fit(*given, **reader_of(self).token_arguments())
        kind = SeriesBaseline if self.tokens_ == "steps" else TableBaseline
        return kind.fit(*given, check_random_state(self.random_state))

    def _has_baseline(self, n_judged, loss):
        """True if there is a baseline: "auto" has none that cannot be compared for tables."""
        wanted, table = self.baseline, self.tokens_ == "features"
        learns = table or loss.name != "quantile"
        if wanted is True and not learns:
            raise ValueError(
                f"baseline=True has none for loss='quantile' of {self.tokens_}: pass 'auto' or "
                "False, or another loss."
            )
        if wanted == "auto":
            wanted = learns and (not table or n_judged > 1)
        return wanted and (loss.n_classes is None or max(loss.n_classes) > 1)

    def _network_shape(self, settings, n_outputs):
        features = self.tokens_ == "features"
        tokens = reader_of(self).token_arguments()
        if self.tokens_ == "steps":
            tokens["n_channels"] *= self.patch_length_
        pooling = self.pooling
        if pooling == "auto":
            pooling = "cls" if features else "mean"
        return {
            "form": self.tokens_,
            "tokens": tokens,
            "n_outputs": n_outputs,
            "pooling": pooling,
            "max_length": None if features else self.max_length_,
            **settings.shape(ordered=not features),
        }

    @property
    def _n_features_out(self):
        shape = self.network_.shape
        return shape["d_model"] + (shape["d_position"] or 0)

    def _check_parameters(self):
        """Settings of the network; ValueError unless all parameters are valid."""
        check_choice("tokens", self.tokens, ("auto", *FORMS))
        check_choice("tokenizer", self.tokenizer, ("auto", *TOKENIZERS))
        check_choice("pooling", self.pooling, ("auto", *POOLINGS))
        if not is_one_of(self.baseline, True, False, "auto"):
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


def _patch_length(architecture, lengths):
    """Steps of a patch, where sequences have such lengths."""
    if architecture.patch_length != "auto":
        return int(architecture.patch_length)
    return min(max(1, int(np.median(lengths)) // _FEWEST_PATCHES), _LONGEST_PATCH)

"""Estimators that read tables, sequences and texts."""

import warnings

import numpy as np
from sklearn.utils.validation import (
    _check_y,
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from .._columns import MixedRows, check_numeric
from .._validation import check_key_weights, has_validation_set
from ..text import UNKNOWN, Vocabulary, check_sequences, learn_vocabulary
from ._feature_rows import N_PIECES, feature_rows, learn_scales
from ._forms import form_of, texts_of
from ._rows import SequenceRows
from ._step_rows import learn_channels, read_steps, step_rows

_DTYPES = (np.float64, np.float32)
# Words that are seen less often teach what to make of unknown ones.
_SEEN_OFTEN = 2
# From so many tokens on a sequence takes long, if these are so many times a typical sequence's.
_MANY_TOKENS, _TIMES = 2000, 20
_TABLE = {"dtype": _DTYPES, "ensure_all_finite": "allow-nan"}
_LEARNED = (
    "n_features_in_",
    "feature_names_in_",
    "columns_",
    "scales_",
    "vocabulary_",
    "max_length_",
    "patch_length_",
)


class RowReader(MixedRows):
    """Base class of estimators whose X is a table, sequences of numbers, or texts.

    A subclass has the parameters `tokens`, `tokenizer`, `max_tokens` and `max_length`.

    Attributes
    ----------
    tokens_ : {"features", "steps", "text"}
        What the tokens are.
    scales_ : dict
        Of features and steps the mean and the standard deviation of the numbers, and of
        features their quantiles.
    vocabulary_ : dict
        Of texts, the tokens.
    max_length_ : int or None
        Steps of a sequence that are seen at most.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def _learn_input(self, settings, X, y, sample_weight, **y_checks):
        """Training rows that have weight, and all targets.

        Returns
        -------
        rows : TableRows or SequenceRows
            Those with weight alone, from which all else is learned but categories.
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        weights : ndarray of shape (n_samples,)
        """
        if settings.start is not None:
            return self._read_examples(X, y, sample_weight, **y_checks)
        for name in _LEARNED:
            vars(self).pop(name, None)
        self.tokens_ = form_of(X) if self.tokens == "auto" else self.tokens
        if self.tokens_ == "features":
            # Every level has a vector of its own, in whatever order it stands.
            how = {"ordered": False, "refuse_texts": True}
            X, y = self._learn_rows(X, **_TABLE, **how, y=y, **y_checks)
            weights = _check_weights(sample_weight, y)
            X = X[weights > 0]
            self.scales_ = learn_scales(X, self.columns_.numeric)
            return self._feature_rows(X), y, weights
        if self.tokens_ == "steps" and form_of(X) == "features":
            with check_numeric("X"):
                X, y = validate_data(self, X, y=y, **_TABLE, **y_checks)
        else:
            y = _check_y(y, **y_checks, estimator=self)
        if self.tokens_ == "steps":
            X = read_steps(X)
            _warn_of_layout(X)
        else:
            X = check_sequences("X", texts_of(X), empty=True)[1]
        check_consistent_length(X, y)
        weights = _check_weights(sample_weight, y)
        X = [X[row] for row in np.flatnonzero(weights)]
        if self.tokens_ == "steps":
            self.scales_ = learn_channels(X)
            rows = step_rows(X, self.scales_)
        else:
            tokenizer = self.tokenizer if isinstance(X[0], str) else "ids"
            often = _SEEN_OFTEN if tokenizer in ("words", "lower_words") else 1
            options = {"max_tokens": self.max_tokens, "min_count": often}
            vocabulary = learn_vocabulary(tokenizer, X, **options)
            self.vocabulary_ = vocabulary.state()
            rows = _text_rows(vocabulary, X)
        self.max_length_ = self.max_length
        if self.max_length is None and settings.architecture.positions == "learned":
            self.max_length_ = int(rows.lengths.max())
        if self.max_length is None:
            _warn_of_length(rows.lengths)
        return self._cut(rows), y, weights

    def _read_examples(self, X, y, sample_weight, **y_checks):
        """As :meth:`_learn_input`, with nothing learned of the rows themselves."""
        rows, _ = self._read_input(X)
        y = _check_y(y, **y_checks, estimator=self)
        check_consistent_length(range(len(rows)), y)
        weights = _check_weights(sample_weight, y)
        return rows.take(np.flatnonzero(weights)), y, weights

    def _read_validation(self, learned, X, y, sample_weight, **y_checks):
        """Rows to learn from as :meth:`_learn_input` returned them, and those to validate with.

        Returns
        -------
        parts : list of tuple
            One or two.
        """
        if not has_validation_set(X, y):
            if sample_weight is not None:
                raise ValueError("sample_weight_val was passed without X_val: pass both.")
            return [learned]
        try:
            found = self._read_examples(X, y, sample_weight, **y_checks)
        except ValueError as error:
            raise ValueError(f"X_val and y_val do not fit: {error}") from error
        before, after = learned[1].shape, found[1].shape
        if before[1:] != after[1:]:
            raise ValueError(
                f"y_val has shape {after}, but y {before}: pass as many outputs in both."
            )
        return [learned, found]

    def _read_input(self, X):
        """Rows to predict, and the precision in which predictions are returned.

        Returns
        -------
        rows : TableRows or SequenceRows
        dtype : dtype
        """
        check_is_fitted(self)
        if self.tokens_ == "features":
            form = form_of(X)
            if form != "features":
                raise ValueError(
                    f"X has {form}, but was a table of features when fitted: pass a table of "
                    f"{self.n_features_in_} features."
                )
            X = self._read_rows(X, **_TABLE)
            return self._feature_rows(X), X.dtype
        if self.tokens_ == "text":
            vocabulary = Vocabulary.from_state(self.vocabulary_)
            return self._cut(_text_rows(vocabulary, texts_of(X))), np.float64
        if form_of(X) == "features":
            with check_numeric("X"):
                if hasattr(self, "n_features_in_"):
                    X = validate_data(self, X, **_TABLE, reset=False)
                else:
                    X = check_array(X, **_TABLE, input_name="X")
        sequences = read_steps(X)
        n_channels, expected = sequences[0].shape[1], len(self.scales_["center"])
        if n_channels != expected:
            raise ValueError(
                f"X has steps of {n_channels} channels, but of {expected} when fitted: pass "
                f"arrays of shape (T, {expected})."
            )
        dtype = np.result_type(*{sequence.dtype for sequence in sequences})
        return self._cut(step_rows(sequences, self.scales_)), dtype

    def _token_arguments(self):
        """What the tokens of the network are made with."""
        if self.tokens_ == "text":
            return {"n_tokens": len(Vocabulary.from_state(self.vocabulary_))}
        if self.tokens_ == "steps":
            return {"n_channels": len(self.scales_["center"]) * self.patch_length_}
        return {"n_levels": self._n_levels, "n_pieces": N_PIECES}

    @property
    def _n_levels(self):
        """Levels of each category but the one of missing cells, the last; None for numbers."""
        categories = self.columns_.categories
        return [None if of is None else len(of) - (None in of) for of in categories]

    def _feature_rows(self, X):
        return feature_rows(X, self._n_levels, self.scales_)

    def _cut(self, rows):
        """Rows of the permitted length; says so where that changes any."""
        n_longer = int((rows.lengths > (self.max_length_ or np.inf)).sum())
        if not n_longer:
            return rows
        name = "max_length" if self.max_length is not None else "the longest in training,"
        warnings.warn(
            f"{n_longer} of {len(rows)} sequences are longer than {name} {self.max_length_}: "
            "of those only so many steps, the first, are seen.",
            UserWarning,
            stacklevel=4,
        )
        return rows.cut(self.max_length_)


def _warn_of_layout(sequences):
    """Warn where sequences have more channels than steps, as when both are exchanged."""
    n_channels = sequences[0].shape[1]
    if n_channels > 1 and max(map(len, sequences)) < n_channels:
        warnings.warn(
            f"X has sequences of {n_channels} channels, but of at most "
            f"{max(map(len, sequences))} steps: its shape is (n_samples, n_steps, n_channels); "
            "is it transposed?",
            UserWarning,
            stacklevel=5,
        )


def _warn_of_length(lengths):
    """Warn where a few sequences are so long that they take nearly all the time."""
    longest, typical = int(lengths.max()), int(np.median(lengths))
    if longest >= max(_MANY_TOKENS, _TIMES * typical):
        warnings.warn(
            f"X has sequences of up to {longest} tokens, but of {typical} as a rule, and time "
            f"grows with the square: max_length={_TIMES * typical} cuts those that are longer.",
            UserWarning,
            stacklevel=5,
        )


def _check_weights(sample_weight, y):
    weights = check_key_weights(sample_weight, y)
    return np.ones(len(y)) if weights is None else weights


def _text_rows(vocabulary, X):
    """Texts as token ids; a blank one is one unknown token."""
    encoded = vocabulary.encode_all("X", X, empty=True)
    encoded = [ids if len(ids) else np.array([UNKNOWN]) for ids in encoded]
    return SequenceRows(np.concatenate(encoded), np.array([len(ids) for ids in encoded]))

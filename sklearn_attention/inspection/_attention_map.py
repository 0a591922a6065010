"""Attention, as a map from queries to keys."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from .._validation import check_flag
from ..text import Vocabulary
from ..text._special import END, SPECIAL_TOKENS, START, UNKNOWN
from ._grid import feature_names, row_names
from ._pipelines import last_step, unfit
from ._style import WEIGHTS, Display, canvas, write_names


def attention_rollout(weights) -> np.ndarray:
    r"""Combine the attention weights of all layers into one matrix, averaged over heads.

    Use it to trace which tokens of the input reach each token of the output; for single layers
    and heads take :class:`AttentionMapDisplay`.

    Parameters
    ----------
    weights : array-like of shape (n_layers, n_heads, n_tokens, n_tokens)
        Rows sum to 1; the first layer comes first.

    Returns
    -------
    rollout : ndarray of shape (n_tokens, n_tokens)
        Share of each token of the input (columns) in each token of the output (rows); rows sum
        to 1.

    Notes
    -----
    Half of each layer bypasses the attention, as by residual connections [1]_:

    .. math:: \prod_l \tfrac12 (A_l + I)

    References
    ----------
    .. [1] Abnar, S. and Zuidema, W. (2020). Quantifying attention flow in transformers. ACL.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.inspection import attention_rollout
    >>> looks_back = np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> attention_rollout([[looks_back], [looks_back]])
    array([[1.  , 0.  ],
           [0.75, 0.25]])
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 4 or weights.shape[2] != weights.shape[3]:
        raise ValueError(
            f"weights has shape {weights.shape}: pass (n_layers, n_heads, n_tokens, n_tokens)."
        )
    rollout = np.eye(weights.shape[2])
    for layer in weights.mean(axis=1):
        rollout = (layer + np.eye(len(layer))) / 2 @ rollout
    return rollout


class AttentionMapDisplay(Display):
    """Picture of attention weights from queries (rows) to keys (columns), by layer and head.

    Use it for transformers and smoothers. Large weights do not prove that a token or a row
    matters.

    Make one by :meth:`from_estimator` or :meth:`from_weights`. The map of a smoother, its
    smoother matrix, has one layer and one head.

    Parameters
    ----------
    weights : ndarray of shape (n_layers, n_heads, n_queries, n_keys)
        Weights of the keys in the average of each query; rows sum to 1.
    queries, keys : list of str or None, default=None
        Names of rows and columns.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes, or ndarray of Axes of shape (n_layers, n_heads)

    Notes
    -----
    If there is no room for all names, only every second one, or every third one and so on, is
    written, so that names do not touch. Names of more than 20 characters are shortened in the
    middle. The attributes `queries` and `keys` have all names in full.

    Examples
    --------
    >>> from sklearn_attention import attention_weights
    >>> from sklearn_attention.inspection import AttentionMapDisplay
    >>> weights = attention_weights([[0.0], [1.0]], [[0.0], [1.0], [2.0]], "gaussian")
    >>> display = AttentionMapDisplay.from_weights(weights, keys=["a", "b", "c"])
    >>> display.weights.shape
    (1, 1, 2, 3)
    """

    def __init__(
        self,
        weights: np.ndarray,
        *,
        queries: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
    ) -> None:
        self.weights, self.queries, self.keys = weights, queries, keys

    @classmethod
    def from_weights(cls, weights, *, queries=None, keys=None, ax=None, **kwargs) -> Self:
        """Draw weights.

        Parameters
        ----------
        weights : array-like of shape (n_queries, n_keys), (n_heads, n_queries, n_keys) or \
(n_layers, n_heads, n_queries, n_keys)
            Weights of the keys in the average of each query; rows sum to 1.
        queries, keys : list of str, default=None
            Names of rows and columns.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : AttentionMapDisplay
        """
        weights = np.asarray(weights)
        if not 2 <= weights.ndim <= 4 or not weights.size:
            raise ValueError(
                f"weights has shape {weights.shape}: pass an array of shape (n_queries, "
                "n_keys), (n_heads, n_queries, n_keys) or (n_layers, n_heads, n_queries, "
                "n_keys)."
            )
        weights = weights.reshape((1,) * (4 - weights.ndim) + weights.shape)
        for name, names, size in zip(
            ("queries", "keys"), (queries, keys), weights.shape[2:], strict=True
        ):
            if names is not None and len(names) != size:
                raise ValueError(
                    f"{name} has {len(names)} names, but the map has {size}: pass one name for "
                    "each."
                )
        return cls(weights, queries=queries, keys=keys).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs) -> Self:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `attention_maps` or `smoother_matrix`, or a pipeline that
            ends with one.
        X : array-like, default=None
            For a smoother the queries, which are named by the index if X is a data frame. For
            other estimators one row, sequence or text, in a list. Forecasters do not need it.
        y : list, default=None
            For a TransformerSeq2Seq the target of X, in a list; None is the prediction. Other
            estimators ignore it.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : AttentionMapDisplay
        """
        model, rows = last_step(estimator, X)
        smoother = hasattr(model, "smoother_matrix")
        if not smoother and not hasattr(model, "attention_maps"):
            raise unfit(model, "has no attention", "a smoother or a transformer")
        if X is None and not hasattr(model, "observed_"):
            raise ValueError(
                "X=None: pass queries of a smoother, such as the training rows, or the row, "
                "sequence or text whose attention is drawn."
            )
        if smoother:
            weights = model.smoother_matrix(rows)
            return cls.from_weights(weights, queries=row_names(X), ax=ax, **kwargs)
        if hasattr(model, "target_vocabulary_"):
            written = model.predict(rows) if y is None else y
            weights = model.attention_maps(rows, written if len(written[0]) else y)
            # Long sequences are cut. END follows the tokens of a source that is cut, but not
            # those of such a target.
            (n_queries, n_keys), end = weights[0].shape[2:], SPECIAL_TOKENS[END]
            queries = [*_tokens(model.target_vocabulary_, written[0]), end][:n_queries]
            keys = [*_tokens(model.source_vocabulary_, rows[0])[: n_keys - 1], end]
        elif hasattr(model, "perplexity"):
            text = rows if isinstance(rows, str) else rows[0]
            weights = [model.attention_maps(text)]
            queries = keys = [SPECIAL_TOKENS[START], *_tokens(model.vocabulary_, text)]
        else:
            weights = model.attention_maps(rows)
            queries = keys = _encoder_token_names(model, rows, weights)
        if len(weights) != 1:
            raise ValueError(f"X has {len(weights)} rows: pass one, to draw its attention.")
        return cls.from_weights(weights[0], queries=queries, keys=keys, ax=ax, **kwargs)

    def plot(self, ax=None, *, layer=None, head=None, rollout: bool = False) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            Axes to draw on, one for each map; None makes a figure.
        layer, head : int, default=None
            The only layer or head to draw, counted from 0; None draws all.
        rollout : bool, default=False
            Whether to draw the :func:`attention_rollout` in place of layers and heads.

        Returns
        -------
        self : AttentionMapDisplay
        """
        check_flag("rollout", rollout)
        shown, titles = self._shown(layer, head, rollout)
        n_rows, n_columns = len(shown), len(shown[0])
        is_single = n_rows == n_columns == 1
        size = max(2.1 * n_columns + 0.9, 4.5), max(2.1 * n_rows + 0.4, 3.6)
        size = (5.4, 4.4) if is_single else size
        signed, high = np.nanmin(shown) < 0, np.nanmax(np.abs(shown))
        colors = {"cmap": "PuOr" if signed else WEIGHTS, "vmin": -high * signed, "vmax": high}
        with canvas(self, ax, size=size, grid=(n_rows, n_columns)) as ax:
            axes = np.array([[ax]]) if is_single else ax
            for i, row in enumerate(shown):
                for j, weights in enumerate(row):
                    panel, is_last = axes[i, j], i == n_rows - 1
                    image = panel.imshow(weights, aspect="auto", interpolation="none", **colors)
                    panel.spines[:].set_visible(False)
                    if titles:
                        panel.set_title(titles[i][j], fontsize="small", fontweight="normal")
                    _label(panel.xaxis, "key", self.keys, is_last)
                    _label(panel.yaxis, "query", self.queries, j == 0)
            bar = axes[0, 0].figure.colorbar(image, ax=axes, label="weight")
            bar.outline.set_visible(False)
        return self

    def _shown(self, layer, head, rollout):
        """Select the maps to draw, (n_layers, n_heads, n_queries, n_keys), and their titles."""
        if rollout:
            return attention_rollout(self.weights)[None, None], [["rollout"]]
        weights, numbers = self.weights, []
        for axis, (name, chosen) in enumerate((("layer", layer), ("head", head))):
            size = weights.shape[axis]
            if chosen is not None and chosen not in range(size):
                raise ValueError(f"{name}={chosen} is not valid: pass 0 to {size - 1}.")
            numbers.append(range(size) if chosen is None else [chosen])
        if self.weights.shape[:2] == (1, 1):
            return weights, None
        names = [[f"layer {i}, head {j}" for j in numbers[1]] for i in numbers[0]]
        return weights[np.ix_(*numbers)], names


def _label(axis, title, names, outer):
    """Write a title, and names or numbers, along an axis if it is `outer`, else nothing."""
    if outer:
        axis.set_label_text(title)
        write_names(axis, names)
    else:
        axis.set_ticks([])


def _tokens(state, sequence):
    """Return the tokens of a sequence as str; `state` is that of a Vocabulary."""
    vocabulary = Vocabulary.from_state(state)
    return [vocabulary.tokens[i] for i in vocabulary.encode(sequence)]


def _encoder_token_names(model, rows, weights):
    """Return names of an encoder's tokens, which are features or tokens of a text.

    Steps have no names: the result is None. `weights` are the attention maps of `rows`, which
    may have a token [CLS] before the others.
    """
    kind = getattr(model, "tokens_", None)
    if kind == "features":
        names = feature_names(model)
    elif kind == "text":
        text = rows.iloc[0] if hasattr(rows, "iloc") else rows[0]
        # The reader cuts long texts, and reads a blank text as one unknown token.
        reader = model.encoder_.reader
        names = _tokens(reader.vocabulary, text)[: reader.max_length]
        names = names or [SPECIAL_TOKENS[UNKNOWN]]
    else:
        return None
    return ["[CLS]"] * (weights.shape[-1] - len(names)) + names

"""Parts of a transformer besides its size: kernel, positions, normalisation, patches."""

from dataclasses import KW_ONLY
from typing import Any

from sklearn.base import BaseEstimator

from .._base import parameters
from .._blocks import check_memory
from .._validation import check_choice, check_in_interval, check_positive, check_size, is_one_of
from ..kernels._base import as_kernel


@parameters
class Architecture(BaseEstimator):
    """Parameters of the architecture of a transformer, besides its size.

    Pass it as `architecture` to an estimator that trains a transformer. Its own parameters can
    be searched by names such as ``architecture__positions``.

    Parameters
    ----------
    attention_kernel : str, Kernel or callable, default="scaled_dot_product"
        Similarity of tokens; see :mod:`sklearn_attention.kernels`.
    positions : {"auto", "sinusoidal", "learned", "rotary"} or None, default="auto"
        Encoding of the positions of tokens. "auto" is "rotary" for language models, otherwise
        "sinusoidal". Features of a table have no positions; None is for rows only.
    d_position : int, default=None
        Width of positions that are appended to the tokens; None adds them. For rows
        and windows only.
    d_feedforward : int, default=None
        Width of the hidden layer of each block; None is four times `d_model`, or twice for
        TransformerRegressor and TransformerClassifier.
    norm : {"pre", "post", "lecture"}, default="pre"
        Position of layer normalisation; see :class:`~sklearn_attention.nn.EncoderBlock`.
    activation : {"auto", "gelu", "relu"}, default="auto"
        Activation of the feed-forward networks. "auto" is "relu" for tokens of language,
        otherwise "gelu".
    patch_length : int or "auto", default="auto"
        Number of consecutive steps of a series that make one token, for windows of forecasters
        and for sequences of numbers. For windows, "auto" is 8, or a quarter of the lookback if
        that is less. For sequences, whose patches overlap by half, it is 16, or an eighth of
        their median length if that is less.
    instance_norm : {"mean", "last"} or None, default="mean"
        For forecasters only. "mean" subtracts its mean from each window, and "last" its last
        value; both divide by the standard deviation of the window. None takes the level and the
        unit of the whole series.

    Examples
    --------
    >>> from sklearn_attention import Architecture, TransformerRegressor
    >>> model = TransformerRegressor(architecture=Architecture(attention_kernel="laplacian"))
    >>> model.set_params(architecture__norm="post")
    TransformerRegressor(architecture=Architecture(attention_kernel='laplacian',
                                                   norm='post'))
    """

    _: KW_ONLY
    attention_kernel: Any = "scaled_dot_product"
    positions: str | None = "auto"
    d_position: int | None = None
    d_feedforward: int | None = None
    norm: str = "pre"
    activation: str = "auto"
    patch_length: int | str = "auto"
    instance_norm: str | None = "mean"


def transformer_shape(architecture, *, d_model, n_heads, n_layers, dropout, widening, ordered):
    """Validate the arguments of :class:`~sklearn_attention.nn.TokenEncoder`; return a dict.

    `widening` is the default width of hidden layers, as a multiple of `d_model`. Tokens that
    are not `ordered` have no positions.
    """
    sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers}
    shape = {name: check_positive(name, size, integer=True) for name, size in sizes.items()}
    full_name = "architecture.{}".format
    hidden, appended = architecture.d_feedforward, architecture.d_position
    if hidden is not None:
        hidden = check_positive(full_name("d_feedforward"), hidden, integer=True)
    if appended is not None:
        appended = check_positive(full_name("d_position"), appended, integer=True)
    positions = architecture.positions
    if positions is not None:
        names = "auto", "learned", "rotary", "sinusoidal"
        check_choice(full_name("positions"), positions, names)
    if not ordered:
        positions = appended = None
    check_choice(full_name("activation"), architecture.activation, ("auto", "gelu", "relu"))
    check_choice(full_name("norm"), architecture.norm, ("lecture", "post", "pre"))
    _check_kernel(architecture.attention_kernel)
    _check_widths(shape["d_model"], shape["n_heads"], positions, appended)
    hidden, width = hidden or widening * shape["d_model"], shape["d_model"] + (appended or 0)
    # The matrices of all blocks, in single precision, with a gradient and two moments each.
    size = shape["n_layers"], 2 * width, 4 * width + 2 * hidden
    named = ", ".join(f"{name}={value}" for name, value in sizes.items())
    check_memory(f"training with {named}, d_feedforward={hidden}", size, "pass smaller sizes")
    return shape | {
        "d_feedforward": hidden,
        "kernel": architecture.attention_kernel,
        "positions": positions,
        "d_position": appended,
        "norm": architecture.norm,
        "activation": architecture.activation,
        "dropout": check_in_interval("dropout", dropout, 0, 1, closed_right=False),
    }


def _check_kernel(kernel):
    """Raise ValueError or TypeError unless `kernel` is one; the message names the parameter."""
    try:
        as_kernel(kernel)
    except (TypeError, ValueError) as error:
        raise type(error)(f"architecture.attention_kernel is not a kernel: {error}") from None


def check_series_parts(architecture):
    """Raise ValueError unless the parameters for series are valid."""
    if not is_one_of(architecture.patch_length, "auto"):
        check_size("architecture.patch_length", architecture.patch_length, 4)
    if architecture.instance_norm is not None:
        check_choice("architecture.instance_norm", architecture.instance_norm, ("last", "mean"))


def _check_widths(d_model, n_heads, positions, appended):
    """Raise ValueError unless heads and positions fit the widths of tokens.

    `appended` is the width of positions that are appended to tokens, None if they are added.
    """
    width = d_model + (appended or 0)
    named = f"d_model={d_model!r}"
    if appended:
        named = f"the tokens' width {width}, of {named} and architecture.d_position={appended}"
    if width % n_heads:
        raise ValueError(
            f"n_heads={n_heads!r} does not divide {named}: pass a number that does."
        )
    if appended and positions in (None, "rotary"):
        raise ValueError(
            f"architecture.d_position={appended!r} is the width of appended positions, but "
            f"positions={positions!r} are not appended: pass None, or positions='sinusoidal'."
        )
    if positions == "sinusoidal" and (appended or d_model) % 2:
        at_fault = (
            f"architecture.d_position={appended!r}" if appended else f"d_model={d_model!r}"
        )
        raise ValueError(
            f"{at_fault} is odd, but sinusoidal positions come in pairs: pass an even number, "
            "or architecture__positions='learned'."
        )
    if positions == "rotary" and (width // n_heads) % 2:
        raise ValueError(
            f"n_heads={n_heads!r} makes heads of odd width {width // n_heads} from {named}, "
            "but rotary positions come in pairs: pass a number that leaves an even width, or "
            "architecture__positions='learned'."
        )

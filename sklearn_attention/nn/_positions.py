"""Encodings of the positions of tokens."""

import functools

import torch
from torch import nn

from .._blocks import check_memory
from .._validation import check_choice, check_positive, check_size
from ._random import initialize

_COMBINE = ("add", "concatenate")


def sinusoidal_encoding(
    n_steps, d_position, *, base: float = 10_000.0, device=None
) -> torch.Tensor:
    r"""Compute sines and cosines of positions, at falling frequencies.

    It is the formula of :class:`SinusoidalPositions`.

    .. math:: p_{t, 2k} = \sin(\omega_k t),\quad p_{t, 2k+1} = \cos(\omega_k t),\quad
              \omega_k = \text{base}^{-2k/d}

    Parameters
    ----------
    n_steps : int
        Positions are 0 to ``n_steps - 1``.
    d_position : int
        Width :math:`d` of the encoding, an even number.
    base : float, default=10000.0
        The longest wavelength, in steps, is nearly :math:`2\pi` times this.
    device : torch.device, default=None
        Device of the result.

    Returns
    -------
    encoding : Tensor of float64, of shape (n_steps, d_position)
        Sines and cosines, which alternate along the last axis.

    Raises
    ------
    ValueError
        If `d_position` is odd, or a number is not positive.

    Notes
    -----
    The formula is that of Vaswani et al. (2017, section 3.5). A shift by :math:`\Delta` steps
    rotates every pair of columns by :math:`\omega_k \Delta`, whatever the position. This is a
    linear map, so that a layer can learn to attend a given number of steps back.

    Examples
    --------
    >>> from sklearn_attention.nn import sinusoidal_encoding
    >>> sinusoidal_encoding(2, 4).round(decimals=2)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8400, 0.5400, 0.0100, 1.0000]], dtype=torch.float64)
    """
    angles = _angles(n_steps, _check_even("d_position", d_position), base, device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class SinusoidalPositions(nn.Module):
    """Add or append to each token the sinusoidal encoding of its position.

    Take it if sequences may become longer than those of the training.

    It has no parameters and no limit of length. :func:`sinusoidal_encoding` has the formula.

    Parameters
    ----------
    d_position : int
        Width of the encoding, an even number. If encodings are added, it is the width of the
        tokens.
    combine : {"add", "concatenate"}, default="add"
        "concatenate" appends the encoding to the token: tokens of width ``d`` become
        ``d + d_position`` wide.
    base : float, default=10000.0
        As for :func:`sinusoidal_encoding`.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import SinusoidalPositions
    >>> SinusoidalPositions(128, combine="concatenate")(torch.zeros(1, 99, 512)).shape
    torch.Size([1, 99, 640])
    """

    def __init__(
        self, d_position: int, *, combine: str = "add", base: float = 10_000.0
    ) -> None:
        super().__init__()
        self.d_position = _check_even("d_position", d_position)
        self.combine = check_choice("combine", combine, _COMBINE)
        self.base = check_positive("base", base)

    def forward(self, x, first=0):
        """Add or append the positions of tokens.

        Parameters
        ----------
        x : Tensor of shape (B, T, d)
            Tokens.
        first : int, default=0
            Position of the first token.

        Returns
        -------
        x : Tensor of shape (B, T, d) or (B, T, d + d_position)
            Tokens with the encodings of their positions.
        """
        encoding = sinusoidal_encoding(
            first + x.shape[1], self.d_position, base=self.base, device=x.device
        )
        return _combined(x, encoding[first:].to(x.dtype), self.combine)


class LearnedPositions(nn.Module):
    """Add or append to each token a learned vector of its position.

    Take it if all sequences have about the same length. Unlike :class:`SinusoidalPositions`, it
    has a largest length.

    Parameters
    ----------
    max_length : int
        Length of the longest sequence, in tokens.
    d_position : int
        Width of the vectors. If they are added, it is the width of the tokens.
    combine : {"add", "concatenate"}, default="add"
        As for :class:`SinusoidalPositions`.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import LearnedPositions
    >>> LearnedPositions(99, 16)(torch.zeros(1, 50, 16)).shape
    torch.Size([1, 50, 16])
    """

    def __init__(self, max_length: int, d_position: int, *, combine: str = "add") -> None:
        super().__init__()
        self.d_position = check_positive("d_position", d_position, integer=True)
        self.max_length = check_size("max_length", max_length, self.d_position)
        self.combine = check_choice("combine", combine, _COMBINE)
        self.table = nn.Embedding(self.max_length, self.d_position)
        initialize(self)

    def forward(self, x, first=0):
        """Add or append the positions of tokens.

        Parameters
        ----------
        x : Tensor of shape (B, T, d)
            Tokens.
        first : int, default=0
            Position of the first token.

        Returns
        -------
        x : Tensor of shape (B, T, d) or (B, T, d + d_position)
            Tokens with the encodings of their positions.

        Raises
        ------
        ValueError
            If the sequence is longer than `max_length`.
        """
        last = first + x.shape[1]
        if last > self.max_length:
            raise ValueError(
                f"max_length={self.max_length} is too short for {last} tokens: pass a "
                "larger one, or use SinusoidalPositions, which have no end."
            )
        return _combined(x, self.table.weight[first:last], self.combine)


class RotaryPositions(nn.Module):
    r"""Rotate queries and keys by an angle that grows with their position.

    Take it if distances between tokens matter, not their places in the sequence.

    .. math:: \begin{pmatrix} x'_{2k} \\ x'_{2k+1} \end{pmatrix} =
              \begin{pmatrix} \cos\omega_k t & -\sin\omega_k t \\
              \sin\omega_k t & \cos\omega_k t \end{pmatrix}
              \begin{pmatrix} x_{2k} \\ x_{2k+1} \end{pmatrix},\quad
              \omega_k = \text{base}^{-2k/d}

    Rotations keep lengths, and the dot product of a rotated query and a rotated key depends on
    only the difference of their positions (Su et al. 2021).

    Parameters
    ----------
    head_dim : int
        Width of a head, an even number.
    base : float, default=10000.0
        The longest wavelength, in steps, is nearly :math:`2\pi` times this.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.nn import RotaryPositions
    >>> queries = torch.ones(1, 1, 2, 2)  # (B, n_heads, T, head_dim)
    >>> RotaryPositions(2)(queries)[0, 0].round(decimals=2)
    tensor([[ 1.0000,  1.0000],
            [-0.3000,  1.3800]])
    """

    def __init__(self, head_dim: int, *, base: float = 10_000.0) -> None:
        super().__init__()
        self.head_dim = _check_even("head_dim", head_dim)
        self.base = check_positive("base", base)

    def forward(self, x, first=0):
        """Rotate queries or keys.

        Parameters
        ----------
        x : Tensor of shape (B, n_heads, T, head_dim)
            Queries or keys of every head.
        first : int, default=0
            Position of the first token.

        Returns
        -------
        x : Tensor of shape (B, n_heads, T, head_dim)
        """
        last = first + x.shape[-2]
        # The number of steps is rounded up to a power of 2, so that a growing sequence finds
        # rotations in the cache.
        n_steps = 1 << (last - 1).bit_length()
        double = x.dtype == torch.float64
        turns = _turns(n_steps, self.head_dim, self.base, x.device, double)[first:last]
        # In memory the heads of a token lie side by side; with the same order of the rotations
        # the product runs through both arrays from start to end.
        turns = turns[:, None].repeat(1, x.shape[1], 1).transpose(0, 1)
        # A pair is a complex number, and a rotation a product: one operation in place of six.
        pairs = _as_complex(x if double else x.float())  # (B, n_heads, T, head_dim / 2)
        return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


@functools.lru_cache(maxsize=16)
def _turns(n_steps, width, base, device, double):
    """Return complex numbers that rotate by the angles of positions, (n_steps, width / 2)."""
    # Cached tensors must not be inference tensors, as a later call may need gradients.
    with torch.inference_mode(mode=False):
        angles = _angles(n_steps, width, base, device)
        turns = torch.polar(torch.ones_like(angles), angles)
        return turns if double else turns.to(torch.complex64)


def _as_complex(x):
    """View pairs of neighbours in the last axis as complex numbers; copy x if necessary."""
    *strides, last = x.stride()
    if last != 1 or x.storage_offset() % 2 or any(stride % 2 for stride in strides):
        x = x.contiguous()
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)))


def _angles(n_steps, width, base, device):
    """Return positions times frequencies, (n_steps, width / 2).

    They are in double precision, as the sines of large numbers need it.
    """
    check_memory("positions", (n_steps, width), "pass earlier ones, or a smaller width")
    steps = torch.arange(n_steps, dtype=torch.float64, device=device)
    columns = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    return steps[:, None] * base ** (-columns / width)


def _combined(x, encoding, combine):
    """Add or append an encoding (T, d_position) to tokens (B, T, d)."""
    if combine == "concatenate":
        return torch.cat([x, encoding.to(x.dtype).expand(len(x), -1, -1)], dim=-1)
    if x.shape[-1] != encoding.shape[-1]:
        raise ValueError(
            f"d_position={encoding.shape[-1]} cannot be added to tokens of width "
            f"{x.shape[-1]}: pass that width, or combine='concatenate'."
        )
    return x + encoding


def _check_even(name, value):
    """Return a positive even integer, or raise ValueError."""
    value = check_positive(name, value, integer=True)
    if value % 2:
        raise ValueError(
            f"{name}={value!r} is not valid: pass an even number, as columns come in pairs."
        )
    return value

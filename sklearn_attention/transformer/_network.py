"""The network of an encoder: its tokens, its loss, and its outputs for batches of rows.

Batches have B rows of T tokens each. A mask `is_token` (B, T) is True for tokens and False for
padding; it is None if no row is padded. *Outputs* (B, n_columns) are standardised numbers,
quantiles or logits of classes, side by side. The *constant* of a target is the prediction of
outputs 0, from which the network starts: the mean of numbers, or equal probabilities.
"""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, huber_loss, mse_loss, pad

from .._blocks import check_memory
from ..nn import TokenEncoder
from ..nn._random import initialize
from ..text._special import UNKNOWN
from ..training._batches import blocks_by_length
from ..training._network import use_best_threads

# Largest number of tokens, and of pairs of tokens that attend to each other, in a block of rows
# that are predicted at once.
_MOST_TOKENS, _MOST_PAIRS = 2**15, 2**22


class NumericTokens(nn.Module):
    """A token for every numeric feature of a row, piecewise linear in the number.

    The token of feature j is t_j = b_j + z_j v_j + sum_k min(max(u_j - k, 0), 1) w_jk, where
    z_j is the standardised number, and u_j its position among the quantiles q_0, q_1, ... of
    the feature. So the token is continuous, and linear between q_k and q_k+1 (Gorishniy et al.
    2022). The token of a missing number is b_j + m_j.
    """

    def __init__(self, n_features, n_pieces, d_model):
        """Draw the biases b_j and slopes v_j, and set the w_jk and m_j to 0.

        `n_pieces` is the largest number of intervals between quantiles of a feature.
        """
        super().__init__()
        bound = d_model**-0.5
        self.bias = nn.Parameter(torch.empty(n_features, d_model).uniform_(-bound, bound))
        self.slope = nn.Parameter(torch.empty(n_features, d_model).uniform_(-bound, bound))
        self.pieces = nn.Parameter(torch.zeros(n_features, n_pieces, d_model))  # w_jk
        self.missing = nn.Parameter(torch.zeros(n_features, d_model))  # m_j
        # Interval k begins at the position k.
        self.register_buffer("piece_starts", torch.arange(n_pieces), persistent=False)

    def forward(self, standardised, positions):
        """Return tokens (B, n_features, d_model) of numbers.

        `standardised` has z, and `positions` has u; both are (B, n_features), NaN if missing.
        """
        is_missing = standardised.isnan()[..., None]  # (B, n_features, 1)
        # NaN is replaced by 0, since `torch.where` would pass it on to the gradient.
        z, u = standardised.nan_to_num(0.0), positions.nan_to_num(0.0)
        ramps = (u[..., None] - self.piece_starts).clamp(0, 1)  # (B, n_features, n_pieces)
        piecewise = torch.einsum("bjk,jkd->bjd", ramps, self.pieces)
        observed = z[..., None] * self.slope + piecewise  # (B, n_features, d_model)
        return self.bias + torch.where(is_missing, self.missing, observed)


class FeatureTokens(nn.Module):
    """A token for every feature of a table, in the order of the features.

    Numbers have NumericTokens. Each level of a category has a learned vector. In a category,
    missing levels and levels that did not occur in training share one vector, which is 0 at
    first.
    """

    def __init__(self, d_model, *, n_levels, n_pieces):
        """Draw the vectors of levels, and make the tokens of numbers.

        `n_levels` has for each feature the number of its levels, or None if it is numeric;
        `n_pieces` is that of NumericTokens.
        """
        super().__init__()
        numeric = [j for j, n in enumerate(n_levels) if n is None]
        categorical = [j for j, n in enumerate(n_levels) if n is not None]
        self.numeric = NumericTokens(len(numeric), n_pieces, d_model) if numeric else None
        self.levels = None
        if categorical:
            sizes = torch.tensor([n_levels[j] + 1 for j in categorical])
            # One table has the vectors of all categories, one category after the other. The
            # first vector of each category is that of unknown levels.
            category_starts = sizes.cumsum(0) - sizes
            self.levels = nn.Embedding(int(sizes.sum()), d_model)
            nn.init.uniform_(self.levels.weight, -(d_model**-0.5), d_model**-0.5)
            with torch.no_grad():
                self.levels.weight[category_starts] = 0.0
            self.register_buffer("category_starts", category_starts, persistent=False)
        order = torch.tensor(numeric + categorical).argsort()
        self.register_buffer("order", order, persistent=False)

    def forward(self, standardised, positions, codes):
        """Return tokens (B, n_features, d_model) of numbers and levels.

        `standardised` and `positions` are those of :meth:`NumericTokens.forward`. `codes`
        (B, n_categorical) has the codes of levels, -1 for unknown ones.
        """
        tokens = []
        if self.numeric is not None:
            tokens.append(self.numeric(standardised, positions))
        if self.levels is not None:
            tokens.append(self.levels(codes + 1 + self.category_starts))
        return tokens[0] if len(tokens) == 1 else torch.cat(tokens, dim=1)[:, self.order]


class StepTokens(nn.Module):
    """A token for every step of a sequence of numbers, linear in its channels.

    A missing value counts as the mean of its channel. A learned vector of the channel, which is
    0 at first, is added to the token.
    """

    def __init__(self, d_model, *, n_channels):
        """Draw the weights of the linear map of `n_channels` numbers."""
        super().__init__()
        self.linear = initialize(nn.Linear(n_channels, d_model))
        self.missing = nn.Linear(n_channels, d_model, bias=False)
        nn.init.zeros_(self.missing.weight)

    def forward(self, steps):
        """Return tokens (B, T, d_model) of sequences (B, T, n_channels), NaN if missing."""
        is_missing = steps.isnan()
        tokens = self.linear(steps.nan_to_num(0.0))
        if not is_missing.any():
            return tokens
        return tokens + self.missing(is_missing.to(tokens.dtype))


class TextTokens(nn.Module):
    r"""A learned vector for every token of a text, times :math:`\sqrt{d}` as in Vaswani et al.

    The vector of unknown tokens starts at 0, and stays there if none are unknown in training.
    """

    def __init__(self, d_model, *, n_tokens):
        """Draw the vectors of a vocabulary of `n_tokens` tokens."""
        super().__init__()
        self.table = nn.Embedding(n_tokens, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        with torch.no_grad():
            self.table.weight[UNKNOWN] = 0.0

    def forward(self, ids):
        """Return tokens (B, T, d_model) of ids (B, T)."""
        return self.table(ids) * self.table.embedding_dim**0.5


class RowEncoder(nn.Module):
    """A transformer encoder, whose tokens are pooled to one vector for each row."""

    def __init__(self, form, tokens, n_outputs, *, d_model, pooling, max_length, **shape):
        """Draw the weights of the network.

        Parameters
        ----------
        form : {"features", "steps", "text"}
            Form of the rows.
        tokens : dict
            Arguments of FeatureTokens, StepTokens or TextTokens, by the form.
        n_outputs : int
            Number of outputs.
        d_model : int
            Width of the tokens.
        pooling : {"mean", "last", "cls"}
            Vector of a row: the mean of its tokens, the last token, or a learned token [CLS],
            which is put before the first one.
        max_length : int or None
            Largest number of tokens of a row, without [CLS]; None for any number.
        **shape
            Arguments of TokenEncoder.
        """
        super().__init__()
        kinds = {"features": FeatureTokens, "steps": StepTokens, "text": TextTokens}
        self.tokens = kinds[form](d_model, **tokens)
        self.pooling = pooling
        self.cls = initialize(nn.Embedding(1, d_model)) if pooling == "cls" else None
        if pooling == "cls" and max_length is not None:
            max_length += 1
        self.encoder = TokenEncoder(d_model, max_length=max_length, **shape)
        # At first all outputs are 0: they stand for the mean of the targets, or for equal
        # probabilities of classes.
        self.head = nn.Linear(self.encoder.width, n_outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, *inputs, is_token=None, need_weights=False):
        """Encode rows, and predict their outputs.

        Parameters
        ----------
        *inputs : Tensor
            Arguments of `self.tokens`, such as ids (B, T) of texts.
        is_token : Tensor of bool of shape (B, T), default=None
            False for padding; None if nothing is padding.
        need_weights : bool, default=False
            Whether to return the weights of the attention.

        Returns
        -------
        outputs : Tensor of shape (B, n_outputs)
            Standardised numbers, quantiles or logits.
        vectors : Tensor of shape (B, width)
            Pooled tokens after the last layer.
        weights : list of Tensor of shape (B, n_heads, T, T), or None
            Attention weights of each layer. If there is a token [CLS], it comes first.
        """
        tokens = self.tokens(*inputs)  # (B, T, d_model)
        if self.cls is not None:
            tokens = torch.cat([self.cls.weight.expand(len(tokens), 1, -1), tokens], dim=1)
            if is_token is not None:
                is_token = torch.cat([torch.ones_like(is_token[:, :1]), is_token], dim=1)
        tokens, weights = self.encoder(tokens, padding=is_token, need_weights=need_weights)
        pooled = self._pool(tokens, is_token)  # (B, width)
        return self.head(pooled), pooled, weights

    def _pool(self, tokens, is_token):
        """Pool the tokens (B, T, width) of each row to one vector (B, width)."""
        if self.pooling == "cls":
            return tokens[:, 0]
        if self.pooling == "last":
            if is_token is None:
                return tokens[:, -1]
            rows = torch.arange(len(tokens), device=tokens.device)
            return tokens[rows, is_token.sum(dim=1) - 1]
        if is_token is None:
            return tokens.mean(dim=1)
        without_padding = tokens.masked_fill(~is_token[..., None], 0.0)
        return without_padding.sum(dim=1) / is_token.sum(dim=1, keepdim=True)


def pinball(residuals, quantiles):
    """Compute the pinball losses (..., n_quantiles) of the residuals target - quantile."""
    tau = residuals.new_tensor(quantiles)
    return torch.maximum(tau * residuals, (tau - 1) * residuals)


def row_losses(loss):
    """Return ``losses_of(outputs, targets)``, which returns a loss for each row and target.

    Outputs are (B, n_columns), targets and losses (B, n_outputs). `loss` is a Loss.
    """
    # "huber" is squared below a standard deviation, and linear beyond. The loss of a quantile
    # is twice the pinball loss: so the loss of the median is the absolute error.

    def losses_of(outputs, targets):
        if loss.quantile is not None:
            return 2 * pinball(targets - outputs, loss.quantile)
        if loss.n_classes is None:
            numeric_loss = {"squared_error": mse_loss, "huber": huber_loss}[loss.name]
            return numeric_loss(outputs, targets, reduction="none")
        logits_of_outputs = outputs.split(loss.n_classes, dim=1)
        pairs = zip(logits_of_outputs, targets.unbind(dim=1), strict=True)
        losses = [cross_entropy(logits, y, reduction="none") for logits, y in pairs]
        return torch.stack(losses, dim=1)

    return losses_of


def training_loss(rows, targets, weights, losses_of, shares):
    """Return the loss ``batch_loss(network, positions)`` of some rows, for the training loop.

    Parameters
    ----------
    rows : TableRows or SequenceRows
        All training rows.
    targets : ndarray of shape (n_rows, n_outputs)
        Their targets.
    weights : ndarray of shape (n_rows,)
        Their weights.
    losses_of : callable
        The result of :func:`row_losses`.
    shares : OutputShares
        Weights of the outputs in the loss.
    """

    def batch_loss(network, positions):
        batch, device = positions.cpu().numpy(), positions.device
        inputs, is_token = _batch_tensors(rows, batch, device)
        outputs = network(*inputs, is_token=is_token)[0]
        losses = losses_of(outputs, torch.from_numpy(targets[batch]).to(device))
        return shares.mean(losses, torch.from_numpy(weights[batch]).to(device))

    return batch_loss


class OutputShares:
    """Weights of outputs in the loss, smaller for those that are worse than a constant."""

    # The share s_k is proportional to min(1, 1 - 10 (h_k / c_k - 1)), where h_k is the loss of
    # output k on held-out rows, and c_k the loss of its constant. Shares are at least 0.02
    # before they are divided by their mean. If an output is noise, the network memorises it:
    # its gradients are the largest, and would cost the other outputs accuracy.

    def __init__(self, n_outputs):
        """Give all outputs the same share, 1."""
        self.shares = torch.ones(n_outputs)

    def mean(self, losses, weights):
        """Average losses (B, n_outputs) over outputs by their shares, and over rows."""
        return ((losses * self.shares.to(losses.device)).mean(dim=1) * weights).mean()

    def update(self, held_out, constant):
        """Set the shares after an epoch.

        `held_out` and `constant` (n_outputs,) are the mean losses on held-out rows: those of
        the network, and those of the constants.
        """
        excess = held_out / constant.clamp(min=1e-12) - 1
        shares = (1 - excess / 0.1).clamp(0.02, 1)
        self.shares = (shares / shares.mean()).float()


def overall(losses, constant_losses):
    """Summarise losses (n_rows, n_outputs) in one number, by which epochs are compared.

    For a single output the number is the sum over rows. For several outputs the loss of each is
    divided by that of a constant prediction, `constant_losses` (n_rows, n_outputs), and the
    number is about the geometric mean of these ratios.
    """
    if losses.shape[1] == 1:
        return losses.sum()
    ratios = losses.sum(dim=0) / constant_losses.sum(dim=0).clamp(min=1e-12)
    # Ratios above 1 count as 1: the network has little weight in predictions of such outputs.
    # The addition of 0.01 keeps an output that is almost exact from dominating the mean.
    return (ratios.clamp(max=1) + 0.01).log().mean().exp()


class HeldOutLoss:
    """The loss of held-out rows, which chooses the best epoch, and their unbiased outputs."""

    # The outputs of the chosen network for held-out rows are biased, since these rows chose it.
    # So the rows are divided into five folds, and the outputs (n_rows, n_columns) of each fold
    # are those of the epoch that is best for the other four.

    def __init__(self, rows, targets, weights, losses_of, shares):
        """Store held-out rows; arguments are those of :func:`training_loss`."""
        self._rows, self._targets = rows, torch.from_numpy(targets)
        self._losses_of, self._shares = losses_of, shares
        self._weights = torch.from_numpy(weights).double()
        self._folds = torch.arange(len(rows)) % 5
        self.outputs, self._min_losses = None, torch.full((5,), torch.inf).double()

    def __call__(self, network):
        """Return the loss of a network by :func:`overall`; call this once after each epoch."""
        outputs = torch.from_numpy(outputs_of(network, self._rows)[0])
        losses = self._weighted_losses(outputs)
        constant = self._weighted_losses(torch.zeros_like(outputs))
        self.outputs = outputs.clone() if self.outputs is None else self.outputs
        for fold, min_loss in enumerate(self._min_losses.tolist()):
            in_fold = self._folds == fold
            loss_outside = overall(losses[~in_fold], constant[~in_fold])
            if loss_outside < min_loss:
                self._min_losses[fold] = loss_outside
                self.outputs[in_fold] = outputs[in_fold]
        total = self._weights.sum()
        self._shares.update(losses.sum(dim=0) / total, constant.sum(dim=0) / total)
        return float(overall(losses, constant) / (total if losses.shape[1] == 1 else 1.0))

    def _weighted_losses(self, outputs):
        """Return the weighted losses (n_rows, n_outputs) of outputs for the held-out rows."""
        return self._weights[:, None] * self._losses_of(outputs, self._targets).double()

    def state_dict(self):
        """Return the state that a checkpoint stores."""
        shares = self._shares.shares
        return {"outputs": self.outputs, "least": self._min_losses, "shares": shares}

    def load_state_dict(self, state):
        """Restore the state of a checkpoint."""
        self.outputs, self._min_losses = state["outputs"], state["least"]
        self._shares.shares = state["shares"]


def padded_lengths(rows):
    """Return the lengths (n_rows,) that batches group rows by; None if all are equal."""
    if (rows.lengths == rows.lengths[0]).all():
        return None
    return torch.from_numpy(rows.lengths)


@torch.no_grad()
def outputs_of(network, rows):
    """Return outputs (n_rows, n_outputs) of a network, and pooled vectors (n_rows, width)."""
    device = next(network.parameters()).device
    outputs, pooled = [], []
    blocks = blocks_by_length(rows.lengths, _MOST_TOKENS, _MOST_PAIRS)
    with use_best_threads(network, max(rows.lengths[block].sum() for block in blocks)):
        for block in blocks:
            inputs, is_token = _batch_tensors(rows, block, device)
            block_outputs, block_vectors, _ = network(*inputs, is_token=is_token)
            outputs.append(block_outputs)
            pooled.append(block_vectors)
    # Blocks have rows in the order of their lengths.
    original_order = np.argsort(np.concatenate(blocks))
    outputs, pooled = torch.cat(outputs).cpu().numpy(), torch.cat(pooled).cpu().numpy()
    return outputs[original_order], pooled[original_order]


@torch.no_grad()
def attention_maps(network, rows):
    """Return attention weights (n_rows, n_layers, n_heads, T, T).

    T is the largest number of tokens of a row. In shorter rows, weights of padding are 0.
    """
    device = next(network.parameters()).device
    blocks = blocks_by_length(rows.lengths, _MOST_TOKENS, _MOST_PAIRS)
    longest = int(rows.lengths.max())
    maps_of_blocks = []
    for block in blocks:
        inputs, is_token = _batch_tensors(rows, block, device)
        layers = network(*inputs, is_token=is_token, need_weights=True)[2]
        maps = torch.stack(layers, dim=1)  # (B, n_layers, n_heads, T, T)
        shape = len(rows), *maps.shape[1:3], longest, longest
        check_memory(
            "all attention maps together", shape, "pass some rows at a time", itemsize=4
        )
        if is_token is not None:
            # The mask lacks a token [CLS], which comes first.
            is_token = pad(is_token, (maps.shape[-1] - is_token.shape[1], 0), value=True)
            maps = maps * is_token[:, None, None, :, None]
        maps_of_blocks.append(maps.cpu().numpy())
    longest = max(maps.shape[-1] for maps in maps_of_blocks)
    shape = len(rows), *maps_of_blocks[0].shape[1:3], longest, longest
    weights = np.zeros(shape, dtype=maps_of_blocks[0].dtype)
    for block, maps in zip(blocks, maps_of_blocks, strict=True):
        weights[block, :, :, : maps.shape[-1], : maps.shape[-1]] = maps
    return weights


def _batch_tensors(rows, positions, device):
    """Return the inputs of a batch of rows, a tuple of tensors, and the mask `is_token`."""
    inputs, is_token = rows.batch(positions)
    tensors = tuple(torch.from_numpy(array).to(device) for array in inputs)
    return tensors, None if is_token is None else torch.from_numpy(is_token).to(device)

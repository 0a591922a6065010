"""Reading a memory: the weighted average of its values, or a local line through them."""

import torch


def without_own(log_weights, own):
    """Logarithms of weights, with -inf where a query's own key is.

    Parameters
    ----------
    log_weights : Tensor of shape (n_queries, n_keys)
    own : LongTensor of shape (n_queries,)
        Position of each query's own key, -1 for none.

    Returns
    -------
    log_weights : Tensor of shape (n_queries, n_keys)
    """
    rows = (own >= 0).nonzero()[:, 0]
    mask = torch.zeros_like(log_weights, dtype=torch.bool)
    mask[rows, own[rows]] = True
    return log_weights.masked_fill(mask, -torch.inf)


def local_average(weights, values, queries=None, keys=None, ridge=0.0):
    r"""Weighted averages of values, each moved along a local line to the query.

    .. math:: \hat y = \sum_j w_j \bigl(y_j + \beta^\top (\phi - \phi_j)\bigr),\quad
              \beta = \Bigl(\sum_j w_j \tilde\phi_j \tilde\phi_j^\top
              + \rho \sum_j w_j^2\, I\Bigr)^{-1} \sum_j w_j \tilde\phi_j \tilde y_j

    with :math:`\tilde\phi_j, \tilde y_j` the distances from the weighted means.

    Parameters
    ----------
    weights : Tensor of shape (n_queries, n_keys)
        Rows sum to 1.
    values : Tensor of shape (n_keys, n_values)
    queries, keys : Tensor of shape (n_queries, n_slopes) and (n_keys, n_slopes), default=None
        Coordinates along which lines run; None for averages.
    ridge : float or Tensor, default=0.0
        :math:`\rho`; by the sum of squared weights, the fewer rows carry the average the
        more it counts.

    Returns
    -------
    averages : Tensor of shape (n_queries, n_values)
    slopes : Tensor of shape (n_queries, n_slopes, n_values) or None
    """
    averages = weights @ values
    if keys is None or keys.shape[1] == 0:
        return averages, None
    n_queries, n_slopes = queries.shape
    n_values = values.shape[1]
    center = weights @ keys
    upper = torch.triu_indices(n_slopes, n_slopes, device=keys.device)
    products = weights @ torch.cat(
        [keys[:, upper[0]] * keys[:, upper[1]]]
        + [keys * values[:, [column]] for column in range(n_values)],
        dim=1,
    )
    square = products.new_empty((n_queries, n_slopes, n_slopes))
    square[:, upper[0], upper[1]] = products[:, : upper.shape[1]]
    square[:, upper[1], upper[0]] = products[:, : upper.shape[1]]
    cross = products[:, upper.shape[1] :].reshape(n_queries, n_values, n_slopes)
    cross = cross.transpose(1, 2) - center[:, :, None] * averages[:, None, :]
    square = square - center[:, :, None] * center[:, None, :]
    spread = square.diagonal(dim1=1, dim2=2)
    # Rounding alone must not make a window without width look like one.
    least = 100 * torch.finfo(square.dtype).eps * (spread.sum(1) + center.square().sum(1))
    added = ridge * weights.square().sum(1) + least + torch.finfo(square.dtype).tiny
    square = square + added[:, None, None] * torch.eye(n_slopes, dtype=square.dtype).to(square)
    slopes = torch.linalg.solve(square, cross)
    moved = averages + ((queries - center)[:, :, None] * slopes).sum(1)
    return moved, slopes

"""A few steps of stochastic gradient descent on a few parameters."""

import torch

_WARM_UP = 0.15


def descend(parameters, loss_at, n_steps, learning_rate):
    """Minimise a loss by Adam, its rate rising and falling once.

    Parameters
    ----------
    parameters : list of Tensor
        Changed in place.
    loss_at : callable
        ``loss_at(step)`` returns the loss as a Tensor, of a new batch each time.
    n_steps : int
    learning_rate : float
        The highest.

    Raises
    ------
    FloatingPointError
        If the loss is not finite.
    """
    if n_steps == 0 or not parameters:
        return
    for parameter in parameters:
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=n_steps + 1, pct_start=_WARM_UP
    )
    try:
        for step in range(n_steps):
            loss = loss_at(step)
            if not torch.isfinite(loss):
                raise FloatingPointError(
                    f"the loss at step {step} is {loss.item()}: are there targets or weights "
                    "too large to be squared?"
                )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    finally:
        for parameter in parameters:
            parameter.requires_grad_(False)
            parameter.grad = None

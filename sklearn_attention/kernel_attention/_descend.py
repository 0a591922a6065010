"""Gradient descent on batches of rows: Adam, one cycle of rates."""

import math

import numpy as np

_WARM_UP, _FIRST_RATE = 0.15, 0.04
_MOMENTUM, _MOMENTUM_OF_SQUARES = 0.9, 0.999
# What the noise is raised by where a matrix cannot be factorised.
_MORE_NOISE = 0.3


def descend(kernel, gradient_at, n_steps, rate, free):
    """Parameters after some steps of Adam [1]_ along one cycle of rates [2]_.

    Parameters
    ----------
    kernel : LearnedKernel
        Where to start.
    gradient_at : callable
        From a kernel to the gradient of its loss on another batch of rows; raises
        `LinAlgError` if the matrix cannot be factorised, which raises the noise unless that
        is given.
    n_steps : int
    rate : float
        The largest.
    free : ndarray of bool of shape (n_parameters,)
        Which parameters move.

    Returns
    -------
    kernel : LearnedKernel

    References
    ----------
    .. [1] Kingma, D. P. and Ba, J. (2015). Adam: a method for stochastic optimization. ICLR.
    .. [2] Smith, L. N. and Topin, N. (2019). Super-convergence: very fast training of neural
       networks using large learning rates. SPIE 11006.
    """
    mean, square, n_done = 0.0, 0.0, 0
    for step in range(n_steps):
        values = kernel.values.copy()
        try:
            gradient = np.where(free, gradient_at(kernel), 0.0)
        except np.linalg.LinAlgError:
            if free[-1]:
                values[-1] += _MORE_NOISE
                kernel = kernel.with_values(values)
            continue
        n_done += 1
        mean = _MOMENTUM * mean + (1 - _MOMENTUM) * gradient
        square = _MOMENTUM_OF_SQUARES * square + (1 - _MOMENTUM_OF_SQUARES) * gradient**2
        moved = mean / (1 - _MOMENTUM**n_done)
        size = np.sqrt(square / (1 - _MOMENTUM_OF_SQUARES**n_done)) + 1e-8
        values[free] -= (rate * _share(step / n_steps) * moved / size)[free]
        kernel = kernel.with_values(values)
    return kernel


def _share(done):
    """Share of the largest rate, by the share of the steps that are done."""
    if done < _WARM_UP:
        rising = 0.5 - 0.5 * math.cos(math.pi * done / _WARM_UP)
        return _FIRST_RATE + (1 - _FIRST_RATE) * rising
    return 0.5 + 0.5 * math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP))

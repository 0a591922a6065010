"""Geometry of layer normalisation (Brody, Alon and Yahav 2023)."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from sklearn.utils import check_array


class LayerNormSteps(NamedTuple):
    """Vectors after the two steps of layer normalisation, both (n_vectors, d)."""

    projected: np.ndarray
    scaled: np.ndarray


def layer_norm_decomposition(x):
    r"""Layer normalisation as a projection and a scaling.

    Parameters
    ----------
    x : array-like of shape (n_vectors, d)
        Vectors.

    Returns
    -------
    steps : LayerNormSteps
        Named tuple of two arrays of shape (n_vectors, d). ``projected`` has the vectors less
        their means: their projections onto the hyperplane orthogonal to (1, ..., 1).
        ``scaled`` has these, scaled to the norm √d, or 0 for a vector of equal numbers: the
        normalisation without gain, bias and the small number in the denominator.

    Notes
    -----
    With the projection :math:`P = I - \tfrac1d \mathbf 1 \mathbf 1^\top` [1]_

    .. math:: \operatorname{LayerNorm}(x) = \sqrt d\, \frac{P x}{\lVert P x \rVert},

    so that all outputs lie on a sphere of dimension :math:`d - 2`.

    References
    ----------
    .. [1] Brody, S., Alon, U. and Yahav, E. (2023). On the expressivity role of LayerNorm in
       transformers' attention. Findings of ACL.

    Examples
    --------
    >>> from sklearn_attention.inspection import layer_norm_decomposition
    >>> projected, scaled = layer_norm_decomposition([[1.0, 2.0, 6.0]])
    >>> projected
    array([[-2., -1.,  3.]])
    >>> scaled.round(3)
    array([[-0.926, -0.463,  1.389]])
    """
    x = check_array(x, dtype=np.float64, input_name="x", ensure_min_features=2)
    projected = x - x.mean(axis=1, keepdims=True)
    # Equal numbers leave rounding errors only.
    size = np.abs(x).max(axis=1, keepdims=True)
    norm = np.linalg.norm(projected, axis=1, keepdims=True)
    empty = norm <= 1e-14 * size * np.sqrt(x.shape[1])
    scaled = np.where(empty, 0.0, np.sqrt(x.shape[1]) * projected / np.where(empty, 1.0, norm))
    return LayerNormSteps(projected, scaled)


def unselectable_keys(keys):
    r"""Keys that no query gives the largest weight.

    Parameters
    ----------
    keys : array-like of shape (n_keys, d)
        Keys of attention by dot products.

    Returns
    -------
    unselectable : ndarray of bool of shape (n_keys,)
        Whether the key lies in the convex hull of the others. Equal keys all do.

    Notes
    -----
    The key :math:`k_i` is selected by a query :math:`q` if :math:`q^\top k_i > q^\top k_j` for
    all others. By Farkas' lemma no such query exists if and only if :math:`k_i` is a convex
    combination of the others [1]_, which a linear programme decides. After layer normalisation
    keys lie on a sphere, where no key is one, unless two are equal.

    References
    ----------
    .. [1] Brody, S., Alon, U. and Yahav, E. (2023). On the expressivity role of LayerNorm in
       transformers' attention. Findings of ACL.

    Examples
    --------
    >>> from sklearn_attention.inspection import unselectable_keys
    >>> unselectable_keys([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])
    array([False, False, False,  True])
    """
    keys = check_array(keys, dtype=np.float64, input_name="keys")
    keys = keys - keys.mean(axis=0)
    largest = np.abs(keys).max()
    keys = keys / largest if largest > 0 else keys
    return np.array([_is_within(keys[i], np.delete(keys, i, axis=0)) for i in range(len(keys))])


def _is_within(key, others):
    """True if a key is a convex combination of others."""
    if not len(others):
        return False
    system = np.vstack([others.T, np.ones(len(others))])
    found = linprog(np.zeros(len(others)), A_eq=system, b_eq=np.append(key, 1.0))
    return found.status == 0

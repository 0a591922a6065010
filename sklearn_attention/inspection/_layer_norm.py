"""Layer normalisation: its geometry (Brody, Alon and Yahav 2023), and a picture of it."""

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import helmert
from scipy.optimize import linprog
from sklearn.utils import check_array

from ._pipelines import last_step, remembered_rows
from ._style import BLUE, GREY, INK, RED, canvas


class LayerNormSteps(NamedTuple):
    """Vectors after the two steps of layer normalisation, both (n_vectors, d)."""

    projected: np.ndarray
    scaled: np.ndarray


def layer_norm_decomposition(x) -> LayerNormSteps:
    r"""Split layer normalisation into a projection and a scaling.

    Use it to study transformers; :class:`LayerNormDisplay` draws the two steps.

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


def unselectable_keys(keys) -> np.ndarray:
    r"""Find keys that cannot receive the largest attention weight, whatever the query is.

    Use it to study attention by dot products without layer normalisation.

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


class LayerNormDisplay:
    """Picture of what layer normalisation does to keys of three or four numbers.

    It is meant for teaching; :func:`layer_norm_decomposition` has the numbers for vectors of
    any length.

    Make one by :meth:`from_vectors` or :meth:`from_estimator`. Left, keys projected onto the
    hyperplane orthogonal to (1, ..., 1), a plane or a space. Right, scaled: on a circle of
    radius √3, or a sphere of radius 2. Crosses are keys that no query gives the largest weight.

    Parameters
    ----------
    keys : ndarray of shape (n_keys, 3) or (n_keys, 4)
        Keys.

    Attributes
    ----------
    projected, scaled : ndarray of shape (n_keys, 2) or (n_keys, 3)
        Coordinates within the hyperplane.
    unselectable : tuple of ndarray of bool of shape (n_keys,)
        Projected, and scaled, keys that no query selects.
    figure_ : Figure
    ax_ : ndarray of Axes of shape (1, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.inspection import LayerNormDisplay
    >>> keys = np.random.default_rng(0).normal(size=(12, 3))
    >>> display = LayerNormDisplay.from_vectors(keys)
    >>> [int(lost.sum()) for lost in display.unselectable]
    [7, 0]
    """

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys
        basis = helmert(keys.shape[1])  # orthonormal rows, orthogonal to (1, ..., 1)
        steps = layer_norm_decomposition(keys)
        self.projected, self.scaled = (part @ basis.T for part in steps)
        self.unselectable = tuple(map(unselectable_keys, (self.projected, self.scaled)))

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs) -> Self:
        """Draw rows of a fitted estimator as keys.

        Parameters
        ----------
        estimator : estimator
            Fitted to three or four numeric features.
        X : array-like or data frame of shape (n_samples, n_features), default=None
            Rows; None is for those that the estimator stores. Rows of a pipeline are drawn as
            they reach its last step.
        y : None
            Ignored; all displays have it.
        ax : array of two Axes, default=None
            Axes to draw on, for four numbers with ``projection="3d"``; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : LayerNormDisplay
        """
        rows = remembered_rows(estimator)[0] if X is None else last_step(estimator, X)[1]
        return cls.from_vectors(rows, ax=ax, **kwargs)

    @classmethod
    def from_vectors(cls, keys, *, ax=None, **kwargs) -> Self:
        """Draw keys.

        Parameters
        ----------
        keys : array-like of shape (n_keys, 3) or (n_keys, 4)
            Keys.
        ax : array of two Axes, default=None
            Axes to draw on, for four numbers with ``projection="3d"``; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : LayerNormDisplay

        Raises
        ------
        ValueError
            If keys have another size.
        """
        keys = np.asarray(keys, dtype=np.float64)
        if keys.ndim != 2 or keys.shape[1] not in (3, 4):
            raise ValueError(
                f"keys has shape {keys.shape}, but only keys of 3 or 4 features can be drawn: "
                "pass an array of shape (n_keys, 3) or (n_keys, 4)."
            )
        return cls(keys).plot(ax=ax, **kwargs)

    def plot(self, ax=None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array of two Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        self : LayerNormDisplay
        """
        solid = self.keys.shape[1] == 4
        projection = "3d" if solid else None
        with canvas(self, ax, size=(8.4, 5.0), grid=(1, 2), projection=projection) as ax:
            left, right = ax.flat
            _draw(left, self.projected, self.unselectable[0], "projected")
            _draw(right, self.scaled, self.unselectable[1], "projected and scaled")
            (_draw_sphere if solid else _draw_circle)(right)
            left.legend(loc="upper center", bbox_to_anchor=(0.5, 0.1 if solid else 0), ncols=2)
        return self


def _draw(ax, places, lost, title):
    ax.scatter(*places[~lost].T, color=BLUE, s=36, label="can win")
    ax.scatter(*places[lost].T, color=RED, marker="x", s=48, label="cannot win")
    ax.plot(*np.zeros((places.shape[1], 1)), "+", color=INK, ms=8)
    ax.set(aspect="equal")
    # Axes in three dimensions have margins of their own.
    place = {"y": 0.9} if places.shape[1] == 3 else {}
    ax.set_title(f"{title}\n{lost.sum()} cannot win", fontsize="small", **place)
    ax.set_axis_off()


def _draw_circle(ax):
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(*(np.sqrt(3) * np.array([np.cos(turn), np.sin(turn)])), color=GREY, lw=1, zorder=0)


def _draw_sphere(ax):
    turn, height = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
    places = 2 * np.array(
        [np.cos(turn) * np.sin(height), np.sin(turn) * np.sin(height), np.cos(height)]
    )
    ax.plot_wireframe(*places, color=GREY, lw=0.4, alpha=0.5)

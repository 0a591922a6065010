"""Views: the same rows in coordinates in which distances mean different things."""

import numpy as np
from scipy.special import ndtri

from .._blocks import blocks

VIEWS = ("standard", "quantile", "piecewise_linear")
# Normal scores beyond this are rows at the edge, whose distance from one another is a guess.
_FURTHEST_SCORE = 2.5
_MOST_KNOTS = 1000
_BLOCK = 2**15
_FEWEST_BINS, _MOST_BINS = 12, 48


def learn_view(name, X, kinds, clip):
    r"""Learn what turns rows into the coordinates of one view.

    Numbers become one column or several, categories one column for each level, and a feature
    with missing cells has one more column that says so.

    Parameters
    ----------
    name : {"standard", "quantile", "piecewise_linear"}
        ``"standard"``: numbers less their mean, in standard deviations. ``"quantile"``:
        their normal scores, :math:`\Phi^{-1}(F(x))`. ``"piecewise_linear"``: how far they
        reach into each of the bins between quantiles,
        :math:`\text{clip}((x - e_b) / (e_{b+1} - e_b), 0, 1)` [1]_.
    X : ndarray of shape (n_samples, n_features)
        Numbers, NaN where missing, and codes of categories.
    kinds : sequence of str
        For each feature "numeric", "unordered" or "ordered".
    clip : float or None
        Standard deviations from the mean beyond which a number counts as this far away.

    Returns
    -------
    view : dict of str to array or list of arrays
        What :func:`look` needs.

    References
    ----------
    .. [1] Gorishniy, Y., Rubachev, I. and Babenko, A. (2022). On embeddings for numerical
       features in tabular deep learning. NeurIPS 35.
    """
    learn = {"standard": _standard, "quantile": _quantile, "piecewise_linear": _bins}[name]
    numeric, knots, scores = [], [], []
    levels, missing = [], []
    for j, kind in enumerate(kinds):
        column = X[:, j]
        known = column[~np.isnan(column)]
        varies = len(known) > 0 and known.min() < known.max()
        if kind == "unordered":
            # The levels that occur: a column of zeros compares nothing.
            present = np.unique(known)
            levels += [(j, level) for level in present] if varies else []
        elif varies:
            x, u = learn(known, len(X))
            numeric.append(j)
            knots.append(x)
            scores.append(u)
        if 0 < len(known) < len(X):
            missing.append(j)
    view = {
        "name": name,
        "numeric": np.array(numeric, dtype=np.int64),
        "knots": knots,
        "scores": scores,
        "level_of": np.array(levels, dtype=np.float64).reshape(-1, 2),
        "missing": np.array(missing, dtype=np.int64),
    }
    width = [len(x) - 1 if name == "piecewise_linear" else 1 for x in knots]
    view["feature"] = np.concatenate(
        [np.repeat(view["numeric"], width), view["level_of"][:, 0], view["missing"]]
    ).astype(np.int64)
    n_numbers = int(np.sum(width))
    view["center"], view["scale"] = np.zeros(n_numbers), np.ones(n_numbers)
    if name != "piecewise_linear":
        coordinates = _numbers(view, X)
        view["center"] = np.nanmean(coordinates, axis=0) if n_numbers else np.zeros(0)
        view["scale"] = np.nanstd(coordinates, axis=0) if n_numbers else np.ones(0)
    view["limit"] = np.inf if clip is None else float(clip)
    # A missing cell lies where the average row does.
    view["usual"] = np.zeros(n_numbers)
    if n_numbers:
        view["usual"] = _mean_place(view, X)
    return view


def look(view, X, dtype=np.float64):
    """Rows in the coordinates of a view.

    Parameters
    ----------
    view : dict
        From :func:`learn_view`.
    X : ndarray of shape (n, n_features)
    dtype : dtype, default=float64
        Of the coordinates.

    Returns
    -------
    coordinates : ndarray of shape (n, n_columns)
    """
    numbers = _placed(view, X)
    numbers = np.where(np.isnan(numbers), view["usual"], numbers)
    features = view["level_of"][:, 0].astype(np.int64)
    levels = X[:, features] == view["level_of"][:, 1]
    missing = np.isnan(X[:, view["missing"]])
    return np.concatenate([numbers, levels, missing], axis=1).astype(dtype)


def column_names(view, names):
    """Names of a view's columns, from those of the features."""
    n_numbers = len(view["center"])
    bins, columns = {}, []
    for j in view["feature"][:n_numbers]:
        bins[j] = bins.get(j, -1) + 1
        several = view["name"] == "piecewise_linear"
        columns.append(f"{view['name']}__{names[j]}" + (f"_{bins[j]}" if several else ""))
    columns += [
        f"{view['name']}__{names[int(j)]}_level{level:g}" for j, level in view["level_of"]
    ]
    columns += [f"{view['name']}__{names[j]}_missing" for j in view["missing"]]
    return columns


def _mean_place(view, X):
    # Bins of all rows at once would be many times the data.
    total, known = 0.0, 0
    for rows in blocks(len(X), _BLOCK):
        placed = _placed(view, X[rows])
        total = total + np.nansum(placed, axis=0)
        known = known + np.sum(~np.isnan(placed), axis=0)
    return total / known


def _placed(view, X):
    numbers = (_numbers(view, X) - view["center"]) / view["scale"]
    return np.clip(numbers, -view["limit"], view["limit"])


def _numbers(view, X):
    """Coordinates of the numbers, NaN where they are missing."""
    columns = [
        _coordinates(view["name"], X[:, j], knots, scores)
        for j, knots, scores in zip(view["numeric"], view["knots"], view["scores"], strict=True)
    ]
    return np.concatenate(columns, axis=1) if columns else np.empty((len(X), 0))


def _coordinates(name, x, knots, scores):
    if name == "piecewise_linear":
        return np.clip((x[:, None] - knots[:-1]) / np.diff(knots), 0, 1)
    if name == "quantile":
        return np.interp(x, knots, scores)[:, None]
    return x[:, None]


def _standard(x, n_samples):
    return np.zeros(1), np.zeros(1)


def _quantile(x, n_samples):
    """Normal scores at the values that occur, or at quantiles of many."""
    values, counts = np.unique(x, return_counts=True)
    share = (np.cumsum(counts) - counts / 2) / len(x)
    if len(values) > _MOST_KNOTS:
        kept = np.unique(np.searchsorted(share, np.linspace(0, 1, _MOST_KNOTS)))
        kept = kept[kept < len(values)]
        values, share = values[kept], share[kept]
    return values, np.clip(ndtri(share), -_FURTHEST_SCORE, _FURTHEST_SCORE)


def _bins(x, n_samples):
    """Edges at quantiles; every value that occurs is one where there are few."""
    n_bins = int(np.clip(round(n_samples**0.37), _FEWEST_BINS, _MOST_BINS))
    edges = np.unique(x)
    if len(edges) > n_bins + 1:
        edges = np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)))
    return edges, np.zeros(1)

"""Reader of tables: numbers are standardised and located among quantiles, levels get codes.

The *cells* of a table are an array of floats (n_rows, n_features). A cell of a number is this
number, or NaN if it is missing. A cell of a category is the code of its level, or -1 if the
level is unknown. The *position* of a number x among the quantiles q_0, ..., q_m of its column
is 0 below q_0, k + (x - q_k) / (q_k+1 - q_k) between q_k and q_k+1, and m above q_m.
"""

import contextlib
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._column_stats import mean_and_scale
from .._columns import Columns, read_table
from ._forms import TableRows, form_of

# Largest number of intervals between quantiles; in each of them a number's token is linear.
N_PIECES = 32
# Largest number of training rows that are stored, as a background for explanations.
_MAX_SAMPLE = 500


@dataclass(frozen=True, eq=False)
class TableReader:
    """Reader of tables that have the columns of a training table."""

    columns: Columns
    scales: dict  # `center`, `scale` and `knots` of the numbers, see `learn_scales`
    # Cells of up to 500 training rows, the background of explanations; None in files of 0.2.0.
    sample: np.ndarray | None = None

    form, max_length = "features", None

    @classmethod
    def learn(cls, X, has_weight, estimator, architecture):
        """Learn columns and scales from a table, and read it.

        Parameters
        ----------
        X : table
            Training rows, as they were passed.
        has_weight : ndarray of bool of shape (n_rows,)
            Rows to learn from; only levels are learned from all rows.
        estimator : TransformerEstimator
            The estimator that is fitted. Its `n_features_in_` and `feature_names_in_` are set,
            and messages have its name.
        architecture : Architecture
            Not used; readers of sequences need it.

        Returns
        -------
        reader : TableReader
            The reader that was learned.
        rows : TableRows
            The rows with weight.
        """
        # The network learns a vector for each level, so that an order of levels has no use.
        columns = Columns.learn(X, ordered=False, refuse_texts=True)
        cells = _cells(estimator, columns, X, reset=True)
        check_consistent_length(cells, has_weight)
        cells = cells[has_weight]
        # `explain_features` compares rows with a random sample of the training rows.
        sample = cells[np.random.default_rng(0).permutation(len(cells))[:_MAX_SAMPLE]]
        reader = cls(columns, learn_scales(cells, columns.numeric), sample)
        return reader, reader.rows_of(cells)

    def read(self, X, estimator):
        """Read a table as TableRows, and return them with the precision of its numbers."""
        cells = self.read_cells(X, estimator)
        return self.rows_of(cells), cells.dtype

    def read_cells(self, X, estimator):
        """Read a table as cells; a ValueError says if X is not a table."""
        try:
            return _cells(estimator, self.columns, X, reset=False)
        except (TypeError, ValueError) as error:
            form = "features"
            with contextlib.suppress(ValueError):
                form = form_of(X)
            if form == "features":
                raise
            raise ValueError(
                f"X has {form}, but was a table of features in the fit: pass a table of "
                f"{estimator.n_features_in_} features."
            ) from error

    def network_rows(self, rows):
        """Return rows in the form in which the network takes them: they are as they were."""
        return rows

    def token_arguments(self):
        """Return the arguments of FeatureTokens."""
        return {"n_levels": self._n_levels, "n_pieces": N_PIECES}

    def rows_of(self, cells):
        """Return the TableRows of cells."""
        return feature_rows(cells, self._n_levels, self.scales)

    @property
    def _n_levels(self):
        """For each feature None if it is numeric, else the number of its levels.

        The level of missing cells, which is the last one, does not count.
        """
        counts = []
        for levels in self.columns.categories:
            counts.append(None if levels is None else len(levels) - (None in levels))
        return counts


def _cells(estimator, columns, X, *, reset):
    """Read a table as cells; `reset` is True in a fit, which stores the names of features."""
    checks = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}
    return read_table(estimator, columns, X, reset=reset, **checks)


def learn_scales(X, numeric):
    """Learn the scales of numeric columns from cells.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Cells.
    numeric : sequence of int
        Positions of the numeric columns.

    Returns
    -------
    scales : dict
        ``center`` and ``scale`` (n_numeric,), mean and standard deviation, and ``knots``, for
        each column its distinct quantiles.
    """
    columns = [X[:, j][~np.isnan(X[:, j])] for j in numeric]
    stats = np.array([mean_and_scale(column) for column in columns]).reshape(-1, 2)
    levels = np.linspace(0, 1, N_PIECES + 1)
    knots = [
        np.unique(np.quantile(column, levels)) if len(column) else np.zeros(1)
        for column in columns
    ]
    return {"center": stats[:, 0], "scale": stats[:, 1], "knots": knots}


def feature_rows(X, n_levels, scales):
    """Return the TableRows of cells.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Cells.
    n_levels : list of int or None
        For each feature None if it is numeric, else the number of its levels; codes that are
        not smaller count as missing.
    scales : dict
        The result of :func:`learn_scales`.
    """
    numeric = [j for j, n in enumerate(n_levels) if n is None]
    numbers = X[:, numeric]
    with np.errstate(over="ignore"):
        standardised = (numbers - scales["center"]) / scales["scale"]
    positions = np.full_like(numbers, np.nan)
    for j, knots in enumerate(scales["knots"]):
        is_observed = ~np.isnan(numbers[:, j])
        observed = numbers[is_observed, j]
        positions[is_observed, j] = np.interp(observed, knots, np.arange(len(knots)))
    codes = np.delete(X, numeric, axis=1).astype(np.int64)
    n_codes = np.array([n for n in n_levels if n is not None], dtype=np.int64)
    codes[(codes < 0) | (codes >= n_codes)] = -1
    # Outliers are clipped to five standard deviations from the mean.
    standardised = np.clip(standardised, -5.0, 5.0).astype(np.float32)
    return TableRows(numbers, standardised, positions.astype(np.float32), codes)

"""Tables: numbers standardised and placed among quantiles, levels as codes."""

import contextlib
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._column_stats import mean_and_scale
from .._columns import Columns, read_table
from ._forms import TableRows, form_of

# Intervals between quantiles, at most, in which a number's token may bend.
N_PIECES = 32
# Training rows that are kept, from which a background of explanations is chosen.
_MAX_SAMPLE = 500


@dataclass(frozen=True, eq=False)
class TableReader:
    """Reads tables by the columns of a training table and their `scales`."""

    columns: Columns
    scales: dict
    # Cells of up to 500 training rows, (n_rows, n_features); None in files of 0.2.0.
    sample: np.ndarray | None = None

    form, max_length = "features", None

    @classmethod
    def learn(cls, X, kept, estimator, architecture):
        """A reader, and the rows that it was learned from, which the mask `kept` chooses.

        Levels are those of all rows. scikit-learn's checks are of X as of the estimator.
        """
        # Every level has a vector of its own, in whatever order it stands.
        columns = Columns.learn(X, ordered=False, refuse_texts=True)
        cells = _cells(estimator, columns, X, reset=True)
        check_consistent_length(cells, kept)
        cells = cells[kept]
        sample = cells[np.random.default_rng(0).permutation(len(cells))[:_MAX_SAMPLE]]
        reader = cls(columns, learn_scales(cells, columns.numeric), sample)
        return reader, reader.rows_of(cells)

    def read(self, X, estimator):
        """TableRows of a table with the columns that were learned, and their precision."""
        cells = self.read_cells(X, estimator)
        return self.rows_of(cells), cells.dtype

    def read_cells(self, X, estimator):
        """Read a table as numbers and codes of levels, (n_rows, n_features)."""
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

    def tokens_of(self, rows):
        """Rows as the network takes them."""
        return rows

    def token_arguments(self):
        """Arguments of the network's tokens."""
        return {"n_levels": self._n_levels, "n_pieces": N_PIECES}

    def rows_of(self, cells):
        """Return the TableRows of numbers and codes of levels."""
        return feature_rows(cells, self._n_levels, self.scales)

    @property
    def _n_levels(self):
        """Levels of each category but the one of missing cells, the last; None for numbers."""
        categories = self.columns.categories
        return [None if of is None else len(of) - (None in of) for of in categories]


def _cells(estimator, columns, X, *, reset):
    checks = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}
    return read_table(estimator, columns, X, reset=reset, **checks)


def learn_scales(X, numeric):
    """``center``, ``scale`` and ``knots``, distinct quantiles, of the columns of numbers."""
    columns = [X[:, j][~np.isnan(X[:, j])] for j in numeric]
    measures = np.array([mean_and_scale(column) for column in columns]).reshape(-1, 2)
    levels = np.linspace(0, 1, N_PIECES + 1)
    knots = [
        np.unique(np.quantile(column, levels)) if len(column) else np.zeros(1)
        for column in columns
    ]
    return {"center": measures[:, 0], "scale": measures[:, 1], "knots": knots}


def feature_rows(X, n_levels, scales):
    """TableRows of a table of numbers, and of codes of levels, -1 where unknown.

    Of each column `n_levels` count, None for numbers; codes beyond are missing.
    """
    numeric = [j for j, n in enumerate(n_levels) if n is None]
    numbers = X[:, numeric]
    with np.errstate(over="ignore"):
        standardised = (numbers - scales["center"]) / scales["scale"]
    places = np.full_like(numbers, np.nan)
    for j, knots in enumerate(scales["knots"]):
        there = ~np.isnan(numbers[:, j])
        places[there, j] = np.interp(numbers[there, j], knots, np.arange(len(knots)))
    codes = np.delete(X, numeric, axis=1).astype(np.int64)
    known = [n for n in n_levels if n is not None]
    codes[(codes < 0) | (codes >= np.array(known, dtype=np.int64))] = -1
    return TableRows(
        numbers,
        # A number counts for five standard deviations from the mean, at most.
        np.clip(standardised, -5.0, 5.0).astype(np.float32),
        places.astype(np.float32),
        codes,
    )

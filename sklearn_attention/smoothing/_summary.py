"""The summary of a fitted smoother, which prints as a table."""

import dataclasses
from typing import Any

import numpy as np

from .._column_stats import mean_squares
from .._labels import r2_or_nan


@dataclasses.dataclass(frozen=True, repr=False)
class SmootherSummary:
    """Table of what a smoother has fitted: bandwidths, degrees of freedom and errors.

    It is the result of `summary`; print it.

    Attributes
    ----------
    model : str
        Name of the estimator.
    kernel : Kernel
        The kernel, resolved.
    degrees : dict
        Weight of each degree of the polynomials that are averaged.
    additive_share : float
        Weight of the additive stage and the smoother of its residuals.
    n_samples : int
        Training rows of positive weight.
    rule : str
        Rule or criterion that chose the bandwidth; "given" for numbers.
    criterion_value : float or None
        The criterion at the bandwidth, if one was minimised.
    n_neighbors : int or None
        The neighbour that an adaptive bandwidth reaches to.
    effective_dof : float
        Trace of the smoother matrix.
    residual_std : float or ndarray of shape (n_outputs,)
        Standard deviation of the residuals: the root of the sum of their squares, divided by
        the number of rows less the degrees of freedom. NaN if no degrees of freedom remain. If
        rows are weighted, it is that of a row of mean weight.
    r2, loo_r2 : float
        Share of the variance that fitted values and leave-one-out predictions explain, the
        mean over outputs.
    features : list of str
        Names of the features.
    kinds : tuple of str
        For each feature "numeric", "unordered" or "ordered".
    bandwidth : ndarray of shape (n_features,)
        The bandwidth of each feature, for a category its lambda.
    p_values : ndarray of shape (n_features,) or None
        Significance of each feature, if it was tested.
    """

    model: str
    kernel: Any
    degrees: dict
    additive_share: float
    n_samples: int
    rule: str
    criterion_value: Any
    n_neighbors: Any
    effective_dof: float
    residual_std: Any
    r2: float
    loo_r2: float
    features: list
    kinds: tuple
    bandwidth: Any
    p_values: Any

    def __str__(self):
        bandwidth, stds = self.rule, np.atleast_1d(self.residual_std)
        if self.criterion_value is not None:
            bandwidth += f", criterion {self.criterion_value:.4g}"
        facts = [
            ("kernel", str(self.kernel)),
            ("degree", self._degrees()),
            ("additive share", f"{self.additive_share:.2f}" if self.additive_share else "None"),
            ("rows", f"{self.n_samples}"),
            ("bandwidth", bandwidth),
            ("neighbors", f"{self.n_neighbors}"),
            ("effective degrees of freedom", f"{self.effective_dof:.1f}"),
            ("residual standard error", ", ".join(f"{std:.4g}" for std in stds)),
            ("R2", f"{self.r2:.3f}"),
            ("R2 by leave-one-out", f"{self.loo_r2:.3f}"),
        ]
        facts = [fact for fact in facts if fact[1] != "None"]
        columns = [
            ["feature", *self.features],
            ["kind", *self.kinds],
            ["bandwidth", *(f"{width:.4g}" for width in self.bandwidth)],
        ]
        if self.p_values is not None:
            columns.append(["p-value", *(f"{p:.3f}" for p in self.p_values)])
        return "\n".join(
            [self.model, *_aligned(facts), "", *_aligned(zip(*columns, strict=True))]
        )

    __repr__ = __str__

    def _degrees(self):
        """Return the degrees as text, with their weights if there are several."""
        if len(self.degrees) == 1:
            return f"{next(iter(self.degrees))}"
        order = sorted(self.degrees, key=self.degrees.get, reverse=True)
        return ", ".join(f"{degree} ({self.degrees[degree]:.2f})" for degree in order)


def feature_names(model):
    """Return the names of the features of a fitted estimator; "x0", "x1" ... without names."""
    unnamed = [f"x{j}" for j in range(model.n_features_in_)]
    return list(getattr(model, "feature_names_in_", unnamed))


def summarize(model, p_values=None):
    """Return the `SmootherSummary` of a fitted regressor.

    `p_values` (n_features,) are those of the features, if they were tested.
    """
    smoother = model._smoother
    n_samples, weights = smoother.n_rows, smoother.key_weights
    # This sum does not depend on the unit of the weights.
    sum_of_squares = n_samples * mean_squares(model.residuals_, weights)
    residual_dof = n_samples - model.effective_dof_
    # If no degrees of freedom remain for the residuals, their variance is unknown: NaN for each
    # output.
    variance = sum_of_squares / residual_dof if residual_dof > 0 else np.nan * sum_of_squares
    return SmootherSummary(
        model=type(model).__name__,
        kernel=model.kernel_,
        degrees={member.degree: member.weight for member in smoother.members if member.weight},
        additive_share=getattr(smoother, "mixing_weight", 0.0),
        n_samples=n_samples,
        rule=model._kept["rule"],  # the name that the fit has kept
        criterion_value=getattr(model, "criterion_value_", None),
        n_neighbors=getattr(model, "n_neighbors_", None),
        effective_dof=model.effective_dof_,
        residual_std=np.sqrt(variance)[()],  # a number, not an array without axes
        r2=r2_or_nan(model.values_, model.fitted_values_, weights),
        loo_r2=model.loo_score_,
        features=feature_names(model),
        kinds=smoother.columns.kinds,
        bandwidth=model.bandwidth_,
        p_values=p_values,
    )


def _aligned(rows):
    """Return the rows of a table, tuples of texts, as lines with aligned columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

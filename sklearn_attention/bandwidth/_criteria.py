"""Criteria of a smoother's bandwidth, from its errors and its effective degrees of freedom.

A criterion takes the :class:`~sklearn_attention.attention.Scores` at one or several bandwidths:
the mean squared leave-one-out error CV(h), the mean squared residual RSS / n, and the trace
tr S of the smoother matrix S, which is the effective degrees of freedom. It returns a number
for each bandwidth; the bandwidth with the smallest number is the best one.
"""

import numpy as np

# A mean squared error below this fraction of the squared size of the values is a rounding
# error.
_ROUNDING = 1e-26


def leave_one_out_criterion(scores, n_samples):
    """Return the mean squared error of predicting each row from all others."""
    return scores.left_out


def penalized_leave_one_out(scores, n_samples) -> np.ndarray:
    r"""Compute the leave-one-out error, penalised for degrees of freedom.

    It chooses wider bandwidths than leave-one-out alone, with less variation from sample to
    sample.

    .. math:: \text{CV}(h)\, e^{(\operatorname{tr} S / n)^2}

    The leave-one-out error is often nearly the same at all small bandwidths, so that chance
    decides among them: correlated noise of neighbouring rows, or a few copies of rows, move the
    minimum there. The penalty breaks such ties, and vanishes if there are few degrees of
    freedom for the number of rows. To second order, generalised cross-validation with this
    penalty is the corrected Akaike criterion: :math:`\ln \text{AIC}_c - \ln \text{GCV} \approx
    (\operatorname{tr} S / n)^2`.

    Parameters
    ----------
    scores : Scores
        At one or several bandwidths.
    n_samples : float
        Number of rows :math:`n` of positive weight.

    Returns
    -------
    values : ndarray
    """
    with np.errstate(over="ignore"):
        return scores.left_out * np.exp(np.square(scores.trace / n_samples))


def generalized_cross_validation(scores, n_samples) -> np.ndarray:
    r"""Compute the criterion of generalised cross-validation (Craven and Wahba 1979).

    It needs only residuals and degrees of freedom, and is close to the leave-one-out error if
    all rows have similar leverage.

    .. math:: \text{GCV} = \frac{\text{RSS} / n}{(1 - \operatorname{tr} S / n)^2}

    Parameters
    ----------
    scores : Scores
        At one or several bandwidths.
    n_samples : float
        Number of rows :math:`n` of positive weight.

    Returns
    -------
    values : ndarray
        Infinite where the rows are interpolated.
    """
    residual_dof = 1 - np.asarray(scores.trace) / n_samples  # as a fraction of the rows
    # If the rows are interpolated, this is 0, except for rounding errors of at most 1e-9.
    return _infinite_unless(residual_dof > 1e-9, lambda: scores.fitted / residual_dof**2)


def corrected_akaike(scores, n_samples) -> np.ndarray:
    r"""Compute the corrected Akaike information criterion (Hurvich, Simonoff and Tsai 1998).

    It punishes small bandwidths more than generalised cross-validation does; take it for small
    samples.

    .. math:: \text{AIC}_c = \ln(\text{RSS} / n) +
              \frac{1 + \operatorname{tr} S / n}{1 - (\operatorname{tr} S + 2) / n}

    Parameters
    ----------
    scores : Scores
        At one or several bandwidths.
    n_samples : float
        Number of rows :math:`n` of positive weight.

    Returns
    -------
    values : ndarray
        Infinite where there are as many degrees of freedom as rows, less two.
    """
    residual_dof = 1 - (np.asarray(scores.trace) + 2) / n_samples  # as a fraction of the rows
    return _infinite_unless(
        (residual_dof > 0) & (np.asarray(scores.fitted) > 0),
        lambda: np.log(scores.fitted) + (1 + scores.trace / n_samples) / residual_dof,
    )


def zero_rounding_errors(scores, size):
    """Return Scores in which errors that are only rounding errors are 0.

    `size` is the largest absolute value among the targets, in the unit of the errors.
    """
    is_exact = scores.left_out < _ROUNDING * size**2
    # The squared residual becomes a tiny positive number, since criteria take its logarithm.
    return scores._replace(
        left_out=np.where(is_exact, 0.0, scores.left_out),
        fitted=np.where(is_exact, np.finfo(np.float64).tiny, scores.fitted),
    )


def _infinite_unless(is_valid, compute):
    """Return the values of ``compute()`` where `is_valid` is True, and infinity elsewhere."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(is_valid, compute(), np.inf)


# Criteria by the name that the parameter `bandwidth` of smoothers takes.
SMOOTHER_CRITERIA = {
    "aicc": corrected_akaike,
    "gcv": generalized_cross_validation,
    "loo": leave_one_out_criterion,
    "penalized-loo": penalized_leave_one_out,
}


def evaluate_criterion(name, scores, n_samples, size):
    """Evaluate the criterion with this name, (n_scales,); infinite if a row has no prediction.

    Where predictions are exact, the result does not depend on rounding errors. `n_samples` is
    the number of rows of positive weight. `size` is the largest absolute value among the
    targets, in the unit of the errors in `scores`.
    """
    # Errors are NaN if a row has no prediction.
    values = SMOOTHER_CRITERIA[name](zero_rounding_errors(scores, size), n_samples)
    return np.where(np.isnan(values), np.inf, values)


def criterion_slopes(name, scores, n_samples, size):
    """Differentiate a criterion at one bandwidth with respect to the fields of its Scores.

    Returns the partial derivatives with respect to the leave-one-out error, the mean squared
    residual and the trace. `name` is one of `SMOOTHER_CRITERIA`; `n_samples` is the number of
    rows; `size` is the largest absolute value among the targets.
    """
    if scores.left_out < _ROUNDING * size**2:
        return 0.0, 0.0, 0.0  # the error is a rounding error, which has no slope
    if name == "loo":
        return 1.0, 0.0, 0.0
    dof = scores.trace / n_samples  # as a fraction of the rows
    if name == "penalized-loo":
        penalty = float(np.exp(dof**2))
        return penalty, 0.0, scores.left_out * penalty * 2 * dof / n_samples
    if name == "gcv":
        residual_dof = 1 - dof
        return 0.0, 1 / residual_dof**2, 2 * scores.fitted / (n_samples * residual_dof**3)
    # The last criterion is "aicc": log(fitted) + (1 + dof) / residual_dof.
    residual_dof = 1 - dof - 2 / n_samples
    trace_slope = (1 + (1 + dof) / residual_dof) / (n_samples * residual_dof)
    return 0.0, 1 / scores.fitted, trace_slope

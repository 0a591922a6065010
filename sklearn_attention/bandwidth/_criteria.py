"""Criteria of a bandwidth, from errors and degrees of freedom."""

import numpy as np

# Squared errors this small relative to those of the values are rounding.
_ROUNDING = 1e-26


def leave_one_out_criterion(scores, n_samples):
    """Mean squared error of predicting each row from all others."""
    return scores.left_out


def penalized_leave_one_out(scores, n_samples) -> np.ndarray:
    r"""Compute the leave-one-out error, penalised for degrees of freedom.

    It chooses wider bandwidths than leave-one-out alone, with less variation from sample to
    sample.

    .. math:: \text{CV}(h)\, e^{(\operatorname{tr} S / n)^2}

    Leave-one-out errors are often flat towards small bandwidths, where chance then decides:
    neighbouring rows whose noise is alike, or a few copies, pull the minimum there. The
    penalty breaks such ties and vanishes where degrees of freedom are few relative to the rows.
    It is, to second order, what turns generalised cross-validation into the corrected
    Akaike criterion: :math:`\ln \text{AIC}_c - \ln \text{GCV} \approx
    (\operatorname{tr} S / n)^2`.

    Parameters
    ----------
    scores : Scores
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
    n_samples : float
        Number of rows :math:`n` of positive weight.

    Returns
    -------
    values : ndarray
        Infinite where the rows are interpolated.
    """
    free = 1 - np.asarray(scores.trace) / n_samples
    # Windows that interpolate leave nothing but rounding errors of at most this size.
    return _where(free > 1e-9, lambda: scores.fitted / free**2)


def corrected_akaike(scores, n_samples) -> np.ndarray:
    r"""Compute the corrected Akaike information criterion (Hurvich, Simonoff and Tsai 1998).

    It punishes small bandwidths more than generalised cross-validation does; take it for small
    samples.

    .. math:: \text{AIC}_c = \ln(\text{RSS} / n) +
              \frac{1 + \operatorname{tr} S / n}{1 - (\operatorname{tr} S + 2) / n}

    Parameters
    ----------
    scores : Scores
    n_samples : float
        Number of rows :math:`n` of positive weight.

    Returns
    -------
    values : ndarray
        Infinite where there are as many degrees of freedom as rows, less two.
    """
    free = 1 - (np.asarray(scores.trace) + 2) / n_samples
    return _where(
        (free > 0) & (np.asarray(scores.fitted) > 0),
        lambda: np.log(scores.fitted) + (1 + scores.trace / n_samples) / free,
    )


def without_rounding(scores, size):
    """Replace errors that are rounding errors of values of this size by 0."""
    is_exact = scores.left_out < _ROUNDING * size**2
    # Criteria take the logarithm of the squared residual, which therefore stays positive.
    return scores._replace(
        left_out=np.where(is_exact, 0.0, scores.left_out),
        fitted=np.where(is_exact, np.finfo(np.float64).tiny, scores.fitted),
    )


def _where(valid, values):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(valid, values(), np.inf)


SMOOTHER_CRITERIA = {
    "aicc": corrected_akaike,
    "gcv": generalized_cross_validation,
    "loo": leave_one_out_criterion,
    "penalized-loo": penalized_leave_one_out,
}


def judge(name, scores, n_samples, size):
    """Evaluate a criterion of values of some size; infinite where a row has no prediction.

    Where predictions are exact, it does not depend on rounding errors.
    """
    values = SMOOTHER_CRITERIA[name](without_rounding(scores, size), n_samples)
    return np.where(np.isnan(values), np.inf, values)


def criterion_slopes(name, scores, n_samples, size):
    """Return slopes of a criterion along leave-one-out error, squared residual and trace."""
    if scores.left_out < _ROUNDING * size**2:
        return 0.0, 0.0, 0.0  # rounding errors have no direction
    if name == "loo":
        return 1.0, 0.0, 0.0
    freedom = scores.trace / n_samples
    if name == "penalized-loo":
        penalty = float(np.exp(freedom**2))
        return penalty, 0.0, scores.left_out * penalty * 2 * freedom / n_samples
    if name == "gcv":
        free = 1 - freedom
        return 0.0, 1 / free**2, 2 * scores.fitted / (n_samples * free**3)
    free = 1 - freedom - 2 / n_samples
    return 0.0, 1 / scores.fitted, (1 + (1 + freedom) / free) / (n_samples * free)

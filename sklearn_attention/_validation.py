"""Checks of what users pass: each error names the parameter, the value and the remedy."""

import datetime
import difflib
import functools
import math
import numbers

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight

from ._blocks import check_memory, own_copy
from ._column_stats import min_max_sum, replace_zeros
from ._partitions import as_array, check_numeric_types, is_partitioned, refuse_not_finite

_TIMES = datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64
# Ranges of the other rows that a row of weight 0 may be away: results with and without it agree
# in nine digits or more, in six at a hundred times that.
_FURTHEST_ABSENT = 1e4
# Values that are gone: the choice to use in their place, and why.
_SHOWN = ", which shows which queries have no row near"
_GONE = {
    ("bandwidth", "plug-in"): ("loo", ""),
    ("empty", "mean"): ("nan", _SHOWN),
    ("empty", "raise"): ("nan", _SHOWN),
    ("empty", "widen"): ("nearest", ""),
}
OF_TIMES = "make numbers of them, such as the days since the first, or the day of the week"


def check_positive(name, value, *, integer=False, minimum=None):
    """A finite number above 0, or at least the minimum, as a float or an int."""
    kind = numbers.Integral if integer else numbers.Real
    valid = isinstance(value, kind) and not isinstance(value, bool) and _is_finite(value)
    if valid and integer and value >= 2**63:
        raise ValueError(f"{name}={value!r} is not valid: pass an integer below 2**63.")
    if not valid or value <= 0 or (minimum is not None and value < minimum):
        noun = "an integer" if integer else "a finite number"
        bound = f"at least {minimum}" if minimum is not None else "greater than 0"
        raise ValueError(f"{name}={value!r} is not valid: pass {noun} {bound}.")
    # Not a NumPy scalar, such as grids hold: it would turn float32 arrays into float64.
    return int(value) if integer else float(value)


def check_gap(gap):
    """Return the number of rows on either side that are left out; ValueError if not valid."""
    is_integer = isinstance(gap, numbers.Integral) and not isinstance(gap, bool)
    if not is_integer or gap < 0:
        raise ValueError(f"gap={gap!r} is not valid: pass an integer that is not negative.")
    return int(gap)


def check_size(name, value, *further):
    """A positive integer, if so many (times further) numbers fit into memory."""
    value = check_positive(name, value, integer=True)
    check_memory(f"{name}={value}", (value, *further), "pass a smaller number")
    return value


def _is_finite(value):
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def types_of(cells):
    """Which of texts, flags, numbers and other objects there are."""
    kinds = str, bool | np.bool_, numbers.Number, object
    return {next(kind for kind in kinds if isinstance(cell, kind)) for cell in cells}


def is_one_of(value, *options):
    """True if a value, which may be an array, is one of some that are not."""
    return isinstance(value, str | numbers.Number | np.bool_ | None) and value in options


def check_in_interval(name, value, low, high, *, closed_right=True):
    """A number from low to high as a float."""
    inside = (
        isinstance(value, numbers.Real)
        and low <= value <= high
        and _is_finite(value)
        and (closed_right or value < high)
    )
    if not inside:
        end = "]" if closed_right else ")"
        raise ValueError(
            f"{name}={value!r} is not valid: pass a number in [{low:g}, {high:g}{end}."
        )
    return float(value)


def check_in_open_interval(name, value, low, high):
    """A number strictly between low and high as a float."""
    if not (isinstance(value, numbers.Real) and low < value < high):
        raise ValueError(
            f"{name}={value!r} is not valid: pass a number between {low:g} and {high:g}."
        )
    return float(value)


def check_list(name, given):
    """One or several numbers as an array (n,), none of them NaN."""
    _refuse_gradients(name, given)
    try:
        numbers = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not len(numbers) or np.isnan(numbers).any():
        raise ValueError(
            f"{name}={given!r} is not a list of numbers: pass a list of at least one number."
        )
    return numbers


def check_probabilities(name, given):
    """Probabilities strictly between 0 and 1 as an array (n,)."""
    checked = check_list(name, given)
    for probability in checked.tolist():
        check_in_open_interval(name, probability, 0, 1)
    return checked


def check_thresholds(name, given, n_queries):
    """Thresholds of each query as an array (n_queries, n_thresholds); of one axis for all."""
    refuse_other_arrays(name, given)
    if np.ndim(given) < 2:
        thresholds = check_list(name, given)
        return np.broadcast_to(thresholds, (n_queries, len(thresholds)))
    try:
        thresholds = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        thresholds = np.empty(0)
    fits = thresholds.ndim == 2 and len(thresholds) == n_queries and thresholds.shape[1] > 0
    if not fits or np.isnan(thresholds).any():
        raise ValueError(
            f"{name} of shape {np.shape(given)} does not fit {n_queries} queries: pass an "
            "array of shape (n_thresholds,), the same for all queries, or of shape "
            "(n_queries, n_thresholds), a row for each query."
        )
    return thresholds


def check_choice(name, value, choices, other_names=None):
    """One of the choices, as it is; each may have other names, which errors translate."""
    known = isinstance(value, str)
    if known and value in choices:
        return value
    instead, why = _GONE.get((name, value), ("", "")) if known else ("", "")
    if instead in choices:
        raise ValueError(f"{name}={value!r} is gone in 0.2: use {instead!r}{why}.")
    hint = _hint(value, choices, other_names or {}) if known else ""
    raise ValueError(f"{name}={value!r} is unknown: {hint}choose from {sorted(choices)}.")


def _hint(value, choices, other_names):
    """Choices that an unknown name may stand for, as the start of a remedy."""
    plain = {_plain(choice): choice for choice in choices}
    meant = [known for known, names in other_names.items() if _plain(value) in names.split()]
    close = difflib.get_close_matches(_plain(value), plain, n=1)
    meant = meant or [plain[name] for name in close]
    return f"did you mean {' or '.join(map(repr, meant))}? " if meant else ""


def _plain(name):
    return name.lower().replace("-", "_").replace(" ", "_")


def check_flag(name, value, *others):
    """True or False, of Python or NumPy, as a bool; or one of some names."""
    if any(is_one_of(value, other) for other in others):
        return value
    if not isinstance(value, bool | np.bool_):
        names = "".join(f", or {other!r}" for other in others)
        raise ValueError(f"{name}={value!r} is not valid: pass True or False{names}.")
    return bool(value)


def check_bandwidth(bandwidth, n_features):
    """A positive bandwidth as a float, or one for each feature as an array."""
    given = bandwidth
    try:
        if isinstance(bandwidth, bool):
            raise TypeError
        bandwidth = np.asarray(bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"bandwidth={given!r} is not valid: pass a positive number or one for each feature."
        ) from None
    if bandwidth.ndim > 1 or (bandwidth.ndim == 1 and bandwidth.shape != (n_features,)):
        raise ValueError(
            f"bandwidth={given!r} has shape {bandwidth.shape}, but there are {n_features} "
            "features: pass one number, or one for each feature."
        )
    if not (np.isfinite(bandwidth).all() and (bandwidth > 0).all()):
        raise ValueError(
            f"bandwidth={given!r} is not valid: every bandwidth must be finite and greater "
            "than 0."
        )
    return float(bandwidth) if bandwidth.ndim == 0 else bandwidth


def check_columns(name, columns, n_features):
    """Positions of the columns of a named group as a list of non-negative ints.

    Given as one position, several or a slice; negative ones count from the end.
    """
    if isinstance(columns, slice):
        positions = range(n_features)[columns]
    else:
        positions = [columns] if isinstance(columns, numbers.Integral) else list(columns)
    valid = len(positions) > 0 and all(
        isinstance(position, numbers.Integral)
        and not isinstance(position, bool)
        and -n_features <= position < n_features
        for position in positions
    )
    if not valid:
        raise ValueError(
            f"columns={columns!r} of kernel {name!r} do not fit {n_features} features: "
            f"pass positions from 0 to {n_features - 1}."
        )
    return [int(position) % n_features for position in positions]


def check_key_weights(sample_weight, X, precision=np.float64):
    """Weights of the training rows X as an array (n_samples,), or None.

    As large as passed, but 0 where they are next to nothing in some precision.
    """
    if sample_weight is None:
        return None
    if is_partitioned(X):
        return _weights_of_partitions(sample_weight, X)
    sample_weight = read_weights(sample_weight, len(X))
    weights = own_copy(_check_sample_weight(sample_weight, X, dtype=np.float64))
    _check_total(len(weights) * float(weights.max()))
    return without_vanishing(weights, precision)


def limit_absent(x, weights):
    """Return a table in which rows of weight 0 are ten thousand ranges from others at most.

    They count nowhere, but products of 0 and huge numbers are rounded like these.
    """
    if weights is None or x.dtype.kind == "b":
        return x
    low, high = min_max_sum(x, weights)[:2]
    with np.errstate(over="ignore"):
        size = replace_zeros(np.where(high > low, high - low, np.abs(high)))
        limits = low - _FURTHEST_ABSENT * size, high + _FURTHEST_ABSENT * size
    smallest, largest = min_max_sum(x)[:2]
    beyond = (smallest < limits[0]) | (largest > limits[1])
    return x.clip(*limits).astype(x.dtype) if beyond.any() else x


def without_vanishing(weights, precision=np.float64):
    """Weights, but 0 for those whose square vanishes beside the largest."""
    light = (weights > 0) & (weights < np.sqrt(np.finfo(precision).tiny) * weights.max())
    return np.where(light, 0.0, weights) if light.any() else weights


def weight_unit(weights):
    """A power of two, which changes no digit, in which the largest weight is from 1 to 2.

    Of equal weights, which are then 1, their size.
    """
    smallest, largest = float(weights.min()), float(weights.max())
    return largest if smallest == largest else 2.0 ** (math.frexp(largest)[1] - 1)


def _weights_of_partitions(sample_weight, X):
    if isinstance(sample_weight, numbers.Number):
        sample_weight = np.full_like(X[:, 0], sample_weight, dtype=np.float64)
    check_numeric_types("sample_weight", sample_weight, "pass numbers")
    weights = as_array(sample_weight, "sample_weight", X.chunks[0]).astype(np.float64)
    if weights.ndim != 1:
        raise ValueError(
            f"sample_weight has shape {weights.shape}, which is not one weight for each row: "
            "pass an array of shape (n_samples,)."
        )
    smallest, largest, total = min_max_sum(weights)
    refuse_not_finite("sample_weight", max(largest, -smallest))
    if smallest < 0:
        raise ValueError(
            f"sample_weight has a negative value, {smallest:g}: pass weights that are 0 or "
            "greater."
        )
    if largest == 0:
        raise ValueError("sample_weight is zero for every row: leave at least one above 0.")
    _check_total(total)
    return weights * (weights >= np.sqrt(np.finfo(np.float64).tiny) * largest)


def _check_total(total):
    """Raise ValueError if weights are too large or too small to compute with."""
    if not np.finfo(np.float64).tiny <= total < np.inf:
        raise ValueError(
            f"sample_weight sums to {total:g}, too large or too small to compute with: divide "
            "it by its largest value."
        )


def has_validation_set(X_val, y_val):
    """True if a validation set was passed to ``fit``; an error if only one part of it was."""
    if (X_val is None) != (y_val is None):
        given, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(f"{given} was passed without {missing}: pass both, or neither.")
    return X_val is not None


def check_numeric_target(y, name="y"):
    """Targets of a regression as an array of numbers; ValueError if one is missing or none."""
    remedy = "convert them to numbers, or use a classifier if they are classes"
    if y is None or is_partitioned(y):
        check_numeric_types(name, y, remedy)
        return y
    return _refuse_missing(name, as_numbers(name, y, remedy))


def read_weights(sample_weight, n_rows):
    """Weights of rows as an array of numbers, or the one of all; None for None."""
    if sample_weight is None:
        return None
    weights = as_numbers("sample_weight", sample_weight, "pass numbers")
    if np.shape(weights) not in ((), (n_rows,)):
        raise ValueError(
            f"sample_weight has shape {np.shape(weights)}: pass one number for each of the "
            f"{n_rows} rows."
        )
    _refuse_missing("sample_weight", weights)
    if np.any(np.less(weights, 0)):
        raise ValueError(
            f"sample_weight has negative values, such as {np.min(weights)}: pass 0 or more."
        )
    if not np.any(weights):
        raise ValueError("sample_weight is zero for every row: leave at least one above 0.")
    return weights


def _refuse_missing(name, cells):
    if np.isnan(cells).any():
        raise ValueError(f"{name} has missing values (NaN, None or NA): drop those rows.")
    return cells


def as_numbers(name, cells, remedy, where=""):
    """Cells as an array of numbers, NaN where they are missing; an error names what is none."""
    if isinstance(cells, numbers.Number):
        return cells
    refuse_other_arrays(name, cells)
    # In an array of texts numbers beside them would be texts too.
    found = np.asarray(cells, dtype=None if hasattr(cells, "__array__") else object)
    if found.dtype.kind in "biufc":  # complex numbers are refused by scikit-learn
        return found
    if found.dtype.kind in "mM":
        found = np.array([*found.ravel()], dtype=object)
    read = np.frompyfunc(functools.partial(_number, name, remedy, where), 1, 1)
    return np.asarray(read(found), dtype=np.float64)


def _number(name, remedy, where, cell):
    # By their names, so that pandas is not imported.
    kind = type(cell).__name__
    if cell is None or kind == "NAType":
        return np.nan
    if isinstance(cell, _TIMES) or kind == "Period":
        raise ValueError(f"{name} has dates or times{where}, such as {cell!r}: {OF_TIMES}.")
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError) as error:
        cells = "texts" if isinstance(cell, str) else f"cells of type {kind}"
        of_type = isinstance(error, TypeError) and not isinstance(cell, list | tuple)
        raise (TypeError if of_type else ValueError)(
            f"{name} has {cells}{where}, such as {cell!r:.60}, not numeric ({error}): {remedy}."
        ) from error


def _refuse_gradients(name, given):
    """Raise TypeError for a tensor of torch that NumPy would not read."""
    if getattr(given, "requires_grad", False) is True:
        raise TypeError(
            f"{name} is a tensor with requires_grad=True, which is not supported: pass "
            f"{name}.detach()."
        )


def refuse_other_arrays(name, given):
    """Raise TypeError for what NumPy would not read as rows, or not as they are."""
    _refuse_gradients(name, given)
    flat = name in ("y", "y_val", "sample_weight")
    if issparse(given):
        what, remedy = "sparse", f"{name}.toarray(){'.squeeze()' if flat else ''}"
        remedy += "" if flat else ", or give a OneHotEncoder in front sparse_output=False"
    elif isinstance(given, list | tuple) and given and isinstance(given[0], dict):
        what, remedy = "a list of dicts", f"pandas.DataFrame({name})"
    elif isinstance(given, dict) or getattr(getattr(given, "dtype", None), "names", None):
        what = "a dict" if isinstance(given, dict) else "an array of records"
        remedy = f"pandas.DataFrame({name})"
    elif any(_is_masked(part) for part in (given if isinstance(given, list) else [given])):
        # NumPy reads what lies below the mask.
        what, masked = "masked in part", f"numpy.ma.array({name})"
        filled = f"{masked}.astype(float).filled(numpy.nan)"
        remedy = f"the rows of ~{masked}.mask" if flat else filled
    else:
        return
    raise TypeError(f"{name} is {what}, which is not supported: pass {remedy}.")


def _is_masked(given):
    return isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given)

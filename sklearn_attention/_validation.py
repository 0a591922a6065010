"""Checks of what users pass: each error names the parameter, the value and the remedy.

Functions named ``check_`` or ``read_`` return the value of the parameter `name`, converted to a
standard type, or raise an error. Those named ``refuse_`` only raise an error.
"""

import datetime
import difflib
import functools
import math
import numbers

import numpy as np
from scipy.sparse import issparse

from ._blocks import check_memory
from ._partitions import check_numeric_types, is_partitioned

_TIMES = datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64
# Parameter values of earlier versions, with the value that replaces each of them, and the
# reason.
_REASON_FOR_NAN = ", which shows which queries have no row near"
_REPLACED_VALUES = {
    ("bandwidth", "plug-in"): ("loo", ""),
    ("empty", "mean"): ("nan", _REASON_FOR_NAN),
    ("empty", "raise"): ("nan", _REASON_FOR_NAN),
    ("empty", "widen"): ("nearest", ""),
}
# Values of parameters that are switched on, off, or automatically; see `is_one_of`.
TRUE_FALSE_AUTO = True, False, "auto"
# Remedy in messages about dates and times.
OF_TIMES = "make numbers of them, such as the days since the first, or the day of the week"


def check_positive(name, value, *, integer=False, minimum=None):
    """Return a positive finite number, of at least `minimum` if it is not None.

    It becomes a float, or an int if `integer`. ValueError names the parameter.
    """
    kind = numbers.Integral if integer else numbers.Real
    valid = isinstance(value, kind) and not isinstance(value, bool) and _is_finite(value)
    if valid and integer and value >= 2**63:
        raise ValueError(f"{name}={value!r} is not valid: pass an integer below 2**63.")
    if not valid or value <= 0 or (minimum is not None and value < minimum):
        noun = "an integer" if integer else "a finite number"
        bound = f"at least {minimum}" if minimum is not None else "greater than 0"
        raise ValueError(f"{name}={value!r} is not valid: pass {noun} {bound}.")
    # A NumPy scalar, such as grids contain, is converted: it would turn float32 arrays into
    # float64.
    return int(value) if integer else float(value)


def check_gap(gap):
    """Return the number of rows on either side that are left out; ValueError if not valid."""
    is_integer = isinstance(gap, numbers.Integral) and not isinstance(gap, bool)
    if not is_integer or gap < 0:
        raise ValueError(f"gap={gap!r} is not valid: pass an integer that is not negative.")
    return int(gap)


def check_size(name, value, *other_axes):
    """Return a positive integer if an array of shape (value, *other_axes) fits into memory."""
    value = check_positive(name, value, integer=True)
    check_memory(f"{name}={value}", (value, *other_axes), "pass a smaller number")
    return value


def _is_finite(value):
    try:
        return math.isfinite(value)
    except OverflowError:  # the integer is larger than all floats
        return False


def basic_types(cells):
    """Return the basic types of cells: a set of text, bool, number and object."""
    kinds = str, bool | np.bool_, numbers.Number, object
    return {next(kind for kind in kinds if isinstance(cell, kind)) for cell in cells}


def is_one_of(value, *options):
    """Return True if a value, which may be an array, equals one of the scalar options."""
    return isinstance(value, str | numbers.Number | np.bool_ | None) and value in options


def is_interval(bounds):
    """Return True for a pair (low, high) with low < high; None stands for infinity."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        return False
    if not all(x is None or isinstance(x, numbers.Real) for x in bounds):
        return False
    low, high = bounds
    return (-np.inf if low is None else low) < (np.inf if high is None else high)


def check_target_bounds(bounds):
    """Raise ValueError unless the parameter `bounds` of targets is "auto", None or a pair."""
    if bounds is None or is_one_of(bounds, "auto"):
        return
    is_list = not isinstance(bounds, str) and np.ndim(bounds) > 0
    if not (is_list and is_interval(tuple(bounds))):
        raise ValueError(
            f"bounds={bounds!r} is not valid: pass 'auto', None, or a pair (lower, upper) with "
            "lower below upper, either of which may be None."
        )


def check_in_interval(name, value, low, high, *, closed_right=True):
    """Return a number from low to high as a float; high is excluded if not `closed_right`."""
    is_inside = (
        isinstance(value, numbers.Real)
        and low <= value <= high
        and _is_finite(value)
        and (closed_right or value < high)
    )
    if not is_inside:
        end = "]" if closed_right else ")"
        raise ValueError(
            f"{name}={value!r} is not valid: pass a number in [{low:g}, {high:g}{end}."
        )
    return float(value)


def check_in_open_interval(name, value, low, high):
    """Return a number strictly between low and high as a float."""
    if not (isinstance(value, numbers.Real) and low < value < high):
        raise ValueError(
            f"{name}={value!r} is not valid: pass a number between {low:g} and {high:g}."
        )
    return float(value)


def check_list(name, value):
    """Return one or several numbers as an array (n,); none of them may be NaN."""
    _refuse_gradients(name, value)
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not len(numbers) or np.isnan(numbers).any():
        raise ValueError(
            f"{name}={value!r} is not a list of numbers: pass a list of at least one number."
        )
    return numbers


def check_probabilities(name, value):
    """Return probabilities strictly between 0 and 1 as an array (n,)."""
    probabilities = check_list(name, value)
    for probability in probabilities.tolist():
        check_in_open_interval(name, probability, 0, 1)
    return probabilities


def check_thresholds(name, value, n_queries):
    """Return the thresholds of each query, (n_queries, n_thresholds).

    A number, or a list of numbers, holds for all queries.
    """
    refuse_other_arrays(name, value)
    if np.ndim(value) < 2:
        thresholds = check_list(name, value)
        return np.broadcast_to(thresholds, (n_queries, len(thresholds)))
    try:
        thresholds = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        thresholds = np.empty(0)
    fits = thresholds.ndim == 2 and len(thresholds) == n_queries and thresholds.shape[1] > 0
    if not fits or np.isnan(thresholds).any():
        raise ValueError(
            f"{name} of shape {np.shape(value)} does not fit {n_queries} queries: pass an "
            "array of shape (n_thresholds,), the same for all queries, or of shape "
            "(n_queries, n_thresholds), a row for each query."
        )
    return thresholds


def check_choice(name, value, choices, other_names=None):
    """Return a value if it is one of the choices; otherwise raise ValueError with a suggestion.

    `other_names` is a dict from a choice to other names of it, in one text with spaces. For
    these, errors suggest the choice.
    """
    is_text = isinstance(value, str)
    if is_text and value in choices:
        return value
    replacement, reason = "", ""
    if is_text:
        replacement, reason = _REPLACED_VALUES.get((name, value), ("", ""))
    if replacement in choices:
        raise ValueError(f"{name}={value!r} is gone in 0.2: use {replacement!r}{reason}.")
    hint = _suggestion(value, choices, other_names or {}) if is_text else ""
    raise ValueError(f"{name}={value!r} is unknown: {hint}choose from {sorted(choices)}.")


def _suggestion(value, choices, other_names):
    """Return a question with the choices that an unknown name may mean, or an empty text."""
    normalized = _normalize_name(value)
    candidates = [
        choice for choice, names in other_names.items() if normalized in names.split()
    ]
    if not candidates:
        choice_of_name = {_normalize_name(choice): choice for choice in choices}
        close = difflib.get_close_matches(normalized, choice_of_name, n=1)
        candidates = [choice_of_name[name] for name in close]
    return f"did you mean {' or '.join(map(repr, candidates))}? " if candidates else ""


def _normalize_name(name):
    return name.lower().replace("-", "_").replace(" ", "_")


def check_flag(name, value, *options):
    """Return a bool of Python for a bool of Python or NumPy; return an option as it is."""
    if is_one_of(value, *options):
        return value
    if not isinstance(value, bool | np.bool_):
        names = "".join(f", or {option!r}" for option in options)
        raise ValueError(f"{name}={value!r} is not valid: pass True or False{names}.")
    return bool(value)


def check_bandwidth(bandwidth, n_features):
    """Return a positive bandwidth as a float, or an array with one for each feature."""
    try:
        if isinstance(bandwidth, bool):
            raise TypeError
        widths = np.asarray(bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"bandwidth={bandwidth!r} is not valid: pass a positive number or one for each "
            "feature."
        ) from None
    if widths.ndim > 1 or (widths.ndim == 1 and widths.shape != (n_features,)):
        raise ValueError(
            f"bandwidth={bandwidth!r} has shape {widths.shape}, but there are {n_features} "
            "features: pass one number, or one for each feature."
        )
    if not (np.isfinite(widths).all() and (widths > 0).all()):
        raise ValueError(
            f"bandwidth={bandwidth!r} is not valid: every bandwidth must be finite and greater "
            "than 0."
        )
    return float(widths) if widths.ndim == 0 else widths


def check_columns(name, columns, n_features):
    """Return the positions of the columns of a named kernel as a list of non-negative ints.

    `columns` is one position, several or a slice; negative positions count from the end.
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


def has_validation_set(X_val, y_val):
    """Return True if a validation set was passed to ``fit``; ValueError if only X or y was."""
    if (X_val is None) != (y_val is None):
        passed, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(f"{passed} was passed without {missing}: pass both, or neither.")
    return X_val is not None


def check_numeric_target(y, name="y"):
    """Return targets of a regression as an array of numbers, none of them missing.

    Dask collections are returned as they are, if their types are numeric.
    """
    remedy = "convert them to numbers, or use a classifier if they are classes"
    if y is None or is_partitioned(y):
        check_numeric_types(name, y, remedy)
        return y
    return refuse_missing(name, as_numbers(name, y, remedy))


def refuse_missing(name, cells):
    """Return numbers if none of them is missing; otherwise raise ValueError."""
    if np.isnan(cells).any():
        raise ValueError(f"{name} has missing values (NaN, None or NA): drop those rows.")
    return cells


def as_numbers(name, cells, remedy, where=""):
    """Convert cells to an array of numbers, NaN where they are missing.

    An error names the first cell that is no number. `where` says in the message which column
    the cells of `name` are from, and `remedy` what the user can do.
    """
    if isinstance(cells, numbers.Number):
        return cells
    refuse_other_arrays(name, cells)
    # Lists become arrays of objects, since in an array of texts numbers would become texts.
    array = np.asarray(cells, dtype=None if hasattr(cells, "__array__") else object)
    if array.dtype.kind in "biufc":  # scikit-learn refuses complex numbers later
        return array
    if array.dtype.kind in "mM":
        array = np.array([*array.ravel()], dtype=object)
    convert = np.frompyfunc(functools.partial(_to_float, name, remedy, where), 1, 1)
    return np.asarray(convert(array), dtype=np.float64)


def _to_float(name, remedy, where, cell):
    """Convert a cell to a float, NaN if it is missing; the other arguments are for messages."""
    # Types of pandas are recognized by their names, so that pandas is not imported.
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


def _refuse_gradients(name, value):
    """Raise TypeError for a tensor that requires a gradient, which NumPy cannot read."""
    if getattr(value, "requires_grad", False) is True:
        raise TypeError(
            f"{name} is a tensor with requires_grad=True, which is not supported: pass "
            f"{name}.detach()."
        )


def refuse_other_arrays(name, value):
    """Raise TypeError for sparse, masked and other data that NumPy cannot read unchanged."""
    _refuse_gradients(name, value)
    is_flat = name in ("y", "y_val", "sample_weight")
    if issparse(value):
        what, remedy = "sparse", f"{name}.toarray(){'.squeeze()' if is_flat else ''}"
        remedy += "" if is_flat else ", or give a OneHotEncoder in front sparse_output=False"
    elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        what, remedy = "a list of dicts", f"pandas.DataFrame({name})"
    elif isinstance(value, dict) or getattr(getattr(value, "dtype", None), "names", None):
        what = "a dict" if isinstance(value, dict) else "an array of records"
        remedy = f"pandas.DataFrame({name})"
    elif any(_has_mask(array) for array in (value if isinstance(value, list) else [value])):
        # NumPy would read the cells below the mask.
        what, masked = "masked in part", f"numpy.ma.array({name})"
        filled = f"{masked}.astype(float).filled(numpy.nan)"
        remedy = f"the rows of ~{masked}.mask" if is_flat else filled
    else:
        return
    raise TypeError(f"{name} is {what}, which is not supported: pass {remedy}.")


def _has_mask(array):
    return isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array)

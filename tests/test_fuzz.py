"""Any call with any data gives finite results of the promised shape, or an error that is meant.

``SKLEARN_ATTENTION_FUZZ_SEED`` draws other calls than 0.
"""

import numbers
import os
import re
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from fuzz_calls import draw_call
from fuzz_forms import draw_form

# Models among the calls may warn of the data that they are fitted to.
pytestmark = pytest.mark.filterwarnings("ignore")

SEED = int(os.environ.get("SKLEARN_ATTENTION_FUZZ_SEED", "0"))
N_CALLS, N_FORMS, CALLS_AT_A_TIME = 5_000, 1_500, 100
MEANT = ValueError, TypeError, MemoryError, FloatingPointError
# What is raised within NumPy, torch and Python where nobody checked.
UNMEANT = re.compile(
    "ambiguous|could not be broadcast|not aligned|values to unpack|zero-size array|"
    "cannot reshape|unsupported operand|not supported between|not subscriptable|bad operand|"
    "object is not iterable|has no len|must be real number|Singular|mismatch in its core|"
    "cannot be interpreted as an integer|only integer scalar|ufunc '|argmax of an empty|"
    "need at least one array|is out of bounds|not converge|invalid literal"
)


def is_meant(error, call):
    """Whether an error is one that users are to see."""
    if isinstance(error, AttributeError) and not isinstance(error, ValueError):
        # Methods that an estimator has for some parameters alone.
        method = call.name.rpartition(".")[2]
        return bool(re.search(f"has no attribute '{method}'|^{method} needs", str(error)))
    if call.name.endswith("Classifier.score") and "'<' not supported" in str(error):
        return True  # scikit-learn's, about labels that have no order
    if isinstance(error, LookupError | np.linalg.LinAlgError):
        return False
    return isinstance(error, MEANT) and not UNMEANT.search(str(error))


def arrays_in(result):
    """All numbers in a result as arrays."""
    if isinstance(result, torch.Tensor):
        return [result.detach().numpy()]
    if isinstance(result, np.ndarray | pd.Series | pd.DataFrame | numbers.Number):
        found = np.asarray(result)
        return [found] if found.dtype.kind in "fc" else []
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [array for part in result for array in arrays_in(part)]
    return []


def state_of(model):
    """Return attributes as objects, and copies of arrays; cached results may change."""
    return {
        name: (value, value.copy() if isinstance(value, np.ndarray) else None)
        for name, value in vars(model).items()
        if name != "_memo"
    }


def is_as_before(model, before):
    after = vars(model)
    return after.keys() - {"_memo"} == before.keys() and all(
        after[name] is value
        and (held is None or np.array_equal(value, held, equal_nan=value.dtype.kind == "f"))
        for name, (value, held) in before.items()
    )


def fault_of(call):
    """What is wrong with the outcome of a call; None if nothing."""
    before = None if call.model is None else state_of(call.model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call.call()
    except Exception as error:
        if before is not None and not is_as_before(call.model, before):
            return f"{call} raised {error!r} and changed the estimator"
        if is_meant(error, call):
            return None
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{call} raised {error!r:.200} in {place.filename[-50:]}:{place.lineno}"
    if call.n_rows is not None and len(result) != call.n_rows:
        return f"{call} has {len(result)} rows, not {call.n_rows}"
    if call.moderate and not all(np.isfinite(array).all() for array in arrays_in(result)):
        return f"{call} is not finite"
    return None


@pytest.mark.parametrize("number", range(50))
def test_a_cheap_call(number):
    assert fault_of(draw_call(np.random.default_rng([SEED, number]), cheap=True)) is None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_CALLS // CALLS_AT_A_TIME))
def test_calls(part):
    rng = np.random.default_rng([SEED, part, 0])
    faults = [fault_of(draw_call(rng)) for _ in range(CALLS_AT_A_TIME)]
    assert [fault for fault in faults if fault is not None] == []


# What an error is about: an argument, a column, or a parameter and its value.
NAMED = re.compile(
    r"\b(X|y|y_true|sample_weight|history|labels?|columns?)\b|\w=|required by|Complex data"
)


def fault_of_form(call):
    """What is wrong with a call about data in some form: its error names what it is about."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call.call()
    except Exception as error:
        if is_meant(error, call) and NAMED.search(str(error)):
            return None
        return f"{call} raised {error!r:.300}"
    finite = all(np.isfinite(array).all() for array in arrays_in(result))
    return None if finite else f"{call} is not finite"


@pytest.mark.parametrize("number", range(20))
def test_a_form(number):
    call = draw_form(np.random.default_rng([SEED, number, 1]))
    assert call is None or fault_of_form(call) is None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_FORMS // CALLS_AT_A_TIME))
def test_forms(part):
    rng, faults = np.random.default_rng([SEED, part, 2]), []
    for _ in range(CALLS_AT_A_TIME):
        call = None
        while call is None:
            call = draw_form(rng)
        faults.append(fault_of_form(call))
    assert [fault for fault in faults if fault is not None] == []

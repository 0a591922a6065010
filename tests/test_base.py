"""State of estimators that hold dataclasses."""

import copy
import pickle
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_attention import NadarayaWatsonRegressor, ProductKernelDensity
from sklearn_attention._base import AttentionEstimator, parameters


@dataclass(frozen=True)
class Inner:
    """Held in another one."""

    numbers: np.ndarray


@dataclass(frozen=True)
class Outer:
    """Holds others, one by one and in lists."""

    name: str
    inner: Inner
    several: list


@dataclass(frozen=True)
class Foreign:
    """Not among what the estimator says that it holds."""

    number: int


@parameters
class Fitter(AttentionEstimator):
    """Has parameters that others inherit."""

    steps: int = 3
    _: KW_ONLY
    rate: float = 0.1
    names: list | None = None


@parameters
class LongFitter(Fitter):
    """Takes more steps, and has one more parameter."""

    steps: int = 30
    _: KW_ONLY
    tolerance: float = 1e-3


class TestParameters:
    def test_fields_are_the_parameters(self):
        assert Fitter().get_params() == {"steps": 3, "rate": 0.1, "names": None}
        model = clone(LongFitter(5, tolerance=0.5).set_params(rate=1.0))
        expected = {"steps": 5, "rate": 1.0, "names": None, "tolerance": 0.5}
        assert model.get_params() == vars(model) == expected
        assert repr(model) == "LongFitter(rate=1.0, steps=5, tolerance=0.5)"
        assert LongFitter().steps == 30

    def test_estimators_are_equal_only_to_themselves(self):
        model = Fitter()
        assert model != Fitter()
        assert len({model, Fitter()}) == 2

    def test_errors_name_the_class(self):
        with pytest.raises(TypeError, match=r"LongFitter\.__init__\(\) got an unexpected"):
            LongFitter(rates=1)
        with pytest.raises(TypeError, match=r"LongFitter\.__init__\(\) takes from 1 to 2"):
            LongFitter(1, 2)


class Holder(AttentionEstimator):
    """An estimator whose fitted attributes are dataclasses."""

    _held = (Inner, Outer)
    _form = "one_", Inner

    def __init__(self, parameter=1):
        self.parameter = parameter

    def fit(self):
        """Set what is held."""
        self.one_ = Inner(np.arange(3.0))
        self.all_ = [Outer("a", Inner(np.zeros(2)), [Inner(np.ones(1)), 7])] * 2
        self.plain_ = {"kind": "a dict", "list": [1, [2]]}
        self.empty_ = []
        self._memo = {"computed": 1}
        return self


def types_in(value):
    """Types of all values in a state."""
    if isinstance(value, dict):
        return {dict}.union(*map(types_in, value.values()))
    if isinstance(value, list):
        return {list}.union(*map(types_in, value))
    return {type(value)}


def test_the_state_has_no_types_of_the_package():
    skops = pytest.importorskip("skops.io")
    model = Holder().fit()
    state = model.__getstate__()
    assert types_in(state) <= {dict, list, str, int, np.ndarray}
    assert state["_memo"] == {}
    (unknown,) = skops.get_untrusted_types(data=skops.dumps(model))
    assert unknown.endswith(".Holder")
    # Other dataclasses stay as they are.
    model.other_ = Foreign(4)
    assert type(model.__getstate__()["other_"]) is Foreign


@pytest.mark.parametrize("store", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_hold_the_same(store):
    model = Holder(parameter=3).fit()
    loaded = store(model)
    assert loaded.get_params() == {"parameter": 3}
    assert type(loaded.one_) is Inner
    np.testing.assert_array_equal(loaded.one_.numbers, [0, 1, 2])
    assert len(loaded.all_) == 2
    for outer in loaded.all_:
        assert (type(outer), outer.name, type(outer.inner)) == (Outer, "a", Inner)
        assert type(outer.several[0]) is Inner
        assert outer.several[1] == 7
    assert (loaded.plain_, loaded.empty_, loaded._memo) == (model.plain_, [], {})
    # The estimator itself keeps what it has.
    assert type(model.one_) is Inner
    assert model._memo == {"computed": 1}
    assert vars(store(Holder(parameter=2))) == {"parameter": 2}


def test_a_state_of_an_earlier_form_is_refused_by_name():
    state = Holder().fit().__getstate__()
    del state["stored form"]
    with pytest.raises(ValueError, match=r"was stored by a development version.* fit it"):
        Holder().__setstate__(state)


def test_warnings_point_to_the_line_that_fits():
    """Or that lets others fit, such as the folds of a search."""
    names = pd.DataFrame({"name": map(str, range(93))})
    average = NadarayaWatsonRegressor(bandwidth=1.0)
    points = np.repeat([[0.0], [1.0], [3.0]], 31, axis=0)
    for words, fit in (
        ("its floor", lambda y: ProductKernelDensity().fit(points, y)),
        ("93 different texts", lambda y: average.fit(names, y)),
        ("62 different", lambda y: cross_val_score(make_pipeline(average), names, y, cv=3)),
    ):
        with pytest.warns(UserWarning, match=words) as caught:
            fit(np.arange(93))
        assert {warning.filename for warning in caught} == {__file__}

"""Base class of the estimators, and a decorator that undoes a fit that fails.

Estimators are stored by pickle, joblib or skops. A stored state has the attributes by name. In
these, each dataclass of this package is a dict of its fields; see `_flatten` and `_build`.
"""

import copyreg
import functools
import importlib.metadata
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.callback import with_callbacks as sklearn_with_callbacks

from . import _thread_pools
from ._partitions import need_all_rows

# Packages whose frames on the stack are skipped when a warning names the user's line.
_INTERNAL = f"{__package__}.", "sklearn.", "joblib.", "contextlib"
# In the dict that stores the fields of a dataclass, the key of its class name.
_CLASS_KEY = "dataclass"
Method = TypeVar("Method", bound=Callable[..., Any])
Kind = TypeVar("Kind")
# Key and current value of the form of stored states: 1 in version 0.1.0, 2 since 0.2.0.
_FORM_KEY, _CURRENT_FORM = "stored form", 2
# Attributes that are computed when they are first needed, and that every fit discards.
_COMPUTED_ATTRIBUTES = "_memo", "_background"


class OwnInit:
    """Mixin that gives each subclass a copy of the inherited ``__init__`` under its own name.

    Errors about parameters then name the class that was called, not its base class.
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        base = cls.__init__
        if "__init__" in vars(cls) or not isinstance(base, types.FunctionType):
            return  # the class has its own, or inherits that of `object`
        init = types.FunctionType(
            base.__code__, base.__globals__, "__init__", base.__defaults__, base.__closure__
        )
        init.__kwdefaults__, init.__doc__ = base.__kwdefaults__, base.__doc__
        init.__annotations__ = base.__annotations__
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        # An assignment would hide the signature from tools that read the source.
        setattr(cls, "__init__", init)  # noqa: B010


@dataclass_transform(eq_default=False)
def parameters(kind: type[Kind]) -> type[Kind]:
    """Make the annotated fields of an estimator its parameters, which `__init__` stores.

    Fields after ``_: KW_ONLY`` are keywords. A subclass may repeat a field of its base class
    with another default or type.
    """
    if "__init__" in vars(kind):  # the copy made by OwnInit, which `dataclass` would keep
        del kind.__init__
    return dataclass(eq=False, repr=False)(kind)


class AttentionEstimator(OwnInit, CallbackSupportMixin, BaseEstimator):
    """Base class of the estimators: callbacks, and a link to the docs in their HTML."""

    _doc_link_module = "sklearn_attention"
    # Classes of the dataclasses in fitted attributes, also in lists and in other dataclasses.
    # Pickles and files have dicts of their fields, so that no type has to be trusted.
    _held = ()
    # Pairs of the name of a dataclass and a function that builds it from the fields that
    # earlier versions stored.
    _builders = ()

    def __reduce_ex__(self, protocol):
        # pickle and copy call this method, and skops calls the next one.
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __reduce__(self):
        # skops cannot store tasks of Dask, and its own messages do not say why.
        for value in vars(self).values():
            need_all_rows(
                f"files of {type(self).__name__} by skops",
                *(vars(value).values() if type(value) in self._held else [value]),
                remedy="use pickle, or fit rows in memory, such as X.compute(), and dump that",
            )
        return super().__reduce__()

    def __getstate__(self):
        state = super().__getstate__()
        state = {name: _flatten(value, self._held) for name, value in state.items()}
        # Results of `_cached` are not stored, but computed again.
        return state | ({"_memo": {}} if "_memo" in state else {}) | {_FORM_KEY: _CURRENT_FORM}

    def __setstate__(self, state):
        # The form is the layout of the fitted attributes; files of 0.2.0 have the current one.
        builders = {kind.__name__: kind for kind in self._held} | dict(self._builders)
        attributes = {name: _build(value, builders) for name, value in state.items()}
        attributes.pop(_FORM_KEY, None)
        super().__setstate__(attributes)
        is_fitted = any(name.endswith("_") and not name.startswith("_") for name in state)
        if is_fitted and state.get(_FORM_KEY) != _CURRENT_FORM:
            version = "0.1.0" if _FORM_KEY in state else "a development version before 0.1.0"
            raise ValueError(
                f"{type(self).__name__} was stored by {version}, whose fitted attributes "
                "differ from those of this version: fit it again with this version."
            )

    def _get_fitted_attr_html(self, doc_link=""):
        # scikit-learn would read all properties, and some compute a kernel of all pairs of
        # rows. So it is given an object with the stored attributes and the properties in
        # `_views`.
        views = {name: getattr(self, name) for name in self._views if hasattr(self, name)}
        stored = types.SimpleNamespace(**vars(self) | views)
        html = BaseEstimator._get_fitted_attr_html(stored, doc_link)
        html.estimator_class = type(self)
        return html

    # Names of properties that HTML shows besides stored attributes.
    _views = ()

    def _cached(self, name, compute):
        """Return the result of ``compute()``, stored under a name until the next fit."""
        memo = vars(self).setdefault("_memo", {})
        if name not in memo:
            memo[name] = compute()
        return memo[name]

    def _keep(self, *names, **values):
        """Store the present values of the named parameters, and other values, in ``_kept``.

        Predictions use these values, so that they do not change if a parameter is set later.
        """
        self._kept = {name: getattr(self, name) for name in names} | values

    @property
    def _doc_link_template(self):
        version = importlib.metadata.version("sklearn-attention")
        version = "latest" if "dev" in version else f"v{version}"
        return (
            f"https://sklearn-attention.readthedocs.io/en/{version}/api/generated/"
            "sklearn_attention.{estimator_name}.html"
        )


def _flatten(value, kinds):
    """Replace dataclasses of some classes, also in lists, by dicts of their fields."""
    if type(value) in kinds:
        # Fields that are no arguments are skipped, since they are computed from the others.
        names = [field.name for field in fields(value) if field.init]
        stored = {name: _flatten(getattr(value, name), kinds) for name in names}
        return stored | {_CLASS_KEY: type(value).__name__}
    return [_flatten(item, kinds) for item in value] if type(value) is list else value


def _build(value, builders):
    """Undo `_flatten`: build the dataclasses whose fields it has stored in dicts.

    `builders` maps the name of a class to the class, or to a function that takes the stored
    fields as keywords.
    """
    # A user's dict that happens to have this key is left as it is, since its value is no name
    # of a class in `builders`.
    name = value.get(_CLASS_KEY) if isinstance(value, dict) else None
    if isinstance(name, str) and name in builders:
        stored = {key: _build(item, builders) for key, item in value.items()}
        del stored[_CLASS_KEY]
        return builders[name](**stored)
    return [_build(item, builders) for item in value] if type(value) is list else value


def warn_user(*messages):
    """Warn at the line of the user's code that called this package, directly or indirectly."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_INTERNAL):
        frame, level = frame.f_back, level + 1
    for message in messages:
        warnings.warn(message, UserWarning, stacklevel=level)


def with_callbacks(method: Method) -> Method:
    """Apply scikit-learn's decorator of `fit`, and keep the type of the method."""
    return cast(Method, sklearn_with_callbacks(method))


def _save_modes():
    """Return a function that restores the present modes of NumPy, BLAS and torch."""
    thread_contexts = _thread_pools.contexts_of_this_thread()
    error_modes, torch = np.geterr(), sys.modules.get("torch")
    # These are torch's defaults, for the case that it is not loaded yet.
    has_gradients, has_cache, autocast_depth = True, True, 0
    has_autocast = {"cpu": False, "cuda": False}
    if torch is not None:
        has_gradients, has_cache = torch.is_grad_enabled(), torch.is_autocast_cache_enabled()
        has_autocast = {device: torch.is_autocast_enabled(device) for device in has_autocast}
        # The depth is returned only by a function that increments it.
        autocast_depth = torch.autocast_increment_nesting() - 1
        torch.autocast_decrement_nesting()

    def restore():
        np.seterr(**error_modes)
        _thread_pools.leave_contexts_since(thread_contexts)
        torch = sys.modules.get("torch")
        if torch is None:
            return
        torch.set_grad_enabled(has_gradients)
        torch.set_autocast_cache_enabled(has_cache)
        for device, enabled in has_autocast.items():
            torch.set_autocast_enabled(device, enabled)
        for _ in range(torch.autocast_increment_nesting() - autocast_depth):
            torch.autocast_decrement_nesting()

    return restore


def keeps_state_on_failure(method: Method) -> Method:
    """Decorate a method that fits: if it raises, all attributes are as they were before."""

    @functools.wraps(method)
    def fit_or_nothing(estimator, *args, **kwargs):
        attributes, restore_modes = vars(estimator).copy(), _save_modes()
        for name in _COMPUTED_ATTRIBUTES:
            vars(estimator).pop(name, None)
        try:
            return method(estimator, *args, **kwargs)
        except BaseException:
            # All attributes are replaced in one step, which no further interrupt can divide.
            estimator.__dict__ = attributes
            # The modes are restored too, since an interrupt may come while a context ends.
            restore_modes()
            raise

    return cast(Method, fit_or_nothing)

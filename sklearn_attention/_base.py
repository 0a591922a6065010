"""Base class of the estimators, and fits that change nothing when they fail."""

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

# Packages whose frames are between the user and a warning.
_OWN = f"{__package__}.", "sklearn.", "joblib.", "contextlib"
_KIND = "dataclass"  # where the name of a dataclass is kept among its fields
Method = TypeVar("Method", bound=Callable[..., Any])
Kind = TypeVar("Kind")
_FORM, _CURRENT = "stored form", 2  # of states: 1 in version 0.1.0, 2 since 0.2.0
# Attributes that are computed when they are first needed; every fit discards them.
_COMPUTED = "_memo", "_background"


class OwnInit:
    """Mixin: errors about parameters name the class that was called, not its base class."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        found = cls.__init__
        if "__init__" in vars(cls) or not isinstance(found, types.FunctionType):
            return
        init = types.FunctionType(
            found.__code__, found.__globals__, "__init__", found.__defaults__, found.__closure__
        )
        init.__kwdefaults__, init.__doc__ = found.__kwdefaults__, found.__doc__
        init.__annotations__ = found.__annotations__
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        # An assignment would hide the signature from tools that read the source.
        setattr(cls, "__init__", init)  # noqa: B010


@dataclass_transform(eq_default=False)
def parameters(kind: type[Kind]) -> type[Kind]:
    """Make the annotated fields of an estimator its parameters, which `__init__` stores.

    Fields after ``_: KW_ONLY`` are keywords. A field in a subclass with another default or type
    takes the place of that in the base class.
    """
    if "__init__" in vars(kind):  # that of OwnInit, which would stay
        del kind.__init__
    return dataclass(eq=False, repr=False)(kind)


class AttentionEstimator(OwnInit, CallbackSupportMixin, BaseEstimator):
    """Base class of the estimators: callbacks, and a link to the docs in their HTML."""

    _doc_link_module = "sklearn_attention"
    # Dataclasses in the fitted attributes, themselves, in lists or in one another. Pickles and
    # files have their fields in a dict, so that no type has to be trusted.
    _held = ()
    # Functions that build dataclasses whose fields earlier versions stored otherwise, by name.
    _builders = ()

    def __reduce_ex__(self, protocol):
        # Of pickle and copy, which would begin by `__reduce__` as well.
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __reduce__(self):
        # skops begins here, and fails in tasks of Dask by messages of its own.
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
        # Results of `_cached` are computed again.
        return state | ({"_memo": {}} if "_memo" in state else {}) | {_FORM: _CURRENT}

    def __setstate__(self, state):
        kinds = {kind.__name__: kind for kind in self._held} | dict(self._builders)
        own = {name: _build(value, kinds) for name, value in state.items() if name != _FORM}
        super().__setstate__(own)
        fitted = any(name.endswith("_") and not name.startswith("_") for name in state)
        if fitted and state.get(_FORM) != _CURRENT:
            version = "0.1.0" if _FORM in state else "a development version before 0.1.0"
            raise ValueError(
                f"{type(self).__name__} was stored by {version}, whose fitted attributes "
                "differ from those of this version: fit it again with this version."
            )

    def _get_fitted_attr_html(self, doc_link=""):
        # scikit-learn would read properties too, some of which pass over all pairs of rows.
        views = {name: getattr(self, name) for name in self._views if hasattr(self, name)}
        stored = types.SimpleNamespace(**vars(self) | views)
        found = BaseEstimator._get_fitted_attr_html(stored, doc_link)
        found.estimator_class = type(self)
        return found

    # Views of the fit that HTML shows besides what is stored.
    _views = ()

    def _cached(self, name, compute):
        """Return the result of that name, which is computed once after each fit."""
        memo = vars(self).setdefault("_memo", {})
        if name not in memo:
            memo[name] = compute()
        return memo[name]

    def _keep(self, *names, **values):
        """Keep parameters as they are in this fit: if they change later, predictions do not."""
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
    if type(value) in kinds:
        # Fields that are not arguments hold what is computed again.
        own = ((part.name, getattr(value, part.name)) for part in fields(value) if part.init)
        found = {name: _flatten(part, kinds) for name, part in own}
        return found | {_KIND: type(value).__name__}
    return [_flatten(item, kinds) for item in value] if type(value) is list else value


def _build(value, kinds):
    # A user's dict may have that key too, but no kind for it.
    if isinstance(value, dict) and isinstance(value.get(_KIND), str) and value[_KIND] in kinds:
        found = {name: _build(item, kinds) for name, item in value.items() if name != _KIND}
        return kinds[value[_KIND]](**found)
    return [_build(item, kinds) for item in value] if type(value) is list else value


def warn_user(*messages):
    """Warn at the line that called this package, be it through scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
        frame, level = frame.f_back, level + 1
    for message in messages:
        warnings.warn(message, UserWarning, stacklevel=level)


def with_callbacks(method: Method) -> Method:
    """scikit-learn's decorator of `fit`, which keeps the type of what it decorates."""
    return cast(Method, sklearn_with_callbacks(method))


def _modes():
    """A function that restores the modes of NumPy, BLAS and torch that fits may change."""
    contexts = _thread_pools.contexts_of_this_thread()
    errors, torch = np.geterr(), sys.modules.get("torch")
    gradients, autocast, cache, depth = True, dict.fromkeys(("cpu", "cuda"), False), True, 0
    if torch is not None:
        gradients, cache = torch.is_grad_enabled(), torch.is_autocast_cache_enabled()
        autocast = {device: torch.is_autocast_enabled(device) for device in autocast}
        depth = torch.autocast_increment_nesting() - 1
        torch.autocast_decrement_nesting()

    def restore():
        np.seterr(**errors)
        _thread_pools.leave_contexts_since(contexts)
        torch = sys.modules.get("torch")
        if torch is None:
            return
        torch.set_grad_enabled(gradients)
        torch.set_autocast_cache_enabled(cache)
        for device, enabled in autocast.items():
            torch.set_autocast_enabled(device, enabled)
        for _ in range(torch.autocast_increment_nesting() - depth):
            torch.autocast_decrement_nesting()

    return restore


def keeps_state_on_failure(method: Method) -> Method:
    """Decorate a method that fits, and assigns attributes: if it raises, they are as before."""

    @functools.wraps(method)
    def fit_or_nothing(estimator, *args, **kwargs):
        before, restore_modes = vars(estimator).copy(), _modes()
        for name in _COMPUTED:
            vars(estimator).pop(name, None)
        try:
            return method(estimator, *args, **kwargs)
        except BaseException:
            # In one step, between whose parts no further interrupt can come.
            estimator.__dict__ = before
            # An interrupt may come while a context ends.
            restore_modes()
            raise

    return cast(Method, fit_or_nothing)

"""What all estimators share."""

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin


class AttentionEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class of the estimators: callbacks, and a link to the docs in their HTML."""

    _doc_link_module = "sklearn_attention"
    _doc_link_template = (
        "https://sklearn-attention.readthedocs.io/en/stable/api/generated/"
        "sklearn_attention.{estimator_name}.html"
    )

    def __getstate__(self):
        # What was computed from the rest of the state, and kept, is computed again.
        state = super().__getstate__()
        return state | {"_memo": {}} if "_memo" in state else state

    def _doc_link_url_param_generator(self):
        return {"estimator_name": type(self).__name__}

"""Pictures of what estimators have learned, and of what carries their predictions.

Displays are like those of scikit-learn: ``from_estimator`` computes and draws, the data stay as
attributes, ``plot`` draws them again, and ``ax_`` and ``figure_`` are matplotlib's. Estimators
of rows may be the last step of a pipeline, or the best estimator of a search. Displays need
matplotlib, the extra ``plot``, and do not change its global state. :data:`STYLE` is their
style, for other pictures: ``plt.rc_context(STYLE)``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

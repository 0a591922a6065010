"""Random features as scikit-learn transformers: kernels for linear models.

* :class:`RandomFourierFeatures` approximate a stationary kernel by sines and cosines.
* :class:`PositiveRandomFeatures` approximate the Gaussian, or the kernel of transformers, by
  features that are positive.
"""

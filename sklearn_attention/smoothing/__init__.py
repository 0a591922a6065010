"""Estimators that only remember: averages of the training targets, and densities."""

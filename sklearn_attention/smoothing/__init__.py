"""Kernel smoothers: averages of the training targets, local polynomials, and densities."""

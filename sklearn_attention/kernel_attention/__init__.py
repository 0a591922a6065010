"""Kernel attention: estimators that learn the space in which their kernel compares."""

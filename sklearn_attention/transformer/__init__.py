"""Transformer encoders that predict from tables, sequences and texts."""

"""Sequences of tokens: models that write them."""

from ._language_model import TransformerLanguageModel

__all__ = ["TransformerLanguageModel"]

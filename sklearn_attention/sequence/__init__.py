"""Sequences of tokens: written from another sequence, or continued."""

from ._language_model import TransformerLanguageModel
from ._seq2seq import TransformerSeq2Seq

__all__ = ["TransformerLanguageModel", "TransformerSeq2Seq"]

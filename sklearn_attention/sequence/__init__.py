"""Sequences of tokens: written from another sequence, or continued."""

from ._seq2seq import TransformerSeq2Seq

__all__ = ["TransformerSeq2Seq"]

"""Sequences of tokens: written from another sequence, or continued."""

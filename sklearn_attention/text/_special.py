"""Tokens that stand for no piece of a text, the same in every vocabulary."""

PADDING, UNKNOWN, START, END = 0, 1, 2, 3
# How they are shown, in the order of their ids.
SPECIAL_TOKENS = ("<padding>", "<unknown>", "<start>", "<end>")
# What an unknown token of a text is decoded to.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

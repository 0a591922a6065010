"""Tokens: texts and sequences of ids as arrays of integers, and back.

:func:`learn_vocabulary` learns the tokens that occur in texts, a :class:`Vocabulary`
translates, and :func:`pad` makes one array of many sequences. The ids 0 to 3 stand for padding,
unknown pieces, start and end in every vocabulary.
"""

from ._learn import learn_vocabulary
from ._special import pad
from ._vocabulary import Vocabulary

__all__ = [
    "Vocabulary",
    "learn_vocabulary",
    "pad",
]

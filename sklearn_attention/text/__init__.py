"""Tokens: texts and sequences of ids as arrays of integers, and back.

* :func:`check_sequences` reads what users pass, :func:`learn_vocabulary` learns the tokens that
  occur in it, and a :class:`Vocabulary` translates; :func:`pad` makes one array of many.
* The ids :data:`PADDING`, :data:`UNKNOWN`, :data:`START` and :data:`END` mean the same in every
  vocabulary.
"""

from ._learn import learn_vocabulary
from ._pad import pad
from ._vocabulary import Vocabulary

__all__ = [
    "Vocabulary",
    "learn_vocabulary",
    "pad",
]

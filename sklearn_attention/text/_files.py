"""Texts in files, which are read in pieces."""

import reprlib
from dataclasses import dataclass
from pathlib import Path

# Number of characters that are read at once.
_PIECE = 2**20


@dataclass(frozen=True)
class TextFiles:
    """Files of one text each, in UTF-8; an iterable of the pieces of all texts.

    Texts are cut into pieces where this does not change the tokens, so that the tokenizer can
    read one piece at a time.
    """

    name: str  # name of the parameter, in messages
    paths: tuple  # a Path for each text
    tokenizer: str

    def __iter__(self):
        for pieces in self.texts():
            yield from pieces

    def texts(self):
        """Return an iterable over texts, each an iterable over the pieces of the text."""
        return map(self._pieces, range(len(self.paths)), self.paths)

    def _pieces(self, position, path):
        """Yield the pieces of the text in the file at a position of `paths`."""
        where = f"{self.name}[{position}]={path!r}"
        if not path.is_file():
            raise ValueError(f"{where} is not a file: pass the path of a text in UTF-8.")
        if not path.stat().st_size:
            raise ValueError(f"{where} is empty: leave it out, or pass a file with a text.")
        # The byte pairs of a text depend on all of it, so that such a text is one piece.
        size = -1 if self.tokenizer == "byte_pairs" else _PIECE
        unfinished_word = ""
        try:
            with path.open(encoding="utf-8") as file:
                while piece := file.read(size):
                    cut = len(piece)
                    if self.tokenizer in ("words", "lower_words"):
                        # The last word may go on, and so belongs to the next piece.
                        cut = max(map(piece.rfind, " \n\t")) + 1
                    if cut:
                        yield unfinished_word + piece[:cut]
                        unfinished_word = ""
                    unfinished_word += piece[cut:]
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{where} is not UTF-8 ({error.reason}): read it in its own encoding, write it "
                "to another file with encoding='utf-8', and pass that file."
            ) from None
        if unfinished_word:
            yield unfinished_word


def with_files(name, X, tokenizer):
    """Return TextFiles for a path or a list of paths; return any other X as it is."""
    if isinstance(X, str):
        raise ValueError(
            f"{name}={reprlib.repr(X)} is a single text: pass [{name}], or "
            f"pathlib.Path({name}) for a file."
        )
    paths = (X,) if isinstance(X, Path) else X
    if getattr(paths, "ndim", 0) == 1:  # an array or a Series
        paths = paths.tolist()
    if not isinstance(paths, list | tuple) or not any(isinstance(item, Path) for item in paths):
        return X
    for position, item in enumerate(paths):
        if not isinstance(item, Path):
            raise ValueError(
                f"{name}[{position}]={reprlib.repr(item)} is not a path, but other entries "
                "are: pass only paths of files, or only texts."
            )
    return TextFiles(name, tuple(paths), tokenizer)

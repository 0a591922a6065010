"""Texts in files, which are read in pieces."""

import reprlib
from dataclasses import dataclass
from pathlib import Path

# Characters that are read at once.
_PIECE = 2**20


@dataclass(frozen=True)
class TextFiles:
    """Files of one text each, in UTF-8, as the parameter `name`; an iterable of pieces."""

    name: str
    paths: tuple
    tokenizer: str  # pieces are as it may read them, one by one

    def __iter__(self):
        for pieces in self.texts():
            yield from pieces

    def texts(self):
        """The pieces of each text: an iterable of iterables."""
        return map(self._pieces, range(len(self.paths)), self.paths)

    def _pieces(self, position, path):
        where = f"{self.name}[{position}]={path!r}"
        if not path.is_file():
            raise ValueError(f"{where} is not a file: pass the path of a text in UTF-8.")
        if not path.stat().st_size:
            raise ValueError(f"{where} is empty: leave it out, or pass a file with a text.")
        # What the library makes of a text depends on all of it.
        size, rest = -1 if self.tokenizer == "byte_pairs" else _PIECE, ""
        try:
            with path.open(encoding="utf-8") as file:
                while piece := file.read(size):
                    cut = len(piece)
                    if self.tokenizer in ("words", "lower_words"):
                        # A word that goes on in the next piece is left to it.
                        cut = max(map(piece.rfind, " \n\t")) + 1
                    if cut:
                        yield rest + piece[:cut]
                        rest = ""
                    rest += piece[cut:]
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{where} is not UTF-8 ({error.reason}): read it in its own encoding, write it "
                "to another file with encoding='utf-8', and pass that file."
            ) from None
        if rest:
            yield rest


def with_files(name, X, tokenizer):
    """TextFiles of a path or of a list of paths; all else as it is."""
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

"""Texts in files: the pieces in which they are read, and files that hold none."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_attention.text import _files, learn_vocabulary
from sklearn_attention.text._files import with_files
from sklearn_attention.text._learn import TOKENIZERS

TEXT = "The mät,  σΣ ΑΣ\nIt's 9\t\u0e01\u0e33 a_b\n\n e\u0301t\u00e9 averylongword. "


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("tokenizer", sorted({*TOKENIZERS} - {"ids"}))
def test_pieces_have_the_tokens_of_the_whole(path, tokenizer, size, monkeypatch):
    monkeypatch.setattr(_files, "_PIECE", size)
    vocabulary = learn_vocabulary(tokenizer, [TEXT])
    (pieces,) = map(list, with_files("X", path, tokenizer).texts())
    assert "".join(pieces) == TEXT
    ids = [i for piece in pieces for i in vocabulary.encode(piece)]
    assert ids == vocabulary.encode(TEXT).tolist()
    assert tokenizer == "byte_pairs" or size > 1 or len(pieces) > 5
    assert learn_vocabulary(tokenizer, with_files("X", [path], tokenizer)).tokens == (
        vocabulary.tokens
    )


def test_ends_of_lines_are_those_of_text(path):
    path.write_bytes(b"a\r\nb\rc")
    assert [*with_files("X", path, "characters")] == [path.read_text()] == ["a\nb\nc"]


@pytest.mark.parametrize("kind", [np.array, pd.Series])
def test_paths_stand_in_any_list(path, kind):
    assert with_files("X", kind([path, path]), "words").paths == (path, path)


@pytest.mark.parametrize("given", [["a", "b"], None, ()])
def test_what_is_no_path_stays(given):
    assert with_files("X", given, "words") is given


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not a file: pass the path"),
        (b"", "is empty: leave it out"),
        (b"a\xff", r"is not UTF-8 \(invalid start byte\): read it in its own"),
        (b"a\xe4", r"is not UTF-8 \(unexpected end of data\)"),
    ],
)
def test_files_without_a_text_are_named(tmp_path, content, message):
    path = tmp_path / "other.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"X_val\[0\]=.*other.txt'\) {message}"):
        list(with_files("X_val", [path], "words"))


def test_paths_are_told_apart_from_texts(path):
    with pytest.raises(ValueError, match="a path, but other entries are: pass"):
        with_files("X", ["a", path], "words")
    with pytest.raises(
        ValueError, match=r"X='a' is a single text: pass \[X\], or pathlib.Path"
    ):
        with_files("X", "a", "words")
    with pytest.raises(
        ValueError, match=r"tokenizer='ids' does not fit sequences of kind 'text'"
    ):
        learn_vocabulary("ids", with_files("X", Path(path), "ids"))

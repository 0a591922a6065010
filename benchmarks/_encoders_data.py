"""The series and texts of `encoders.py`, with nothing but NumPy and the standard library.

Series lie in the data folder, `series/`, with the official splits of their archive. Texts are
the summaries of docstrings in eight installed packages, which are read, not imported.
"""

import ast
import hashlib
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

SERIES = (
    "ArrowHead",
    "BasicMotions",
    "GunPoint",
    "ItalyPowerDemand",
    "JapaneseVowels",
    "OSULeaf",
    "Trace",
)
PACKAGES = {  # and the names that would give them away
    "matplotlib": r"matplotlib|mpl|pyplot|plt",
    "numpy": r"numpy|np",
    "pandas": r"pandas|pd",
    "scipy": r"scipy",
    "sklearn": r"sklearn|scikit[- ]learn",
    "statsmodels": r"statsmodels?|sm",
    "sympy": r"sympy",
    "torch": r"(?:py)?torch[a-z]*",
}
NAMES = re.compile(rf"(?<![a-z])(?:{'|'.join(PACKAGES.values())})(?![a-z])", re.IGNORECASE)
N_TRAIN, N_TEST = 3000, 2600
# Summaries with the same first words, numbers aside, are near-duplicates.
N_FIRST_WORDS, FEWEST_WORDS = 6, 4


def series(data, name):
    """Training and test series, lists of arrays (n_steps, n_channels), and their classes."""
    with np.load(data / "series" / f"{name}.npz") as file:
        parts = [
            np.split(file[f"X_{part}"], np.cumsum(file[f"length_{part}"])[:-1])
            for part in ("train", "test")
        ]
        return *parts, file["y_train"], file["y_test"]


def padded(sequences, n_steps):
    """An array (n_sequences, n_steps, n_channels), with zeros behind what is shorter."""
    block = np.zeros((len(sequences), n_steps, sequences[0].shape[1]), dtype=np.float32)
    for row, sequence in zip(block, sequences, strict=True):
        row[: len(sequence)] = sequence
    return block


def docstrings():
    """Training and test summaries, their packages, and a name for this very set.

    It depends on the versions of the packages, and so does its name.
    """
    found = [(text, package) for package in PACKAGES for text in summaries(package)]
    rng = np.random.default_rng(0)
    first_of, left = set(), {package: [] for package in PACKAGES}
    for i in rng.permutation(len(found)):
        text, package = found[i]
        words = re.findall(r"[a-z]+", text.lower())
        first = tuple(words[:N_FIRST_WORDS])
        if len(words) >= FEWEST_WORDS and first not in first_of:
            first_of.add(first)
            left[package].append(text)
    n_each = (N_TRAIN + N_TEST) // len(PACKAGES)
    for package, texts in left.items():
        if len(texts) < n_each:
            raise ValueError(f"{package} has {len(texts)} summaries, fewer than {n_each}.")
    chosen = [(text, package) for package in left for text in left[package][:n_each]]
    chosen = [chosen[i] for i in rng.permutation(len(chosen))]
    name = hashlib.sha256(repr(chosen).encode()).hexdigest()[:6]
    texts, labels = zip(*chosen, strict=True)
    return (
        list(texts[:N_TRAIN]),
        list(texts[N_TRAIN:]),
        np.array(labels[:N_TRAIN]),
        np.array(labels[N_TRAIN:]),
        f"docstrings {name}",
    )


def summaries(package):
    """First paragraphs of the docstrings of a package, without names of packages."""
    folder = Path(find_spec(package).submodule_search_locations[0])
    for path in sorted(folder.rglob("*.py")):
        if {"test", "tests", "testing"} & set(path.relative_to(folder).parts):
            continue
        with warnings.catch_warnings():  # of escapes in other people's strings
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                summary = (ast.get_docstring(node) or "").split("\n\n")[0]
                yield " ".join(NAMES.sub(" ", summary).split())

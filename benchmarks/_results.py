"""Files of results, a line for each cell of a table: measured, read again, and shown."""

import argparse
import json
import multiprocessing
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd

from sklearn_attention import __version__

HERE = Path(__file__).resolve().parent


def append(cell, path):
    """Add a line, with the version and the processor that it was measured with."""
    line = json.dumps(cell | {"version": __version__, "processor": processor()})
    print(line, file=sys.stderr)
    with open(path, "a") as file:
        file.write(line + "\n")


def results(path, keys, others=()):
    """A row for each cell; of lines with the same keys the last counts, and others may lack."""
    lines = path.read_text().splitlines() if path.exists() else []
    frame = pd.DataFrame([json.loads(line) for line in lines])
    columns = dict.fromkeys([*keys, "error", "version", "processor", *others, *frame.columns])
    frame = frame.reindex(columns=list(columns))
    return frame.drop_duplicates(keys, keep="last")


def run(cells, keys, options):
    """Measure what the file does not have by this version, going on where a run was stopped.

    `cells` are pairs of a key and a function that returns the fields of its line. A cell whose
    library or data are missing is left out.
    """
    known = results(options.results, keys)
    known = known[known["version"] == __version__]
    measured = set() if options.again else set(known[keys].itertuples(index=False, name=None))
    for key, measure in cells:
        if key in measured:
            continue
        try:
            found = measure()
        except (ImportError, FileNotFoundError) as error:
            print(f"{' '.join(map(str, key))} is left out: {error}", file=sys.stderr)
            continue
        append(dict(zip(keys, key, strict=True)) | rounded(found), options.results)


def peak_megabytes():
    """The most memory that this process had; getrusage has that of its parent too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def alone(function, *arguments):
    """What a function returns in a process of its own, whose memory is all the function's."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def rounded(found):
    """Fields of a line with six digits."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in found.items()}


def parser_of(description, file, *lists):
    """A parser with lists of what is measured, the file of results, and the folder of data."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name in lists:
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), help="some of them")
    parser.add_argument("--again", action="store_true", help="also what is measured already")
    parser.add_argument("--results", type=Path, default=HERE / file)
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", HERE.parents[1] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=folder)
    return parser


def refuse_unknown(parser, known, *lists):
    """End with a message if lists of names have others than are known."""
    if unknown := {name for names in lists for name in names or ()} - {*known}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")


def stamp(*packages, lines=None):
    """Processor and versions that lines were measured with, or that this run measures with."""
    cells = [{"version": __version__, "processor": processor()}]
    frame = pd.DataFrame(cells) if lines is None else lines
    processors, versions = (
        ", ".join(sorted(frame[field].dropna().unique())) for field in ("processor", "version")
    )
    return (
        f"{processors}, one thread. Python {platform.python_version()}, sklearn-attention "
        f"{versions}, {', '.join(map(package_version, packages))}."
    )


def package_version(name):
    """Name and version of a package."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} is missing"


def processor():
    """Name of the processor, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()


def markdown(header, rows):
    """Lines of a table of texts."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]

"""Files of results: a line for each cell of a table."""

import json
import sys
from importlib.metadata import PackageNotFoundError, version

import pandas as pd


def append(cell, path):
    line = json.dumps(cell)
    print(line, file=sys.stderr)
    with open(path, "a") as file:
        file.write(line + "\n")


def results(path, keys, others=()):
    """A row for each cell; of lines with the same keys the last counts, and others may lack."""
    lines = path.read_text().splitlines() if path.exists() else []
    frame = pd.DataFrame([json.loads(line) for line in lines])
    columns = dict.fromkeys([*keys, "error", *others, *frame.columns])
    frame = frame.reindex(columns=list(columns))
    return frame.drop_duplicates(keys, keep="last")


def package_version(name):
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} is missing"

"""Ways to read a memory."""

from dataclasses import dataclass

READOUTS = ("average", "blend", "local_linear", "solve")
# Up to so many rows a blend has a second way to solve, there are several folds, and each
# member has a thread of its own.
FEW_ROWS = 2000


@dataclass(frozen=True)
class Way:
    """How a member learns and reads."""

    reads: str  # "average", "local_linear" or "solve"
    share: float = 1.0  # largest share of the rows in a batch
    precision: float = 0.0  # how firmly scales are held where they start


WAYS = {
    "average": Way("average"),
    "local_linear": Way("local_linear"),
    "solve": Way("solve"),
    # Learns from half as much at a time, and holds on to where it started: better where
    # there are few rows for many features.
    "solve_firmly": Way("solve", share=0.5, precision=0.5),
}


def ways_of(readout, n_rows, *, learns, attending):
    """Ways that a readout asks for.

    Parameters
    ----------
    readout : {"average", "blend", "local_linear", "solve"}
    n_rows : int
    learns : bool
        Whether length-scales are learned.
    attending : {"average", "local_linear"}
        What a blend has besides solving.

    Returns
    -------
    ways : list of str
    """
    if readout != "blend":
        return [readout]
    # Beyond, batches are so small a share of the rows that nothing more need hold.
    firmly = ["solve_firmly"] if n_rows <= FEW_ROWS and learns else []
    return ["solve", *firmly, attending]

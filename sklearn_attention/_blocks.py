"""Cutting a range into blocks, so that memory stays bounded."""

# Rows that are looked at together, however many there are.
ROWS_AT_ONCE = 2**20


def blocks(n, size=None):
    """Slices of at most ``size`` that cover ``range(n)``.

    Parameters
    ----------
    n : int
        How many there are.
    size : int, default=None
        Largest length of a slice, at least 1; None for `ROWS_AT_ONCE`.

    Yields
    ------
    block : slice
        With ``start`` and ``stop`` set.
    """
    size = ROWS_AT_ONCE if size is None else size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))

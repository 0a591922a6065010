"""Cutting a range into blocks, so that memory stays bounded."""

# Rows that are in memory together, however many there are.
ROWS_AT_ONCE = 2**20


def blocks(n, size=None):
    """Slices of at most so many that cover ``range(n)``; None for `ROWS_AT_ONCE`."""
    size = ROWS_AT_ONCE if size is None else size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))

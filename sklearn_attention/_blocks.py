"""Cutting a range into blocks, so that memory stays bounded."""


def blocks(n, size):
    """Slices of at most ``size`` that cover ``range(n)``.

    Parameters
    ----------
    n : int
        How many there are.
    size : int
        Largest length of a slice, at least 1.

    Yields
    ------
    block : slice
        With ``start`` and ``stop`` set.
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))

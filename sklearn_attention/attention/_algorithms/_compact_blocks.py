"""Cutting points into blocks of near neighbours."""

import torch


def compact_blocks(points, radius):
    """Positions of the points (n, d) in boxes of at most a given half-width; each once."""
    todo = [torch.arange(len(points))] if len(points) else []
    done = []
    while todo:
        block = todo.pop()
        inside = points[block]
        if inside.shape[1] == 0:
            done.append(block)
            continue
        low, high = inside.amin(dim=0), inside.amax(dim=0)
        widest = (high - low).argmax()
        if high[widest] - low[widest] <= 2 * radius:
            done.append(block)
            continue
        middle = (low[widest] + high[widest]) / 2
        # Between neighbouring numbers the middle rounds to one of them.
        left = inside[:, widest] <= middle.clamp_max(high[widest].nextafter(low[widest]))
        todo += [block[~left], block[left]]
    return done


def median_blocks(points, size):
    """Positions of the points (n, d) in groups of at most so many that lie close together."""
    todo, done = [torch.arange(len(points))], []
    while todo:
        block = todo.pop()
        if len(block) <= size:
            done.append(block)
            continue
        inside = points[block]
        widest = (inside.amax(dim=0) - inside.amin(dim=0)).argmax() if points.shape[1] else 0
        order = inside[:, widest].argsort(stable=True) if points.shape[1] else block.argsort()
        middle = len(block) // 2
        todo += [block[order[middle:]], block[order[:middle]]]
    return done


def in_order(found, blocks):
    """Fields that were found block by block, for all points in order.

    From a tuple of tensors for each block, whose first axis is that of its points.
    """
    order = torch.cat(blocks).argsort()
    return tuple(torch.cat(field)[order] for field in zip(*found, strict=True))

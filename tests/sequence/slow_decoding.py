"""Decoding without caches, batches or tensors: one prefix at a time."""

import torch

from sklearn_attention.text._special import END, PADDING, START, UNKNOWN

FORBIDDEN = {PADDING, START, UNKNOWN}


@torch.no_grad()
def next_logs(network, source, prefix):
    """Log-probabilities of what may follow a prefix, computed anew."""
    source, target = torch.tensor([source]), torch.tensor([[START, *prefix]])
    x, _ = network.decode(target, network.encode(source), source != PADDING)
    logits = network.scores(x[0, -1])
    logits[list(FORBIDDEN)] = -torch.inf
    return logits.log_softmax(0).tolist()


def beams(network, source, n_beams, length_penalty, max_length):
    """Beam search by its definition."""
    living, ended = [(0.0, [])], []
    for n in range(1, max_length + 1):
        extended = [
            (score + log, [*prefix, token])
            for score, prefix in living
            for token, log in enumerate(next_logs(network, source, prefix))
            if token not in FORBIDDEN
        ]
        extended.sort(key=lambda pair: -pair[0])
        unit = ((5 + n) / 6) ** length_penalty
        for score, prefix in extended[:n_beams]:
            if prefix[-1] == END or n == max_length:
                ended.append((score / unit, [t for t in prefix if t != END]))
        living = [pair for pair in extended if pair[1][-1] != END][:n_beams]
        if len(ended) >= n_beams:
            break
    return max(ended, key=lambda pair: pair[0])[1]

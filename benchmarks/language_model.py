"""A language model of the characters of Shakespeare, beside a plain loop in torch.

    python benchmarks/language_model.py [--steps 2000] [--positions rotary] [--autocast]
        [--data FOLDER] [--seed 0]

nanoGPT (Karpathy) trains a small transformer on the 1.1 million characters of Tiny Shakespeare
in about three minutes on the processor of a laptop, and publishes a validation loss of 1.88:
4 layers, 4 heads, width 128, contexts of 64 characters, batches of 12, 2000 steps, no dropout.
Here both sides have that size, those batches and that many steps, on one thread each:

* plain torch: the published recipe, reimplemented; learned positions, normal starting weights,
  AdamW with 100 steps of warm-up and a cosine from 1e-3 to 1e-4; every 250 steps it estimates
  both losses from 20 batches, as the original does;
* ours: `TransformerLanguageModel` without its baseline of counts (rotary positions, one cycle
  up to a higher learning rate), which evaluates all held-out characters after each epoch. With
  `--autocast` it trains in bfloat16 where torch considers that safe.

A hook makes a step of plain torch before each of ours, so that both run under the same load.
Printed are seconds of the processor, evaluation included, and their ratio. The loss is that of
all characters held out (the last tenth), in windows of 64 that do not overlap, in nats. Then
samples of ours are printed.

Expected: 1.88 or less at equal steps in no more time. The data lie beside the repository, or
where SKLEARN_ATTENTION_DATA says.
"""

import argparse
import gzip
import math
import os
import time
from pathlib import Path

import torch
from _results import stamp
from torch import nn
from torch.nn import functional as F

from sklearn_attention import Architecture, Training, TransformerLanguageModel
from sklearn_attention.sequence._language_network import LanguageNetwork
from sklearn_attention.training._network import torch_threads

LENGTH, BATCH, WIDTH, HEADS, LAYERS = 64, 12, 128, 4, 4
PEAK, FLOOR, WARM_UP = 1e-3, 1e-4, 100
JUDGE_EVERY, JUDGE_BATCHES = 250, 20


class PlainBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
        self.inward = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.outward = nn.Linear(WIDTH, WIDTH, bias=False)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        parts = self.inward(self.norms[0](x)).split(WIDTH, dim=-1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.outward(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.norms[1](x))))


class PlainModel(nn.Module):
    def __init__(self, n_tokens, generator):
        super().__init__()
        self.tokens, self.places = nn.Embedding(n_tokens, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(PlainBlock() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, value in self.named_parameters():
            if value.ndim == 2:
                residual = name.endswith(("outward.weight", "narrow.weight"))
                spread = 0.02 / math.sqrt(2 * LAYERS) if residual else 0.02
                nn.init.normal_(value, 0.0, spread, generator=generator)

    def forward(self, ids, following):
        x = self.tokens(ids) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), following.flatten())


class PlainLoop:
    """The peer, one step at a time; it counts its seconds."""

    def __init__(self, text, n_steps, seed):
        characters = sorted(set(text))
        numbers = {character: i for i, character in enumerate(characters)}
        ids = torch.tensor([numbers[character] for character in text])
        n_train = int(0.9 * len(ids))
        self.parts = ids[:n_train], ids[n_train:]
        self.generator = torch.Generator().manual_seed(seed)
        self.model = PlainModel(len(characters), self.generator)
        matrices = [value for value in self.model.parameters() if value.ndim == 2]
        gains = [value for value in self.model.parameters() if value.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": 0.1},
            {"params": gains, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99), fused=True)
        self.n_steps, self.done = n_steps, 0
        self.step_seconds = self.judge_seconds = 0.0

    def batch(self, part):
        ids = self.parts[part]
        starts = torch.randint(len(ids) - LENGTH, (BATCH, 1), generator=self.generator)
        places = starts + torch.arange(LENGTH)
        return ids[places], ids[places + 1]

    def rate(self):
        if self.done < WARM_UP:
            return PEAK * (self.done + 1) / (WARM_UP + 1)
        fallen = (self.done - WARM_UP) / max(1, self.n_steps - WARM_UP)
        return FLOOR + 0.5 * (1 + math.cos(math.pi * fallen)) * (PEAK - FLOOR)

    def step(self):
        start = time.process_time()
        if self.done % JUDGE_EVERY == 0:
            self.judge()
        middle = time.process_time()
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        loss = self.model(*self.batch(0))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.done += 1
        self.judge_seconds += middle - start
        self.step_seconds += time.process_time() - middle

    @torch.no_grad()
    def judge(self):
        for part in (0, 1):
            sum(self.model(*self.batch(part)).item() for _ in range(JUDGE_BATCHES))

    @torch.no_grad()
    def validation_loss(self):
        ids = self.parts[1]
        starts = torch.arange(0, len(ids) - LENGTH, LENGTH)[:, None]
        places = starts + torch.arange(LENGTH)
        losses = [
            len(rows) * self.model(ids[rows], ids[rows + 1]).item()
            for rows in places.split(128)
        ]
        return sum(losses) / len(places)


def compare(text, n_steps, seed, *, autocast, positions):
    """Fit ours, with a step of the peer before each of its own."""
    loop = PlainLoop(text, n_steps, seed)

    def make_step(module, _):
        if isinstance(module, LanguageNetwork) and module.training and torch.is_grad_enabled():
            with torch.autocast("cpu", enabled=False):
                loop.step()

    model = TransformerLanguageModel(
        baseline=False,
        batch_size=BATCH,
        architecture=Architecture(positions=positions),
        training=Training(max_steps=n_steps, autocast=autocast),
        random_state=seed,
        device="cpu",
    )
    hook = nn.modules.module.register_module_forward_pre_hook(make_step)
    start = time.process_time()
    try:
        cut = int(0.9 * len(text))
        model.fit([text[:cut]], X_val=[text[cut:]])
    finally:
        hook.remove()
    seconds = time.process_time() - start - loop.step_seconds - loop.judge_seconds
    return model, seconds, loop


def main():
    parser = argparse.ArgumentParser()
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    )
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--positions", default="rotary")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with gzip.open(Path(arguments.data) / "text" / "tinyshakespeare.txt.gz", "rt") as file:
        text = file.read()
    print("# Tiny Shakespeare\n")
    print(
        f"{stamp('torch')} Both models are trained for {arguments.steps} steps of {BATCH} "
        "windows, in turns, step by step. The validation loss is in nats per character; "
        "nanoGPT publishes 1.88. “ratio” divides processor seconds by those of plain torch.\n"
    )
    print("| model | validation loss | processor seconds | ratio |")
    print("| --- | --- | --- | --- |")
    with torch_threads(1):
        options = {
            "autocast": arguments.autocast,
            "positions": arguments.positions,
        }
        model, seconds, loop = compare(text, arguments.steps, arguments.seed, **options)
        theirs, loss = loop.step_seconds + loop.judge_seconds, loop.validation_loss()
        print(f"| plain torch | {loss:.3f} | {theirs:.0f} | 1.00 |")
        loss = min(model.training_history_["validation_loss"])
        name = f"ours, {arguments.positions} positions"
        name += ", bfloat16" * arguments.autocast
        print(f"| {name} | {loss:.3f} | {seconds:.0f} | {seconds / theirs:.2f} |")
        written = model.sample("\n", 500, temperature=0.8, random_state=0)
    print("\nA text that our model writes, at temperature 0.8:\n\n```")
    print(written.strip() + "\n```")


if __name__ == "__main__":
    main()

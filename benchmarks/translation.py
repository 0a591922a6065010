"""English to German: the 29 000 pairs of Multi30k, on a processor.

    python benchmarks/translation.py [--data FOLDER] [--epochs 4] [--autocast]
        [--checkpoint FILE] [--pairs N]

A TransformerSeq2Seq learns from the training pairs with byte pairs shared by both languages;
the 1000 pairs of test_2016_flickr are translated greedily and with five beams. BLEU is
sacrebleu's (13a tokens, mixed case). Nothing is chosen on the test pairs; the likelihood of
those of the validation set is printed.

Printed are BLEU, minutes of the processor for the fit, and ten translations.
Small transformers that train for long on a GPU are reported at BLEU 35 to 38. Expected here:
above 30 after 4 epochs in twenty minutes of one core, less by `--autocast` where it has
instructions for bfloat16.

The data are in ``../shared/data/text`` or in FOLDER; with --checkpoint a run that was stopped
goes on.
"""

import argparse
import csv
import gzip
import time
from pathlib import Path

import numpy as np
import sacrebleu
import torch
from _results import stamp

from sklearn_attention import Architecture, Training, TransformerSeq2Seq

BESIDE = Path(__file__).parents[2] / "shared" / "data"
MODEL = {
    "tokenizer": "byte_pairs",
    "max_tokens": 5000,
    "shared_vocabulary": True,
    "d_model": 192,
    "n_heads": 4,
    "n_layers": 3,
    "architecture": Architecture(d_feedforward=512),
    "dropout": 0.2,
    "label_smoothing": 0.1,
    "batch_size": 64,
}
N_SHOWN = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=BESIDE / "text")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--autocast", action="store_true", help="train in bfloat16")
    parser.add_argument("--checkpoint")
    parser.add_argument("--pairs", type=int, default=None, help="fewer, to try it out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    english, german = read(options.data, "train", options.pairs)
    model = TransformerSeq2Seq(
        **MODEL,
        max_epochs=options.epochs,
        training=Training(autocast=options.autocast, checkpoint=options.checkpoint),
    )
    start = time.process_time()
    model.fit(english, german)
    minutes = (time.process_time() - start) / 60
    history = model.training_history_
    print("# Translation\n")
    print(stamp("torch", "sacrebleu"), "Minutes and seconds are processor time.\n")
    print(
        f"Training on {len(english)} pairs took {minutes:.0f} minutes for "
        f"{history['n_steps']} steps in {options.epochs} epochs; the last training loss, with "
        f"label smoothing, was {history['loss'][-1]:.3f}.\n"
    )
    valid = np.concatenate(model.predict_log_proba(*read(options.data, "val")))
    print(
        f"The mean log-likelihood of a token of the validation pairs is {valid.mean():.3f}.\n"
    )
    english, german = read(options.data, "test_2016_flickr")
    print("| search | BLEU | seconds for 1000 sentences |\n| --- | --- | --- |")
    for n_beams in (1, 5):
        start = time.process_time()
        written = model.set_params(n_beams=n_beams).predict(english)
        seconds = time.process_time() - start
        bleu = sacrebleu.corpus_bleu(written, [german]).score
        name = f"{n_beams} beams" if n_beams > 1 else "greedy"
        print(f"| {name} | {bleu:.1f} | {seconds:.1f} |")
    print("\nThe first ten test sentences, translated with five beams:\n")
    for source, target, found in list(zip(english, german, written, strict=True))[:N_SHOWN]:
        print(f"* {source}\n  - {found}\n  - reference: {target}")


def read(folder, part, n_pairs=None):
    """English and German sentences of a part of Multi30k."""
    with gzip.open(folder / f"multi30k_en_de_{part}.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return tuple(map(list, zip(*rows[:n_pairs], strict=True)))


if __name__ == "__main__":
    main()

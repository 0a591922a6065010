r"""
================================
A language model of a large file
================================

Train a language model on a file that does not fit into memory, and resume an interrupted fit.

Texts that do not fit into memory are passed as paths: the file is read in pieces, once for its
vocabulary and once for its tokens, which are kept in a temporary file of one or two bytes each.
The training of a large text takes long, and may be killed. With a checkpoint, which is written
after each epoch, the same fit goes on where it was, and ends with the same parameters as if
nothing had happened.
"""

# %%
# A file
# ------
#
# The text is made up: sentences of people who are at work, by a small grammar.

import pathlib
import tempfile

import matplotlib.pyplot as plt
import numpy as np

from sklearn_attention import Training, TransformerLanguageModel
from sklearn_attention.inspection import TrainingDisplay

PEOPLE = {
    "tailor": ("mends", ["coat", "sleeve", "shirt"]),
    "baker": ("bakes", ["bread", "cake", "tart"]),
    "smith": ("forges", ["nail", "blade", "chain"]),
    "gardener": ("waters", ["rose", "pear tree", "lawn"]),
}
rng = np.random.default_rng(0)


def sentence():
    """Who does what, of those who do such things."""
    person = rng.choice(list(PEOPLE))
    verb, things = PEOPLE[person]
    age, when = (
        rng.choice(["old", "young", "tired"]),
        rng.choice(["today", "at night", "again"]),
    )
    return f"The {age} {person} {verb} a {rng.choice(things)} {when}."


folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name) / "work.txt"
with path.open("w", encoding="utf-8") as file:
    file.writelines(f"{sentence()}\n" for _ in range(800))
print(f"{path.stat().st_size / 1000:.0f} kB, such as")
print("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:3]))

# %%
# A training that is interrupted
# ------------------------------
#
# ``verbose=True`` shows the progress from the start. The interrupt comes as by Ctrl-C, here by
# a callback at the end of the third epoch, before that is in the checkpoint; the fit warns, and
# leaves a model of that time. The baseline is left out, since it counts all tokens in memory.


class Interrupt:
    """A callback that interrupts the training at the end of an epoch."""

    max_propagation_depth = None

    def __init__(self, epoch):
        self.left = epoch

    def setup(self, estimator, context):
        """There is nothing to set up."""

    def teardown(self, estimator, context):
        """There is nothing to tear down."""

    def on_fit_task_begin(self, estimator, context):
        """The fit and its epochs may begin."""

    def on_fit_task_end(self, estimator, context):
        """Count the epochs."""
        if context.task_name == "epoch":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


training = Training(checkpoint=pathlib.Path(folder.name) / "training.pt", verbose=True)
parameters = {
    "max_length": 48, "d_model": 32, "n_layers": 2, "max_epochs": 6, "learning_rate": 0.02,
    "baseline": False,
}  # fmt: skip
interrupted = TransformerLanguageModel(**parameters, training=training)
interrupted.set_callbacks(Interrupt(3)).fit(path)
history = interrupted.training_history_
print(f"{history['stopped']} after {history['n_steps']} steps")

# %%
# The same training goes on
# -------------------------
#
# The same parameters and the same text find the checkpoint, as a new process would, and go on
# after its last whole epoch. Without interrupt and checkpoint the parameters are the same. Both
# fits warn that more epochs would help: this example is kept short.

resumed = TransformerLanguageModel(**parameters, training=training).fit(path)
through = TransformerLanguageModel(**parameters).fit(path)
weights, others = resumed.network_.weights, through.network_.weights
print(
    "the same parameters:", all(np.array_equal(weights[name], others[name]) for name in others)
)

TrainingDisplay.from_estimator(resumed)
plt.show()

# %%
# Who does what was learned: what people make fits who they are. ``score`` and ``perplexity``
# take paths as well.

for person in PEOPLE:
    print(
        resumed.sample(f"The old {person} ", 40, stop=".", temperature=0.5, random_state=0)
        + "."
    )
print(f"perplexity of a character: {resumed.perplexity(path):.2f}")
folder.cleanup()

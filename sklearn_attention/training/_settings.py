"""Parameters that all estimators with a network share, checked once as a fit begins."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from .._validation import check_flag, is_one_of
from ._architecture import Architecture, transformer_shape
from ._plan import batch_sizes
from ._training import Training

# Parameters that are objects with parameters of their own.
NESTED = {"architecture": Architecture, "training": Training}
_SIZES = "d_model", "n_heads", "n_layers", "dropout"
_PACE = "learning_rate", "batch_size", "max_epochs"


@dataclass(frozen=True)
class NetworkDefaults:
    """Values that "auto" stands for in an estimator with a network."""

    positions: str = "sinusoidal"
    activation: str = "gelu"
    widening: int = 4  # width of hidden layers in widths of tokens
    optimizer: str = "adamw"
    largest_batch: int = 64
    fewest_epochs: int = 1
    # Parameters of the architecture and the training that are for other estimators.
    foreign: tuple = ("patch_length", "instance_norm")

    def settings(self, estimator):
        """The parameters of an estimator, checked; ValueError unless they are valid."""
        found = NetworkSettings(
            self,
            *(self._nested(estimator, name) for name in NESTED),
            {name: getattr(estimator, name) for name in _SIZES},
            {name: getattr(estimator, name) for name in _PACE},
            estimator.random_state,
            estimator.device,
            getattr(estimator, "network_", None)
            if check_flag("warm_start", estimator.warm_start)
            else None,
        )
        found.plan(1)
        check_random_state(estimator.random_state)
        return found

    def _nested(self, estimator, name):
        """An object that is a parameter, its defaults where it is None, checked."""
        kind, part = NESTED[name], getattr(estimator, name)
        if part is None:
            return kind()
        if not isinstance(part, kind):
            raise ValueError(
                f"{name}={part!r} is not valid: pass {kind.__name__}(...), or None."
            )
        for own, default in kind().get_params(deep=False).items():
            value = getattr(part, own)
            if own in self.foreign and value is not default and not is_one_of(value, default):
                raise ValueError(
                    f"{name}.{own}={value!r} has no meaning for {type(estimator).__name__}: "
                    "leave it out."
                )
        return part


@dataclass(frozen=True)
class NetworkSettings:
    """Checked parameters of an estimator with a network."""

    defaults: NetworkDefaults
    architecture: Architecture
    training: Training
    sizes: dict  # parameters of the shape
    pace: dict  # parameters of the plan
    random_state: object
    device: object
    start: object  # the FittedNetwork to go on from, or None

    def shape(self, *, ordered=True):
        """Arguments that all networks have, checked; positions are for tokens in an order."""
        defaults = self.defaults
        return transformer_shape(
            self.architecture, **self.sizes, positions=defaults.positions,
            activation=defaults.activation, widening=defaults.widening, ordered=ordered,
        )  # fmt: skip

    def plan(self, n_rows):
        """The plan by which so many rows are learned from."""
        defaults = self.defaults
        return self.training.plan(
            n_rows, **self.pace, optimizer=defaults.optimizer,
            largest_batch=defaults.largest_batch, fewest_epochs=defaults.fewest_epochs,
        )  # fmt: skip

    def n_epochs(self, n_rows):
        """Most epochs that so many rows are learned from."""
        return len(batch_sizes(self.plan(n_rows), n_rows))

    def seed(self):
        """A seed of torch's generators."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def split(self, n_rows, strata=None):
        """Positions of rows to learn from, and of those held out, which are drawn at random.

        `strata` (n_rows,) are classes, which are held out in proportion.
        """
        share = self.training.share_held_out(n_rows)
        if share is None:
            return np.arange(n_rows), np.arange(0)
        import torch  # takes a second to load

        from ._hold_out import hold_out
        from ._torch_threads import torch_threads

        with torch_threads(1):
            parts = hold_out(
                n_rows, share,
                generator=torch.Generator().manual_seed(self.seed()),
                strata=None if strata is None else torch.from_numpy(strata),
            )  # fmt: skip
        return [part.numpy() for part in parts]

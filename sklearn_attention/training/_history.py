"""The history of a training."""

import dataclasses

# Share of the first loss that the later half of the epochs has to gain to be called a fall.
_FALL = 0.01


@dataclasses.dataclass
class History:
    """History of a training, epoch by epoch, as plain numbers.

    Attributes
    ----------
    loss : list of float
        Mean of the training loss over the rows, each at the parameters of its step.
    validation_loss : list of float
        After each epoch; empty where nothing validates.
    learning_rate : list of float
        Of the last step of each epoch.
    seconds : list of float
        Duration of each epoch, with its validation.
    n_steps : int
        Steps made in whole epochs.
    best_epoch : int or None
        The epoch, from 0, after which the validation loss was least; None where nothing
        validates, or no epoch ended.
    stopped : str or None
        Reason of the end: "max_epochs", "max_steps", "patience", "callback" or
        "interrupted". None while it runs.
    """

    loss: list[float] = dataclasses.field(default_factory=list)
    validation_loss: list[float] = dataclasses.field(default_factory=list)
    learning_rate: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    n_steps: int = 0
    best_epoch: int | None = None
    stopped: str | None = None

    @property
    def ends_too_early(self):
        """True if the budget ended while the validation loss was falling."""
        # Then the last epoch was the best, and the later half of the epochs gained more than 1
        # % of the first one's loss. The last epochs by themselves tell little: learning rates
        # that fall to 0 flatten the end of every curve.
        losses, half = self.validation_loss, len(self.validation_loss) // 2
        over = self.stopped in ("max_epochs", "max_steps")
        if not over or not half or self.best_epoch != len(losses) - 1:
            return False
        return min(losses[:half]) - losses[-1] > _FALL * losses[0]

"""What predictions of rows are judged by."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loss:
    """What predictions of rows are judged by.

    Parameters
    ----------
    name : {"squared_error", "absolute_error", "huber", "log_loss"}
    n_classes : tuple of int, default=None
        With "log_loss": of each output. Logits of all outputs stand side by side.
    """

    name: str
    n_classes: tuple | None = None

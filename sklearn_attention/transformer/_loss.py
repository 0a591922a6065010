"""What predictions of rows are judged by."""

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Loss:
    """What predictions of rows are judged by.

    Parameters
    ----------
    name : {"squared_error", "absolute_error", "huber", "quantile", "log_loss"}
    quantile : float, default=None
        That predictions aim at, between 0 and 1; 0.5 with "absolute_error".
    n_classes : tuple of int, default=None
        With "log_loss": of each output. Logits of all outputs stand side by side.
    """

    name: str
    _: KW_ONLY
    quantile: float | None = None
    n_classes: tuple | None = None

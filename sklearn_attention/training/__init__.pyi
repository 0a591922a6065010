from ._batches import hold_out as hold_out
from ._train import History as History
from ._train import train as train

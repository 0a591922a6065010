from ._history import History as History
from ._hold_out import hold_out as hold_out
from ._plan import Plan as Plan
from ._train import train as train

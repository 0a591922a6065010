"""A file from which a training that was killed goes on as if it had not been."""

import dataclasses
import os
import pickle
from pathlib import Path

import torch

# Of the file: a number that another version of the package may refuse.
_FORMAT = 1


class Checkpoint:
    """The state of a training in a file, and whose training it is.

    The file holds tensors, numbers and text alone, and is read so that no code in it runs.

    Parameters
    ----------
    path : str or path-like
        In a folder that exists. The file need not.
    fingerprint : dict
        What the training is: plain values, which must equal those in the file.

    Raises
    ------
    ValueError
        If there can be no such file.
    """

    def __init__(self, path, fingerprint):
        try:
            self._path = Path(path)
        except TypeError:
            raise ValueError(
                f"checkpoint={path!r} is not valid: pass the path of a file, or None."
            ) from None
        self._fingerprint = {"format": _FORMAT, **fingerprint}
        if self._path.is_dir() or not self._path.parent.is_dir():
            problem = "is a folder" if self._path.is_dir() else "lies in no folder"
            raise ValueError(
                f"checkpoint={str(path)!r} {problem}: pass the path of a file, in a folder "
                "that exists."
            )

    def load(self):
        """What was saved last.

        Returns
        -------
        state : dict or None
            None where there is no file.

        Raises
        ------
        ValueError
            If the file is of another training, or no checkpoint.
        """
        if not self._path.exists():
            return None
        remedy = "delete it to start afresh, or pass another path"
        try:
            saved = torch.load(self._path, map_location="cpu", weights_only=True)
            if not isinstance(saved, dict) or saved.keys() != {"fingerprint", "state"}:
                raise pickle.UnpicklingError("has other content")
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            raise ValueError(
                f"checkpoint={str(self._path)!r} cannot be read as a checkpoint: {remedy}."
            ) from error
        theirs = saved["fingerprint"]
        different = [
            name for name, value in self._fingerprint.items() if theirs.get(name) != value
        ]
        if different:
            raise ValueError(
                f"checkpoint={str(self._path)!r} is of another training, which differs in "
                f"{', '.join(different)}: {remedy}."
            )
        return saved["state"]

    def save(self, state):
        """Replace the file, at once or not at all.

        Parameters
        ----------
        state : dict
            Of tensors and plain values.
        """
        unfinished = self._path.with_name(self._path.name + ".unfinished")
        with open(unfinished, "wb") as file:
            torch.save({"fingerprint": self._fingerprint, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, self._path)


def fingerprint(module, plan, **others):
    """What must be the same for a training to go on.

    Parameters
    ----------
    module : torch.nn.Module
    plan : Plan
    **others : plain values

    Returns
    -------
    fingerprint : dict
        The values of the plan, names, shapes and types of the parameters, and the others.
    """
    parameters = [
        (name, tuple(value.shape), str(value.dtype), value.device.type)
        for name, value in module.state_dict().items()
    ]
    return {**dataclasses.asdict(plan), "parameters": parameters, **others}

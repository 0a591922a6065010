"""A file from which a training that was killed goes on as if it had not been."""

import contextlib
import dataclasses
import hashlib
import io
import os
import pickle
import secrets
import struct
from pathlib import Path

import torch

from .._base import warn_user

# How the file begins, with a number that another version of the package may change; then
# comes the digest of the rest.
_HEAD = b"sklearn-attention checkpoint 3\n"
_DIGEST = hashlib.sha256
_PARTS = "fingerprint", "ended", "state"
# What torch raises about content that it did not write.
UNREADABLE = (
    pickle.UnpicklingError, struct.error, EOFError, RuntimeError, ValueError, LookupError,
    TypeError, AttributeError, AssertionError, OverflowError,
)  # fmt: skip


class Checkpoint:
    """The state of a training in a file, with a fingerprint of that training."""

    # The file holds only tensors, numbers and text, and reading it runs no code in it; a digest
    # shows whether it is as it was written. Several trainings may name one file: it belongs to
    # the one under way there, whose fingerprint's plain values are those in the file.

    def __init__(self, path, fingerprint):
        try:
            self._path = Path(path)
            with contextlib.suppress(OSError):
                self._path.stat()  # of characters that no path has
        except (TypeError, ValueError):
            raise ValueError(
                f"checkpoint={path!r} is not valid: pass the path of a file, or None."
            ) from None
        self._fingerprint = fingerprint
        self._is_ours = True
        if self._path.is_dir() or not self._path.parent.is_dir():
            problem = "is a folder" if self._path.is_dir() else "lies in no folder"
            raise ValueError(
                f"checkpoint={str(path)!r} {problem}: pass the path of a file, in a folder "
                "that exists."
            )

    def load(self):
        """The last saved state; None where there is no file, or that of another training."""
        # ValueError if the file is damaged, or no checkpoint. Warns if another training is
        # under way in the file, which then keeps it.
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        if not content.startswith(_HEAD):
            raise self.refused("is not a checkpoint of this version of the package")
        start = len(_HEAD) + _DIGEST().digest_size
        payload = memoryview(content)[start:]
        if content[len(_HEAD) : start] != _DIGEST(payload).digest():
            raise self.refused("is damaged")
        try:
            saved = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
            theirs, ended, state = (saved[name] for name in _PARTS)
        except UNREADABLE as error:
            raise self.refused("holds something other than a checkpoint") from error
        own = self._fingerprint
        if not (isinstance(theirs, dict) and theirs.keys() == own.keys()):
            raise self.refused("holds something other than a checkpoint")
        different = [
            name
            for name, value in own.items()
            if type(theirs[name]) is not type(value) or theirs[name] != value
        ]
        if not different:
            return state
        if not ended:
            self._is_ours = False
            warn_user(
                f"checkpoint={str(self._path)!r} is of another training, which has not ended "
                f"and differs in {', '.join(different)}. This one starts afresh and is not "
                "saved: pass another path, or delete the file."
            )
        return None

    def refused(self, problem):
        """The ValueError of a file that no training can go on from."""
        return ValueError(
            f"checkpoint={str(self._path)!r} {problem}: delete it to start afresh, or pass "
            "another path."
        )

    def save(self, state, *, ended):
        """Replace the file, at once or not at all; but not that of another training.

        Once the training has `ended`, another one may take the file.
        """
        if not self._is_ours:
            return
        buffer = io.BytesIO()
        parts = self._fingerprint, ended, state
        torch.save(dict(zip(_PARTS, parts, strict=True)), buffer)
        payload = buffer.getbuffer()
        # Beside the file, and of a name that no other training takes.
        name = f"{self._path.name}.{secrets.token_hex(8)}.unfinished"
        unfinished = self._path.with_name(name)
        try:
            with open(unfinished, "wb") as file:
                file.write(_HEAD)
                file.write(_DIGEST(payload).digest())
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self._path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


def fingerprint(module, plan, **others):
    """Plain values that must be the same for a training to go on, as a dict.

    Those of the plan, names, shapes and types of the parameters, and the others.
    """
    parameters = [
        (name, tuple(value.shape), str(value.dtype), value.device.type)
        for name, value in module.state_dict().items()
    ]
    return {**dataclasses.asdict(plan), "parameters": parameters, **others}

"""A file from which an interrupted training continues as if it had not been interrupted."""

import contextlib
import dataclasses
import hashlib
import io
import os
import secrets
from pathlib import Path

import torch

from .._base import warn_user

# The digest is of this text and what follows the digest in the file. The number changes with
# the content of files, so that those of other versions are refused like damaged ones.
_FORMAT = b"sklearn-attention checkpoint 4\n"
_DIGEST_SIZE = hashlib.sha256().digest_size


class Checkpoint:
    """A file with the state of a training, and with a fingerprint of that training.

    Several trainings may name one file. It belongs to the training that is under way in it.
    """

    # The file is a digest, then what `torch.save` writes. The digest is necessary: if one bit
    # of a small file is flipped, `torch.load` returns other values in 8 % of the cases. With
    # `weights_only=True`, `torch.load` runs no code that is in the file.

    def __init__(self, path, fingerprint):
        try:
            self._path = Path(path)
            with contextlib.suppress(OSError):
                self._path.stat()  # raises ValueError for characters that no path has
        except (TypeError, ValueError):
            raise ValueError(
                f"checkpoint={path!r} is not valid: pass the path of a file, or None."
            ) from None
        if self._path.is_dir() or not self._path.parent.is_dir():
            problem = "is a folder" if self._path.is_dir() else "lies in no folder"
            raise ValueError(
                f"checkpoint={str(path)!r} {problem}: pass the path of a file, in a folder "
                "that exists."
            )
        self._fingerprint = fingerprint

    def restore(self, load_state):
        """Pass the saved state to `load_state` if it is of this training.

        Returns False, with a warning, if another training is under way in the file, which then
        must not be saved to. Raises ValueError if the file is damaged or foreign.
        """
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return True
        try:
            digest, payload = content[:_DIGEST_SIZE], memoryview(content)[_DIGEST_SIZE:]
            if digest != _digest(payload):
                raise ValueError("the digest is that of other content")
            saved = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
            saved_print, ended, state = (saved[k] for k in ("fingerprint", "ended", "state"))
            different = [k for k, value in self._fingerprint.items() if saved_print[k] != value]
            if not different:
                load_state(state)
        except MemoryError:
            raise  # This says nothing about the file.
        except Exception as error:  # of any type, if torch did not write the content
            raise ValueError(
                f"checkpoint={str(self._path)!r} is damaged, or no checkpoint of this training "
                "by this version of the package: delete it to start afresh, or pass another "
                "path."
            ) from error
        if different and not ended:
            warn_user(
                f"checkpoint={str(self._path)!r} is of another training, which has not ended "
                f"and differs in {', '.join(different)}. This one starts afresh and is not "
                "saved: pass another path, or delete the file."
            )
            return False
        return True

    def save(self, state, *, ended):
        """Replace the file in one step, so that an interrupt leaves the old or the new file.

        Once the training has `ended`, another one may take the file.
        """
        buffer = io.BytesIO()
        saved = {"fingerprint": self._fingerprint, "ended": ended, "state": state}
        torch.save(saved, buffer)
        payload = buffer.getbuffer()
        # The new file is written beside the old one, under a name that no other training uses.
        name = f"{self._path.name}.{secrets.token_hex(8)}.unfinished"
        unfinished = self._path.with_name(name)
        try:
            with open(unfinished, "wb") as file:
                file.write(_digest(payload))
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self._path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


def _digest(payload):
    """Return the `_DIGEST_SIZE` bytes that precede the payload in a file."""
    digest = hashlib.sha256(_FORMAT)
    digest.update(payload)
    return digest.digest()


def fingerprint(module, plan, **others):
    """Collect the values that must be the same for a training to continue, as a dict.

    They are the values of the plan, names, shapes and types of the module's parameters, and
    what the keywords `others` add.
    """
    parameters = [
        (name, tuple(value.shape), str(value.dtype), value.device.type)
        for name, value in module.state_dict().items()
    ]
    return {**dataclasses.asdict(plan), "parameters": parameters, **others}

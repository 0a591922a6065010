"""Write what this version stores, for later ones to read: ``python tests/stored/write.py``.

Files of a released version are never written again.
"""

import copy
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import skops.io

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from every_estimator import EVERY, answer, data_for  # noqa: E402

import sklearn_attention  # noqa: E402

# Stored like the one without trees.
ALIKE = {"kernel attention and trees"}


def main():
    folder = HERE / sklearn_attention.__version__
    folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore", message="The validation loss was still falling")
    answers = {}
    for name in EVERY.keys() - ALIKE:
        data = data_for(EVERY[name])
        model = copy.deepcopy(EVERY[name]).fit(*data)
        answers[name] = answer(model, data)
        skops.io.dump(
            model, folder / f"{name}.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9
        )
    np.savez_compressed(folder / "answers.npz", **answers)


if __name__ == "__main__":
    main()

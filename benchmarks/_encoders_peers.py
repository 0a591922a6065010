"""MiniRocket and nearest neighbours of aeon, for a Python where it is installed.

    python benchmarks/_encoders_peers.py MODEL SET SEED DATA

prints the accuracy on the test series and the seconds as JSON. `encoders.py` runs it.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from _encoders_data import padded, series
from aeon.classification.convolution_based import MiniRocketClassifier
from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

MODELS = {
    "MiniRocket": lambda seed: MiniRocketClassifier(random_state=seed),
    "1-NN DTW": lambda seed: KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1),
}


def main(name, set_name, seed, data):
    train, test, y_train, y_test = series(Path(data), set_name)
    if name == "MiniRocket":  # takes equal lengths only
        longest = max(map(len, train + test))
        train, test = (padded(part, longest).transpose(0, 2, 1) for part in (train, test))
    else:
        train, test = ([x.T for x in part] for part in (train, test))
    # Numba compiles in the first call, which is not what a fit costs.
    _, some = np.unique(y_train, return_index=True)
    MODELS[name](0).fit(pick(train, some), y_train[some]).predict(pick(test, [0, 1]))
    clock = [time.process_time()]
    model = MODELS[name](int(seed)).fit(train, y_train)
    clock.append(time.process_time())
    accuracy = np.mean(model.predict(test) == y_test)
    clock.append(time.process_time())
    fit_s, predict_s = np.diff(clock)
    print(json.dumps({"accuracy": accuracy, "fit_s": fit_s, "predict_s": predict_s}))


def pick(sequences, some):
    return (
        sequences[some] if isinstance(sequences, np.ndarray) else [sequences[i] for i in some]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

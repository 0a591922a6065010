"""A process that has computed with threads, and its forked children."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from every_estimator import EVERY

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at threads in /proc"),
    pytest.mark.slow,
]

# For each estimator: whether threads of OpenMP were started to fit and to ask it; then what
# became of a forked child that does the same after this process has started some.
SCRIPT = """
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
import torch
from threadpoolctl import ThreadpoolController
from every_estimator import EVERY, data_for, fit_and_answer

def n_openmp_threads():
    # Those that are there before they are ended, and not afterwards.
    total = 0
    for library in ThreadpoolController().select(prefix="libgomp").lib_controllers:
        before = len(os.listdir("/proc/self/task"))
        library.dynlib.omp_pause_resource_all(2)
        time.sleep(0.02)
        total += before - len(os.listdir("/proc/self/task"))
    return total

def forked(function, seconds):
    child, start = os.fork(), time.monotonic()
    if child == 0:
        try:
            os._exit(0 if function() else 3)
        finally:
            os._exit(4)
    while time.monotonic() - start < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return {0: "same", 3: "other", 4: "error"}[os.waitstatus_to_exitcode(status)]
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"

def product():
    a = torch.arange(600.0 * 600).reshape(600, 600).sin()
    return a @ a

def same(own, other):
    return bool((own == other).all()) if hasattr(own, "shape") else own == other

torch.set_num_threads(2)
found = {}
for name in sys.argv[1:]:
    estimator = EVERY[name]
    data = data_for(estimator)
    n_openmp_threads()
    alone = fit_and_answer(estimator, data)
    n_started = n_openmp_threads()
    product()
    found[name] = n_started, forked(lambda: same(fit_and_answer(estimator, data), alone), 60)
many = product()
found["threads"] = forked(lambda: same(product(), many) and n_openmp_threads() == 1, 60)
assert n_openmp_threads() == 0  # forking ended them
print(json.dumps(found))
"""


def run(names):
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    several = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names], env=several, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found():
    return run(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_small_problems_start_no_threads(found, name):
    assert found[name][0] == 0


@pytest.mark.parametrize("name", EVERY)
def test_a_forked_child_fits_and_answers_the_same(found, name):
    assert found[name][1] == "same"


def test_a_forked_child_has_as_many_threads(found):
    assert found["threads"] == "same"

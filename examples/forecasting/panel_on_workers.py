"""
=======================================
Forecast a hundred thousand series
=======================================

Forecast as many series as you have on the workers of a Dask cluster, none of which has all
rows.

A panel of any size is forecast on the workers of a Dask cluster. Series are brought together in
groups of about 500, and each worker fits a forecaster to one group after the other, so that no
machine has all rows. Here the cluster is two processes of this machine with 2 GB each, and the
series are monthly sales that are simulated where they are needed; in practice they are read by
``dask.dataframe.read_parquet``.

Run it as ``python panel_on_workers.py [n_series]`` where ``dask`` and ``distributed`` are
installed. A hundred thousand series take about three minutes on two cores.
"""

# sphinx_gallery_thumbnail_path = 'gallery/thumb_panel.svg'

import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from sklearn_attention import TransformerForecaster

N_STEPS, CHUNK = 60, 2000


def simulate(first, n):
    """Sales of some shops: with a season, with a trend, or a random walk."""
    rng, steps = np.random.default_rng(first), np.arange(N_STEPS)
    kind = (np.arange(first, first + n) % 3)[:, None]
    phase = 2 * np.pi * steps / 12 + rng.uniform(0, 6, (n, 1))
    season = rng.uniform(5, 20, (n, 1)) * np.sin(phase)
    trend = rng.uniform(-0.5, 0.8, (n, 1)) * steps
    walk = rng.normal(size=(n, N_STEPS)).cumsum(axis=1)
    sales = 100 + np.select([kind == 0, kind == 1], [season, trend], walk)
    sales += rng.normal(size=sales.shape)
    months = pd.date_range("2020-01-01", periods=N_STEPS, freq="MS")
    ids = [f"shop {i}" for i in range(first, first + n)]
    return pd.DataFrame({
        "unique_id": np.repeat(ids, N_STEPS), "ds": np.tile(months, n), "y": sales.ravel(),
    })  # fmt: skip


def panel(n_series):
    """All shops as a Dask frame, which is not computed yet."""
    firsts = range(0, n_series, CHUNK)
    sizes = [min(CHUNK, n_series - first) for first in firsts]
    return dd.from_map(simulate, firsts, sizes, meta=simulate(0, 1)[:0])


def peak_megabytes():
    """The most memory that a process has had, as Linux tells it."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def count_tasks(dask_scheduler):
    """Number of groups that have been fitted, and of all groups that are known."""
    states = [task.state for task in dask_scheduler.tasks.values() if "fitted" in str(task.key)]
    return sum(state in ("memory", "released") for state in states), len(states)


def with_progress(client, function, *arguments):
    """Call a function in a thread, and draw a bar of the groups that are done."""
    with ThreadPoolExecutor() as pool:
        call = pool.submit(function, *arguments)
        while wait([call], timeout=1.0).not_done:
            done, total = client.run_on_scheduler(count_tasks)
            bar = "#" * round(40 * done / max(total, 1))
            print(f"\r[{bar:40}] {done} of {total} groups", end="", flush=True)
    print()
    return call.result()


def main():
    n_series = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "2GB"}
    with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster) as client:
        begin = time.perf_counter()
        model = with_progress(client, TransformerForecaster(12).fit, panel(n_series))
        print(f"fitted to {n_series} series in {time.perf_counter() - begin:.0f} s")
        begin = time.perf_counter()
        forecasts = model.predict(coverage=0.9).compute()
        print(f"forecast in {time.perf_counter() - begin:.0f} s")
        print(f"a worker had at most {max(client.run(peak_megabytes).values())} MB")
    print(forecasts.head(3).to_string(index=False, float_format="%.1f"))


if __name__ == "__main__":
    main()

"""Panels of series in partitions of Dask, on two worker processes with 2 GB each.

    python benchmarks/panels.py [--series 10000 30000 100000] [--data FOLDER]

Monthly series of 60 steps, simulated by ``examples/forecasting/panel_on_workers.py``, and the
monthly series of M3. Seconds are by the clock, on two cores with one thread each; those of
statsforecast are of a tenth of the series, times ten, in two processes.
"""

import argparse
import sys
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from _forecasting_data import TABLES
from _results import HERE, stamp
from distributed import Client, LocalCluster
from statsforecast import StatsForecast
from statsforecast.models import AutoETS, AutoTheta

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import _panels

sys.path.insert(0, str(HERE.parent / "examples" / "forecasting"))
from panel_on_workers import panel, peak_megabytes

MODELS = {"TransformerForecaster": TransformerForecaster, "KernelForecaster": KernelForecaster}
PEERS = {"AutoTheta": AutoTheta, "AutoETS": AutoETS}
HORIZON = 12


def on_cluster(model, n_series):
    """Seconds of a fit and of forecasts with intervals, and megabytes of the larger worker."""
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "2GB"}
    with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster) as client:
        begin = time.perf_counter()
        model.fit(panel(n_series))
        fitted = time.perf_counter()
        model.predict(coverage=0.9).compute()
        seconds = fitted - begin, time.perf_counter() - fitted
        return *seconds, max(client.run(peak_megabytes).values())


def of_peer(model, n_series):
    """Seconds in which statsforecast forecasts series with intervals, in two processes."""
    rows = panel(n_series).compute()
    rows["unique_id"] = rows["unique_id"].astype(str)
    begin = time.perf_counter()
    StatsForecast([model(season_length=12)], freq="MS", n_jobs=2).forecast(
        df=rows, h=HORIZON, level=[90]
    )
    return time.perf_counter() - begin


def m3_monthly(data):
    """Rows of the monthly series of M3, and the observations to forecast by series."""
    tasks = TABLES["m3"](data).items()
    fold = next(task() for (group, *_), task in tasks if group == "monthly").folds[0]
    parts = []
    for name, values in fold.past.items():
        dates = pd.date_range("1990-01-01", periods=len(values), freq="MS")
        own = {"unique_id": str(name), "ds": dates, "y": np.asarray(values, float)}
        parts.append(pd.DataFrame(own))
    future = {str(name): np.asarray(values, float) for name, values in fold.future.items()}
    return pd.concat(parts, ignore_index=True), future


def errors(forecasts, rows, future):
    """MASE, and the share of observations that intervals contain."""
    forecasts = forecasts.set_index("unique_id")
    mase, covered = [], []
    for name, past in rows.groupby("unique_id"):
        own, actual, past = forecasts.loc[name], future[name], past["y"].to_numpy(float)
        scale = np.abs(past[12:] - past[:-12]).mean()
        mase.append(np.abs(own["forecast"].to_numpy() - actual).mean() / scale)
        lower, upper = own["lower_90"].to_numpy(), own["upper_90"].to_numpy()
        covered.append((lower <= actual) & (actual <= upper))
    return np.mean(mase), np.mean(covered)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, nargs="*", default=[10_000, 30_000, 100_000])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    print("# Panels in partitions of Dask\n")
    print(
        f"{stamp('dask', 'statsforecast')} The monthly series have 60 steps and are "
        "simulated on the workers: a third with a season, a third with a trend, a third "
        "random walks. Two workers with one thread and 2 GB each fit a forecaster to every "
        "group of about 500 series and forecast 12 steps with 90 % intervals. Seconds are "
        "wall time; the memory of a worker includes all libraries. The seconds of "
        "statsforecast are ten times those of a tenth of the series.\n"
    )
    print(
        "| forecaster | series | seconds of the fit | seconds of forecasts | MB of a worker |"
    )
    print("|---|---|---|---|---|")
    for name, model in MODELS.items():
        for n in options.series:
            fit, predict, megabytes = on_cluster(model(HORIZON), n)
            print(f"| {name} | {n} | {fit:.0f} | {predict:.1f} | {megabytes} |", flush=True)
    largest = max(options.series)
    for name, model in PEERS.items():
        seconds = 10 * of_peer(model, largest // 10)
        what = f"statsforecast, {name}"
        print(f"| {what} | {largest} | {seconds:.0f} with forecasts | | |", flush=True)
    print(
        "\nThe monthly series of M3 are forecast 18 steps ahead, by one forecaster for all "
        "series in memory and by one forecaster for each group of series.\n"
    )
    print("| forecaster | series in a group | groups | MASE | coverage of 90 % intervals |")
    print("|---|---|---|---|---|")
    rows, future = m3_monthly(options.data)
    parts = dd.from_pandas(rows, npartitions=8, sort=False)
    for name, model in MODELS.items():
        for size in (None, 500, 300):
            if size is None:
                found, n_groups = model(18).fit(rows).predict(coverage=0.9), 1
            else:
                _panels._SERIES_PER_GROUP = size
                with dask.config.set(scheduler="synchronous"):
                    fitted = model(18).fit(parts)
                    found = fitted.predict(coverage=0.9).compute()
                n_groups = len(fitted.panel_.parts)
            mase, coverage = errors(found, rows, future)
            size = "all" if size is None else size
            print(f"| {name} | {size} | {n_groups} | {mase:.4f} | {coverage:.3f} |", flush=True)


if __name__ == "__main__":
    main()

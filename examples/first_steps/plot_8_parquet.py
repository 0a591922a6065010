"""
Rows in Parquet
===============

Fit a smoother to rows in Parquet files, which need not fit into memory.
"""

import tempfile

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import NadarayaWatsonRegressor

rng = np.random.default_rng(0)
hours, days = rng.uniform(0, 24, 10_000), rng.choice(["Mon", "Sun"], 10_000)
table = pd.DataFrame({"hour": hours, "day": days, "load": np.sin(hours / 4) + (days == "Mon")})
with tempfile.TemporaryDirectory() as folder:
    table.to_parquet(f"{folder}/table.parquet", row_group_size=1250)
    rows = dd.read_parquet(folder, split_row_groups=True)
    X, y = rows[["hour", "day"]], rows["load"]
    model = NadarayaWatsonRegressor(bandwidth="scott").fit(X, y)  # only sums come together
    print(f"R2 of all rows: {model.score(X, y):.3f}")
    hours = np.linspace(0, 24, 100)
    for day in ["Mon", "Sun"]:
        plt.plot(hours, model.predict(pd.DataFrame({"hour": hours, "day": day})), label=day)
plt.legend()
plt.gca().set(xlabel="hour", ylabel="load")

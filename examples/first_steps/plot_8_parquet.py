"""
Rows in Parquet
===============
"""

import tempfile

import dask.dataframe as dd
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
    print(model.predict(pd.DataFrame({"hour": [12.0, 12.0], "day": ["Mon", "Sun"]})))
    print(f"R2 of all rows: {model.score(X, y):.3f}")

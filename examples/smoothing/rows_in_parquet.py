"""
===============
Rows in Parquet
===============

A smoother is fitted on a folder of Parquet files, one of whose columns has texts. Dask reads
their groups of rows as partitions, and only sums of these come together.

Run it as ``python rows_in_parquet.py``, after ``pip install "sklearn-attention[dask]"
"dask[dataframe]"``.
"""

import tempfile

import dask.dataframe as dd
import numpy as np
import pandas as pd

from sklearn_attention import NadarayaWatsonRegressor

rng = np.random.default_rng(0)
days = rng.choice(["Mon", "Sun"], size=10_000)
table = pd.DataFrame({"hour": rng.uniform(0, 24, size=10_000), "day": days})
table["load"] = np.sin(table["hour"] / 4) + (days == "Mon")

with tempfile.TemporaryDirectory() as folder:
    table.to_parquet(f"{folder}/table.parquet", row_group_size=1250)
    rows = dd.read_parquet(folder, split_row_groups=True)
    X, y = rows[["hour", "day"]], rows["load"]
    model = NadarayaWatsonRegressor(bandwidth="scott").fit(X, y)
    noon = pd.DataFrame({"hour": [12.0, 12.0], "day": ["Mon", "Sun"]})
    print(f"at noon on Monday and Sunday: {model.predict(noon).round(2)}")
    print(f"R2 of all rows: {model.score(X, y):.3f}")

"""
=======================================
Search on the workers of a Dask cluster
=======================================

Run a grid search, and sums over partitions of rows, on the workers of a Dask cluster.

With the backend "dask" of joblib, a search sends its fits to the workers of a cluster. Here the
cluster is two processes of this machine, and a search chooses the bandwidth and the degree of
local polynomials. The same workers then sum over rows that stay in their partitions.

Run it as ``python search_on_workers.py`` where ``dask`` and ``distributed`` are installed. With
Ray, call ``ray.util.joblib.register_ray()`` and pass ``backend="ray"``.
"""

# sphinx_gallery_thumbnail_path = 'gallery/thumb_search.svg'

import dask.array as da
import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.model_selection import GridSearchCV

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor


def curve(x):
    return np.sin(3 * x) + 0.5 * x


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    y = curve(X[:, 0]) + 0.3 * rng.normal(size=2000)
    grid = {"bandwidth": np.geomspace(0.05, 0.8, 8), "degree": [0, 1, 2]}
    search = GridSearchCV(LocalPolynomialRegressor(), grid, cv=5)

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        with joblib.parallel_config(backend="dask"):
            search.fit(X, y)
        best = search.best_params_
        print(f"best: degree {best['degree']}, bandwidth {best['bandwidth']:.2f}")

        # A million rows in ten partitions, which exist only on the workers.
        rows = da.random.default_rng(0).normal(size=(1_000_000, 1), chunks=(100_000, 1))
        values = curve(rows[:, 0]) + 0.3 * da.random.default_rng(1).normal(
            size=1_000_000, chunks=100_000
        )
        model = NadarayaWatsonRegressor(bandwidth="scott").fit(rows, values)
        places = np.linspace(-1.5, 1.5, 200)[:, None]
        error = np.abs(model.predict(places) - curve(places[:, 0])).max()
        print(f"largest error of the curve from a million rows: {error:.2f}")


if __name__ == "__main__":
    main()

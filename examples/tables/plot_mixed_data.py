"""
=================================
Numbers and categories in a frame
=================================

Smooth a data frame of numbers and categories, without encoding a column by hand.

A data frame may have numbers, ordered categories and unordered ones. A product kernel has a
factor and a bandwidth for each column, and the search for the bandwidths removes columns
without effect. No column is encoded by hand.
"""

# %%
# Rents
# -----
#
# The data are simulated, so the truth is known. The rent of a flat is a nonlinear function of
# its area, and depends on the district and on the condition, which is ordered. The year of the
# contract and the colour of the door have no effect. ``condition`` has a categorical dtype
# with an order; strings are unordered categories.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor
from sklearn_attention.inspection import STYLE

rng = np.random.default_rng(0)
n, conditions = 400, ["poor", "fair", "good", "new"]
districts = {"harbour": 1.25, "old town": 1.2, "heights": 0.9, "station": 0.75}
flats = pd.DataFrame(
    {
        "area": rng.uniform(25, 125, n).round(),
        "year": rng.integers(2010, 2026, n).astype(float),
        "condition": pd.Categorical(rng.choice(conditions, n), conditions, ordered=True),
        "district": rng.choice(list(districts), n),
        "door": rng.choice(["red", "green", "blue"], n),
    }
)


def mean_rent(frame):
    """Rent without noise."""
    by_area = 300 + 9 * frame["area"] + 160 * np.sin(frame["area"] / 12)
    by_condition = 1 + 0.08 * frame["condition"].cat.codes
    return by_area * by_condition * frame["district"].map(districts)


rent = mean_rent(flats) + 60 * rng.normal(size=n)

# %%
# Bandwidths, relevance and significance
# --------------------------------------
#
# The search chooses all bandwidths together by leave-one-out. That of a category
# is its :math:`\lambda`: with 0 only rows of equal levels are averaged, and at its upper bound
# the kernel does not distinguish levels. In between, levels with few flats also use the others.
#
# ``relevance_`` brings bandwidths and lambdas to one scale, from 0, no effect, to 1.
# ``feature_significance`` tests by a bootstrap whether a column has an effect. Each of its
# draws chooses the bandwidths again, so it takes many fits: here those of local averages, which
# are fast, and 39 draws, with which the smallest p-value is 1/40.

model = LocalPolynomialRegressor().fit(flats, rent)
significance = NadarayaWatsonRegressor().fit(flats, rent).feature_significance(n_resamples=39)
summary = pd.DataFrame(
    {
        "kind": model.columns_.kinds,
        "bandwidth or lambda": model.bandwidth_.round(3),
        "relevance": model.relevance_.round(2),
        "p-value": significance.p_values,
    },
    index=flats.columns,
)
print(summary)

# %%
# The bandwidth of the year is so large that all years have the same weight, and the lambda of
# the door is at its upper bound: the search has removed both columns. The comparison has a
# linear model beside local averages and polynomials.

one_hot = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
)
rivals = {
    "local polynomials": LocalPolynomialRegressor(),
    "local averages": NadarayaWatsonRegressor(),
    "one-hot, least squares": make_pipeline(one_hot, LinearRegression()),
}
for name, rival in rivals.items():
    errors = -cross_val_score(rival, flats, rent, cv=5, scoring="neg_root_mean_squared_error")
    print(f"{name:<24} held-out error {errors.mean():.0f}, with noise of 60 in the data")

# %%
# The figure
# ----------
#
# Left: the relevance of each column. Right: the rent by area in two districts, for flats in
# good condition, as estimate and truth, with the 90 % confidence band of the truth. Each curve
# also uses flats in other conditions and districts, weighted by the lambdas.

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(12, 4.8), layout="constrained", width_ratios=[1, 1.5]
)
for row, column in enumerate(summary.to_dict("records")):
    color = BLUE if column["p-value"] <= 0.05 else GREY
    left.barh(row, column["relevance"], height=0.55, color=color)
    label = f"p = {column['p-value']:.3f}"
    left.text(column["relevance"] + 0.03, row, label, va="center", color=color)
left.set_yticks(
    range(len(summary)), [f"{column}\n{kind}" for column, kind in summary["kind"].items()]
)
left.tick_params(axis="y", length=0)
left.invert_yaxis()
left.set(title="Columns", xlabel="relevance", xlim=(0, 1.35), xticks=[0, 0.5, 1])

area = np.linspace(25, 125, 150)
for district, color in [("harbour", ORANGE), ("station", BLUE)]:
    queries = pd.DataFrame({"area": area, "year": 2020.0})
    queries["condition"] = pd.Categorical(["good"] * 150, conditions, ordered=True)
    queries["district"], queries["door"] = district, "red"
    band = model.confidence_band(queries)
    there = (flats["district"] == district) & (flats["condition"] == "good")
    right.scatter(flats["area"][there], rent[there], s=20, color=color, alpha=0.6, lw=0)
    right.fill_between(area, *band.T, color=color, alpha=0.2, lw=0)
    right.plot(area, model.predict(queries), color=color, lw=2.2, label=district)
    right.plot(area, mean_rent(queries), color=INK, lw=1, ls="--")
right.set(title="Rent of flats in good condition", xlabel="area (m²)", ylabel="rent")
right.legend(frameon=False, loc="upper left")
plt.show()

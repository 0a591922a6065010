"""
=========================
Why a flat has this price
=========================

Explain a predicted price by what each column adds to it, for one flat and for all.

An agency estimates the prices of flats. An owner asks why hers is estimated at so little, and
the agency asks what prices depend on. Pictures of the effects of the columns answer both
(:class:`~sklearn_attention.inspection.FeatureEffectsDisplay`), and
:meth:`~sklearn_attention.KernelAttentionRegressor.partial_dependence` says how prices follow a
single column. Flats are simulated here.
"""

# %%
# The flats
# ---------
#
# A square metre costs 3500 to 5000 euros in a new house, and 12 euros less for every year of
# age. A balcony is worth 15 000 euros, and every floor without a lift costs 9000. The number of
# the house does not matter.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import PartialDependenceDisplay, permutation_importance

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention.inspection import FeatureEffectsDisplay

rng = np.random.default_rng(1)
n = 1300
flats = pd.DataFrame(
    {
        "square metres": rng.uniform(30, 140, n).round(),
        "district": rng.choice(["centre", "park", "harbour", "hill"], n),
        "built": rng.integers(1900, 2024, n),
        "floor": rng.integers(0, 7, n),
        "lift": rng.choice(["yes", "no"], n),
        "balcony": rng.choice(["yes", "no"], n),
        "house number": rng.integers(1, 90, n),
    },
    index=pd.RangeIndex(n, name="flat"),
)
per_metre = flats["district"].map({"centre": 5.0, "park": 4.2, "harbour": 3.8, "hill": 3.5})
price = (
    flats["square metres"] * (per_metre - 0.012 * (2024 - flats["built"]))
    + 15 * (flats["balcony"] == "yes")
    - 9 * flats["floor"] * (flats["lift"] == "no")
    + 12 * rng.normal(size=n)
)  # in thousands of euros
model = KernelAttentionRegressor().fit(flats[:1000], price[:1000])

# %%
# One flat
# --------
#
# The picture leads from the mean price, in the first line, to the estimate for this flat. Each
# bar is in thousands of euros and says how much a column adds for this flat. The bars sum to
# the difference between the two.

asked = flats[1000:]
name = "the price in thousands"
FeatureEffectsDisplay.from_estimator(model, asked[7:8], name=name)

# %%
# All flats
# ---------
#
# Each dot is a flat. Large flats are yellow, and far to the right. The effect of the floor is
# not the same for all flats on the same floor: it depends on the lift.

FeatureEffectsDisplay.from_estimator(model, asked, name=name)

# %%
# Which columns matter?
# ---------------------
#
# The mean absolute effect says how much estimates depend on a column, in thousands of euros.
# The permutation importance says how much worse estimates become without it; it needs the
# prices that were paid.

effects = model.explain_features(asked)
lost = permutation_importance(
    model, asked, price[1000:], scoring="neg_mean_absolute_error", random_state=0
)
ranking = pd.DataFrame(
    {
        "mean effect": effects.drop(columns="base value").abs().mean(),
        "permutation importance": lost.importances_mean,
    }
)
print(ranking.sort_values("mean effect", ascending=False).round(1))

# %%
# How prices follow one column
# ----------------------------
#
# This is the mean estimate over the flats if all of them had been built in the same year. A
# sample of 300 flats is enough for a mean, and takes a fraction of a second. The mean flat has
# 85 square metres, so that a year should add about 1000 euros.

dependence = model.partial_dependence(asked, "built")
display = PartialDependenceDisplay(
    [dependence],
    features=[(2,)],
    feature_names=list(flats),
    target_idx=0,
    deciles={2: np.quantile(asked["built"], np.arange(0.1, 1, 0.1))},
).plot()
display.axes_[0, 0].set(
    xlabel="year in which the house was built", ylabel="mean price in thousands"
)
plt.show()

"""
==================================
Why the model expects her to leave
==================================

Explain a probability to someone who has to act on it, in one picture.

A telephone company predicts which customers will leave, and calls those at risk. Whoever makes
the call asks: what is it about this customer?
:class:`~sklearn_attention.inspection.FeatureEffectsDisplay` answers with one picture. Customers
are simulated here, so that we know what really moves them.
"""

# %%
# The customers
# -------------
#
# The risk depends on the contract, on how long someone has been a customer, on the monthly
# charge, and on calls to the support beyond two. Age and region do not matter.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit

from sklearn_attention import KernelAttentionClassifier
from sklearn_attention.inspection import FeatureEffectsDisplay

rng = np.random.default_rng(7)
n = 1300
customers = pd.DataFrame(
    {
        "contract": rng.choice(["monthly", "one year", "two years"], n, p=[0.5, 0.3, 0.2]),
        "years": rng.uniform(0, 6, n).round(1),
        "charge": rng.uniform(15, 95, n).round(),
        "support calls": rng.poisson(1.5, n),
        "age": rng.integers(18, 80, n),
        "region": rng.choice(["north", "south", "west"], n),
    },
    index=pd.RangeIndex(n, name="customer"),
)
log_odds = (
    -3.4
    + customers["contract"].map({"monthly": 1.5, "one year": 0.0, "two years": -0.7})
    - 0.4 * customers["years"]
    + 0.03 * customers["charge"]
    + 0.8 * (customers["support calls"] - 2).clip(lower=0)
)
leaves = np.where(rng.random(n) < expit(log_odds), "leaves", "stays")
model = KernelAttentionClassifier().fit(customers[:1000], leaves[:1000])

# %%
# One customer
# ------------
#
# Start at the top. A typical customer leaves with a probability of 13 %. Each bar is a
# column of the table, with the value of this customer: blue bars raise the probability, orange
# bars lower it, and the longest come first. The last line has the probability that the model
# predicts.
#
# The text at the right of a bar has the factor by which a column changes the odds. The odds are
# the number of customers who leave for each one who stays. Factors multiply, so the axis has
# larger steps for small and for large probabilities.

asked = customers[1000:]
risk = pd.Series(model.predict_proba(asked)[:, 0], asked.index)
risky = risk[asked["support calls"] == 4].idxmax()
display = FeatureEffectsDisplay.from_estimator(
    model, asked.loc[[risky]], class_label="leaves", name="the chance that she leaves"
)

# %%
# Customers are simulated, so we know the true factors between the odds of this customer and
# those of all customers.

effects = display.effects.iloc[0].drop("base value")
parts = pd.DataFrame(
    {
        "contract": customers["contract"].map(
            {"monthly": 1.5, "one year": 0, "two years": -0.7}
        ),
        "years": -0.4 * customers["years"],
        "charge": 0.03 * customers["charge"],
        "support calls": 0.8 * (customers["support calls"] - 2).clip(lower=0),
        "age": 0.0,
        "region": 0.0,
    }
)
truth = parts.loc[risky] - parts[:1000].mean()
print(np.exp(pd.DataFrame({"factor by the model": effects, "true factor": truth})).round(1))

# %%
# All customers
# -------------
#
# For several rows, each column has a line with a dot for each customer. Dots on the right raise
# the chance, and yellow dots are large values: many support calls raise it, many years lower
# it. A contract is not a number, so its dots are grey; one of its three groups is far to the
# right.

FeatureEffectsDisplay.from_estimator(
    model, asked, class_label="leaves", name="the chance to leave"
)

# %%
# The mean length of the bars over all customers ranks the columns.

FeatureEffectsDisplay.from_estimator(
    model, asked, class_label="leaves", name="the chance to leave", kind="bar"
)
plt.show()

# %%
# What the picture does not say
# -----------------------------
#
# The bars describe the model. They do not say what would happen if the company changed
# something: customers with a two-year contract leave less often, but whoever is talked into one
# need not stay. Columns that go together, such as two prices, share an effect, whichever of
# them is the cause.

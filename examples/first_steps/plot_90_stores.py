"""
Stores with promotions
======================

Forecast the sales of two stores, and see how much of them promotions add.
"""

import numpy as np
import pandas as pd

from sklearn_attention import TransformerForecaster
from sklearn_attention.inspection import ForecastDisplay

rng, days = np.random.default_rng(0), pd.date_range("2024-01-01", periods=300)
sales = []
for store, level in (("north", 50), ("south", 80)):
    promotion = rng.random(300) < 0.1
    y = level + 10 * (days.day_of_week > 4) + 25 * promotion + rng.normal(0, 3, 300)
    rows = {"unique_id": store, "ds": days, "promotion": promotion * 1.0, "y": y}
    sales.append(pd.DataFrame(rows))
sales = pd.concat(sales)
past, later = sales[sales["ds"] < days[-14]], sales[sales["ds"] >= days[-14]]
model = TransformerForecaster(14).fit(past)
print(model.predict(later.drop(columns="y"), coverage=0.8).groupby("unique_id").head(3))
ForecastDisplay.from_estimator(model, later.drop(columns="y"), y=later, effects=True)

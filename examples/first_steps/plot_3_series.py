"""
Three series with holidays
==========================

Forecast three series at once, with holidays that are known in advance.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import TransformerForecaster
from sklearn_attention.inspection import ForecastDisplay

days = pd.date_range("2023-01-01", periods=420, name="day")
X = pd.DataFrame({"holiday": (days.day == 1).astype(float)}, index=days)
week = np.array([0, 1, 2, 3, 4, -5, -5])[days.day_of_week] - 10 * X["holiday"]
noise = np.random.default_rng(0).normal(size=(420, 3))
sales = pd.DataFrame({shop: 40 + week for shop in ["north", "south", "west"]}) + 2 * noise
model = TransformerForecaster(horizon=28).fit(X[:-28], sales[:-28])
print(model.predict(X[-28:], coverage=0.9)["north"].head().round(1))
backtest = model.backtest(X, sales, cv=3, coverage=0.9)  # columns as in the next line
print(backtest[["series", "cutoff", "actual", "forecast", "lower_90", "upper_90"]].tail(3))
ForecastDisplay.from_estimator(model, X[-28:], sales[-28:])
plt.show()

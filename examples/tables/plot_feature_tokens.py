"""
==================
Features as tokens
==================

See which features of a table a transformer attends to when it predicts a row.

:class:`~sklearn_attention.TransformerRegressor` makes a token of every feature of a table,
numeric or categorical, and applies self-attention. The prediction is computed from a further
token, [CLS], which attends to all features. This example shows its weights.
"""

# %%
# Data with an interaction
# ------------------------
#
# The data are simulated, so the truth is known. The comfort of a room is a nonlinear function
# of its temperature, except in the cellar, where temperature has no effect. Noise has an effect
# in all rooms, and its values, mostly large ones, are sometimes missing. The day of the week
# has none.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import TransformerRegressor
from sklearn_attention.inspection import STYLE

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

rng = np.random.default_rng(0)
n, rooms = 800, ["attic", "cellar", "office"]
table = pd.DataFrame(
    {
        "temperature": rng.uniform(10, 34, n),
        "noise": rng.gamma(4, 10, n),
        "room": rng.choice(rooms, n),
        "weekday": rng.integers(7, size=n).astype(float),
    }
)


def comfort(table):
    """True comfort, without the random error."""
    by_heat = 10 - 0.15 * np.abs(table["temperature"] - 21) ** 1.5
    return by_heat.where(table["room"] != "cellar", 5.0) - table["noise"] / 20


y = comfort(table) + 0.3 * rng.normal(size=n)
loud = rng.uniform(0, 120, n) < table["noise"]
observed = table.assign(noise=table["noise"].mask(loud))
print(observed.head())

# Without the baseline of boosted trees, predictions come from the transformer only.
model = TransformerRegressor(baseline=False).fit(observed[:600], y[:600])
print(f"R² on other rows: {model.score(observed[600:], y[600:]):.2f}")

# %%
# Attention weights of [CLS]
# --------------------------
#
# ``attention_maps`` has [CLS] first, then the features in their order. The first row of the
# maps of the last layer has the weights of the tokens in the prediction. In the cellar the room
# has the largest one. A weight is not an effect, as the weekday shows: the value of a token may
# contribute nothing.

heat = pd.DataFrame(
    {
        "temperature": np.tile(np.linspace(10, 34, 80), 3),
        "noise": 40.0,
        "room": np.repeat(rooms, 80),
        "weekday": 3.0,
    }
)
predicted = model.predict(heat)
maps = model.attention_maps(observed[600:])[:, -1].mean(axis=1)  # mean over heads
names = ["[CLS]", *observed.columns]
rows = {
    "cellar": (observed["room"] == "cellar")[600:],
    "other rooms": (observed["room"] != "cellar")[600:],
    "noise missing": observed["noise"].isna()[600:],
}
average = pd.DataFrame({name: maps[of.to_numpy(), 0].mean(axis=0) for name, of in rows.items()})
average.index = names
print(average.round(2))

fig, (left, right) = plt.subplots(
    1, 2, figsize=(10.5, 4.2), width_ratios=[1.5, 1], layout="constrained"
)
for room, color in zip(rooms, (ORANGE, GREY, BLUE), strict=True):
    of_room = heat["room"] == room
    x = heat.loc[of_room, "temperature"]
    left.plot(x, comfort(heat)[of_room], color=color, lw=1, ls=":")
    left.plot(x, predicted[of_room], color=color, label=room, lw=2)
left.set(title="Prediction, and truth (dotted)", xlabel="temperature", ylabel="comfort")
left.legend(frameon=False)
image = right.imshow(average, cmap="Blues", vmin=0, aspect="auto")
right.set(xticks=range(len(rows)), yticks=range(len(names)), title="Weights of [CLS]")
right.set_xticklabels(rows)
right.set_yticklabels(names)
right.spines[:].set_visible(False)
fig.colorbar(image, ax=right, label="weight")
plt.show()

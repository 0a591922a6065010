"""A manager asks which columns made the model say that a customer will leave."""

import numpy as np
import pandas as pd

from sklearn_attention import KernelAttentionClassifier


def test_a_customer_who_calls_often_and_pays_much():
    rng = np.random.default_rng(0)
    customers = pd.DataFrame(
        {
            "plan": rng.choice(["basic", "gold"], 200),
            "charge": rng.uniform(10, 60, 200),
            "calls": rng.poisson(2.0, 200),
            "letters": rng.normal(size=200),
        },
        index=[f"customer {i}" for i in range(200)],
    )
    risk = 0.1 * (customers["charge"] - 35) + 1.5 * (customers["calls"] - 2)
    leaves = np.where(risk + rng.logistic(size=200) > 1, "leaves", "stays")
    model = KernelAttentionClassifier(n_folds=1, max_steps=3, boosting=None)
    model.fit(customers[:-1], leaves[:-1])
    asked = customers[-1:].assign(charge=55.0, calls=6)
    effects = model.explain_features(asked, class_label="leaves")
    assert effects.index.tolist() == ["customer 199"]
    ranked = effects.loc["customer 199"].drop("base value").sort_values(ascending=False)
    assert ranked.index[:2].tolist() == ["calls", "charge"]
    assert ranked["charge"] > 2 * ranked[["plan", "letters"]].abs().max()
    # The odds of leaving are those that the model predicts.
    probability = model.predict_proba(asked)[0, 0]
    np.testing.assert_allclose(np.exp(effects.sum(axis=1)), probability / (1 - probability))

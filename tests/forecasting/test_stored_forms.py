"""Files of 0.2.0 with candidates and a calibration that later versions fit otherwise."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._stored_forms import stored_calibration, stored_ridge

STORED = Path(__file__).parents[1] / "stored" / "0.2.0" / "forecasting"


# A panel of quarters and a single series, both on logarithms. Candidates are trends of the
# series themselves and, in the panel, ridges of each series, and a network corrects them.
@pytest.mark.usefixtures("all_rates")
@pytest.mark.parametrize("name", ["series", "panel"])
def test_stored_candidates_forecast_what_they_did(name):
    skops = pytest.importorskip("skops.io")
    path = STORED / f"{name}.skops"
    model = skops.load(path, trusted=skops.get_untrusted_types(file=path))
    with np.load(STORED / "answers.npz") as answers:
        expected, ends = answers[name], answers[f"{name} ends"]
        quantiles = answers[f"{name} quantiles"]
    for loaded in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(loaded.predict(7), expected, rtol=1e-6)
        # It learned from series as they are, and is not told of breaks.
        table = Table.from_arrays([np.repeat([1.0, 9.0], [40, 8])])
        assert np.isinf(loaded._aligned(table)[1]).all()
        assert (loaded.correction_ is None) == (name == "series")
        # Residuals of all steps are pooled now, which changes widths a little. Beyond the
        # horizon they grow otherwise.
        widths = np.ptp(loaded.predict_interval(7), axis=1) / np.ptp(ends, axis=1)
        widths = widths[: model.horizon_]
        assert 0.95 < widths.min() <= widths.max() < 1.05
        np.testing.assert_allclose(loaded.predict_quantiles(3), quantiles, rtol=0.02)
    assert "raw theta" in model.candidate_weights_
    assert ("own ridge of 4 steps" in model.candidate_weights_) == (name == "panel")


def test_the_profile_is_taken_out_of_stored_errors():
    rng = np.random.default_rng(0)
    growth = np.array([0.5, 1.0, 1.5])
    errors = growth[:, None] * rng.choice([-1.0, 1.0], size=(70, 3, 1))
    fields = {
        "levels": np.array([0.5]), "errors": errors, "error": np.ones(1), "unit": np.ones(1),
        "of_new_series": (1.0, 1.0), "until": np.array([70]), "widening": 1.0,
    }  # fmt: skip
    calibration = stored_calibration(**fields)
    np.testing.assert_allclose(calibration.profile, growth)
    np.testing.assert_allclose(np.abs(calibration.scaled_residuals), 1)
    # Forecasts may have been exact.
    exact = stored_calibration(**fields | {"errors": 0 * errors})
    np.testing.assert_array_equal(exact.profile, 1)


@pytest.mark.parametrize("own", [False, True])
def test_a_stored_ridge_may_have_had_too_few_windows(own):
    ridge = stored_ridge(4, None, groups=(), own=own, penalty=1.0)
    assert len(ridge.names) == 1 + own
    assert ridge.coef is None or np.isnan(ridge.coef).all()

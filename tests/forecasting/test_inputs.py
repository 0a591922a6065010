"""Requests of forecasts, and series that begin after a forecaster has learned."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from forecasting_data import fit, make_features, make_panel, make_series, tidy_of

A, B = make_panel().values()
WIDE = pd.DataFrame({"a": A, "b": make_series(seed=1)})
C = make_series(seed=2)[50:58]
X = make_features()


def formed(series, form):
    """A dict of Series in another form."""
    if form in ("dict", "frame"):
        return series if form == "dict" else pd.DataFrame(series)
    if form == "arrays":
        return {name: own.to_numpy() for name, own in series.items()}
    long = pd.concat(series, names=["site", "month"]).rename("load")
    return {"long": long, "long_frame": long.to_frame(), "tidy": tidy_of(long)}[form]


@pytest.mark.parametrize("form", ["dict", "arrays", "long", "tidy"])
def test_new_series_are_forecast_from_then_on(form):
    model = fit(formed({"a": A[:50], "b": B[:50]}, form))
    learned = model.calibration_
    model.update(formed({"a": A[50:58], "c": C}, form))
    assert model.calibration_ is learned
    fresh = {"a": A[:58], "b": B[:50], "c": C}
    found = model.predict()
    # With all that has been observed as the history forecasts are the same.
    expected = model.predict(history=formed(fresh, form))
    if form == "tidy":
        pd.testing.assert_frame_equal(found, expected)
    elif form == "arrays":
        assert list(found) == list("abc")
        for name in "abc":
            np.testing.assert_array_equal(found[name], expected[name])
    else:
        found, expected = (
            formed(part, "long") if form == "dict" else part for part in (found, expected)
        )
        np.testing.assert_array_equal(found, expected)
        assert found.index.equals(expected.index)
    loaded = pickle.loads(pickle.dumps(model)).update(formed({"c": make_series()[58:]}, form))
    assert loaded.observed_.lengths.tolist() == [58, 50, 10]


def test_they_need_features():
    model = fit(X[:50], {"a": A[:50], "b": B[:50]})
    model.update(X[45:58], {"a": A[50:58], "c": make_series(seed=2)[45:58]})
    assert list(model.observed_.names) == ["a", "b", "c"]
    expected = np.concatenate([X[:58], X[:50], X[45:58]])
    np.testing.assert_array_equal(model.observed_.features, expected)
    assert list(model.predict(X[50:])["c"].index) == list(A.index[50:])


def test_a_single_series_has_no_others():
    model = fit(A[:50])
    with pytest.raises(ValueError, match=r"y has the series \['c'\], but"):
        model.update({"load": A[50:], "c": C})
    table = fit(WIDE[:50].to_numpy())
    with pytest.raises(ValueError, match=r"y has the series \[2\], but"):
        table.update(np.ones((3, 3)))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="begins at"):
        fit({"a": A[10:50]}).update({"c": A[:40]})
    assert pickle.dumps(model) == before


class TestMissingAfterwards:
    """Gaps between what is known and what follows."""

    values = A.mask(np.isin(np.arange(60), [50, 53, 54]))

    def filled(self, form, missing):
        """All rows of a form with gaps, and those that a forecaster fills from the whole."""
        data = {
            "series": self.values,
            "frame": pd.DataFrame({"a": self.values, "b": WIDE["b"]}),
            "table": np.column_stack([self.values, WIDE["b"]]),
        }[form]  # fmt: skip
        return data, fit(data, missing=missing, season_length=12).observed_

    @pytest.mark.parametrize(
        ("form", "missing"),
        [("series", "interpolate"), ("frame", "seasonal"), ("table", "interpolate")],
    )
    def test_are_filled_by_both(self, form, missing):
        data, whole = self.filled(form, missing)
        for cuts in ([50, 56, 60], [50, 51, 54, 55, 60]):
            model = fit(data[:50], missing=missing, season_length=12)
            for start, stop in pairwise(cuts):
                model.update(data[start:stop])
                assert len(model.observed_.time) == stop
            if missing == "interpolate":
                np.testing.assert_allclose(model.observed_.value, whole.value)
            assert np.abs(model.observed_.value[:60] - A).max() < 2
            assert model.observed_.lengths.tolist() == whole.lengths.tolist()

    def test_missing_steps_are_filled_if_asked(self):
        model = fit(A[:50])
        with pytest.raises(ValueError, match="begins at 2019-04-01, but the next step is"):
            model.update(A[51:])
        panel = fit({"a": A[:50], "b": B[:45]})
        with pytest.raises(ValueError, match=r"'[ab]' begins at .*, but the next step"):
            panel.update({"a": A[51:], "b": A[51:]})
        model = fit(A[:50], missing="interpolate").update(A[51:])
        expected = A.mask(A.index == A.index[50]).interpolate()
        np.testing.assert_allclose(model.observed_.value, expected)
        with pytest.raises(ValueError, match="begins at 2019-12-01, but the next step is 2020"):
            model.update(A[59:])

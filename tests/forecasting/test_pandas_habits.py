"""What users of pandas and of other libraries do, and expect."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
from forecasting_data import fit, make_features, make_panel, make_series, new
from sklearn.model_selection import KFold, cross_val_score

A, B = make_panel().values()
X = make_features()


@pytest.mark.parametrize(
    ("date", "steps"),
    [
        ("2020", 12), ("2020Q2", 6), (pd.Timestamp("2020-05-31 23:59"), 5),
        (datetime.date(2020, 6, 1), 6), (pd.Period("2020", "Y"), 12),
    ],
)  # fmt: skip
@pytest.mark.parametrize("period", [False, True])
def test_dates_are_the_last_step(date, steps, period):
    model = fit(A.to_period("M") if period else A)
    pd.testing.assert_series_equal(model.predict(date), model.predict(steps))
    pd.testing.assert_frame_equal(model.predict_interval(date), model.predict_interval(steps))


def test_dates_of_time_zones():
    series = make_series("10min")
    model = fit(series[:45])
    for date in (series.index[50].tz_convert("UTC"), str(series.index[50])):
        assert model.predict(date).index[-1] == series.index[50]
    for known, date in [(A, "2020-06-01T00:00+02:00"), (A.to_period("M"), series.index[50])]:
        with pytest.raises(ValueError, match="time zone"):
            fit(known).predict(date)


@pytest.mark.parametrize(
    ("date", "message"),
    [
        ("soon", "X='soon' is not a date: pass"),
        # However long a text is, it is refused at once.
        (
            "2024" + ":00" * 1200 + "a" * 1200 + "!",
            "X='2024:00:00.* is not a date: pass one",
        ),
        ("05.01.2020", "X='05.01.2020' is not a date: pass one such as '2024-06'"),
        (pd.NaT, "X=NaT is not a date: pass"),
        ("2019-12", "X='2019-12' is not after the end of the series, 2019-12-01"),
        ("1999", "X='1999' is not after the end"),
    ],
)
def test_bad_dates(date, message):
    with pytest.raises(ValueError, match=message):
        fit(A).predict(date)
    plain = fit(A.to_numpy())
    with pytest.raises(ValueError, match=r"X='.*2020' is a date, but the"):
        plain.predict("2020")
    with pytest.raises(ValueError, match="but the series are without index"):
        plain.predict(A.index)


@pytest.mark.parametrize("data", [(A,), (X, A)])
def test_folds_of_a_cross_validation_that_are_not_in_time(data):
    message = r"cv=TimeSeriesSplit\(...\)"
    shuffled = KFold(5, shuffle=True, random_state=0)
    for cv, error_score in [(5, "raise"), (shuffled, np.nan)]:
        with pytest.raises(ValueError, match=message):
            cross_val_score(new(), *data, cv=cv, error_score=error_score)
    # Folds are nan that cannot be, and the warnings say why: of the first fold it is the
    # score that fails, of others the fit.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = cross_val_score(new(), *data, cv=5)
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2
    assert all("cv=TimeSeriesSplit(...)" in text for text in texts)
    assert np.isnan(scores).tolist() == [True, True, True, True, False]

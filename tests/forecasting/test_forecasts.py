"""One pass over the candidates, which every answer is made from."""

import numpy as np
from forecasting_data import make_series

from sklearn_attention import TransformerForecaster
from sklearn_attention.forecasting import Forecasts, Origins, Table


class Fixed:
    """Candidates that forecast constants, the second none from short series."""

    weights, attention = np.array([[0.25, 0.75, 0.0]]), None

    def weights_at(self, origins):
        return np.repeat(self.weights, len(origins), axis=0)

    def each(self, origins, wanted=None):
        found = np.repeat([[1.0, 5.0, 9.0]], len(origins), axis=0)
        found[origins.n_known < 4, 1] = np.nan
        found[:, ~wanted if wanted is not None else []] = np.nan
        return np.repeat(found[:, :, None], origins.horizon, axis=2)


def origins_at(*known):
    table = Table.from_arrays([np.arange(10.0)])
    return Origins.at_ends(table, 2).at_steps(np.zeros(len(known), int), np.array(known))


def test_candidates_with_a_forecast_are_averaged_and_all_may_disagree():
    plain, full = (
        Forecasts.from_candidates(origins_at(3, 7), Fixed(), full=full)
        for full in (False, True)
    )
    for found in (plain, full):
        np.testing.assert_allclose(found.mean, [[1, 1], [4, 4]])
    assert np.isnan(plain.candidate_forecasts[:, 2]).all()
    assert plain.ensemble_mad is None
    np.testing.assert_allclose(full.ensemble_mad, [[4, 4], [8 / 3, 8 / 3]])
    # Where those with weight have none the others count.
    candidates = Fixed()
    candidates.weights = np.array([[0.0, 1.0, 0.0]])
    found = Forecasts.from_candidates(origins_at(3, 7), candidates)
    np.testing.assert_allclose(found.mean, [[5, 5], [5, 5]])


def test_any_number_of_coverages_takes_one_pass_for_each_horizon(monkeypatch):
    model = TransformerForecaster(3, candidates=["classical", "ridge"]).fit(make_series(n=90))
    kind, calls = type(model.combined_), []
    each = kind.each
    monkeypatch.setattr(kind, "each", lambda *given: calls.append(given) or each(*given))
    coverages = [0.5, 0.8, 0.9]
    for call, n_passes in [
        (lambda: model.predict(coverage=coverages), 1),
        (lambda: model.predict(7, coverage=coverages), 3),
        (model.predict_interval, 1), (model.predict_quantiles, 1), (model.explain, 1),
    ]:  # fmt: skip
        calls.clear()
        call()
        assert len(calls) == n_passes

"""Which candidates there are, and what becomes of them."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from forecasting_training import make_walks

from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._combined_forecast import CombinedForecast, fit_combined
from sklearn_attention.forecasting._transformer_candidate import (
    Scaling,
    TransformerCandidate,
)

HORIZON = 3


@dataclass(frozen=True)
class Level:
    """A candidate of two names, which counts its calls."""

    value: float
    calls: list

    @property
    def names(self):
        return (f"{self.value}", f"twice {self.value}")

    def forecast(self, origins):
        self.calls.append(len(origins))
        one = np.full((len(origins), origins.horizon), self.value)
        return np.stack([one, 2 * one], axis=1)


class Stub(TransformerCandidate):
    """A transformer that forecasts the truth, or nothing worth it."""

    def fit(self, training):
        if self.network is None:
            return self, np.full((len(training.validation), 1, HORIZON), np.nan)
        missed = float(self.network != "perfect")
        unit = training.scale[training.validation.series, None, None]
        return self, training.validation.targets()[:, None] + 1e6 * missed * unit


def combined(weights, usual=(0.5, 0, 0, 0.5)):
    candidates = [Level(1.0, []), Level(10.0, [])]
    return CombinedForecast(candidates, None, np.array(weights), np.array(usual))


def names_of(table, **options):
    arguments = {"seasons": [1.0], "lookback": None, "logs": False} | options
    return fit_combined(table, HORIZON, **arguments)[0].names


class TestCombinedForecast:
    def test_weights_are_those_of_the_series_or_the_usual_ones(self):
        model = combined([[1.0, 0, 0, 0], [0, 0, 1, 0]])
        table = Table.of([np.ones(5)] * 3, identity=np.array([1, -1, 0]))
        found = model.weights_at(table.at_ends(HORIZON))
        np.testing.assert_array_equal(found, [[0, 0, 1, 0], [0.5, 0, 0, 0.5], [1, 0, 0, 0]])

    def test_only_candidates_with_a_wanted_name_are_computed(self):
        model = combined([[0, 1.0, 0, 0]])
        origins = Table.of([np.ones(5)]).at_ends(HORIZON)
        found = model.each(origins, np.array([False, True, False, False]))
        np.testing.assert_array_equal(found[0, :2, 0], [1, 2])
        assert np.isnan(found[0, 2:]).all()
        assert [len(one.calls) for one in model.candidates] == [1, 0]
        np.testing.assert_array_equal(model.each(origins)[0, :, 0], [1, 2, 10, 20])

    def test_shares_of_a_class_are_those_of_all_its_names(self):
        model = combined([[0.1, 0.2, 0.3, 0.4], [1.0, 0, 0, 0]])
        assert model.share_of(Level) == pytest.approx(1)
        assert model.share_of(TransformerCandidate) == 0
        table = Table.of(make_walks([40, 30]))
        one = TransformerCandidate(4, scaling=Scaling.of(table.origins(HORIZON, 4), 4))
        assert CombinedForecast.of(one).share_of(TransformerCandidate) == 1

    def test_a_transformer_computes_where_it_is_wanted(self):
        model = combined([[0.5, 0, 0, 0.5]])
        assert model.on("cuda") is model
        more = replace(model, candidates=[*model.candidates, TransformerCandidate(4)])
        assert more.on("cuda").transformer.device == "cuda"
        assert more.transformer.device == "auto"


class TestFitCombined:
    @pytest.mark.parametrize(("n", "lengths"), [(80, [8, 24]), (200, [8, 24, 56])])
    def test_windows_fit_into_a_series(self, n, lengths):
        names = names_of(Table.of(make_walks([n])), kinds=["ridge"])
        assert names == [f"ridge of {length} steps" for length in lengths]

    def test_windows_are_measured_in_seasons(self):
        table = Table.of(make_walks([100]))
        names = names_of(table, kinds=["ridge"], seasons=[6.4, 30.0])
        assert names == [f"ridge of {length} steps" for length in (6, 19, 45)]
        names = names_of(table, kinds=["ridge"], seasons=[6.4], lookback=11)
        assert names == ["ridge of 11 steps"]

    def test_many_series_are_adjusted_for_one_season(self):
        few, many = (Table.of(make_walks([40] * n)) for n in (2, 30))
        options = {"kinds": ["classical"], "seasons": [6.0, 4.0]}
        assert len(names_of(few, **options)) == 2 * len(names_of(many, **options))

    def test_where_nothing_is_validated_all_count_alike(self):
        found, training, every, held_out = fit_combined(
            Table.of([np.array([3.0, 4.0, 5.0])]), HORIZON, [1.0], None, False, ["classical"]
        )
        assert len(training.block) == len(every) == len(held_out) == 0
        np.testing.assert_allclose(found.weights, 1 / len(found.names))
        np.testing.assert_allclose(found.usual, found.weights[0])

    @pytest.mark.parametrize("network", ["perfect", "worthless", None])
    def test_a_transformer_is_kept_where_it_has_weight(self, network):
        table = Table.of(make_walks([60, 50]))
        stub = Stub(4, network=network)
        arguments = table, HORIZON, [1.0], None, False
        found, _, every, held_out = fit_combined(*arguments, ["ridge", stub])
        kept = network == "perfect"
        assert (found.transformer is stub) == kept == (found.names[-1] == "transformer")
        assert found.weights.shape == (2, len(found.names))
        np.testing.assert_allclose(found.weights.sum(axis=1), 1)
        np.testing.assert_allclose(found.usual.sum(), 1)
        # Held-out forecasts are of all that competed.
        assert every.shape[1] == len(found.names) + (network == "worthless")
        assert np.isfinite(held_out).all()

    def test_it_needs_most_of_the_series(self):
        table, arguments = Table.of(make_walks([200])), (HORIZON, [1.0], None, False)
        spans = []
        for kinds in (["ridge"], ["ridge", Stub(4)]):
            training = fit_combined(table, *arguments, kinds)[1]
            spans.append(200 - training.validation.known.min())
        assert spans == [120, 50]

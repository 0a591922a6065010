"""The origins that candidates are compared at, and what overlaps with them."""

import numpy as np
import pytest
from forecasting_training import make_training_of, make_walks, overlapping_rows

from sklearn_attention.forecasting._training import held_out


@pytest.mark.parametrize("lengths", [(200,), (60, 45, 30), (12,), (400, 7, 3, 15)])
def test_validation_origins_come_in_blocks_of_time(lengths):
    training = make_training_of(make_walks(lengths))
    validation, block = training.validation, training.block
    assert np.isfinite(validation.targets()[:, 0]).all()
    assert (validation.known >= 4).all()
    for i, n in enumerate(lengths):
        own = validation.series == i
        # All series that are long enough are validated.
        assert own.any() == (n > 4)
        if own.any():
            order = np.argsort(validation.known[own])
            assert (np.diff(validation.known[own][order]) > 0).all()
            assert (np.diff(block[own][order]) <= 0).all()
            assert block[own].min() == 0
            assert block[own].max() <= 4
    assert training.n_blocks <= 5


def test_origins_of_a_long_series_span_sixty_percent():
    training = make_training_of(make_walks([300]), horizon=5)
    known = training.validation.known
    assert known.max() == 295
    assert known.min() == 300 - 180
    assert len(known) == 100


def test_origins_of_a_short_series_span_three_horizons():
    training = make_training_of(make_walks([60]), horizon=8)
    assert training.validation.known.max() == 60 - 4
    assert training.validation.known.min() == 60 - 24


def test_origins_of_a_panel_span_six_horizons():
    training = make_training_of(make_walks([100] * 30), horizon=3)
    assert training.validation.known.min() == 100 - 18
    counts = np.bincount(training.validation.series)
    assert (counts == counts[0]).all()


def test_nothing_can_be_validated_in_the_shortest_series():
    training = make_training_of(make_walks([3, 4]))
    assert len(training.validation) == len(training.block) == training.n_blocks == 0


@pytest.mark.parametrize("lengths", [(200,), (60, 45, 30), (22, 70)])
def test_what_overlaps_is_what_a_loop_finds(lengths):
    training = make_training_of(make_walks(lengths))
    origins = training.origins
    for block in range(training.n_blocks):
        found = training.overlapping(origins.series, origins.known, block)
        for i in range(len(lengths)):
            own = origins.series == i
            expected = overlapping_rows(training, i, block)
            np.testing.assert_array_equal(origins.known[own & found], expected)


class TestHeldOut:
    def test_blocks_are_forecast_by_what_was_learned_without_them(self):
        training, learned = make_training_of(make_walks([60, 45])), []

        class Constant:
            def __init__(self, block):
                self.block = block

            def forecast(self, origins):
                found = np.full((len(origins), 2, origins.horizon), float(self.block))
                found[:, 1] = origins.known[:, None]
                return found

        def learn(block):
            learned.append(block)
            return Constant(block)

        found = held_out(learn, training, 2)
        assert learned == list(range(training.n_blocks))
        np.testing.assert_array_equal(found[:, 0, 0], training.block)
        np.testing.assert_array_equal(found[:, 1, -1], training.validation.known)

    def test_nothing_is_learned_where_nothing_is_validated(self):
        training = make_training_of(make_walks([3]))
        assert held_out(None, training).shape == (0, 1, 4)


def test_many_series_that_can_be_validated_are_a_panel():
    assert make_training_of(make_walks([20] * 30)).is_panel
    assert not make_training_of(make_walks([20] * 29)).is_panel
    assert not make_training_of(make_walks([4] * 30)).is_panel

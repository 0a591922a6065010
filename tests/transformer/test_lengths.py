"""How long sequences are that encoders read."""

import warnings

import numpy as np
import pytest
from tiny_encoders import regress

from sklearn_attention import Architecture

pytestmark = pytest.mark.usefixtures("few_convolutions")


class TestLongSequences:
    @pytest.mark.parametrize(
        "X", [np.arange(24.0).reshape(2, 6, 2), ["a b c d e f", "f e d c b a"]]
    )
    def test_are_cut_at_their_end_with_a_warning(self, X):
        with pytest.warns(UserWarning, match="2 of 2 sequences are longer than max_length 4"):
            model = regress(X, max_length=4)
        short = X[:, :4] if isinstance(X, np.ndarray) else [text[:7] for text in X]
        with pytest.warns(UserWarning, match="1 of 1 sequences"):
            found = model.predict(X[:1])
        np.testing.assert_array_equal(found, model.predict(short[:1]))

    @pytest.mark.slow
    def test_that_take_all_the_time_are_named(self):
        X = [np.zeros(10)] * 5 + [np.zeros(2100)]
        with pytest.warns(
            UserWarning, match="up to 2100 tokens, but typically of 10, .* max_length=200"
        ):
            regress(X)
        with pytest.warns(UserWarning, match="longer than max_length 200"):
            regress(X, max_length=200)

    def test_learned_positions_end_where_training_ended(self):
        X = [np.arange(3.0), np.arange(5.0)]
        model = regress(X, architecture=Architecture(positions="learned"))
        assert model.max_length_ == 5
        with pytest.warns(UserWarning, match="longer than the longest in training, 5"):
            found = model.predict([np.arange(9.0)])
        np.testing.assert_array_equal(found, model.predict([np.arange(5.0)]))

    @pytest.mark.parametrize("positions", [None, "sinusoidal", "rotary"])
    def test_others_have_no_end(self, positions):
        model = regress(
            [np.arange(3.0), np.arange(5.0)], architecture=Architecture(positions=positions)
        )
        assert model.max_length_ is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isfinite(model.predict([np.arange(40.0)])).all()


def test_warning_of_cut_sequences_names_the_line_that_predicts():
    model = regress(["abc", "ab"], tokenizer="characters", max_length=3, baseline=False)
    with pytest.warns(UserWarning, match="longer than max_length") as caught:
        model.predict(["abcdef"])
    assert caught[0].filename == __file__

"""Texts and ids, as encoders read them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tiny_encoders import TINY, regress

from sklearn_attention import TransformerClassifier, TransformerLanguageModel


@pytest.mark.parametrize("X", [["to be", "", "or not to be"], [[5, 6], [], [6]]])
def test_empty_texts_may_be_in_training(X):
    model = regress(X, tokens="text")
    unknown = ["unheard"] if isinstance(X[0], str) else [[99]]
    assert model.predict(X)[1] == pytest.approx(model.predict(unknown)[0], rel=1e-5)


@pytest.mark.parametrize("X", [["", ""], [[], []]])
def test_empty_texts_alone_are_refused(X):
    with pytest.raises(ValueError, match="X has only empty texts"):
        regress(X, tokens="text")


# As long as these, of few letters, and each with one that says what it is of.
CHINESE = ["".join(np.random.default_rng(i).choice([*"的一是在不了"], 9)) for i in range(40)]
CHINESE = [text + "坏好"[i % 2] for i, text in enumerate(CHINESE)]


def test_texts_without_spaces_are_read_by_character():
    with pytest.warns(UserWarning, match="100% of the words in X occur only") as caught:
        model = TransformerClassifier(**TINY).fit(CHINESE, [0, 1] * 20)
    assert len(caught) == 1
    assert model.encoder_.reader.vocabulary["tokenizer"] == "characters"
    # Nothing is held out, so these are of the baseline alone.
    assert model.predict(["不好", "不坏"]).tolist() == [1, 0]
    same = TransformerClassifier(tokenizer="characters", **TINY).fit(CHINESE, [0, 1] * 20)
    np.testing.assert_array_equal(same.predict_proba(CHINESE), model.predict_proba(CHINESE))


def test_a_named_tokenizer_is_used_as_given():
    with pytest.warns(UserWarning, match=r"texts will be unknown\. Pass tokenizer='characters"):
        model = regress(CHINESE, tokenizer="words")
    assert model.encoder_.reader.vocabulary["tokenizer"] == "words"
    with pytest.warns(
        UserWarning, match=r"texts will be unknown\. Pass tokenizer='characters' or"
    ):
        TransformerLanguageModel("words", **TINY).fit(CHINESE)


def test_order_of_words_is_learned():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.permutation(list("abcd"))) for _ in range(200)]
    earlier = [text.index("a") < text.index("b") for text in texts]
    model = TransformerClassifier(
        d_model=16, n_heads=2, n_layers=1, max_epochs=8, learning_rate=0.02, batch_size=32,
        baseline=False,
    )  # fmt: skip
    model.fit(texts[:150], earlier[:150])
    assert model.score(texts[150:], earlier[150:]) > 0.95
    blind = clone(model).set_params(architecture__positions=None, max_epochs=2)
    assert blind.fit(texts[:150], earlier[:150]).score(texts[150:], earlier[150:]) < 0.7


COUNTS = [[70, 5], [5], [900, 5, 70]]


@pytest.mark.usefixtures("few_convolutions")
class TestIdsOrNumbers:
    @pytest.mark.parametrize("form", [pd.Series, lambda X: [np.array(x) for x in X]])
    def test_what_is_guessed_is_said(self, form):
        with pytest.warns(UserWarning, match="tokens='steps' if they are series") as caught:
            model = regress(form(COUNTS))
        assert [warning.filename for warning in caught] == [regress.__code__.co_filename]
        assert model.tokens_ == "text"
        with pytest.warns(UserWarning, match="read as token ids"):
            TransformerClassifier(**TINY).fit(form(COUNTS), [0, 1, 0])

    @pytest.mark.parametrize(
        "parameters", [{"tokens": "text"}, {"tokenizer": "ids"}, {"tokens": "steps"}]
    )
    def test_what_was_said_is_not_guessed(self, parameters):
        form = "steps" if parameters == {"tokens": "steps"} else "text"
        assert regress(COUNTS, **parameters).tokens_ == form
        TransformerLanguageModel("ids", **TINY).fit(COUNTS)
        words = regress(["to be", "or to be"]).encoder_.reader.vocabulary
        assert words["tokenizer"] == "lower_words"

    def test_negative_numbers_are_no_ids(self):
        negative = [[-3, 5], [5, 2, 1]]
        with pytest.raises(ValueError, match=r"(?s)X\[0\].* negative id.*tokens='steps'"):
            regress(negative)
        model = regress(COUNTS, tokens="text")
        with pytest.raises(ValueError, match=r"(?s)X\[0\].* negative id.*tokens='steps'"):
            model.predict(negative)
        assert np.isfinite(regress(negative, tokens="steps").predict(negative)).all()

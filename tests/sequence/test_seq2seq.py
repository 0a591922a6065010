"""Translating, sorting: the estimator as its users meet it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_attention import Architecture, Training, TransformerSeq2Seq
from sklearn_attention.sequence._seq2seq import chrf, token_accuracy

TINY = {"d_model": 16, "n_heads": 2, "n_layers": 1, "dropout": 0.0, "max_epochs": 3}
COUNTRIES = ["le chat noir", "le chien", "un chat", "un chien noir", "la souris", "une souris"]
COUNTRIES *= 3
ENGLISH = ["the black cat", "the dog", "a cat", "a black dog", "the mouse", "a mouse"] * 3

DATES = [f"{1990 + i}-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(20)]
TOLD = [date.replace("-", " ") for date in DATES]


def make_ids(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.integers(10, 16, rng.integers(1, 7)).tolist() for _ in range(n)]
    return X, [x[::-1] for x in X]


def fit(X=COUNTRIES, y=ENGLISH, **options):
    return TransformerSeq2Seq(**{**TINY, **options}).fit(X, y)


@pytest.fixture(scope="module")
def reverser():
    """A model that writes a sequence backwards, which tests may ask but not change."""
    X, y = make_ids(200)
    options = {"max_epochs": 12, "learning_rate": 0.02, "batch_size": 32}
    training = Training(validation_fraction=None)
    return fit(X, y, **options, label_smoothing=0.0, training=training)


class TestPredictions:
    def test_ids_in_ids_out(self):
        # Always the same three pairs: one token more than another, and backwards.
        X, y = [[10, 11], [12], [11, 12, 10]] * 6, [[11, 10], [12], [10, 12, 11]] * 6
        model = fit(X, y, max_epochs=16, learning_rate=0.03)
        predicted = model.predict(X)
        assert all(isinstance(token, int) for row in predicted for token in row)
        assert predicted == y
        assert model.score(X, y) == 1

    @pytest.mark.parametrize("form", [np.array, lambda x: pd.Series(x, dtype="str")])
    def test_forms_of_texts(self, form):
        model = fit(form(COUNTRIES), form(ENGLISH))
        assert model.tokenizer_ == "words"
        found = model.predict([*COUNTRIES, "xyz le chat"])  # with a word that is unknown
        assert found[:-1] == fit().predict(form(COUNTRIES))
        assert "\N{REPLACEMENT CHARACTER}" not in "".join(found)

    @pytest.mark.parametrize("n_beams", [1, 3])
    def test_alone_or_in_company(self, reverser, n_beams):
        model = clone(reverser).set_params(n_beams=n_beams)
        model.model_ = reverser.model_
        X, y = make_ids(20, seed=2)
        together, logs = model.predict(X), model.predict_log_proba(X, y)
        for i in (0, 7, 19):
            assert model.predict(X[i : i + 1]) == [together[i]]
            alone = model.predict_log_proba(X[i : i + 1], y[i : i + 1])[0]
            np.testing.assert_allclose(alone, logs[i], atol=1e-5)

    def test_attention_maps(self, reverser):
        X, y = make_ids(5, seed=4)
        maps = reverser.attention_maps(X, y)
        for weights, source, target in zip(maps, X, y, strict=True):
            assert weights.shape == (1, 2, len(target) + 1, len(source) + 1)
            np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)

    def test_variants_learn(self):
        pytest.importorskip("tokenizers")
        model = fit(
            tokenizer="byte_pairs", shared_vocabulary=True, max_tokens=300, max_epochs=6,
            learning_rate=0.02,
            architecture=Architecture(norm="post", attention_kernel="positive_features"),
        )  # fmt: skip
        assert model.source_vocabulary_ == model.target_vocabulary_
        assert all(isinstance(text, str) for text in model.predict(COUNTRIES[:2]))
        losses = model.training_history_["loss"]
        assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize(("X", "y", "name"), [(DATES, TOLD, "X"), (TOLD, DATES, "y")])
def test_characters_where_most_words_occur_once(X, y, name):
    message = f"100% of the words in {name} .* takes characters. Pass 'char"
    with pytest.warns(UserWarning, match=message):
        model = fit(X, y)
    assert model.tokenizer_ == "characters"
    assert model.source_vocabulary_["tokenizer"] == "characters"
    expected = fit(X, y, tokenizer="characters").predict_log_proba(X, y)
    np.testing.assert_array_equal(model.predict_log_proba(X, y)[3], expected[3])


def test_a_warm_start_keeps_the_tokenizer():
    model = fit(warm_start=True)
    tokens = model.source_vocabulary_
    model.fit(TOLD, DATES)
    assert model.tokenizer_ == "words"
    assert model.source_vocabulary_ == tokens
    with pytest.raises(ValueError, match="tokenizer='characters' does not fit"):
        model.set_params(tokenizer="characters").fit(COUNTRIES, ENGLISH)


def test_pairs_to_validate_with_can_be_passed():
    pairs = {"X_val": COUNTRIES[3:], "y_val": ENGLISH[3:]}
    model = TransformerSeq2Seq(**TINY | {"training": Training(max_steps=30)})
    model.fit(COUNTRIES, ENGLISH, **pairs)
    logs = np.concatenate(model.predict_log_proba(COUNTRIES[3:], ENGLISH[3:]))
    best = min(model.training_history_["validation_loss"])
    assert best == pytest.approx(-logs.mean(), rel=1e-5)
    # All others are learned from, whatever would be held out of them.
    whole = fit(training=Training(max_steps=1, validation_fraction=None))
    model = TransformerSeq2Seq(**TINY | {"training": Training(max_steps=1)})
    model.fit(COUNTRIES, ENGLISH, **pairs)
    for name, weights in whole.network_.weights.items():
        np.testing.assert_array_equal(model.network_.weights[name], weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": "le chat"}, "X='le chat' is a single text"),
        ({"X": ["le chat"], "y": [""]}, r"y\[0\]='' is empty"),
        ({"X": [[1.5, 2.0]], "y": [[1]]}, r"X\[0\]=.* is not a sequence of integers"),
        ({"X": ["a", "b"], "y": ["a"]}, "X has 2 sequences, but y has 1"),
        ({"y": [[1]] * 18, "shared_vocabulary": True}, "=True does not fit X of kind"),
        ({"X_val": ["un"]}, "X_val was passed without y_val"),
        ({"X_val": ["un"], "y_val": ["a", "the"]}, "X_val has 1 sequences, but y_val"),
        ({"X_val": [[5, 6]], "y_val": ["a"]}, "X_val has ids, but the vocabulary"),
        ({"tokenizer": "ids"}, "tokenizer='ids' is unknown"),
        ({"d_model": 15}, "n_heads=2 does not divide d_model=15"),
        ({"n_beams": 0}, "n_beams=0"),
        ({"training": Training(patience=2)}, "patience=2 needs rows that are held"),
    ],
)
def test_what_cannot_be_learned_is_named(arguments, message):
    given = {"X": COUNTRIES, "y": ENGLISH} | arguments
    data = {name: given.pop(name) for name in ("X", "y", "X_val", "y_val") if name in given}
    with pytest.raises(ValueError, match=message):
        TransformerSeq2Seq(**TINY | given).fit(**data)


@pytest.mark.parametrize(
    ("method", "data", "message"),
    [
        ("predict", [[[1, 2]]], "X has ids, but the vocabulary was learned from"),
        ("score", [iter(COUNTRIES), ["the cat"]], r"X=.* can be read only once"),
        ("score", [COUNTRIES, [[1]] * 18], "y has ids"),
    ],
)
def test_another_kind_than_in_fit(method, data, message):
    model = fit(max_epochs=1)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(*data)


class TestLongSequences:
    def test_are_cut_with_a_warning(self):
        with pytest.warns(UserWarning, match="6 of 18 sequences in X have more than 2 tokens"):
            model = fit(COUNTRIES, ["the"] * 18, max_length=3)
        with pytest.warns(UserWarning, match="1 of 2 sequences in X have more than 2 tokens"):
            cut, short = model.predict_log_proba(["le chat noir", "le chat"], ["the", "the"])
        np.testing.assert_allclose(cut, short, rtol=1e-5)

    def test_have_no_end_where_a_target_is_cut(self):
        # Learned positions have none for a further token.
        architecture = Architecture(positions="learned")
        with pytest.warns(UserWarning, match="18 of 18 sequences in y have more than 1 token"):
            model = fit(["le", "un"] * 9, ENGLISH, max_length=2, architecture=architecture)
        assert model.longest_ == 2
        with pytest.warns(UserWarning, match="1 of 1 sequences in y"):
            (logs,) = model.predict_log_proba(["le"], ["the cat"])
        assert logs.shape == (2,)
        # Of what is predicted, too.
        assert all(len(logs) <= 2 for logs in model.predict_log_proba(["le", "un"]))


def slow_chrf(predicted, expected):
    """Popović's formula, n-gram by n-gram."""
    precisions, recalls = [], []
    for n in range(1, 7):
        right = n_found = n_wanted = 0
        for found, wanted in zip(predicted, expected, strict=True):
            found, wanted = (text.replace(" ", "") for text in (found, wanted))
            found = [found[i : i + n] for i in range(max(0, len(found) - n + 1))]
            wanted = [wanted[i : i + n] for i in range(max(0, len(wanted) - n + 1))]
            n_found, n_wanted = n_found + len(found), n_wanted + len(wanted)
            for gram in found:
                if gram in wanted:
                    wanted.remove(gram)
                    right += 1
        if n_wanted:
            precisions.append(right / n_found if n_found else 0)
            recalls.append(right / n_wanted)
    if not any(recalls):
        return 0
    precision, recall = np.mean(precisions), np.mean(recalls)
    return 5 * precision * recall / (4 * precision + recall)


def texts_to_compare(longest, shortest=1):
    rng = np.random.default_rng(longest)
    one, other = (
        ["".join(rng.choice(list("abc "), rng.integers(shortest, longest))) for _ in range(30)]
        for _ in range(2)
    )
    return (one, other), (other, one), (one, one), ([*one[:-1], ""], other)


class TestScores:
    @pytest.mark.parametrize("longest", [3, 40])
    def test_chrf_equals_its_definition(self, longest):
        for found, wanted in texts_to_compare(longest):
            assert chrf(found, wanted) == pytest.approx(slow_chrf(found, wanted), abs=1e-15)

    def test_texts_are_scored_by_chrf_whatever_the_tokens(self):
        for tokenizer in ("words", "characters"):
            model = fit(["a", "b"] * 9, ["2026", "1999"] * 9, tokenizer=tokenizer)
            assert model.score(["a"], ["2027"]) == chrf(model.predict(["a"]), ["2027"])

    @pytest.mark.parametrize(
        ("predicted", "expected", "accuracy"),
        [([[1, 2, 3, 4]], [[1, 3, 3]], 2 / 4), ([[], [1]], [[1], [1]], 1 / 2), ([[]], [[]], 0)],
    )
    def test_token_accuracy(self, predicted, expected, accuracy):
        assert token_accuracy(predicted, expected) == accuracy

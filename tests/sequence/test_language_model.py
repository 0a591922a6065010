"""The language model: what it learns, says and writes, and what its training promises."""

import pickle
import tempfile

import numpy as np
import pytest
import torch
from slow_counts import kneser_ney

from sklearn_attention import Architecture, Training, TransformerLanguageModel
from sklearn_attention.sequence._language_network import LanguageNetwork
from sklearn_attention.sequence._token_windows import context_start
from sklearn_attention.text import _files
from sklearn_attention.text._special import END, PADDING, START, UNKNOWN

QUICK = {"max_length": 8, "d_model": 16, "n_heads": 2, "n_layers": 2}
QUICK |= {"training": Training(max_steps=6)}
TEXTS = ["the cat sat on the mat", "a dog", "the dog sat on a log and saw the cat"]
IDS = [[5, 7, 9, 7, 5, 900], [7, 7], [900, 5, 9, 9, 9, 5, 7, 7, 900, 5, 9, 7]]
LONG = "the mat sat on the cat on the log on the dog"


def fit(texts=None, *, X_val=None, **parameters):
    parameters = QUICK | parameters
    ids = parameters.get("tokenizer") == "ids"
    return TransformerLanguageModel(**parameters).fit(
        (IDS if ids else TEXTS) if texts is None else texts, X_val=X_val
    )


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture(scope="module")
def ids_model():
    return fit(tokenizer="ids")


def network_of(model):
    network = LanguageNetwork(**model.network_.shape).eval()
    network.load_state_dict({k: torch.as_tensor(v) for k, v in model.network_.weights.items()})
    return network


class TestProbabilities:
    def test_are_the_softmax_of_the_network_without_a_baseline(self):
        model = fit(baseline=False)
        network = network_of(model)
        for text in ("", "t", "the cat"):
            ids = [START, *(model.tokens_.index(character) for character in text)]
            with torch.no_grad():
                logits = network(torch.tensor([ids]))[0][0, -1].double().numpy()
            expected = np.exp(logits)
            expected[[PADDING, START]] = 0
            np.testing.assert_allclose(
                model.predict_proba([text])[0], expected / expected.sum(), rtol=1e-5
            )

    def test_are_averaged_with_those_by_counts(self, model):
        network, share = fit(baseline=False), model.baseline_weight_
        for name, value in network.network_.weights.items():
            np.testing.assert_array_equal(model.network_.weights[name], value)
        ids = [[*map(model.tokens_.index, text)] for text in TEXTS]
        for text in ("", "t", "the cat", "ä", LONG):
            context = [model.tokens_.index(c) if c in model.tokens_ else UNKNOWN for c in text]
            counted = [
                kneser_ney(ids, [START, *context], token, len(model.tokens_), longest=7)
                for token in range(len(model.tokens_))
            ]
            expected = share * np.array(counted) + (1 - share) * network.predict_proba([text])
            np.testing.assert_allclose(model.predict_proba([text]), expected, rtol=1e-5)

    def test_do_not_depend_on_what_else_is_asked(self, model):
        texts = ["", "a", LONG, "the cat sat", LONG[:13]]
        together = model.predict_log_proba(texts)
        expected = [model.tokens_[i] for i in together.argmax(axis=1)]
        assert model.predict(texts).tolist() == expected
        np.testing.assert_allclose(model.predict_proba(texts), np.exp(together))
        for row, text in zip(together, texts, strict=True):
            np.testing.assert_allclose(row, model.predict_log_proba([text])[0], atol=1e-5)

    @pytest.mark.parametrize("text", ["a", LONG])
    def test_score_is_their_mean_over_a_text(self, model, text):
        # Character by character, whatever contexts a text longer than max_length has.
        ids = [*(model.tokens_.index(character) for character in text), END]
        log_proba = model.predict_log_proba([text[:i] for i in range(len(ids))])
        expected = log_proba[np.arange(len(ids)), ids].mean()
        assert model.score([text]) == pytest.approx(expected, abs=1e-5)
        assert model.perplexity([text]) == pytest.approx(np.exp(-expected), rel=1e-4)


def test_attention_maps_are_averages_of_tokens_up_to_each(model, ids_model):
    maps = model.attention_maps("the ca")
    assert maps.shape == (2, 2, 7, 7)
    np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(maps[:, :, :4, :4], model.attention_maps("the"), atol=1e-6)
    assert (maps[:, :, 0, 1:] == 0).all()
    assert ids_model.attention_maps(np.array([5, 7])).shape == (2, 2, 3, 3)


class TestSampling:
    @pytest.mark.parametrize(
        ("positions", "max_length"), [("rotary", 1), ("learned", 8), ("sinusoidal", 64)]
    )
    def test_is_what_asking_anew_for_every_token_gives(self, positions, max_length):
        model = fit(architecture=Architecture(positions=positions), max_length=max_length)
        for prompt in ("", "the", LONG):
            text, rng = prompt, np.random.RandomState(3)
            for _ in range(12):
                proba = model.predict_proba([text])[0].astype(float)
                proba[UNKNOWN] = 0
                total = np.cumsum(proba / proba.sum())
                token = int(np.argmax(total > rng.random_sample()))
                if token == END:
                    break
                text += model.tokens_[token]
            assert model.sample(prompt, 12, random_state=3) == text

    def test_greedy_takes_the_likeliest(self, model):
        text = model.sample("the", 5, temperature=0)
        for i in range(3, len(text)):
            assert model.predict([text[:i]])[0] == text[i]
        assert model.sample("the", 5, top_k=1) == text
        assert model.sample("the", 5, top_p=1e-9) == text

    def test_like_comes_of_like(self, model, ids_model):
        assert isinstance(model.sample(), str)
        several = model.sample(["the", "", "dog"], 4, random_state=0)
        assert [text[:n] for text, n in zip(several, (3, 0, 3), strict=True)] == [
            "the",
            "",
            "dog",
        ]
        numbers = ids_model.sample([5, 7], 4, random_state=0)
        assert numbers[:2] == [5, 7]
        assert {type(number) for number in numbers} == {int}
        several = ids_model.sample([[5], [7, 900]], 4)
        assert [found[:n] for found, n in zip(several, (1, 2), strict=True)] == [[5], [7, 900]]

    def test_prompts_stay_as_they_were_passed(self):
        model = fit(tokenizer="words", training=Training(max_steps=40))
        text = model.sample("the  zebra\tsat", 30, random_state=1)
        assert text.startswith("the  zebra\tsat ")
        assert "\N{REPLACEMENT CHARACTER}" not in text
        assert model.sample("a ", 1, temperature=0, top_k=1).startswith("a ")

    def test_no_token_that_stands_for_nothing_is_drawn(self):
        # Two characters are known; most others are not, and so the likeliest.
        options = {"training": Training(max_steps=20), "learning_rate": 1e-2}
        model = fit(["abcdefabcdefghi"] * 3, max_tokens=6, **options)
        assert model.predict_proba(["b"])[0].argmax() == UNKNOWN
        assert set(model.sample("", 200, random_state=0)) <= set(model.tokens_[4:])


@pytest.mark.parametrize(
    "parameters",
    [
        {"tokenizer": "byte_pairs", "max_tokens": 280},
        {"tokenizer": "ids", "dropout": 0.2},
        {"architecture": Architecture(norm="lecture", attention_kernel="positive_features")},
        {"max_epochs": 2, "training": Training(max_steps=None), "max_length": 1},
    ],
)
def test_every_form_learns_scores_and_writes(parameters):
    model = fit(**parameters)
    texts = IDS if parameters.get("tokenizer") == "ids" else TEXTS
    assert np.isfinite(model.training_history_["loss"]).all()
    assert np.isfinite(model.score(texts))
    assert model.sample(texts[0], 3, random_state=0)[:2] == texts[0][:2]
    prefixes = [text[:5] for text in texts]
    np.testing.assert_allclose(model.predict_proba(prefixes).sum(axis=1), 1, rtol=1e-5)


class TestTraining:
    def test_the_loss_is_that_of_a_token(self):
        # A rate so small that all epochs have the weights from the start.
        training = Training(validation_fraction=None, max_steps=6)
        options = {"learning_rate": 1e-12, "batch_size": 2, "training": training}
        for texts in (TEXTS, ["a", "abc", "abcdefg"]):
            model = fit(texts, max_length=64, **options)
            found = model.training_history_["loss"][0]
            assert found == pytest.approx(-model.score(texts), rel=1e-5)

    def test_the_end_of_a_text_is_learned(self):
        # Tokens that only the last tenth has.
        texts = ["ab" * 180 + "cd" * 20]
        model = fit(texts, training=Training(max_steps=40), learning_rate=3e-2)
        assert model.predict(["abcdcdc"]) == "d"
        assert model.score(["cd" * 10]) > -1.3

    def test_texts_to_validate_with_can_be_passed(self):
        texts = ["abab" * 3, "baba"]
        model = TransformerLanguageModel(max_epochs=3, baseline=False)
        model.fit(["ab" * 20] * 3, X_val=texts)
        assert model.n_training_tokens_ == 3 * 41
        best = min(model.training_history_["validation_loss"])
        assert best == pytest.approx(-model.score(texts), rel=1e-5)
        with pytest.raises(ValueError, match="X_val has ids, but the vocabulary"):
            model.fit(["ab" * 20], X_val=[[5, 6]])

    def test_a_warm_start_keeps_the_vocabulary(self):
        model = fit(warm_start=True)
        tokens = model.tokens_
        model.fit(["xyz the cat"])
        assert model.tokens_ == tokens
        with pytest.raises(ValueError, match="tokenizer was 'characters', not 'words'"):
            model.set_params(tokenizer="words").fit(["xyz the cat"])
        with pytest.raises(ValueError, match="d_model was 16, not 8: pass what was passed"):
            model.set_params(tokenizer="characters", d_model=8).fit(["xyz the cat"])
        assert model.tokens_ == tokens

    def test_a_checkpoint_knows_its_texts_and_what_is_held_out(self, tmp_path):
        def losses(texts, X_val=None):
            return fit(texts, X_val=X_val, training=training).training_history_

        training = Training(checkpoint=tmp_path / "training.pt", max_steps=6)
        # The same numbers of tokens, which mean something else.
        others = [text.replace("a", "\0").replace("o", "a") for text in TEXTS]
        assert losses(TEXTS)["seconds"] != losses(others)["seconds"]
        first, other = (losses(TEXTS, [text])["validation_loss"] for text in ("the cat", "aaa"))
        assert first[0] != other[0]


@pytest.mark.parametrize("text", ["", "the cat sat on the mat"])
def test_vectors_are_means_of_the_last_context(model, text):
    ids = [START, *(model.tokens_.index(c) for c in text)]
    start = context_start(len(ids), model.max_length)
    with torch.no_grad():
        tokens = model.module_.encode(torch.tensor([ids[start:]]))[0][0]
    found = model.transform(["the", text, "the dog sat"])
    assert found.shape == (3, 16)
    np.testing.assert_allclose(found[1], tokens.mean(dim=0), rtol=1e-5, atol=1e-6)


def test_writing_ends_before_it(model):
    whole = model.sample("the ", 30, temperature=1.0, random_state=0)
    written = whole.removeprefix("the ")
    stop = written[3:5]
    found = model.sample("the ", 30, temperature=1.0, random_state=0, stop=["~", stop])
    assert found == "the " + written[: written.index(stop)]
    assert model.sample("the ", 30, temperature=1.0, random_state=0, stop="~") == whole


def test_a_baseline_has_all_texts_once_its_weight_is_chosen(model):
    assert 0 < model.baseline_weight_ < 1
    assert model.baseline_weight_ + model.transformer_weight_ == 1
    kept = [START, *map(model.tokens_.index, TEXTS[0]), END]
    assert model.baseline_["ids"][: len(kept)].tolist() == kept
    assert len(model.baseline_["ids"]) == sum(map(len, TEXTS)) + 2 * len(TEXTS)
    assert model.n_training_tokens_ < sum(map(len, TEXTS)) + len(TEXTS)


def test_a_baseline_by_default_needs_something_held_out():
    nothing = Training(validation_fraction=None, max_steps=6)
    model = fit(training=nothing)
    assert model.baseline_ is None
    assert (model.baseline_weight_, model.transformer_weight_) == (0, 1)
    model = fit(training=nothing, baseline=True)
    assert (model.baseline_weight_, model.transformer_weight_) == (0.5, 0.5)


def test_a_baseline_is_weighed_by_tokens_that_it_has_not_counted():
    # Nothing can be learned but by heart.
    text = "".join(np.random.default_rng(0).choice(list("abcdefghijklmnop"), 400))
    assert fit([text]).baseline_weight_ < 0.8


class TestFiles:
    @pytest.fixture
    def paths(self, tmp_path):
        paths = [tmp_path / f"{i}.txt" for i in range(len(TEXTS))]
        for path, text in zip(paths, TEXTS, strict=True):
            path.write_text(text, encoding="utf-8")
        return paths

    @pytest.mark.parametrize(
        ("tokenizer", "n_copies"),
        [("characters", 14), ("words", 1)],  # 42 are whole texts held out
    )
    def test_are_learned_like_texts(self, tokenizer, n_copies, paths, monkeypatch):
        expected = fit(TEXTS * n_copies, tokenizer=tokenizer)
        monkeypatch.setattr(_files, "_PIECE", 5)
        model = fit(paths * n_copies, tokenizer=tokenizer)
        for name, value in expected.network_.weights.items():
            np.testing.assert_array_equal(model.network_.weights[name], value)
        assert model.vocabulary_ == expected.vocabulary_
        assert pickle.dumps(model.baseline_) == pickle.dumps(expected.baseline_)
        assert model.score(paths) == expected.score(TEXTS)
        assert model.perplexity(paths[0]) == expected.perplexity(TEXTS[:1])

    @pytest.mark.parametrize("fails", [False, True])
    def test_leave_no_others_behind(self, paths, fails, tmp_path, monkeypatch):
        (tmp_path / "ids").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "ids"))
        model = TransformerLanguageModel(**QUICK)
        if fails:
            monkeypatch.setattr(LanguageNetwork, "forward", None)
            with pytest.raises(TypeError):
                model.fit(paths)
        else:
            assert np.isfinite(model.fit(paths).score(paths))
        assert not [*(tmp_path / "ids").iterdir()]


@pytest.mark.parametrize(
    ("texts", "parameters", "message"),
    [
        (TEXTS, {"baseline": "ngrams"}, "baseline='ngrams' is not valid: pass True"),
        (TEXTS, {"tokenizer": "ids"}, "tokenizer='ids' does not fit .* choose a tokenizer of"),
        (TEXTS, {"n_heads": 3}, "n_heads=3 does not divide d_model=16"),
        ("the cat", {}, "X='the cat' is a single text: pass .X., or pathlib.Path"),
        (["a", ""], {}, r"X\[1\]='' is empty"),
        ([[1, 2]], {}, "tokenizer='characters' does not fit .* pass tokenizer='ids'"),
        (np.ones((3, 4)), {}, r"X has shape \(3, 4\), which"),
    ],
)
def test_what_cannot_be_learned_is_named(texts, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(texts, **parameters)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("score", {"X": IDS}, "X has ids, but the vocabulary was learned"),
        ("predict_proba", {"X": IDS}, "X has ids, but the vocabulary was learned"),
        ("score", {"X": [""]}, r"X\[0\]='' is empty"),
        (
            "attention_maps",
            {"X": "the cat sat"},
            r"X has 11 tokens, but .*token: pass at most 7 tokens\.",
        ),
        ("attention_maps", {"X": TEXTS}, "pass one text"),
        ("sample", {"top_k": 0}, "top_k=0 is not valid"),
        ("sample", {"prompt": []}, r"prompt=\[\] has no sequence"),
        ("sample", {"prompt": 3}, "prompt=3 is not a list: pass"),
        ("sample", {"stop": ""}, "stop='' is not valid"),
    ],
)
def test_what_cannot_be_asked_is_named(model, method, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(**arguments)


def test_texts_mean_nothing_to_a_model_of_ids(ids_model):
    with pytest.raises(ValueError, match="X has texts, but the vocabulary was learned"):
        ids_model.score(TEXTS)
    with pytest.raises(ValueError, match="stop='a' is for texts, but tokens are ids"):
        ids_model.sample([5], stop="a")

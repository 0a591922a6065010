"""From the probabilities of a model to the next token, and to a text."""

import numpy as np
import pytest

from sklearn_attention.sequence._sampling import (
    check_sampling,
    draw,
    join_prompt,
    sampling_proba,
)
from sklearn_attention.text import learn_vocabulary
from sklearn_attention.text._learn import TOKENIZERS

PROBA = np.array([[0.4, 0.1, 0.25, 0.05, 0.2], [0.05, 0.15, 0.1, 0.6, 0.1]])


def slow_proba(row, temperature, top_k, top_p):
    """One row, one token after another."""
    powers = np.array([p ** (1 / temperature) for p in row])
    ranked = sorted(range(len(row)), key=lambda i: (-row[i], i))
    kept = ranked[: top_k or len(row)]
    powers = {i: powers[i] / sum(powers[j] for j in kept) for i in kept}
    if top_p is not None:
        nucleus, together = [], 0.0
        for i in kept:
            if together >= top_p:
                break
            nucleus.append(i)
            together += powers[i]
        powers = {i: powers[i] / together for i in nucleus}
    return [powers.get(i, 0.0) for i in range(len(row))]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(0.3, None, None), (1.0, 3, None), (0.3, 9, 0.7), (1.0, None, 0.01), (0.3, 3, 0.7)],
)
def test_against_one_token_after_another(temperature, top_k, top_p):
    found = sampling_proba(np.log(PROBA), temperature=temperature, top_k=top_k, top_p=top_p)
    expected = [slow_proba(row, temperature, top_k, top_p) for row in PROBA]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"top_k": 2}, {"top_p": 0.9}])
def test_without_temperature_the_likeliest_is_certain(options):
    found = sampling_proba(np.log(PROBA), temperature=0, **options)
    np.testing.assert_array_equal(found, np.eye(5)[[0, 3]])


def test_draws_have_these_probabilities():
    proba = np.tile([0.0, 0.5, 0.0, 0.3, 0.2, 0.0], (30_000, 1))
    uniform = np.random.default_rng(0).random(len(proba))
    counts = np.bincount(draw(proba, uniform), minlength=6) / len(proba)
    np.testing.assert_allclose(counts, proba[0], atol=0.01)
    assert (counts[[0, 2, 5]] == 0).all()
    # Extreme numbers draw what is possible.
    assert draw(proba[:2], np.array([0.0, np.nextafter(1, 0)])).tolist() == [1, 4]


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", np.inf), ("top_k", 1.5), ("top_p", 0), ("top_p", "most")],
)
def test_bad_values_are_named(name, value):
    options = {"temperature": 1.0, "top_k": None, "top_p": None} | {name: value}
    with pytest.raises(ValueError, match=f"^{name}={value!r} is not valid"):
        check_sampling(**options)


@pytest.mark.parametrize("tokenizer", sorted({*TOKENIZERS} - {"ids"}))
def test_what_is_written_is_apart_from_the_prompt(tokenizer):
    vocabulary = learn_vocabulary(tokenizer, ["the cat sat on the mat"] * 9)
    ids = vocabulary.encode("the cat sat")
    for n in range(len(ids) + 1):
        prompt, written = (vocabulary.decode(part) for part in np.split(ids, [n]))
        assert join_prompt(vocabulary, prompt, written, []) == "the cat sat"
    assert join_prompt(vocabulary, "the\n", "sat on a log", ["log", " on"]) == "the\nsat"


@pytest.mark.parametrize(("top_p", "expected"), [(0.5, [1, 0, 0]), (0.75, [2 / 3, 1 / 3, 0])])
def test_tokens_that_add_up_to_the_share_exactly_are_enough(top_p, expected):
    proba = sampling_proba(np.log([[0.5, 0.25, 0.25]]), top_p=top_p)
    np.testing.assert_allclose(proba[0], expected)

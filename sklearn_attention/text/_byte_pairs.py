"""Byte pairs, by the tokenizers library."""

import reprlib

# Every byte is a token.
BYTES = 256


def learn_byte_pairs(texts, n_tokens):
    """At most `n_tokens` byte pairs of texts, with 256 bytes among them, in JSON."""
    for text in texts:
        check_bytes(text)
    library = _library()
    byte_level = library.pre_tokenizers.ByteLevel
    model = library.Tokenizer(library.models.BPE())
    model.pre_tokenizer = byte_level(add_prefix_space=False)
    model.decoder = library.decoders.ByteLevel()
    # The library has none of our special tokens: a text that contains their names
    # must not be taken for them.
    # The library takes memory for all tokens at once; each but the bytes joins two in a text.
    most = BYTES + sum(len(text.encode()) for text in texts)
    trainer = library.trainers.BpeTrainer(
        vocab_size=min(n_tokens, most),
        initial_alphabet=sorted(byte_level.alphabet()),
        show_progress=False,
    )
    model.train_from_iterator(texts, trainer)
    return model.to_str()


def read_byte_pairs(model):
    """The library's tokenizer from the JSON of :func:`learn_byte_pairs`; ids start from 0."""
    return _library().Tokenizer.from_str(model)


def check_bytes(text):
    """Raise ValueError if a text cannot be written in bytes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text={reprlib.repr(text)} has no bytes, because of half a character at position "
            f"{error.start}: pass text.encode(errors='replace').decode()."
        ) from None


def _library():
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "tokenizer='byte_pairs' needs the tokenizers library: "
            'pip install "sklearn-attention[text]"'
        ) from error
    return tokenizers

"""The table of all messages, which is read as a whole."""

import re

import pytest
from messages import table


@pytest.fixture(scope="module")
def rows():
    return table()


def test_messages_of_every_kind_are_collected(rows):
    assert len(rows) > 400
    found = {where.partition(":")[0]: (kind, message) for where, kind, message in rows}
    assert found["forecasting/_panels.py"][0] == "ValueError"
    assert {kind for _, kind, _ in rows} >= {
        "ValueError",
        "TypeError",
        "MemoryError",
        "warning",
    }
    (message,) = (text for _, _, text in rows if "is only an index" in text)
    assert message == "X is only an index, and y is None: pass the series as X or as y."


def test_values_stand_in_braces_and_constants_in_full(rows):
    messages = [text for _, _, text in rows]
    assert "{what} has both Series and arrays: pass only one kind." in messages
    assert any("pass cv=TimeSeriesSplit(...), whose folds" in text for text in messages)


def test_what_is_not_of_a_kind_is_said_in_plain_words(rows):
    odd = re.compile(
        r"\b(is|are) no (list|array|number|date|index|file|kernel|sequence|frame)\b"
    )
    assert [row for row in rows if odd.search(row[2])] == []

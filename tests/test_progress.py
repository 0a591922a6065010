"""The line on stderr about a long job."""

import io
import sys

from sklearn_attention._progress import Progress


def test_what_the_lines_say(clock, capsys):
    now = clock(0.0)
    with Progress("Search", 30, delay=5.0) as progress:
        for step in range(1, 31):
            now.now += 1.0
            progress.update(step, f"part {step}")
    assert capsys.readouterr().err.splitlines() == [
        "Search: part 5, 25 s left",
        "Search: part 15, 15 s left",
        "Search: part 25, 5 s left",
        "Search: part 30, 30 s in all",
    ]


def test_a_terminal_has_one_line(clock, monkeypatch):
    now = clock(0.0)
    monkeypatch.setenv("COLUMNS", "30")
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("Search", 30, delay=0.0) as progress:
        for step in range(1, 31):
            now.now += 0.1
            progress.update(step, f"part {step}")
    start, *lines = stream.getvalue().split("\r")
    assert start == ""
    # Every 0.2 s, and one at the end.
    assert 10 <= len(lines) <= 16
    assert {len(line) for line in lines[:-1]} == {29}
    assert "\n" not in "".join(lines[:-1])
    assert lines[-1].endswith("\n")

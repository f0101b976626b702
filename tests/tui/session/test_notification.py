"""What tells that a run has ended: once, in numbers and states alone, and only where somebody may have looked away."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sfumato.tui.session.notification import LONG_SECONDS, RunWatch, ended_text, sequence, way_of

ONE = [(3, "done")]


def test_the_way_is_chosen_in_the_app_else_named_by_the_environment() -> None:
    assert way_of({}, "", "bell") == "bell"
    assert way_of({"SFUMATO_NOTIFY": "osc9"}, "", "off") == "osc9"
    assert way_of({"SFUMATO_NOTIFY": "osc9"}, "off", "bell") == "off"
    assert way_of({"SFUMATO_NOTIFY": "\x1b[2J"}, "loud", "bell") == "bell"


def test_several_that_end_at_once_are_told_once() -> None:
    assert sequence("bell", [*ONE, (4, "failed")], in_tmux=False) == "\a"
    assert ended_text(ONE) == "run 3 is done"
    assert ended_text([(4, "failed")]) == "run 4 has failed"
    assert ended_text([*ONE, (4, "failed")]) == "2 runs have ended"
    assert sequence("osc9", [*ONE, (4, "failed")], in_tmux=False).count("9;") == 1


def test_nothing_is_told_where_it_is_off_or_nothing_has_ended() -> None:
    assert (
        sequence("off", ONE, in_tmux=False)
        == sequence("bell", [], in_tmux=False)
        == sequence("osc9", [], in_tmux=True)
        == ""
    )


def test_tmux_is_asked_to_hand_the_message_on() -> None:
    """DCS tmux; with every escape doubled, as tmux(1) says of allow-passthrough."""
    assert sequence("osc9", ONE, in_tmux=False) == "\a\x1b]9;Sfumato: run 3 is done\x1b\\"
    assert sequence("osc9", ONE, in_tmux=True) == "\a\x1bPtmux;\x1b\x1b]9;Sfumato: run 3 is done\x1b\x1b\\\x1b\\"


@pytest.fixture
def runs() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, state, created, finished)")
    return connection


def test_a_run_that_ends_by_itself_and_took_long_is_noticed_once(runs: sqlite3.Connection) -> None:
    with closing(runs):
        watch = RunWatch()
        for number, state in enumerate(["done", "running", "queued", "running", "running", "running"], start=1):
            runs.execute("INSERT INTO run VALUES (?, ?, 100.0, NULL)", (number, state))
        assert watch.ended(runs) == [], "what had ended before is not told"
        assert watch.ended(runs) == []
        late = 100.0 + LONG_SECONDS
        runs.execute("UPDATE run SET state = 'done', finished = ? WHERE id = 2", (late,))
        runs.execute("UPDATE run SET state = 'failed', finished = ? WHERE id = 3", (late,))
        runs.execute("UPDATE run SET state = 'interrupted', finished = ? WHERE id = 4", (late,))
        runs.execute("UPDATE run SET state = 'done', finished = ? WHERE id = 5", (late - 1.0,))
        runs.execute("DELETE FROM run WHERE id = 6")
        assert watch.ended(runs) == [(2, "done"), (3, "failed")]
        assert watch.ended(runs) == []


def test_a_database_of_others_breaks_nothing(runs: sqlite3.Connection) -> None:
    with closing(runs):
        watch = RunWatch()
        runs.execute("INSERT INTO run VALUES (1, 'running', 'x', NULL)")
        assert watch.ended(runs) == []
        runs.execute("UPDATE run SET created = 1.0")
        assert watch.ended(runs) == []
        runs.execute("UPDATE run SET state = '\x1b[2J', finished = 'x'")
        assert watch.ended(runs) == []
        runs.execute("DROP TABLE run")
        assert watch.ended(runs) == []

"""What tells that a run has ended: once, in numbers and states alone, and only where somebody may have looked away."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sfumato.tui.session.notification import (
    LONG_SECONDS,
    EndedRunWatch,
    ended_runs_text,
    notification_sequence,
    notification_way,
)

ONE = [(3, "done")]


def test_the_way_is_chosen_in_the_app_else_named_by_the_environment() -> None:
    assert notification_way({}, "", "bell") == "bell"
    assert notification_way({"SFUMATO_NOTIFY": "osc9"}, "", "off") == "osc9"
    assert notification_way({"SFUMATO_NOTIFY": "osc9"}, "off", "bell") == "off"
    assert notification_way({"SFUMATO_NOTIFY": "\x1b[2J"}, "loud", "bell") == "bell"


def test_several_that_end_at_once_are_told_once() -> None:
    assert notification_sequence("bell", [*ONE, (4, "failed")], in_tmux=False) == "\a"
    assert ended_runs_text(ONE) == "run 3 is done"
    assert ended_runs_text([(4, "failed")]) == "run 4 has failed"
    assert ended_runs_text([*ONE, (4, "failed")]) == "2 runs have ended"
    assert notification_sequence("osc9", [*ONE, (4, "failed")], in_tmux=False).count("9;") == 1


def test_nothing_is_told_where_it_is_off_or_nothing_has_ended() -> None:
    assert (
        notification_sequence("off", ONE, in_tmux=False)
        == notification_sequence("bell", [], in_tmux=False)
        == notification_sequence("osc9", [], in_tmux=True)
        == ""
    )


def test_tmux_is_asked_to_hand_the_message_on() -> None:
    """DCS tmux; with every escape doubled, as tmux(1) says of allow-passthrough."""
    assert notification_sequence("osc9", ONE, in_tmux=False) == "\a\x1b]9;Sfumato: run 3 is done\x1b\\"
    assert (
        notification_sequence("osc9", ONE, in_tmux=True)
        == "\a\x1bPtmux;\x1b\x1b]9;Sfumato: run 3 is done\x1b\x1b\\\x1b\\"
    )


@pytest.fixture
def runs() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, state, created, finished)")
    return connection


def test_a_run_that_ends_by_itself_and_took_long_is_noticed_once(runs: sqlite3.Connection) -> None:
    with closing(runs):
        watch = EndedRunWatch()
        for number, state in enumerate(["done", "running", "queued", "running", "running", "running"], start=1):
            runs.execute("INSERT INTO run VALUES (?, ?, 100.0, NULL)", (number, state))
        assert watch.newly_ended_runs(runs) == [], "what had ended before is not told"
        assert watch.newly_ended_runs(runs) == []
        late = 100.0 + LONG_SECONDS
        runs.execute("UPDATE run SET state = 'done', finished = ? WHERE id = 2", (late,))
        runs.execute("UPDATE run SET state = 'failed', finished = ? WHERE id = 3", (late,))
        runs.execute("UPDATE run SET state = 'interrupted', finished = ? WHERE id = 4", (late,))
        runs.execute("UPDATE run SET state = 'done', finished = ? WHERE id = 5", (late - 1.0,))
        runs.execute("DELETE FROM run WHERE id = 6")
        assert watch.newly_ended_runs(runs) == [(2, "done"), (3, "failed")]
        assert watch.newly_ended_runs(runs) == []


def test_a_database_of_others_breaks_nothing(runs: sqlite3.Connection) -> None:
    with closing(runs):
        watch = EndedRunWatch()
        runs.execute("INSERT INTO run VALUES (1, 'running', 'x', NULL)")
        assert watch.newly_ended_runs(runs) == []
        runs.execute("UPDATE run SET created = 1.0")
        assert watch.newly_ended_runs(runs) == []
        runs.execute("UPDATE run SET state = '\x1b[2J', finished = 'x'")
        assert watch.newly_ended_runs(runs) == []
        runs.execute("DROP TABLE run")
        assert watch.newly_ended_runs(runs) == []

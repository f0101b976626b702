"""Notification that a run has ended: the terminal's bell, or a message of the desktop (OSC 9)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from sfumato.engine.wording import agreeing_word, count_noun

VARIABLE = "SFUMATO_NOTIFY"
NOTIFICATION_WAYS = {
    "off": "say nothing",
    "bell": "ring the terminal's bell",
    "osc9": "ring it, and have the terminal show a message of the desktop (OSC 9)",
}
LONG_SECONDS = 10.0
"""Length of a run from which on its end is announced: users still watch shorter ones."""
NOTIFIED_STATES = ("done", "failed")
"""How a run ends by itself; who stops one knows."""
EndedRuns = Sequence[tuple[int, str]]
"""Runs with the states that they ended in."""


def notification_way(environment: Mapping[str, str], chosen: str, otherwise: str) -> str:
    """Return the way chosen in the app, else the one that ``SFUMATO_NOTIFY`` names, else ``otherwise``."""
    return next((way for way in (chosen, environment.get(VARIABLE, "")) if way in NOTIFICATION_WAYS), otherwise)


def ended_runs_text(ended_runs: EndedRuns) -> str:
    """Return the ended runs in words: ``run 3 is done``, ``2 runs have ended``."""
    # Numbers and states only: the words go to a terminal, and perhaps to a desktop and its log.
    if len(ended_runs) > 1:
        return f"{count_noun(len(ended_runs), 'run')} {agreeing_word(len(ended_runs), 'has', 'have')} ended"
    return "".join(f"run {run_id} {'has failed' if state == 'failed' else 'is done'}" for run_id, state in ended_runs)


def notification_sequence(way: str, ended_runs: EndedRuns, *, in_tmux: bool) -> str:
    """Return the characters to write to the terminal, once for all ended runs; empty without notification."""
    if way == "off" or not ended_runs:
        return ""
    if way == "bell":
        return "\a"
    message = f"\x1b]9;Sfumato: {ended_runs_text(ended_runs)}\x1b\\"
    # A terminal that does not know OSC 9 ignores it. tmux passes it on where ``allow-passthrough`` is on, and handles
    # the bell itself.
    return "\a" + (f"\x1bPtmux;{message.replace(chr(27), chr(27) * 2)}\x1b\\" if in_tmux else message)


class EndedRunWatch:
    """Watch for runs of a workspace that have ended since the last call."""

    def __init__(self) -> None:
        self._going: dict[int, float] = {}

    def newly_ended_runs(self, connection: sqlite3.Connection) -> EndedRuns:
        """Return the runs that ended by themselves and took long; none where they cannot be read."""
        try:
            rows = connection.execute("SELECT id, created FROM run WHERE state IN ('queued', 'running')").fetchall()
            before, self._going = self._going, {int(row[0]): float(row[1]) for row in rows}
            gone = [run_id for run_id in before if run_id not in self._going]
            query = "SELECT state, finished FROM run WHERE id = ?"
            found = [(run_id, connection.execute(query, (run_id,)).fetchone()) for run_id in gone]
            return [
                (run_id, row[0])
                for run_id, row in found
                # Users still watch short runs, and whoever stopped a run knows that it has ended.
                if row is not None and row[0] in NOTIFIED_STATES and (row[1] or 0.0) - before[run_id] >= LONG_SECONDS
            ]
        except (sqlite3.Error, TypeError, ValueError):
            # The screens show errors of reading.
            return []

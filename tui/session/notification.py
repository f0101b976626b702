"""What tells the user at another window that a run has ended: the terminal's bell, or a message of the desktop (OSC 9).

The words go to a terminal, and perhaps to a desktop and its log, so they hold numbers and states and never a name or a value.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from sfumato.engine.wording import agreeing_word, count_noun

VARIABLE = "SFUMATO_NOTIFY"
WAYS = {
    "off": "say nothing",
    "bell": "ring the terminal's bell",
    "osc9": "ring it, and have the terminal show a message of the desktop (OSC 9)",
}
LONG_SECONDS = 10.0
"""Nobody has looked away from a run that ends sooner."""
TOLD = ("done", "failed")
"""How a run ends by itself; who stops one knows."""
Ended = Sequence[tuple[int, str]]
"""Runs with the states that they ended in."""


def way_of(environment: Mapping[str, str], chosen: str, otherwise: str) -> str:
    """The way that was chosen in the app, else the one that ``SFUMATO_NOTIFY`` names, else ``otherwise``."""
    return next((way for way in (chosen, environment.get(VARIABLE, "")) if way in WAYS), otherwise)


def ended_text(ended: Ended) -> str:
    """``run 3 is done``, ``2 runs have ended``."""
    if len(ended) > 1:
        return f"{count_noun(len(ended), 'run')} {agreeing_word(len(ended), 'has', 'have')} ended"
    return "".join(f"run {run_id} {'has failed' if state == 'failed' else 'is done'}" for run_id, state in ended)


def sequence(way: str, ended: Ended, *, in_tmux: bool) -> str:
    """What is written to the terminal: once, however many have ended; empty where nothing is said.

    A terminal that knows no OSC 9 passes it over. tmux hands it on where ``allow-passthrough`` is on; the bell, which comes with it,
    it knows itself.
    """
    if way == "off" or not ended:
        return ""
    if way == "bell":
        return "\a"
    message = f"\x1b]9;Sfumato: {ended_text(ended)}\x1b\\"
    return "\a" + (f"\x1bPtmux;{message.replace(chr(27), chr(27) * 2)}\x1b\\" if in_tmux else message)


class RunWatch:
    """Notices which runs of a workspace have ended since it last looked."""

    def __init__(self) -> None:
        self._going: dict[int, float] = {}

    def ended(self, connection: sqlite3.Connection) -> Ended:
        """Those that ended by themselves and took long. What cannot be read, the screens say."""
        try:
            rows = connection.execute("SELECT id, created FROM run WHERE state IN ('queued', 'running')").fetchall()
            before, self._going = self._going, {int(row[0]): float(row[1]) for row in rows}
            gone = [run_id for run_id in before if run_id not in self._going]
            query = "SELECT state, finished FROM run WHERE id = ?"
            found = [(run_id, connection.execute(query, (run_id,)).fetchone()) for run_id in gone]
            return [
                (run_id, row[0])
                for run_id, row in found
                if row is not None and row[0] in TOLD and (row[1] or 0.0) - before[run_id] >= LONG_SECONDS
            ]
        except (sqlite3.Error, TypeError, ValueError):
            return []

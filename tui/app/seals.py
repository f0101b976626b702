"""Runs held against their seals while they are shown."""

from __future__ import annotations

from sfumato.workspace.store.runs import Run
from sfumato.workspace.store.workspace import Workspace

from ..parts.page import Beside, Reads

ROWS_AT_HAND = 2_000
"""A seal over so many rows is checked in a thread in less time than a process needs to start."""


class HoldsSeals(Reads):
    """A screen that says of the run it shows where that is not as it was sealed."""

    _seals: dict[int, tuple[object, str]] | None = None

    def seal_broken(self) -> None:
        """Show that a run is not as it was sealed."""

    def broken_seal(self, run: Run) -> str:
        """What is known not to agree with the seal of a run; empty where all does, as far as it has been looked at."""
        return (self._seals or {}).get(run.id, (None, ""))[1]

    def look_at_seal_of(self, run: Run) -> None:
        """Have a run held against its seal, once for each state that it has been in."""
        self._seals = {} if self._seals is None else self._seals
        known = self._seals.get(run.id)
        if known is None or known[0] != (run.state, run.finished):
            self._seals[run.id] = ((run.state, run.finished), "")
            self._hold(run.id)

    def _hold(self, run_id: int) -> None:
        """Beside the app where that takes long, which would hold up its keys; what cannot be read, the panes say."""
        directory = self.sfumato.directory

        def hold(call: Beside) -> tuple[int, str]:
            from sfumato.workspace.upkeep.integrity import seal_fault_text

            with Workspace.open(directory, read_only=True) as workspace:
                query = "SELECT count(*) FROM result WHERE run_id = ?"
                rows = workspace.connection.execute(query, (run_id,)).fetchone()[0]
            few = rows <= ROWS_AT_HAND
            return run_id, (
                seal_fault_text(directory, run_id)
                if few
                else call(seal_fault_text, directory, run_id, what="the check of the seal")
            )

        self.call_beside(hold, self._warn, group="seal", exclusive=False, refuse=lambda _: None)

    def _warn(self, answer: tuple[int, str]) -> None:
        run_id, said = answer
        if said and self._seals is not None:
            self._seals[run_id] = (self._seals[run_id][0], said)
            self.sfumato.say(said, "error")
            self.seal_broken()

"""Compare runs with their seals while they are shown."""

from __future__ import annotations

from sfumato.workspace.store.runs import StoredRun
from sfumato.workspace.store.workspace import Workspace

from ..parts.page import CallInProcess, WorkspaceReader

ROWS_CHECKED_IN_APP = 2_000
"""Number of rows up to which checking a seal in a thread takes less time than starting a process."""


class ChecksRunSeals(WorkspaceReader):
    """Mixin of a screen that warns if the run that it shows differs from its seal."""

    _seals: dict[int, tuple[object, str]] | None = None

    def show_broken_seal(self) -> None:
        """Show that a run differs from its seal."""

    def broken_seal_text(self, run: StoredRun) -> str:
        """Return how a run differs from its seal, as far as known; empty if it does not."""
        return (self._seals or {}).get(run.id, (None, ""))[1]

    def check_seal_of(self, run: StoredRun) -> None:
        """Compare a run with its seal, once for each state that the run has been in."""
        self._seals = {} if self._seals is None else self._seals
        known = self._seals.get(run.id)
        if known is None or known[0] != (run.state, run.finished):
            self._seals[run.id] = ((run.state, run.finished), "")
            self._compare_with_seal(run.id)

    def _compare_with_seal(self, run_id: int) -> None:
        """Compare a run with its seal, in another process if that takes long."""
        directory = self.sfumato.directory

        def hold(call: CallInProcess) -> tuple[int, str]:
            """Return the run and its differences from the seal."""
            from sfumato.workspace.upkeep.integrity import seal_fault_text

            with Workspace.open(directory, read_only=True) as workspace:
                query = "SELECT count(*) FROM result WHERE run_id = ?"
                rows = workspace.connection.execute(query, (run_id,)).fetchone()[0]
            few = rows <= ROWS_CHECKED_IN_APP
            return run_id, (
                seal_fault_text(directory, run_id)
                if few
                else call(seal_fault_text, directory, run_id, what="the check of the seal")
            )

        # Errors are ignored here: the tabs report what cannot be read.
        self.compute_in_processes(hold, self._warn_of_broken_seal, group="seal", exclusive=False, refuse=lambda _: None)

    def _warn_of_broken_seal(self, answer: tuple[int, str]) -> None:
        """Show and report how a run differs from its seal."""
        run_id, said = answer
        if said and self._seals is not None:
            self._seals[run_id] = (self._seals[run_id][0], said)
            self.sfumato.say(said, "error")
            self.show_broken_seal()

"""Comparison of runs with their seals while they are shown."""

from __future__ import annotations

from sfumato.workspace.store.runs import StoredRun
from sfumato.workspace.store.workspace import Workspace

from ..parts.page import CallInProcess, WorkspaceReader

ROWS_CHECKED_IN_APP = 2_000
"""Number of rows up to which a seal is checked in a thread in less time than a process needs to start."""


class ChecksRunSeals(WorkspaceReader):
    """Mixin of a screen that warns where the run that it shows is not as it was sealed."""

    _seals: dict[int, tuple[object, str]] | None = None

    def show_broken_seal(self) -> None:
        """Show that a run is not as it was sealed."""

    def broken_seal_text(self, run: StoredRun) -> str:
        """Return what is known to differ from the seal of a run; empty where nothing is."""
        return (self._seals or {}).get(run.id, (None, ""))[1]

    def check_seal_of(self, run: StoredRun) -> None:
        """Compare a run with its seal, once for each state that it has been in."""
        self._seals = {} if self._seals is None else self._seals
        known = self._seals.get(run.id)
        if known is None or known[0] != (run.state, run.finished):
            self._seals[run.id] = ((run.state, run.finished), "")
            self._compare_with_seal(run.id)

    def _compare_with_seal(self, run_id: int) -> None:
        """Compare in another process where it takes long, so that keys are not held up; panes report what cannot be read."""
        directory = self.sfumato.directory

        def hold(call: CallInProcess) -> tuple[int, str]:
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

        self.compute_in_processes(hold, self._warn_of_broken_seal, group="seal", exclusive=False, refuse=lambda _: None)

    def _warn_of_broken_seal(self, answer: tuple[int, str]) -> None:
        run_id, said = answer
        if said and self._seals is not None:
            self._seals[run_id] = (self._seals[run_id][0], said)
            self.sfumato.say(said, "error")
            self.show_broken_seal()

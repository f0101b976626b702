"""Levers of the runs of this session, and what trials of them found; each is made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.workspace.service.lever_trials import LeverTrial
    from sfumato.workspace.service.run_levers import FindingAim, LeverEffect, RunLever, RunLevers

TrialKey = tuple[int, str, tuple[str, ...]]
"""A run, the recipe that was tried on its records, and the measures of the trial."""


@dataclass
class LeverMemory:
    """Levers and trials of this session.

    found: levers by run and by the findings that they are for
    trials: trials by run, recipe and measures
    lock: held while a trial is made, so that there is one at a time
    """

    found: dict[tuple[int, tuple[FindingAim, ...]], RunLevers] = field(default_factory=dict)
    trials: dict[TrialKey, LeverTrial] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def find_levers(
        self, directory: Path, run_id: int, findings: tuple[FindingAim, ...], call: Callable[..., Any]
    ) -> RunLevers:
        """Return the levers of a run, found in another process by ``call`` unless they are known. Called in a thread."""
        from sfumato.workspace.plan.edits import draft_to_change_run
        from sfumato.workspace.service.run_levers import find_run_levers
        from sfumato.workspace.store.workspace import Workspace

        with Workspace.open(directory, read_only=True) as workspace:
            toml = draft_to_change_run(workspace, run_id).toml
        known = self.found.get((run_id, findings))
        # The plan may have been edited since, with other comments and in another order: levers are changes of its text.
        if known is None or known.toml != toml:
            known = call(find_run_levers, directory, run_id, findings, what="the search for levers")
            self.found[run_id, findings] = known
        return known

    def known_effect(self, found: RunLevers, lever: RunLever) -> LeverEffect | None:
        """Return what a lever does where that is known."""
        from sfumato.workspace.service.run_levers import compare_trials

        before, after = (self.trials.get((found.run_id, toml, lever.aim.measures)) for toml in (found.toml, lever.toml))
        return None if before is None or after is None else compare_trials(lever.aim, before, after)

    def try_lever(
        self, directory: Path, found: RunLevers, lever: RunLever, call: Callable[..., Any]
    ) -> LeverEffect | None:
        """Return what a lever does, tried in another process by ``call`` unless it is known. Called in a thread.

        Raises Cancelled where ``call`` does.
        """
        for toml in (found.toml, lever.toml):
            key = (found.run_id, toml, lever.aim.measures)
            with self.lock:
                if key not in self.trials:
                    self.trials[key] = _make_trial(directory, *key, call)
        return self.known_effect(found, lever)


def _make_trial(
    directory: Path, run_id: int, toml: str, measures: tuple[str, ...], call: Callable[..., Any]
) -> LeverTrial:
    """Try a recipe on a sample of a run in another process."""
    from sfumato.workspace.service.lever_trials import MOST_SECONDS, carry_out_trial, try_recipe

    def carry_out(*arguments: object) -> LeverTrial:
        """Carry the trial out for as long as it is wanted, and no longer than a trial may take."""
        tried: LeverTrial = call(carry_out_trial, *arguments, what="a trial", seconds=MOST_SECONDS)
        return tried

    return try_recipe(directory, run_id, toml, measures, carry_out)

"""Carrying out runs from the command line: entered, followed to the end, written, printed, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .summary import exit_code, published_text, summarise

if TYPE_CHECKING:
    from sfumato.workspace.jobs.runs import Run
    from sfumato.workspace.store.workspace import Workspace

__all__ = ["INTERRUPTED", "carry_out", "show", "write_json"]

INTERRUPTED = 3


def carry_out(workspace: Workspace, run_ids: Sequence[int], jobs: int, json_file: str | None, *, quiet: bool) -> int:
    """Follow runs that have been entered with one worker, then write and print what they found; the exit status.

    The first run decides it: 0 done, 1 a threshold failed, 3 interrupted; the others stand beside it. Raises
    EngineError when a run fails: at once for the first, for another when what the first found has been shown.
    """
    from sfumato.engine.errors import EngineError
    from sfumato.workspace.jobs.runs import RunState
    from sfumato.workspace.views.results import verdicts_of

    from .follow import follow_all

    runs = follow_all(workspace, run_ids, jobs, quiet=quiet)
    failed = [run for run in runs if run.state is RunState.FAILED]
    if runs[0] in failed:
        raise EngineError(f"run {runs[0].id} failed: {runs[0].error}")
    stopped = [run for run in runs if run.state not in (RunState.DONE, RunState.FAILED)]
    for run in stopped:
        click.echo(f"run {run.id} is {run.state}; go on with: sfumato resume {run.id}", err=True)
    if stopped:
        return INTERRUPTED
    write_json(workspace, runs[0].id, json_file)
    if not quiet and json_file != "-":
        click.echo(show(workspace, runs))
    if failed:
        raise EngineError(f"run {failed[0].id}, beside run {runs[0].id}, failed: {failed[0].error}")
    return exit_code(verdicts_of(workspace, runs[0].id))


def show(workspace: Workspace, runs: Sequence[Run]) -> str:
    """The summaries of runs, the first the main one; where its recipe quotes figures of a synthesis, those and the plots."""
    from sfumato.workspace.jobs.runs import RunState, find_run

    main, *beside = [find_run(workspace, run.id) for run in runs]
    done = [run for run in beside if run.state is RunState.DONE]
    parts = [summarise(workspace, main), *[f"Beside it: {summarise(workspace, run)}" for run in done]]
    if main.recipe.published and main.recipe.synthesis and main.state is RunState.DONE:
        from .charts import draw_figures

        parts.append(draw_figures(workspace, str(main.id)))
    if beside:
        parts += published_text(workspace, [main, *done])
        parts.append(
            f"The thresholds of run {main.id} decide the exit status; those of the runs beside it are only shown."
        )
    return "\n\n".join(parts)


def write_json(workspace: Workspace, run_id: int, json_file: str | None) -> None:
    """Write a run's results to a file, or to standard output for ``-``; nothing for None."""
    if json_file is None:
        return
    from sfumato.workspace.plan.companions import result_with_companions

    text = json.dumps(result_with_companions(workspace, run_id), indent=1, allow_nan=False) + "\n"
    if json_file == "-":
        click.echo(text, nl=False)
    else:
        Path(json_file).write_text(text, "utf-8")

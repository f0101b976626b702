"""Carrying out runs from the command line: a worker is started, followed to the end, its findings written and printed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sfumato.engine.errors import EngineError
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.jobs.following import OneWorker
from sfumato.workspace.jobs.runs import result_with_companions
from sfumato.workspace.reporting.terminal_text import cell_width, padded, split_at
from sfumato.workspace.store.runs import Run, RunState, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import verdicts_of
from sfumato.workspace.visible_text import replace_unprintable

from ..session.run_progress import Progress, wait_for
from .options import check_seal, plain_wanted, write_object
from .speech import echo, echo_parts
from .summary import exit_code, published_text, summarise

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer

INTERRUPTED = 3
LINE_SECONDS = 1.0


def follow(workspace: Workspace, run_id: int, jobs: int, *, quiet: bool) -> Run:
    """Start a worker and wait for the run to end; see ``follow_all``."""
    return follow_all(workspace, [run_id], jobs, quiet=quiet)[0]


def follow_all(
    workspace: Workspace, run_ids: Sequence[int], jobs: int, *, quiet: bool, worker_of: OneWorker | None = None
) -> list[Run]:
    """``wait_for`` with a line of progress; the runs as they stand at their end, or when Ctrl+C has interrupted them."""
    try:
        return wait_for(workspace, run_ids, jobs, _silent if quiet else _teller(), worker_of)
    except KeyboardInterrupt:
        return [find_run(workspace, run_id) for run_id in run_ids]


def _silent(text: str) -> None:
    return


def _teller() -> Callable[[str], None]:
    """Who says how far a run is, on standard error: nobody where it is not a terminal, in whole lines where these are asked for."""
    if not sys.stderr.isatty():
        return _silent
    return Progress(partial(echo, err=True)) if plain_wanted() else _Line()


class _Line:
    """One line on standard error, rewritten at most once a second."""

    def __init__(self) -> None:
        self.shown = ""
        self.last = 0.0

    def __call__(self, text: str) -> None:
        text = split_at(replace_unprintable(text), shutil.get_terminal_size().columns - 1)[0]
        if text and (text == self.shown or time.monotonic() - self.last < LINE_SECONDS):
            return
        sys.stderr.write("\r" + padded(text, cell_width(self.shown)) + ("" if text else "\r"))
        sys.stderr.flush()
        self.shown, self.last = text, time.monotonic()


def carry_out(workspace: Workspace, run_ids: Sequence[int], jobs: int, json_file: str | None, *, quiet: bool) -> int:
    """Follow runs that have been entered with one worker, then write and print what they found; the exit status.

    The first run decides it: 0 done, 1 a threshold failed, 3 interrupted; the others stand beside it. Raises
    EngineError when a run fails: at once for the first, for another when what the first found has been shown.
    """
    runs = follow_all(workspace, run_ids, jobs, quiet=quiet)
    _notify(runs)
    failed = [run for run in runs if run.state is RunState.FAILED]
    if runs[0] in failed:
        raise EngineError(f"run {runs[0].id} failed: {runs[0].error}")
    stopped = [run for run in runs if run.state not in (RunState.DONE, RunState.FAILED)]
    for run in stopped:
        echo(f"run {run.id} is {run.state}; go on with: sfumato resume {run.id}", err=True)
    if stopped:
        return INTERRUPTED
    show_results(workspace, runs, json_file, quiet=quiet)
    if failed:
        raise EngineError(f"run {failed[0].id}, beside run {runs[0].id}, failed: {failed[0].error}")
    return exit_code(verdicts_of(workspace, runs[0].id))


def _notify(runs: Sequence[Run]) -> None:
    """Tell somebody at another window that the runs have ended, where that was asked for and there is a terminal."""
    if not sys.stderr.isatty():
        return
    from ..session.notification import LONG_SECONDS, sequence, way_of

    long = [
        run for run in runs if run.state in (RunState.DONE, RunState.FAILED) and (run.seconds or 0.0) >= LONG_SECONDS
    ]
    way = way_of(os.environ, "", otherwise="off")
    sys.stderr.write(sequence(way, [(run.id, run.state.value) for run in long], in_tmux="TMUX" in os.environ))
    sys.stderr.flush()


def show_results(
    workspace: Workspace, runs: Sequence[Run], json_file: str | None, *, keys: bool = False, quiet: bool = False
) -> None:
    """Print what runs found and, last, whether the release of the first may leave; write the same as JSON where a file is named.

    No verdict stands below the answer. Without anything to print or to write the gate examines nothing.
    """
    shown = not quiet and json_file != "-"
    if shown:
        # What was found is printed before the gate examines the release, which can take a minute.
        echo_parts(show(workspace, runs, keys=keys))
    if not shown and json_file is None:
        return
    # The gate loads numerical libraries, which the first question of plain mode does not wait for.
    from sfumato.workspace.gate.answer import answer_for_run

    answer = answer_for_run(workspace, runs[0].id)
    write_json(workspace, runs[0].id, json_file, answer)
    if shown and answer is not None:
        echo("\n".join(["", *answer.lines]))
    if answer is not None and answer.error:
        # A damaged table is an error of the command too: a script must not take these results for whole.
        raise WorkspaceError(answer.error)


def show(workspace: Workspace, runs: Sequence[Run], *, keys: bool = False) -> list[str]:
    """Return the summaries of runs, the first the main one; where its recipe quotes figures of a synthesis, those and the plots. In parts."""
    check_seal(workspace, *(run.id for run in runs))
    main, *beside = [find_run(workspace, run.id) for run in runs]
    done = [run for run in beside if run.state is RunState.DONE]
    others = [f"Beside it: {summarise(workspace, run, keys=keys)}" for run in done]
    parts = [summarise(workspace, main, keys=keys), *others]
    if main.recipe.published and main.recipe.synthesis and main.state is RunState.DONE:
        from .charts import draw_figures

        parts.append(draw_figures(workspace, str(main.id)))
    if beside:
        parts += published_text(workspace, [main, *done])
        parts.append(
            f"The thresholds of run {main.id} decide the exit status; those of the runs beside it are only shown."
        )
    return parts


def write_json(workspace: Workspace, run_id: int, json_file: str | None, answer: ReleaseAnswer | None) -> None:
    """Write a run's results, and whether its release may leave, to a file, or to standard output for ``-``; nothing for None."""
    if json_file is not None:
        may_leave = {} if answer is None else {"may_leave": answer.to_table()}
        write_object({**result_with_companions(workspace, run_id), **may_leave}, json_file)

"""Runs from the command line: start a worker, follow it to the end, write and print the findings."""

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
from sfumato.workspace.jobs.following import WorkerStarter
from sfumato.workspace.jobs.runs import result_object_with_companions
from sfumato.workspace.reporting.terminal_text import cell_width, pad_text, split_at_width
from sfumato.workspace.store.runs import RunState, StoredRun, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts
from sfumato.workspace.visible_text import replace_unprintable

from ..session.run_progress import ProgressLines, wait_for
from .options import check_seal, is_plain_requested, write_object
from .speech import echo, echo_parts
from .summary import exit_code, published_text, run_summary_text

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer

INTERRUPTED = 3
LINE_SECONDS = 1.0


def follow_run(workspace: Workspace, run_id: int, jobs: int, *, quiet: bool) -> StoredRun:
    """Start a worker and wait for the run to end, as ``follow_runs`` does; return the run in its state at the end."""
    return follow_runs(workspace, [run_id], jobs, quiet=quiet)[0]


def follow_runs(
    workspace: Workspace,
    run_ids: Sequence[int],
    jobs: int,
    *,
    quiet: bool,
    worker_of: WorkerStarter | None = None,
    say: Callable[[str], None] | None = None,
) -> list[StoredRun]:
    """Wait for runs with a line of progress; return them in their state at the end or after Ctrl+C.

    say: function that reports the progress in place of that line
    """
    try:
        say = say or (_discard_text if quiet else _progress_writer())
        return wait_for(workspace, run_ids, jobs, say, worker_of)
    except KeyboardInterrupt:
        return [find_run(workspace, run_id) for run_id in run_ids]


def _discard_text(text: str) -> None:
    return


def _progress_writer() -> Callable[[str], None]:
    """Return the function that reports progress on standard error."""
    if not sys.stderr.isatty():
        return _discard_text
    return ProgressLines(partial(echo, err=True)) if is_plain_requested() else RewrittenLine()


class RewrittenLine:
    """Line of progress on standard error, rewritten at most once a second."""

    def __init__(self) -> None:
        self.shown = ""
        self.last = 0.0

    def __call__(self, text: str) -> None:
        """Show a text of the run's progress in place of the last; an empty one clears the line."""
        # A line that wraps cannot be rewritten; some terminals wrap at the last column already.
        text = split_at_width(replace_unprintable(text), shutil.get_terminal_size().columns - 1)[0]
        if text and (text == self.shown or time.monotonic() - self.last < LINE_SECONDS):
            return
        sys.stderr.write("\r" + pad_text(text, cell_width(self.shown)) + ("" if text else "\r"))
        sys.stderr.flush()
        self.shown, self.last = text, time.monotonic()


def run_to_end(workspace: Workspace, run_ids: Sequence[int], jobs: int, json_file: str | None, *, quiet: bool) -> int:
    """Follow runs that have been entered with one worker, then write and print their findings; return the exit status.

    The first run decides it: 0 done, 1 a threshold failed, 3 interrupted; the others are its companions. Raises
    EngineError when a run fails: at once for the first, for another when the findings of the first have been shown.
    """
    runs = follow_runs(workspace, run_ids, jobs, quiet=quiet)
    _notify_user(runs)
    failed = [run for run in runs if run.state is RunState.FAILED]
    if runs[0] in failed:
        raise EngineError(f"run {runs[0].id} failed: {runs[0].error}")
    stopped = [run for run in runs if run.state not in (RunState.DONE, RunState.FAILED)]
    for run in stopped:
        echo(f"run {run.id} is {run.state}; resume it with: sfumato resume {run.id}", err=True)
    if stopped:
        return INTERRUPTED
    show_results(workspace, runs, json_file, quiet=quiet)
    if failed:
        raise EngineError(f"run {failed[0].id}, beside run {runs[0].id}, failed: {failed[0].error}")
    return exit_code(read_verdicts(workspace, runs[0].id))


def _notify_user(runs: Sequence[StoredRun]) -> None:
    """Notify a user at another window that the runs have ended, where requested and on a terminal."""
    # Escape sequences mean nothing in a file.
    if not sys.stderr.isatty():
        return
    from ..session.notification import LONG_SECONDS, notification_sequence, notification_way

    long = [
        run for run in runs if run.state in (RunState.DONE, RunState.FAILED) and (run.seconds or 0.0) >= LONG_SECONDS
    ]
    way = notification_way(os.environ, "", otherwise="off")
    sys.stderr.write(
        notification_sequence(way, [(run.id, run.state.value) for run in long], in_tmux="TMUX" in os.environ)
    )
    sys.stderr.flush()


def show_results(
    workspace: Workspace,
    runs: Sequence[StoredRun],
    json_file: str | None,
    *,
    keys: bool = False,
    quiet: bool = False,
    every_setting: bool = False,
) -> None:
    """Print the findings of runs and, last, whether the release of the first may leave.

    The same is written as JSON where a file is named. Without anything to print or to write the gate examines nothing.
    """
    shown = not quiet and json_file != "-"
    if shown:
        # What was found is printed before the gate examines the release, which can take a minute.
        echo_parts(result_parts(workspace, runs, keys=keys, every_setting=every_setting))
    if not shown and json_file is None:
        return
    # The gate loads numerical libraries, which the first question of plain mode does not wait for.
    from sfumato.workspace.gate.answer import answer_for_run

    # Printed last: no verdict may stand below the gate's answer and read greener.
    answer = answer_for_run(workspace, runs[0].id)
    write_result_json(workspace, runs[0].id, json_file, answer)
    if shown and answer is not None:
        echo("\n".join(["", *answer.lines]))
    if answer is not None and answer.error:
        # A damaged table is an error of the command too: a script must not take these results for whole.
        raise WorkspaceError(answer.error)


def result_parts(
    workspace: Workspace, runs: Sequence[StoredRun], *, keys: bool = False, every_setting: bool = False
) -> list[str]:
    """Return the findings of runs in parts: summaries, the first the main one, then quoted figures.

    Plots are drawn where the recipe quotes a source.
    """
    check_seal(workspace, *(run.id for run in runs))
    main, *beside = [find_run(workspace, run.id) for run in runs]
    done = [run for run in beside if run.state is RunState.DONE]
    others = [f"Beside it: {run_summary_text(workspace, run, keys=keys, every_setting=every_setting)}" for run in done]
    parts = [run_summary_text(workspace, main, keys=keys, every_setting=every_setting), *others]
    if main.recipe.published and main.recipe.synthesis and main.state is RunState.DONE:
        from .charts import draw_figures

        parts.append(draw_figures(workspace, str(main.id)))
    if beside:
        parts += published_text(workspace, [main, *done])
        parts.append(
            f"The thresholds of run {main.id} decide the exit status; those of the runs beside it are only shown."
        )
    return parts


def write_result_json(workspace: Workspace, run_id: int, json_file: str | None, answer: ReleaseAnswer | None) -> None:
    """Write a run's results, and whether its release may leave, as JSON; nothing where no file is named."""
    if json_file is not None:
        may_leave = {} if answer is None else {"may_leave": answer.to_table()}
        write_object({**result_object_with_companions(workspace, run_id), **may_leave}, json_file)

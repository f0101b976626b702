"""Command that tries the levers of a run on a sample, and runs one of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from .options import (
    JOBS,
    JSON,
    QUIET,
    RUN,
    WORKSPACE,
    add_computing_options,
    check_seal,
    check_writable,
    is_plain_requested,
    open_workspace,
    write_object,
)
from .speech import echo


@click.command()
@RUN
@click.option("--apply", "number", type=click.IntRange(1), metavar="N", help="Run the recipe of RUN with lever N.")
@WORKSPACE
@JOBS
@add_computing_options
@JSON
@QUIET
def levers(
    run_id: str,
    number: int | None,
    directory: Path | None,
    jobs: int,
    json_file: str | None,
    *,
    quiet: bool,
) -> None:
    """List what to change in a run's recipe, and what it does.

    RUN is a number, a name, or last. The levers are those of Findings in the app: each is tried on a sample of at most 2,000
    records, with the change and without it. Nothing of a trial is kept, also after Ctrl+C.

    --apply runs the recipe of RUN with one of them, by its number, as a new run.
    """
    from sfumato.engine.errors import BadInput
    from sfumato.engine.wording import count_noun
    from sfumato.workspace.policy.disclosure import INTERNAL
    from sfumato.workspace.service.examination import examine_run
    from sfumato.workspace.service.run_levers import enter_changed_run
    from sfumato.workspace.store.runs import RunState, find_run

    from ..session.lever_lines import applied_lines, find_levers_for, sample_text, try_levers, useless_of_tried_text
    from ..session.lever_memory import LeverMemory
    from .run import run_to_end

    check_writable(json_file)
    workspace = open_workspace(directory)
    run = find_run(workspace, run_id)
    if run.state is not RunState.DONE:
        raise BadInput("RUN", f"run {run.id} is not done, so it has no levers")
    check_seal(workspace, run.id)
    memory, report = LeverMemory(), _progress_writer(quiet=quiet)
    report("Finding levers")
    findings = list(examine_run(workspace.directory, run.id).examination.findings)
    found = find_levers_for(workspace.directory, run.id, findings, memory)
    if number is not None:
        report("")
        if number > len(found.levers):
            raise BadInput(
                "--apply", f"there is no lever {number}; run {run.id} has {count_noun(len(found.levers), 'lever')}"
            )
        lever = found.levers[number - 1]
        entered, is_plan = enter_changed_run(workspace, found, lever)
        if not quiet and json_file != "-":
            echo("\n".join(applied_lines(found, lever, entered, is_plan=is_plan)))
        sys.exit(run_to_end(workspace, [entered], jobs, json_file, quiet=quiet))
    shown, tried = not quiet and json_file != "-", []
    for one in try_levers(workspace.directory, found, memory, report):
        tried.append(one)
        if shown and one.is_shown:
            report("")
            echo(f"{one.number}. {one.text}.")
    report("")
    if json_file is not None:
        table = {"disclosure": INTERNAL, "run": run.id, "sample": sample_text(tried)}
        write_object({**table, "levers": [one.to_table() for one in tried]}, json_file)
    if shown:
        helping = any(one.is_shown for one in tried)
        last = f"Next: sfumato levers {run.id} --apply N" if helping else f"No lever that helps run {run.id} is known."
        echo("\n".join(filter(None, (useless_of_tried_text(tried), sample_text(tried), last))))


def _progress_writer(*, quiet: bool) -> Callable[[str], None]:
    """Return the function that reports progress on standard error: a line that is rewritten, or one line after another."""
    from .run import RewrittenLine

    if quiet:
        return lambda text: None
    if sys.stderr.isatty() and not is_plain_requested():
        return RewrittenLine()
    return lambda text: echo(f"{text}.", err=True) if text else None

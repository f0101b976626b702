"""Commands for the upkeep of runs and their workspace: runs, cancel, delete, worker, audit, doctor, keys."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import click

from sfumato.engine.wording import count_noun

from ..session.places import keys_file
from . import completion as completing
from .failures import CommandListGroup
from .options import (
    JSON,
    WORKSPACE,
    add_computing_options,
    check_run_named,
    check_seal,
    check_writable,
    chosen_workspace,
    open_workspace,
    report_workspace_at_end,
    write_object,
)
from .speech import confirm_or_abort, echo


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=completing.complete_runs)
@click.option(
    "--name", metavar="TEXT", help='Call RUN so: the name stands for its number from then on; "" takes it away.'
)
@click.option("--note", metavar="TEXT", help='Keep a line with RUN that says what it is for; "" takes it away.')
@click.option("--trials", is_flag=True, help="Give each trial of a search a row of its own.")
@WORKSPACE
@JSON
def runs(
    run_id: str | None,
    directory: Path | None,
    name: str | None,
    note: str | None,
    trials: bool,
    json_file: str | None,
) -> None:
    """List the runs, newest first, or the tasks of one.

    RUN is a number, a name, or last: the newest run that is no trial of a search.

    Names and notes are internal: no public file has them.
    """
    if run_id is None and (name is not None or note is not None):
        raise click.UsageError("--name and --note need the RUN that they are for: sfumato runs RUN --name TEXT")
    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.store.runs import find_run, list_tasks
    from sfumato.workspace.upkeep.integrity import check_all_runs_quickly

    from .admin_tables import run_head, run_list_text, run_object, runs_object, task_table

    check_writable(json_file)
    workspace = open_workspace(directory)
    if run_id is not None:
        found = find_run(workspace, run_id)
        renamed = name is not None or note is not None
        if renamed:
            from sfumato.workspace.store.run_names import name_run

            name_run(workspace, found.id, name, note)
            found = find_run(workspace, found.id)
        else:
            check_seal(workspace, found.id)
        if json_file is not None:
            write_object(run_object(workspace, found), json_file)
        if json_file != "-":
            tasks = "" if renamed else f"\n\n{task_table(list_tasks(workspace, found.id))}"
            echo(f"{run_head(workspace, found)}{tasks}")
        return
    if json_file is not None:
        write_object(runs_object(workspace), json_file)
    if json_file != "-":
        echo(
            run_list_text(workspace, trials=trials)
            or "no runs yet; start one with: sfumato run RECIPE (sfumato recipes lists what ships)"
        )
    wrong, not_looked = check_all_runs_quickly(workspace)
    if wrong:
        raise WorkspaceError(wrong)
    if not_looked:
        echo(not_looked, err=True)


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=completing.complete_runs)
@WORKSPACE
def cancel(run_id: str, directory: Path | None) -> None:
    """Cancel a run; it can be resumed.

    What it has finished stays readable.
    """
    from sfumato.workspace.jobs.queue import stop_run
    from sfumato.workspace.store.runs import RunState, find_run

    workspace = open_workspace(directory)
    found = find_run(workspace, run_id)
    stopped = stop_run(workspace, found.id, RunState.CANCELLED)
    echo(f"run {found.id} is cancelled" if stopped else f"run {found.id} had ended already: {found.state}")


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=completing.complete_runs)
@click.option("--project", metavar="NAME", help="Delete a project with its runs and its data instead.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@WORKSPACE
def delete(run_id: str | None, project: str | None, directory: Path | None, *, yes: bool) -> None:
    """Delete a run or a whole project for good.

    The audit log keeps that it was there.

    Of a run that was released a tombstone stays: the released datasets, and what later releases are judged by.
    """
    from sfumato.workspace.errors import NotFound
    from sfumato.workspace.service.deletion import delete_project, delete_run, pending_removal_text
    from sfumato.workspace.store.runs import find_run, list_project_summaries

    if (run_id is None) == (project is None):
        raise click.UsageError("name a run, or a project with --project")
    check_run_named(run_id, directory)
    workspace = open_workspace(directory)
    if run_id is not None:
        found = find_run(workspace, run_id)
        what, remove = f"run {found.id}", partial(delete_run, workspace, found.id)
    else:
        ids = [one.id for one in list_project_summaries(workspace) if one.name == project]
        if not ids:
            raise NotFound(f"there is no project {project}; sfumato lists them")
        what, remove = f"project {project}", partial(delete_project, workspace, ids[0])
    if not yes:
        confirm_or_abort(f"Delete {what} and everything in it for good?")
    echo(f"{what} is deleted{pending_removal_text(remove())}")


@click.command()
@WORKSPACE
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Tasks at a time, each in a process."
)
@click.option(
    "--idle",
    type=click.FloatRange(0),
    default=3.0,
    show_default=True,
    metavar="S",
    help="End after this many idle seconds.",
)
@add_computing_options
def worker(directory: Path | None, jobs: int, idle: float) -> None:
    """Work on the waiting runs here, until none is left.

    Any number of workers may share a workspace.

    Ctrl+C, SIGTERM and the loss of the terminal end it; its unfinished tasks go back to the queue.
    """
    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.jobs.settings import dask_address
    from sfumato.workspace.jobs.worker_main import run_worker_process
    from sfumato.workspace.store.disk import DISK_ERRORS

    workspace = open_workspace(directory)
    workspace.close()
    try:
        run_worker_process(workspace.directory, jobs, idle, dask_address())
    except SystemExit as ended:
        if isinstance(ended.code, int) and ended.code in DISK_ERRORS:
            raise WorkspaceError(DISK_ERRORS[ended.code]) from None
        raise


@click.group(cls=CommandListGroup)
def audit() -> None:
    """List the acts in this workspace, or verify their list."""


@audit.command("list")
@WORKSPACE
@JSON
def list_acts(directory: Path | None, json_file: str | None) -> None:
    """List every act, oldest first."""
    from dataclasses import asdict

    from sfumato.workspace.audit import audit_rows

    from .admin_tables import act_table

    check_writable(json_file)
    # Unchecked: the log must be readable where opening would refuse its history.
    workspace = open_workspace(directory, unchecked=True)
    if json_file is not None:
        acts = [asdict(row) | {"details": _parse_json_or_text(row.details)} for row in audit_rows(workspace.connection)]
        write_object({"disclosure": "internal", "acts": acts}, json_file)
    if json_file != "-":
        echo(act_table(workspace))


def _parse_json_or_text(text: str) -> object:
    """Return the value of a JSON text, or the text itself where somebody has made it invalid."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@audit.command()
@WORKSPACE
@click.option(
    "--head", "noted", metavar="NUMBER:HASH", help="A head that an earlier verify printed: it must be in the chain."
)
@JSON
def verify(directory: Path | None, noted: str | None, json_file: str | None) -> None:
    """Check the audit log and every file that it records.

    It reads every byte of each stored table, and of each release that still lies where it was written. It says how much it read, and
    against whom the answer protects. Where something was changed, the exit status is 1 and it is named.
    """
    from ..session.audit_verification import verify_sealed_workspace

    check_writable(json_file)
    found = verify_sealed_workspace(open_workspace(directory, unchecked=True), noted)
    lines = found.text.splitlines()
    write_object(
        {
            "disclosure": "internal",
            "unchanged": found.unchanged,
            "files_read": found.files,
            "bytes_read": found.bytes,
            "worth": found.worth,
            "said": lines,
        },
        json_file,
    )
    if json_file != "-":
        echo(found.text, err=not found.unchanged)
    sys.exit(0 if found.unchanged else 1)


@audit.command("accept-rollback")
@click.option(
    "--reason", required=True, metavar="TEXT", help="Why, such as which backup was restored; kept in the audit log."
)
@WORKSPACE
def accept(directory: Path | None, reason: str) -> None:
    """Accept a restored backup.

    It replaces the history that is recorded outside the workspace. The head of each audit log is also kept outside its
    workspace, and a workspace that is behind it is refused. This command adds a row to the audit log that gives the
    reason, and records the new head.
    """
    from sfumato.workspace.upkeep.maintenance import accept_rollback

    head = accept_rollback(open_workspace(directory, unchecked=True), reason)
    echo(f"accepted; the audit log continues from row {head.number}, head {head}")


@click.command()
@WORKSPACE
@JSON
@click.option("--fix", is_flag=True, help="Remove files that no run needs.")
def doctor(directory: Path | None, json_file: str | None, *, fix: bool) -> None:
    """Check this installation, the terminal and the workspace."""
    check_writable(json_file)
    if fix:
        from sfumato.workspace.upkeep.maintenance import remove_orphans

        removed = remove_orphans(open_workspace(directory))
        echo(f"{count_noun(removed, 'file')} removed that no run needed", err=True)
    from ..session.doctor_checks import all_checks
    from .admin_tables import checks_text

    report_workspace_at_end(chosen_workspace(directory))
    findings = all_checks(chosen_workspace(directory))
    write_object({"disclosure": "internal", "findings": [finding.to_dict() for finding in findings]}, json_file)
    if json_file != "-":
        echo(checks_text(findings))
    sys.exit(2 if any(finding.state == "problem" for finding in findings) else 0)


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("target", metavar="NEW-DIRECTORY", type=click.Path(path_type=Path))
def adopt(directory: Path, target: Path) -> None:
    """Copy another user's workspace, so that the copy is yours.

    The workspace in DIRECTORY is copied into NEW-DIRECTORY.

    Checked before: the database, the audit log, the bytes of every table. Unfinished runs are marked interrupted.
    """
    from sfumato.workspace.upkeep.adopting import adopt_workspace as take_over

    done = take_over(directory, target)
    whose = f"belongs to {done.owner}" if done.owner else "was yours already"
    stopped = f", {done.stopped} of them interrupted" if done.stopped else ""
    echo(
        f"{directory} {whose}; its copy in {target} is yours: {count_noun(done.runs, 'run')}{stopped}, {count_noun(done.tables, 'table')}"
    )
    echo(f"next: sfumato --workspace {target}")


@click.command()
def keys() -> None:
    """Print the keys of the app, as a file to change them with."""
    from ..keys.keymap import default_keys

    echo(default_keys(keys_file()), verbatim=True)

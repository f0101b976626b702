"""Commands on a project's plan and runs: its plan as a recipe, a run of it, a run again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .options import (
    JOBS,
    JSON,
    QUIET,
    RUN,
    WORKSPACE,
    add_computing_options,
    check_writable,
    open_workspace,
    write_object,
)
from .speech import echo


@click.command()
@click.argument("project", metavar="PROJECT")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE.toml", help="Write it to a new file.")
@click.option("--run", "start", is_flag=True, help="Run it, as R in the app does.")
@WORKSPACE
@JOBS
@add_computing_options
@JSON
@QUIET
def plan(
    project: str,
    output: Path | None,
    directory: Path | None,
    jobs: int,
    json_file: str | None,
    *,
    start: bool,
    quiet: bool,
) -> None:
    """Print a project's plan as a recipe, or run it.

    The plan of PROJECT is as it was left in the app.
    """
    from sfumato.engine.data.toml import read_toml
    from sfumato.engine.errors import BadInput
    from sfumato.workspace.errors import NotFound
    from sfumato.workspace.plan.drafts import find_draft
    from sfumato.workspace.policy.disclosure import INTERNAL
    from sfumato.workspace.service.prepare import enter_plan_run
    from sfumato.workspace.store.runs import list_project_summaries

    from .run import run_to_end

    if start and output is not None:
        raise click.UsageError("either run it (--run) or write it (-o FILE)")
    check_writable(json_file)
    workspace = open_workspace(directory)
    ids = [one.id for one in list_project_summaries(workspace) if one.name == project]
    if not ids:
        raise NotFound(f"there is no project {project}; sfumato lists them")
    draft = find_draft(workspace, ids[0])
    if draft is None:
        raise NotFound(f"project {project} has no plan yet; bring in its data with: sfumato import FILE")
    if start:
        sys.exit(run_to_end(workspace, [enter_plan_run(workspace, draft)], jobs, json_file, quiet=quiet))
    # With --run the object is that of the run.
    write_object({"disclosure": INTERNAL, "project": project, "recipe": read_toml(draft.toml)}, json_file)
    if output is None:
        if json_file != "-":
            echo(draft.toml, nl=False)
        return
    try:
        # Mode x never replaces a file.
        with output.open("x", encoding="utf-8") as file:
            file.write(draft.toml)
    except FileExistsError:
        raise BadInput("-o", f'"{output}" exists; name another file') from None
    except OSError as error:
        raise BadInput("-o", f'"{output}" cannot be written: {error.strerror}') from None
    if json_file != "-":
        echo(f"plan of {project} written to {output}; next: sfumato run {output}")


@click.command()
@RUN
@WORKSPACE
@JOBS
@add_computing_options
@JSON
@QUIET
def again(run_id: str, directory: Path | None, jobs: int, json_file: str | None, *, quiet: bool) -> None:
    """Carry out the recipe of a run again, as a new run.

    RUN is a number, a name, or last.
    """
    from sfumato.workspace.jobs.runs import reenter_run
    from sfumato.workspace.store.runs import find_run

    from .run import run_to_end

    check_writable(json_file)
    workspace = open_workspace(directory)
    entered = reenter_run(workspace, find_run(workspace, run_id).id)
    sys.exit(run_to_end(workspace, [entered], jobs, json_file, quiet=quiet))

"""Command ``sfumato draft``: a whole recipe from the roles of the variables, with the reason for each of its steps."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import split_names
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from .options import (
    JSON,
    WORKSPACE,
    add_text_format_options,
    check_writable,
    chosen_workspace,
    report_workspace_at_end,
    write_object,
)
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.plan.drafting import DraftRequest
    from sfumato.workspace.service.draft_data import DraftedText, RoleAssignment

WANTS = ("synthesis", "anonymisation", "evaluation")
AUDIENCES = ("public", "contract", "enclave")


@click.command()
@click.argument("source", metavar="FILE|PROJECT")
@WORKSPACE
@click.option(
    "--want",
    type=click.Choice(WANTS),
    help="What for (default: synthesis where a variable is sensitive, else anonymisation).",
)
@click.option(
    "--known",
    multiple=True,
    metavar="NAMES",
    help="Quasi-identifiers: what an intruder may know. Commas between names; repeatable.",
)
@click.option(
    "--sensitive", multiple=True, metavar="NAMES", help="What must not be learnt. Commas between names; repeatable."
)
@click.option(
    "--leave-out", multiple=True, metavar="NAMES", help="Columns that take no part. Commas between names; repeatable."
)
@click.option(
    "--audience",
    type=click.Choice(AUDIENCES),
    help="Who receives the release (default: the plan's, else public). Kept columns become coarser or synthetic until they meet its limits.",
)
@click.option("--full", is_flag=True, help="Synthesise every variable, not only the sensitive ones.")
@click.option(
    "--tables",
    is_flag=True,
    help="Synthesis: draw every variable from protected tables of counts, which are published beside it.",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    help="With --tables: protect them by noise of this epsilon (default: the policy's budget, else counts are rounded).",
)
@click.option("-m", type=click.IntRange(1, 1000), default=5, show_default=True, help="Synthesis: datasets.")
@click.option(
    "-k",
    type=click.IntRange(2),
    help="Anonymisation: fewest records in a class (default: 5, or what the audience requires: 11 for the public).",
)
@click.option(
    "-l", type=click.FloatRange(1, min_open=True), help="Anonymisation: fewest different sensitive values in a class."
)
@click.option("-p", type=click.IntRange(2), help="Anonymisation: p of p-sensitive k-anonymity.")
@click.option(
    "-t",
    type=click.FloatRange(0, 1, min_open=True),
    help="Anonymisation: largest distance of a class from the whole table.",
)
@click.option(
    "--holdout/--no-holdout",
    default=None,
    help="Keep records out of the release, to attack it with (default: of 1,000 records or more).",
)
@click.option(
    "--audit",
    is_flag=True,
    help="Audit single people: carry the plan out again hundreds of times, with them and without.",
)
@click.option(
    "-o", "recipe_file", type=click.Path(path_type=Path), help="Write the recipe there (default: standard output)."
)
@JSON
@add_text_format_options
def draft(
    source: str,
    directory: Path | None,
    recipe_file: Path | None,
    json_file: str | None,
    known: tuple[str, ...],
    sensitive: tuple[str, ...],
    leave_out: tuple[str, ...],
    **rest: Any,
) -> None:
    """Draft a recipe for a file, each step with its reason.

    It has steps, measures and thresholds, for FILE or for a PROJECT of the workspace.

    It says what it covers and what not. Nothing is stored; the recipe runs unchanged, and you can read and edit it.
    """
    from sfumato.workspace.plan.drafting import DraftRequest
    from sfumato.workspace.service.draft_data import RoleAssignment

    check_writable(json_file)
    if recipe_file is not None and recipe_file.exists():
        raise BadInput("-o", f'"{recipe_file}" exists already; name a new file')
    names = ("want", "full", "m", "k", "l", "p", "t", "holdout", "tables", "epsilon", "audit", "audience")
    asked = {key: rest.pop(key) for key in names}
    if asked["epsilon"] is not None and not asked["tables"]:
        raise BadInput("--epsilon", "it is of tables with noise; add --tables, or leave it out")
    form = {key: value for key, value in rest.items() if value not in (None, ())}
    form |= {"missing": list(form["missing"])} if "missing" in form else {}
    roles = RoleAssignment(*map(split_names, (known, sensitive, leave_out)))
    found = _draft_recipe(source, directory, form, DraftRequest(**asked), roles)
    if json_file is not None:
        write_object(draft_object(found), json_file, private=True)
    if recipe_file is None and json_file == "-":
        return
    if recipe_file is None:
        echo(found.toml, nl=False)
        # On standard error, so that standard output is a recipe that can be redirected to a file.
        echo(_coverage_text(found), err=True)
        return
    recipe_file.write_text(found.toml, "utf-8")
    if json_file == "-":
        return
    next_command = next_command_text(found, recipe_file)
    echo("\n".join([_coverage_text(found), "", f"{recipe_file} is the draft; read it, then: {next_command}"]))


def next_command_text(found: DraftedText, recipe_file: Path) -> str:
    """Return the command that carries out a draft: a run, or the evaluation of files that another tool made."""
    from sfumato.engine.data.toml import read_toml

    recipe = shlex.quote(str(recipe_file))
    if found.want != "evaluation":
        return f"sfumato run {recipe}"
    original = shlex.quote(replace_unprintable(str(read_toml(found.toml)["data"]["file"])))
    return f"sfumato evaluate {recipe} --original {original} --released FILE..."


def draft_object(found: DraftedText) -> dict[str, Any]:
    """Return a draft as the object that ``--json`` writes: the recipe as a table, and what it covers."""
    from sfumato.engine.data.toml import read_toml
    from sfumato.workspace.policy.disclosure import INTERNAL

    return {
        "disclosure": INTERNAL,
        "want": found.want,
        "recipe": read_toml(found.toml),
        "steps": dict(found.steps),
        "warnings": list(found.warnings),
        "notes": list(found.notes),
        "changes": list(found.changes),
        "cost": found.cost,
    }


def _draft_recipe(
    source: str, directory: Path | None, form: dict[str, Any], wanted: DraftRequest, roles: RoleAssignment
) -> DraftedText:
    """Draft a recipe for a file, or for a project of the workspace."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.service.draft_data import draft_file, draft_project
    from sfumato.workspace.store.runs import list_project_summaries
    from sfumato.workspace.store.workspace import Workspace

    what = f'the draft for "{source}"'
    # A sheet of a workbook or a member of an archive may follow a colon.
    if ":" in source or Path(source).expanduser().exists():
        return call_in_process(draft_file, source, form, wanted, roles, what=what, seconds=READ_SECONDS)
    chosen = chosen_workspace(directory)
    names = {}
    if chosen.is_dir():
        with Workspace.open(chosen, read_only=True) as workspace:
            names = {project.name: project.id for project in list_project_summaries(workspace)}
    if source not in names:
        known = f"; projects: {', '.join(names)}" if names else ""
        raise BadInput("FILE|PROJECT", f'there is no file "{source}", and no project of this name{known}')
    report_workspace_at_end(chosen)
    return call_in_process(draft_project, chosen, names[source], wanted, roles, what=what, seconds=READ_SECONDS)


def _coverage_text(found: DraftedText) -> str:
    """Return the warnings, notes and cost of a draft, a line each."""
    return "\n".join([*(f"{sign_for('fail')} {one}" for one in found.warnings), *found.notes, found.cost])

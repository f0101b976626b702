"""Command that lists the protected tables of a run, and prints one of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import (
    JSON,
    RUN,
    WORKSPACE,
    check_seal,
    check_writable,
    open_workspace,
    table_text,
    terminal_width,
    write_object,
)
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.reporting.table_grids import TableGrid
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.run_grids import RunGrids


@click.command()
@RUN
@click.argument("table", metavar="[N]", default="")
@WORKSPACE
@click.option("--reveal", is_flag=True, help="Show hidden values, and by a letter why each cell is hidden.")
@JSON
def tables(run_id: str, table: str, directory: Path | None, json_file: str | None, *, reveal: bool) -> None:
    """List the protected tables of a run, or print one.

    RUN is a number, a name, or last; N is the number or the name of a table in the list.

    A table is printed as it would be released, with x for hidden cells. With --reveal, hidden values are shown too:
    the output is then as confidential as the data.
    """
    from sfumato.workspace.policy.disclosure import INTERNAL
    from sfumato.workspace.reporting.table_texts import (
        grid_object,
        grid_tables,
        legend_text,
        open_cell_phrases,
        table_list,
        table_list_object,
        tables_sentence,
    )
    from sfumato.workspace.visible_text import replace_unprintable

    check_writable(json_file)
    workspace = open_workspace(directory)
    check_seal(workspace, run_id)
    found = require_run_grids(workspace, run_id)
    grid = None if not table else find_table_grid(found, table)
    shown = {} if grid is None else {"table": grid_object(grid, revealed=reveal)}
    write_object(
        {
            "disclosure": "internal",
            "run": found.run_id,
            "tables": table_list_object(found.grids),
            **shown,
            "warnings": list(found.warnings),
        },
        json_file,
        private=True,
    )
    if json_file == "-":
        return
    if grid is None:
        echo(f"run {found.run_id}: {tables_sentence(found.grids)}")
        echo(table_text(table_list(found.grids)))
        echo("\n".join(replace_unprintable(warning) for warning in found.warnings))
        return
    echo("\n\n".join(map(table_text, grid_tables(grid, terminal_width(), revealed=reveal))))
    # A table that does not pass must not read like one that does.
    for phrase in open_cell_phrases(found.grids):
        echo(f"x {phrase}: these tables do not pass; sfumato examine {found.run_id} says why")
    if reveal:
        echo("\n".join(filter(None, [legend_text([grid]), INTERNAL])))


def require_run_grids(workspace: Workspace, run_id: int | str) -> RunGrids:
    """Return the protected tables of a run. Raises NotFound, NotReady and DamagedTable."""
    from sfumato.workspace.errors import NotReady
    from sfumato.workspace.store.runs import find_run
    from sfumato.workspace.views.run_grids import read_run_grids

    found = read_run_grids(workspace, run_id)
    if found is None:
        run = find_run(workspace, run_id)
        if run.recipe.tables:
            raise NotReady(f"run {run.id} has not protected its tables yet: sfumato runs {run.id}")
        raise NotReady(
            f"the recipe of run {run.id} has no tables; add [[table]] and [tables], see: sfumato help tables"
        )
    return found


def find_table_grid(found: RunGrids, table: str) -> TableGrid:
    """Return a table by its number or its name. Raises BadInput."""
    from sfumato.engine.errors import BadInput, near_miss_hint

    named = [grid for grid in found.grids if table in (grid.name, str(grid.number))]
    if len(named) == 1:
        return named[0]
    # A table may be called by the number of another one: its name comes first.
    if by_name := [grid for grid in named if grid.name == table]:
        return by_name[0]
    hint = near_miss_hint(table, [grid.name for grid in found.grids])
    last = len(found.grids)
    possible = "it has one, number 1" if last == 1 else f"they are numbered from 1 to {last}"
    raise BadInput("N", f'run {found.run_id} has no table "{table}"{hint}; {possible}')

"""Act Tables of the menu Findings: protected tables, why a cell is hidden, and publish or hide one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.engine.wording import count_noun

from .session import PlainSession
from .talk import ActNotPossible, text_for_speech

if TYPE_CHECKING:
    from sfumato.workspace.reporting.table_grids import TableGrid
    from sfumato.workspace.service.table_decisions import Decision
    from sfumato.workspace.views.run_grids import RunGrids

DONE, HIDE_ONE = "Done", "Hide a printed cell"
NEITHER = "Leave it"
Place = tuple[int, int]


def show_tables(session: PlainSession) -> None:
    """Print a protected table row by row, explain its hidden cells, and publish or hide one until the user is done."""
    from sfumato.workspace.upkeep.integrity import verify_run
    from sfumato.workspace.views.run_grids import read_run_grids

    talk = session.conversation
    run = session.ask_run("Which run?", must_be_done=True)
    if said := verify_run(session.workspace, run.id).message:
        talk.say(said)
    found = read_run_grids(session.workspace, run.id)
    if found is None:
        raise ActNotPossible(f"run {run.id} has no tables; add one in Plan, then run it.")
    talk.print_lines(list(found.warnings))
    lines = [table_line(grid) for grid in found.grids]
    grid = found.grids[talk.choose("Which table?", lines, "1" if len(lines) == 1 else "")]
    talk.print_lines(row_lines(grid))
    while True:
        hidden = hidden_places(grid)
        names = [grid.describe_place(*place) for place in hidden]
        at = talk.choose("Why is which cell hidden?", [*names, HIDE_ONE, DONE], DONE)
        if at == len(names) + 1:
            return
        if at == len(names):
            printed = [
                (row, column)
                for row in range(len(grid.rows))
                for column in range(len(grid.columns))
                if grid.published[row, column]
            ]
            chosen = talk.choose("Hide which cell?", [grid.describe_place(*place) for place in printed])
            _decide(session, found, grid, printed[chosen], "hidden")
            continue
        _explain(session, found, grid, hidden[at])


def table_line(grid: TableGrid) -> str:
    """Return a table in a line: ``people: number of records by region, trade; 20 cells, 1 hidden by a rule``."""
    from sfumato.workspace.reporting.table_texts import COUNTED

    by = f" by {', '.join(grid.variables)}" if grid.variables else ""
    counts = [f"{number:,} {words}" for letter, words in COUNTED.items() if (number := grid.count_letters(letter))]
    return "; ".join(
        [
            f"{grid.name}: {grid.measure}{by}",
            ", ".join([count_noun(grid.cell_count, "cell"), *(counts or ["none hidden"])]),
        ]
    )


def row_lines(grid: TableGrid) -> list[str]:
    """Return a line for each row: its labels, and each column with its value or that it is hidden."""
    lines = []
    for row, labels in enumerate(grid.rows):
        cells = [
            f"{label.text} {_cell_words(grid, row, column)}" if grid.column_name else _cell_words(grid, row, column)
            for column, label in enumerate(grid.columns)
        ]
        head = ", ".join(f"{name} {label.text}" for name, label in zip(grid.row_names, labels, strict=True))
        lines.append(text_for_speech(f"{head or grid.measure}: {', '.join(cells)}."))
    return lines


def _cell_words(grid: TableGrid, row: int, column: int) -> str:
    """Return the value at a place, or that it is hidden."""
    from sfumato.workspace.reporting.table_grids import LETTERS

    if grid.published[row, column]:
        return grid.value_text(row, column)
    said = LETTERS[str(grid.letters[row, column])]
    return said if said.startswith("hidden") else f"hidden: {said}"


def hidden_places(grid: TableGrid) -> list[Place]:
    """Return row and column of the hidden cells, row by row."""
    return [
        (row, column)
        for row in range(len(grid.rows))
        for column in range(len(grid.columns))
        if not grid.published[row, column]
    ]


def _explain(session: PlainSession, found: RunGrids, grid: TableGrid, place: Place) -> None:
    """Print why a cell is hidden and what readers compute; values only after a question; then offer to publish it."""
    talk = session.conversation
    explained = found.explain_place(grid, *place)
    for name, text in explained.facts(revealed=False):
        talk.say(f"{name[:1].upper()}{name[1:]}: {text}." if name else f"{text}.")
    # An empty line takes the default, which must not show confidential values.
    if talk.confirm("Show its value? It is confidential.", default=False):
        for name, text in explained.facts(revealed=True):
            talk.say(f"{name[:1].upper()}{name[1:]}: {text}." if name else f"{text}.")
    if talk.choose("Publish it?", ["Publish it", NEITHER], NEITHER) == 0:
        _decide(session, found, grid, place, "published")


def _decide(session: PlainSession, found: RunGrids, grid: TableGrid, place: Place, status: Decision) -> None:
    """Print what follows from publishing or hiding a cell, and change the plan after a question."""
    from sfumato.workspace.plan.drafts import save_draft
    from sfumato.workspace.service.table_decisions import try_cell_decision

    talk = session.conversation
    talk.say("The tables are audited with it.")
    tried = try_cell_decision(session.workspace.directory, found.run_id, grid.name, grid.keys_at(*place), status)
    if not tried.is_safe:
        talk.say("With this, the tables do not pass.")
    talk.print_lines(list(tried.sentences))
    talk.print_lines(list(tried.lines))
    if talk.confirm("Change the plan?", default=False):
        save_draft(session.workspace, tried.changed)
        talk.say(f"{tried.place} is {status} in the plan. Run the plan to make the tables again.")

"""Publish or hide one cell of a run's tables: what would follow, and the plan that says so.

The cell becomes a line of ``[tables] fixed`` in the run's recipe. All tables are protected and audited again with it,
in the system that the run has protected, earlier releases included, before anything is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.declared_tables import decide_cells, protect_system
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.table_sections import FixedCell
from sfumato.engine.tables.system import EMPTY
from sfumato.engine.wording import agreeing_word, count_noun

from ..errors import NotReady
from ..plan.drafts import PlanDraft
from ..plan.edits import changed_lines, draft_to_change_run, replace_sections
from ..reporting.table_grids import FOLLOWS, TOO_CLOSE, UNDECIDED, TableGrid
from ..reporting.table_texts import open_cell_phrases
from ..store.protected_tables import StoredTables, read_run_protected_tables
from ..store.runs import find_run, read_run_records
from ..store.workspace import Workspace
from ..views.run_grids import RunGrids

Decision = Literal["published", "hidden"]
MOST_NAMED = 3


@dataclass(frozen=True)
class CellDecision:
    """What follows from publishing or hiding a cell.

    place: the cell in words
    status: what is decided
    sentences: what the audit found
    is_safe: whether no unsafe cell is left unprotected
    draft: the plan of the run without the decision
    changed: the plan with it
    lines: lines that the plan loses and gains
    """

    place: str
    status: Decision
    sentences: tuple[str, ...]
    is_safe: bool
    draft: PlanDraft
    changed: PlanDraft
    lines: tuple[str, ...]


def try_cell_decision(
    directory: Path, run_id: int, table: str, labels: Mapping[str, str], status: Decision
) -> CellDecision:
    """Protect and audit the tables of a run again with one cell published or hidden; nothing is stored.

    ``labels`` are the label of each variable; a total has the empty label.

    Raises NotFound, NotReady, BadInput, and what reading the tables raises.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        run = find_run(workspace, run_id)
        stored = read_run_protected_tables(workspace, run.id)
        if stored is None:
            raise NotReady(f"run {run.id} has no protected tables")
        recipe = run.recipe
        decided = decide_cell(recipe, table, labels, status)
        before_grids = RunGrids.from_stored(run.id, recipe, stored)
        grid = next(one for one in before_grids.grids if one.name == table)
        row, column = find_grid_place(grid, labels)
        cell = int(grid.cells[row, column])
        if cell == EMPTY:
            raise BadInput(
                "cell",
                "no records are here; zeros are printed or hidden all together, by zeros in [tables] of the plan",
            )
        after = _protect_again(stored, recipe, decided, read_run_records(workspace, run))
        draft = draft_to_change_run(workspace, run.id)
    changed = draft.with_text(_text_with_decision(draft.toml, decided))
    after_grids = RunGrids.from_stored(run.id, recipe, after)
    place = grid.describe_place(row, column)
    sentences = _describe_change(before_grids, after_grids, (table, place))
    if status == "published" and after.audit.primary[cell]:
        why = before_grids.explain_place(grid, row, column, with_intervals=False, with_numbers=False).reasons[0]
        sentences = (f"This cell is unsafe ({why}), and its value would be printed.", *sentences)
    is_safe = not _count_open(after_grids)
    return CellDecision(
        place,
        status,
        sentences,
        is_safe,
        draft,
        changed,
        tuple(changed_lines(draft.toml, changed.toml)),
    )


def decide_cell(recipe: Recipe, table: str, labels: Mapping[str, str], status: Decision) -> Recipe:
    """Return a recipe in which one cell of a table is published or hidden. Raises BadInput."""
    protection = recipe.table_protection
    if protection is None:
        raise BadInput("table", "the recipe has no tables")
    cell = {name: label for name, label in labels.items() if label}
    others = tuple(one for one in protection.fixed if not (one.table == table and dict(one.cell) == cell))
    fixed = FixedCell(table=table, cell=cell, status=status)
    return replace(recipe, table_protection=replace(protection, fixed=(*others, fixed)))


def find_grid_place(grid: TableGrid, labels: Mapping[str, str]) -> tuple[int, int]:
    """Return row and column of the cell with these labels. Raises BadInput."""
    for row in range(len(grid.rows)):
        for column in range(len(grid.columns)):
            if grid.keys_at(row, column) == dict(labels):
                return row, column
    raise BadInput("cell", f"{grid.name} has no such cell")


def _protect_again(stored: StoredTables, recipe: Recipe, decided: Recipe, records: Microdata) -> StoredTables:
    """Return the tables protected with other decisions, in the system of the run."""
    was, now = recipe.table_protection, decided.table_protection
    assert was is not None
    assert now is not None
    system = stored.system
    before = decide_cells(system, records, recipe.tables, was, stored.release)
    printed = stored.frozen & ~before.published
    # What an earlier release printed stays printed, though the recipe says it too.
    for name in {one.release for one in system.tables} - {stored.release}:
        cells = system.cells_of_release(name)
        printed[cells] |= stored.frozen[cells]
    found = protect_system(
        system,
        records,
        recipe.tables,
        now,
        stored.release,
        np.flatnonzero(printed),
        contributors=stored.are_contributors_examined,
    )
    return StoredTables.from_protected(found, stored.release)


def _text_with_decision(toml: str, decided: Recipe) -> str:
    """Return the text of a plan with the decided cells of a recipe. Raises BadInput."""
    table = read_toml(toml)
    protection = decided.table_protection
    assert protection is not None
    section = dict(table.get("tables", {}))
    if isinstance(section.get("fixed"), str):
        raise BadInput("tables.fixed", "this plan reads its decided cells from a file; write the cell there")
    section["fixed"] = [one.to_table() for one in protection.fixed]
    return replace_sections(toml, {"tables": section})


def _count_open(grids: RunGrids) -> int:
    """Return the number of unsafe places, and of differences between tables, that are not shown to be protected."""
    return sum(grid.count_letters(FOLLOWS, TOO_CLOSE, UNDECIDED) for grid in grids.grids) + _count_differences(grids)


def _count_differences(grids: RunGrids) -> int:
    """Return the number of differences between tables of different records that are not shown to be protected."""
    return int((grids.audited.audit.failing & grids.audited.system.is_implied).sum())


def _describe_change(before: RunGrids, after: RunGrids, decided: tuple[str, str]) -> tuple[str, ...]:
    """Return in sentences what the audit of the changed tables found; ``decided`` are table and place of the cell."""
    sentences = list[str]()
    for hidden, words in ((True, "hidden"), (False, "printed")):
        others = [one for one in _changed_places(before, after, hidden=hidden) if one != decided]
        if others:
            verb = agreeing_word(len(others), "is", "are")
            sentences.append(
                f"{count_noun(len(others), 'other cell')} {verb} then {words} as well{_bracketed_places([place for _, place in others])}."
            )
    sentences += [f"{phrase}: tables like these do not pass." for phrase in open_cell_phrases(after.grids)]
    if number := _count_differences(after):
        few = count_noun(number, "difference")
        sentences.append(f"{few} between tables of different records would follow: tables like these do not pass.")
    if not _count_open(after):
        sentences.append("No unsafe cell follows from what is printed then.")
    return tuple(sentences)


def _changed_places(before: RunGrids, after: RunGrids, *, hidden: bool) -> list[tuple[str, str]]:
    """Return table and place of the cells that are hidden after a change and were not before, or the other way round."""
    found = list[tuple[str, str]]()
    for was, now in zip(before.grids, after.grids, strict=True):
        changed = (was.published & ~now.published) if hidden else (~was.published & now.published)
        found += [(now.name, now.describe_place(int(row), int(column))) for row, column in np.argwhere(changed)]
    return found


def _bracketed_places(places: Sequence[str]) -> str:
    """Return the first places in brackets."""
    return f" ({'; '.join(places[:MOST_NAMED])}{'; …' if len(places) > MOST_NAMED else ''})" if places else ""

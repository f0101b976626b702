"""Tables that are declared, and the grids that lay them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from textual.app import App, ComposeResult

from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.tables import GridTable, TableColumn, TablePages, keyed_table, table_columns
from sfumato.workspace.reporting.tables import DisplayCell, DisplayColumn


@dataclass(frozen=True)
class Town:
    name: str
    people: int
    note: str = ""


TOWNS = [Town("Ulm", 129), Town("Köln", 1_084), Town("Jena", 111)]
TABLE: GridTable[Town] = GridTable(
    (
        TableColumn("name", "town", 8, grow_order=1, cell=lambda town: town.name),
        TableColumn("people", "people", 6, "right", cell=lambda town: town.people),
        TableColumn("share", "share", 10, drop_order=1, cell=lambda town: f"{town.people / 1_324:.0%}"),
        TableColumn("note", "note", 6, optional=True, cell=lambda town: town.note),
    ),
    key=lambda town: town.name,
    sort_key=lambda town: -town.people,
)


class TownApp(App[None]):
    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.opened: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.grid

    def on_grid_source_opened(self, event: Grid.SourceOpened) -> None:
        self.opened.append(event.count)

    @property
    def titles(self) -> list[str]:
        assert self.grid.source is not None
        return [column.title for column in self.grid.source.columns]


def test_rows_stand_in_the_declared_order_and_are_known_by_their_key() -> None:
    rows = TABLE.sort_rows(TOWNS)
    assert [town.name for town in rows] == ["Köln", "Ulm", "Jena"]
    assert list(TABLE.row_keys(rows)) == ["Köln", "Ulm", "Jena"]
    assert list(GridTable[Town](TABLE.columns).row_keys(TOWNS)) == [0, 1, 2], "without a key by their place"


def test_an_optional_column_is_there_only_where_a_row_fills_it() -> None:
    names = [column.name for column in TABLE.columns_in(TOWNS, 80)]
    assert names == ["name", "people", "share"]
    noted = [*TOWNS, Town("Hof", 45, "new")]
    assert [column.name for column in TABLE.columns_in(noted, 80)] == [*names, "note"]


def test_spare_columns_leave_and_one_column_takes_what_is_left() -> None:
    assert [(column.name, column.width) for column in TABLE.columns_in(TOWNS, 24)] == [("name", 14), ("people", 6)]


def test_the_growing_column_is_not_cut_beside_columns_that_are_wider_than_what_they_hold() -> None:
    long = [*TOWNS, Town("Frankfurt am Main", 773)]
    assert TABLE.column_fitter(TABLE.columns[:3], 35)[0].width == 13, "as declared it is cut"
    narrowed = {column.name: column.width for column in TABLE.columns_in(long, 35)}
    assert narrowed == {"name": 18, "people": 6, "share": 5}
    assert {column.name: column.width for column in TABLE.columns_in(TOWNS, 35)}["share"] == 10, "nothing is cut"


def test_a_column_whose_texts_change_keeps_its_width() -> None:
    town, people, share, note = TABLE.columns
    live = GridTable((town, people, replace(share, least_width=8), note))
    rows = [[Town("Frankfurt am Main", count)] for count in (1, 1_324_000)]
    widths = [[{one.name: one.width for one in of.columns_in(row, 38)} for row in rows] for of in (TABLE, live)]
    assert [one["share"] for one in widths[0]] == [5, 7]
    assert [one["share"] for one in widths[1]] == [8, 8]


def test_a_column_that_yields_is_left_out_before_the_growing_one_is_cut() -> None:
    town, people, share, note = TABLE.columns
    yielding = GridTable((town, people, replace(share, yields=True), note))
    long = [Town("Frankfurt am Main", 773)]
    assert [column.name for column in TABLE.columns_in(long, 30)] == ["name", "people", "share"]
    assert [(column.name, column.width) for column in yielding.columns_in(long, 30)] == [("name", 20), ("people", 6)]


def test_columns_without_a_cell_take_theirs_from_the_values_of_the_row() -> None:
    columns = (
        *table_columns((DisplayColumn("verdict", "verdict"),)),
        TableColumn[int]("more", "more", cell=lambda row: row + 1),
    )
    table: GridTable[int] = GridTable(columns, values=lambda row: {"verdict": DisplayCell(str(row), "pass")})
    assert table.row_cells(table.columns, 7) == ("✓ 7", 8), "an outcome has its sign"
    assert keyed_table(table_columns((DisplayColumn("a", "a"),))).row_cells(
        table_columns((DisplayColumn("a", "a"),)), ("k", {"a": 3})
    ) == (3,)


def test_words_are_looked_for_in_the_cells_or_in_what_is_declared() -> None:
    assert TABLE.filter_fields(TOWNS[0]) == {"name": "Ulm", "people": 129, "share": "10%", "note": ""}
    other: GridTable[Town] = GridTable(TABLE.columns, search_texts=lambda town: {"letters": len(town.name)})
    assert other.filter_fields(TOWNS[0]) == {"letters": 3}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LiveGrid, MarkedGrid])
async def test_a_table_is_laid_out_once_there_is_room_and_again_in_another_width(kind: type[LiveGrid]) -> None:
    grid = kind()
    grid.show_table(TABLE, TOWNS, "Ulm")
    async with TownApp(grid).run_test(size=(60, 8)) as pilot:
        await pilot.pause(0.1)
        app = pilot.app
        assert isinstance(app, TownApp)
        assert (app.titles, app.opened, grid.current_row) == (["town", "people", "share"], [3], TOWNS[0])
        await pilot.press("down")
        assert grid.current_row == TOWNS[2]
        await pilot.resize_terminal(30, 8)
        await pilot.pause(0.1)
        assert app.titles == ["town", "people"]
        assert grid.current_row == TOWNS[2], "the cursor stays with its row"
        await pilot.resize_terminal(30, 5)
        await pilot.pause(0.1)
        assert len(app.opened) == 2, "another height lays nothing out anew"


@pytest.mark.slow
async def test_words_sift_the_rows_of_a_declared_table() -> None:
    grid = MarkedGrid()
    async with TownApp(grid).run_test(size=(60, 8)) as pilot:
        grid.show_table(TABLE, TOWNS)
        grid.filter_by("town:x !jena name:l")
        await pilot.pause(0.1)
        assert grid.row_count == 0
        grid.filter_by("!jena l")
        await pilot.pause(0.1)
        assert grid.row_count == 2
        grid.forget_rows()
        await pilot.pause(0.1)
        assert (grid.row_count, grid.current_row, grid.table_rows) == (0, None, ())


class Counted(Sequence[Town]):
    """Many towns, each made when it is read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 5_000

    def __getitem__(self, place: int) -> Town:  # type: ignore[override]
        return Town(f"t{place}", place)

    def lines(self, offset: int, limit: int) -> Sequence[Town]:
        self.read.append(offset)
        return [self[place] for place in range(offset, min(offset + limit, len(self)))]


@pytest.mark.slow
async def test_pages_of_a_declared_table_are_read_where_they_are_looked_at_and_refitted() -> None:
    grid, towns = Grid(), Counted()
    async with TownApp(grid).run_test(size=(60, 8)) as pilot:
        app = pilot.app
        assert isinstance(app, TownApp)
        grid.show_pages(lambda width: TablePages.from_width(TABLE, towns, width))
        await pilot.pause(0.2)
        assert (grid.row_count, app.titles) == (5_000, ["town", "people", "share", "note"])
        await pilot.press("end")
        await pilot.pause(0.2)
        assert towns.read == [0, 4_500]
        await pilot.resize_terminal(30, 8)
        await pilot.pause(0.2)
        assert app.titles == ["town", "people", "note"]
        assert grid.cursor == 4_999, "the cursor stays on its row"

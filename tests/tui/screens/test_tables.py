"""The tab with protected tables: list and grid, hidden cells by letter, why, the next ones, and publish or hide one."""

import pytest
from protected_towns import RECIPE, people_of_towns

from sfumato.tui.findings.tables import TablesPane
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.tui.plan.plan import PlanTab
from sfumato.tui.widgets.cell_grid import CellGrid
from sfumato.tui.widgets.entries import TomlText
from sfumato.workspace.library import synthesise

pytestmark = pytest.mark.slow


def cells(seat):
    return seat.app.screen.query_one(CellGrid)


def row_of(seat, label):
    """The cells of a row of the grid as the terminal shows them."""
    line = next(line for line in seat.text.splitlines() if line.split()[:1] == [label])
    return line.split()[1:]


async def shown(seat):
    await seat.until(lambda: cells(seat).has_cells)


async def test_hidden_cells_are_letters_and_values_stay_hidden_until_v(sit, tabled, size):
    async with sit(tabled, tab="tables", size=size) as seat:
        await shown(seat)
        assert "[Tables]" in seat.text
        assert "3 tables, 29 cells, 7 hidden" in seat.text
        assert row_of(seat, "north") == ["35", "20", "P", "S"]
        await seat.press("v")
        assert "They are confidential" in seat.text
        await seat.press("n")
        assert row_of(seat, "north") == ["35", "20", "P", "S"]
        await seat.press("v", "y")
        assert row_of(seat, "north") == ["35", "20", "2", "P", "13", "S"]
        await seat.press("v")
        assert row_of(seat, "north") == ["35", "20", "P", "S"]


async def test_the_next_hidden_cell_and_why_it_is_hidden(sit, tabled, size):
    async with sit(tabled, tab="tables", size=size) as seat:
        await shown(seat)
        await seat.press("right_curly_bracket")
        assert "region north, trade iron · P hidden: unsafe by a rule · fewer than 5 records" in " ".join(
            seat.text.split()
        )
        await seat.press("enter")
        await seat.until(lambda: "what else fits" in seat.text and "places it from 1 to 10" in seat.text)
        assert "hidden; v shows it" in seat.text
        await seat.press("escape", "right_curly_bracket")
        assert "region north, trade wool · S hidden to protect another cell" in " ".join(seat.text.split())
        await seat.press("left_curly_bracket", "left_curly_bracket")
        assert "region south, trade wool" in " ".join(seat.text.split())


async def test_the_next_table_and_one_that_hides_nothing(sit, tabled):
    async with sit(tabled, tab="tables") as seat:
        await shown(seat)
        await seat.press("full_stop")
        assert cells(seat).sheet.columns == ["pay"]
        assert "  iron" in "\n".join(label for (label,) in cells(seat).sheet.row_labels)
        await seat.press("full_stop")
        assert cells(seat).sheet.columns == ["number of records"]
        await seat.press("right_curly_bracket")
        assert seat.app.notices[-1] == "This table hides no other cell"
        await seat.press("full_stop")
        assert cells(seat).sheet.column_name == "trade"


async def test_a_decision_is_audited_and_changes_the_plan_after_a_question(sit, tabled):
    async with sit(tabled, tab="tables") as seat:
        await shown(seat)
        await seat.press("right_curly_bracket", "x")
        await seat.until(lambda: "Publish region north, trade iron?" in seat.text)
        said = " ".join(seat.text.split())
        assert "With this, the tables do not pass." in said
        await seat.press("n")
        assert cells(seat).has_focus
        await seat.press("right_curly_bracket", "right_curly_bracket", "right_curly_bracket", "x")
        await seat.until(lambda: "Publish region south, trade wool?" in seat.text)
        await seat.press("y")
        await seat.until(lambda: seat.app.screen.query_one(PlanTab).is_read)
        await seat.until(lambda: 'status = "published"' in seat.app.screen.query_one(TomlText).text)
        assert "[2 Plan]" in seat.text
        await seat.press("u")
        await seat.until(lambda: "fixed" not in seat.app.screen.query_one(TomlText).text)


async def test_a_run_without_tables_has_no_tab_and_says_why(sit, built_data):
    async with sit(built_data, tab="verdicts") as seat:
        assert "Tables" not in seat.text.splitlines()[2]
        await seat.press("colon", *"tables", "enter")
        await seat.until(lambda: "has no tables" in seat.text)


async def test_a_grid_wider_and_longer_than_the_screen_keeps_its_heads(sit, tabled):
    from sfumato.tui.widgets.cell_grid import CellSheet

    async with sit(tabled, tab="tables", size=(80, 24)) as seat:
        await shown(seat)
        grid = cells(seat)
        seat.app.screen.query_one(TablesPane)._grid = None
        labels, columns = [[f"row{at}"] for at in range(60)], [f"col{at}" for at in range(40)]
        grid.show_sheet(CellSheet(("of",), "trade", labels, columns, lambda r, c: f"{r}:{c}", lambda r, c: "plain"))
        await seat.press("G")
        assert grid.place == (59, 0)
        assert "row59" in seat.text
        assert "col0" in seat.text
        await seat.press(*["l"] * 25)
        assert grid.place == (59, 25)
        assert "59:25" in seat.text
        assert "col25" in seat.text
        assert "row59" in seat.text
        assert "more to the left" in seat.text
        await seat.press("g", *["h"] * 30)
        assert grid.place == (0, 0)
        assert "more to the right" in seat.text


async def test_the_cursor_stays_in_view_in_a_low_terminal(sit, tabled):
    async with sit(tabled, tab="tables", size=(60, 16)) as seat:
        await shown(seat)
        await seat.press("right_curly_bracket")
        assert row_of(seat, "north") == ["35", "20", "P", "S"]
        await seat.press("right_curly_bracket", "right_curly_bracket")
        assert row_of(seat, "south") == ["34", "14", "S", "S"]


async def test_a_finding_of_the_gate_opens_the_tables_at_the_cell_that_it_names(sit, tmp_path):
    shown = {"table": "people", "cell": {"region": "north", "trade": "iron"}, "status": "published"}
    recipe = {**RECIPE, "tables": {**RECIPE["tables"], "fixed": [shown]}}
    synthesise(people_of_towns(), recipe, tmp_path / "workspace")
    async with sit(tmp_path / "workspace", tab="verdicts") as seat:
        board = seat.app.screen.query_one(VerdictBoard)
        await seat.until(lambda: board.chosen_finding is not None)
        for _ in range(60):
            if board.chosen_finding is not None and board.chosen_finding.check == "kept_tables":
                break
            await seat.press("j")
        assert board.chosen_finding.status == "block"
        assert "region=north, trade=iron" in board.chosen_finding.message
        await seat.press("enter")
        await seat.until(lambda: "[Tables]" in seat.text and cells(seat).has_cells and cells(seat).place != (0, 0))
        said = " ".join(seat.text.split())
        assert "region north, trade iron" in said
        assert "! follows exactly from what is printed" in said
        assert cells(seat).has_focus

"""The page of rows in Data: hidden until v, read a page at a time, the same values as in the file."""

import pandas as pd
import pytest

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.data.rows import HIDDEN, RowPages, RowsPane
from sfumato.tui.widgets.grid import Grid
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.records import values_of_dataset
from sfumato.workspace.views.rows import find_stored_rows


def grid(seat):
    return seat.app.screen.query_one("#rows Grid", Grid)


def stored_rows(directory):
    with Workspace.open(directory, read_only=True) as workspace:
        return find_stored_rows(workspace, find_draft(workspace, 1).dataset_id)


@pytest.mark.slow
async def test_the_next_tab_of_data_has_its_rows_whose_values_are_hidden(sit, built_data, size):
    async with sit(built_data, tab="data", size=size) as seat:
        await seat.press("right_square_bracket")
        await seat.until(lambda: grid(seat).row_count == 90)
        assert "[Rows]" in seat.text
        assert "values are hidden; v shows them" in seat.text
        row = grid(seat).row_at(0)
        assert row[0] == "1"
        assert set(row[1:]) == {HIDDEN}


@pytest.mark.slow
async def test_v_asks_shows_the_values_of_the_file_and_hides_them_again(sit, built_data):
    with Workspace.open(built_data, read_only=True) as workspace:
        (own,) = values_of_dataset(workspace, find_draft(workspace, 1).dataset_id, [90])
    async with sit(built_data, tab="rows", size=(160, 40)) as seat:
        await seat.until(lambda: grid(seat).row_count == 90)
        await seat.press("v")
        assert "They are confidential" in seat.text
        await seat.press("escape")
        assert "values are hidden" in seat.text
        await seat.press("v", "y")
        await seat.until(lambda: grid(seat).row_at(89) is not None and HIDDEN not in grid(seat).row_at(89))
        names = [column.title for column in grid(seat).source.columns]
        shown = dict(zip(names[1:], grid(seat).row_at(89)[1:], strict=True))
        assert shown == pytest.approx(own)
        await seat.press("v")
        await seat.until(lambda: set(grid(seat).row_at(89)[1:]) == {HIDDEN})
        assert not [row for row in map(grid(seat).row_at, range(90)) if row is not None and set(row[1:]) != {HIDDEN}], (
            "no page with values is kept"
        )


@pytest.mark.slow
async def test_a_project_without_data_says_so(sit, directory):
    from sfumato.tui.session.state import AppState, save_state

    save_state(directory, AppState(project=2, tab="rows"))
    async with sit(directory) as seat:
        assert seat.app.screen.query_one(RowsPane).display
        assert "no data yet" in seat.text


@pytest.mark.slow
def test_pages_are_slices_of_the_table_and_the_last_one_is_short(built_data):
    stored = stored_rows(built_data)
    whole = stored.read_page(0, 1000)
    assert len(whole) == stored.records == 90
    assert [row for offset in range(0, 90, 33) for row in stored.read_page(offset, 33)] == whole
    pages = RowPages(stored, revealed=True)
    assert [row[0] for row in pages.rows(88, 500)] == ["89", "90"]
    assert [row[0] for row in RowPages(stored, revealed=False).rows(88, 500)] == ["89", "90"]


@pytest.mark.slow
def test_a_changed_file_is_refused_and_no_other_file_can_be_read(built_data):
    import duckdb

    from sfumato.workspace.views.rows import _connect_to_file

    stored = stored_rows(built_data)
    path = stored.tables.path_of(stored.parts.parts[0].sha256).resolve()
    with _connect_to_file(path) as connection, pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM read_csv('/etc/hostname')").fetchall()
    with path.open("r+b") as file:
        file.seek(20)
        file.write(b"\x00\xff\x00")
    with pytest.raises(DamagedTable):
        stored_rows(built_data)


@pytest.mark.slow
def test_dates_missing_values_and_names_with_quotes_are_read(tmp_path):
    from prepared_workspaces import enter_recipe

    recipe = Recipe.from_table(
        {
            "title": "t",
            "variables": {
                'a"b; --': {"kind": "categorical"},
                "day": {"kind": "date"},
                "pay": {"kind": "continuous"},
            },
            "data": {"file": "t.csv", "missing": "keep"},
            "release": {"m": 1, "seed": 1},
        }
    )
    frame = conform_to_schema(
        pd.DataFrame({'a"b; --': ["x", None, "y"], "day": ["2020-01-02", "2021-03-04", None], "pay": [1.5, None, 3.0]}),
        recipe.schema,
        MissingPolicy.KEEP,
    )
    with Workspace.create(tmp_path / "w", PUBLIC) as workspace:
        enter_recipe(workspace, recipe, frame, "t.csv")
    assert stored_rows(tmp_path / "w").read_page(0, 10) == [
        ("x", "2020-01-02", 1.5),
        (None, "2021-03-04", None),
        ("y", None, 3.0),
    ]

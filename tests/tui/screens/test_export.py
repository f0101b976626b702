import csv
import sys

import pytest
from textual.widgets import Input

from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.parts.page import ExportDialog
from sfumato.tui.runs.compare import ComparisonDialog
from sfumato.tui.session.clipboard import COPY_FILE

TABLES = {"runs": 4, "results": 44, "verdicts": 4, "sweep": 6, "diagnostics": 3}


async def name_file(seat, path):
    seat.app.screen.query_one(Input).value = str(path)
    await seat.press("enter")


@pytest.mark.slow
@pytest.mark.parametrize("tab", TABLES)
async def test_e_writes_the_table_of_every_tab(sit, directory, tmp_path, tab):
    async with sit(directory, tab=tab) as seat:
        await seat.press("e")
        assert isinstance(seat.app.screen, ExportDialog)
        await name_file(seat, tmp_path / "table.csv")
        assert isinstance(seat.app.screen, ProjectScreen)
        assert str(tmp_path / "table.csv") in seat.app.notices[-1]
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) > TABLES[tab] // 2
    assert len({len(row) for row in rows}) == 1


@pytest.mark.slow
async def test_the_plot_of_a_sweep_is_written_too(sit, directory, tmp_path, size):
    async with sit(directory, "e", tab="sweep", size=size) as seat:
        assert ".svg or .png  the plot" in seat.text
        assert ".svg" in seat.app.screen.query_one(Input).value
        await name_file(seat, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text("utf-8")


@pytest.mark.slow
async def test_what_is_wrong_with_a_name_is_said_and_can_be_corrected(sit, directory, tmp_path, size):
    async with sit(directory, "e", tab="verdicts", size=size) as seat:
        await name_file(seat, tmp_path / "table.pdf")
        assert "must end in .csv" in " ".join(seat.text.split())
        await name_file(seat, tmp_path / "table.csv")
        assert isinstance(seat.app.screen, ProjectScreen)
        await seat.press("e", "escape")
        assert isinstance(seat.app.screen, ProjectScreen)


@pytest.mark.slow
async def test_a_png_without_cairosvg_is_refused_in_words(sit, directory, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    async with sit(directory, "e", tab="sweep") as seat:
        await name_file(seat, tmp_path / "plot.png")
        assert "cairosvg, which is not installed" in seat.app.notices[-1]


@pytest.mark.slow
async def test_results_are_written_as_they_are_filtered_with_all_digits(sit, directory, tmp_path):
    async with sit(directory, "slash", *"ecdf", "enter", "e", tab="results") as seat:
        await name_file(seat, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"ecdf"}
    assert any(len(row["value"]) > 12 for row in rows)


@pytest.mark.slow
async def test_capital_y_sends_the_table_to_the_terminal_and_to_a_file(sit, directory, monkeypatch):
    monkeypatch.delenv("TMUX", raising=False)
    async with sit(directory, "y", tab="verdicts") as seat:
        said = seat.app.notices[-1]
        assert "the terminal was asked to copy them" in said
        assert not said.startswith("Copied")
        assert seat.app.clipboard == (directory / COPY_FILE).read_text("utf-8")
        assert seat.app.clipboard.startswith("value\ttarget")


async def test_capital_y_goes_through_tmux(sit, directory, tmp_path, monkeypatch):
    script = tmp_path / "tmux"
    script.write_text(f'#!/bin/sh\n/bin/cat > "{tmp_path}/given"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TMUX", "here")
    async with sit(directory, "y", tab="sweep") as seat:
        assert "in tmux's buffer" in seat.app.notices[-1]
        assert seat.app.clipboard == ""
    assert (tmp_path / "given").read_text("utf-8").startswith("method\tmeasure")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["e", "y"])
async def test_where_there_is_nothing_the_keys_say_so(sit, empty_workspace, key):
    async with sit(empty_workspace, key) as seat:
        assert seat.app.notices == ["There is nothing here to write or to copy"]


@pytest.mark.slow
async def test_a_comparison_can_be_written_and_help_names_the_keys(sit, directory):
    async with sit(directory, "question_mark", "G", tab="sweep", size=(120, 60)) as seat:
        assert "Export" in seat.text
        assert "Copy what of it may leave" in seat.text
        await seat.press("q")
        await seat.app.open(ComparisonDialog(1, 1))
        await seat.press("shift", "e")
        assert isinstance(seat.app.screen, ExportDialog)
        assert "runs-1-1-numbers-INTERNAL.csv" in seat.app.screen.query_one(Input).value


@pytest.mark.slow
async def test_what_is_written_is_internal_unless_a_key_asks_for_what_may_leave(sit, built_data, tmp_path, size):
    async with sit(built_data, "e", tab="results", size=size) as seat:
        field = seat.app.screen.query_one(Input)
        assert "INTERNAL: as confidential as the data" in seat.text
        assert "ctrl+y" in seat.text
        assert field.value.endswith("results-INTERNAL.csv")
        await seat.press("ctrl+y")
        assert "PUBLIC: what the policy of the workspace lets out" in " ".join(seat.text.split())
        assert field.value.endswith("results-PUBLIC.csv")
        await name_file(seat, tmp_path / "outside.csv")
        assert "PUBLIC" in seat.app.notices[-1]
        await seat.press("e", "ctrl+y", "ctrl+y")
        await name_file(seat, tmp_path / "inside.csv")
        assert "INTERNAL: as confidential as the data" in seat.app.notices[-1]
    outside, inside = (
        list(csv.DictReader((tmp_path / f"{name}.csv").read_text("utf-8").splitlines()))
        for name in ("outside", "inside")
    )
    # no figure that is computed from confidential records leaves by default
    assert outside == []
    assert {"risk"} < {row["family"] for row in inside}
    assert "confidential" in {row["dataset"] for row in inside}


@pytest.mark.slow
async def test_copies_are_internal_and_what_may_leave_has_a_key_of_its_own(sit, built_data, monkeypatch):
    monkeypatch.delenv("TMUX", raising=False)
    async with sit(built_data, "y", tab="results") as seat:
        assert seat.app.notices[-1].endswith("INTERNAL: as confidential as the data")
        whole = seat.app.clipboard
        await seat.press("ctrl+y")
        assert seat.app.notices[-1].endswith("PUBLIC: what the policy of the workspace lets out")
        assert "risk" in whole
        assert "risk" not in seat.app.clipboard
    async with sit(built_data, "ctrl+y", tab="verdicts") as seat:
        assert seat.app.notices == ["Nothing of this may leave: it is as confidential as the data"]


@pytest.mark.slow
async def test_a_plot_says_that_it_is_internal(sit, directory, tmp_path):
    async with sit(directory, "e", tab="sweep") as seat:
        assert "ctrl+y" not in seat.text
        await name_file(seat, tmp_path / "plot.svg")
    assert "INTERNAL: as confidential as the data" in (tmp_path / "plot.svg").read_text("utf-8")


@pytest.mark.slow
async def test_the_file_that_is_proposed_holds_what_is_shown(sit, built_data):
    """A plot is proposed as a drawing, its numbers as a table."""
    for tab, keys in (("sweep", ()), ("map", ()), ("runs", ("act:distributions",))):
        async with sit(built_data, *keys, tab=tab) as seat:
            assert seat.app.screen.make_exportable().default_suffix == ".svg", tab
            await seat.press("t")
            assert seat.app.screen.make_exportable().default_suffix == ".csv", tab
            await seat.press("e")
            assert seat.app.screen.query_one("#export-path").value.endswith(".csv"), tab

"""From a bar or a cell to its records: after a question, and exactly those."""

import re

import pytest

from sfumato.tui.findings.distribution import DistributionsDialog, RecordsBehindDialog


@pytest.mark.slow
async def test_enter_on_a_bar_asks_and_then_shows_its_records(sit, built_data, size):
    async with sit(built_data, "enter", "G", "act:distributions", size=size) as seat:
        assert isinstance(seat.app.screen, DistributionsDialog)
        await seat.press("home", "right", "right")
        said = re.search(r"income (\S+ \.\. \S+): confidential (\S+)", seat.text)
        share = float(said[2])
        text = await seat.press("enter")
        assert re.search(r"Show the (\d+ records|record) with income", text)
        assert "They are confidential" in text
        assert not isinstance(seat.app.screen, RecordsBehindDialog)
        await seat.press("n")
        assert isinstance(seat.app.screen, DistributionsDialog), "no is no"
        await seat.press("enter", "y", "shift")
        assert isinstance(seat.app.screen, RecordsBehindDialog)
        records = round(share * 90)
        assert f"{records} record" in seat.text.splitlines()[0]
        assert "of the confidential data of run 1" in seat.text
        low, high = (float(one.replace(",", "")) for one in said[1].split(" .. "))
        grid = seat.app.screen.query_one("Grid")
        place = [column.name for column in grid.source.columns].index("income")
        values = [float(row[place]) for row in grid.source.rows(0, 1000)]
        assert len(values) == records
        assert all(low <= value <= high for value in values)
        assert seat.app.screen.make_exportable().name.startswith("confidential-run-1")
        await seat.press("v")
        assert isinstance(seat.app.screen, DistributionsDialog), "v hides them"


@pytest.mark.slow
async def test_enter_on_a_cell_shows_its_records_and_on_a_curve_says_why_not(sit, built_data):
    async with sit(built_data, "enter", "G", "act:distributions", "m", "enter", size=(120, 40)) as seat:
        assert "Bars and cells of heat maps open their records" in seat.app.notices[-1]
        await seat.press("act:previous_picture", "right_curly_bracket", "right_curly_bracket")
        for _ in range(40):
            found = re.search(r"confidential \S+ ?% \((\d+)\)", seat.text)
            if found and int(found[1]):
                break
            await seat.press("right")
        await seat.press("enter", "y", "shift")
        assert isinstance(seat.app.screen, RecordsBehindDialog)
        assert f"· {found[1]} record" in seat.text.splitlines()[0]
        assert seat.app.screen.query_one("Grid").row_count == int(found[1])

"""Commands that are typed: places with words or a run, acts by name, and what is wrong with a line."""

import pytest

from sfumato.tui.app.command_line import CommandLine, available_commands, parse_command
from sfumato.tui.manual.manual import ManualDialog


async def type_command(seat, text):
    """Type a line after the colon and accept it."""
    return await seat.press("colon", *("space" if sign == " " else sign for sign in text), "enter")


@pytest.mark.slow
async def test_a_place_takes_words_that_its_rows_must_have(sit, directory):
    async with sit(directory, tab="runs") as seat:
        assert "✓ done" in seat.text
        await type_command(seat, "runs failed")
        rows = [line for line in seat.text.splitlines()[3:] if line.lstrip()[:2] in ("1 ", "2 ", "3 ", "4 ")]
        assert [row.split()[0] for row in rows] == ["2"]


@pytest.mark.slow
async def test_a_line_may_be_cut_short_and_completed(sit, directory):
    async with sit(directory, "colon", *"dat", "tab", tab="runs") as seat:
        assert seat.app.screen.query_one("EntryField").value == "data"
        await seat.press("enter")
        assert "[1 Data]" in seat.text


@pytest.mark.slow
async def test_findings_take_a_run_by_its_number(sit, directory):
    async with sit(directory, "G", tab="runs") as seat:
        assert "› run 1" in await type_command(seat, "find 1")
        assert "[4 Findings]" in seat.text


@pytest.mark.slow
async def test_themes_and_topics_are_named_too(sit, directory):
    async with sit(directory, tab="runs") as seat:
        await type_command(seat, "theme light")
        assert seat.app.theme == "light"
        await type_command(seat, "manual recipe")
        assert isinstance(seat.app.screen, ManualDialog)
        await seat.press("q")
        await type_command(seat, "doctor")
        assert type(seat.app.screen).__name__ == "DoctorDialog"


@pytest.mark.slow
async def test_a_wrong_line_says_why_and_stays(sit, directory):
    async with sit(directory, tab="runs") as seat:
        assert 'There is no command "rnus" here; did you mean "runs"?' in await type_command(seat, "rnus")
        assert isinstance(seat.app.screen, CommandLine)
        known = available_commands(seat.app.screen_stack[-2])
        assert "runs" in known
        assert "results" in str(parse_command("re", known))
        assert parse_command("  :runs   not met ", known).words == "not met"
        assert parse_command("", known) == "Type the name of a place or an act"
        await seat.press("escape")
        await type_command(seat, "export what")
        assert "export takes no words" in seat.app.notices[-1]

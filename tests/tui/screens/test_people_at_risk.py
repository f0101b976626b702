"""Findings opens on one answer, with the people most at risk beside the list."""

import math
from dataclasses import replace

import pytest

from sfumato.tui.findings.people_at_risk import MOST_PEOPLE, PeopleAtRisk, _are_found, _how_surely, _is_more_likely
from sfumato.tui.parts.answer_panel import AnswerPanel
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.tui.widgets.grid import Grid
from sfumato.workspace.reporting.records import RecordLine

pytestmark = pytest.mark.slow
WIDE = (160, 50)


def people_of(seat):
    """Return the list of people that is shown: below the findings or beside them; that beside them where none is."""
    below, beside = seat.app.screen.query(PeopleAtRisk)
    return below if below.display else beside


async def test_enter_on_a_person_shows_it_among_the_records(sit, built_data):
    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        await seat.until(lambda: people_of(seat).display)
        people_of(seat).focus()
        await seat.until(lambda: people_of(seat).has_focus)
        await seat.press("j", "j", "k", "enter")
        await seat.until(lambda: "[Records]" in seat.text)
        await seat.until(lambda: seat.app.screen.pane.query_one(Grid).row_count)
        await seat.until(lambda: seat.app.screen.pane.query_one(Grid).cursor == 1)


async def test_the_cursor_stays_on_a_person_who_is_shown_in_a_lower_terminal(sit, built_data):
    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        await seat.until(lambda: 2 <= len(people_of(seat)._people) <= MOST_PEOPLE)
        people_of(seat).focus()
        await seat.press("G")
        shown = people_of(seat)
        before = len(shown._people)
        assert shown._at == before - 1
        await seat.pilot.resize_terminal(160, 44)
        await seat.until(lambda: shown.display and 0 < len(shown._people) < before)
        last = len(shown._people) - 1
        assert shown._at == last
        await seat.press("enter")
        await seat.until(lambda: "[Records]" in seat.text)
        await seat.until(lambda: seat.app.screen.pane.query_one(Grid).cursor == last)


def test_only_people_of_whom_the_release_says_more_than_was_believed_before_are_listed():
    line = RecordLine(1, 0.9, None, math.nan, None, None)
    found = [_is_more_likely(replace(line, prior=prior)) for prior in (None, 0.2, 0.9, 1.0)]
    assert found == [True, True, False, False]


def test_who_is_found_for_certain_is_told_so_and_not_by_a_1():
    assert [_how_surely(one) for one in (1.0, 0.9996, 0.5)] == ["certain", "0.9996", "0.5"]


def test_people_whose_values_are_guessed_are_not_said_to_be_found():
    line = RecordLine(1, 0.9, None, math.nan, None, None)
    assert _are_found([line, line])
    assert not _are_found([replace(line, prior=0.2)])


async def test_the_people_beside_the_list_have_no_values(sit, built_data):
    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        await seat.until(lambda: people_of(seat).display)
        shown = str(people_of(seat)._text.content)
        assert shown.startswith("People most at risk")
        assert "record " in shown
        assert not any(word in shown for word in ("north", "south"))


@pytest.mark.parametrize("size", [(80, 24), (99, 50), (120, 28)])
async def test_a_small_terminal_has_no_list_of_people(sit, built_data, size):
    async with sit(built_data, tab="verdicts", size=size) as seat:
        assert not people_of(seat).is_on_screen or not people_of(seat).display


async def test_the_answer_stands_in_the_first_third_and_the_list_below_it(sit, built_data):
    async with sit(built_data, tab="verdicts", size=(80, 24)) as seat:
        for width, height in ((80, 24), (120, 40), (160, 50), (300, 80), (60, 20), (5, 3)):
            await seat.pilot.resize_terminal(width, height)
            await seat.press("shift")
            panel, board = seat.app.screen.query_one(AnswerPanel), seat.app.screen.query_one(VerdictBoard)
            assert panel.outer_size.height <= max(1, height // 3)
            if height >= 20:
                assert board.region.y >= panel.region.bottom
                assert board.size.height >= height // 3


async def test_the_places_for_other_widgets_take_no_space(sit, built_data):
    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        for name in ("#dial-place", "#levers-place"):
            place = seat.app.screen.query_one(name)
            assert place.outer_size.height == 0 or place.children

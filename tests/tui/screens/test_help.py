"""Every act of a place stands in its list of keys, is found by words and by its key, and is run from there."""

import pytest
from bound_acts import declared

from sfumato.tui.app.app import SfumatoApp
from sfumato.tui.app.doctor import DoctorDialog
from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.keys.acts import ACTS, BY_NAME, find_act
from sfumato.tui.manual.help import (
    HelpAct,
    KeysDialog,
    available_acts,
    filter_acts,
    no_effect_message,
    unavailable_acts,
)

NODE = SfumatoApp
OPEN, RUN, DRAW = (
    HelpAct(BY_NAME["open"], "Open", ("enter",), ("open", NODE)),
    HelpAct(BY_NAME["run"], "Run again", ("R",), ("again", NODE)),
    HelpAct(BY_NAME["redraw"], "Redraw", ("ctrl+l",), ("redraw", NODE)),
)


def test_a_key_comes_before_words():
    other = HelpAct(BY_NAME["mark"], "R", ("space",), ("mark", NODE))
    assert filter_acts([OPEN, other, RUN], "R")[0] == RUN
    assert filter_acts([OPEN, other, RUN], "space")[0] == other
    assert filter_acts([OPEN, RUN, DRAW], "ctrl+l") == [DRAW]
    assert filter_acts([OPEN, RUN, DRAW], "again RUN") == [RUN]
    assert filter_acts([OPEN, RUN, DRAW], "zzz") == []
    assert filter_acts([OPEN, RUN, DRAW], "") == [OPEN, RUN, DRAW]


def test_what_is_done_here_is_not_listed_again_as_elsewhere():
    found = {one.act.name for one in unavailable_acts([RUN])}
    assert "run" not in found
    assert len(found) == len(ACTS) - 1


def test_a_key_that_does_nothing_says_what_it_does_elsewhere():
    assert no_effect_message("s") == "s (Sort) does nothing here"
    assert no_effect_message("f12") == "f12 does nothing here"


@pytest.mark.slow
@pytest.mark.parametrize(
    "tab", ["runs", "verdicts", "results", "sweep", "records", "diagnostics", "data", "plan", "map"]
)
async def test_every_act_of_a_place_stands_in_its_list_and_few_have_keys_of_their_own(sit, built_data, tab):
    async with sit(built_data, "G", tab=tab) as seat:
        screen = seat.app.screen
        listed = {(one.act.name, one.run[0]) for one in available_acts(screen)}
        active = [one for one in screen.active_bindings.values() if one.enabled]
        assert {(find_act(one.binding).name, one.binding.action) for one in active if find_act(one.binding)} == listed
        pane = [bound for owner, bound in declared() if isinstance(screen.pane, owner)]
        own = {find_act(bound).name for bound in pane if find_act(bound).keys}
        assert len(own) <= 20


@pytest.mark.slow
async def test_an_act_without_a_key_is_run_from_the_list(sit, built_data):
    async with sit(built_data, "question_mark", "slash", *"doctor", "enter", tab="runs", size=(80, 24)) as seat:
        assert isinstance(seat.app.screen, KeysDialog)
        await seat.press("enter")
        assert isinstance(seat.app.screen, DoctorDialog)


@pytest.mark.slow
async def test_words_find_acts_here_and_elsewhere(sit, built_data):
    async with sit(built_data, "question_mark", "slash", *"again", tab="runs", size=(80, 24)) as seat:
        assert "Run again" in seat.text
        assert "Duplicate" not in seat.text
        await seat.press("escape")
        assert "Duplicate" in await seat.press("G", *(["k"] * 28))
        text = await seat.press("slash", *"reveal")
        assert "Elsewhere" in text
        assert "is an act of another place" in await seat.press("enter", "enter")
        assert isinstance(seat.app.screen, KeysDialog)
        await seat.press("q")
        assert isinstance(seat.app.screen, ProjectScreen)


@pytest.mark.slow
async def test_a_key_is_looked_up_by_pressing_it(sit, built_data):
    async with sit(built_data, "question_mark", tab="runs", size=(80, 24)) as seat:
        for key, words in (
            ("R", "R: Run again; enter runs it"),
            ("v", "v (Reveal or hide confidential values) does nothing here"),
            ("f12", "f12 does nothing here"),
            ("w", "w: Release"),
        ):
            assert words in await seat.press(key), key
            assert len(seat.app.screen_stack) == 3


@pytest.mark.slow
async def test_a_key_that_does_nothing_in_a_place_says_so(sit, directory):
    async with sit(directory, "v", tab="runs") as seat:
        said = "v (Reveal or hide confidential values) does nothing here; ? lists the keys that do"
        assert seat.app.notices == [said]
        await seat.press("j", "shift", "4")
        assert seat.app.notices == [said]

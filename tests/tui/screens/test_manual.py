"""F1 opens the manual at what has the focus; words find sections; escape returns."""

import pytest

from sfumato.tui.app.project import TABS, TITLES
from sfumato.tui.manual.manual import ManualDialog, current_topics, first_entry
from sfumato.workspace.manual import ManualEntry, page_sections


async def settled(seat):
    """The manual once its page is laid out."""
    await seat.until(lambda: isinstance(seat.app.screen, ManualDialog) and seat.app.screen.entry is not None)
    return seat.app.screen


def at(screen):
    entry = screen.entry
    return f"{entry.page} {entry.section.name if entry.section else ''} {entry.term}".strip()


def test_the_first_topic_that_the_manual_has_is_opened():
    assert first_entry(["risk.of_another_package", "methods no_such", "app plan"]).section.name == "plan"
    assert first_entry(["nothing"]) == ManualEntry("app")


def test_every_tab_has_a_section_of_its_own():
    assert {TITLES.get(name, title).lower() for name, title in TABS.items()} <= {
        one.name for one in page_sections("app")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tab", "keys", "place"),
    [
        ("runs", (), "app runs"),
        ("records", (), "app records"),
        ("verdicts", (), "methods risk.identification expected_match_risk"),
        ("verdicts", ("enter",), "methods risk.identification expected_match_risk"),
        ("verdicts", ("w",), None),
        ("plan", ("g",), "recipe data"),
        ("plan", ("g", "j"), "methods synthesis.linear_regression"),
        ("plan", ("g", "j", "enter", "down"), "methods synthesis.linear_regression method"),
        ("data", (), "app data"),
        ("runs", ("act:distributions",), "app distributions"),
    ],
)
async def test_f1_opens_what_has_the_focus(sit, built_data, tab, keys, place):
    async with sit(built_data, tab=tab) as seat:
        if tab == "verdicts" and keys != ("w",):  # past what the gate finds
            await seat.to_verdict()
        if keys:
            await seat.press(*keys)
        below = seat.app.screen
        focused = seat.app.focused
        await seat.press("f1")
        screen = await settled(seat)
        if place is None:
            assert at(screen).startswith("release checks of ")
            assert screen.entry.term
        else:
            assert at(screen).startswith(place.removesuffix(" method"))
        assert screen.query_one("Scroll").scroll_y > 0 or screen.entry.section is None
        await seat.press("escape")
        assert seat.app.screen is below
        assert seat.app.focused is focused


@pytest.mark.slow
async def test_a_field_of_a_form_leads_to_its_parameter(sit, built_data):
    async with sit(built_data, "g", "j", "enter", tab="plan") as seat:
        form = seat.app.screen
        terms = set()
        for _ in range(6):
            await seat.press("f1")
            screen = await settled(seat)
            assert screen.entry.section.name == "synthesis.linear_regression"
            terms.add(screen.entry.term)
            await seat.press("q", "down")
            assert seat.app.screen is form
        assert {"predictors", "transform"} <= terms


@pytest.mark.slow
async def test_the_measure_of_a_result_leads_to_its_method(sit, built_data):
    async with sit(built_data, tab="results") as seat:
        assert current_topics(seat.app.screen_stack)[0] == "risk.identification.expected_match_risk"
        await seat.press("f1")
        screen = await settled(seat)
        assert at(screen) == "methods risk.identification expected_match_risk"
        await seat.press("escape")
        for _ in range(80):
            if current_topics(seat.app.screen_stack)[0] == "studies.intruder_uncertainty.expected_match_risk":
                break
            await seat.press("down")
        assert current_topics(seat.app.screen_stack)[0] == "studies.intruder_uncertainty.expected_match_risk"
        await seat.press("f1")
        assert at(await settled(seat)) == "methods studies.intruder_uncertainty expected_match_risk"


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 30)])
async def test_the_term_stands_at_the_top_and_no_line_is_broken_again(sit, built_data, size):
    async with sit(built_data, tab="verdicts", size=size) as seat:
        await seat.to_verdict()
        await seat.press("f1")
        screen = await settled(seat)
        await seat.until(lambda: screen.query_one("Scroll").scroll_y)
        lines = [line.strip() for line in seat.text.splitlines()]
        assert "risk.identification" in lines[0] or size[0] < 80
        assert lines[1].startswith("- expected_match_risk: ")
        await seat.press("home")
        await seat.until(lambda: not screen.query_one("Scroll").scroll_y)
        assert seat.text.splitlines()[1].strip().startswith("Methods")


@pytest.mark.slow
async def test_words_find_sections_and_n_goes_from_hit_to_hit(sit, built_data):
    async with sit(built_data, "f1", tab="runs") as seat:
        screen = await settled(seat)
        await seat.press("slash", *"survey weights", "enter")
        await seat.until(lambda: "hit 1 of" in seat.text)
        assert at(screen) == "recipe survey weights"
        assert "Survey weights   (hit 1 of" in seat.text
        await seat.press("right_curly_bracket")
        await seat.until(lambda: "hit 2 of" in seat.text)
        assert at(screen) != "recipe survey weights"
        await seat.press("left_curly_bracket")
        await seat.until(lambda: "hit 1 of" in seat.text)
        assert at(screen) == "recipe survey weights"
        await seat.press("slash", *"zzyzx", "enter")
        await seat.until(lambda: any("on no page" in said for said in seat.app.notices))
        assert any('"zzyzx" is on no page' in said for said in seat.app.notices)
        await seat.press("escape")
        assert not isinstance(seat.app.screen, ManualDialog)


@pytest.mark.slow
async def test_it_opens_in_any_terminal_and_pages_follow_each_other(sit, built_data):
    async with sit(built_data, "f1", tab="runs", size=(40, 12)) as seat:
        screen = await settled(seat)
        await seat.press("full_stop")
        await seat.until(lambda: screen.entry.page == "plain")
        assert at(screen) == "plain"
        await seat.pilot.resize_terminal(160, 50)
        await seat.press("comma")
        await seat.until(lambda: screen.entry.page == "app")
        assert at(screen) == "app"
        await seat.press("f1")
        assert seat.app.screen is screen

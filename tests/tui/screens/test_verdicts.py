import re

import pytest

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.parts.verdict_board import (
    BoardFold,
    VerdictBoard,
    board_text,
    draw_gauge,
    overall_line,
)


def verdict(outcome, observed=0.01, **changes):
    fields = {
        "value": "risk.identification.true_match_rate", "target": "", "level": None, "bound": "max", "limit": 0.02,
        "observed": observed, "margin": None if observed is None else 0.02 - observed, "outcome": outcome, "reason": "",
        "params": None,
    }  # fmt: skip
    return Verdict(**{**fields, **changes})


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        (["met", "met"], "✓ met  all 2 thresholds are met"),
        (["met", "not met", "not computed"], "✗ not met  1 of 3 thresholds is not met, 1 not computed"),
        (["met", "not computed"], "? not computed  1 of 2 thresholds is not computed"),
    ],
)
def test_the_overall_line_passes_only_when_every_threshold_does(outcomes, text):
    assert overall_line([verdict(outcome) for outcome in outcomes]).plain == text


@pytest.mark.parametrize("width", [76, 96, 116, 196])
def test_every_line_of_the_board_fits(width):
    verdicts = [
        verdict("met"),
        verdict(
            "not met", 0.5, bound="max_ratio", level=0.05, target="price", params={"radius": {"availability_365": 5}}
        ),
        verdict("not computed", None, bound="min"),
    ]
    text = board_text(verdicts, width)
    assert max(len(line) for line in text.plain.splitlines()) <= width
    for words in ("✓ met", "✗ not met", "? not computed"):
        assert words in text.plain


def test_a_verdict_is_one_line_with_its_name_value_gauge_and_limit():
    found = board_text(
        [verdict("not computed", None, reason="no unique match"), verdict("met", 88 / 20190)], 140, 20190
    )
    heads, lacking, met = found.plain.splitlines()[2:]
    assert heads.split() == ["verdict", "number", "value", "limit"]
    assert re.split("  +", lacking.strip()) == ["? not computed", "People found for certain", "-", "at most 2 %"]
    assert re.split("  +", met) == [
        "✓ met", "People found for certain", "88 of 20,190 (0.44 %)", "├──■─────┃───────┤", "at most 2 %",
    ]  # fmt: skip


def test_where_there_is_little_room_people_and_gauges_leave_first():
    line = board_text([verdict("met", 88 / 20190)], 76, 20190).plain.splitlines()[-1]
    assert re.split("  +", line) == ["✓ met", "People found for certain", "0.44 %", "at most 2 %"]


@pytest.mark.parametrize("width", [76, 96, 116, 156])
def test_names_on_a_board_differ_however_short(width):
    keys = ("risk.linkability.excess_risk", "risk.singling_out.excess_risk", "risk.attribute_inference.excess_risk")
    verdicts = [verdict("met", value=key, params=params) for key in keys for params in ({}, {"people": "vulnerable"})]
    lines = board_text(verdicts, width).plain.splitlines()[3:]
    assert len(set(lines)) == len(lines) == len(verdicts)


def test_signs_are_ascii_where_asked(monkeypatch):
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    text = board_text([verdict("met"), verdict("not met"), verdict("not computed", None, reason="why")], 140).plain
    assert "+ met" in text
    assert "x not met" in text
    assert text.replace("×", "x").isascii()


@pytest.mark.slow
async def test_the_board_of_a_finished_run(sit, directory, size):
    async with sit(directory, size=size, tab="verdicts") as seat:
        assert "1 of 3 plan limits met" in seat.text
        assert "✗ unmet" in seat.text
        assert "People found on average" in seat.text
        parts = ("Largest gap between distributions", "(visits)")
        assert all(part in seat.text for part in parts), "names are whole, some of them in two lines"
        assert "People found for certain" not in seat.text, "the limit that is met is folded"
        assert "≤ 50 %" in seat.text
        await seat.press("j")
        await seat.until(
            lambda: "the run has no such row" in seat.text.lower()
        )  # beside the list it comes once the cursor rests


@pytest.mark.slow
async def test_a_run_without_verdicts_says_why(sit, directory):
    async with sit(directory, "enter", "act:verdicts") as seat:
        assert "No verdicts yet: run 4 is not done (● running)" in seat.text


@pytest.mark.slow
async def test_the_board_follows_the_chosen_run(sit, directory):
    async with sit(directory, "3", "k", "enter", "act:verdicts", tab="verdicts") as seat:
        assert "run 2" in seat.text
        assert "✓ met" not in seat.text


@pytest.mark.slow
async def test_the_board_scrolls_with_the_keys_of_a_pager(sit, directory):
    async with sit(directory, size=(80, 12), tab="verdicts") as seat:
        first = seat.text
        assert "✗ unmet" in first
        await seat.press("G")
        assert "numbers of the run" in seat.text
        await seat.press("g")
        assert seat.text == first
        await seat.press("j", "ctrl+d", "ctrl+u", "k", "pagedown", "pageup", "home", "end")
        assert "numbers of the run" in seat.text


def gauge_text(observed, limit=0.02, width=18, **changes):
    return draw_gauge(verdict("met", observed, limit=limit, **changes), "bold", width).plain


@pytest.mark.parametrize(
    ("observed", "picture"),
    [
        (0.0, "├■───────┃───────┤"),
        (0.01, "├────■───┃───────┤"),
        (0.02, "├────────■───────┤"),
        (0.03, "├────────┃──■────┤"),
        (9.0, "├────────┃──────■┤"),
        (-0.5, "├■───────┃───────┤"),
    ],
)
def test_a_gauge_marks_the_value_between_0_and_twice_the_limit(observed, picture):
    assert gauge_text(observed) == picture


def test_a_gauge_shows_the_interval_as_a_bar_open_to_its_end():
    assert gauge_text(0.01, lower=0.005, upper=0.026) == "├──━━■━━━┃━━─────┤"
    assert gauge_text(0.01, lower=0.005, upper=None) == "├──━━■━━━┃━━━━━━━┤"


@pytest.mark.parametrize("bound", ["max", "min"])
def test_gauges_of_least_and_of_largest_values_run_the_same_way(bound):
    assert gauge_text(0.03, bound=bound) == "├────────┃──■────┤"


@pytest.mark.parametrize(("observed", "limit"), [(None, 0.02), (1.0, 0.0), (1.0, -2.0)])
def test_a_gauge_is_blank_where_there_is_nothing_to_compare(observed, limit):
    assert gauge_text(observed, limit) == " " * 18


@pytest.mark.parametrize("width", [8, 10, 18, 40])
def test_the_gauge_fits(width):
    assert len(gauge_text(0.03, width=width)) == width


@pytest.mark.slow
async def test_enter_explains_the_chosen_verdict(sit, directory):
    async with sit(directory, tab="verdicts") as seat:
        await seat.press("enter")
        assert "in words" in seat.text
        assert "good is" in seat.text


@pytest.mark.slow
async def test_a_threshold_without_a_row_says_so(sit, directory):
    async with sit(directory, tab="verdicts") as seat:
        await seat.press("j", "enter")
        assert "no row of results for this threshold" in seat.app.notices[-1]


@pytest.mark.slow
async def test_the_cursor_goes_from_verdict_to_verdict_and_stays_in_sight(sit, directory):
    async with sit(directory, size=(80, 11), tab="verdicts") as seat:
        await seat.press("j", "j", "enter", "j")
        assert "✓ met" in seat.text
        await seat.press("k", "k", "k")
        assert "✗ unmet" in seat.text


@pytest.mark.slow
async def test_the_cursor_is_seen_to_move_where_all_verdicts_fit(sit, directory):
    def chosen():
        strips = seat.app.screen._compositor.render_strips()
        reversed_ = [part.text for strip in strips for part in strip if part.style is not None and part.style.reverse]
        return "".join(reversed_).split()[:2]

    async with sit(directory, tab="verdicts") as seat:
        first = chosen()
        await seat.press("G")
        last = chosen()
        assert first != last
        await seat.press("g")
        assert chosen() == first


@pytest.mark.slow
async def test_what_is_not_met_stands_first_and_what_is_met_last(sit, directory):
    async with sit(directory, tab="verdicts") as seat:
        await seat.press("j", "j", "enter")
        shown = [line[1] for line in seat.text.splitlines() if line.startswith((" ✗ unmet   ", " ? missing", " ✓ met"))]
        assert shown == ["✗", "?", "✓"]


@pytest.mark.slow
async def test_no_key_is_offered_to_explain_a_verdict_where_there_is_none(sit, directory):
    async with sit(directory, "enter", "g", "enter", "act:verdicts", size=(120, 40)) as seat:
        assert "No verdicts yet" in seat.text
        assert "Explain" not in seat.footer
    async with sit(directory, tab="verdicts", size=(120, 40)) as seat:
        assert "enter Explain" in seat.footer


@pytest.mark.slow
async def test_what_is_met_is_one_line_that_opens_and_all_other_numbers_are_one_below(sit, directory, size):
    async with sit(directory, size=size, tab="verdicts") as seat:
        lines = [line.strip() for line in seat.text.splitlines()]
        assert any("1 limit met" in line for line in lines)
        assert not any(line.startswith("✓ met") for line in lines)
        assert "Findings: not examined" in lines[2], "the copy has no tables"
        assert any("1 of 3 plan limits met" in line for line in lines)
        beside = [line.partition("│")[0].strip() for line in lines]
        (folded,) = (line for line in beside if line.endswith("numbers of the run"))
        count = folded.split()[2]
        assert int(count.replace(",", "")) > 10
        assert "[Numbers]" in await seat.press("G", "enter")
        await seat.until(lambda: f"Findings: {count} numbers" in seat.text)


@pytest.mark.slow
async def test_the_cursor_goes_over_every_line_and_reads_each(sit, directory):
    async with sit(directory, "g", tab="verdicts") as seat:
        board = seat.app.screen.query_one(VerdictBoard)
        seen = [board.chosen_verdict]
        for _ in range(4):
            await seat.press("j")
            seen.append(board.chosen_verdict)
            if board.chosen_fold is BoardFold.PASSES:
                await seat.press("enter")
        assert [one and one.outcome for one in seen] == ["not met", "not computed", None, "met", None]
        await seat.press("g", "j", "j", "j", "enter")
        assert len(seat.app.screen_stack) == 3


@pytest.mark.slow
async def test_a_run_without_limits_leads_to_its_numbers(sit, directory, monkeypatch):
    monkeypatch.setattr("sfumato.tui.findings.verdicts.read_verdicts", lambda *_: [])
    async with sit(directory, tab="verdicts", size=(120, 40)) as seat:
        assert "The plan of this run sets no limits" in seat.text
        assert re.search(r"all [\d,]+ numbers of the run", seat.text)
        assert "[Numbers]" in await seat.press("enter")

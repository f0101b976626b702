"""The intruder's dial on the first page of Findings: keys turn it, its numbers follow, and it is no greener than the gate."""

import re
from dataclasses import replace

import pytest
from prepared_tables import HOUSEHOLD_PLAN, household_survey
from prepared_workspaces import finished_workspace
from rich.cells import cell_len

from sfumato.engine.wording import RecordCount
from sfumato.tui.findings.dial import LOW_HEAD, DialPane
from sfumato.tui.findings.study import StudiesPane
from sfumato.tui.keys.acts import BY_NAME
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.workspace.gate.answer import ReleaseAnswer
from sfumato.workspace.plan.change_parts import parts_of_change
from sfumato.workspace.service.intruder_dial import _DialTables, count_for_dial
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows


def dial_of(seat):
    return seat.app.screen.query_one(DialPane)


def measured(directory, measure):
    """The average over the released datasets of an output of identification."""
    with Workspace.open(directory, read_only=True) as workspace:
        (found,) = {
            row.value
            for row in read_result_rows(workspace, 1)
            if row.measure == measure and row.draw is None and row.dataset != "confidential" and row.level is None
        }
    return found


@pytest.mark.slow
async def test_a_what_if_from_a_finished_run_takes_two_keys(sit, built, size):
    async with sit(built, tab="verdicts", size=size) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        before, name = dial_of(seat).dial, dial_of(seat).variable.name
        keys = ["space", "space"]
        await seat.press(keys[0])
        turned = dial_of(seat).dial
        assert turned.known == before.known - {name}, "one key turns, two turn it back"
        assert f"[ ] {name}" in seat.text
        assert " TRIAL " in seat.text, "a word tells it from the answer above"
        arrows = [f"{was.value:g} → {now.count_text.split()[0]} of" for was, now in zip(before.lines(), turned.lines(), strict=True)
                  if was.value == round(was.value)]  # fmt: skip
        assert arrows
        assert all(one in seat.text for one in arrows), "before and after stand beside each gauge"
        await seat.press(keys[1])
        assert dial_of(seat).dial.known == before.known
        assert "TRIAL" not in seat.text
        assert "→ " not in seat.text


@pytest.mark.slow
async def test_the_dial_begins_with_what_the_measure_says_of_the_stated_knowledge(sit, built):
    async with sit(built, tab="verdicts") as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        dial = dial_of(seat).dial
        found = {line.name: line.value for line in dial.lines()}
        assert found["expected"] == pytest.approx(measured(built, "largest_expected_match_risk"))
        assert found["certain"] == pytest.approx(measured(built, "largest_true_match_rate") * dial.numbers.number)
        assert dial.people_text(found["certain"]) in seat.text
        assert f"If he knows what is ticked, of {dial.numbers.number:,} " in seat.text


@pytest.mark.slow
async def test_the_sentence_on_what_to_coarsen_is_left_out_unless_it_says_more_than_the_answer(sit, built):
    async with sit(built, tab="verdicts", size=(120, 40)) as seat:
        pane = dial_of(seat)
        await seat.until(lambda: pane.dial is not None and pane._may_leave)
        name, _ = pane.dial.coarsen_first
        answer = answer_with("no", f"Synthesise {name}; then no person can be found any more.", name, has_effect=True)
        pane.show_gate(answer)
        await seat.until(lambda: pane.dial.coarsen_text() not in seat.text)
        assert "space changes what he knows" in seat.text
        pane.show_gate(answer_with("no", "Coarsen or synthesise it, released unchanged.", name))
        await seat.until(lambda: pane.dial.coarsen_text() in seat.text)
        pane.show_gate(answer_with("no", f"Synthesise another column than {name}.", "another"))
        await seat.until(lambda: pane.dial.coarsen_text() not in seat.text)
        await seat.press("space")
        await seat.until(lambda: pane.dial.coarsen_text() in seat.text)


def answer_with(may_leave, change="", *columns, has_effect=False):
    advised = (parts_of_change([("synthesise", columns)]),) if columns else ()
    return ReleaseAnswer(
        may_leave, "public", "Said.", "", None, RecordCount(9, "people"), change=change, advised=advised,
        change_has_effect=has_effect,
    )  # fmt: skip


@pytest.mark.slow
async def test_less_certainty_is_a_key_and_finds_no_more(sit, built):
    async with sit(built, tab="verdicts") as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        at = [one.name for one in dial_of(seat).dial.numbers.variables].index("visits")
        await seat.press("space", "space", "home", *["right"] * at)
        last = [line.value for line in dial_of(seat).dial.lines()]
        for reach in dial_of(seat).dial.numbers.variables[at].reaches[1:]:
            await seat.press("plus")
            assert f"visits ± {reach:g}" in seat.text
            await seat.until(lambda: dial_of(seat).dial.counts is not None)
            values = [line.value for line in dial_of(seat).dial.lines()]
            assert all(now <= before + 1e-9 for now, before in zip(values, last, strict=True))
            last = values
        await seat.press("plus")
        assert "widest" in seat.app.notices[-1]
        await seat.press(*["minus"] * 4)
        assert "[x] visits" in seat.text
        assert "visits ±" not in seat.text, "a size of 0 stands nowhere"
        await seat.press("space")
        assert "[ ] visits" in seat.text
        assert "visits ±" not in seat.text, "how surely he knows what he does not know says nothing"


@pytest.mark.slow
async def test_enter_opens_the_studies_and_down_goes_back_to_the_findings(sit, built):
    async with sit(built, "space", tab="verdicts") as seat:
        await seat.until(lambda: seat.app.focused is dial_of(seat) or dial_of(seat).dial is not None)
        dial_of(seat).focus()
        await seat.press("down")
        assert seat.app.focused is not dial_of(seat)
        await seat.press("space", "enter")
        assert "[Studies]" in seat.text


def inks_of(seat, text):
    """The styles, by line, in which a text of the screen is drawn."""
    found = []
    for strip in seat.app.screen._compositor.render_strips():
        found += [segment.style for segment in strip if text in segment.text and segment.style is not None]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_keys_light_one_place_and_frame_and_footer_agree(sit, built, size):
    async with sit(built, tab="verdicts", size=size) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None and dial_of(seat)._may_leave)
        board = seat.app.screen.query_one(VerdictBoard)
        await seat.until(lambda: "reverse" in str(board._text.content.spans))
        assert "space ticks or unticks" not in seat.text
        await seat.press("space")
        name = dial_of(seat).variable.name
        await seat.until(lambda: [style.reverse for style in inks_of(seat, f"[ ] {name}")] == [True])
        assert "reverse" not in str(board._text.content.spans), "the list's cursor is dim"
        assert "next: space ticks what he knows" in seat.text
        assert "explains what" not in seat.text
        await seat.press("down")
        await seat.until(lambda: "reverse" in str(board._text.content.spans))
        assert not any(style.reverse for style in inks_of(seat, f"[ ] {name}"))
        assert "ticks or unticks" not in seat.text


@pytest.mark.slow
async def test_nothing_on_the_dial_is_green_unless_the_gate_lets_the_release_leave(sit, built):
    async with sit(built, tab="verdicts") as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        pane = dial_of(seat)
        for answer in (None, answer_with("no"), answer_with("to be judged")):
            pane.show_gate(answer)
            assert "$success" not in str([pane._ink_of(line) for line in pane.dial.lines()])
        pane.show_gate(answer_with("yes"))
        inks = {line.name: pane._ink_of(line) for line in pane.dial.lines()}
        assert all(
            "success" not in inks[line.name] for line in pane.dial.lines() if line.is_above or line.limit is None
        )


@pytest.mark.slow
async def test_a_low_terminal_has_variables_and_both_numbers_and_a_tiny_one_none(sit, built):
    async with sit(built, tab="verdicts", size=(80, 24)) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        await seat.until(lambda: re.search(r"Intruder knows +\[x\]", seat.text))
        for title in ("for certain", "on average"):
            line = next(line for line in seat.text.splitlines() if f"then found {title}" in line)
            assert re.search(r"├.*■.*┤ .* of 90 .*%\)", line), "each number has its gauge, its share and its limit"
            assert re.search(r"at most \d+ .*%|≤ \d+ \(.*%|none allowed", line), line
        assert seat.app.screen.query_one(VerdictBoard).size.height >= 24 // 3, "the list keeps a third"
        answer = "\n".join(seat.text.splitlines()[3:10])
        assert "…" not in answer, "and the sentences above stay whole"
        assert "space changes it" in seat.text
        assert "space Intruder" in seat.text.splitlines()[-1], "the footer has the key"
    async with sit(built, tab="verdicts", size=(80, 15)) as seat:
        assert "What the intruder knows" not in "\n".join(seat.text.splitlines()[:-1])


@pytest.mark.slow
async def test_what_the_line_has_no_room_for_is_counted_and_the_cursor_leads_to_it(sit, built):
    async with sit(built, tab="verdicts", size=(80, 24)) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        pane = dial_of(seat)
        names = [one.name for one in pane.dial.numbers.variables]
        pane.focus()
        await seat.until(lambda: pane.has_focus)
        for width in (76, 66, 56):
            for at in range(len(names)):
                pane._at = at
                (line,) = pane._chip_lines(pane.dial, width, 1, LOW_HEAD)
                text = line.plain
                assert cell_len(text) <= width
                shown = [name for name in names if f"] {name}" in text]
                counts = [int(number) for number in re.findall(r"(\d+) more", text)]
                assert names[at] in shown
                assert sum(counts) + len(shown) == len(names), text


@pytest.mark.slow
async def test_a_number_without_a_limit_has_a_gauge_of_all_people(sit, built):
    async with sit(built, tab="verdicts", size=(120, 40)) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        pane = dial_of(seat)
        limits = replace(pane.dial.numbers.limits, certain=None, expected=None)
        pane._change(replace(pane.dial, numbers=replace(pane.dial.numbers, limits=limits)))
        for line in pane.dial.lines():
            if line.limit is None:
                shown = pane._number_line(line, 116, is_main=False).plain
                assert re.search(r"├[─■]+┤ .*no limit", shown)


def test_the_keys_of_the_dial_mean_the_same_everywhere():
    assert BY_NAME["zoom_in"].keys[0] == "plus"
    assert BY_NAME["zoom_in"].description.startswith("Larger")


@pytest.mark.slow
def test_a_dial_that_cannot_be_counted_says_why(towns_once, built):
    assert count_for_dial(built, 1).reason == ""
    assert count_for_dial(towns_once, 1).counts is not None


@pytest.mark.slow
def test_a_release_whose_rows_are_nobodys_says_so_in_plain_words(built, monkeypatch):
    read = _DialTables._read_datasets
    monkeypatch.setattr(_DialTables, "_read_datasets", lambda self: (replace(one, linked=False) for one in read(self)))
    assert count_for_dial(built, 1).reason == "no released row says whose it is"


@pytest.mark.slow
async def test_variables_of_which_the_release_has_artificial_values_only_are_marked(sit, built):
    async with sit(built, tab="verdicts", size=(120, 40)) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        drawn = [one.name for one in dial_of(seat).dial.numbers.variables if one.is_drawn]
        assert drawn
        await seat.until(lambda: f"{drawn[0]}*" in seat.text)
        assert "(* artificial" in seat.text


@pytest.mark.slow
async def test_enter_on_the_dial_opens_the_study_of_every_subset(sit, towns_once):
    async with sit(towns_once, tab="verdicts") as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        await seat.press("space", "enter")
        await seat.until(lambda: "Which variables let an intruder find people?" in seat.text)
        assert "Coarsen age first: then at most 3 people are found on average." in seat.text
        assert "gain from it alone" in seat.text
        assert "loss without it" in seat.text


@pytest.mark.slow
async def test_a_run_without_a_study_has_the_dial_on_its_page_of_studies(sit, tmp_path):
    directory = finished_workspace(tmp_path / "workspace", [{**HOUSEHOLD_PLAN, "study": []}], household_survey())
    async with sit(directory, tab="sweep") as seat:
        pane = seat.app.screen.query_one(StudiesPane).query_one(DialPane)
        await seat.until(lambda: pane.dial is not None)
        assert "No study in the plan of this run; 2 and a add one." in seat.text
        assert pane.dial.coarsen_text() in seat.text
        assert seat.app.focused is pane
        known = pane.dial.known
        await seat.press("space")
        assert pane.dial.known != known
        await seat.until(lambda: "by how many" in seat.text or "by how surely" in seat.text)
        assert "m Measure" not in seat.footer, "there is no study to have a measure"
        found = pane.dial.found_by_number_known(pane.dial.main_line.name)
        values = [value for _, value in found]
        assert found[0] == (0, values[0])
        assert len(found) == len(pane.dial.numbers.variables) + 1
        assert values == sorted(values), "who knows more finds at least as many"


@pytest.mark.slow
async def test_a_drawn_number_is_looked_for_in_the_best_window(sit, built):
    async with sit(built, tab="verdicts", size=(160, 50)) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        variables = dial_of(seat).dial.numbers.variables
        (at, drawn) = next((at, one) for at, one in enumerate(variables) if one.windows)
        await seat.press("space", "space", "home", *["right"] * at)
        if drawn.name not in dial_of(seat).dial.known:
            await seat.press("space")
        assert f"[x] {drawn.name}" in seat.text
        assert f"{drawn.name} is drawn: matched" in seat.text
        await seat.press("plus")
        assert f"{drawn.name} ± {drawn.reaches[1]:g}" in seat.text
        await seat.until(lambda: dial_of(seat).dial.counts is not None)
        await seat.until(
            lambda: re.search(rf"With {drawn.name} ± \S+ he finds (most at ±|as many without it)", seat.text)
        )
        assert " TRIAL  if he knows what is ticked" in seat.text
        await seat.press("minus")
        assert f"{drawn.name} is drawn: matched" in seat.text


@pytest.mark.slow
async def test_windows_that_are_too_many_are_one_line(sit, built):
    async with sit(built, tab="verdicts", size=(160, 50)) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        pane = dial_of(seat)
        name = next(one.name for one in pane.dial.numbers.variables if one.windows)
        pane._change(replace(pane.dial, numbers=replace(pane.dial.numbers, most_windows=1)).set_reach(name, 0.0))
        await seat.until(lambda: f"Not counted: the run is too large to try windows of {name}" in seat.text)


@pytest.mark.slow
async def test_a_key_while_the_dial_counts_is_answered_at_once_and_done_once_it_has_counted(sit, built):
    async with sit(built, tab="verdicts", size=(120, 40)) as seat:
        await seat.until(lambda: dial_of(seat).dial is not None)
        pane = dial_of(seat)
        numbers, pane._dial = pane.dial.numbers, None
        assert pane.is_counting
        await seat.press("space")
        assert "Counting whom the intruder can find … Your key is done then." in seat.text
        assert pane.has_focus
        pane._show_numbers(pane._run_id, numbers)
        await seat.press("shift")
        assert pane.variable.is_numeric, "each key of the dial works on the first variable"
        assert f"[ ] {pane.variable.name}" in seat.text

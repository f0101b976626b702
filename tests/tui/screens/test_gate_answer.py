"""The answer of the gate stands first in Findings and Release, and nothing there is greener than it."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import finished_workspace

import sfumato.workspace.service.examination as examining
from sfumato.engine.errors import BadInput
from sfumato.tui.findings.verdicts import VerdictsPane
from sfumato.tui.parts.verdict_board import BoardFold, VerdictBoard
from sfumato.tui.release.release import AgreedContents, FindingDialog, ReleaseScreen
from sfumato.tui.runs.runs import RunsTab
from sfumato.tui.session.gate_answers import ExaminedRun

pytestmark = pytest.mark.slow
RECIPE = {
    "title": "Height and income",
    "variables": {
        "height": {"kind": "continuous", "role": "quasi_identifier"},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive", "bounds": [0, 100_000]},
    },
    "release": {"m": 2, "seed": 7},
    "synthesis": [{"target": "income", "method": "linear_regression", "transform": "log", "predictors": ["age"]}],
    "measure": [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": {"income": "5%"}}],
    "threshold": [
        {"value": "risk.identification.true_match_rate", "max": 0.9},
        {"value": "utility.ecdf.max_abs_difference", "target": "income", "max": 0.9},
    ],
}


@pytest.fixture(scope="session")
def unique_once(tmp_path_factory):
    """Two runs that meet their thresholds though everybody's height is released unchanged, and theirs alone."""
    rng = np.random.default_rng(20)
    age = rng.integers(18, 80, 120)
    income = np.exp(rng.normal(7 + 0.02 * age, 0.4))
    frame = pd.DataFrame({"height": 150 + np.arange(120) / 4, "age": age, "income": income})
    return finished_workspace(tmp_path_factory.mktemp("unique") / "workspace", (RECIPE, RECIPE), frame, "survey.csv")


@pytest.fixture
def unique(unique_once, tmp_path):
    return shutil.copytree(unique_once, tmp_path / "workspace")


@pytest.fixture
def examined(monkeypatch):
    """The runs that were examined, in turn."""
    runs, examine_run = [], examining.examine_run

    def note_and_examine_run(directory, run_id):
        runs.append(run_id)
        return examine_run(directory, run_id)

    monkeypatch.setattr(examining, "examine_run", note_and_examine_run)
    return runs


@pytest.fixture
def unanswered(monkeypatch):
    """A gate that is still looking."""
    for pane in (VerdictsPane, RunsTab):
        monkeypatch.setattr(pane, "compute_in_processes", lambda *_, **__: None)


def green(app):
    """The words that have the ink of success."""
    ink = app.current_theme.success.lower()
    strips = app.screen._compositor.render_strips()
    return [
        part.text
        for strip in strips
        for part in strip
        if part.style is not None and part.style.color is not None and part.style.color.triplet is not None
        and part.style.color.triplet.hex == ink and part.text.strip() and "done" not in part.text
    ]  # fmt: skip


def frame_title(seat):
    """The upper edge of the frame, which has the answer."""
    return seat.text.splitlines()[2]


def asks(seat, answer):
    """Whether the frame has the question with this answer, in brief or the answer alone where the tabs need its room."""
    questions = ("May this leave to the public?", "May this leave?", "Leave?")
    title = frame_title(seat)
    return f"─  {answer}" in title or any(f"{question}  {answer}" in title for question in questions)


def listed(seat):
    """The lines of the list, without what stands beside it."""
    return [line.partition("│")[0].strip() for line in seat.text.splitlines()[3:-2]]


async def test_a_run_that_meets_all_thresholds_and_keeps_unique_columns_may_not_leave(sit, unique, size):
    async with sit(unique, size=size, tab="verdicts") as seat:
        first = " ".join(listed(seat)[:9]).replace("  ", " ")
        assert asks(seat, "✗ NO")
        assert (": 120 of 120 people can be found" in frame_title(seat)) is (size[0] > 80)
        assert all(label in first for label in ("Found ", "How ", "Learnt ", "Change first "))
        assert "120 of 120 people (100 %): each is in a group of fewer than 11" in first
        assert "By height and age, released unchanged." in first
        assert "✗ may not leave" in seat.text.splitlines()[0]
        assert "explains what blocks" in seat.text.splitlines()[-2]
        assert max(map(len, seat.text.splitlines())) <= size[0]
        counts = next(line for line in seat.text.splitlines() if re.search(r"check.* blocks? · ", line))
        # In a narrow list limits that are met give way: alone they would look like the answer.
        assert ("not enough alone: 2 of 2 plan limits met" in counts) is (size[0] > 80), counts
        assert ("plan limit" in counts) is (size[0] > 80)
        assert green(seat.app) == []
        await seat.press("G")
        assert green(seat.app) == []


async def test_before_the_gate_has_answered_nothing_is_green(sit, unique, unanswered, size):
    async with sit(unique, size=size, tab="verdicts") as seat:
        assert listed(seat)[0] == "The gate examines the tables …"
        assert any("2 of 2 plan limits met" in line for line in listed(seat))
        assert "the gate has not answered yet" in seat.text.splitlines()[-2]
        assert green(seat.app) == []
        assert "✓" not in seat.text.splitlines()[0].replace("✓ done", "")
        assert "being examined" in seat.text.splitlines()[0]
        assert "limits met" not in seat.text.splitlines()[0]


async def test_where_the_gate_lets_it_leave_what_is_met_is_green(sit, unique, monkeypatch):
    """The negative control of the two tests above: green is seen where it is allowed."""
    answer = ExaminedRun.release_answer.func
    monkeypatch.setattr(
        ExaminedRun,
        "release_answer",
        property(lambda one: replace(answer(one), may_leave="yes", sentence="Nothing blocks.")),
    )
    async with sit(unique, tab="verdicts", size=(120, 70)) as seat:
        assert asks(seat, "✓ YES")
        assert any("YES" in text for text in green(seat.app))
        board = seat.app.screen.query_one(VerdictBoard)
        assert not any("met" in text for text in green(seat.app)), "limits that are met are folded"
        await seat.press("g")
        for _ in range(60):
            if board.chosen_fold is not BoardFold.PASSES:
                await seat.press("j")
        await seat.press("enter")
        assert any("✓ met" in text for text in green(seat.app))
        assert "releases" in seat.text.splitlines()[-2]


async def test_tables_that_cannot_be_examined_are_not_said_to_be_safe(sit, unique):
    shutil.rmtree(unique / "tables")
    async with sit(unique, tab="verdicts") as seat:
        assert "The gate could not examine the tables, so nothing can be released" in listed(seat)[0]
        assert "Findings: not examined" in seat.text.splitlines()[2]
        assert "  not examined" in seat.text.splitlines()[0], "it is not being examined any more"
        assert green(seat.app) == []


async def test_what_passes_is_folded_and_unfolds(sit, unique):
    async with sit(unique, tab="verdicts", size=(120, 60)) as seat:
        before = listed(seat)
        (folded,) = (line for line in before if "checks pass · 2 limits met" in line)
        assert not any(line.startswith("✓ passes") for line in before)
        open_lines = [line for line in before if line.startswith(("✗ blocks", "! judge", "? unchecked"))]
        await seat.press("g", *["j"] * len(open_lines), "enter")
        unfolded = listed(seat)
        assert sum(line.startswith("✓ passes") for line in unfolded) == int(folded.split()[1])
        assert not any("passes" in text for text in green(seat.app))
        await seat.press("enter")
        assert listed(seat) == before


async def test_enter_explains_a_finding_and_a_verdict(sit, unique):
    async with sit(unique, "g", tab="verdicts") as seat:
        board = seat.app.screen.query_one(VerdictBoard)
        while "found" not in board.chosen_finding.title:
            await seat.press("j")
        shown = await seat.press("enter")
        assert isinstance(seat.app.screen, FindingDialog)
        assert "kept_keys" in shown
        assert "How to fix it" in await seat.press("G")
        await seat.press("escape", "G")
        for _ in range(3):
            if board.chosen_fold is not BoardFold.PASSES:
                await seat.press("k")
        await seat.press("enter", "G")
        for _ in range(60):
            if board.chosen_verdict is None:
                await seat.press("k")
        await seat.press("enter")
        assert "in words" in seat.text


async def test_the_explanation_beside_the_list_is_of_the_finding_under_the_cursor(sit, unique):
    async with sit(unique, "j", tab="verdicts", size=(160, 50)) as seat:
        chosen = seat.app.screen.query_one(VerdictBoard).chosen_finding
        for _ in range(200):
            await seat.press("shift")
            beside = " ".join(line.rpartition("│")[2].strip() for line in seat.text.splitlines()[3:])
            if f": {chosen.title}" in beside:
                break
            await seat.pilot.pause(0.02)
        assert f": {chosen.title}" in beside
        assert chosen.check not in beside, "its name is for waivers, and stands in the dialog where one is written"


async def test_findings_and_release_say_the_same_sentence(sit, unique, examined, size):
    async with sit(unique, size=size, tab="verdicts") as seat:
        assert asks(seat, "✗ NO")
        said = " ".join(listed(seat)[:2])
        assert "120 of 120 people (100 %): each is in a group of fewer than 11" in said
        await seat.press("w")
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert next(filter(None, listed(seat))) == "Before it may leave"
        assert "✗ NO: 120 " in seat.text.splitlines()[2]
        assert "Found" not in "".join(listed(seat)[:9]), "the title and the list say it"
        agreed = str(seat.app.screen.query_one(AgreedContents)._text.content)
        assert "120 of 120 people (100 %) can be found" in " ".join(agreed.split())
        assert "each is in a group of fewer than 11" in " ".join(agreed.split())
        assert green(seat.app) == []
        assert examined == [1], "Release shows the examination that Findings made"


async def test_a_block_that_is_waived_in_release_is_waived_in_findings(sit, unique):
    async with sit(unique, "w", "g", "a", *"agreedwithboard", "enter", tab="verdicts") as seat:
        assert "1 finding waived, with a reason" in seat.text
        await seat.press("4")
        assert sum(line.startswith("waived") for line in listed(seat)) == 1
        assert "? ✗ NO" in frame_title(seat).replace("  ", " "), "another finding blocks still"


async def test_moving_between_runs_examines_each_once(sit, unique, examined):
    async with sit(unique, tab="verdicts") as seat:
        assert examined == [1]
        await seat.press("3", "g", "enter")
        assert sorted(examined) == [1, 2]
        for _ in range(2):
            await seat.press("3", "G", "enter", "3", "g", "enter")
        assert "? ✗ NO" in frame_title(seat).replace("  ", " ")
        assert sorted(examined) == [1, 2]


async def test_another_policy_has_the_run_examined_again(sit, unique, examined):
    async with sit(unique, tab="verdicts") as seat:
        (unique / "policy.toml").write_text("smallest_cell = 20\n", "utf-8")
        await seat.press("w", "escape")
        assert examined == [1, 1]
        await seat.press("3", "4", "w", "escape")
        assert examined == [1, 1]
        assert "? ✗ NO" in frame_title(seat).replace("  ", " ")


@pytest.mark.parametrize("tab", ["results", "records", "data", "plan"])
async def test_a_page_of_a_run_asks_the_gate_where_the_app_starts_there(sit, unique, examined, monkeypatch, tab):
    monkeypatch.setattr("sfumato.tui.app.project.ASK_SECONDS", 0.01)
    async with sit(unique, tab=tab) as seat:
        await seat.until(lambda: "✗ may not leave" in seat.text.splitlines()[0])
        assert examined == [1]
        await seat.press("4")
        assert examined == [1], "Verdicts has the same answer"


async def test_a_page_of_findings_says_that_the_gate_could_not_examine_its_run(sit, unique, monkeypatch):
    def refuse(*_):
        raise BadInput("a table is damaged")

    monkeypatch.setattr(examining, "examine_run", refuse)
    monkeypatch.setattr("sfumato.tui.app.project.ASK_SECONDS", 0.01)
    async with sit(unique, tab="results") as seat:
        await seat.until(lambda: "not examined" in seat.text.splitlines()[0])


async def test_the_list_of_projects_and_every_title_have_the_answer_before_the_limits(sit, unique):
    async with sit(unique) as seat:
        assert "may it leave?" in seat.text
        assert "not asked yet" in seat.text.splitlines()[3]
        await seat.press("1")
        assert "data  run 2  not asked yet" in seat.text.splitlines()[0]
        await seat.press("4")
        await seat.until(lambda: "may not leave" in seat.text.splitlines()[0])
        for key in ("1", "2"):
            assert seat.text != await seat.press(key)
            assert "run 2  ✗ may not leave" in seat.text.splitlines()[0]
        await seat.press("p")
        row = seat.text.splitlines()[3]
        assert "✗ may not leave" in row
        assert "limits met" not in row or row.index("may not leave") < row.index("limits met")


async def test_the_list_of_runs_has_no_tick_for_thresholds(sit, unique, unanswered):
    async with sit(unique, tab="runs") as seat:
        rows = [line for line in listed(seat) if "  2 limits met" in line]
        assert len(rows) == 2
        assert not any("✓" in line for line in rows)
        assert "✓ 2" not in seat.text
        assert "opens Findings: whether run 1 may leave" in seat.text.splitlines()[-2]


async def test_the_list_of_runs_begins_with_the_answer_for_the_run_under_the_cursor(sit, unique, examined, size):
    async with sit(unique, size=size, tab="runs") as seat:
        await seat.until(lambda: "✗ may not leave" in seat.text.splitlines()[2])
        assert examined == [1], "the other run is not asked about before the cursor comes to it"
        rows = {line.split()[0]: line for line in listed(seat) if line.split()[:1] in (["1"], ["2"])}
        assert "✗ may not leave" in rows["1"]
        assert "not asked" in rows["2"]
        assert "120 of 120" in rows["1"]
        assert "120 of 120 people can be found" in seat.text.splitlines()[2]
        assert not green(seat.app)
        await seat.press("g")
        await seat.until(lambda: "not asked" not in seat.text)
        assert sorted(examined) == [1, 2]
        await seat.until(lambda: "un 2 " in seat.text.splitlines()[2])


async def test_the_list_of_runs_says_why_the_gate_could_not_examine_one(sit, unique, monkeypatch):
    def refuse(*_):
        raise BadInput("policy", "nobody can read it")

    monkeypatch.setattr(examining, "examine_run", refuse)
    async with sit(unique, size=(120, 40), tab="runs") as seat:
        words = "nothing of it can be released: policy: nobody can read it"
        glance = seat.app.screen.query_one("#glance")
        await seat.until(lambda: "not examined" in seat.text and words in " ".join(glance.content.plain.split()))
        assert "may leave" not in " ".join(listed(seat)[1:])
        assert not green(seat.app)


async def test_below_the_list_stands_what_differs_from_the_run_before(sit, unique):
    async with sit(unique, size=(120, 40), tab="runs") as seat:
        assert "What differs" not in seat.text, "before the first run there is none"
        await seat.press("g")
        await seat.until(lambda: "What differs from run 1" in seat.text)
        said = seat.app.screen.query_one("#glance").content.plain
        assert "the same as that of run 1" in said
        assert "equal or not computed" in said

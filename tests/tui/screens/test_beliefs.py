"""What the strongest intruder believes, on screen: the ranking, the guesses at a record, how belief moved."""

import shutil

import pytest
from believed import believed_workspace

from sfumato.tui.findings.beliefs import BeliefsDialog, tables_beside
from sfumato.tui.findings.guesses import GuessesDialog
from sfumato.tui.findings.map import axis_limits
from sfumato.tui.manual.help import KeysDialog
from sfumato.tui.parts.page import Dialog
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.reporting.words import number
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.beliefs import belief_measures, read_beliefs, read_record_guesses
from sfumato.workspace.views.records import rank_records
from sfumato.workspace.views.results import read_verdicts
from sfumato.workspace.views.risk_utility import read_risk_utility_map

SECRETS = ("zqxdivorced", "lodger", "tenant", "owner", "married", "widowed")
WIDE = (160, 50)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built_beliefs(tmp_path_factory):
    return believed_workspace(tmp_path_factory.mktemp("believed") / "workspace")


@pytest.fixture
def workspace_with_beliefs(built_beliefs, tmp_path):
    made = shutil.copytree(built_beliefs, tmp_path / "workspace")
    save_state(made, AppState(project=1, run=1, tab="records"))
    return made


@pytest.fixture
def workspace(built_beliefs):
    with Workspace.open(built_beliefs, read_only=True) as opened:
        yield opened


async def test_records_are_ranked_by_the_posterior_of_their_truth_beside_the_prior(
    sit, workspace_with_beliefs, workspace, size
):
    (measure, _) = belief_measures(workspace, 1)
    records = rank_records(workspace, 1, measure)
    async with sit(workspace_with_beliefs, size=size) as seat:
        text = seat.text
        assert "Strongest intruder 1/3 · all 3 datasets · 40 of 90 records" in text
        shown = [line.split() for line in text.splitlines()[4:-1] if line.split()[:1] and line.split()[0].isdigit()]
        lines = records.lines(0, len(shown))
        assert [int(cells[0]) for cells in shown] == [line.record for line in lines]
        assert all(cells[2] == cells[4] == "%" for cells in shown), "chances are per cent, to two decimals"
        assert [float(cells[1]) for cells in shown] == pytest.approx(
            [100 * line.probability for line in lines], abs=0.006
        )
        assert [float(cells[3]) for cells in shown] == pytest.approx([100 * line.prior for line in lines], abs=0.006)
        assert "driver" not in text
        assert "nan" not in text.lower()
        assert not [secret for secret in SECRETS if secret in text]
        text = await seat.press("G")
        assert "nan" not in text.lower()
        assert records.measure.guesses_hash is not None


async def test_enter_shows_the_guesses_and_values_only_after_a_yes(sit, workspace_with_beliefs, workspace):
    (measure, _) = belief_measures(workspace, 1)
    record = rank_records(workspace, 1, measure).lines(0, 1)[0].record
    found = read_record_guesses(workspace, 1, measure, record, with_values=True)
    async with sit(workspace_with_beliefs, "enter", size=WIDE) as seat:
        assert isinstance(seat.app.screen, GuessesDialog)
        assert f"record {record} of run 1" in seat.text
        assert seat.text.count("the truth") == 1 + sum(one.is_right for one in found.guesses)
        assert not [secret for secret in SECRETS if secret in seat.text]
        text = await seat.press("v")
        assert f"Show the values of record {record}" in text
        text = await seat.press("enter")  # the question takes y or n alone
        assert seat.app.notices == ["Enter is no answer here; press y to show, n for no"]
        assert not [secret for secret in SECRETS if secret in text]
        text = await seat.press("n")
        assert isinstance(seat.app.screen, GuessesDialog)
        assert not [secret for secret in SECRETS if secret in text]
        text = await seat.press("v", "y")
        for one in found.guesses:
            assert any(all(str(value) in line for value in one.values.values()) for line in text.splitlines())
        assert f"tenure {found.true_values['tenure']}" in text
        text = await seat.press("v")
        assert not [secret for secret in SECRETS if secret in text]
        assert len(seat.app.notices) == 1  # nothing but that Enter is no answer
        await seat.press("v", "y", "q", "enter")
        assert not [secret for secret in SECRETS if secret in seat.text]


async def test_the_screen_tells_how_belief_moved_at_every_size(sit, workspace_with_beliefs, workspace, size):
    found = [read_beliefs(workspace, 1, one) for one in belief_measures(workspace, 1)]
    async with sit(workspace_with_beliefs, "act:beliefs", size=size) as seat:
        assert isinstance(seat.app.screen, BeliefsDialog)
        assert all(len(line) <= size[0] for line in seat.text.splitlines())
        assert found[0].result_text[:40] in seat.text
        assert "Run 1: what does the strongest intruder learn?" in seat.text
        assert "Who knows all other records and how the release was made guesses" in seat.text
        assert "Belief in the truth" in seat.text
        told = seat.text
        for _ in range(2):
            told += await seat.press("tab")
            told += await seat.press("end")
        assert "Guessed right by the first datasets" in told
        assert "correct after" in told
        assert "region = north" in told
        text = await seat.press("m")
        assert found[1].result_text[:40] in text
        assert "2/2" in text


async def test_tables_stand_beside_each_other_where_they_fit():
    first, second = "a  b\n1  2", "c\n3\n4"
    assert tables_beside([first, second], 20) == "a  b    c\n1  2    3\n        4"
    assert tables_beside([first, second], 8) == f"{first}\n\n{second}"


async def test_a_limit_held_against_the_value_before_the_release_is_a_line_on_the_map(
    sit, workspace_with_beliefs, workspace
):
    found = read_risk_utility_map(workspace, 1)
    (verdict,) = [one for one in read_verdicts(workspace, 1) if one.bound == "max_ratio"]
    of_verdict = [a for a in found.axes if a.key == verdict.value and dict(a.settings).get("prior") == "uniform"]
    (own,) = [a for a in of_verdict if not {"by", "region"} & set(a.settings)]
    place = found.coordinates[own.ident][1].value
    before = found.reference_value(own, 1)
    assert before == pytest.approx(place / verdict.observed)
    assert found.reference_value(own, 2) is None  # another run's baseline is not this one's
    assert axis_limits([verdict], own, before) == [("max", pytest.approx(1.2 * before))]
    save_state(workspace_with_beliefs, AppState(project=1, run=1, tab="map", across=own.ident))
    async with sit(workspace_with_beliefs, size=WIDE) as seat:
        assert f"x limit at most {number(1.2 * before)}" in seat.text
        (drawn, _) = seat.app.screen.query_one("#map").shown_limits
        assert drawn == [("max", pytest.approx(1.2 * before))]


async def test_the_cursor_reads_what_became_of_records(sit, workspace_with_beliefs, workspace):
    (_, uniform) = [read_beliefs(workspace, 1, one) for one in belief_measures(workspace, 1)]
    async with sit(workspace_with_beliefs, "act:beliefs", "m", size=WIDE) as seat:
        text = await seat.press("home", "right")
        assert "before: " in seat.reading
        text = await seat.press("tab", "home")
        assert f"by the first 1 dataset {float(uniform.right_by_first_datasets[1].value):.4g} are guessed right" in text


@pytest.mark.parametrize("keys", [("act:beliefs",), ("enter",), ("act:audit",), ("e",)])
async def test_the_question_mark_tells_the_keys_of_a_dialog_and_closing_it_comes_back(
    sit, workspace_with_beliefs, keys
):
    async with sit(workspace_with_beliefs, *keys, size=WIDE) as seat:
        below = seat.app.screen
        assert isinstance(below, Dialog)
        if keys == ("e",):  # a field is for words
            assert "?" in await seat.press("question_mark")
            assert seat.app.screen is below
            return
        text = await seat.press("question_mark")
        assert isinstance(seat.app.screen, KeysDialog)
        assert "Close" in text
        if keys == ("act:beliefs",):
            assert "Next part" in text
        assert isinstance(seat.app.screen, KeysDialog)
        await seat.press("question_mark")  # once is enough
        await seat.press("q")
        assert seat.app.screen is below


async def test_a_run_without_such_a_measure_offers_no_such_screen(sit, directory):
    async with sit(directory, "enter", "G", "act:beliefs") as seat:
        assert not isinstance(seat.app.screen, BeliefsDialog)

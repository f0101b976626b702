import json
import os
import shutil

import pytest
from textual.widgets import Input

import sfumato.workspace.release.approval as approving
from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.app.projects import ProjectsScreen
from sfumato.tui.parts.dialogs import ConfirmDialog
from sfumato.tui.parts.harm_lines import finding_row_cells
from sfumato.tui.release.release import (
    BELOW_FINDINGS,
    QUIET,
    AgreedContents,
    Explanation,
    FindingDialog,
    FindingGrid,
    ReleaseScreen,
)
from sfumato.tui.session.release_texts import steps_before_release
from sfumato.tui.widgets.grid import HEADER
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.reporting.findings import is_open
from sfumato.workspace.service.release import past_releases
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow


@pytest.fixture
def tables(directory, built):
    """The workspace's tables too: a release reads them."""
    shutil.copytree(built / "tables", directory / "tables")
    return directory


def waived_step(seat):
    """Return the step of the release that says what is waived; empty without one."""
    looked = seat.app.screen._looked
    found = next((one.text for one in steps_before_release(looked) if one.status == "done"), "")
    # The last step names the waivers in its headline, and shows the steps where it has room.
    assert not found or found in seat.text or seat.app.screen._step == "confirm"
    return found


def past(directory):
    workspace = Workspace.open(directory)
    try:
        return past_releases(workspace, 1)
    finally:
        workspace.close()


async def type_in(seat, field, text):
    seat.app.screen.query_one(f"#release-{field}", Input).value = text


async def test_what_goes_out_is_shown_at_every_size(sit, tables, size):
    async with sit(tables, "w", tab="verdicts", size=size) as seat:
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert "Release of run 1 Household survey" in seat.text
        assert "[1 Findings]" in seat.text
        for words in ("w Release", "] Next step", "q Close"):
            assert words in " ".join(seat.footer.split())
        shown = await seat.press("right_square_bracket") + await seat.press("G")
        assert "not met" in shown
        text = " ".join(str(seat.app.screen.query_one("#step-leaves Scroll")._text.content).split())
        order = ("What leaves, and to whom", "3 datasets of 90 records", "replaced income", "unchanged region, visits",
                 "goes to the public, in the folder public/", "stays internal/: risk assessment to sign",
                 "Limits of the plan")  # fmt: skip
        assert [words for words in order if words not in text] == []
        assert sorted(map(text.index, order)) == list(map(text.index, order))
        assert "Before it may leave" not in text, "the first step and the last say it"
        assert max(map(len, seat.text.splitlines())) <= size[0]


async def test_a_short_list_leaves_its_lines_to_the_explanation(sit, tables):
    async with sit(tables, "w", tab="verdicts", size=(80, 24)) as seat:
        await seat.until(lambda: seat.app.screen.grid.row_count > 0)
        grid = seat.app.screen.grid
        await seat.until(lambda: grid.size.height <= grid.row_count + 1)
        assert seat.app.screen.query_one(Explanation).region.y <= grid.region.y + grid.row_count + 2


async def test_the_key_of_the_place_goes_to_the_first_step_and_never_releases(sit, tables):
    """As it does in the other places; w releases. Both once did the same."""
    async with sit(tables, "5", tab="verdicts") as seat:
        assert "[2 What leaves]" in await seat.press("right_square_bracket")
        assert "[1 Findings]" in await seat.press("5")
        assert "[3 Confirm]" in await seat.press("right_square_bracket", "right_square_bracket")
    async with sit(tables, "5", "w", tab="verdicts") as seat:
        assert seat.app.focused.id == "release-reason"
    assert past(tables) == []


async def test_what_a_check_looks_for_is_said_in_words(sit, tables):
    async with sit(tables, "5", tab="verdicts") as seat:
        assert "limits of the plan" in seat.text
        listed = [line.partition("│")[0] for line in seat.text.splitlines()]
        assert not any("unmet_thresholds" in line for line in listed)


async def test_keys_alone_lead_to_a_release_with_its_reason(sit, tables, tmp_path):
    async with sit(tables, "w", tab="verdicts") as seat:
        await seat.press("act:format")
        assert "datasets as parquet" in seat.text
        await seat.press("w")
        assert seat.app.focused.id == "release-reason"
        await seat.press(*"teachingstudents", "enter")
        assert seat.app.focused.id == "release-directory"
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.press("enter")
        assert isinstance(seat.app.screen, ConfirmDialog)
        await seat.press("enter", "enter")
        assert isinstance(seat.app.screen, ConfirmDialog), "enter is no answer to what cannot be undone"
        assert "press y to release, n for no" in seat.app.notices[-1]
        assert not (tmp_path / "out").exists()
        await seat.press("n")
        assert isinstance(seat.app.screen, ReleaseScreen)
        await seat.press("enter", "y")
        assert "released to" in seat.app.notices[-1]
        assert "[2 What leaves]" in seat.text
        assert f"Writtento{tmp_path / 'out'}:itsfolderpublic/leaves" in "".join(seat.text.split())
        assert 'because "teachingstudents"' in seat.text
    assert json.loads((tmp_path / "out/public/manifest.json").read_text("utf-8"))["format"] == "parquet"
    (one,) = past(tables)
    assert (one.reason, one.form) == ("teachingstudents", "parquet")


async def test_the_last_step_says_what_leaves_from_whom_it_can_be_found_and_to_where(sit, tables, tmp_path, size):
    async with sit(tables, "w", tab="verdicts", size=size) as seat:
        screen = seat.app.screen
        await seat.until(lambda: screen._looked is not None)
        sentence = screen._looked.release_answer.sentence
        await seat.press("w")
        agreed = screen.query_one(AgreedContents)
        text = " ".join(str(agreed._text.content).split())
        assert "3 datasets of 90 records" in text
        assert "dataset-SYNTHETIC-01.csvtodataset-SYNTHETIC-03.csv" in text.replace(" ", "")
        assert "replaced income" in text
        assert "unchanged region, visits" in text
        assert "".join(sentence.split()) in text.replace(" ", "")
        assert "goes to the public, into public/ of a folder that you name" in text
        await type_in(seat, "reason", "agreed with the board")
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.until(lambda: "public/ of" in (t := "".join(str(agreed._text.content).split())) or "out" in t)
        assert f"intopublic/of{tmp_path / 'out'}" in "".join(str(agreed._text.content).split())
        await seat.app.screen.run_action("write")
        await seat.press("shift")
        question = seat.app.screen
        assert isinstance(question, ConfirmDialog)
        asked = " ".join(question._consequence.split())
        assert "Leaves: 3 datasets of 90 records" in asked
        assert f"Who can be found: {sentence}" in asked
        assert f"Goes to the public, into public/ of {tmp_path / 'out'}" in asked
        await seat.press("n")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
async def test_what_was_typed_for_a_release_is_there_again(sit, tables, tmp_path):
    """Escape once lost a justification of several sentences."""
    async with sit(tables, "w", tab="verdicts") as seat:
        await type_in(seat, "reason", "agreed with the board")
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.press("escape")
        assert isinstance(seat.app.screen, ProjectScreen)
        await seat.press("5")
        fields = [seat.app.screen.query_one(f"#release-{name}").value for name in ("reason", "directory")]
        assert fields == ["agreed with the board", str(tmp_path / "out")]


async def test_a_reason_without_words_is_asked_for_again(sit, tables, tmp_path):
    async with sit(tables, "w", tab="verdicts") as seat:
        await type_in(seat, "reason", "7")
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.press("w")
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert "needs a reason in words" in seat.app.notices[-1]
        assert seat.app.focused.id == "release-reason"
    assert not (tmp_path / "out").exists()


async def test_a_release_that_is_refused_can_be_corrected(sit, tables, tmp_path):
    async with sit(tables, "w", tab="verdicts") as seat:
        await type_in(seat, "reason", "agreed with the board")
        await type_in(seat, "directory", str(tmp_path))
        await seat.press("w", "y")
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert "is not an empty directory" in seat.app.notices[-1]
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.app.screen.run_action("write")
        await seat.press("shift", "y")
        await seat.press("q", "w", "right_square_bracket")
        assert 'because "agreed with the board"' in seat.text
        await seat.press("right_square_bracket")
        assert seat.app.focused.id == "release-directory"
        await seat.press("escape")
        assert isinstance(seat.app.screen, ProjectScreen)
    assert len(past(tables)) == 1


@pytest.mark.parametrize("down", [0, 1, 2])
async def test_only_a_run_that_is_done_is_released(sit, directory, down):
    async with sit(directory, "g", *["j"] * down, "w", tab="runs") as seat:
        assert isinstance(seat.app.screen, ProjectScreen)
        assert "Only a run that is done" in seat.app.notices[-1]


async def test_the_palette_offers_the_release_of_the_run_under_the_cursor(sit, tables):
    async with sit(tables, "G", tab="runs") as seat:
        commands = {
            command.title.partition("   ")[0]: command for command in seat.app.get_system_commands(seat.app.screen)
        }
        await commands["Release"].callback()
        await seat.press("shift")
        assert isinstance(seat.app.screen, ReleaseScreen)


async def test_the_findings_are_shown_and_one_is_explained(sit, tables, size):
    async with sit(tables, "w", tab="verdicts", size=size) as seat:
        assert "limits of the plan" in seat.text
        assert "How to fix it" in seat.text or size == (80, 24)
        assert "✗ NO" in seat.text.splitlines()[2], "the same verdict as in Findings"
        assert "2 What leaves 3 Confirm" in seat.text.splitlines()[2], "no step is cut"
        assert max(map(len, seat.text.splitlines())) <= size[0]
        await seat.press("G", "k", "enter")
        assert isinstance(seat.app.screen, FindingDialog)
        await seat.press("escape", "g", "enter")
        assert seat.app.focused.id == "release-waiver"
        assert "Why may it leave in spite of " in seat.text
        await seat.press("escape")
        assert isinstance(seat.app.screen, ReleaseScreen)


def given_policy(directory, text):
    (directory / "policy.toml").write_text(text, "utf-8")


def blocking(directory):
    with Workspace.open(directory) as workspace:
        examination = examine_release(workspace, plan_release(workspace, 1), read_policy_of_workspace(directory))
    return [one.check for one in examination.lead_findings if one.status == "block"]


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_keys_alone_waive_what_blocks_and_the_release_has_the_waivers(sit, tables, tmp_path, size):
    keys = blocking(tables)
    assert "unmet_thresholds" in keys
    async with sit(tables, "w", tab="verdicts", size=size) as seat:
        assert "enter Justify" in seat.footer
        for row, key in enumerate(keys):
            await seat.press("g", *["j"] * row, "enter")
            assert "Why may it leave in spite of " in seat.text
            assert key not in seat.text, "a check has a title"
            await seat.press(*f"knowntoeverybody{row}", "enter")
            assert type(seat.app.focused).__name__ == "FindingGrid"
        assert "! NO, unless a person overrules it" in seat.text.splitlines()[2]
        assert waived_step(seat) == f"{len(keys)} finding{'s' * (len(keys) > 1)} waived, with a reason"
        assert sum(line.strip("│ ").startswith("waived ") for line in seat.text.splitlines()) == len(keys)
        assert max(map(len, seat.text.splitlines())) <= size[0]
        assert f"Release run 1 with {len(keys)} blocks waived by" in await seat.press("right_square_bracket", "enter")
        assert "Justification (optional)" in seat.text
        assert seat.app.focused.id == "release-directory"
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.press("enter", "y")
        assert "released to" in seat.app.notices[-1]
    kept = json.loads((tmp_path / "out/internal/examination.json").read_text("utf-8"))
    assert {one["check"]: one["reason"] for one in kept["waivers"]} == {
        key: f"knowntoeverybody{row}" for row, key in enumerate(keys)
    }


async def test_a_waiver_is_taken_back_and_needs_a_reason(sit, tables):
    async with sit(tables, "w", "g", "a", tab="verdicts") as seat:
        await seat.press("enter")
        assert "needs a reason" in seat.app.notices[-1]
        await seat.press("a", "\u3164", "1", "enter")
        assert "needs a reason in words" in seat.app.notices[-1]
        assert waived_step(seat) == ""
        await seat.press("a", *"knowntoeverybody", "escape")
        assert waived_step(seat) == ""
        await seat.press("a", *"knowntoeverybody", "enter")
        assert waived_step(seat) == "1 finding waived, with a reason"
        await seat.press("escape", "w")
        assert waived_step(seat) == "1 finding waived, with a reason", "it is known when the place is opened again"
        await seat.press("a", "ctrl+u", "enter")
        assert "is waived no longer" in seat.app.notices[-1]
        assert waived_step(seat) == ""
        shown = await seat.press("right_square_bracket", "right_square_bracket")
        assert "Required: why may it leave in spite of" in shown
        todo = str(seat.app.screen.query_one(AgreedContents)._text.content)
        assert "block" in todo.partition("Before it may leave")[2]
        assert " enter " not in todo, "keys of the other steps do not work here"


async def test_what_does_not_block_is_not_waived(sit, tables):
    async with sit(tables, "w", "G", "a", tab="verdicts") as seat:
        assert seat.app.notices[-1] == "What passes does not block this release"
        await seat.press("enter", "G", "a")
        assert seat.app.notices[-1].endswith("does not block this release")
        assert seat.app.notices[-1] != "What passes does not block this release"


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ('[approval]\nwaivers = ["nobody-here"]\n', "may not waive findings; the policy lets nobody-here"),
        ("[findings.unmet_thresholds]\nwaivable = false\n", "unmet_thresholds cannot be waived, says the policy"),
    ],
)
async def test_a_waiver_that_the_policy_does_not_let_is_refused(sit, tables, tmp_path, policy, said):
    given_policy(tables, policy)
    row = blocking(tables).index("unmet_thresholds")
    async with sit(tables, "w", tab="verdicts") as seat:
        before = len(seat.app.notices)
        await seat.press("g", *["j"] * row, "a")
        assert said in seat.app.notices[-1]
        assert len(seat.app.notices) == before + 1
        await type_in(seat, "reason", "all the same")
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.press("w")
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert said in seat.app.notices[-1]
    assert not (tmp_path / "out").exists()


OTHER = 4_000_001


@pytest.fixture
def second(tables, tmp_path, write_office_policy):
    """The workspace with a policy that asks for a second person, and the directory for requests."""
    (tmp_path / "asked").mkdir()
    write_office_policy(f'[approval]\nsecond_person = true\ndirectory = "{tmp_path}/asked"\napprovers = ["{OTHER}"]\n')
    return tables


@pytest.fixture
def answer(monkeypatch):
    """Answer the request of a directory as another account."""
    owners, read = {}, approving._read_with_owner
    monkeypatch.setattr(
        approving,
        "_read_with_owner",
        lambda path: (read(path)[0], owners.get(path.name, read(path)[1]), *read(path)[2:]),
    )

    def give(directory, decision, reason):
        (request,) = directory.glob("*.request.json")
        with monkeypatch.context() as patch:
            patch.setattr(os, "geteuid", lambda: OTHER)
            owners[approving.decide_request(request, decision, reason).name] = OTHER
        return json.loads(request.read_text("utf-8"))

    return give


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_keys_alone_ask_a_second_person_and_take_the_answer(sit, second, answer, tmp_path, size):
    async with sit(second, "w", tab="verdicts", size=size) as seat:
        shown = await seat.press("right_square_bracket") + "".join([await seat.press("ctrl+d") for _ in range(3)])
        assert "was not requested" in shown
        await seat.press("left_square_bracket")
        await seat.press("w")
        assert "was not requested" in seat.app.notices[-1]
        await seat.press("g", "a", *"knowntoeverybody", "enter", "act:request")
        assert seat.app.focused.id == "release-reason"
        await seat.press(*"teachingstudents", "enter", "y")
        assert "sfumato approve" in seat.app.notices[-1]
        assert waived_step(seat) == "1 finding waived, with a reason"
        await seat.press("act:answer")
        assert "waits for another account" in seat.app.notices[-1]
        said = answer(tmp_path / "asked", "approved", "looked at it")
        assert (said["reason"], list(said["waive"].values())) == ("teachingstudents", ["knowntoeverybody"])
        await seat.press("act:answer")
        assert seat.app.notices[-1].endswith(f'{OTHER} approved it: "looked at it"')
        seat.app.screen.go_to_step("findings")
        await seat.press("g", "a")
        assert "request it again" in seat.app.notices[-1]
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.press("w", "y")
        assert "released to" in seat.app.notices[-1]
    kept = json.loads((tmp_path / "out/internal/examination.json").read_text("utf-8"))
    assert kept["approval"]["approved_by"] == str(OTHER)


async def test_a_refusal_of_the_second_person_is_told_and_holds(sit, second, answer, tmp_path):
    async with sit(second, "w", "act:request", *"teachingstudents", "enter", "y", tab="verdicts") as seat:
        answer(tmp_path / "asked", "refused", "it is too early")
        await seat.press("act:answer")
        assert 'refused the release: "it is too early"' in seat.app.notices[-1]
        await type_in(seat, "directory", str(tmp_path / "out"))
        await seat.app.screen.run_action("write")
        await seat.press("shift")
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert 'refused the release: "it is too early"' in seat.app.notices[-1]
    assert not (tmp_path / "out").exists()


async def test_where_no_second_person_is_asked_no_key_asks(sit, tables):
    async with sit(tables, "w", tab="verdicts") as seat:
        assert "Request" not in seat.footer
        before = seat.text
        assert await seat.press("act:request", "act:answer") == before


@pytest.mark.parametrize("size", [(120, 40), (160, 50), (100, 30)])
async def test_what_leaves_stands_below_the_findings_where_there_is_room(sit, tables, size):
    async with sit(tables, "w", tab="verdicts", size=size) as seat:
        screen = seat.app.screen
        await seat.until(lambda: screen._looked is not None)
        below = screen.query_one("#release-below")
        assert below.display is (size[0] >= 116)
        top = [line for line in seat.text.splitlines()[3:] if line.strip("│ ")]
        assert "Before it may leave" in top[0], "on top"
        assert ("3 datasets of 90 records" in seat.text) is below.display
        listed = sum(is_open(one) for one in screen._looked.lead_findings) + 1
        assert screen.query_one("FindingGrid").size.height > listed or not below.display


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_each_step_before_a_release_stands_on_top_with_its_sign_and_its_key(sit, tables, size):
    async with sit(tables, "5", tab="verdicts", size=size) as seat:
        await seat.until(lambda: seat.app.screen._looked is not None)
        lines = seat.text.splitlines()
        begin = next(at for at, line in enumerate(lines) if "Before it may leave" in line) + 1
        steps = [line.strip("│ ") for line in lines[begin : begin + 4]]
        assert steps[0].startswith("✗ enter ")
        assert any(line.startswith("○ w ") and "name an output folder" in line for line in steps)


async def test_a_finding_is_explained_in_sections_what_to_do_first_without_keys_and_lists_of_records(sit, tables):
    async with sit(tables, "5", tab="verdicts", size=(120, 40)) as seat:
        await seat.until(lambda: "What was found" in seat.text)
        text = str(seat.app.screen.query_one(Explanation)._text.content)
        heads = [text.index(head) for head in ("How to fix it", "What was found", "Why it counts")]
        assert heads == sorted(heads)
        assert seat.app.screen.current_finding.check not in text
        assert "records: 1, " not in text


async def test_the_key_of_projects_goes_to_the_projects(sit, tables):
    async with sit(tables, "5", "p", tab="verdicts") as seat:
        await seat.until(lambda: isinstance(seat.app.screen, ProjectsScreen))


async def test_a_release_of_tables_alone_says_so_in_every_step(sit, tabled):
    async with sit(tabled, "w", tab="verdicts") as seat:
        assert isinstance(seat.app.screen, ReleaseScreen)
        await seat.until(lambda: "datasets as" not in seat.text and "Release of run 1" in seat.text)
        shown = await seat.press("right_square_bracket") + await seat.press("G")
        assert "3 tables, protected together, of" in shown
        assert "a file each, what they hide" in " ".join(shown.split())
        assert "sign the risk assessment" not in " ".join(shown.split())
        shown = await seat.press("right_square_bracket")
        assert "3 tables, protected together" in " ".join(shown.split())
        assert "dataset" not in shown


@pytest.mark.slow
async def test_below_the_findings_stand_in_a_quiet_ink_what_leaves_who_has_signed_and_the_files(sit, tables):
    async with sit(tables, "w", tab="verdicts", size=(160, 70)) as seat:
        screen = seat.app.screen
        below = screen.query_one("#release-below")
        await seat.until(lambda: "The files" in below.content.plain)
        said = " ".join(below.content.plain.split())
        order = ("What leaves", "released not yet", "second person the policy asks for none",
                 "The files", "public/ dataset-SYNTHETIC-01.csv to 03.csv: 90 records each, 3 columns: region, visits, income",
                 "internal/ risk-assessment.html: to sign")  # fmt: skip
        places = [said.find(one) for one in order]
        assert -1 not in places, order[places.index(-1)]
        assert places == sorted(places)
        assert "First page" not in said, (
            "the title of the frame has the answer, and the steps and the list what is open"
        )
        assert {QUIET in str(span.style) for span in below.content.spans} == {True}
        blank = screen.query_one(FindingGrid).size.height - HEADER - screen.grid.row_count
        assert blank == BELOW_FINDINGS, "blank lines set it apart"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 50)])
async def test_no_step_finding_or_label_is_cut(sit, tables, size):
    async with sit(tables, "5", tab="verdicts", size=size) as seat:
        screen = seat.app.screen
        await seat.until(lambda: screen._looked is not None and screen.grid.row_count > 0)
        await seat.press("shift")
        shown = " ".join(line.strip("│ ") for line in seat.text.splitlines())
        assert [one.text for one in steps_before_release(screen._looked) if one.text not in shown] == []
        titles = [one.title for one in screen._looked.lead_findings if is_open(one)]
        listed = [title for title in titles if title in shown]
        assert len(listed) >= min(len(titles), 9), "the list keeps the lines, and the explanation the last ones"
        assert not any("…" in line.partition("┃")[0][:78] for line in seat.text.splitlines()[3:])
        explained = screen.query_one(Explanation)
        assert explained.region.bottom <= size[1] - 2, "above the lower edge of the frame"
        assert explained.size.height >= 2
        await seat.press("w")
        label = " ".join(str(screen.query_one("#reason-label").render()).split())
        assert label in " ".join(" ".join(line.strip("│ ") for line in seat.text.splitlines()).split())


def test_a_number_without_a_unit_is_named_where_the_limit_has_no_room():
    excess = Finding(
        "membership_excess", "warn", "guessing", "too much", compared_value=0.1001, limit=0.1, unit="excess by chance"
    )
    assert finding_row_cells(excess, is_waived=False, people=None)["found"] == "excess 0.1001"

"""The menus of plain mode: from a file to a release by lines alone, and every act reached by random answers without a traceback."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
from prepared_tables import HOUSEHOLD_PLAN, household_survey
from prepared_workspaces import enter_recipe, finished_workspace

import sfumato.tui.session.importing
import sfumato.workspace.jobs.processes
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.plain import project_list
from sfumato.tui.plain.mode import hold_conversation, places_menu
from sfumato.tui.plain.session import PlainSession
from sfumato.tui.plain.talk import DRAWING_CHARACTERS, Conversation, ConversationEnded
from sfumato.workspace.audit import user
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.service.release import past_releases
from sfumato.workspace.store.runs import RunState, find_run, list_project_summaries, list_runs
from sfumato.workspace.store.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]

EVIL = (
    "\x1b]52;c;b3duZWQ=\x07\x1b[8m\x1b[31m\x9b5m\u202edaer\u2066\u200b\r\n1. Release everything\n\x08\u2028│ ├─┤ 調査"
)
ROWS = "\n".join(
    f"{'north' if i % 3 else 'south'},{20 + i % 37},{(i * 37) % 91},{'yes' if i % 4 else 'no'}" for i in range(240)
)
LISTED = re.compile(r"\d+\. ")


@pytest.fixture
def demo(study: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo runs the small study."""
    monkeypatch.setattr(project_list, "DEMO", str(study))
    return study


@pytest.fixture(autouse=True)
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a file of 240 people; what another process would do is done in this one."""

    def call(function: Callable[..., object], *values: object, what: str, seconds: float = 0) -> object:
        return function(*values)

    for module in (sfumato.tui.session.importing, sfumato.workspace.jobs.processes):
        monkeypatch.setattr(module, "call_in_process", call)
    Path("people.csv").write_text(f"town,age,pay,smoker\n{ROWS}\n")
    return home


def talked(answers: Sequence[str], *, script: bool = True, directory: str = "w") -> tuple[int, list[str]]:
    """The status and the lines of a conversation with these answers."""
    out = io.StringIO()
    with Workspace.create(Path(directory)) as workspace:
        talk = Conversation(io.BytesIO("".join(f"{one}\n" for one in answers).encode()), out, script=script)
        with pytest.raises(ConversationEnded) as ended:
            hold_conversation(PlainSession(talk, workspace, jobs=1))
    return ended.value.status, out.getvalue().splitlines()


IMPORT = ["Projects", "Import a file", "people.csv", "", "", "back"]
ROLES = [
    "Data", "Set a role", "town", "quasi-identifier", "Set a role", "age", "quasi-identifier", "Set a role", "pay", "sensitive",
    "Set a kind", "pay", "continuous", "Include or exclude", "smoker", "yes", "List variables", "back",
]  # fmt: skip
DRAFT = [
    "Plan",
    "Draft a plan",
    "synthesis",
    "public",
    "no",
    "2",
    "yes",
    "Set a value",
    "release.m=3",
    "List the steps",
    "back",
]
RUN = ["Runs", "Start a run", "yes", "List runs", "back"]
FINDINGS = [
    "Findings", "Verdicts", "", "Explain a number", "", "1", "Records at risk", "", "1", "no", "What to change", "", "Numbers", "", "1",
    "no", "What the intruder knows", "", "Done", "back",
]  # fmt: skip


CHECK = ["Projects", "Check an anonymised file", "already.csv", "age,sex", "disease"]


def test_one_anonymised_file_is_checked_in_lines(home: Path) -> None:
    rows = ["<50,m,flu", "<50,m,cold", ">=50,f,flu", ">=50,f,cold", "*,*,hiv", "*,*,hiv"]
    (home / "already.csv").write_text("\n".join(["age,sex,disease", *rows]) + "\n")
    status, lines = talked([*CHECK, "2", "2", "", "page.md", "back", "quit"])
    assert status == 0, lines
    assert "age: <50, <50, >=50." in lines
    # Every class has two diseases, and both suppressed records have hiv.
    assert "1 of 2 limits is not met: l_distinct of disease." in lines
    assert "met: k 2, at least 2." in lines
    assert "disease, suppressed: 1 different value, entropy l 1, distance t 0.667." in lines
    assert "do not say that the file is safe" in (home / "page.md").read_text()
    status, lines = talked([*CHECK, "", "", "", "page.md"])
    assert status == 1
    assert any("exists, or lies in no directory" in line for line in lines)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([*CHECK[:3], "agee"], 'There is no column "agee" left; did you mean "age"?'),
        ([*CHECK[:4], "age"], 'There is no column "age" left'),
        ([*CHECK, "1"], "1 is not a whole number from 2 on."),
        ([*CHECK, "", "many"], '"many" is no number.'),
        ([*CHECK, "", "", "7"], "7 is not a number above 0, at most 1."),
    ],
)
def test_a_wrong_answer_about_a_file_is_said(home: Path, answers: list[str], said: str) -> None:
    (home / "already.csv").write_text("age,sex,disease\n1,m,flu\n1,m,flu\n")
    status, lines = talked(answers)
    assert status == 1
    assert any(said in line for line in lines), lines


def write_fixed_widths(path: Path) -> None:
    """Write records of 25 characters: number, age, sex, region and income."""
    regions = ["North", "South", "East", "West"]
    lines = (
        f"{i:05} {18 + i * 7 % 70}{'MF'[i % 2]}{regions[i * 5 % 4]:7}{10_000 + 37.5 * i:9.2f}" for i in range(1, 300)
    )
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("answers", "columns"),
    [
        (["6,2,1,7,9", "id,age,sex,region,income"], {"age", "sex", "region", "income"}),
        (["", ""], {"column_2"}),
        (["blanks"], {"column_2", "column_3"}),
    ],
)
def test_a_table_of_fixed_widths_is_asked_about(home: Path, answers: list[str], columns: set[str]) -> None:
    write_fixed_widths(home / "fixed.dat")
    status, lines = talked(["Projects", "Import a file", "fixed.dat", "", *answers, "", "back", "quit"])
    assert status == 0, lines
    assert any("looks like a table of fixed widths" in line for line in lines)
    assert columns <= {line.partition(":")[0] for line in lines}


@pytest.mark.parametrize(
    ("answers", "said"),
    [(["2;1"], "is no number of characters"), (["6,2,1,7,9", "age,sex"], "2 names for 5 widths: give one for each.")],
)
def test_wrong_widths_are_said(home: Path, answers: list[str], said: str) -> None:
    write_fixed_widths(home / "fixed.dat")
    status, lines = talked(["Projects", "Import a file", "fixed.dat", "", *answers])
    assert status == 1
    assert any(said in line for line in lines), lines


def test_a_kind_of_dates_asks_how_they_are_written(home: Path) -> None:
    rows = "\n".join(f"{1 + i % 12:02}/{1 + i * 7 % 12:02}/{1990 + i % 30},{i % 7}" for i in range(80))
    (home / "people.csv").write_text(f"day,visits\n{rows}\n")
    in_doubt = [*IMPORT[:-1], "", IMPORT[-1]]
    asked = ["Data", "Set a kind", "day", "date", "mm/dd/yyyy", "Set a kind", "day", "date", "", "back"]
    status, lines = talked([*in_doubt, *asked])
    assert status == 0, lines
    assert "day: read as dd/mm/yyyy, which other orders fit too: date:mm/dd/yyyy." in "\n".join(lines)
    assert lines.count("Form: mm/dd/yyyy.") == 2, "the second time it is the default"
    wrong, lines = talked([*in_doubt, "Data", "Set a kind", "day", "date", "tt.mm.jjjj"], directory="other")
    assert wrong == 1
    assert any("no form of a date" in line for line in lines)


def test_the_first_rows_are_shown_with_their_reading_only_after_a_question_and_before_anything_is_stored(
    home: Path,
) -> None:
    start = ["Projects", "Import a file", "people.csv", ""]
    _, lines = talked([*start, "", "back", "quit"], directory="other")
    assert not any("Row 1, confidential" in line for line in lines), "an empty line shows nothing"
    _, lines = talked([*start, "yes", "no", "back", "quit"])
    assert "town: read as binary, other, 0 missing values." in lines
    at = lines.index("Row 1, confidential: town south, age 20, pay 0, smoker no.")
    assert [line.partition(",")[0] for line in lines[at : at + 10]] == [f"Row {i}" for i in range(1, 11)]
    assert "Nothing is imported." in lines
    with Workspace.open(Path("w"), read_only=True) as workspace:
        assert list_project_summaries(workspace) == []
    _, lines = talked([*start, "yes", "", "back", "quit"])
    assert any("people.csv: 240 records in project people" in line for line in lines)


def test_a_question_about_a_column_quotes_no_value_unless_rows_are_shown(home: Path) -> None:
    rows = "\n".join(f"{1 + i % 12:02}/{1 + i * 7 % 12:02}/{1990 + i % 30},{i % 7}" for i in range(80))
    (home / "people.csv").write_text(f"day,visits\n{rows}\n")
    start = ["Projects", "Import a file", "people.csv", ""]
    _, lines = talked([*start, "", "date:mm/dd/yyyy", "back", "quit"])
    assert not any("01/01/1990" in line for line in lines)
    _, lines = talked([*start, "yes", "date:mm/dd/yyyy", "yes", "back", "quit"], directory="other")
    assert any(line.startswith("Row 1, confidential: day 01/01/1990") for line in lines)


def lines_after(lines: Sequence[str], start: str) -> list[str]:
    at = next(place for place, line in enumerate(lines) if line.startswith(start))
    return list(lines[at + 1 :])


def blocks_in(lines: Sequence[str]) -> list[str]:
    """The checks that block, as the findings of the gate list them."""
    return [match[1] for line in lines if (match := re.fullmatch(r"blocks: .* \((\w+)\)", line))]


def test_a_file_becomes_a_release_by_lines_alone() -> None:

    status, lines = talked([*IMPORT, *ROLES, *DRAFT, *RUN, *FINDINGS])
    assert status == 0, lines[-5:]
    with Workspace.open(Path("w")) as workspace:
        (project,) = list_project_summaries(workspace)
        draft = find_draft(workspace, project.id)
        assert draft is not None
        (run,) = list_runs(workspace)
        assert run.state is RunState.DONE
        assert run.recipe.m == 3
        assert run.recipe_toml.count('role = "quasi_identifier"') == 2
        assert "smoker" not in run.recipe.schema.names
    assert "town: role quasi-identifier, was other." in lines
    assert "2. age: quasi-identifier, count, no missing values" in lines
    assert "Set: m = 3 (was m = 2)." in lines
    assert any(re.match(r"Run 1 is done after .*thresholds? ", line) for line in lines)
    explained = [line.partition(":")[0] for line in lines_after(lines, "Explain which number?")]
    order = ["In words", "Good is", "How sure", "Verdict", "Definition", "Source", "Key"]
    assert [one for one in explained if one in order][: len(order)] == order

    status, lines = talked(["Release", "Findings of the gate", "1", "What leaves", "1", "Past releases", ""])
    assert status == 0
    assert "Run 1, people: 0 releases." in lines
    blocks = blocks_in(lines)
    waivers = [word for check in blocks for word in ("Waive a finding", "1", check, "agreed with the data owner")]

    if blocks:
        status, refused = talked(["Release", "Release", "1", "csv", "out", "yes"])
        assert status == 1
        assert "Stopped at line 3 of the input" in refused[-1]
        assert blocks[0] in refused[-2]
        assert not Path("out").exists()

    status, lines = talked(["Release", *waivers, "Release", "1", "csv", "out", "no"])
    assert status == 0
    assert "Nothing is released." in lines
    assert not Path("out").exists()

    status, lines = talked(["Release", *waivers, "Release", "1", "csv", "out", "yes", "Past releases", "1"])
    assert status == 0
    headline = (
        f"with {len(blocks)} block{'s' * (len(blocks) != 1)} waived by {user()}" if blocks else "which no finding"
    )
    question = next(line for line in lines if line.startswith("Release run 1, people, "))
    agreed = lines[: lines.index(question)]
    for begins in ("Leaves: ", "Replaced: ", "Who can be found: ", "Goes: to the public, into public/ of ", "Stays: "):
        assert any(line.startswith(begins) for line in agreed), begins
    assert headline in question
    assert "default: no." in question
    assert f"{Path('out').absolute()}?" in question
    assert (Path("out") / "public" / "manifest.json").is_file()
    assert len(list((Path("out") / "public").glob("dataset*.csv"))) == 3
    assert (Path("out") / "internal" / "report.html").is_file()
    with Workspace.open(Path("w")) as workspace:
        (past,) = past_releases(workspace, 1)
        assert past.user == user()
    assert any(re.match(rf"Released \d{{4}}-\d\d-\d\d \d\d:\d\d UTC by {re.escape(user())}\.", line) for line in lines)


def test_a_script_whose_act_fails_does_nothing_of_what_follows() -> None:
    """The plan has no steps yet: the run is refused, and the answers for it do not delete or release anything."""
    status, lines = talked([*IMPORT, "Runs", "Start a run", "yes", "Delete a run", "1", "yes"])
    assert status == 1
    assert "cannot be run yet" in lines[-2]
    assert f"Stopped at line {len(IMPORT) + 2} of" in lines[-1]
    with Workspace.open(Path("w")) as workspace:
        assert list_runs(workspace) == []


def test_a_setting_that_cannot_be_is_refused_and_the_plan_stays() -> None:
    assert talked([*IMPORT, *ROLES, *DRAFT])[0] == 0
    with Workspace.open(Path("w")) as workspace:
        before = find_draft(workspace, 1)
    for wrong in ("release.m=0", "release.mm=3", "measure[99].known=1", "title.x=1", "synthesis[0].predictors=pay"):
        status, lines = talked(["Plan", "Set a value", wrong])
        assert status == 1
        assert lines[-2].startswith("Not done: ")
        assert lines[-2].endswith("The plan is unchanged.")
    with Workspace.open(Path("w")) as workspace:
        assert find_draft(workspace, 1) == before


def test_a_release_from_tables_is_a_goal_of_its_own() -> None:
    Path("people.csv").write_text("town,age,pay,smoker\n" + f"{ROWS}\n" * 10)
    status, lines = talked([*IMPORT, *ROLES, "Plan", "Draft a plan", "tables", "public", "2", "yes"])
    assert status == 0, lines[-5:]
    with Workspace.open(Path("w")) as workspace:
        draft = find_draft(workspace, 1)
        assert draft is not None
        recipe = Recipe.from_toml(draft.toml)
    (step,) = recipe.synthesis
    assert (step.method.key, recipe.m) == ("synthesis.margins", 2)


@pytest.mark.usefixtures("demo")
def test_values_are_shown_only_after_a_question_whose_default_is_no() -> None:
    quiet = talked(["Projects", "Run the demo", "yes", "back", "Findings", "Records at risk", "", "1", ""])[1]
    shown = talked(["Findings", "Records at risk", "", "1", "yes"])[1]
    assert not [line for line in quiet if "confidential: " in line]
    values = [line for line in shown if re.match(r"Record \d+, confidential: ", line)]
    assert len(values) == 3
    assert all("age" in line for line in values)


@pytest.mark.usefixtures("demo")
def test_what_the_intruder_knows_is_turned_in_sentences() -> None:
    start = ["Projects", "Run the demo", "yes", "back", "Findings", "What the intruder knows", ""]
    status, lines = talked([*start, "region", "age", "1", "age", "3", "Done", "back"])
    assert status == 0, lines
    known = [line.removeprefix("The intruder knows ") for line in lines if line.startswith("The intruder knows ")]
    assert known[0].startswith("region, age, ")
    assert known[1].startswith("age, ")
    assert "age" not in known[2]
    assert "age plus or minus 1" in known[3]
    assert sum(line.startswith("Found for certain, one match: ") for line in lines) == 4
    assert sum(line.startswith("For this intruder change ") for line in lines) >= 1


def test_levers_are_tried_listed_and_one_is_run_by_its_number(tmp_path: Path) -> None:
    plan = {name: part for name, part in HOUSEHOLD_PLAN.items() if name != "study"}
    finished_workspace(Path("w"), [plan], household_survey())
    start = ["Projects", "Open a project", "1", "back", "Findings", "Levers with their effect", ""]
    _, lines = talked([*start, "", "quit"])
    tried = [line for line in lines if line.startswith("Trying lever ")]
    listed = lines_after(lines, tried[-1])
    assert listed[0].startswith("1. ")
    assert re.search(
        r"; [0-9.]+ % to [0-9.]+ % of people: better; utility [0-9.]+ to [0-9.]+, where less is better: (better|worse)",
        listed[0],
    )
    assert any(line.startswith("Estimates from trials on ") for line in listed)
    with Workspace.open(Path("w"), read_only=True) as workspace:
        assert len(list_runs(workspace)) == 1, "an empty line runs nothing"
    hint = "What changes do and cost is not tried yet: What to change tries them."
    _, lines = talked([*start[:-2], "Verdicts", "", "What to change", "", "Verdicts", "", "quit"])
    assert lines.count(hint) == 1, "what this session tried is part of the answer"
    assert listed[0] in lines, "advice stands with what trials of it show"
    assert len([line for line in lines if line.startswith("Change first: ")]) == 3
    _, lines = talked([*start, "1", "quit"])
    assert any(line.startswith("Run 2 is run 1 with a change, which is the plan of its project now") for line in lines)
    with Workspace.open(Path("w"), read_only=True) as workspace:
        assert find_run(workspace, "2").state is RunState.DONE
        draft = find_draft(workspace, 1)
        assert draft is not None
        assert Recipe.from_toml(draft.toml) == find_run(workspace, "2").recipe


@pytest.mark.usefixtures("demo")
def test_deleting_asks_names_the_run_and_keeps_it_by_default() -> None:
    assert talked(["Projects", "Run the demo", "yes", "back", "Runs", "Delete a run", "1", ""])[0] == 0
    with Workspace.open(Path("w")) as workspace:
        assert find_run(workspace, 1).state is RunState.DONE
    status, lines = talked(["Runs", "Delete a run", "1", "yes", "List runs"])
    assert status == 0
    assert any(line.startswith("Deleting removes run 1, Visits") for line in lines)
    assert "Project Visits: 0 runs." in lines


def test_tables_of_any_tool_are_audited_in_sentences() -> None:
    Path("a.csv").write_text("region,count\ntotal,20\na,12\nb,x\n")
    Path("b.csv").write_text("region,count\ntotal,20\na,x\nb,x\n")
    status, lines = talked(["Projects", "Audit tables", "a.csv", "", "people", "Audit tables", "b.csv", "none", ""])
    assert status == 0, lines
    answers = [line for line in lines if line.startswith("May this table leave?")]
    assert answers == [
        "May this table leave? NO: 1 hidden cell follows exactly.",
        "May this table leave? YES: none of 2 hidden cells follows.",
    ]
    assert "Line 4 of a.csv: region=b; found out by everybody." in lines


class _Silent:
    """A session that only notes which acts a place offers."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.conversation = self

    def say(self, text: str) -> None:
        return

    def print_numbered(self, lines: Sequence[str]) -> None:
        return

    def choose(self, question: str, names: Sequence[str], *more: object) -> int:
        self.names |= set(names)
        raise ConversationEnded(0)


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.study) for seed in (1, 2))])
def test_random_answers_reach_every_act_and_never_a_traceback(seed: int, here: Path) -> None:
    """Each seed walks through the places act by act, in an order and with answers of its own."""
    places = [place.name for place in places_menu().entries]
    wanted = {name for place in places for name in acts_of(place)}
    assert len(wanted) == 6 + 5 + 4 + 5 + 8 + 7
    drawn = random.Random(seed)
    pool = [
        *map(str, range(10)), "", "yes", "no", "back", "help", "town", "age", "quasi-identifier", "sensitive", "count", "people.csv",
        "release.m=2", "measure[0].x=1", "a reason", "last", "99", "-1", "'; DROP TABLE run", "\u202eabc", "[[", "=", "synthesis", "out/x",
    ]  # fmt: skip
    answers = [*IMPORT, *ROLES, *DRAFT, "Projects", "Run the demo", "yes", "back"]
    for _ in range(3):
        for place in drawn.sample(places, len(places)):
            names = acts_of(place)
            for name in drawn.sample(names, len(names)):
                answers += [place, name, *drawn.choices(pool, k=drawn.randrange(7)), "back", "back", "back"]
    status, lines = talked(answers, script=False)
    said = "\n".join(lines)
    assert status == 0
    assert "Traceback" not in said
    assert "internal error" not in said
    assert not (here / "state" / "sfumato" / "error.log").exists()
    assert {line.partition(", ")[2].rstrip(".") for line in lines if line.startswith("Chosen: ")} >= wanted
    for sign in said:
        assert sign == "\n" or sign.isprintable()


def acts_of(place: str) -> list[str]:
    """The names of the acts that a place offers."""
    session = _Silent()
    with pytest.raises(ConversationEnded):
        next(one for one in places_menu().entries if one.name == place).act(session)  # type: ignore[arg-type]
    return sorted(session.names)


@pytest.mark.usefixtures("demo")
def test_a_number_means_the_same_act_in_an_empty_workspace_and_in_a_full_one() -> None:
    """Scripts choose by number: no act comes or goes with the state of the workspace."""
    asked = ["1", "help", "back", "2", "help", "back", "4", "help", "back", "5", "back", "6", "back"]
    empty = [line for line in talked(asked)[1] if LISTED.match(line)]
    talked(["Projects", "Run the demo", "yes"])
    full = [line for line in talked(asked)[1] if LISTED.match(line)]
    assert empty == full


def test_hostile_titles_names_and_values_command_nothing_and_forge_no_line() -> None:
    recipe = Recipe.from_table(
        {
            "title": f"Survey{EVIL}",
            "variables": {
                f"town{EVIL}": {
                    "kind": "categorical",
                    "role": "quasi_identifier",
                    "title": f"Town{EVIL}",
                    "labels": {f"north{EVIL}": f"The north{EVIL}"},
                },
                "pay": {"kind": "continuous", "role": "sensitive", "title": EVIL},
            },
            "release": {"m": 2, "seed": 7},
            "synthesis": [{"target": "pay", "method": "linear_regression", "predictors": []}],
            "measure": [{"method": "risk.identification", "known": [f"town{EVIL}"], "radius": {"pay": "5%"}}],
            "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.5}],
        }
    )
    frame = pd.DataFrame({f"town{EVIL}": [f"north{EVIL}", "south"] * 40, "pay": [100.0 + i for i in range(80)]})
    with Workspace.create(Path("w"), PUBLIC) as workspace:
        enter_recipe(workspace, recipe, frame, f"survey{EVIL}.csv")
    run_worker(Path("w").resolve(), idle=0)
    answers = [
        "Projects", "List projects", "back", "Data", "List variables", "Set a role", "help", "1", "sensitive", "back", "Plan", "List the steps",
        "Show the cost", "back", "Runs", "List runs", "back", "Findings", "Verdicts", "1", "Explain a number", "1", "1", "Records at risk", "1",
        "1", "yes", "What to change", "1", "back", "Release", "Findings of the gate", "1", "What leaves", "1",
    ]  # fmt: skip
    status, lines = talked(answers)
    assert status == 0, lines[-3:]
    said = "\n".join(lines)
    assert "north" in said
    assert said.count("Release everything") > 5
    assert not [line for line in lines if line.startswith("1. Release everything")]
    assert not [sign for sign in said if sign != "\n" and (not sign.isprintable() or DRAWING_CHARACTERS.match(sign))]


@pytest.mark.usefixtures("demo")
def test_where_the_policy_asks_for_a_second_person_the_release_is_asked_for_and_not_written(
    here: Path, write_office_policy: Callable[[str], Path]
) -> None:
    assert talked(["Projects", "Run the demo", "yes"])[0] == 0
    (here / "requests").mkdir(mode=0o700)
    write_office_policy(f'[approval]\nsecond_person = true\ndirectory = "{here / "requests"}"\n')
    status, lines = talked(["Release", "Release", "1", "csv", "no"])
    assert status == 0
    assert any(line.startswith("The policy asks for a second person. ") for line in lines)
    assert list((here / "requests").iterdir()) == []
    status, lines = talked(["Release", "Release", "1", "csv", "yes", "for a study of visits"])
    assert status == 0, lines[-3:]
    (request,) = (here / "requests").iterdir()
    assert any(f"sfumato approve {request} --reason TEXT" in line for line in lines)
    status, lines = talked(["Release", "Release", "1", "csv", "no"])
    assert any("waits for another account" in line for line in lines)
    with Workspace.open(Path("w")) as workspace:
        assert past_releases(workspace, 1) == []


def test_a_run_that_was_interrupted_is_resumed_and_one_that_is_done_is_not(study: Path) -> None:
    with Workspace.create(Path("w")) as workspace:
        prepared = prepare_run(find_recipe(str(study)), key=workspace.read_workspace_key())
        stop_run(workspace, prepared.enter(workspace), RunState.INTERRUPTED)
    status, lines = talked(["Findings", "Verdicts", "1"])
    assert status == 1
    assert "only a run that is done has findings" in lines[-2]
    status, lines = talked(["Runs", "Resume a run", "1", "List runs", "Resume a run", "1"])
    assert status == 1
    assert any(line.startswith("Run 1 is done after ") for line in lines)
    assert lines[-2] == "Not done: run 1 is done already."


def test_a_run_of_another_project_is_not_taken_for_one_of_this(study: Path) -> None:
    with Workspace.create(Path("w")) as workspace:
        prepare_run(find_recipe(str(study)), key=workspace.read_workspace_key()).enter(workspace)
    status, lines = talked([*IMPORT, "Projects", "Open a project", "Visits", "back", "Runs", "Open a run", "1"])
    assert status == 0
    status, lines = talked(["Projects", "Open a project", "people", "back", "Findings", "Verdicts", "1"])
    assert status == 1
    assert lines[-2] == "Not done: project people has no run. In Runs, start one first."


def test_what_cannot_be_read_is_named_without_an_option_of_the_command_line(home: Path) -> None:
    Path("none.csv").write_text("age,sex\n", "utf-8")
    _, lines = talked(["Projects", "Check an anonymised file", "none.csv"], script=False)
    refused = [line for line in lines if line.startswith("Not done: ")]
    assert refused
    assert not any("--" in line for line in refused)

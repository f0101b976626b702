import asyncio
import re
import threading
from dataclasses import replace

import pytest

from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.tui.data.level_bars import LevelBars, level_bar_lines
from sfumato.tui.data.sheet import (
    aligned_quantiles,
    profile_texts,
    sheet_columns,
    short_title,
    whole_clauses,
    whole_items,
)
from sfumato.tui.data.small_pictures import HEADING
from sfumato.tui.data.variable_facts import variable_content
from sfumato.tui.parts.form import Form
from sfumato.tui.plan.drafting import DraftForm
from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.audit import audit_rows
from sfumato.workspace.ingest.profiles import DistributionProfile
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.plan.variables import parse_variable_tables
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.data_view import ProfiledColumn, VariableLine


def plan_of(directory):
    with Workspace.open(directory, read_only=True) as reader:
        return find_draft(reader, 1)


@pytest.fixture
def imported_workspace(empty_workspace, tmp_path, monkeypatch):
    """A project that was made by an import: 60 people, two of whom have no cost; a column of identifiers."""
    from sfumato.workspace.service.importing import import_file

    rows = "\n".join(
        f"P{i:03},{20 + i % 30},{'' if i < 2 else (i * 37) % 91 + 0.5},{'no' if i % 3 else 'yes'}" for i in range(60)
    )
    (tmp_path / "people.csv").write_text(f"id,age,cost,smoker\n{rows}\n")
    import_file(empty_workspace, str(tmp_path / "people.csv"), "")
    save_state(empty_workspace, AppState(project=1, tab="data"))
    return empty_workspace


@pytest.mark.slow
async def test_the_variables_of_a_run_with_their_histograms(sit, built_data, size):
    async with sit(built_data, size=size, tab="data") as seat:
        assert "Data: 3 of 3 variables included" in seat.text
        assert seat.text.splitlines()[3].strip("│ ").startswith("survey.csv: 90 records"), "the heading has the number"
        line = next(line for line in seat.text.splitlines() if "income" in line and "continuous" in line)
        assert "sensitive" in line
        head = seat.text.splitlines()[4].replace("missing codes", "")
        assert "missing" not in head, "no variable has missing values"
        assert any(block in line for block in "▁▂▃▄▅▆▇█")
        assert "records, 2 different" in seat.text


@pytest.mark.slow
async def test_the_profile_follows_the_cursor(sit, built_data, size):
    async with sit(built_data, "j", "j", size=size, tab="data") as seat:
        assert "income: 90 records, 90 different" in seat.text
        assert "quantiles 5 %" in seat.text
        await seat.press("act:profile", "l", "l", "act:profile", "k")
        assert "visits: 90 records" in seat.text


@pytest.mark.slow
async def test_an_import_knows_the_share_of_missing_values(sit, imported_workspace, size):
    async with sit(imported_workspace, size=size) as seat:
        assert "3 variables, 1 left out · people.csv: 60 records" in seat.text
        assert "3.3%" in next(line for line in seat.text.splitlines() if " cost " in line)
        assert "0.0%" in next(line for line in seat.text.splitlines() if " age " in line)
        assert "P001" not in seat.text


@pytest.mark.slow
async def test_an_edit_goes_into_the_plan_and_the_audit_log(sit, imported_workspace, size):
    async with sit(imported_workspace, "g", "j", "j", "enter", size=size) as seat:
        assert "Variable cost" in seat.text
        await seat.press("down", "l", "down", *"0, 200", "enter")
        await seat.until(lambda: "continuous: numbers, 0 .. 200" in seat.text)
        assert "quasi-identifier" in next(line for line in seat.text.splitlines() if " cost " in line)
    draft = plan_of(imported_workspace)
    assert draft.revision == 2
    assert 'role = "quasi_identifier"' in draft.toml
    workspace = Workspace.open(imported_workspace)
    acts = [row.act for row in audit_rows(workspace.connection)]
    workspace.close()
    assert acts.count("plan edited") == 2


@pytest.mark.slow
async def test_the_form_of_a_variable_shows_every_role_at_80_columns(sit, imported_workspace):
    async with sit(imported_workspace, "enter", tab="data", size=(80, 24)) as seat:
        await seat.until(lambda: "enter accepts" in seat.text)
        for one in (*Role, *Kind):
            assert one.value in seat.text


async def test_a_form_says_at_once_what_is_wrong_and_does_not_accept_it(sit, imported_workspace, size):
    async with sit(imported_workspace, "g", "j", "enter", "down", "down", *"9", size=size) as seat:
        assert "must be two numbers" in seat.text
        await seat.press("enter")
        assert isinstance(seat.app.screen, Form)
        await seat.press("escape")
        assert not isinstance(seat.app.screen, Form)
    assert plan_of(imported_workspace).revision == 1


@pytest.mark.slow
async def test_records_that_do_not_fit_the_plan_are_counted(sit, imported_workspace):
    async with sit(
        imported_workspace, "g", "j", "j", "enter", "down", "down", *"0, 50", "enter", size=(100, 40)
    ) as seat:
        assert "✗ 1 variable does not fit the plan" in seat.text
        assert "records are above 50" in seat.text


@pytest.mark.slow
async def test_open_ends_labels_and_levels_are_typed_plainly(sit, imported_workspace):
    async with sit(imported_workspace, "g", "j", "enter", "down", "down", *"18, ..", "enter") as seat:
        assert 'bounds = [18, ""]' in plan_of(imported_workspace).toml
        await seat.press("G", "enter", "down", "down", "down", *"yes, no", "down", *"yes = smokes", "enter")
    draft = plan_of(imported_workspace)
    assert '"yes"' in draft.toml
    assert "smokes" in draft.toml


@pytest.mark.slow
async def test_a_column_that_the_plan_leaves_out_can_be_taken_in(sit, imported_workspace):
    workspace = Workspace.open(imported_workspace)
    draft = find_draft(workspace, 1)
    save_draft(workspace, draft.with_text(draft.toml.replace("smoker = {", "# smoker = {")))
    workspace.close()
    async with sit(imported_workspace, "G") as seat:
        assert "2 left out ·" in seat.text
        assert "left out" in next(line for line in seat.text.splitlines() if " smoker " in line)
        await seat.press("enter", "enter")
        assert "1 left out ·" in seat.text
        assert "left out" not in next(line for line in seat.text.splitlines() if " smoker " in line)
    assert "\nsmoker = {" in plan_of(imported_workspace).toml


def planned_roles(directory):
    said = parse_variable_tables(plan_of(directory).toml)
    return {name: table["role"] for name, table in said.planned.items()}


@pytest.mark.slow
async def test_one_key_gives_a_role_to_all_that_are_marked_and_u_takes_it_back(sit, imported_workspace, size):
    async with sit(imported_workspace, "g", "j", "space", size=size) as seat:
        assert "1 marked" in seat.text
        await seat.press("j", "space", "r", "i")
        assert planned_roles(imported_workspace) == {
            "age": "quasi_identifier",
            "cost": "other",
            "smoker": "quasi_identifier",
        }
        assert "marked" not in seat.text
        await seat.press("home", "j", "j", "r", "s", "escape", "k")
        assert planned_roles(imported_workspace)["cost"] == "sensitive"
        await seat.press("u")
        assert planned_roles(imported_workspace)["cost"] == "other"
        await seat.press("u")
        assert set(planned_roles(imported_workspace).values()) == {"other"}
        await seat.press("ctrl+r", "ctrl+r")
        assert planned_roles(imported_workspace) == {
            "age": "quasi_identifier", "cost": "sensitive", "smoker": "quasi_identifier"
        }  # fmt: skip
    assert plan_of(imported_workspace).revision == 7


@pytest.mark.slow
async def test_x_leaves_columns_out_and_takes_them_in_as_they_were(sit, imported_workspace):
    before = plan_of(imported_workspace).toml
    async with sit(imported_workspace, "g", "j", "r", "d", "escape", "k", "space", "space", "x") as seat:
        assert "3 left out ·" in seat.text
        assert list(planned_roles(imported_workspace)) == ["smoker"]
        await seat.press("home", "j", "x", "j", "x")
        assert planned_roles(imported_workspace) == {"age": "identifier", "cost": "other", "smoker": "other"}
        await seat.press("u", "u", "u", "u")
    assert plan_of(imported_workspace).toml == before


@pytest.mark.slow
async def test_only_x_takes_in_a_column_that_is_left_out(sit, imported_workspace):
    async with sit(imported_workspace, "g", "r", "s", "escape", size=(100, 40)) as seat:
        assert "press x to include" in seat.app.notices[-1]
        await seat.press("asterisk", "r", "o")
        assert "1 excluded stay" in seat.app.notices[-1]
        assert "id" not in planned_roles(imported_workspace)
        await seat.press("home", "x")
        assert planned_roles(imported_workspace)["id"] == "identifier"
        assert "a run reads them from the file" in seat.text


@pytest.mark.slow
async def test_words_sift_the_sheet_and_marks_that_are_not_shown_are_counted(sit, imported_workspace, size):
    async with sit(imported_workspace, "slash", *"kind:count", "enter", "asterisk", size=size) as seat:
        assert "kind:count" in seat.text
        assert " cost " not in seat.text
        await seat.press("slash", *"!count out", "enter")
        assert "P0" not in seat.text
        assert "1 marked, 1 of them not shown" in seat.text
        await seat.press("slash", *"nothing", "escape", "space", "r", "i")
        assert "excluded stay unchanged" in seat.app.notices[-1]
    assert planned_roles(imported_workspace)["age"] == "quasi_identifier"


@pytest.mark.slow
async def test_a_kind_is_chosen_by_its_number_for_all_that_are_marked(sit, imported_workspace, size):
    async with sit(imported_workspace, "g", "j", "space", "space", "act:kind", "5", size=size) as seat:
        kinds = {
            name: table["kind"]
            for name, table in parse_variable_tables(plan_of(imported_workspace).toml).planned.items()
        }
        assert kinds == {"age": "continuous", "cost": "continuous", "smoker": "binary"}
        await seat.press("home", "j", "act:kind", "enter")
        assert plan_of(imported_workspace).revision == 2
        await seat.press("act:kind", "escape")
        assert plan_of(imported_workspace).revision == 2


@pytest.mark.slow
async def test_missing_codes_of_several_variables_are_typed_once(sit, imported_workspace):
    async with sit(imported_workspace, "g", "j", "space", "space", "act:codes", *"25, 30", "enter") as seat:
        tables = parse_variable_tables(plan_of(imported_workspace).toml).planned
        assert [tables[name].get("missing") for name in ("age", "cost", "smoker")] == [[25, 30], [25, 30], None]
        await seat.press("home", "j", "act:codes", "end", *", no", "enter")
        assert parse_variable_tables(plan_of(imported_workspace).toml).planned["age"]["missing"] == [25, 30, "no"]


@pytest.mark.slow
async def test_an_edit_of_a_plan_that_was_edited_elsewhere_writes_nothing_over(sit, imported_workspace, monkeypatch):
    async with sit(imported_workspace, "g", "j") as seat:
        monkeypatch.setattr("sfumato.tui.data.data.DataTab.on_workspace_changed", lambda *_: None, raising=False)
        with Workspace.open(imported_workspace) as workspace:
            draft = find_draft(workspace, 1)
            save_draft(workspace, draft.with_text(draft.toml.replace('title = "people"', 'title = "persons"')))
        await seat.press("r", "i", "escape")
    draft = plan_of(imported_workspace)
    assert 'title = "persons"' in draft.toml


@pytest.mark.slow
@pytest.mark.parametrize(("tab", "key"), [("data", "x"), ("plan", "X")])
async def test_a_plan_that_was_read_before_an_edit_was_stored_does_not_take_it_back(
    sit, built_data, monkeypatch, tab, key
):
    monkeypatch.setattr("sfumato.tui.app.app.POLL_SECONDS", 60)
    async with sit(built_data, "j", tab=tab) as seat, asyncio.timeout(30):
        pane, may_answer, held = seat.app.screen.query_one(f"#{tab}"), threading.Event(), []
        query, before = pane.read_query(), pane._history.now.revision

        def answer_late(workspace):
            held.append(query(workspace))
            may_answer.wait(10)
            return held[-1]

        monkeypatch.setattr(pane, "read_query", lambda: answer_late)
        pane.reload()
        while not held:
            await asyncio.sleep(0.001)
        await seat.pilot.press(key)
        while pane._history.now.revision == before:
            await asyncio.sleep(0.001)
        edited = pane._history.now
        may_answer.set()
        await seat.press("shift")
        assert pane._history.now == edited == plan_of(built_data)
        await seat.press("u")
        assert pane._history.now == plan_of(built_data) != edited


@pytest.mark.slow
async def test_a_plan_that_is_not_toml_says_so_and_loses_nothing(sit, imported_workspace):
    workspace = Workspace.open(imported_workspace)
    save_draft(workspace, find_draft(workspace, 1).with_text("title = "))
    workspace.close()
    async with sit(imported_workspace, "enter", "enter") as seat:
        assert "not valid TOML" in seat.text
    assert plan_of(imported_workspace).toml == "title = "


@pytest.mark.slow
async def test_a_project_without_data_names_the_next_key(sit, directory):
    async with sit(directory, "j", "enter", "1", size=(80, 24)) as seat:
        assert "This project has no data yet" in seat.text


@pytest.mark.slow
async def test_signs_are_ascii_where_asked(sit, imported_workspace, monkeypatch):
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    async with sit(imported_workspace, "g", "j") as seat:
        assert "%" in next(line for line in seat.text.splitlines() if " cost " in line)
        assert not set("▁▂▃▄▅▆▇█") & set(seat.text)


@pytest.mark.slow
async def test_a_survey_weight_says_how_many_people_and_what_its_inequality_costs(sit, imported_workspace):
    async with sit(imported_workspace, "g", "j", "j", size=(100, 30)) as seat:
        assert "the records stand for" not in seat.text
        await seat.press("r", "w", "escape", "k")
        assert plan_of(imported_workspace).toml.count('role = "weight"') == 1
        assert "the records stand for" in seat.text
        assert "design effect" in seat.text
        await seat.press("enter", "end", "up")
        assert "of a survey with weights" in seat.text


def test_names_take_the_room_that_levels_can_spare():
    plain, named = sheet_columns(106, 8, titled=False), sheet_columns(106, 20, titled=False)
    widths = [{column.name: column.width for column in columns} for columns in (plain, named)]
    assert sum(widths[0].values()) == sum(widths[1].values())
    assert widths[1]["name"] == 20
    assert {column.name: column.width for column in sheet_columns(106, 400, titled=False)}["levels"] == 16
    assert sheet_columns(79, 40, titled=False) == sheet_columns(79, 8, titled=False), "without levels nothing is taken"


def test_titles_have_a_column_before_levels_and_bounds_do():
    assert "title" in [one.name for one in sheet_columns(104, 8)]
    assert "title" not in [one.name for one in sheet_columns(104, 8, titled=False)]


@pytest.mark.slow
async def test_an_edit_that_there_is_not_is_not_taken_back_silently(sit, anonymising, monkeypatch):
    async with sit(anonymising, "1") as seat:
        said = []
        monkeypatch.setattr(seat.app, "say", lambda text, *_, **__: said.append(text))
        await seat.press("u", "ctrl+r")
        assert said == ["There is no edit to undo", "There is no edit to redo"]


@pytest.mark.slow
async def test_letters_give_roles_to_one_variable_after_the_other(sit, imported_workspace):
    """An excluded column keeps out whatever letter is pressed: only x includes one."""
    async with sit(imported_workspace, "g", "r", "i", "i", "space", "s", tab="data") as seat:
        roles = planned_roles(imported_workspace)
        assert "id" not in roles
        assert roles == {"age": "quasi_identifier", "cost": "other", "smoker": "sensitive"}
        assert isinstance(seat.app.screen, DraftForm), "after the last variable the draft is offered"
        await seat.press("escape")
        await seat.press("g", "j", "r", "x", "escape")
        assert "age" not in planned_roles(imported_workspace)


@pytest.mark.slow
async def test_a_capital_letter_gives_a_role_to_all_that_follow(sit, imported_workspace, size):
    async with sit(imported_workspace, "g", "j", "r", "s", size=size) as seat:
        assert "Role of cost" in seat.text
        assert "a capital: all below too" in seat.text
        await seat.press("I")
        assert planned_roles(imported_workspace) == {
            "age": "sensitive",
            "cost": "quasi_identifier",
            "smoker": "quasi_identifier",
        }
        assert isinstance(seat.app.screen, DraftForm), "every included variable was asked about"
        await seat.press("escape", "u")
        assert planned_roles(imported_workspace) == {"age": "sensitive", "cost": "other", "smoker": "other"}
        await seat.press("home", "j", "j", "r", "X")
        assert planned_roles(imported_workspace) == {"age": "sensitive"}
        assert not isinstance(seat.app.screen, DraftForm), "the first was not asked about this time"


@pytest.mark.slow
async def test_the_roles_of_a_new_file_are_asked_although_a_column_was_left_out(sit, empty_workspace, tmp_path, size):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["id,age,cost", *(f"P{i:03},{20 + i % 30},{i * 37 % 91}.5" for i in range(60)), ""]))
    async with sit(empty_workspace, "I", *str(path), "enter", size=size) as seat:
        await seat.until(lambda: "none unclear" in seat.text)
        await seat.press("enter")
        await seat.until(lambda: "Role of age" in seat.text)
        await seat.press("i", "s")
        assert isinstance(seat.app.screen, DraftForm)
    assert planned_roles(empty_workspace) == {"age": "quasi_identifier", "cost": "sensitive"}


@pytest.mark.slow
async def test_a_number_of_units_keeps_its_role_when_all_others_get_one(sit, imported_workspace):
    with Workspace.open(imported_workspace) as workspace:
        draft = find_draft(workspace, 1)
        save_draft(workspace, draft.with_text(re.sub(r'(age = .*role = )"other"', r'\1"unit"', draft.toml)))
    async with sit(imported_workspace, "g", "j", "j", "r", tab="data") as seat:
        assert "Role of cost" in seat.text
        await seat.press("I")
        assert isinstance(seat.app.screen, DraftForm)
    assert planned_roles(imported_workspace) == {
        "age": "unit",
        "cost": "quasi_identifier",
        "smoker": "quasi_identifier",
    }


def test_levels_are_said_with_their_shares_and_none_that_is_withheld():
    """Bars of one or two records count 0 in a profile, and their levels are not named."""
    one = Variable.from_table("town", {"kind": "categorical", "labels": {"n": "north"}}, "variables.town")
    found = DistributionProfile("town", 20, 4, (5, 0, 13, 0), 2, levels=("n", "rare", "s", "lone"))
    line = VariableLine(one, is_planned=True, is_stored=True, missing=0.0)
    said = profile_texts(line, ProfiledColumn("town", found))
    assert said[1] == "most often s (65 %), north (25 %)"
    assert "2 bars of one or two records are not shown" in said[0]
    assert "rare" not in " ".join(said)
    assert (
        profile_texts(line, ProfiledColumn("town", DistributionProfile("town", 3, 2, (0, 0), 2, levels=("n", "s"))))[1]
        == ""
    )


@pytest.mark.slow
async def test_the_first_variable_shown_is_no_number_of_a_unit_and_no_identifier(sit, imported_workspace):
    with Workspace.open(imported_workspace) as workspace:
        draft = find_draft(workspace, 1)
        toml = draft.toml.replace(
            'age = { kind = "count", role = "other"', 'age = { kind = "count", role = "identifier"'
        )
        assert toml != draft.toml
        save_draft(workspace, draft.with_text(toml))
    async with sit(imported_workspace, size=(120, 40), tab="data") as seat:
        await seat.until(lambda: "cost: 58 records" in seat.text)
        assert seat.app.screen.pane.grid.row_key == "cost"


@pytest.mark.slow
async def test_below_the_variables_stands_what_the_plan_does_to_one_and_who_could_know_it(sit, built_data):
    async with sit(built_data, size=(120, 40), tab="data") as seat:
        await seat.until(lambda: "released unchanged" in seat.text)
        said = seat.app.screen.query_one("#data-facts").content.plain
        assert "an intruder may know it" in said
        assert "known to the intruder in Identification risk" in " ".join(said.split())
        assert "What the plan releases" in said
        await seat.press("G")
        await seat.until(
            lambda: (
                "drawn by Bayesian linear regression"
                in " ".join(seat.app.screen.query_one("#data-facts").content.plain.split())
            )
        )
        assert "it is what an intruder wants to learn" in seat.app.screen.query_one("#data-facts").content.plain


@pytest.mark.slow
async def test_a_long_list_of_variables_keeps_its_lines(sit, built_data):
    async with sit(built_data, size=(120, 12), tab="data") as seat:
        assert not seat.app.screen.query_one("#data-facts").display
        assert "income" in seat.text


def test_levels_of_one_or_two_records_have_no_bar():
    line = VariableLine(Variable("town", Kind.CATEGORICAL, Role.OTHER), True, True, 0.0)
    profile = DistributionProfile("town", 100, 3, (60, 38, 0), 1, levels=("north", "south", "hidden"))
    said = variable_content(line, ProfiledColumn("town", profile, 0.0), [], [], 70, 30).plain
    assert "north" in said
    assert "60 %" in said
    assert "hidden" not in said
    beside = variable_content(line, ProfiledColumn("town", profile, 0.0), [], [], 70, 30, has_bars=False).plain
    assert "60 %" not in beside, "the picture beside it has the bars"


@pytest.mark.slow
async def test_values_are_drawn_once_and_the_picture_of_the_chosen_row_has_the_ink_and_ground_of_the_row(
    sit, built_data
):
    async with sit(built_data, size=(120, 40), tab="data") as seat:
        grid, facts = seat.app.screen.pane.grid, seat.app.screen.query_one("#data-facts")
        await seat.until(lambda: "released unchanged" in facts.content.plain)
        assert "█" not in facts.content.plain.partition(HEADING)[0]
        assert "most often" not in seat.text
        chosen = grid.get_component_rich_style("grid--cursor")
        pictured = [one for one in grid.render_line(grid.cursor + 1) if set("▁▂▃▄▅▆") & set(one.text)]
        assert pictured
        assert all(one.style == chosen for one in pictured)


def test_levels_that_have_no_room_are_left_out_whole():
    text = "most often a (50 %), b (30 %), c (20 %)"
    assert whole_items(text, 60) == text
    assert whole_items(text, 34) == "most often a (50 %), b (30 %) …"
    assert whole_items("quantiles 5 % 1  50 % 2", 10) == "quantiles 5 % 1  50 % 2", "other texts are cut by their line"


def test_where_lines_are_few_facts_stand_whole_and_names_of_all_parts_have_one_column():
    line = VariableLine(Variable("town", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER), True, True, 0.0)
    plan = [("in the release", "released unchanged: everybody keeps their own value"), ("attacks", "known " * 30)]
    said = variable_content(line, None, plan, [("unchanged", "! town")], 60, 30).plain.splitlines()
    starts = [next(one for one in said if text in one).index(text) for text in ("released unchanged", "! town", "none")]
    assert starts == [len("in the release") + 2] * 3, "two blanks part the longest name from its text"
    few = variable_content(line, None, plan, [], 60, 4).plain.splitlines()
    assert few[0] == "town (categorical)"
    assert len(few) <= 4
    assert not any("…" in one or "attacks" in one for one in few), "a fact that has no room is left out, not cut"
    assert few[-1].split() == ["missing", "none"]


def test_names_of_levels_have_the_room_that_their_bars_can_spare():
    long = "strong Republican, or leaning to them"
    line = VariableLine(Variable("party", Kind.CATEGORICAL, Role.OTHER, labels={"6": long}), True, True, 0.0)
    profile = DistributionProfile("party", 100, 2, (60, 40), 0, levels=("0", "6"))
    assert long in variable_content(line, ProfiledColumn("party", profile, 0.0), [], [], 78, 30).plain


def test_labels_and_readings_are_shortened_by_whole_words_and_clauses():
    line = VariableLine(Variable("a", Kind.COUNT, Role.OTHER, title="log of the yearly payment"), True, True, 0.0)
    (title,) = (
        one
        for one in sheet_columns(76, 1, longest_title=60, lacking=False, faulty=False, is_told_below=True)
        if one.name == "title"
    )
    assert title.cell(line) == short_title(title.width, line)
    assert short_title(14, line) == "log of the …"
    assert whole_clauses("a: 9 records · 1 bar is not shown", 20) == "a: 9 records"
    assert whole_clauses("a: 9 records · 1 bar is not shown", None) == "a: 9 records · 1 bar is not shown"


def test_levels_beside_the_list_are_bars_with_names_and_shares():
    town = Variable("town", Kind.CATEGORICAL, levels=("n", "s", "w"), labels={"n": "north", "s": "south"})
    profile = DistributionProfile("town", 100, 3, (60, 30, 0), 1, levels=("n", "s", "w"))
    roomy = [line.plain for line in level_bar_lines(town, profile, 34, 20)]
    assert {len(line) for line in roomy if line} <= {34, len("and 1 other level")}
    assert roomy[0].strip() == "share of records"
    named = [line for line in roomy if "%" in line]
    assert [line.split()[0] for line in named] == ["north", "south"], "a level that is withheld has no bar"
    assert named[0].count("█") == 2 * named[1].count("█")
    assert [line.split()[-2] for line in named] == ["60", "30"]
    assert set(roomy[roomy.index(named[0]) + 1]) == {"█", " "}, "bars have two lines where there is room"
    short = [line.plain for line in level_bar_lines(town, profile, 34, 4)]
    assert len(short) == 4
    assert "" not in short
    long = replace(town, labels={"n": "the north of the country, with the islands", "s": "south"})
    name, bar = [line.plain for line in level_bar_lines(long, profile, 34, 5)][1:3]
    assert "…" not in bar
    assert name.startswith("the north of the country")
    assert bar.startswith("█"), "a long name stands above its bar"


def test_quantiles_beside_the_list_stand_below_each_other():
    assert aligned_quantiles("quantiles 5 % 24  50 % 4.25 · mean 47.04, sd 16") == (
        "quantiles 5 %      24\n          50 %   4.25\n          mean  47.04\n          sd       16"
    )
    assert aligned_quantiles("sum 90 · quantiles 5 % 24").splitlines()[0] == "sum 90"
    assert aligned_quantiles("most often a (5 %)") == "most often a (5 %)"


@pytest.mark.slow
async def test_a_variable_of_levels_has_bars_in_place_of_the_plot_beside_the_list(sit, built_data):
    async with sit(built_data, size=(120, 40), tab="data") as seat:
        bars, plot = seat.app.screen.query_one(LevelBars), seat.app.screen.query_one(Plot)
        shown = []
        for _ in range(4):
            shown.append((bars.display, plot.display))
            await seat.press("act:profile")
            assert (bars if bars.display else plot).has_focus
            await seat.press("act:profile", "j")
        assert {(True, False), (False, True)} == set(shown)

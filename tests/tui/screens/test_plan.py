import sys
import time
import tomllib
from contextlib import nullcontext

import pytest

from sfumato.engine.methods.labels import SHORT_TITLES
from sfumato.engine.methods.registry import registry
from sfumato.tui.app.app import SfumatoApp
from sfumato.tui.parts.form import Form
from sfumato.tui.plan.plan import (
    PlanTab,
    StepGrid,
    StepRow,
    rows_with_headings,
    run_plan_text,
    step_table,
    width_of_step_names,
)
from sfumato.tui.plan.plan_forms import section_of_method, step_fields
from sfumato.tui.plan.step_lines import StepTexts, fit_phrases, fit_variables, step_lines, step_texts
from sfumato.tui.terminal.text import cut_words
from sfumato.tui.widgets.entries import TomlText
from sfumato.tui.widgets.pages import RowHeading
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.plan.edits import PlanView
from sfumato.workspace.reporting.plan_steps import StepDescription, describe_step
from sfumato.workspace.store.runs import find_run, list_runs
from sfumato.workspace.store.workspace import Workspace


def stored(directory):
    with Workspace.open(directory, read_only=True) as reader:
        draft = find_draft(reader, 1)
    return tomllib.loads(draft.toml), draft.revision


def listed(seat):
    """The keys of the rows of the list."""
    return list(seat.app.screen.query_one(PlanTab)._steps)


def drawn_row(seat, name):
    """The line of the list with the step that draws a variable."""
    return next(line[1:].strip() for line in seat.text.splitlines() if line[1:].strip().startswith(f"{name} "))


def text_area(seat):
    return seat.app.screen.query_one(TomlText)


@pytest.mark.slow
async def test_the_steps_stand_beside_the_text(sit, built_data, size):
    async with sit(built_data, size=size, tab="plan") as seat:
        assert "✓ run 4 is this plan; R runs it again" in seat.text
        for words in ("Data and release: 3 datasets; seed 7", "Draw", "Measure", "Identification risk"):
            assert words in seat.text
        assert listed(seat)[0] == "settings"
        assert drawn_row(seat, "income").split()[1:5] == ["linear", "regression", "region,", "visits"]
        assert "synthesis[0]" in listed(seat)
        assert tomllib.loads(text_area(seat).text)["title"] == "Household survey"
    assert stored(built_data)[1] == 0


@pytest.mark.slow
async def test_a_threshold_is_listed_by_what_it_limits_in_words(sit, built_data):
    """Where there is no room for settings, what is limited stays; once only ``max = 0.9`` did."""
    async with sit(built_data, "g", tab="plan", size=(160, 50)) as seat:
        lines = [line[1:90].strip() for line in seat.text.splitlines()]
        heading = next(at for at, line in enumerate(lines) if line.startswith("Limits "))
        assert lines[heading].split()[:2] == ["Limits", "limit"]
        assert " ".join(lines[heading + 1].split()).startswith("People found for certain at most 90 %")
        assert lines[heading].index("limit") == lines[heading + 1].index("at most") + 3, "below its head"
    async with sit(built_data, "g", tab="plan", size=(100, 30)) as seat:
        lines = [line[1:60].strip() for line in seat.text.splitlines()]
        heading = next(at for at, line in enumerate(lines) if line.startswith("Limits "))
        assert lines[heading + 1].startswith("People found for certain")


@pytest.mark.slow
async def test_the_text_is_shown_at_the_step_under_the_cursor(sit, built_data):
    async with sit(built_data, "g", "G", size=(100, 24), tab="plan") as seat:
        assert 'target = "visits"' not in seat.text
        await seat.press("t")
        await seat.until(lambda: 'target = "visits"' in seat.text)
        await seat.press("escape")
        await seat.until(lambda: 'target = "visits"' not in seat.text)


@pytest.mark.slow
async def test_the_cursor_passes_the_headings_of_the_steps(sit, built_data):
    async with sit(built_data, tab="plan", size=(80, 24)) as seat:
        grid, seen = seat.app.screen.query_one(StepGrid), []
        assert grid.row_key == "synthesis[0]", "the first look is at the first step"
        await seat.press("g")
        for _ in listed(seat):
            seen.append(grid.row_key)
            await seat.press("j")
        assert seen == listed(seat)
        assert grid.row_count == len(seen) + 4, "Draw, Measure, Study, Limits"


def test_settings_stand_beside_whole_names_alone():
    cells = {"mark": "", "step": "pay", "method": "trees (CART)", "from": "age, sex, town", "settings": "smoothing yes"}
    table = step_table([StepRow("synthesis[0]", "synthesis", cells, StepDescription("", "", []), [])])
    rows = [("heading 0", {"heading": RowHeading("Draw")}), ("synthesis[0]", cells)]
    widths = [{one.name: one.width for one in table.columns_in(rows, width)} for width in (66, 44)]
    assert widths[0]["settings"] == len("smoothing yes")
    assert widths[0]["from"] >= len("age, sex, town")
    assert "settings" not in widths[1]


def test_what_has_no_room_in_a_row_is_counted():
    names = "age, sex, town, region"
    assert fit_variables(names, 22) == names
    assert fit_variables(names, 21) == "age, sex and 2 more"
    assert fit_variables("a_name_that_is_long, age", 8) == "a_name_…"
    settings = ("known age, sex", "records 1000", "seed 3")
    assert fit_phrases(settings, 60) == "known age, sex; records 1000; seed 3"
    assert fit_phrases(settings, 35) == "known age, sex; also records, seed"
    assert fit_phrases(settings, 25) == "known, records, seed"
    assert fit_phrases(settings, 18) == "known and 2 more"
    assert fit_phrases(settings, 10) == "3 settings"
    assert fit_phrases(("a match within age 1, pay 5%, town 2",), 31) == "a match within age 1 and 2 more"


def test_steps_that_draw_nothing_have_columns_with_heads_in_one_line_each():
    steps = [
        StepTexts("Propensity score of all variables of the plan"),
        StepTexts("Identification risk", "age, sex, town, pay", ("a match within age 1, pay 5%",)),
        StepTexts("Linkability", "", ("known age, sex", "records 1000")),
    ]
    for width in (90, 60):
        heads, lines = step_lines("measure", steps, width)
        assert len(lines) == len(steps)
        assert max(map(len, [heads, *lines])) <= width
        assert lines[0] == steps[0].name, "a step without variables and settings has the whole line"
        at = heads.index("variables, settings")
        assert lines[1][at:].startswith("age, sex, town, pay; ")
        assert lines[1][at:].endswith("a match within age 1, pay 5%" if width == 90 else "1 setting"), (
            "whole or counted"
        )
        assert lines[2][at:] == "known age, sex; records 1000"
        assert not any("…" in line for line in lines)
    limits = [
        StepTexts("People found on average", "at most 20 % of the confidential value", is_limit=True),
        StepTexts("Difference in the composition of units", "at most 10 %", ("relation",), is_limit=True),
    ]
    heads, lines = step_lines("threshold", limits, 100)
    assert lines[0][heads.index("limit") :] == "at most 20 % of the confidential value"
    assert lines[1][heads.index("limit") :] == "at most 10 %; relation"
    heads, lines = step_lines("threshold", limits, 70)
    assert lines[0][heads.index("limit") :] == "≤ 20 % of raw data", "a limit is not cut"
    assert cut_words("People found on average", 12) == "People …"
    assert cut_words("age, sex, town", 11) == "age, sex …"


def test_columns_of_all_sections_begin_at_one_place():
    drawn = {
        "mark": "",
        "step": "pay",
        "method": "trees (CART)",
        "from": "age, sex, town, region, size of the household",
        "settings": "smoothing yes",
    }
    words, bare = StepDescription("", "", []), {"mark": "", "step": "", "method": "", "from": "", "settings": ""}
    texts = {
        "measure": StepTexts("Linkability", "age, sex"),
        "study": StepTexts("Uncertainty of the intruder's knowledge", "pay"),
        "threshold": StepTexts("People found for certain", "at most 1 %", is_limit=True),
    }
    steps = [StepRow("synthesis[0]", "synthesis", drawn, words, [])]
    steps += [StepRow(f"{name}[0]", name, bare, words, [], text) for name, text in texts.items()]
    rows = rows_with_headings(steps, 70)
    lines = [str(cells.get("step", "")) for _, cells in rows if "heading" not in cells][1:]
    starts = {line.index(about) for line, about in zip(lines, ("age, sex", "pay", "at most 1 %"), strict=True)}
    heads = [cells["heading"].text for _, cells in rows if "heading" in cells][1:]
    assert len(starts) == 1
    assert {head.index(word) - 3 for head, word in zip(heads, ("var", "var", "limit"), strict=True)} == starts
    columns = step_table(steps, width_of_step_names(steps, 70)).columns_in(rows, 76)
    widths = {one.name: one.width for one in columns}
    assert "settings" not in widths
    assert widths["step"] + 2 + widths["method"] + 2 in starts


def test_a_limit_does_not_say_of_whom_its_number_always_is():
    step = {"value": "risk.membership_inference.added_risk", "max": 0.05}
    for params, told in (
        ({"people": "random", "guesses": "all"}, ()),
        ({"people": "vulnerable"}, ("people easiest to find",)),
    ):
        given = {**step, "params": params}
        assert step_texts("threshold", describe_step("threshold", given, {}), given).settings == told


def test_every_method_that_draws_has_a_short_name_of_its_own():
    drawing = [key for key in registry() if key.startswith("synthesis.")]
    assert sorted(SHORT_TITLES) == sorted(drawing)
    assert len(set(SHORT_TITLES.values())) == len(drawing)
    assert max(map(len, SHORT_TITLES.values())) <= 21


@pytest.mark.slow
async def test_a_step_is_edited_in_a_form_made_from_its_spec(sit, built_data, size):
    async with sit(built_data, "g", "j", "enter", size=size, tab="plan") as seat:
        assert isinstance(seat.app.screen, Form)
        for words in (
            "Bayesian linear regression",
            "predictors",
            "transform",
            "[log]",
            "prior_sd",
            "the variable to synth",
        ):
            assert words in seat.text
        await seat.press("down", "down", "down", *"0")
        assert "prior_sd" in seat.text
        assert "must be above 0" in seat.text
        await seat.press("enter")
        assert isinstance(seat.app.screen, Form)
        await seat.press(*".5", "enter")
        assert not isinstance(seat.app.screen, Form)
        assert "prior_sd = 0.5" in text_area(seat).text
    plan, revision = stored(built_data)
    assert plan["synthesis"][0] == {
        "target": "income", "method": "linear_regression", "predictors": ["region", "visits"], "transform": "log", "prior_sd": 0.5,
    }  # fmt: skip
    assert revision == 1


@pytest.mark.slow
async def test_names_are_completed_and_near_misses_named(sit, built_data):
    async with sit(built_data, "g", "j", "enter", "down", "end", *", visit", tab="plan") as seat:
        assert 'did you mean "visits"?' in seat.text
        await seat.press("right")
        assert "region, visits, visits" in seat.text
        await seat.press("q", "escape")


@pytest.mark.slow
async def test_a_step_is_added(sit, built_data, size):
    async with sit(built_data, "g", "a", size=size, tab="plan") as seat:
        assert "Add a step" in seat.text
        await seat.press("down", "up", "slash", *"prop", "enter")
        assert "Propensity score" in seat.text
        await seat.press("l", "enter")
        await seat.until(lambda: "model logit_interactions" in seat.text)
        await seat.press("a", "slash", *"lim", "enter", "enter", *"0.1", "enter")
    plan, _ = stored(built_data)
    assert plan["measure"][3] == {"method": "utility.propensity", "model": "logit_interactions"}
    assert plan["threshold"][3]["max"] == 0.1


@pytest.mark.slow
async def test_a_parameter_that_must_be_given_is_asked_for(sit, built_data):
    async with sit(built_data, "g", "a", "slash", *"intruder_u", "enter", tab="plan") as seat:
        assert "must be given" in seat.text
        await seat.press(*"visits", "enter")
        assert not isinstance(seat.app.screen, Form)
    assert stored(built_data)[0]["study"][2] == {"method": "studies.intruder_uncertainty", "variable": "visits"}


@pytest.mark.slow
@pytest.mark.parametrize(("down", "up"), [("greater_than_sign", "less_than_sign")])
async def test_steps_are_moved_among_their_kind(sit, built_data, down, up):
    methods = [m["method"] for m in stored(built_data)[0]["measure"]]
    async with sit(built_data, "g", "j", "j", up, tab="plan"):
        assert stored(built_data)[1] == 0
    async with sit(built_data, "g", "j", "j", down, down, tab="plan"):
        assert [m["method"] for m in stored(built_data)[0]["measure"]] == [*methods[1:], methods[0]]
    async with sit(built_data, "g", "j", "j", "j", "j", up, up, tab="plan"):
        assert [m["method"] for m in stored(built_data)[0]["measure"]] == methods


@pytest.mark.slow
async def test_removing_is_taken_back_and_done_again(sit, built_data, size):
    before, _ = stored(built_data)
    async with sit(built_data, "g", "j", "j", "X", size=size, tab="plan") as seat:
        assert "measure[0] was removed" in seat.app.notices[-1]
        assert len(stored(built_data)[0]["measure"]) == 2
        await seat.press("u")
        assert stored(built_data)[0] == before
        await seat.press("ctrl+r")
        assert len(stored(built_data)[0]["measure"]) == 2
        await seat.press("u", "u", "u", "ctrl+r", "ctrl+r", "ctrl+r", "delete")
        assert len(stored(built_data)[0]["measure"]) == 1


@pytest.mark.slow
async def test_the_text_is_edited_and_the_list_keeps_in_step(sit, built_data, size):
    async with sit(built_data, "g", "t", size=size, tab="plan") as seat:
        text_area(seat).move_cursor((0, 0))
        await seat.press(*"label = ")
        assert "not valid TOML" in seat.text
        assert "linear_regression" in seat.text
        assert stored(built_data)[1] == 0
        await seat.press(*'"x"', "enter")
        assert "✓ R runs this plan" in seat.text
        await seat.press("escape")
        assert stored(built_data)[0]["label"] == "x"
        assert seat.app.screen.query_one(PlanTab).has_focus_within
        await seat.press("u")
        assert "label" not in stored(built_data)[0]


@pytest.mark.slow
async def test_typing_is_stored_after_a_second(sit, built_data, monkeypatch):
    monkeypatch.setattr("sfumato.tui.plan.plan.TYPING_SECONDS", 0.02)
    async with sit(built_data, "g", "t", tab="plan") as seat:
        text_area(seat).move_cursor((0, 0))
        await seat.press("#")
        await seat.until(lambda: stored(built_data)[1] == 1)


@pytest.mark.slow
async def test_text_that_cannot_be_read_is_in_the_way_of_the_list_until_u(sit, built_data):
    async with sit(built_data, "g", "t", tab="plan") as seat:
        text_area(seat).move_cursor((0, 0))
        await seat.press("[", "escape", "j", "X")
        assert "fix it first" in seat.app.notices[-1]
        await seat.press("R")
        assert seat.app.notices[-1] != ""
        assert len(seat.app.screen_stack) == 2
        await seat.press("u")
        assert "✓ run 4 is this plan; R runs it again" in seat.text
        assert stored(built_data)[1] == 0


@pytest.mark.slow
async def test_what_is_wrong_is_said_and_marked(sit, built_data, size):
    workspace = Workspace.open(built_data)
    draft = find_draft(workspace, 1)
    save_draft(workspace, draft.with_text(draft.toml.replace('"risk.identification"', '"risk.identificatio"')))
    workspace.close()
    async with sit(built_data, size=size, tab="plan") as seat:
        assert "did you mean" in seat.text or size[0] == 80
        assert any(line[1:].strip().startswith("✗") for line in seat.text.splitlines())
        await seat.press("R")
        assert "identificatio" in seat.app.notices[-1]


@pytest.mark.slow
async def test_data_and_release_have_a_form(sit, built_data):
    async with sit(built_data, "g", "enter", size=(80, 24), tab="plan") as seat:
        for words in ("Data and release", "where", "sample", "seed"):
            assert words in seat.text
        await seat.press(*["down"] * 6, "backspace", *"0")
        assert "0 must be at least 1" in seat.text
        await seat.press("backspace", *"4", "enter")
    plan, _ = stored(built_data)
    assert plan["release"] == {"m": 4, "seed": 7}
    assert plan["title"] == "Household survey"


@pytest.mark.slow
async def test_a_plan_is_run_after_a_question_and_its_run_is_shown(sit, built_data, no_worker, size):
    async with sit(built_data, "g", "R", size=size, tab="plan") as seat:
        assert "Run this plan?" in seat.text
        assert "3 datasets, 3 measures, 2 studies, 3 thresholds" in seat.text.replace("\n", " ") or size[0] == 80
        await seat.press("n")
        assert no_worker == []
        await seat.press("R", "y")
        assert "[3 Runs]" in seat.text
        assert "Run 5 started" in seat.app.notices
    with Workspace.open(built_data, read_only=True) as reader:
        first, new = find_run(reader, 1), find_run(reader, 5)
        assert (new.recipe_sha256, new.dataset_id, new.project_id) == (first.recipe_sha256, first.dataset_id, 1)
        assert len(list_runs(reader, 1)) == 5


@pytest.mark.slow
async def test_an_imported_file_is_planned_and_run(sit, empty_workspace, tmp_path, no_worker):
    from sfumato.tui.session.state import AppState, save_state
    from sfumato.workspace.service.importing import import_file

    rows = "\n".join(f"{20 + i % 30},{(i * 37) % 91 + 0.5}" for i in range(60))
    (tmp_path / "people.csv").write_text(f"age,cost\n{rows}\n")
    import_file(empty_workspace, str(tmp_path / "people.csv"), "")
    save_state(empty_workspace, AppState(project=1, tab="plan"))
    async with sit(empty_workspace, "R") as seat:
        assert "Run this plan?" in seat.text
        await seat.press("y")
        assert "the plan makes no release" in seat.app.notices[-1]
        await seat.press("a", "slash", *"linear", "enter", *"cost", "down", *"age", "enter")
        await seat.press("a", "slash", *"ecdf", "enter", "enter", "R", "y")
        assert "Run 1 started" in seat.app.notices
    with Workspace.open(empty_workspace, read_only=True) as reader:
        assert find_run(reader, 1).recipe.released == ("cost",)
        assert reader.connection.execute("SELECT count(*) FROM dataset").fetchone()[0] == 1


@pytest.mark.slow
async def test_a_run_is_duplicated_with_changes(sit, built_data):
    async with sit(built_data, "2", "G", "X", "3", "G", "d", size=(80, 24), tab="runs") as seat:
        assert "[2 Plan]" in seat.text
        assert len(stored(built_data)[0]["threshold"]) == 3
        await seat.press("u")
        assert len(stored(built_data)[0]["threshold"]) == 2


@pytest.mark.slow
async def test_a_plan_gives_the_records_at_risk_in_a_run_less_influence(sit, built_data):
    async with sit(built_data, "G", "act:weigh", size=(80, 24), tab="runs") as seat:
        assert "Less influence for the records at risk in run 1" in seat.text
        await seat.press("down", *"2")
        assert "must be above 0 and at most 1" in seat.text
        await seat.press("backspace", *"0.5", "enter")
        assert "[2 Plan]" in seat.text
        assert "weights of run 1" in seat.text
        await seat.press("R")
        assert "influence" in seat.text
        await seat.press("escape")
        assert stored(built_data)[0]["weights"] == {"run": 1, "measure": "risk.identification", "strength": 0.5}
        await seat.press("u")
        assert "weights" not in stored(built_data)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "has"), [(("act:weigh", "enter"), True), (("d",), False)])
async def test_a_plan_that_starts_from_a_run_waits_for_the_one_that_is_there(sit, built_data, keys, has, monkeypatch):
    """The plan is not read yet when another is asked for: whoever then runs it gets what was asked for, and not the old one."""

    def slowly(project_id, workspace):
        time.sleep(0.7)
        return find_draft(workspace, project_id)

    monkeypatch.setattr("sfumato.tui.parts.page._read_draft", slowly)
    async with sit(built_data, "G", *keys, size=(80, 24), tab="runs") as seat:
        assert "[2 Plan]" in seat.text
        assert ("weights" in stored(built_data)[0]) == has
        assert len(stored(built_data)[0]["threshold"]) == 3
        await seat.press("u")
        assert "weights" not in stored(built_data)[0]


@pytest.mark.slow
async def test_a_run_that_is_not_done_tells_nobody_at_risk(sit, built_data):
    async with sit(built_data, "g", "act:weigh", size=(80, 24), tab="runs") as seat:
        assert "Only a run that is done tells which records are at risk" in seat.app.notices[-1]


@pytest.mark.slow
async def test_edits_of_the_data_reach_the_plan_and_can_be_taken_back(sit, built_data):
    async with sit(built_data, "2", "1", "enter", "down", "l", "enter", "2", tab="data") as seat:
        assert 'role = "sensitive"' in text_area(seat).text.split("visits")[0]
        await seat.press("u")
        assert stored(built_data)[0]["variables"]["region"]["role"] == "quasi_identifier"


@pytest.mark.slow
async def test_a_project_without_data_names_the_next_key(sit, directory):
    async with sit(directory, "j", "enter", "2", "enter", "a", "R", "u", "d", size=(80, 24)) as seat:
        assert "This project has no data to plan for" in seat.text


@pytest.mark.parametrize("key", list(registry()))
def test_every_method_has_a_form_with_its_help_and_limits(key):
    method = registry()[key]
    fields = {field.name: field for field in step_fields(method, {}, ["a", "b"])}
    assert ("target" in fields) == (section_of_method(method) == "synthesis")
    for info in method.spec.params():
        assert info.param.help in fields[info.name].help
        assert info.param.limits_text in fields[info.name].help
        assert set(map(str, info.choices)) <= set(fields[info.name].choices)


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 100])
async def test_the_list_names_step_and_method_at_every_width(sit, built_data, width):
    async with sit(built_data, size=(width, 24), tab="plan") as seat:
        assert drawn_row(seat, "income").split()[1:3] == ["linear", "regression"]


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"SFUMATO_GLYPHS": "ascii"}])
async def test_data_plan_and_forms_without_colour_and_without_signs(sit, built_data, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with sit(built_data, "j", "enter", "down", "l", "escape", "2", "t", "escape", "enter", tab="data") as seat:
        assert "Bayesian linear regression" in seat.text
        await seat.press("escape", "a")
        assert "Add a step" in seat.text


@pytest.mark.slow
async def test_the_plan_is_edited_with_the_users_own_editor(sit, built_data, monkeypatch, tmp_path):
    editor = tmp_path / "editor.py"
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    monkeypatch.setattr(SfumatoApp, "suspend", lambda _: nullcontext())

    def does(old, new):
        editor.write_text(
            f"import sys; f = open(sys.argv[1], 'r+'); t = f.read().replace({old!r}, {new!r}); f.seek(0); f.truncate(); f.write(t)"
        )

    async with sit(built_data, "g", tab="plan") as seat:
        before = stored(built_data)[0]
        does("seed = 7", "seed = 8")
        await seat.press("E")
        await seat.until(lambda: stored(built_data)[0]["release"]["seed"] == 8)
        await seat.press("u")
        assert stored(built_data)[0] == before, "one step"
        does("seed = 7", "seed = = 7")
        await seat.press("E")
        await seat.until(lambda: "✗" in seat.text)
        assert "seed = = 7" in seat.app.screen.query_one(TomlText).text, "kept as it was typed"
        assert stored(built_data)[0] == before
        await seat.press("u")
        assert "seed = = 7" not in seat.app.screen.query_one(TomlText).text


@pytest.mark.slow
async def test_without_an_editor_the_plan_says_how_to_name_one(sit, built_data, monkeypatch):
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    async with sit(built_data, "g", "E", tab="plan") as seat:
        assert "set VISUAL or EDITOR" in seat.app.notices[-1]
        monkeypatch.setenv("EDITOR", "true")
        await seat.press("E")
        assert "not supported" in seat.app.notices[-1], "a terminal that cannot be left"


@pytest.mark.slow
async def test_a_run_that_is_asked_for_before_the_plan_is_read_is_asked_about_then(sit, built_data, no_worker):
    async with sit(built_data, tab="runs") as seat:
        for key in ("2", "R"):
            seat.app.simulate_key(key)
        await seat.press("shift")
        assert "Run this plan?" in seat.text


@pytest.mark.slow
async def test_the_step_under_the_cursor_is_named_and_said_whole(sit, built_data, size):
    """A method by its name and by its key, every setting, whom it replaces, what is measured and held against a limit.

    Where it has few lines, why and who knows the variable come first, and a mark says that more follows.
    """
    async with sit(built_data, "g", "j", size=size, tab="plan") as seat:
        said = seat.app.screen.query_one("#plan-step").content.plain
        if size[0] < 100:
            assert said.startswith("Bayesian linear regression: transform log\n"), "its settings have no column here"
            lines = said.splitlines()
            assert lines[1].startswith("why")
            assert "who knows it" in said
            assert said.endswith(" …")
            assert len(lines) == seat.app.screen.query_one("#plan-step").size.height
            return
        assert said.startswith("Bayesian linear regression\n")
        drawn = "draws income by Bayesian linear regression, given region, visits"
        for words in (drawn, "Settings at their default", "key synthesis.linear_regression"):
            assert words in " ".join(said.split()), "in columns or in lines, as wide as the pane is"
        await seat.press("G")
        said = seat.app.screen.query_one("#plan-step").content.plain
        assert "limit" in said
        assert "what to change" in said
        assert "replaces" not in said


@pytest.mark.slow
async def test_a_long_plan_keeps_its_list_and_a_low_terminal_has_no_step_below(sit, built_data):
    async with sit(built_data, size=(80, 14), tab="plan") as seat:
        assert not seat.app.screen.query_one("#plan-step").display
        assert "Identification risk" in seat.text
    async with sit(built_data, size=(80, 24), tab="plan") as seat:
        body, grid = (seat.app.screen.query_one(one).size.height for one in ("#plan-body", StepGrid))
        rows = seat.app.screen.query_one(StepGrid).row_count + 1
        assert min(grid, rows) >= 0.6 * body or grid == rows


@pytest.mark.slow
async def test_long_lines_of_the_text_are_broken_and_not_cut(sit, built_data):
    async with sit(built_data, "g", "G", "t", size=(100, 40), tab="plan") as seat:
        text = text_area(seat)
        assert text.max_scroll_x == 0
        assert text.cursor_location[0] > 0
        row = text.wrapped_document.location_to_offset(text.cursor_location).y
        assert text.scroll_y <= row < text.scroll_y + text.size.height


@pytest.mark.slow
async def test_what_was_typed_and_taken_back_by_hand_leaves_the_plan_ready_for_keys(sit, built_data):
    """Once enter did nothing after it: the text was the plan again, and nobody had read it."""
    async with sit(built_data, "g", tab="plan") as seat:
        await seat.press("t", "#", "backspace", "escape")
        assert "✓" in seat.text
        text = await seat.press("j", "enter")
        assert "Bayesian linear regression (synthesis.linear_regression)" in text
    assert stored(built_data)[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"run": 3, "measure": "risk.identification"}, "Records at risk in run 3 have less influence."),
        ({"known": ["age", "town"]}, "Records with rare values of age, town have less influence."),
        ({}, ""),
    ],
)
def test_the_question_before_a_run_says_which_records_have_less_influence(weights, said):
    table = {"synthesis": [{"method": "cart", "target": "pay"}], **({"weights": weights} if weights else {})}
    text = run_plan_text(PlanView("", (), table))
    assert said in text
    assert "  " not in text
    assert ("less influence" in text) is bool(said)
    assert text.endswith("It keeps running if you quit.")


@pytest.mark.slow
async def test_the_plan_says_what_it_releases_why_a_step_is_there_and_how_long_a_run_takes(sit, built_data):
    async with sit(built_data, size=(160, 50), tab="plan") as seat:
        said, released = (seat.app.screen.query_one(one) for one in ("#plan-step", "#plan-released"))
        await seat.until(lambda: "everybody keeps their own value" in released.content.plain)
        assert released.content.plain.splitlines()[:2] == [
            "What the plan releases",
            "unchanged      ! region, visits: everybody keeps their own value",
        ]
        assert "everybody" not in said.content.plain, "it stands on the screen once"
        await seat.until(lambda: " GB" in seat.text.splitlines()[3])
        text = " ".join(said.content.plain.split())
        assert "what it does draws income by Bayesian linear regression, given region, visits" in text
        assert "why the values as they were recorded are not released" in text
        assert "who knows it it is what an intruder wants to learn" in text
        assert "replaces income" not in text, "the sentence names it"


@pytest.mark.slow
async def test_below_the_steps_stand_who_knows_what_stays_and_what_the_gate_said_of_the_run(sit, built_data):
    async with sit(built_data, size=(160, 50), tab="plan") as seat:
        released = seat.app.screen.query_one("#plan-released")
        await seat.until(lambda: "Who knows what stays unchanged" in released.content.plain)
        assert "region         an intruder may know it" in released.content.plain
        assert "What run" not in released.content.plain, "the gate was not asked"
        await seat.press("3")
        await seat.until(lambda: "can be found" in seat.text)
        await seat.press("2")
        await seat.until(lambda: "What run 1 of this plan found" in released.content.plain)
        said = released.content.plain
        assert said.index("What run 1") < said.index("Found  ") < said.index("Who knows what stays")
        await seat.press("G", "X")
        await seat.until(lambda: "What run 1 of another plan found" in released.content.plain)


@pytest.mark.slow
async def test_long_steps_are_whole_where_rows_are_free_and_the_heading_ends_before_the_step(sit, built_data):
    async with sit(built_data, tab="plan", size=(120, 50)) as seat:
        listed_text = [line.strip("│").partition("│")[0] for line in seat.text.splitlines()[3:-3]]
        assert not [line for line in listed_text if line.rstrip().endswith("…")]
        assert "a match within" in " ".join(" ".join(listed_text).split())
        heading = next(line for line in seat.text.splitlines() if "runs it again" in line or "runs this plan" in line)
        assert heading.strip("│").count("│") == 1, "the list, the step, and the edge"

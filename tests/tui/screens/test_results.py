import pytest
from textual.widgets import Input

from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.findings.results import ResultLine, names_in_recipe, order_text, shortened_among, shortened_name
from sfumato.tui.parts.explain import number_facts
from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.pages import RowHeading
from sfumato.workspace.reporting.explanation import ExplainedNumber, describe_measure
from sfumato.workspace.reporting.words import interval_text, number, params_text, target_text
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import FAILURES, ResultSelection, read_selected_ids, read_selected_rows

ALONE = (117, 29)
"""A terminal in which the list stands alone; from 30 lines on the explanation stands below it."""


def count_numbers(grid):
    """The rows that are no headings."""
    return sum(not isinstance(grid.row_at(at)[0], RowHeading) for at in range(grid.row_count))


def head(seat):
    return seat.text.splitlines()[3]


@pytest.mark.slow
async def test_averages_are_shown_first(sit, directory, size):
    async with sit(directory, size=size, tab="results") as seat:
        assert "averages over the datasets" in head(seat)
        assert "for certain" in seat.text
        assert "measure and variable" in seat.text
        grid = seat.app.screen.query_one("#results Grid")
        with Workspace.open(directory, read_only=True) as reader:
            rows = read_selected_rows(reader, ResultSelection(1), 0, -1)
        assert count_numbers(grid) == len({(row.key, row.target) for row in rows}) < len(rows), (
            "one line a measure and variable"
        )


@pytest.mark.slow
async def test_d_adds_the_rows_of_single_datasets_and_takes_them_away(sit, directory):
    async with sit(directory, "b", tab="results") as seat:
        assert "all rows" in head(seat)
        assert "synthetic 3" in seat.text
        await seat.press("b")
        assert "averages" in head(seat)
        assert "synthetic 3" not in seat.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found", "absent"),
    [
        ("summary", "Standard deviation", "People found on average"),
        ("RISK synthetic !studies", "People found on average", "Standard deviation"),
        ("0.25", "q 0.25", "Standard deviation"),
    ],
)
async def test_slash_filters_by_words(sit, directory, words, found, absent):
    async with sit(directory, "m", "slash", tab="results", size=ALONE) as seat:
        assert seat.app.screen.query_one(Input).has_focus
        seat.app.screen.query_one(Input).value = words
        await seat.press("enter")
        assert f"filter: {words}" in head(seat)
        assert found in seat.text
        assert absent not in seat.text
        assert isinstance(seat.app.focused, Grid)


@pytest.mark.slow
async def test_letters_typed_into_the_filter_do_nothing_else(sit, directory):
    async with sit(directory, "slash", "q", "x", "3", tab="results") as seat:
        assert seat.app.screen.query_one(Input).value == "qx3"
        await seat.press("enter")
        assert 'No row has "qx3". Press / for another filter.' in seat.text


@pytest.mark.slow
async def test_escape_leaves_the_filter_as_it_was(sit, directory):
    async with sit(directory, "slash", "z", "escape", tab="results") as seat:
        assert "filter" not in head(seat)
        assert "[Numbers]" in seat.text
        assert not seat.app.screen.query_one(Input).display


@pytest.mark.slow
async def test_o_goes_through_the_columns_and_comes_back(sit, directory):
    async with sit(directory, tab="results", size=ALONE) as seat:
        seen = [head(seat).rsplit(" · ", 1)[1]]
        for _ in range(7):
            await seat.press("s")
            seen.append(head(seat).rsplit(" · ", 1)[1])
        first = "failures first (2 of 3 not met)"
        assert seen[:2] == [first, "by measure"], "one key turns back to the order of measures"
        assert seen[2:] == ["by target", "by dataset", "by level", "by value", "by status", first]


def numbers(seat):
    """The lines of the table of numbers."""
    return seat.text.splitlines()[6:-2]


@pytest.mark.slow
async def test_failures_stand_first_with_the_confidential_value_in_the_same_line(sit, directory):
    async with sit(directory, tab="results", size=ALONE) as seat:
        rows = numbers(seat)
        assert rows[0].strip("│ ") == "Which limits are not met?"
        assert rows[1].strip("│ ").startswith("✗")
        assert "People found on average " in rows[1]
        assert "68.75" in rows[1], "what the unprotected data would have"
        assert "6.539 of 90" in rows[1]
        assert "≤ 0" in rows[1], "less than a thousandth of a person is no one"
        assert [row for row in rows[3:] if "✗" in row] == []
        await seat.press("s")
        assert numbers(seat)[0].strip("│ ") == "Can people be found?"
        assert "✗" not in numbers(seat)[0]


@pytest.mark.slow
async def test_the_cursor_passes_headings_and_shows_those_of_its_row(sit, directory):
    async with sit(directory, tab="results", size=(80, 24)) as seat:
        grid = seat.app.screen.query_one("#results Grid")
        assert grid.cursor == 1, "the first line is a heading"
        for key in ("j",) * 12 + ("k",) * 7 + ("G", "pageup", "pagedown", "g", "k"):
            await seat.press(key)
            assert not isinstance(grid.row_at(grid.cursor)[0], RowHeading)
        assert grid.cursor == 1
        assert numbers(seat)[0].strip("│ ") == "Which limits are not met?", "its heading came into view with it"
        await seat.pilot.click(grid, offset=(3, 1))
        assert grid.cursor == 1, "a click on a heading chooses the row below it"


@pytest.mark.slow
async def test_below_150_columns_the_explanation_has_the_whole_width_below_the_list(sit, directory):
    async with sit(directory, tab="results", size=(120, 40)) as seat:
        detail, grid = seat.app.screen.query_one("#results Detail"), seat.app.screen.query_one("#results Grid")
        await seat.until(lambda: "in words" in seat.text)
        assert detail.region.y > grid.region.bottom - 1
        assert detail.region.width == grid.region.width == 118
        assert "├── Explanation ─" in seat.text
        assert "Only matches that are wrong" in seat.text, "names are whole"
        await seat.pilot.resize_terminal(150, 40)
        await seat.until(lambda: detail.region.x > grid.region.right - 1)
        assert "├── Explanation ─" not in seat.text
        await seat.pilot.resize_terminal(120, 29)
        await seat.until(lambda: not detail.is_on_screen)


@pytest.mark.slow
async def test_a_key_shows_every_setting_and_folds_them_again(sit, directory):
    async with sit(directory, tab="results", size=ALONE) as seat:
        grid = seat.app.screen.query_one("#results Grid")
        folded = count_numbers(grid)
        assert "▸" in seat.text
        await seat.press("m")
        with Workspace.open(directory, read_only=True) as reader:
            rows = read_selected_rows(reader, ResultSelection(1), 0, -1)
        await seat.until(lambda: count_numbers(grid) == len({row.series for row in rows}))
        assert "every setting" in head(seat)
        assert "▸" not in seat.text
        await seat.press("m")
        await seat.until(lambda: count_numbers(grid) == folded)


@pytest.mark.slow
async def test_a_key_goes_through_the_families_with_their_counts(sit, directory):
    async with sit(directory, tab="results", size=ALONE) as seat:
        grid = seat.app.screen.query_one("#results Grid")
        whole, seen = count_numbers(grid), []
        assert f"[all {whole}] · risk " in seat.text
        for family in ("risk", "utility", "studies"):
            await seat.press("f")
            await seat.until(lambda family=family: f"[{family} {count_numbers(grid)}]" in seat.text)
            assert f"{count_numbers(grid)} of {whole} numbers" in seat.text, "the frame counts them too"
            seen.append(count_numbers(grid))
        assert sum(seen) == whole
        await seat.press("f")
        await seat.until(lambda: count_numbers(grid) == whole)


@pytest.mark.slow
async def test_enter_lists_what_is_folded(sit, directory):
    save_state(directory, AppState(project=1, run=1, tab="results", filter="quantile income"))
    async with sit(directory, size=ALONE) as seat:
        assert count_numbers(seat.app.screen.query_one("#results Grid")) == 1
        await seat.press("enter")
        await seat.until(lambda: "related numbers" in seat.text)
        for q in ("0.25", "0.5", "0.75", "0.9"):
            assert f"income; q {q}: release " in seat.text


def test_what_is_said_of_the_order_holds_where_there_are_no_thresholds():
    """Where nothing was held against a limit nothing is said to have been met."""
    assert order_text(FAILURES, []) == "by measure, no limits"
    met = Verdict("risk.x.y", "", None, "max", 1.0, 0.5, 0.5, "met")
    assert order_text(FAILURES, [met]) == "by measure; the limit is met"
    assert order_text("value", [met]) == "by value"


@pytest.mark.slow
async def test_enter_explains_the_row_under_the_cursor(sit, directory, size):
    save_state(directory, AppState(project=1, run=1, tab="results", filter="identification true_match !largest"))
    async with sit(directory, "enter", size=size) as seat:
        if size == (80, 24):
            await seat.press("end")
        assert "risk.identification.true_match_rate" in seat.text
        for words in ("Identification risk", "lower is better", "released unprotected", "Reiter"):
            assert words in seat.text or size == (80, 24)
        await seat.press("q")
        assert "[Numbers]" in seat.text


@pytest.mark.slow
async def test_a_run_in_progress_shows_its_rows_so_far(sit, directory):
    async with sit(directory, "enter", "act:results") as seat:
        assert "rows so far; averages come when the run has ended" in head(seat)


@pytest.mark.slow
async def test_many_rows_are_read_a_page_at_a_time(sit, directory):
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        columns = "task_id, family, method, measure, target, dataset, draw, level, value, lower, upper, baseline, unit, status, reason, params"
        connection.execute(
            f"""INSERT INTO result (run_id, {columns}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
                SELECT run_id, task_id, family, method, measure, target || i, dataset, draw, level, i, lower, upper, baseline,
                       unit, status, reason, params
                FROM n, (SELECT * FROM result WHERE run_id = 1 AND draw IS NULL AND measure = 'attribute_risk' ORDER BY id DESC LIMIT 1)"""
        )
    workspace.close()
    async with sit(directory, "s", "s", "s", "s", tab="results", size=ALONE) as seat:
        await seat.press("G")
        await seat.press("shift")
        assert seat.app.screen.query_one("#results Grid").row_at(3000) is not None
        assert seat.reading.strip("│ ▁▂▃▄▅▆▇█▊") != "…", "no row that waits for its page"


def line(**changes):
    fields = {
        "family": "risk", "method": "identification", "measure": "true_match_rate", "target": "", "dataset": "synthetic",
        "draw": None, "level": None, "value": 0.01813, "lower": 0.009, "upper": 0.027, "baseline": 0.3, "unit": "",
        "status": "computed", "reason": "", "params": {"known": ["region"], "radius": {"income": "5%"}},
    }  # fmt: skip
    return Row(**{**fields, **changes})


def test_every_fact_of_a_row_is_told():
    told = number_facts(ExplainedNumber(line(level=0.1), n_records=1000), describe_measure(line().key))
    found = dict(told)
    assert found["direction"] == "lower is better"
    assert found["level"] == "0.1"
    assert found["in words"].startswith(
        "For 18.13 of 1,000 people (1.81 %), exactly one released record matches what the intruder knows"
    )
    assert found["how sure"] == "95 % interval 0.9 .. 2.7 %, over the released datasets"
    assert found["compared with"] == "300 of 1,000 people (30 %): what the method compares it with"
    assert found["intruder knows"] == "region"
    assert found["match within"] == "income 5%"
    assert found["key"] == "risk.identification.true_match_rate"


def test_facts_come_in_the_order_in_which_people_ask():
    own = line(dataset="confidential", value=0.4)
    low = Verdict(line().key, "", None, "max", 0.01, 0.01813, -0.00813, "not met", "", None)
    told = number_facts(ExplainedNumber(line(baseline=0.4), [own], [low], 1000), describe_measure(line().key))
    assert [name for name, _ in told] == [
        "in words", "here", "good is", "intruder knows", "compared with", "how sure", "verdict", "this means", "what to change",
        "definition", "in the field", "direction", "method", "source", "measured on", "what he knows", "match within",
            "left at default", "key",
    ]  # fmt: skip
    found = dict(told)
    assert found["verdict"] == "✗ not met: 18.13 of 1,000 (1.81 %), at most 1 %, 0.81 points outside the limit"
    assert found["compared with"] == "400 of 1,000 people (40 %): the same data released unprotected"
    assert found["this means"] == "More people are found for certain than the limit allows."


def test_a_verdict_that_is_met_needs_no_levers():
    good = Verdict(line().key, "", None, "max", 0.1, 0.01813, 0.08187, "met", "", None)
    found = dict(number_facts(ExplainedNumber(line(), (), [good], 1000), describe_measure(line().key)))
    assert found["verdict"] == "✓ met: 18.13 of 1,000 (1.81 %), at most 10 %, 8.19 points inside the limit"
    assert "what to change" not in found
    assert "this means" not in found


def test_a_row_that_was_not_computed_says_why():
    lacking = line(value=None, lower=None, upper=None, status="not computed", reason="no unique match")
    found = dict(number_facts(ExplainedNumber(lacking), describe_measure(line().key)))
    assert found["in words"].endswith("was not computed: no unique match.")
    assert "how sure" not in found


def test_a_method_of_another_version_is_named_as_unknown():
    assert "does not have" in describe_measure(line(method="gone").key).title
    assert "does not have" in describe_measure(line(measure="gone").key).title


@pytest.mark.parametrize(
    ("width", "name"),
    [(40, "People found for certain"), (20, "People found for ce…"), (12, "People foun…")],
)
def test_a_name_loses_its_end_where_there_is_no_room(width, name):
    assert shortened_name(width, ResultLine(line(), "", {})) == name


@pytest.mark.parametrize("width", [14, 20, 28, 40])
def test_names_of_one_recipe_stay_different_however_short(width):
    keys = ("quality.nmi_v1", "quality.nmi_v2", "risk.linkability", "risk.singling_out")
    names = names_in_recipe("".join(f'[[measure]]\nmethod = "{key}"\n' for key in keys))
    assert len(names) == sum(len(registry()[key].outputs) for key in keys) == 33
    short = shortened_among(names, width)
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= width


def test_a_word_of_a_human_name_finds_its_rows(directory):
    with Workspace.open(directory, read_only=True) as reader:
        found = read_selected_rows(reader, ResultSelection(1, filter_text="For certain"), 0, 100)
        assert {row.key.rpartition(".")[2] for row in found} == {"true_match_rate", "largest_true_match_rate"}
        named = read_selected_rows(reader, ResultSelection(1, filter_text="certain"), 0, 10_000)
        without = read_selected_rows(reader, ResultSelection(1, filter_text="!certain"), 0, 10_000)
        assert "true_match_rate" not in {row.key.rpartition(".")[2] for row in without}
        assert len(named) + len(without) == len(read_selected_ids(reader, ResultSelection(1)))


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.0093, 0.02695, "0.0093 .. 0.02695"),
        (10.577, 10.583, "10.58 .. 10.58"),
        (1234.5, 98765.4, "1,234 .. 98,765"),
        (None, 1.0, ""),
        (-0.5, 0, "-0.5 .. 0"),
    ],
)
def test_intervals_have_as_many_digits_as_values(lower, upper, text):
    assert interval_text(lower, upper) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.018131, "0.01813"), (12345.6, "12,346"), (1234.56, "1,235"), (None, "-"), (0, "0")]
)
def test_numbers_have_four_digits_and_separators(value, text):
    assert number(value) == text


def test_parameters_that_tell_rows_apart():
    params = {"q": 0.25, "known": ["a", "b"], "radius": {"price": "5%", "days": 5}, "flag": True}
    assert params_text(params) == "q 0.25, price ±5%, days ±5"
    assert target_text("price", {"q": 0.5}) == "price, q 0.5"
    assert params_text(None) == ""


def test_filters_bind_their_words(directory):
    with Workspace.open(directory, read_only=True) as reader:
        assert len(read_selected_ids(reader, ResultSelection(1, filter_text="'; DROP TABLE result; --"))) == 0
        assert len(read_selected_ids(reader, ResultSelection(1, filter_text="100% _"))) == 0
        assert len(read_selected_ids(reader, ResultSelection(1, filter_text="!summary"))) + len(
            read_selected_ids(reader, ResultSelection(1, filter_text="summary"))
        ) == len(read_selected_ids(reader, ResultSelection(1)))


@pytest.mark.slow
def test_a_page_is_a_slice_of_the_whole(directory):
    with Workspace.open(directory, read_only=True) as reader:
        selection = ResultSelection(1, with_draws=True, sort="value")
        whole = read_selected_rows(reader, selection, 0, 10_000)
        pages = [row for offset in range(0, len(whole), 7) for row in read_selected_rows(reader, selection, offset, 7)]
        assert pages == whole
        values = [row.value for row in whole if row.value is not None]
        assert values == sorted(values, reverse=True)


def test_settings_that_a_row_does_not_say_are_told_with_their_defaults():
    pmse = line(family="utility", method="propensity", measure="pmse", params={"model": "cart"})
    found = dict(number_facts(ExplainedNumber(pmse), describe_measure(pmse.key)))
    assert found["model"] == "cart"
    assert found["left at default"].startswith("minbucket 20, cp ")
    assert "model" not in found["left at default"]


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["results", "diagnostics"])
async def test_no_table_of_findings_is_greener_than_the_gate(sit, directory, tab):
    async with sit(directory, tab=tab, size=(120, 40)) as seat:
        green = seat.app.theme_variables["success"].lower()
        inks = [
            segment.style.color.get_truecolor().hex
            for strip in seat.app.screen._compositor.render_strips()
            for segment in strip
            if "✓" in segment.text and segment.style is not None and segment.style.color is not None
        ]
        assert green not in inks[1:], "the title line tells only that the run is done"

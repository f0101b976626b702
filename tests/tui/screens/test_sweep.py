import math

import pytest
from textual.content import Content

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.findings.study import whole_sentences
from sfumato.tui.findings.study_views import (
    CurveView,
    aligned_intervals,
    brief_pair,
    curve_reading,
    curve_rows,
    curve_series,
    group_by_study,
    level_rows,
    overlaid_curves,
    range_from_zero,
    round_text,
)
from sfumato.tui.terminal.glyphs import find_glyphs
from sfumato.tui.widgets.chart import draw_chart, draw_series
from sfumato.tui.widgets.frame import ChartStyle, PlotLabels
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.plots.series import Series
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.studies import StudyCurve, read_study_curves


def curve(dataset="synthetic", measure="risk", values=(4.0, 2.0, None), **changes):
    fields = {
        "key": "studies.intruder_uncertainty", "measure": measure, "target": "", "params": {"model": "log_normal"},
        "dataset": dataset, "levels": (0.0, 0.1, 0.2), "values": values, "lower": (3.0, 0.0, None), "upper": (5.0, 3.0, None),
    }  # fmt: skip
    return StudyCurve(**{**fields, **changes})


def head(seat):
    return next(line for line in seat.text.splitlines() if " scale" in line)


def question(seat):
    return seat.text.splitlines()[3]


@pytest.mark.slow
async def test_a_sweep_is_drawn_with_both_data(sit, directory, size):
    async with sit(directory, size=size, tab="sweep") as seat:
        assert "What if the intruder is less sure of visits?   study 1 of 2" in question(seat)
        assert "people on average" in " ".join(seat.text.splitlines()[4:6])
        assert "People found on average (1 of 8) · log scale" in head(seat), "curves far apart"
        assert "confidential data" in seat.text
        assert "release" in seat.text
        assert seat.text.count("how unsure the intruder is of visits") == 1, "an axis has its label once"
        assert "release, 95 % interval" in seat.text, "the legend names the bars"
        assert "An intruder who is less sure of visits" in seat.text.splitlines()[4], "what was found comes first"
        assert "how unsure the intruder is of visits: 0 (sure)" in seat.text
        rows = [line.split() for line in seat.text.splitlines() if "95 % interval" in line or ".." in line]
        assert any("confidential" in row and "uncertainty" in row for row in rows), "the numbers are below the plot"
        assert "left and right move the cursor" in seat.text
        plot = seat.app.screen.query_one("#study-plot", Plot)
        assert plot.cursor_x == 0, "the first level is read without a key"
        assert not plot._picture.fills.any(), "an interval is a bar through its mark, and no block"
        assert sum(one.marker == "points" for one in plot._series) == 2, "the measured levels are marked"


def test_studies_of_units_come_before_the_same_of_records():
    records, units = curve(), curve(params={"model": "log_normal", "by": "unit"})
    other = curve(key="studies.other")
    assert [study[0][0].params.get("by", "") for study in group_by_study([records, units, other])] == ["unit", "", ""]


def test_an_axis_begins_at_0_and_has_the_whole_band():
    own = curve("confidential", values=(4000.0, 3900.0, None), lower=(None,) * 3, upper=(None,) * 3)
    low, high = range_from_zero([curve_series(own), curve_series(curve())])
    assert low == 0
    assert 4000 < high < 4400
    assert range_from_zero([Series("", (0, 1), (-1.0, 2.0))]) is None, "values below 0 need their own range"
    assert range_from_zero([]) is None


def test_a_finding_ends_with_a_whole_sentence():
    text = Content("One of 9 people is found. With the confidential data released unchanged: 2,314.")
    assert whole_sentences(text, 30, 1).plain == "One of 9 people is found."
    assert whole_sentences(text, 200, 1).plain == text.plain


@pytest.mark.slow
async def test_m_and_dots_go_through_measures_and_studies(sit, directory):
    async with sit(directory, tab="sweep") as seat:
        seen = [head(seat)]
        for _ in range(8):
            await seat.press("m")
            seen.append(head(seat))
        assert [line.strip("│ ").partition(" (")[0] for line in seen] == [
            "People found on average", "People found for certain", "Only matches that are wrong", "People with an only match",
            "People found on average, best window", "People found for certain, best window", "Sensitive values disclosed",
            "Sensitive values disclosed, best window", "People found on average",
        ]  # fmt: skip
        await seat.press("act:previous_picture")
        assert "best window (8 of 8)" in head(seat)
        assert "study 1 of 2" in question(seat)
        assert "…" not in question(seat), "what does not fit is left out, and not cut"
        await seat.press("full_stop")
        assert "study 2 of 2" in question(seat)
        assert "best window (8 of 8)" in head(seat)
        assert "study 2 of 2   a match: income ±5%" in question(seat)
        assert "…" not in question(seat)
        await seat.press("comma")
        assert "study 1 of 2" in question(seat)


@pytest.mark.slow
async def test_the_cursor_reads_values_in_their_own_unit_on_both_scales(sit, directory):
    # A plot of many lines has ticks between the powers of 10.
    async with sit(directory, "home", tab="sweep", size=(160, 60)) as seat:
        said = seat.reading
        assert said.strip().startswith("uncertainty 0:   confidential data")
        with Workspace.open(directory, read_only=True) as reader:
            found = [one for one in read_study_curves(reader, 1) if one.measure == "expected_match_risk"]
        assert curve_reading(found[0], 0.0) in said
        assert "log scale" in head(seat), "suggested for curves that lie far apart"
        ticks = [line.split("┤")[0].strip() for line in seat.text.splitlines() if "┤" in line]
        assert {"2", "5", "10", "20", "50"} <= set(ticks)
        await seat.press("o")
        assert "linear scale" in head(seat)
        assert seat.reading == said
        await seat.press("o")
        assert "log scale" in head(seat)


@pytest.mark.slow
async def test_a_small_terminal_has_a_plot_with_a_scale_and_the_numbers_of_its_levels(sit, directory):
    async with sit(directory, tab="sweep", size=(80, 24)) as seat:
        grid = seat.app.screen.query_one("#study-numbers", Grid)
        assert grid.size.height == 2, "the head and the level at the cursor"
        assert grid.row_key == 0.0
        assert seat.app.screen.query_one("#study-plot", Plot).size.height >= 12, "the plot has most of the height"
        assert "left and right move the cursor" in seat.reading
        await seat.press("end")
        await seat.until(lambda: grid.row_key == 0.2)
        assert "t all levels" in seat.reading, "the row has the values, and no second line repeats them"
        await seat.press("t")
        assert grid.size.height > 2
        await seat.press("t")
        assert sum("┤" in line for line in seat.text.splitlines()) >= 2, "ticks of y"
        assert "○" in seat.text
        assert "●" in seat.text


@pytest.mark.slow
async def test_a_low_terminal_has_the_numbers_of_all_levels_below_the_plot(sit, directory):
    async with sit(directory, tab="sweep", size=(80, 28)) as seat:
        grid = seat.app.screen.query_one("#study-numbers", Grid)
        assert grid.display
        assert grid.row_key == 0.0
        await seat.press("end")
        await seat.until(lambda: grid.row_key == 0.2)
        assert grid.size.height == 1 + grid.row_count, "the head and every level"


@pytest.mark.slow
async def test_a_large_terminal_has_the_numbers_of_every_measure_the_shown_one_first(sit, directory):
    async with sit(directory, "m", tab="sweep", size=(160, 50)) as seat:
        lines = seat.text.splitlines()
        at = next(i for i, line in enumerate(lines) if "confidential data" in line and "measure" in line)
        assert "People found for certain " in lines[at + 1]
        assert any("People found on average " in line for line in lines[at + 2 :])


def test_a_line_goes_through_its_marks():
    series = [Series("a", (0.0, 1.0, 2.0), (5.1, 1.3, 3.7)), Series("a", (0.0, 1.0, 2.0), (5.1, 1.3, 3.7), marker="points", thin=True)]  # fmt: skip
    look = ChartStyle(find_glyphs("braille"), shade="bounds")
    frame = draw_chart(series, (60, 30), PlotLabels(), look).frame
    line, marks = (draw_series(one, at, series, frame, look) for at, one in enumerate(series))
    down, across = frame.glyphs.dots_down, frame.glyphs.dots_across
    for row, column in marks.marks:
        cell = line.mask[row * down : (row + 1) * down, column * across : (column + 1) * across]
        assert cell[down // 2].any(), "in the middle of the cell of the mark"


@pytest.mark.slow
async def test_t_shows_the_numbers(sit, directory):
    async with sit(directory, "t", tab="sweep") as seat:
        assert "confidential data" in seat.text
        assert "95 % interval" in seat.text
        assert "0.2" in seat.text
        await seat.press("m")
        assert "People found for certain" in head(seat)
        await seat.press("t")
        assert isinstance(seat.app.focused, Plot)


@pytest.mark.slow
async def test_marked_runs_are_laid_over_the_sweep(sit, directory, no_worker, size):
    copy_run(directory)
    async with sit(directory, tab="runs", size=size) as seat:
        await seat.press("g", "space", "G", "space", "enter", "act:sweep")
        assert "run 1" in seat.text.splitlines()[0]
        assert f"release of run {COPY}" in seat.text
        assert "1 of 1 marked runs laid over it" in head(seat) or size[0] == 80
        own = [line for line in seat.text.splitlines() if "marked runs" in line]
        await seat.press("home")
        assert f"release of run {COPY}" in seat.reading or size[0] == 80
        await seat.press("3", "g", "space", "act:sweep")
        assert f"release of run {COPY}" not in seat.text
        assert len(own) <= 1


COPY = 5


def copy_run(directory):
    """Run 1 once more, as if another run had found the same."""
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        for table, where in (("run", "id"), ("task", "run_id"), ("result", "run_id")):
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            shift = {"run": {"id": str(COPY)}, "task": {"id": "id + 10000", "run_id": str(COPY)},
                     "result": {"id": "id + 100000", "run_id": str(COPY), "task_id": "task_id + 10000"}}[table]  # fmt: skip
            columns = ", ".join(shift.get(name, name) for name in names)
            connection.execute(f"INSERT INTO {table} SELECT {columns} FROM {table} WHERE {where} = 1")
    workspace.close()


def test_only_the_same_sweep_of_a_release_is_laid_over():
    others = [curve(), curve("confidential"), curve(measure="rate"), curve(params={"model": "other"})]
    assert [one.dataset for one in overlaid_curves([curve("confidential"), curve()], {7: others})] == [
        "release of run 7"
    ]
    assert overlaid_curves([], {7: others}) == []


@pytest.mark.slow
async def test_a_run_without_a_study_yet_says_so(sit, directory):
    async with sit(directory, "enter", "act:sweep", "m", "full_stop", "o", "t") as seat:
        assert "No studies yet" in seat.text


def test_curves_are_grouped_by_study_and_measure_confidential_first():
    other = {"model": "log_relative"}
    found = group_by_study([curve(), curve("confidential"), curve(measure="rate"), curve(params=other)])
    assert [[[c.dataset for c in measure] for measure in study] for study in found] == [
        [["confidential", "synthetic"], ["synthetic"]],
        [["synthetic"]],
    ]


def test_values_that_were_not_computed_are_gaps():
    series = curve_series(curve(values=(100.0, 0.0, None)))
    assert series.name == "release"
    assert series.y[:2].tolist() == [100.0, 0.0]
    assert math.isnan(series.y[2])


def test_a_curve_without_intervals_has_no_band():
    series = curve_series(curve(lower=(None,) * 3, upper=(None,) * 3))
    assert series.lower is None
    assert series.y[:2].tolist() == [4.0, 2.0]


def test_numbers_set_the_release_against_the_confidential_data():
    rows = level_rows([curve("confidential", values=(8.0, 0.0, 1.0)), curve()])
    assert [row["ratio"] for row in rows] == ["0.5", "-", "-"]
    assert rows[0] == {
        "level": "0", "confidential": "8", "released": "4", "interval": "3 .. 5", "shares": "", "ratio": "0.5",
    }  # fmt: skip


def test_the_numbers_say_what_the_band_is_made_of():
    known = curve(variance_shares=((1.0, 0.0, 0.0), (0.304, 0.606, 0.09), None))
    assert curve_reading(known, 0.1) == curve_reading(curve(), 0.1) == "release 2 (0 .. 3)"
    assert [row["shares"] for row in level_rows([curve("confidential"), known])] == [
        "datasets 100 %, noise 0 %, both together 0 %", "datasets 30 %, noise 61 %, both together 9 %", "",
    ]  # fmt: skip
    heads, rows = curve_rows([known])
    assert heads[-3:] == ("dataset_share", "noise_share", "interaction_share")
    assert [row[-3:] for row in rows] == [(1.0, 0.0, 0.0), (0.304, 0.606, 0.09), (None, None, None)]


def limit_series(**changes):
    """Return the series of a limit of 3 on the curve's measure; None without one."""
    given = {"value": "studies.intruder_uncertainty.risk", "target": "", "level": None, "bound": "max", **changes}
    verdict = Verdict(**given, limit=3.0, observed=None, margin=None, outcome="met")
    view = CurveView([[curve()]], {}, verdicts=[verdict])
    return next((one for one in view.plot_series(0) if one.name == "limit, at most"), None)


def test_the_limit_of_a_measure_is_drawn_at_the_levels_at_which_it_holds():
    everywhere, at_one = limit_series(), limit_series(level=0.1)
    assert (everywhere.x.tolist(), everywhere.y.tolist(), everywhere.marker) == ([0, 0.1, 0.2], [3, 3, 3], "line")
    assert (at_one.x.tolist(), at_one.y.tolist(), at_one.marker) == ([0.1], [3], "points")


def test_a_finding_says_both_ends_in_people_and_a_limit_is_whole():
    own = curve("confidential", "true_match_rate", (0.5, 0.4, 0.2))
    rate = curve(measure="true_match_rate", values=(0.002, 0.001, 0.0001))
    verdict = Verdict(
        "studies.intruder_uncertainty.true_match_rate", "", None, "max",
        limit=0.01, observed=None, margin=None, outcome="met",
    )  # fmt: skip
    view = CurveView([[own, rate]], {}, records=4162, verdicts=[verdict])
    assert view.finding_text(0) == (
        "People found for certain: 0.42 at uncertainty 0.2 instead of 8.3 of 4,162 people (0.2 %) if the intruder is "
        "sure. The plan allows at most 41 people (1 %): met at every level. With the data released unprotected: 832 "
        "instead of 2,081."
    )
    drawn = view.plot_series(0)
    limit = next(one for one in drawn if one.name == "limit, at most")
    assert limit.labels == ("", "", "limit: at most 41 people (1 %)")
    assert limit.thin, "its label names it, and not the legend"
    assert [one.labels for one in drawn if one.labels and one is not limit] == [
        ("2,081", "1,665", "832"), ("8.32", "4.16", "0.416"),
    ]  # fmt: skip


def test_what_a_level_is_is_said_as_far_as_there_is_room():
    view = CurveView([[curve(params={"model": "log_normal", "variable": "pay"})]], {})
    said = "uncertainty: error of the logarithm"
    assert view.level_meaning(120) == f"{said} for a value of 1, growing with the value"
    assert view.level_meaning(60) == f"{said} for a value of 1"
    assert view.level_meaning(40) == said
    assert view.level_meaning(20) == ""


def test_the_axis_is_short_and_names_its_zero():
    view = CurveView([[curve(params={"model": "log_normal", "variable": "pay"})]], {})
    assert view.panel_at(0).x_label == "how unsure the intruder is of pay"
    assert view.name_of_zero == "0 (sure)"
    assert CurveView([[curve(key="studies.other")]], {}).name_of_zero == "", "another axis has no such zero"


@pytest.mark.parametrize(
    ("measure", "values", "said"),
    [
        ("expected_match_risk", (1.235, 1.0, 0.504), "finds 0.5 people on average instead of 1.2 of 4,162."),
        ("expected_match_risk", (1.235, 1.0, 1.0), "finds 1 person on average instead of 1.2 of 4,162."),
        ("expected_match_risk", (1.24, 1.0, 1.21), "finds 1.21 people on average instead of 1.24 of 4,162."),
        ("largest_expected_match_risk", (49.812, 1.0, 49.808), "People found on average, best window: 49.81 of 4,162 people (1.2 %), at uncertainty 0 as at 0.2."),
        ("largest_expected_match_risk", (80.0, 1.0, 20.0), "finds 20 people on average with the best window instead of 80 of 4,162."),
        ("false_match_rate", (0.9928, 0.5, 0.9588), "Only matches that are wrong: 95.88 % instead of 99.28 % if the intruder is less sure of pay (0.2)."),
        ("unique_matches", (98.8, 50.0, 10.0), "People with an only match: 10 instead of 99 of 4,162 people if the intruder is less sure of pay (0.2)."),
    ],
)  # fmt: skip
def test_the_headline_says_in_a_sentence_what_less_certainty_finds(measure, values, said):
    params = {"model": "log_normal", "variable": "pay"}
    view = CurveView([[curve(measure=measure, values=values, params=params)]], {}, records=4162)
    text = view.finding_text(0)
    assert said in text
    assert text.startswith("An intruder who is less sure of pay (0.2) ") == said.startswith("finds")


def test_digits_are_cut_only_where_nothing_is_lost():
    assert [round_text(one, 3) for one in ("0.9213", "1.235", "843.5", "2,717", "0.5", "0.04", "1,843.5", "-")] == [
        "0.921", "1.24", "844", "2,717", "0.5", "0.04", "1,844", "-",
    ]  # fmt: skip
    assert round_text("99.98 %", 3) == "99.98 %", "a share that is not all is not all in few digits either"
    assert brief_pair("1.2352", "1.2351") == ("1.2352", "1.2351")


def test_intervals_stand_below_each_other():
    assert aligned_intervals(["0.7315 .. 2.086", "", "0.148 .. 1.716"]) == ["0.73 .. 2.09", "", "0.15 .. 1.72"]
    assert aligned_intervals(["98.43 .. 99.67 %", "9.3 .. 10 %"]) == ["98.43 .. 99.67 %", "  9.3 ..    10 %"]
    assert aligned_intervals(["680 .. 1,203", "90 .. 95"]) == ["680 .. 1,203", " 90 ..    95"]
    assert aligned_intervals(["0.000002 .. 1.2"]) == ["0.000002 .. 1.2"], "an end is never rounded to 0"
    assert aligned_intervals(["0.07492 .. 2.19", "1,665 .. 2,497"]) == ["0.0749 ..  2.19", " 1,665 .. 2,497"]
    assert aligned_intervals([""]) == [""]


def test_an_interval_is_drawn_whole_or_not_at_all():
    labels, look = PlotLabels(log_y=True), ChartStyle(find_glyphs("braille"), True, "bounds")
    for lower, upper, seen in ((0.5, 1.0, 0), (1.0, 2.0, 0), (0.2, 5.0, 2), (1.0, 40.0, 1)):
        line = Series("a", (0, 1, 2), (1.0, 1.0, 1.0), (lower,) * 3, (upper,) * 3)
        wide = Series("b", (0, 1, 2), (0.01, 100.0, 1.0), marker="points")
        picture = draw_chart(
            [line, Series("a", line.x, line.y, marker="points", thin=True), wide], (60, 14), labels, look
        ).picture
        ends = "".join(picture.row_text(row) for row in range(picture.height - 3))
        assert ("┬" in ends) + ("┴" in ends) == seen, (lower, upper)


def test_labels_stand_beside_an_interval_above_or_below_the_line():
    look = ChartStyle(find_glyphs("braille"), True, "bounds")
    x, y = (0, 1, 2, 3), (1.0,) * 4
    line = Series("a", x, y, (0.2,) * 4, (5.0,) * 4)
    marks = Series("a", x, y, marker="points", thin=True, labels=("1.235",) * 4)
    picture = draw_chart([line, marks], (60, 20), PlotLabels(log_y=True), look).picture
    rows = [picture.row_text(row) for row in range(picture.height)]
    through = next(row for row in rows if row.count("○") == 4 or row.count("●") == 4)
    assert sum(row.count("1.235") for row in rows) == 4
    assert "1.235" not in through, "the dots of the line run through that row"


def test_where_the_limit_is_crossed_is_said_in_words():
    key, own = "studies.intruder_uncertainty.risk", curve(values=(4.0, 2.0, 1.0))

    def said(limit, level=None, bound="max", outcome="met"):
        """Return what is said of a limit."""
        verdict = Verdict(key, "", level, bound, limit=limit, observed=None, margin=None, outcome=outcome)
        return CurveView([[own]], {}, verdicts=[verdict])._limit_text(own)

    assert CurveView([[own]], {})._limit_text(own) == "The plan sets no limit on it."
    assert said(4.5) == "The plan allows at most 4.5: met at every level."
    assert said(4.5, outcome="undecided") == "The plan allows at most 4.5: undecided."
    assert said(3.0) == "The plan allows at most 3: within that from uncertainty 0.1 on, beyond it below."
    assert said(0.5) == "The plan allows at most 0.5: not met at any level."
    assert said(1.5, level=0.1) == "The plan allows at most 1.5: not met at any level."
    assert (
        said(3.0, bound="min") == "The plan allows at least 3: within that up to uncertainty 0, beyond it from 0.1 on."
    )
    assert said(3.0, bound="max_ratio") == "", "a limit of another kind is no limit of these values"


def test_values_are_in_people_or_per_cent_as_in_the_table_of_numbers():
    share = curve(measure="true_match_rate", values=(0.000096, 0.5, None), lower=(0.000018, 0.4, None), upper=(0.0005261, 0.6, None))  # fmt: skip
    (row, *_) = level_rows([share], 4162)
    assert row["released"] == "0.3996"
    assert row["interval"] == "0.0749 ..  2.19"
    drawn = CurveView([[share]], {}, records=4162).plot_series(0)
    assert drawn[0].y[1] == 2081, "the plot has people too"
    assert curve_reading(share, 0.1, 4162) == "release 2,081 (1,665 .. 2,497)"


@pytest.mark.parametrize("changes", [{"target": "age"}, {"bound": "max_ratio"}, {"params": {"model": "rounded"}}])
def test_a_limit_of_something_else_is_not_drawn(changes):
    assert limit_series(**changes) is None

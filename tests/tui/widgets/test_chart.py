import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from sfumato.tui.terminal.glyphs import ASCII, BLOCK, BRAILLE, GLYPHS
from sfumato.tui.widgets.canvas import CURSOR, SERIES
from sfumato.tui.widgets.chart import add_cursor, draw_chart, draw_chart_text, series_colours, series_readings
from sfumato.tui.widgets.frame import ChartStyle, PlotLabels
from sfumato.workspace.plots.series import Series

LEVEL = np.linspace(0, 0.15, 16)
RISK = 0.04 * np.exp(-9 * LEVEL)
SWEEP = [Series("synthetic", LEVEL, RISK, 0.9 * RISK, 1.1 * RISK), Series("confidential", LEVEL, 2 * RISK)]
KINDS = [
    SWEEP,
    [Series("F", np.arange(9), np.arange(9) / 9, marker="steps")],
    [Series("few", np.arange(9), np.arange(9) ** 2, np.arange(9), 3 * np.arange(9) ** 2, marker="points")],
    [Series("many", np.arange(400) % 37, np.arange(400) % 53, marker="points")],
    [Series("a", range(4), [5, 3, 0, 1], marker="bars"), Series("b", range(4), [4, 3, 1, -1], marker="bars")],
]


@pytest.mark.slow
@pytest.mark.parametrize("glyphs", GLYPHS)
@pytest.mark.parametrize("series", KINDS, ids=["sweep", "steps", "few", "many", "bars"])
@pytest.mark.parametrize("colour", [True, False])
def test_every_kind_is_drawn_at_every_size(glyphs, series, colour):
    look = ChartStyle(GLYPHS[glyphs], colour, "background" if colour else "dots")
    labels = PlotLabels("A title", "x", "y")
    for width, height in [(0, 0), (1, 1), (2, 9), (9, 2), (20, 6), (33, 11), (80, 24), (200, 60)]:
        picture = draw_chart(series, (width, height), labels, look).picture
        assert (picture.width, picture.height) == (width, height)
        for row in range(height):
            assert cell_len(picture.row_text(row)) == width
            assert "".join(text for text, _, _ in picture.ink_runs(row)) == picture.row_text(row)


def test_runs_keep_the_ink_of_every_character_and_the_fill_of_every_cell():
    labels = PlotLabels(x_label="level")
    chart = draw_chart(SWEEP, (80, 24), labels, ChartStyle())
    picture = add_cursor(chart, SWEEP, labels, 0.05)
    for row in range(24):
        cells = [(ink, fill) for text, ink, fill in picture.ink_runs(row) for _ in text]
        assert [fill for _, fill in cells] == picture.fills[row].tolist()
        for place, (ink, _) in enumerate(cells):
            assert ink == picture.inks[row, place] or picture.characters[row, place] == " "
            assert ink != CURSOR or picture.inks[row, place] == CURSOR


def test_a_diagonal_falls_on_the_diagonal_dots():
    chart = draw_chart([Series("", [0, 1], [0, 1])], (40, 14), PlotLabels(), ChartStyle(ASCII, False, "dots"))
    frame = chart.frame
    area = chart.picture.characters[frame.top : frame.top + frame.rows, frame.left :]
    for column in range(frame.columns):
        row = (1 - column / (frame.columns - 1)) * (frame.rows - 1)
        drawn = np.flatnonzero(area[:, column] == "o")
        assert drawn.size
        assert np.abs(drawn - row).max() <= 1
    assert (area[0, -1], area[-1, 0]) == ("o", "o")


def test_crossing_lines_keep_all_their_dots():
    rising, falling = Series("r", [0, 1], [0, 1]), Series("f", [0, 1], [1, 0])
    look = ChartStyle(BRAILLE, True, "dots")

    def dots(series):
        chart = draw_chart(series, (40, 14), PlotLabels(), look)
        frame = chart.frame
        area = chart.picture.characters[frame.top : frame.top + frame.rows, frame.left :]
        return np.vectorize(lambda c: 0 if c == " " else ord(c) - 0x2800)(area)

    assert np.array_equal(dots([rising, falling]), dots([rising, rising]) | dots([falling, falling]))
    assert not np.array_equal(dots([rising, falling]), dots([rising, rising]))


@pytest.mark.parametrize("glyphs", GLYPHS)
@pytest.mark.parametrize("marker", ["line", "steps", "points", "bars"])
def test_series_are_told_apart_without_colour(glyphs, marker):
    x = np.arange(12.0)
    same = [Series(name, x, x + 1, marker=marker) for name in "ab"]
    chart = draw_chart(same, (60, 16), PlotLabels(), ChartStyle(GLYPHS[glyphs], False, "dots"))
    first, second = (chart.picture.row_text(0)[start : start + 4] for start in (0, chart.frame.legend.entry_width + 2))
    assert first.strip()
    assert first != second
    hidden = Series("", x, np.full(12, np.nan), marker=marker)
    alone = [draw_chart(pair, (60, 16), PlotLabels(), ChartStyle(GLYPHS[glyphs], False, "dots")) for pair in (
        [same[0], hidden], [hidden, same[1]])]  # fmt: skip
    areas = [c.picture.characters[c.frame.top : c.frame.top + c.frame.rows, c.frame.left :] for c in alone]
    assert not np.array_equal(*areas)


def test_with_colour_lines_are_whole():
    chart = draw_chart(
        [Series("", [0, 1], [1, 1]), Series("", [0, 1], [2, 2])], (40, 12), PlotLabels(), ChartStyle(BRAILLE, True)
    )
    frame = chart.frame
    rows = {frame.cell_of(0.5, y)[0] for y in (1, 2)}
    assert all((chart.picture.characters[row, frame.left :] != " ").all() for row in rows)
    inks = {int(chart.picture.inks[row, frame.left + 5]) for row in rows}
    assert inks == {SERIES, SERIES + 1}


def test_a_band_covers_what_lies_between_its_bounds():
    chart = draw_chart(
        [Series("", [0, 10], [5, 5], [2, 2], [8, 8])],
        (50, 20),
        PlotLabels(),
        ChartStyle(BRAILLE, True),
        y_range=(0, 10),
    )
    frame = chart.frame
    fills = chart.picture.fills[frame.top : frame.top + frame.rows, frame.left :]
    for row in range(frame.rows):
        centre = frame.y_scale.to_data(row * 4 + 1.5)
        assert (fills[row] == (2 < centre < 8)).all()


def test_without_colour_a_band_is_hatched():
    series = [Series("", [0, 10], [5, 5], [2, 2], [8, 8])]
    chart = draw_chart(series, (50, 20), PlotLabels(), ChartStyle(BRAILLE, False, "dots"), y_range=(0, 10))
    frame = chart.frame
    assert not chart.picture.fills.any()
    for row in range(frame.rows):
        drawn = (chart.picture.characters[frame.top + row, frame.left :] != " ").any()
        inside = frame.y_scale.to_data(row * 4 + 3) > 2.2 and frame.y_scale.to_data(row * 4) < 7.8
        assert drawn or not inside


def test_ascii_needs_only_ascii():
    for series in KINDS:
        assert draw_chart_text(series, 80, 24, glyphs="ascii", title="t", x_label="x", y_label="y").isascii()


def test_block_and_braille_use_their_own_characters():
    assert set("▀▄█▌▐") & set(draw_chart_text(SWEEP, 60, 20, glyphs="block"))
    assert not any(0x2800 <= ord(c) < 0x2900 for c in draw_chart_text(SWEEP, 60, 20, glyphs="block"))
    assert any(0x2800 <= ord(c) < 0x2900 for c in draw_chart_text(SWEEP, 60, 20, glyphs="braille"))


@pytest.mark.parametrize(
    ("series", "reason"),
    [([], "no series"), ([Series("a", [], [])], "no values"), ([Series("a", [1], [np.nan])], "every value is missing")],
)
def test_nothing_to_draw_says_so(series, reason):
    assert draw_chart_text(series, 50, 5).strip() == f"nothing to draw: {reason}"


@pytest.mark.parametrize("x", [[3], [3, 3], [3, 4]])
def test_one_point_and_equal_values_are_drawn(x):
    text = draw_chart_text([Series("a", x, [7.0] * len(x), marker="points")], 40, 12)
    assert text.count("○") == len(set(x)) + 1


def test_a_title_labels_and_names_stand_in_the_picture():
    text = draw_chart_text(SWEEP, 90, 20, title="Risk by level", x_label="level", y_label="rate")
    assert text.startswith("Risk by level  rate")
    assert "synthetic" in text
    assert text.rstrip().endswith("level")
    named = draw_chart_text(KINDS[4], 60, 20, x_names=["Entire home", "Private room", "Shared room", "Hotel"])
    assert all(name in named for name in ("Entire home", "Private room", "Shared room", "Hotel"))


def test_levels_that_are_numbers_are_rounded_where_they_do_not_fit():
    levels = ["0", "3.258096", "3.931826", "4.564348"]
    named = draw_chart_text(KINDS[4], 34, 20, x_names=levels)
    assert "3.258096" not in named
    assert all(level in named for level in ("3.258", "3.932", "4.564"))
    assert all(level in draw_chart_text(KINDS[4], 80, 20, x_names=levels) for level in levels)
    alike = draw_chart_text(KINDS[4], 34, 20, x_names=["0", "3.2580961", "3.2580962", "4"])
    assert "3.258 " not in alike, "numbers that would look equal are cut as names are"
    codes = draw_chart_text(KINDS[4], 34, 20, x_names=["007", "0123456789", "0223456789", "0323456789"])
    assert "007" in codes
    assert "e+" not in codes


def test_too_many_series_for_the_key_are_counted():
    series = [Series(f"series {i}", [0, 1], [0, i]) for i in range(20)]
    text = draw_chart_text(series, 40, 12)
    shown = len(re.findall(r"series \d+", text))
    assert f"+{20 - shown} more" in text


def test_coloured_text_is_the_same_characters_in_colour():
    coloured = draw_chart_text(SWEEP, 70, 20, colour=True)
    assert "38;2;86;180;233" in coloured
    picture = draw_chart(SWEEP, (70, 20), PlotLabels(), ChartStyle(BRAILLE, True)).picture
    plain = re.sub(r"\x1b\[[\d;]*m", "", coloured).split("\n")
    assert [line.rstrip() for line in plain] == [picture.row_text(row).rstrip() for row in range(20)]


def test_names_from_a_file_cannot_reach_the_terminal_as_commands():
    text = draw_chart_text(
        [Series("evil\x1b[2J\nname", [0, 1], [0, 1])], 60, 12, title="a\x07b", x_label="\x9b2J", y_label="\u202e"
    )
    assert text.replace("\n", "").isprintable()
    assert "evil?[2J name" in text


def test_wide_names_keep_the_columns():
    picture = draw_chart(
        [Series("日本語テキスト", [0, 1], [0, 1])], (30, 10), PlotLabels("題名"), ChartStyle(BLOCK)
    ).picture
    assert {cell_len(picture.row_text(row)) for row in range(10)} == {30}


def test_the_cursor_reads_every_series_and_marks_its_place():
    labels = PlotLabels(x_label="level")
    chart = draw_chart(SWEEP, (90, 24), labels, ChartStyle(BRAILLE, True))
    picture = add_cursor(chart, SWEEP, labels, 0.05)
    text = "\n".join(picture.row_text(row) for row in range(24))
    value = 0.04 * np.exp(-0.45)
    assert f"{value:.4g} ({0.9 * value:.4g} .. {1.1 * value:.4g})" in text
    assert f"{2 * value:.4g}" in text
    assert "level = 0.05" in text
    assert (picture.inks == CURSOR).sum() == 2
    column = chart.frame.cell_of(0.05, 0.04)[1]
    assert picture.characters[chart.frame.top + chart.frame.rows, column] == "▲"
    assert [r.value for r in series_readings(chart.frame, SWEEP, 9.0)] == [None, None]


def test_only_rows_the_cursor_touches_change():
    chart = draw_chart(SWEEP, (90, 24), PlotLabels(), ChartStyle(BRAILLE, True))
    before, after = (add_cursor(chart, SWEEP, PlotLabels(), x) for x in (0.05, 0.06))
    assert 0 < after.changed_rows(before).size <= 2 + 1 + 1 + 4
    assert before.changed_rows(before).size == 0


def test_colours_are_the_series_own_or_the_next_of_the_palette():
    series = [Series("a", [1], [1]), Series("b", [1], [1], style="red")]
    assert series_colours(series, ["blue", "green"]) == ["blue", "red"]


def test_pictures_stay_small():
    for series in KINDS:
        assert len(draw_chart_text(series, 120, 40).encode()) < 12_000


BARS = Series("records", [0, 1, 2], [5, 12, 3], marker="bars")


def test_a_single_series_that_the_axis_names_has_no_legend_and_is_read_at_the_foot():
    labels = PlotLabels(x_label="age", y_label="records")
    chart = draw_chart([BARS], (60, 16), labels, ChartStyle(BRAILLE, True))
    assert "\n".join(chart.picture.row_text(row) for row in range(16)).count("records") == 1
    picture = add_cursor(chart, [BARS], labels, 1.0)
    assert "age = 1: 12 records" in picture.row_text(15)
    small = draw_chart([BARS], (60, 6), labels, ChartStyle(BRAILLE, True))
    assert "age = 1: 12 records" in add_cursor(small, [BARS], labels, 1.0).row_text(5)


def test_names_of_places_that_begin_alike_are_told_apart():
    names = ("Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Widowed")
    bars = Series("records", range(6), [1, 2, 3, 4, 5, 6], marker="bars")
    line = draw_chart(
        [bars], (37, 16), PlotLabels(y_label="records", x_names=names), ChartStyle(BRAILLE, True)
    ).picture.row_text(14)
    assert line.split() == ["Div…", "…AF-", "…civ", "…spo", "Nev…", "Wid…"]
    wide = draw_chart(
        [bars], (160, 16), PlotLabels(y_label="records", x_names=names), ChartStyle(BRAILLE, True)
    ).picture.row_text(14)
    assert wide.split() == list(names)


def test_of_many_places_some_are_named_and_none_by_a_mere_ellipsis():
    names = tuple(f"{letter * 3}-level" for letter in "abcdefghijklmnop")
    bars = Series("records", range(16), range(1, 17), marker="bars")
    shown = (
        draw_chart([bars], (37, 16), PlotLabels(y_label="records", x_names=names), ChartStyle(BRAILLE, True))
        .picture.row_text(14)
        .split()
    )
    assert 4 <= len(shown) == len(set(shown))
    assert all(len(name) >= 3 for name in shown)


def test_other_series_keep_their_legend():
    named = draw_chart(
        [Series("confidential", [0, 1], [5, 12])], (60, 16), PlotLabels(y_label="records"), ChartStyle(BRAILLE, True)
    )
    both = draw_chart(
        [BARS, replace(BARS, name="released")], (60, 16), PlotLabels(y_label="records"), ChartStyle(BRAILLE, True)
    )
    assert "confidential" in named.picture.row_text(1)
    assert "released" in both.picture.row_text(1)
    assert both.picture.row_text(1).count("records") == 1


@pytest.mark.slow
def test_a_chart_needs_no_screen():
    code = "import sys, sfumato.tui.widgets.chart, sfumato.tui.widgets.pages; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_bars_stand_on_the_line_of_their_0():
    labels, look = PlotLabels(), ChartStyle(BRAILLE, True)
    for marker, lines in (("bars", 1), ("line", 0)):
        chart = draw_chart([Series("n", (0.0, 1.0, 2.0), (4.0, 2.0, 1.0), marker=marker)], (40, 12), labels, look, y_range=(0.0, 4.0))  # fmt: skip
        rows = [chart.picture.row_text(row) for row in range(12)]
        assert sum(row.lstrip().startswith(f"0{BRAILLE.corner}") for row in rows) == lines, marker


def test_intervals_of_few_points_are_bars_through_their_marks_and_labels_stand_beside_these():
    x, y, lower, upper = (0.0, 1.0, 2.0), (10.0, 6.0, 2.0), (8.0, 6.0, 1.0), (12.0, 6.0, 5.0)
    series = [
        Series("a", x, y, lower, upper),
        Series("a", x, y, marker="points", thin=True, labels=("10 people", "", "2 people")),
        Series(
            "limit", (0.0, 2.0), (8.0, 8.0), marker="line", thin=True, style="bold", labels=("", "limit: at most 8")
        ),
    ]
    chart = draw_chart(series, (60, 24), PlotLabels(reads_in_legend=False), ChartStyle(BRAILLE, True, "bounds"))
    text = "\n".join(chart.picture.row_text(row) for row in range(24))
    area = text.split("\n", 1)[1]
    assert area.count("○") == 3
    rows = area.splitlines()[: chart.frame.rows]
    assert sum(row.count("┬") for row in rows) == 2, "a bar at each interval that is higher than its mark"
    assert any(row.rstrip().endswith("│") for row in rows)
    assert "10 people" in area
    assert "2 people" in area
    assert "limit: at most 8" in area, "a limit is named at its line"
    assert "limit" not in text.splitlines()[0], "and not in the legend"
    assert "○" in text.splitlines()[0], "the legend has the mark"
    many = [replace(one, x=np.linspace(0, 2, 50), y=np.ones(50), lower=np.zeros(50), upper=np.full(50, 3.0)) for one in series[:1]]  # fmt: skip
    dotted = draw_chart(many, (60, 24), PlotLabels(), ChartStyle(BRAILLE, True, "bounds"))
    assert "┬" not in "".join(dotted.picture.row_text(row) for row in range(20)), "many points have dotted ends"


def test_labels_never_cover_marks_or_each_other():
    x = np.arange(30.0)
    series = [Series("a", x, x % 3), Series("a", x, x % 3, marker="points", thin=True, labels=("12,345",) * 30)]
    chart = draw_chart(series, (50, 12), PlotLabels(), ChartStyle(BRAILLE, True, "bounds"))
    bare = draw_chart([replace(one, labels=()) for one in series], (50, 12), PlotLabels(), ChartStyle(BRAILLE, True, "bounds"))  # fmt: skip
    text, without = ("".join(one.picture.row_text(row) for row in range(12)) for one in (chart, bare))
    assert text.count("○") == without.count("○")
    assert all(part == "12,345" for part in re.findall(r"\d*,\d*", text))


def test_without_values_in_it_a_legend_takes_one_row():
    series = [
        Series("confidential data", (0, 1), (1, 2)),
        Series("release, 95 % interval", (0, 1), (2, 3), (1, 2), (3, 4)),
    ]
    rows = [
        draw_chart(series, (78, 20), PlotLabels(reads_in_legend=reads), ChartStyle()).frame.legend.rows
        for reads in (True, False)
    ]
    assert rows == [2, 1]


def test_labels_of_two_series_never_read_as_one_number():
    x = np.array([0.0, 1.0, 2.0])
    series = [
        Series(name, x, y, marker="points", thin=True, labels=labels)
        for name, y, labels in (("a", x * 0 + 0.4, ("0.4",) * 3), ("b", x * 0, ("0",) * 3))
    ]
    lines = [Series(one.name, x, one.y) for one in series]
    picture = draw_chart(
        [*lines, *series], (60, 9), PlotLabels(), ChartStyle(BRAILLE, True, "bounds"), y_range=(0.0, 60.0)
    ).picture
    rows = [picture.row_text(row).partition("│")[2] for row in range(1, 6)]
    words = [word for row in rows for word in re.findall(r"[0-9.]+", row)]
    assert words
    assert set(words) <= {"0.4", "0"}, "a blank is between two labels"

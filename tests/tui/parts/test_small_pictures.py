"""Small pictures of the values of all variables."""

from __future__ import annotations

import pytest

from sfumato.tui.data.sheet import sheet_columns, whole_sheet_width
from sfumato.tui.data.small_pictures import HEADING, bar_lines, small_pictures

pytestmark = pytest.mark.quick

COUNTS = {"age": [1, 4, 8, 4], "sex": [5, 5], "town": list(range(40))}


def test_bars_are_as_high_as_their_counts_and_none_above_0_is_blank():
    lines = bar_lines([8, 4, 1, 0], 4, 2)
    assert lines == ["█   ", "██▂ "]
    assert bar_lines([], 3, 2) == ["   ", "   "]


def test_few_levels_have_broad_bars_apart():
    assert bar_lines([2, 2], 8, 1) == ["███ ███ "]


def test_more_bars_than_cells_are_added_up():
    assert bar_lines([1] * 8, 4, 1) == ["████"]


def test_ascii_terminals_have_ascii_bars(monkeypatch):
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    assert bar_lines([2, 1], 2, 1) == ["##"]


def test_all_pictures_fit_or_there_are_none():
    lines = [one.plain for one in small_pictures(COUNTS, "age", 100, 20)]
    assert lines[0] == HEADING
    assert [name for name in COUNTS if name in lines[-1]] == list(COUNTS)
    assert len(lines) == 7, "heading, five lines of bars, names"
    assert small_pictures(COUNTS, "age", 100, 3) == []
    assert small_pictures({}, "", 100, 20) == []
    assert max(map(len, lines)) <= 100


def test_the_name_under_the_cursor_has_the_most_weight():
    names = small_pictures(COUNTS, "sex", 100, 20)[-1]
    assert ["bold" in str(span.style) for span in names.spans] == [False, True, False]


def test_a_title_that_would_be_cut_has_the_room_of_empty_columns_and_of_the_kind():
    plain = {one.name: one.width for one in sheet_columns(78, 7, lacking=False, longest_title=50)}
    told = {one.name: one.width for one in sheet_columns(78, 7, lacking=False, longest_title=50, is_told_below=True)}
    bare = {one.name for one in sheet_columns(78, 7, lacking=False, faulty=False, longest_title=12, is_told_below=True)}
    assert "kind" in plain
    assert "kind" not in told
    assert told["title"] > plain["title"]
    assert {"kind", "title"} <= bare
    assert "mark" not in bare


def test_a_whole_sheet_cuts_no_title():
    columns = {one.name: one.width for one in sheet_columns(whole_sheet_width(60), 12, longest_title=60)}
    assert columns["title"] >= 60
    assert "kind" in columns

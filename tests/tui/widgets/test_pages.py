import datetime
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from sfumato.tui.terminal.text import cell_text, cut_text, fit_text, split_cells
from sfumato.tui.widgets.pages import PAGE, ListPages, PageCache, PageFeed, RowHeading, RowLayout
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.visible_text import replace_unprintable

COLUMNS = (
    DisplayColumn("id", "Record", 6, "right"),
    DisplayColumn("room", "Room type", 8),
    DisplayColumn("price", "Price", 7, "right"),
)


def numbers(count, start=0):
    return ListPages(COLUMNS, [(i + start, f"room {i}", i / 2) for i in range(count)])


def deliver(feed, wanted, keep=False):
    order = feed.next_request(wanted)
    return None if order is None else feed.store_page(order.fetch_page(), keep)


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(st.text(max_size=40), st.integers(0, 30), st.sampled_from(["left", "right"]))
def test_fitted_text_has_exactly_its_width(text, width, align):
    fitted = fit_text(replace_unprintable(text), width, align)
    assert cell_len(fitted) == width
    assert fitted.isprintable()
    assert "".join(split_cells(fitted)).isprintable()


def test_text_is_cut_only_when_it_does_not_fit():
    assert cut_text("abcdef", 6) == "abcdef"
    assert cut_text("abcdef", 5) == "abcd…"
    assert cut_text("日本語", 5) == "日本…"
    assert cut_text("日本語", 4) == "日 …"
    assert cut_text("abc", 0) == ""
    assert cut_text("abcdef", 4, "~") == "abc~"


def test_commands_to_the_terminal_do_not_pass():
    assert replace_unprintable("a\x1b[31mb\nc\td\u202ee\x9b") == "a?[31mb c d?e?"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (math.nan, "–"), (pd.NA, "–"), (pd.NaT, "–"), (np.float64("nan"), "–"), (3.0, "3"), (0.1234567, "0.123457"),
     (np.int64(4), "4"), (True, "True"), ("a\nb", "a b"), (datetime.date(2020, 1, 2), "2020-01-02"), (1e20, "1e+20"),
     (math.inf, "inf")],
)  # fmt: skip
def test_values_are_shown_on_one_line(value, text):
    assert cell_text(value) == text


def test_a_row_is_laid_out_under_its_header():
    table = RowLayout(COLUMNS)
    assert table.header_line() == " Record  Room ty…    Price "
    assert table.row_line((7, "Entire home", 12.5)) == "      7  Entire …     12.5 "
    assert table.row_line((7,)) == "      7                    "
    assert len(table.header_line()) == table.width == 27
    assert [table.header_line()[1 + start] for start in table.column_starts] == ["R", "R", " "]
    assert RowLayout(COLUMNS, "~").row_line((None, None, None)).isascii()
    assert RowLayout(()).row_line(()).isspace()


def test_a_cache_forgets_the_page_not_used_for_longest():
    cache = PageCache(most=2)
    for page in (0, 1):
        cache.put_page(page, [(page,)] * PAGE)
    assert cache.row_at(0) == (0,)
    cache.put_page(2, [(2,)])
    assert cache.row_at(PAGE) is None
    assert cache.row_at(0) == (0,)
    assert cache.row_at(2 * PAGE) == (2,)
    assert cache.row_at(2 * PAGE + 1) is None
    assert cache.missing_page(0, 10) is None
    assert cache.missing_page(0, PAGE) == 1


def test_stale_pages_are_shown_but_asked_for_again():
    cache = PageCache()
    assert cache.put_page(1, [("a",), ("b",)]) == [PAGE, PAGE + 1]
    cache.mark_outdated()
    assert cache.row_at(PAGE) == ("a",)
    assert cache.missing_page(PAGE, PAGE) == 1
    assert cache.put_page(1, [("a",), ("c",)]) == [PAGE + 1]
    assert cache.missing_page(PAGE, PAGE) is None


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 2000), st.integers(0, 2500), st.integers(0, 60))
def test_a_feed_brings_every_row_that_is_wanted_one_order_at_a_time(count, top, lines):
    source, feed = numbers(count), PageFeed()
    feed.open_source(source, top)
    orders = 0
    while (order := feed.next_request([(top, top + lines)])) is not None:
        assert feed.next_request([(0, count)]) is None
        feed.store_page(order.fetch_page(), keep=False)
        orders += 1
    assert feed.count == count
    assert orders <= 3
    for index in range(min(top, count - 1), min(top + lines, count - 1) + 1):
        assert index < 0 or feed.row_at(index) == source.rows(index, 1)[0]
    assert feed.row_at(count) is None


def test_an_old_source_is_shown_until_the_new_one_is_open():
    feed = PageFeed()
    feed.open_source(numbers(10), 0)
    deliver(feed, [])
    feed.open_source(numbers(20, start=100), 15)
    assert (feed.count, feed.row_at(0)) == (10, (0, "room 0", 0.0))
    change = deliver(feed, [])
    assert (change.opened, change.all_changed) == (True, True)
    assert (feed.count, feed.row_at(0)) == (20, (100, "room 0", 0.0))


def test_a_source_that_was_replaced_while_it_was_read_is_forgotten():
    feed, old, new = PageFeed(), numbers(10), numbers(20)
    feed.open_source(old, 0)
    order = feed.next_request([])
    feed.open_source(new, 0)
    assert feed.next_request([]) is None
    change = feed.store_page(order.fetch_page(), keep=False)
    assert (change.opened, list(change.changed_rows), feed.count) == (False, [], 0)
    deliver(feed, [])
    assert feed.count == 20


def test_only_rows_that_differ_change_when_a_table_of_the_same_length_takes_its_place():
    rows = [(i, "room", 0.0) for i in range(700)]
    feed = PageFeed()
    feed.open_source(ListPages(COLUMNS, rows), 0)
    deliver(feed, [], keep=True)
    deliver(feed, [(0, 699)])
    rows[3], rows[600] = (3, "room", 1.0), (600, "room", 1.0)
    feed.open_source(ListPages(COLUMNS, rows), 0)
    change = deliver(feed, [], keep=True)
    assert (change.opened, change.all_changed, change.changed_rows) == (True, False, [3])
    assert feed.row_at(600) == (600, "room", 0.0)
    assert deliver(feed, [(0, 699)]).changed_rows == [600]
    feed.open_source(ListPages(COLUMNS, rows[:50]), 0)
    assert deliver(feed, [], keep=True).all_changed


def test_a_source_that_fails_leaves_nothing_but_room_for_another():
    feed, source = PageFeed(), numbers(10)
    feed.open_source(source, 0)
    feed.next_request([])
    assert feed.give_up(source)
    assert feed.count == 0
    assert feed.next_request([(0, 10)]) is None
    assert not feed.give_up(source)
    feed.open_source(numbers(3), 0)
    deliver(feed, [])
    assert feed.count == 3


def test_a_long_text_continues_in_empty_cells_alone():
    columns = (DisplayColumn("name", "Name", 6, spills=True), DisplayColumn("a", "A", 4), DisplayColumn("b", "B", 4))
    layout = RowLayout(columns)
    assert layout.row_line(("long names", "", "1")) == " long names    1    "
    assert layout.row_line(("long names", "2", "")) == " long …  2          "
    assert layout.row_line(("a very long name", "", "")) == " a very long name   "
    assert {len(layout.row_line(("long names", one, ""))) for one in ("", "2")} == {layout.width}


def test_a_heading_has_the_whole_line():
    layout = RowLayout(COLUMNS)
    assert layout.row_line((RowHeading("Can people be found?"),)).startswith(" Can people be found?")
    assert layout.row_line((RowHeading("Linkage", is_minor=True),)).startswith("    Linkage")
    assert len(layout.row_line((RowHeading("long " * 20),))) == layout.width

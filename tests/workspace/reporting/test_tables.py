"""One table as text, as HTML and on a grid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.reporting.tables import (
    DisplayCell,
    DisplayColumn,
    DisplayTable,
    fit_columns,
    fold_text,
    format_table,
    grid_value,
    grid_width,
    outcome_cell,
    table_from_titles,
    table_html,
)  # fmt: skip

WIDE = table_from_titles(
    ("name", "value", "note", "more"), [["a", "1", "n" * 30, "m" * 30]], right=(1,), spare=(3, 2), title="T"
)


def test_text_leaves_spare_columns_out_in_their_order_until_it_fits() -> None:
    assert "more" in format_table(WIDE)
    assert "more" not in format_table(WIDE, 60)
    assert "note" in format_table(WIDE, 60)
    assert "note" not in format_table(WIDE, 20)
    assert format_table(WIDE, 5).splitlines()[:2] == ["T", "name  value"], "what is not spare stays"


def test_columns_without_a_word_are_left_out_and_rows_without_columns_are_no_error() -> None:
    assert format_table(table_from_titles(("a", "b"), [["x", ""], ["y", ""]])) == "a\n-\nx\ny"
    assert format_table(table_from_titles(("a", "b"), [])) == "a  b\n-  -"


def test_an_outcome_has_a_sign_in_ascii_text_in_html_and_on_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    column = DisplayColumn("o", "outcome")
    made = DisplayTable([column], [[outcome_cell("met")]])
    assert format_table(made).endswith("+ met")
    assert "✓ met" in table_html(made)
    assert grid_value(outcome_cell("met")) == "✓ met"
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    assert grid_value(outcome_cell("met")) == "+ met"
    assert "✓ met" in table_html(made), "a page does not depend on the terminal"


def test_a_page_has_the_full_words_and_the_columns_that_a_line_has_no_room_for() -> None:
    columns = [
        DisplayColumn("m", "EMR", full_title="expected match risk"),
        DisplayColumn("i", "interval", page_only=True),
    ]
    made = DisplayTable(columns, [[DisplayCell("1", full_text="1.000"), "0 .. 2"]], "short", full_title="in full")
    assert format_table(made) == "short\nEMR\n---\n1"
    for words in ("in full", "expected match risk", "1.000", "0 .. 2"):
        assert words in table_html(made)


def test_names_of_strangers_are_shown_as_text() -> None:
    made = table_from_titles(("a",), [["\x1b[31m<b>"]], title="\x1b]52;")
    assert "\x1b" not in format_table(made)
    assert "&lt;b&gt;" in table_html(made)


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_a_grid_takes_the_width_it_gets(width: int) -> None:
    columns = (
        DisplayColumn("a", "a", 10, grow_order=True),
        DisplayColumn("b", "b", 10),
        DisplayColumn("c", "c", 20, drop_order=1),
    )
    shown = fit_columns(columns, width)
    assert grid_width(shown) == max(width, 24)
    assert [column.name for column in shown] == (["a", "b", "c"] if width >= 46 else ["a", "b"])


@given(st.text("ab._/- ", min_size=1, max_size=60), st.integers(3, 30))
def test_words_that_go_on_below_lose_nothing_but_blanks(words: str, width: int) -> None:
    lines = fold_text(words, width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(words.split())


def test_words_break_at_blanks_and_inside_only_where_they_are_longer_than_a_line() -> None:
    assert fold_text("Expenditure of households", 12) == ["Expenditure", "of", "households"]
    assert fold_text("risk.identification.true_match_rate", 22) == ["risk.identification.", "true_match_rate"]
    assert fold_text("at most one word", 10, "  ") == ["at most", "  one word"]
    assert fold_text("Expenditure", 6) == ["Expend", "iture"]


@given(st.lists(st.tuples(st.text("ab c", max_size=50), st.text("12", max_size=8)), min_size=1, max_size=4))
def test_a_table_fits_its_terminal(rows: list[tuple[str, str]]) -> None:
    table = DisplayTable((DisplayColumn("what", "what"), DisplayColumn("n", "n", align="right")), tuple(rows))
    assert all(len(line) <= 30 for line in format_table(table, 30).splitlines())
    whole = format_table(table)
    assert format_table(table, max(map(len, whole.splitlines()))) == whole, "what fits stays as it is"

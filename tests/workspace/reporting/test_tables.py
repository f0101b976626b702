"""One table as text, as HTML and on a grid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.reporting.tables import (
    Cell,
    Column,
    Table,
    fitted,
    folded,
    grid_width,
    html,
    on_grid,
    outcome_cell,
    table,
    text,
)  # fmt: skip

WIDE = table(("name", "value", "note", "more"), [["a", "1", "n" * 30, "m" * 30]], right=(1,), spare=(3, 2), title="T")


def test_text_leaves_spare_columns_out_in_their_order_until_it_fits() -> None:
    assert "more" in text(WIDE)
    assert "more" not in text(WIDE, 60)
    assert "note" in text(WIDE, 60)
    assert "note" not in text(WIDE, 20)
    assert text(WIDE, 5).splitlines()[:2] == ["T", "name  value"], "what is not spare stays"


def test_columns_without_a_word_are_left_out_and_rows_without_columns_are_no_error() -> None:
    assert text(table(("a", "b"), [["x", ""], ["y", ""]])) == "a\n-\nx\ny"
    assert text(table(("a", "b"), [])) == "a  b\n-  -"


def test_an_outcome_has_a_sign_in_ascii_text_in_html_and_on_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    column = Column("o", "outcome")
    made = Table([column], [[outcome_cell("met")]])
    assert text(made).endswith("+ met")
    assert "✓ met" in html(made)
    assert on_grid(outcome_cell("met")) == "✓ met"
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    assert on_grid(outcome_cell("met")) == "+ met"
    assert "✓ met" in html(made), "a page does not depend on the terminal"


def test_a_page_has_the_full_words_and_the_columns_that_a_line_has_no_room_for() -> None:
    columns = [Column("m", "EMR", full="expected match risk"), Column("i", "interval", page=True)]
    made = Table(columns, [[Cell("1", full="1.000"), "0 .. 2"]], "short", full="in full")
    assert text(made) == "short\nEMR\n---\n1"
    for words in ("in full", "expected match risk", "1.000", "0 .. 2"):
        assert words in html(made)


def test_names_of_strangers_are_shown_as_text() -> None:
    made = table(("a",), [["\x1b[31m<b>"]], title="\x1b]52;")
    assert "\x1b" not in text(made)
    assert "&lt;b&gt;" in html(made)


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_a_grid_takes_the_width_it_gets(width: int) -> None:
    columns = (Column("a", "a", 10, grows=True), Column("b", "b", 10), Column("c", "c", 20, spare=1))
    shown = fitted(columns, width)
    assert grid_width(shown) == max(width, 24)
    assert [column.name for column in shown] == (["a", "b", "c"] if width >= 46 else ["a", "b"])


@given(st.text("ab._/- ", min_size=1, max_size=60), st.integers(3, 30))
def test_words_that_go_on_below_lose_nothing_but_blanks(words: str, width: int) -> None:
    lines = folded(words, width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(words.split())


def test_words_break_at_blanks_and_inside_only_where_they_are_longer_than_a_line() -> None:
    assert folded("Expenditure of households", 12) == ["Expenditure", "of", "households"]
    assert folded("risk.identification.true_match_rate", 22) == ["risk.identification.", "true_match_rate"]
    assert folded("at most one word", 10, "  ") == ["at most", "  one word"]
    assert folded("Expenditure", 6) == ["Expend", "iture"]


@given(st.lists(st.tuples(st.text("ab c", max_size=50), st.text("12", max_size=8)), min_size=1, max_size=4))
def test_a_table_fits_its_terminal(rows: list[tuple[str, str]]) -> None:
    table = Table((Column("what", "what"), Column("n", "n", align="right")), tuple(rows))
    assert all(len(line) <= 30 for line in text(table, 30).splitlines())
    whole = text(table)
    assert text(table, max(map(len, whole.splitlines()))) == whole, "what fits stays as it is"

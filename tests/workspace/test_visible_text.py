"""Texts of strangers in files that others open: nothing is hidden, and no reader finds a formula, whatever it takes for the delimiter."""

from __future__ import annotations

import csv
import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.visible_text import REPLACEMENT, is_formula, is_hidden, plain_cell, replace_hidden

SIGNS = "=+-@＝﹢－＠−⁻"
ALPHABET = st.characters() | st.sampled_from(
    f"{SIGNS};,|\t\r\n \"'\u200b\u200d\u202e\u2028\u00ad\ufe0f\U000e0041\u3164\x1b1a"
)
HOSTILE = st.text(ALPHABET, max_size=12)
FORBIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def forbidden(text: str) -> set[str]:
    """What no public text may hold, but for line ends and tabs."""
    return {c for c in text if unicodedata.category(c) in FORBIDDEN and c not in "\n\t"}


def carried_out(cell: str) -> bool:
    """Whether a spreadsheet program might compute a cell: not a number, a pair of them, a sign alone or an end of an interval."""
    cell = cell.strip(' "\u00a0')
    if not cell or unicodedata.normalize("NFKC", cell[0])[:1] not in "=+-@\u2212":
        return False
    rest = cell[1:].rstrip(")]} ").casefold()
    return any(c not in "0123456789.,e+- inf∞" for c in rest) or cell[0] in "=@"


@given(HOSTILE)
def test_a_visible_text_holds_nothing_that_hides_or_turns_it(text: str) -> None:
    found = replace_hidden(text)
    assert not forbidden(found)
    assert not [c for c in found if is_hidden(c) and c not in "\n\t"]
    assert replace_hidden(found) == found


@given(
    st.text(
        st.characters(categories=["L", "N", "P", "S", "Mn", "Mc", "Zs"], exclude_characters="\u115f\u1160\u3164\uffa0"),
        max_size=12,
    )
)
def test_what_can_be_read_stays_as_it_is(text: str) -> None:
    """The control: letters, digits, signs and accents of every script, but for those that show nothing."""
    left = [c for c in text if not is_hidden(c)]
    assert replace_hidden(text) == "".join(left)
    assert all(unicodedata.category(c) == "Mn" for c in text if is_hidden(c))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("می\u200cخواهم", "میخواهم"),
        ("क्\u200dष", "क्ष"),
        ("co\u00adoperate", "cooperate"),
        ("❤\ufe0f", "❤"),
        ("a\u202eb", f"a{REPLACEMENT}b"),
        ("a\U000e0041\U000e0042b", f"a{REPLACEMENT * 2}b"),
        ("a\u2028b\u2029c", f"a{REPLACEMENT}b{REPLACEMENT}c"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\ud800", REPLACEMENT),
        ("naïve ✓ 5 € 調査 αβγ", "naïve ✓ 5 € 調査 αβγ"),
    ],
)
def test_joiners_go_and_marks_are_replaced(text: str, shown: str) -> None:
    assert replace_hidden(text) == shown


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_reader_of_a_line_finds_a_formula_by_whichever_delimiter(texts: list[str]) -> None:
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow([plain_cell(text) for text in texts])
    written = line.getvalue().rstrip("\n")
    assert "\n" not in written
    assert "\t" not in written
    read = [cell for cells in csv.reader([written]) for cell in cells]
    assert len(read) == len(texts)
    assert not [cell for cell in read if carried_out(cell)]
    for delimiter in ";|\t":
        quoted = [cell for cells in csv.reader([written], delimiter=delimiter) for cell in cells]
        assert not [cell for text in (*written.split(delimiter), *quoted) if carried_out(cell := text)]


@given(HOSTILE)
def test_a_plain_cell_is_visible_and_stays_as_it_is(text: str) -> None:
    cell = plain_cell(text)
    assert not forbidden(cell)
    assert plain_cell(cell) == cell
    assert not is_formula(cell)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("＝1+1", "'＝1+1"),
        ("﹢1+1", "'﹢1+1"),
        ("x;=1+1", "x;'=1+1"),
        ("x, =1+1", "x,' =1+1"),
        ('x;"=1+1"', 'x;\'"=1+1"'),
        ("\u200d=1+1", "'=1+1"),
        ("\t=1+1", "' =1+1"),
        ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
    ],
)
def test_formulas_become_texts(text: str, cell: str) -> None:
    assert plain_cell(text) == cell
    assert is_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "-1.5",
        "+2",
        "-1e-7",
        "-12,345",
        "-1.6 .. 0.89",
        "-",
        "[-5, -3)",
        "[-inf, -3)",
        "{-1, -2}",
        "C++",
        "a@b",
        "1-2",
        "a, b; c",
    ],
)
def test_numbers_intervals_and_words_stay_as_they_are(text: str) -> None:
    assert plain_cell(text) == text
    assert not is_formula(text)

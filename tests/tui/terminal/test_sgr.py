"""Turning one pen into another, judged by pyte, a terminal that is not ours."""

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tui.terminal.sgr import for_blank, turned

COLOURS = ["", "38;2;255;0;0", "38;2;0;255;0", "38;5;200", "31", "97", "39"]
BEHIND = ["", "48;2;16;16;16", "48;5;17", "44", "105", "49"]
ATTRIBUTES = ["", "1", "3", "4", "7", "9", "1;4", "3;7"]
pens = st.tuples(*map(st.sampled_from, (ATTRIBUTES, COLOURS, BEHIND))).map(lambda parts: ";".join(filter(None, parts)))


def written(sequences):
    """The cells that a terminal shows after each of the sequences and one character."""
    screen = pyte.Screen(20, 1)
    pyte.Stream(screen).feed("".join(sequences))
    return [screen.buffer[0][column] for column in range(20)]


@given(st.lists(pens, min_size=1, max_size=12))
def test_every_pen_is_what_it_would_be_anew(wanted):
    before = [None, *wanted]
    short = written(
        f"{turned(pen, codes) if pen != codes else ''}x" for pen, codes in zip(before, wanted, strict=False)
    )
    assert short == written(f"\x1b[0;{codes}mx" if codes else "\x1b[0mx" for codes in wanted)


@given(pens, pens)
def test_a_blank_looks_the_same_with_the_pen_that_is_kept_for_it(pen, wanted):
    kept = for_blank(pen, wanted)
    assert kept in (pen, wanted)
    one, other = (written([f"\x1b[0;{codes}m " if codes else "\x1b[0m "])[0] for codes in (kept, wanted))
    assert (one.bg, one.reverse, one.underscore, one.strikethrough) == (
        other.bg, other.reverse, other.underscore, other.strikethrough
    )  # fmt: skip
    if one.reverse:
        assert one.fg == other.fg


@pytest.mark.parametrize(
    ("pen", "wanted", "sent"),
    [
        ("38;5;1;48;5;2", "38;5;3;48;5;2", "\x1b[38;5;3m"),
        ("38;5;1;48;5;2", "48;5;2", "\x1b[39m"),
        ("38;5;1", "1;38;5;1", "\x1b[1m"),
        ("1;38;5;1", "38;5;1", "\x1b[0;38;5;1m"),
        ("38;2;1;2;3", "", "\x1b[0m"),
        (None, "", "\x1b[0m"),
        (None, "31", "\x1b[0;31m"),
    ],
)
def test_only_what_differs_is_sent(pen, wanted, sent):
    assert turned(pen, wanted) == sent


def test_a_line_below_is_never_lost_on_a_blank():
    assert for_blank("4;48;5;2", "48;5;2") == "48;5;2"
    assert for_blank("1;38;5;9;48;5;2", "48;5;2") == "1;38;5;9;48;5;2"

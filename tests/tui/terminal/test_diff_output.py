"""What a diff is, and changing one look into another, judged by pyte, a terminal that is not ours."""

import re

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from sfumato.tui.terminal.diff_output import TerminalImage, codes_for_blank, diff_update, sgr_change

pytestmark = pytest.mark.parts
WIDTH, HEIGHT = 24, 4
CONSOLE = Console(force_terminal=True, color_system="truecolor")
STYLES = [None, Style(), Style(bold=True), Style(color="#ff0000", bgcolor="#101010"), Style(bgcolor="#101010"),
          Style(color="#00ff00", bgcolor="#101010"), Style(color="#00ff00", bold=True), Style(underline=True, bgcolor="#101010"),
          Style(reverse=True, color="color(9)")]  # fmt: skip


def after(pen, codes):
    """The pen that a terminal has after the codes: attributes, colour, colour behind."""
    attributes, colour, behind = pen
    for code in re.findall(r"[34]8;2;\d+;\d+;\d+|[34]8;5;\d+|\d+", codes) or ["0"]:
        if code == "0":
            attributes, colour, behind = frozenset(), "", ""
        elif code in ("39", "49") or len(code) > 3:
            colour = colour if code.startswith("4") else code.removeprefix("39")
            behind = behind if code.startswith("3") else code.removeprefix("49")
        else:
            attributes |= {code}
    return attributes, colour, behind


class Terminal:
    """Enough of one: moves the cursor, takes colours, writes characters one or two cells wide."""

    def __init__(self):
        self.cells, self.pen, self.row, self.column = {}, (frozenset(), "", ""), 0, 0

    def write(self, sequences):
        for move, codes, text in re.findall(r"\x1b\[(\d+;\d+)H|\x1b\[([\d;]*)m|([^\x1b])", sequences):
            if move:
                self.row, self.column = (int(number) - 1 for number in move.split(";"))
            elif text == "":
                self.pen = after(self.pen, codes)
            elif cell_len(text) == 0:
                character, pen = self.cells[self.row, self.column - 1]
                self.cells[self.row, self.column - 1] = (character + text, pen)
            else:
                self._put(text)

    def _put(self, character):
        width = cell_len(character)
        for column in range(self.column, self.column + width):
            self.cells.pop((self.row, column), None)
        self.cells[self.row, self.column] = (character, self.pen)
        self.column += width


def strip_of(segments, width=WIDTH):
    return Strip([Segment(text, style) for text, style in segments]).adjust_cell_length(width, Style())


texts = st.text(alphabet="abc  é中▌⠿x", max_size=9)
strips = st.lists(st.tuples(texts, st.sampled_from(STYLES)), max_size=5).map(strip_of)
frames = st.lists(strips, min_size=HEIGHT, max_size=HEIGHT)


def layout(frame):
    return LayoutUpdate([[strip] for strip in frame], Region(0, 0, WIDTH, HEIGHT))


def seen(cells):
    """What somebody sees: of a blank only the colour behind it."""
    return {place: (c, (pen[0] & {"4", "7"}, pen[2]) if c == " " else pen) for place, (c, pen) in cells.items()}


def painted_whole(frame):
    terminal = Terminal()
    terminal.write(diff_update(layout(frame), TerminalImage()).render_segments(CONSOLE))
    return terminal.cells


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(frames, min_size=1, max_size=4))
def test_after_any_pictures_the_terminal_shows_the_last(pictures):
    terminal, image = Terminal(), TerminalImage()
    for frame in pictures:
        terminal.write(diff_update(layout(frame), image).render_segments(CONSOLE))
    assert seen(terminal.cells) == seen(painted_whole(pictures[-1]))
    assert "".join(
        terminal.cells[row, c][0] for row in range(HEIGHT) for c in range(WIDTH) if (row, c) in terminal.cells
    ) == ("".join(strip.text for strip in pictures[-1]))


@pytest.mark.slow
@settings(max_examples=60)
@given(frames, frames, st.data())
def test_spans_change_what_they_cover_and_nothing_else(first, second, data):
    terminal, image = Terminal(), TerminalImage()
    terminal.write(diff_update(layout(first), image).render_segments(CONSOLE))
    rows = data.draw(st.sets(st.integers(0, HEIGHT - 1), min_size=1))
    chops = [{0: second[y] if y in rows else None} for y in range(HEIGHT)]
    update = ChopsUpdate(chops, [(y, 0, WIDTH) for y in sorted(rows)], [[WIDTH]] * HEIGHT)
    terminal.write(diff_update(update, image).render_segments(CONSOLE))
    assert seen(terminal.cells) == seen(painted_whole([second[y] if y in rows else first[y] for y in range(HEIGHT)]))


@pytest.mark.slow
@settings(max_examples=30)
@given(frames)
def test_a_picture_that_stands_there_sends_nothing(frame):
    image = TerminalImage()
    diff_update(layout(frame), image).render_segments(CONSOLE)
    assert diff_update(layout(frame), image).render_segments(CONSOLE) == ""


@given(frames)
@settings(max_examples=30)
def test_after_forgetting_the_picture_is_sent_whole(frame):
    image = TerminalImage()
    first = diff_update(layout(frame), image).render_segments(CONSOLE)
    image.forget_image()
    assert diff_update(layout(frame), image).render_segments(CONSOLE) == first


def test_a_diff_costs_what_has_changed():
    before = [strip_of([("a" * WIDTH, STYLES[3])]) for _ in range(HEIGHT)]
    after = [*before[:2], strip_of([("a" * 10 + "b" + "a" * 13, STYLES[3])]), before[3]]
    image = TerminalImage()
    diff_update(layout(before), image).render_segments(CONSOLE)
    sent = diff_update(layout(after), image).render_segments(CONSOLE)
    assert sent == "\x1b[3;11H\x1b[0;38;2;255;0;0;48;2;16;16;16mb\x1b[0m"


def test_a_link_is_sent_as_it_is_and_what_stands_there_is_forgotten():
    linked = strip_of([("here", Style(link="https://example.org"))])
    plain = strip_of([("here", Style())])
    image = TerminalImage()
    frame = [plain] * HEIGHT
    diff_update(layout(frame), image).render_segments(CONSOLE)
    assert "example.org" in diff_update(layout([linked, *frame[1:]]), image).render_segments(CONSOLE)
    assert "here" in diff_update(layout(frame), image).render_segments(CONSOLE)


@pytest.mark.parametrize("text", ["e\u0301tude", "👩‍👩‍👧 family", "\u0301first"])
def test_joined_characters_are_never_lost(text):
    image = TerminalImage()
    frame = [strip_of([(text, STYLES[2])]) for _ in range(HEIGHT)]
    sent = diff_update(layout(frame), image).render_segments(CONSOLE)
    assert text.lstrip("\u0301") in sent


def test_the_colour_of_a_blank_is_that_behind_it():
    def frame(style):
        return [strip_of([("a b  ", STYLES[4]), (" " * (WIDTH - 5), style)]) for _ in range(HEIGHT)]

    image = TerminalImage()
    diff_update(layout(frame(STYLES[4])), image).render_segments(CONSOLE)
    assert diff_update(layout(frame(STYLES[3])), image).render_segments(CONSOLE) == ""
    for style in (
        Style(bgcolor="#202020"),
        Style(bgcolor="#101010", underline=True),
        Style(bgcolor="#101010", reverse=True),
    ):
        assert diff_update(layout(frame(style)), image).render_segments(CONSOLE)


COLOURS = ["", "38;2;255;0;0", "38;2;0;255;0", "38;5;200", "31", "97", "39"]
BEHIND = ["", "48;2;16;16;16", "48;5;17", "44", "105", "49"]
ATTRIBUTES = ["", "1", "3", "4", "7", "9", "1;4", "3;7"]
pens = st.tuples(*map(st.sampled_from, (ATTRIBUTES, COLOURS, BEHIND))).map(lambda parts: ";".join(filter(None, parts)))


def written_cells(sequences):
    """The cells that a terminal shows after each of the sequences and one character."""
    screen = pyte.Screen(20, 1)
    pyte.Stream(screen).feed("".join(sequences))
    return [screen.buffer[0][column] for column in range(20)]


@given(st.lists(pens, min_size=1, max_size=12))
def test_every_pen_is_what_it_would_be_anew(wanted):
    before = [None, *wanted]
    short = written_cells(
        f"{sgr_change(pen, codes) if pen != codes else ''}x" for pen, codes in zip(before, wanted, strict=False)
    )
    assert short == written_cells(f"\x1b[0;{codes}mx" if codes else "\x1b[0mx" for codes in wanted)


@given(pens, pens)
def test_a_blank_looks_the_same_with_the_pen_that_is_kept_for_it(pen, wanted):
    kept = codes_for_blank(pen, wanted)
    assert kept in (pen, wanted)
    one, other = (written_cells([f"\x1b[0;{codes}m " if codes else "\x1b[0m "])[0] for codes in (kept, wanted))
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
    assert sgr_change(pen, wanted) == sent


def test_a_line_below_is_never_lost_on_a_blank():
    assert codes_for_blank("4;48;5;2", "48;5;2") == "48;5;2"
    assert codes_for_blank("1;38;5;9;48;5;2", "48;5;2") == "1;38;5;9;48;5;2"

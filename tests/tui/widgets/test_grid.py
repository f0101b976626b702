import threading
import time

import duckdb
import pytest
from textual.app import App

from sfumato.tui.widgets.grid import SIGNS, Grid
from sfumato.tui.widgets.pages import ListPages
from sfumato.workspace.reporting.tables import DisplayColumn

COLUMNS = (
    DisplayColumn("id", "Record", 8, "right"),
    DisplayColumn("room", "Room type", 12),
    *(DisplayColumn(f"c{k}", f"Column {k}", 12, "right") for k in range(8)),
)


def table(count):
    return ListPages(COLUMNS, [(i, "Entire home/apartment", *range(8)) for i in range(count)])


class Gated(ListPages):
    """A source that waits to be let through, and notes the thread it is read in."""

    def __init__(self, columns, rows):
        super().__init__(columns, rows)
        self.gate, self.threads, self.reads = threading.Event(), set(), []

    def rows(self, offset, limit):
        self.threads.add(threading.current_thread())
        self.reads.append(offset)
        assert self.gate.wait(5)
        return super().rows(offset, limit)


class Broken(ListPages):
    def count(self):
        raise OSError("disc full of secrets")


class Recording(Grid):
    """A grid that notes which lines it is asked to draw."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.drawn = []

    def render_line(self, y):
        self.drawn.append(y)
        return super().render_line(y)


class GridApp(App):
    def __init__(self, source, theme=None, **options):
        super().__init__()
        self.source, self.options = source, options
        self.highlighted, self.selected, self.opened, self.failed = [], [], [], []
        if theme:
            self.theme = theme

    def compose(self):
        yield Recording(self.source, **self.options)

    def on_grid_row_highlighted(self, event):
        self.highlighted.append((event.index, event.row and event.row[0]))

    def on_grid_row_selected(self, event):
        self.selected.append((event.index, event.row[0]))

    def on_grid_source_opened(self, event):
        self.opened.append(event.count)

    def on_grid_source_failed(self, event):
        self.failed.append(type(event.error))

    @property
    def grid(self):
        return self.query_one(Grid)

    @property
    def strips(self):
        return self.screen._compositor.render_strips()

    @property
    def lines(self):
        return [strip.text for strip in self.strips]


async def settle(app, pilot, until=lambda app: app.opened):
    """Wait for the threads that read."""
    for _ in range(500):
        await app.workers.wait_for_complete()
        await pilot.pause()
        if until(app):
            return
        time.sleep(0.005)
    raise AssertionError("nothing came")


def records(app):
    return [int(line.split()[0]) for line in app.lines[1:] if line[:10].strip() and line.split()[0].isdecimal()]


async def test_a_grid_shows_header_and_rows_and_cuts_what_is_long():
    app = GridApp(table(1000))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        assert app.lines[0].startswith("   Record  Room type")
        assert app.lines[1].startswith("        0  Entire home…             0")
        assert records(app) == list(range(22))
        assert app.opened == [1000]
        assert app.highlighted == [(0, 0)]


@pytest.mark.slow
async def test_keys_move_the_cursor():
    app = GridApp(table(1000))
    async with app.run_test(size=(160, 25)) as pilot:
        await settle(app, pilot)
        window = 24
        places = [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("up", 0), ("pagedown", window), ("pageup", 0)]
        places += [("ctrl+d", window), ("ctrl+u", 0), ("G", 999), ("down", 999), ("g", 0), ("end", 999), ("home", 0)]
        for key, place in places:
            await pilot.press(key)
            await settle(app, pilot)
            assert app.grid.cursor == place, key
            assert place in records(app), key
        assert app.highlighted[-1] == (0, 0)


async def test_a_page_keeps_the_cursor_at_its_height():
    app = GridApp(table(1000))
    async with app.run_test(size=(160, 25)) as pilot:
        await settle(app, pilot)
        await pilot.press("j", "j", "j", "pagedown", "pagedown")
        assert (app.grid.cursor, records(app)[0]) == (51, 48)


@pytest.mark.slow
async def test_enter_selects_and_so_does_a_double_click():
    app = GridApp(table(50))
    async with app.run_test(size=(160, 25)) as pilot:
        await settle(app, pilot)
        await pilot.press("j", "enter")
        assert app.selected == [(1, 1)]
        await pilot.click(Grid, offset=(5, 4))
        assert app.grid.cursor == 3
        await pilot.click(Grid, offset=(5, 6), times=2)
        assert app.selected[-1] == (5, 5)
        await pilot.click(Grid, offset=(5, 0))
        assert app.grid.cursor == 5


async def test_a_cursor_step_repaints_two_lines():
    app = GridApp(table(1000))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        app.grid.drawn.clear()
        await pilot.press("j")
        assert sorted(app.grid.drawn) == [1, 2]


async def test_scrolling_repaints_rows_but_not_the_header():
    app = GridApp(table(100_000))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        app.grid.drawn.clear()
        await pilot.press("pagedown")
        assert set(app.grid.drawn) == set(range(1, 23))


async def test_rows_are_read_in_a_thread_and_stand_as_placeholders_until_then():
    source = Gated(COLUMNS, [(i, "room", *range(8)) for i in range(5000)])
    source.gate.set()
    app = GridApp(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        source.gate.clear()
        await pilot.press("G", "enter")
        assert app.lines[5].strip().startswith("…")
        assert app.highlighted[-1] == (4999, None)
        assert app.selected == []
        source.gate.set()
        await settle(app, pilot, lambda app: app.selected)
        assert records(app)[-1] == 4999
        assert app.highlighted[-1] == (4999, 4999)
        assert app.selected == [(4999, 4999)]
        assert threading.main_thread() not in source.threads


async def test_pages_passed_over_are_not_read():
    source = Gated(COLUMNS, [(i, "room", *range(8)) for i in range(50_000)])
    source.gate.set()
    app = GridApp(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        source.gate.clear()
        for target in (10_000, 20_000, 30_000, 40_000):
            app.grid.cursor = target
            await pilot.pause()
        source.gate.set()
        await settle(app, pilot, lambda app: app.highlighted[-1] == (40_000, 40_000))
        assert not {20_000, 30_000} & set(source.reads)


async def test_sideways_scrolling_goes_from_column_to_column():
    app = GridApp(table(100))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(app, pilot)
        await pilot.press("l")
        assert app.lines[0].startswith(" Room type")
        await pilot.press("right")
        assert app.lines[0].startswith("     Column 0")
        await pilot.press("h", "left", "left")
        assert app.lines[0].startswith("   Record")
        assert app.lines[1].startswith("        0")


@pytest.mark.slow
async def test_no_rows_shows_the_text_for_it():
    app = GridApp(table(0), empty="No runs yet. Press n for a new one.")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        assert "No runs yet. Press n for a new one." in app.lines[1]
        await pilot.press("j", "k", "G", "g", "pagedown", "enter", "l")
        assert (app.selected, app.highlighted) == ([], [])
        app.grid.set_source(table(3))
        await settle(app, pilot, lambda app: len(app.opened) == 2)
        assert records(app) == [0, 1, 2]
        app.grid.set_source(table(0), empty="None left.")
        await settle(app, pilot, lambda app: len(app.opened) == 3)
        assert "None left." in app.lines[1]


async def test_a_long_text_in_place_of_rows_goes_on_in_the_next_line():
    said = "This run keeps no values of single records. Make a plan of its recipe, and add a risk to its measures."
    app = GridApp(table(0), empty=f"{said}\nthe worst R-hat is 1.2")
    async with app.run_test(size=(60, 12)) as pilot:
        await settle(app, pilot)
        shown = [line.strip() for line in app.lines[1:]]
        assert " ".join(shown).startswith(said)
        assert "the worst R-hat is 1.2" in shown, "a line of its own stays one"
        await pilot.resize_terminal(30, 12)
        await settle(app, pilot)
        assert " ".join(line.strip() for line in app.lines[1:]).startswith(said)


async def test_another_source_starts_at_the_top_or_keeps_the_cursor():
    app = GridApp(table(1000))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        app.grid.cursor = 700
        await settle(app, pilot, lambda app: 700 in records(app))
        app.grid.set_source(table(900), keep_cursor=True)
        await settle(app, pilot, lambda app: app.opened[-1] == 900)
        assert app.grid.cursor == 700
        assert 700 in records(app)
        app.grid.set_source(table(50), keep_cursor=True)
        await settle(app, pilot, lambda app: app.opened[-1] == 50)
        assert (app.grid.cursor, records(app)[-1]) == (49, 49)
        app.grid.set_source(table(40))
        await settle(app, pilot, lambda app: app.opened[-1] == 40)
        assert (app.grid.cursor, records(app)[0]) == (0, 0)


async def test_a_table_that_changed_a_little_repaints_a_little():
    app = GridApp(table(100))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        rows = list(table(100).rows(0, 100))
        rows[4] = (4, "changed", *range(8))
        app.grid.drawn.clear()
        app.grid.set_source(ListPages(COLUMNS, rows), keep_cursor=True)
        await settle(app, pilot, lambda app: len(app.opened) == 2)
        assert app.grid.drawn == [5]
        assert "changed" in app.lines[5]


async def test_a_source_that_fails_is_reported_without_its_words():
    app = GridApp(Broken(COLUMNS, []))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot, lambda app: app.failed)
        assert app.failed == [OSError]
        assert "The rows could not be read." in app.lines[1]
        assert "secrets" not in "\n".join(app.lines)
        app.grid.set_source(table(5))
        await settle(app, pilot)
        assert records(app) == list(range(5))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(20, 6), (5, 2), (1, 1)])
async def test_tiny_windows_raise_nothing(size):
    app = GridApp(table(1000))
    async with app.run_test(size=size) as pilot:
        await settle(app, pilot)
        await pilot.press("j", "G", "l", "pageup", "ctrl+d", "g", "h", "enter")
        await pilot.resize_terminal(100, 30)
        await settle(app, pilot, lambda app: 0 in records(app))


@pytest.mark.slow
@pytest.mark.parametrize("theme", [None, "textual-light", "ansi-dark", "ansi-light"])
async def test_the_cursor_is_seen_without_colour(monkeypatch, theme):
    monkeypatch.setenv("NO_COLOR", "1")
    app = GridApp(table(1000), theme=theme)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        await pilot.press("j", "j")
        reversed_lines = [y for y, strip in enumerate(app.strips[:-1]) if next(iter(strip)).style.reverse]
        assert reversed_lines == [3]


async def test_ascii_placeholders_and_cuts():
    app = GridApp(table(10), glyphs="ascii")
    async with app.run_test(size=(160, 14)) as pilot:
        await settle(app, pilot)
        assert all(line.isascii() for line in app.lines)
        assert "Entire home~" in app.lines[1]


class Parquet:
    """Rows by position from a Parquet file, through DuckDB."""

    def __init__(self, path):
        self.path, self.database = str(path), duckdb.connect()
        self.columns = (DisplayColumn("id", "id", 9, "right"), DisplayColumn("half", "half", 12, "right"))

    def count(self):
        return self.database.execute("select count(*) from read_parquet(?)", [self.path]).fetchone()[0]

    def rows(self, offset, limit):
        query = "select id, half from read_parquet(?, file_row_number = true) where file_row_number between ? and ?"
        return self.database.execute(
            query + " order by file_row_number", [self.path, offset, offset + limit - 1]
        ).fetchall()


@pytest.mark.slow
async def test_a_million_rows_of_parquet_are_open_without_being_read(tmp_path):
    path = tmp_path / "table.parquet"
    duckdb.sql(f"copy (select i as id, i / 2 as half from range(1000000) t(i)) to '{path}' (format parquet)")
    source = Parquet(path)
    app = GridApp(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(app, pilot)
        assert app.opened == [1_000_000]
        await pilot.press("G")
        await settle(app, pilot, lambda app: app.highlighted[-1] == (999_999, 999_999))
        assert records(app) == list(range(999_977, 1_000_000))
        app.grid.cursor = 123_456
        await settle(app, pilot, lambda app: app.highlighted[-1] == (123_456, 123_456))
        assert 123_456 in records(app)
    source.database.close()


@pytest.mark.parametrize(
    ("line", "signs"),
    [
        (" Overlap, model logit: vote ~ age   56 %", []),
        (" 3  ! to be judged  20", ["! to be judged"]),
        (" ~ undecided", ["~ undecided"]),
    ],
)
def test_a_sign_of_a_state_begins_its_cell(line, signs):
    """The formula of a model had the ink of what is not decided."""
    assert [found[0] for found in SIGNS.finditer(line)] == signs

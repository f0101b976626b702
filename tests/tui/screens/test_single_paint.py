"""A screen that comes is laid out for the terminal and painted whole once, and still follows every change of size."""

import asyncio

import pytest
from textual._styles_cache import StylesCache

from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.terminal.painting import PAINT_SECONDS, SinglePaintScreen, _raw_lines_type
from sfumato.tui.terminal.parts import RAW_LINES, is_on

pytestmark = pytest.mark.usefixtures("drawing")
DIALOGS = {"help": "question_mark", "new run": "n", "export": "e", "audit": "act:audit"}


def counted(render_line, lines):
    def render(self, styles, y, *arguments, **options):
        lines.append((self, y))
        return render_line(self, styles, y, *arguments, **options)

    return render


@pytest.fixture
def drawn_lines(monkeypatch):
    """Every line of a widget that was drawn."""
    lines = []
    raw = (
        [_raw_lines_type()] if is_on(RAW_LINES) else []
    )  # asked first: with other names in Textual the part is off for good
    for kind in (StylesCache, *raw):
        monkeypatch.setattr(kind, "render_line", counted(kind.render_line, lines))
    return lines


async def drawn_again(sit, directory, drawn_lines, key):
    """The share of the lines of a dialog that were drawn before, while it came."""
    save_state(directory, AppState())
    async with sit(directory, size=(80, 24)) as seat:
        await seat.app.open_project(1, 1, "runs")
        await seat.until(lambda: "may not leave" in seat.text)
        await seat.press("shift")
        drawn_lines.clear()
        await seat.press(key)
        assert len(seat.app.screen_stack) == 3
        seat.app.screen_stack[1]._on_timer_update()  # on a slow day the time to paint the screen below comes so late
        await seat.press("shift")
        return len(drawn_lines) / len(set(drawn_lines)) - 1


def texts(seat):
    return [strip.text for strip in seat.app.screen._compositor.render_strips()]


@pytest.mark.parts
@pytest.mark.slow
@pytest.mark.parametrize("key", DIALOGS.values(), ids=DIALOGS)
async def test_the_lines_of_a_dialog_are_drawn_once(sit, built_data, no_worker, drawn_lines, monkeypatch, key):
    """What threads and the clock bring, when the dialog may have been drawn already, stays away."""
    monkeypatch.setattr("sfumato.tui.app.app.SfumatoApp.refresh_page", lambda self: None)
    monkeypatch.setattr("sfumato.tui.session.jobs.recipe_titles", list)
    monkeypatch.setattr("sfumato.tui.app.audit.AuditLogDialog.reload", lambda self: None)
    monkeypatch.setattr(
        "sfumato.tui.manual.help.KeysDialog._show_acts", lambda self, words: None
    )  # a thread reads its rows
    assert await drawn_again(sit, built_data, drawn_lines, key) < 0.3


@pytest.mark.slow
async def test_they_are_drawn_several_times_as_the_toolkit_has_it(sit, built_data, no_worker, drawn_lines, monkeypatch):
    for name in ("_on_screen_resume", "_on_screen_suspend", "_screen_resized", "refresh"):
        monkeypatch.delattr(SinglePaintScreen, name)
    monkeypatch.setattr(SinglePaintScreen, "set_size_classes", lambda self, width: None)
    assert await drawn_again(sit, built_data, drawn_lines, "question_mark") > 0.5


@pytest.mark.slow
async def test_screens_below_follow_the_size_of_the_terminal(sit, built_data, no_worker):
    save_state(built_data, AppState())
    async with sit(built_data, size=(80, 24)) as seat:
        await seat.app.open_project(1, 1, "runs")
        await seat.until(lambda: "may not leave" in texts(seat)[0])
        await seat.press("shift")
        wide = texts(seat)
        await seat.press("question_mark")
        await seat.pilot.resize_terminal(60, 20)
        await seat.press("shift", "escape")
        assert {len(text) for text in texts(seat)} == {60}
        assert len(texts(seat)) == 20
        await seat.press("question_mark")
        await seat.pilot.resize_terminal(80, 24)
        await seat.press("shift", "escape")
        assert [len(text) for text in texts(seat)] == [len(text) for text in wide]
        assert texts(seat)[0] == wide[0]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "name"), [(80, "-narrow"), (120, "-normal"), (200, "-wide")])
async def test_a_screen_knows_from_the_start_how_wide_it_is(sit, built_data, no_worker, width, name):
    save_state(built_data, AppState())
    async with sit(built_data, size=(width, 40)) as seat:
        await seat.press("question_mark")
        assert [one for one in seat.app.screen.classes if one in ("-narrow", "-normal", "-wide")] == [name]
        await seat.pilot.resize_terminal(120 if width != 120 else 80, 40)
        await seat.press("shift")
        assert [one for one in seat.app.screen.classes if one in ("-narrow", "-normal", "-wide")] != [name]


async def changes_left_to_paint(seat, monkeypatch):
    """Return the changed regions, and what is drawn once the batch ends, when a screen would paint within a batch."""
    screen, pictures = seat.app.screen, []
    show = type(seat.app)._display
    monkeypatch.setattr(
        type(seat.app), "_display", lambda app, *picture: (pictures.append(app._batch_count), show(app, *picture))
    )
    with seat.app.batch_update():
        screen._compositor._dirty_regions.add(screen.region)
        screen._compositor_refresh()
        left = set(screen._compositor._dirty_regions)
    pictures.clear()
    await asyncio.sleep(10 * PAINT_SECONDS)
    return left, pictures


@pytest.mark.parts
@pytest.mark.slow
async def test_a_picture_that_falls_into_a_batch_of_changes_is_painted_after_it(
    sit, built_data, no_worker, monkeypatch
):
    async with sit(built_data, size=(80, 24)) as seat:
        await seat.press("shift")
        left, pictures = await changes_left_to_paint(seat, monkeypatch)
        assert left
        assert 0 in pictures
        assert not seat.app.screen._compositor._dirty_regions


@pytest.mark.parts
@pytest.mark.slow
async def test_the_toolkit_forgets_a_picture_that_falls_into_a_batch(sit, built_data, no_worker, monkeypatch):
    monkeypatch.delattr(SinglePaintScreen, "_compositor_refresh")
    async with sit(built_data, size=(80, 24)) as seat:
        await seat.press("shift")
        left, pictures = await changes_left_to_paint(seat, monkeypatch)
        assert not left
        assert not pictures

"""The screens look as they did. To keep what they look like now: SFUMATO_UPDATE_PICTURES=1 pytest tests/tui/screens/snapshots."""

import pytest

from sfumato.tui.parts.split import READING
from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.widgets.cell_grid import CellGrid

pytestmark = pytest.mark.usefixtures("drawing")
SCREENS = {
    "runs": ("runs", ()), "results": ("results", ()), "explain": ("results", ("enter",)),
    "verdicts": ("verdicts", ()), "trial": ("verdicts", ("T",)), "release": ("verdicts", ("w",)),
    "findings": ("verdicts", ("w", "right_square_bracket")),
    "sweep": ("sweep", ("right",)), "sweep-numbers": ("sweep", ("t",)), "diagnostics": ("diagnostics", ()),
    "records": ("records", ()), "record": ("records", ("enter",)), "data": ("data", ()),
    "variable": ("data", ("enter",)), "plan": ("plan", ()), "step": ("plan", ("j", "enter")),
    "add-step": ("plan", ("a",)), "map": ("map", ("right",)), "choose": ("map", ("f4",)), "keys": ("runs", ("question_mark",)),
    "palette": ("runs", ("ctrl+p",)), "audit": ("runs", ("act:audit",)), "new-run": ("runs", ("n",)), "guided": ("runs", ("S",)),
    "confirm": ("runs", ("X",)), "distributions": ("data", ("act:distributions",)),
}  # fmt: skip
SPLIT = ("runs", "results", "verdicts", "records")
LARGE = ("runs", "results", "verdicts", "sweep", "data", "plan")


@pytest.mark.slow
async def test_the_first_screen_looks_as_it_did(sit, desk, hold):
    async with sit(desk, size=(80, 24)) as seat:
        await hold(seat, "projects")


async def test_an_empty_workspace_looks_as_it_did(sit, empty_workspace, hold, monkeypatch):
    monkeypatch.chdir(empty_workspace.parent)
    async with sit(type(empty_workspace)("empty"), size=(80, 24)) as seat:
        await hold(seat, "empty")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_looks_as_it_did(sit, desk, hold, name):
    tab, keys = SCREENS[name]
    save_state(desk, AppState(project=1, run=1, tab=tab))
    async with sit(desk, *keys, size=(80, 24)) as seat:
        await hold(seat, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
async def test_a_screen_looks_as_it_did_in_a_larger_terminal(sit, desk, hold, name):
    tab, keys = SCREENS[name]
    save_state(desk, AppState(project=1, run=1, tab=tab))
    async with sit(desk, *keys, size=(120, 40)) as seat:
        await hold(seat, f"{name}-120x40")


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLIT)
async def test_a_screen_with_its_row_beside_the_list_looks_as_it_did(sit, desk, hold, name):
    save_state(desk, AppState(project=1, run=1, tab=name))
    async with sit(desk, "G" if name == "runs" else "j", size=(160, 50)) as seat:
        for _ in range(500):
            await seat.press("shift")
            if str(seat.app.screen.query_one(f"#{name} Detail")._text.content) not in ("", READING):
                break
            await seat.pilot.pause(0.02)
        await hold(seat, f"{name}-160x50")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keys", "size"),
    [
        ("beliefs", ("act:beliefs",), (80, 24)),
        ("beliefs-120x40", ("act:beliefs",), (120, 40)),
        ("beliefs-records", (), (80, 24)),
        ("guesses", ("enter",), (80, 24)),
    ],
)
async def test_the_strongest_intruder_looks_as_it_did(sit, believed_desk, hold, name, keys, size):
    save_state(believed_desk, AppState(project=1, run=1, tab="records"))
    async with sit(believed_desk, *keys, size=size) as seat:
        await hold(seat, name)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("lattice", (80, 24)), ("lattice-120x40", (120, 40))])
async def test_the_subsets_of_knowledge_look_as_they_did(sit, towns_desk, hold, name, size):
    save_state(towns_desk, AppState(project=1, run=1, tab="sweep"))
    async with sit(towns_desk, "full_stop", size=size) as seat:
        await hold(seat, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keys", "size"),
    [
        ("tables", ("right_curly_bracket",), (80, 24)),
        ("tables-120x40", ("right_curly_bracket",), (120, 40)),
        ("tables-why", ("right_curly_bracket", "enter"), (80, 24)),
    ],
)
async def test_protected_tables_look_as_they_did(sit, tabled_desk, hold, name, keys, size):
    save_state(tabled_desk, AppState(project=1, run=1, tab="tables"))
    async with sit(tabled_desk, size=size) as seat:
        await seat.until(lambda: seat.app.screen.query_one(CellGrid).has_cells)
        await seat.press(*keys)
        await hold(seat, name)


@pytest.mark.slow
async def test_a_picture_that_differs_is_named(sit, desk, hold, monkeypatch):
    """The negative control: in another theme nothing looks the same."""
    monkeypatch.delenv("SFUMATO_UPDATE_PICTURES", raising=False)
    async with sit(desk, size=(80, 24)) as seat:
        seat.app.theme = "light"
        await seat.press("shift")
        with pytest.raises(pytest.fail.Exception, match="projects looks otherwise"):
            await hold(seat, "projects")

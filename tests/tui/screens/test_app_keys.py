import importlib
import pkgutil

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

import sfumato.tui.screens
import sfumato.tui.terminal
import sfumato.tui.widgets
from sfumato.tui.app import SfumatoApp
from sfumato.tui.screens.project import TABS, Project
from sfumato.tui.widgets.grid import LiveGrid

FORBIDDEN = {f"ctrl+{letter}" for letter in "abhijm"}
FOOTERS = {
    "runs": "enter Open s Run again r Resume e Export D Plots w Release ? Help q Back",
    "results": "enter Explain D Plots / Filter o Sort e Export w Release ? Help q Back",
    "verdicts": "enter Explain t Try other limits e Export D Plots w Release ? Help q Back",
    "sweep": "m Measure ] Study y Log scale t Numbers e Export D Plots w Release ? Help q Back",
    "diagnostics": "s Statistics t Plot f Failed only e Export D Plots w Release ? Help q Back",
    "records": "enter Why m Measure ] Dataset e Export D Distributions w Release ? Help q Back",
    "data": "g Draft enter Edit i Quasi-identifier e Export D Plots w Release ? Help q Back",
    "plan": "enter Edit a Add R Run u Undo D Distributions w Release ? Help q Back",
    "map": "enter Open x Across y Up t Numbers e Export D Plots w Release ? Help q Back",
}


def our_bindings():
    for package in (sfumato.tui.screens, sfumato.tui.widgets, sfumato.tui.terminal):
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__ == module.__name__:
                    yield from vars(value).get("BINDINGS", [])
    yield from SfumatoApp.BINDINGS


def test_every_binding_is_named_so_that_it_can_be_remapped():
    ids = [binding.id for binding in our_bindings() if isinstance(binding, Binding)]
    assert len(ids) > 40
    assert all(ids)
    assert len(ids) == len(set(ids))


def test_no_key_that_terminals_swallow_is_bound():
    keys = {key for binding in our_bindings() for key in binding.key.split(",")}
    assert not keys & FORBIDDEN
    assert not [key for key in keys if key.startswith("alt+")]


@pytest.mark.slow
async def test_the_footer_names_the_keys_that_matter_and_fits(sit, directory):
    async with sit(directory, tab="runs", size=(80, 24)) as seat:
        for digit, keys in enumerate(FOOTERS.values(), start=1):
            await seat.press(str(digit))
            assert " ".join(seat.footer.split()) == keys


@pytest.mark.slow
async def test_digits_and_names_lead_to_the_tabs(sit, directory):
    async with sit(directory, tab="runs") as seat:
        for digit, title in enumerate(TABS.values(), start=1):
            await seat.press(str(digit))
            assert f"[{digit} {title}]" in seat.text
            commands = {command.title.partition("   ")[0] for command in seat.app.get_system_commands(seat.app.screen)}
            assert title in commands


@pytest.mark.slow
async def test_tab_goes_to_the_line_of_tabs_and_its_arrows_choose(sit, directory):
    async with sit(directory, "shift+tab", "right", tab="runs") as seat:
        assert "[2 Results]" in seat.text
        await seat.press("l", "h", "left", "left")
        assert f"[{len(TABS)} {list(TABS.values())[-1]}]" in seat.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "tab"), [("question_mark", "runs"), ("question_mark", "results"), ("question_mark", "sweep")]
)
async def test_help_lists_the_keys_that_work(sit, directory, key, tab):
    async with sit(directory, key, tab=tab, size=(120, 60)) as seat:
        shown = seat.text + await seat.press("G")
        for words in (
            "Keys that work here",
            "Everywhere",
            "Help",
            "Back",
            "Studies",
            *FOOTERS[tab].replace("Plots", "Distributions").split(),
        ):
            assert words in shown
        await seat.press("q")
        assert isinstance(seat.app.screen, Project)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["ctrl+p", "colon"])
async def test_the_palette_offers_what_makes_sense(sit, directory, key):
    async with sit(directory, key, tab="runs", size=(120, 60)) as seat:
        offered = {
            command.title.partition("   ")[0] for command in seat.app.get_system_commands(seat.app.screen_stack[-2])
        }
        assert offered >= {"New run", "Release", "Help", "Messages", "Theme", "Save picture", "Quit"}
        assert "Audit   A" in seat.text
        for words in ("Maximize", "Keys", "Screenshot"):
            assert words not in seat.text


@pytest.mark.slow
async def test_q_and_escape_lead_out_one_screen_at_a_time(sit, directory):
    async with sit(directory, "question_mark", tab="sweep") as seat:
        await seat.press("escape")
        assert "[4 Studies]" in seat.text
        await seat.press("escape")
        assert "Second project" in seat.text
        await seat.press("q")
        assert seat.app._exit


@pytest.mark.slow
async def test_messages_are_kept(sit, directory):
    async with sit(directory) as seat:
        seat.app.say("Something was said", severity="error")
        await seat.app.action_notices()
        await seat.press("shift")
        assert "Something was said" in seat.text


@pytest.mark.slow
async def test_keys_can_be_remapped_by_name(sit, directory):
    async with sit(directory, tab="runs") as seat:
        seat.app.set_keymap({"project.sweep": "f4"})
        await seat.press("f4")
        assert "[4 Studies]" in seat.text


@pytest.fixture
def keys_toml(tmp_path):
    def written(text):
        (tmp_path / "config" / "sfumato").mkdir(parents=True)
        (tmp_path / "config" / "sfumato" / "keys.toml").write_text(text, "utf-8")

    return written


@pytest.mark.slow
async def test_the_users_own_keys_hold_and_help_shows_them(sit, directory, keys_toml):
    keys_toml('project.sweep = "f4"\nruns.again = "ctrl+g"\n')
    async with sit(directory, tab="runs", size=(120, 60)) as seat:
        assert "^g Run again" in seat.footer
        await seat.press("question_mark")
        assert "ctrl+g" in seat.text or "^g" in seat.text
        assert "  f4                     Studies" in seat.text + await seat.press("G")
        await seat.press("q", "4")
        assert "[1 Runs]" in seat.text
        await seat.press("f4")
        assert "[4 Studies]" in seat.text


async def test_a_bad_file_of_keys_is_said_and_the_default_keys_hold(sit, directory, keys_toml):
    keys_toml('\nproject.swep = "f4"\n')
    async with sit(directory, "4", tab="runs") as seat:
        assert "[4 Studies]" in seat.text
        assert "keys.toml:2: " in seat.app.notices[0]
        assert 'did you mean "project.sweep"?' in seat.app.notices[0]


async def test_the_palette_says_where_the_file_of_keys_is(sit, directory):
    async with sit(directory) as seat:
        commands = {command.title: command.callback for command in seat.app.get_system_commands(seat.app.screen)}
        await commands["Own keys"]()
        assert "config/sfumato/keys.toml" in seat.app.notices[-1]


@pytest.mark.slow
async def test_enter_is_named_once_a_table_that_was_empty_has_rows(sit, built_data):
    async with sit(built_data, tab="data", size=(80, 24)) as seat:
        grid = seat.app.screen.pane.query_one(LiveGrid)
        columns, rows = grid.source.columns, list(grid.source.rows(0, 10))
        grid.show(columns, [], [])
        assert "enter Edit" not in await seat.press("shift")
        grid.show(columns, [row[:-1] for row in rows], [row[-1] for row in rows])
        assert "enter Edit" in await seat.press("shift")

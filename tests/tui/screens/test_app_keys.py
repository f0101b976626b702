import pytest

from sfumato.tui.app.project import OPTIONAL_TABS, PLACES, ProjectScreen
from sfumato.tui.widgets.grid import LiveGrid

FOOTERS = {
    "runs": "enter Open R Run again m Map e Export w Release ] Next tab ? Keys q Close",
    "results": "enter Explain t Plots / Filter s Sort e Export w Release ] Tab ? Keys q Close",
    "verdicts": "enter Explain space Intruder T Limits e Export w Release ] Tab ? Keys q Close",
    "sweep": "m Measure . Study o Log scale t Numbers e Export w Release ] Tab ? Keys q Close",
    "diagnostics": "t Plot f Failed only e Export w Release ] Next tab ? Keys q Close",
    "records": "enter Why m Measure . Dataset e Export w Release ] Next tab ? Keys q Close",
    "data": "enter Edit D Draft r Role x Include e Export w Release ] Tab ? Keys q Close",
    "plan": "enter Edit a Add R Run S Search for a plan u Undo w Release ? Keys q Close",
    "map": "enter Open f4 Across t Numbers e Export w Release ] Next tab ? Keys q Close",
}


@pytest.mark.slow
@pytest.mark.parametrize("tab", FOOTERS)
async def test_the_footer_names_the_keys_that_matter_and_fits(sit, directory, tab):
    async with sit(directory, tab=tab, size=(80, 24)) as seat:
        assert " ".join(seat.footer.split()) == FOOTERS[tab]


@pytest.mark.slow
async def test_digits_lead_to_the_places_and_brackets_to_their_tabs(sit, directory):
    async with sit(directory, tab="runs") as seat:
        for digit, (title, tabs) in enumerate(list(PLACES.values())[:-1], start=1):
            await seat.press("4" if digit != 4 else "1", str(digit))
            assert f"[{digit} {title}]" in seat.text
            shown = [name for name in tabs if name not in OPTIONAL_TABS]
            for name in (*shown[1:], shown[0]) if len(shown) > 1 else ():
                assert f"[{tabs[name]}]" in await seat.press("right_square_bracket")
                assert seat.app.state.tab == name
            if len(shown) > 1:
                assert "] Tab" in seat.footer.replace("Next tab", "Tab")
                assert f"[{tabs[shown[-1]]}]" in await seat.press("left_square_bracket")
                assert f"[{tabs[shown[0]]}]" in await seat.press(str(digit)), "the digit of a shown place"
            commands = {command.title.partition("   ")[0] for command in seat.app.get_system_commands(seat.app.screen)}
            assert title in commands


@pytest.mark.slow
async def test_a_place_shows_the_tab_that_it_showed_last(sit, directory):
    async with sit(directory, "4", "]", "]", "3", tab="runs") as seat:
        assert "next: 4 twice opens Verdicts:" in seat.text
        assert "[Numbers]" in await seat.press("4")
        assert "next: 4 opens Verdicts:" in seat.text
        assert "[Verdicts]" in await seat.press("4")


@pytest.mark.slow
async def test_tab_goes_to_the_line_of_places_and_its_arrows_choose(sit, built_data):
    async with sit(built_data, "shift+tab", "right", tab="runs") as seat:
        assert "[4 Findings]" in seat.text
        assert "[2 Plan]" in await seat.press("left", "h")
        assert "Release of run 1" in await seat.press("l", "l", "l")


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["runs", "results", "sweep"])
async def test_the_list_of_keys_has_those_of_the_foot(sit, directory, tab):
    async with sit(directory, "question_mark", tab=tab, size=(120, 60)) as seat:
        shown = seat.text + await seat.press("G")
        for words in (
            "Keys of this place",
            "Places",
            "Help",
            "Findings",
            *FOOTERS[tab].replace("Plots", "Distributions").replace("] Tab", "] Next tab").split(),
        ):
            assert words in shown
        await seat.press("q")
        assert isinstance(seat.app.screen, ProjectScreen)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["ctrl+p", "colon"])
async def test_the_palette_offers_what_makes_sense(sit, directory, key):
    async with sit(directory, key, tab="runs", size=(120, 60)) as seat:
        offered = {
            command.title.partition("   ")[0] for command in seat.app.get_system_commands(seat.app.screen_stack[-2])
        }
        assert offered >= {"New run", "Manual", "Messages", "Theme", "Save picture", "Quit", "Findings: studies"}
        for words in ("Maximize", "Show keys", "Screenshot"):
            assert words not in seat.text


@pytest.mark.slow
async def test_q_and_escape_lead_out_one_screen_at_a_time(sit, directory):
    async with sit(directory, "question_mark", tab="sweep") as seat:
        await seat.press("escape")
        assert "[Studies]" in seat.text
        await seat.press("escape")
        assert "[Studies]" in seat.text
        await seat.press("q")
        assert "Second project" in seat.text
        assert "Run 4 keeps running if you quit" in await seat.press("q")
        await seat.press("n")
        assert seat.app._exit is False
        await seat.press("q", "y")
        assert seat.app._exit


async def test_q_quits_at_once_where_nothing_runs(sit, empty_workspace):
    async with sit(empty_workspace, "escape") as seat:
        assert seat.app.notices[-1] == "q quits; runs keep running"
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
        seat.app.set_keymap({"sweep": "f5"})
        await seat.press("f5")
        assert "[Studies]" in seat.text


@pytest.fixture
def keys_toml(tmp_path):
    def write_keys(text):
        (tmp_path / "config" / "sfumato").mkdir(parents=True)
        (tmp_path / "config" / "sfumato" / "keys.toml").write_text(text, "utf-8")

    return write_keys


@pytest.mark.slow
async def test_the_users_own_keys_hold_and_help_shows_them(sit, directory, keys_toml):
    keys_toml('sweep = "f5"\nrun = "ctrl+g"\n')
    async with sit(directory, tab="runs", size=(120, 60)) as seat:
        assert "^g Run again" in seat.footer
        await seat.press("question_mark")
        assert "ctrl+g" in seat.text or "^g" in seat.text
        assert "f5" in seat.text + await seat.press("G")
        await seat.press("q", "R")
        assert "R (Run) does nothing here" in seat.app.notices[-1]
        await seat.press("f5")
        assert "[Studies]" in seat.text


@pytest.mark.slow
async def test_a_bad_file_of_keys_is_said_and_the_default_keys_hold(sit, directory, keys_toml):
    keys_toml('\nfindngs = "f5"\n')
    async with sit(directory, "4", tab="runs") as seat:
        assert "[4 Findings]" in seat.text
        assert "keys.toml:2: " in seat.app.notices[0]
        assert 'did you mean "findings"?' in seat.app.notices[0]


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
        grid.show_keyed_rows(columns, [], [])
        assert "enter Edit" not in await seat.press("shift")
        grid.show_keyed_rows(columns, [row[:-1] for row in rows], [row[-1] for row in rows])
        assert "enter Edit" in await seat.press("shift")

"""The palette names every act with its key beside it, and does what it names."""

import pytest

from sfumato.tui.app.doctor import DoctorDialog
from sfumato.tui.app.palette import GAP
from sfumato.tui.keys.acts import BY_NAME, find_act
from sfumato.tui.keys.own_keys import key_text
from sfumato.tui.parts.form import Form

DONE = 1


def offered(seat):
    """The commands by title, with the key that stands beside each."""
    found = {}
    for command in seat.app.get_system_commands(seat.app.screen):
        title, _, key = command.title.partition(GAP)
        assert title not in found, f"{title} is offered twice"
        found[title] = key
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tab", "more"), [("runs", {"Run again": "R"}), ("results", {"Filter": "/"}), ("plan", {"Add": "a"})]
)
async def test_every_act_stands_with_its_key(sit, built_data, tab, more):
    async with sit(built_data, "G", tab=tab) as seat:
        found = offered(seat)
        keys = {
            "Import a file": "I",
            "Evaluate files of another tool": "",
            "Check one anonymised file: k, l, t": "",
            "Doctor": "",
            "Audit log": "",
            "Release": "5",
            "Release the run": "w",
            "Report": "P",
            "Plan": "2",
            **more,
        }
        assert {title: found.get(title) for title in keys} == keys
        shown = {
            find_act(one.binding).name
            for one in seat.app.screen.active_bindings.values()
            if one.binding.show and one.enabled and seat.app.screen.in_footer(one.binding.action)
        }
        keyed = {key_text(BY_NAME[name].keys[0]) for name in shown if BY_NAME[name].keys}
        # the tabs to which the bracket goes stand in the palette by their names
        assert keyed <= {*found.values(), "q", "enter", "]"}


async def test_a_key_of_the_users_own_stands_beside_its_act(sit, built_data, tmp_path):
    (tmp_path / "config" / "sfumato").mkdir(parents=True)
    (tmp_path / "config" / "sfumato" / "keys.toml").write_text('doctor = "f6"\n')
    async with sit(built_data) as seat:
        assert offered(seat)["Doctor"] == "f6"


@pytest.mark.slow
async def test_what_the_palette_names_is_done(sit, built_data):
    async with sit(built_data, "G", tab="results") as seat:
        for typed, kind in (("doct", DoctorDialog), ("impo", Form), ("evalu", Form), ("report", Form)):
            await seat.press("ctrl+p", *typed)
            await seat.pilot.pause(0.3)
            await seat.press("enter")
            await seat.press("shift")
            assert isinstance(seat.app.screen, kind), typed
            await seat.press("escape")
        sort = seat.app.state.sort
        await seat.press("ctrl+p", *"sort")
        await seat.pilot.pause(0.3)
        await seat.press("enter", "shift")
        assert seat.app.state.sort != sort


@pytest.mark.slow
async def test_without_a_finished_run_neither_release_nor_report_is_offered(sit, built_data):
    async with sit(built_data, "g", tab="runs") as seat:
        assert not {"Release the run", "Report"} & set(offered(seat))

"""Random keys over all acts, in terminals of every size, with and without colours and signs: the app never falls over."""

import random

import pytest

from sfumato.tui.keys.acts import ACTS, KEYLESS
from sfumato.tui.session.state import AppState, save_state

SIZES_SEEN = ((5, 3), (12, 4), (24, 8), (40, 12), (80, 24), (100, 30), (120, 40), (160, 50), (300, 80))
KEYS, KEYS_OF_A_SIZE, TABLE_KEYS = 1_000, 40, 400
SEED = 27
MODES = {"colours": {}, "no colour": {"NO_COLOR": "1"}, "ascii": {"SFUMATO_GLYPHS": "ascii"}, "ansi": {}}
LEFT_OUT = {"demo"}
"""Acts that read a large file."""
TEXT = "abcxyz0159.,-=[]{}\"'# ä"
PRESSES = [
    *(key for act in ACTS if act.name not in LEFT_OUT for key in (act.keys or (f"{KEYLESS}{act.name}",))),
    *("up", "down", "enter", "escape", "tab", "shift+tab", "backspace", "y", "n") * 4,
    *TEXT,
]


async def walk(sit, workspace, drawn, theme, most=KEYS):
    """Press keys until enough were pressed, or the app was left; the number of them."""
    async with sit(workspace, size=(80, 24)) as seat:
        if theme:
            seat.app.theme = theme
        for number in range(most):
            if number % KEYS_OF_A_SIZE == 0:
                await seat.pilot.resize_terminal(*drawn.choice(SIZES_SEEN))
            key = drawn.choice(PRESSES)
            await seat.press(key)
            unforeseen = [text for text in seat.app.notices if text.startswith("Unexpected")]
            assert not unforeseen, f"{unforeseen[0]} at key {number}, {key}, on {seat.app.screen}"
            if seat.app._exit:
                return number + 1
        return most


@pytest.mark.study
@pytest.mark.parametrize("mode", MODES)
async def test_random_keys_break_nothing(sit, built_data, no_worker, tmp_path, monkeypatch, mode):
    monkeypatch.setattr("sfumato.workspace.service.search_main.start_detached_module", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    for name, value in MODES[mode].items():
        monkeypatch.setenv(name, value)
    drawn = random.Random(f"{mode} {SEED}")
    pressed = 0
    while pressed < KEYS:
        tab = drawn.choice(("data", "plan", "runs", "map", "verdicts", "records", "results", "sweep", "diagnostics"))
        save_state(built_data, AppState(project=1, run=1, tab=tab))
        pressed += await walk(sit, built_data, drawn, "ansi-dark" if mode == "ansi" else "")


OF_TABLES = (
    "right_curly_bracket",
    "left_curly_bracket",
    "full_stop",
    "right_square_bracket",
    "enter",
    "v",
    "x",
    "escape",
    "y",
    "n",
)


@pytest.mark.study
async def test_random_keys_in_protected_tables_break_nothing(sit, tabled, no_worker, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.workspace.service.search_main.start_detached_module", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{__name__}.PRESSES", [*PRESSES, *OF_TABLES * 20])
    drawn = random.Random(SEED)
    pressed = 0
    while pressed < TABLE_KEYS:
        save_state(tabled, AppState(project=1, run=1, tab="tables"))
        pressed += await walk(sit, tabled, drawn, "", TABLE_KEYS)

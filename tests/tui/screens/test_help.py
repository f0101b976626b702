"""Help is searched by the words of what a key does, and by pressing the key itself."""

import pytest

from sfumato.tui.screens.help import HelpKey, Keys, keys_elsewhere, keys_text, matching

OPEN, RUN, ROWS = (
    HelpKey("Table", "Open", ("enter",), ("enter",)),
    HelpKey("This screen", "Run again", ("s",), ("s",)),
    HelpKey("Everywhere", "Redraw", ("^l",), ("ctrl+l",)),
)


def test_a_key_comes_before_words():
    other = HelpKey("Table", "s", ("x",), ("x",))
    assert matching([OPEN, other, RUN], "s") == [RUN, other]
    assert matching([OPEN, RUN, ROWS], "ctrl+l") == [ROWS]
    assert matching([OPEN, RUN, ROWS], "^l") == [ROWS]
    assert matching([OPEN, RUN, ROWS], "again RUN") == [RUN]
    assert matching([OPEN, RUN, ROWS], "zzz") == []
    assert matching([OPEN, RUN, ROWS], "") == [OPEN, RUN, ROWS]


def test_capitals_are_other_keys():
    small, large = HelpKey("a", "first", ("r",), ("r",)), HelpKey("a", "second", ("R",), ("R",))
    assert matching([small, large], "R")[0] == large
    assert matching([small, large], "r")[0] == small


def test_sections_stand_above_their_keys():
    assert keys_text([OPEN, RUN]).plain.split() == ["Table", "enter", "Open", "This", "screen", "s", "Run", "again"]


def test_what_is_shown_is_not_said_again_as_elsewhere():
    found = keys_elsewhere([HelpKey("This screen", "Run again", ("s",), ("s",))])
    assert ("Run again", ("s",)) not in {(one.does, one.keys) for one in found}
    assert ("Run", ("R",)) in {(one.does, one.keys) for one in found}


@pytest.mark.slow
async def test_words_find_keys_here_and_elsewhere(sit, built_data):
    async with sit(built_data, "question_mark", "slash", *"again", tab="runs", size=(80, 24)) as seat:
        assert isinstance(seat.app.screen, Keys)
        assert "Run again" in seat.text
        assert "Interrupt" not in seat.text
        await seat.press("escape")
        assert "Interrupt" in seat.text
        text = await seat.press("slash", *"trace")
        assert "Elsewhere: parameter" in text
        await seat.press("escape", "q")
        assert not isinstance(seat.app.screen, Keys)


@pytest.mark.slow
async def test_a_key_is_looked_up_by_pressing_it(sit, built_data):
    async with sit(built_data, "question_mark", tab="runs", size=(80, 24)) as seat:
        for key, words in (("x", "Interrupt"), ("R", "Run"), ("f12", "No key and no words"), ("w", "Release")):
            assert words in await seat.press(key), key
            assert len(seat.app.screen_stack) == 3
        text = await seat.press("slash", "s")
        assert "Run again" in "\n".join(text.splitlines()[:8])
        with_words = await seat.press("backspace", *"ctrl+r")
        assert "Redo" in with_words

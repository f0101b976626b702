"""ASCII in place of other characters, and when."""

from __future__ import annotations

import pytest

from sfumato.engine.errors import BadInput
from sfumato.tui.terminal.glyphs import ascii_sign, choose_glyphs


@pytest.mark.parametrize(
    ("environment", "settled"),
    [
        ({}, None),
        ({"LANG": "C.UTF-8"}, None),
        ({"LANG": "de_AT.utf8@euro"}, None),
        ({"LANG": "C.UTF-8", "LC_ALL": "C"}, "ascii"),
        ({"LANG": "POSIX"}, "ascii"),
        ({"LC_CTYPE": "de_AT.ISO-8859-1", "LANG": "C.UTF-8"}, "ascii"),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, "ascii"),
        ({"TERM": "linux", "SFUMATO_GLYPHS": "block"}, "block"),
        ({"LC_ALL": "C", "SFUMATO_GLYPHS": "braille"}, "braille"),
    ],
)
def test_ascii_is_settled_on_where_nothing_else_is_there(environment: dict[str, str], settled: str | None) -> None:
    choose_glyphs(environment)
    assert environment.get("SFUMATO_GLYPHS") == settled


def test_a_choice_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadInput, match='SFUMATO_GLYPHS: must be one of braille, block, ascii, not "dots"'):
        choose_glyphs({"SFUMATO_GLYPHS": "dots"})


@pytest.mark.parametrize(
    ("character", "sign"),
    list(zip("a│╭✓✗›…·⣿▟üÅ±日─😀\N{COMBINING CIRCUMFLEX ACCENT}", "a|++x>~.**uA~?-??", strict=True)),
)
def test_each_character_becomes_one_that_looks_like_it(character: str, sign: str) -> None:
    assert ascii_sign(character) == sign


def test_every_character_becomes_one_of_ascii() -> None:
    assert all(ascii_sign(chr(code)).isascii() and len(ascii_sign(chr(code))) == 1 for code in range(0x3000))

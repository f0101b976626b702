"""Limits of TOML texts: size, depth and digits end in one clear message, at once."""

from __future__ import annotations

import time

import pytest

from sfumato.engine.data.toml import DEEPEST_TABLE, MOST_CHARACTERS, MOST_DIGITS, read_toml
from sfumato.engine.errors import BadInput

SECONDS = 20.0
"""Far above what a refusal takes, far below the minutes that the parser alone would need."""
PARTS = 50_000
HOSTILE = {
    "dotted parts": (".".join("a" * PARTS) + " = 1", r"nested deeper than 50 \(line 1\)"),
    "quoted parts": ("\n\n" + " . ".join(['"a"'] * PARTS) + " = 1", r"nested deeper than 50 \(line 3\)"),
    "literal parts": (".".join(["'a'"] * PARTS) + " = 1", "nested deeper"),
    "a header": ("[" + ".".join("a" * PARTS) + "]", "nested deeper"),
    "an inline table": ("x = { " + ".".join("a" * PARTS) + " = 1 }", "nested deeper"),
    "lists": ("x = " + "[" * 100_000, "not valid TOML"),
    "digits": ("x = 1\ny = " + "9" * 500_000, rf"more than {MOST_DIGITS} digits \(line 2\)"),
    "negative digits": ("y = -" + "9" * 500_000, "digits"),
    "digits with lines": ("y = [1, " + "1_0" * 200_000 + "]", "digits"),
    "hexadecimal digits": ("y = 0x" + "f" * 500_000, "digits"),
    "binary digits": ("y = 0b" + "1" * 5_000, "digits"),
    "decimal places": ("y = 0." + "9" * 500_000, "digits"),
    "an exponent": ("y = 1e" + "9" * 500_000, "digits"),
    "open strings": ('"""\\' * 100_000, "not valid TOML"),
    "a long word": ("a" * 500_000, "not valid TOML"),
    "size": (" " * (MOST_CHARACTERS + 1), "the most are"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_beyond_the_limits_is_refused_at_once(name: str) -> None:
    text, message = HOSTILE[name]
    before = time.process_time()
    with pytest.raises(BadInput, match=f"^here: .*{message}"):
        read_toml(text, "here")
    assert time.process_time() - before < SECONDS


def test_strings_and_comments_may_hold_dots_and_digits() -> None:
    """The control: what looks like a deep key or a long number inside a string is neither."""
    dots, digits = ".".join("a" * PARTS), "9" * 5_000
    text = f'# {dots} {digits}\na = "{dots}"\nb = \'{digits}\' # {digits}\nc = """\n\\""" {dots}\n{digits}"""\nd = \'\'\'\n{dots}\'\'\'\n'
    assert read_toml(text) == {"a": dots, "b": digits, "c": f'""" {dots}\n{digits}', "d": dots}


def test_the_limits_themselves_are_accepted() -> None:
    deep = read_toml(".".join("a" * DEEPEST_TABLE) + " = 1")
    for _ in range(DEEPEST_TABLE):
        deep = deep["a"]
    assert deep == 1
    assert read_toml(f"x = -{'9' * MOST_DIGITS}") == {"x": -(10**MOST_DIGITS - 1)}
    assert read_toml(f"x = 0x{'f' * (MOST_DIGITS - 2)}")["x"] < 1e308

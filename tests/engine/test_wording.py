"""Numbers of things in words, and that no message writes them in another way."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

import sfumato.engine
import sfumato.tui
import sfumato.workspace
from sfumato.engine.wording import agreeing_word, count_noun, join_first_names, split_names

NOUNS = "record|run|dataset|variable|threshold|file|row|column|project|finding|figure"
LOOSE = re.compile(rf"(?<!of )(?<!all )(?<!than )\{{[a-z_][^{{}}:!]*(:,)?\}} ({NOUNS})s\b")
"""``{n} records`` says ``1 records`` of one; ``3 of {n} records`` and a limit in capitals do not."""
SEVERAL = ("if ", "many", "progress(", "{key}", "// 2", "divisor", "count[1]", "grouped")


def loose(source: str) -> list[str]:
    """The numbers with a noun that stays in the plural, in the texts of a module."""
    if not LOOSE.search(source):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = [token.string for token in tokens if token.type == tokenize.STRING and token.string[0] in "fF"]
    found = [match[0] for text in texts if '"""' not in text for match in LOOSE.finditer(text)]
    return [one for one in found if not any(word in one for word in SEVERAL)]


def test_one_and_several() -> None:
    assert [count_noun(n, "record") for n in (0, 1, 2, 12_000)] == [
        "0 records",
        "1 record",
        "2 records",
        "12,000 records",
    ]
    assert count_noun(2, "class") == "2 classes"
    assert [agreeing_word(n, "is", "are") for n in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("given", "whole", "names"),
    [
        (["age, sex", "zip"], (), ("age", "sex", "zip")),
        (['"a, b",c'], (), ("a, b", "c")),
        (["a, b"], ("a, b",), ("a, b",)),
        (["age,,age", " "], (), ("age",)),
        (["one\rtwo"], (), ("one\rtwo",)),
        (['one\n"two'], (), ('one\n"two',)),
    ],
)
def test_names_of_an_option_are_split_at_commas(
    given: list[str], whole: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert split_names(given, whole) == names


@pytest.mark.slow
def test_no_message_says_1_records() -> None:
    assert loose('x = f"{n} records are"') == ["{n} records"], "the control"
    places = [Path(package.__path__[0]) for package in (sfumato.engine, sfumato.workspace, sfumato.tui)]
    found = {
        str(file.relative_to(place)): slips
        for place in places
        for file in sorted(place.rglob("*.py"))
        if (slips := loose(file.read_text("utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("names", "total", "said"),
    [
        ([], 0, ""),
        (["age"], 0, "age"),
        (["age", "sex"], 0, "age, sex"),
        (["age", "sex", "pay"], 0, "age, sex and 1 more"),
        (["age", "sex"], 1_202, "age, sex and 1,200 more"),
        (["age"], 5, "age and 4 more"),
    ],
)
def test_the_first_names_are_named_and_the_others_are_counted(names: list[str], total: int, said: str) -> None:
    assert join_first_names(names, 2, total=total) == said

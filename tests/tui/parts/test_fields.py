"""What a form shows of a value is read back as that value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.tui.parts.fields import FormField, inline_text, parse_value, read_fields, value_text
from sfumato.tui.widgets.entries import LastWordSuggester, PathSuggester
from sfumato.tui.widgets.sparkline import BLOCKS, HIGHEST, sparkline

TEXT = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8)
SCALAR = st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), TEXT)


@pytest.mark.slow
@given(st.lists(st.one_of(SCALAR, st.lists(SCALAR, max_size=3)), max_size=4))
def test_lists_come_back(value: list[Any]) -> None:
    assert parse_value(value_text(value), "list", "x") == value


@pytest.mark.slow
@given(st.dictionaries(TEXT.filter(str.strip), st.one_of(SCALAR, st.lists(SCALAR, max_size=3)), max_size=4))
def test_tables_come_back(value: dict[str, Any]) -> None:
    assert parse_value(value_text(value), "table", "x") == value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("a, log1p(b), c:d", "list", ["a", "log1p(b)", "c:d"]),
        ('["a", "b"]', "list", ["a", "b"]),
        ("0.0, 0.1", "list", [0.0, 0.1]),
        ("[1, 2], [3]", "list", [[1, 2], [3]]),
        ("price = 5%, days = 5", "table", {"price": "5%", "days": 5}),
        ('{ "a b" = [1, 2] }', "table", {"a b": [1, 2]}),
        ("age = width 10, pay = at 1000, 3e3, n = 5", "table", {"age": "width 10", "pay": "at 1000, 3e3", "n": 5}),
        ("5", "value", 5),
        ("five", "value", "five"),
        ("5", "text", "5"),
        ("", "list", []),
    ],
)
def test_what_a_typed_text_means(text: str, kind: Any, value: object) -> None:
    assert parse_value(text, kind, "x") == value


@pytest.mark.parametrize("value", [["a,b", "1,2", "x"], ["a"], {"rows": [["a", "*"]]}, "uniform", 5])
def test_a_list_or_table_that_is_one_value_comes_back(value: object) -> None:
    assert parse_value(value_text(inline_text(value)), "value", "x") == value


def test_a_pair_without_a_value_says_how_to_write_it() -> None:
    with pytest.raises(BadInput, match="radius: write name = value, such as price = 5"):
        parse_value("price", "table", "radius")
    for text in ("5, price = 3", "price = 5, days", 'price = "a", 5'):
        with pytest.raises(BadInput, match="write name = value"):
            parse_value(text, "table", "radius")


def test_what_is_empty_or_left_at_its_default_is_left_out() -> None:
    fields = [
        FormField("a", ""),
        FormField("b", "", default="x", choices=("x", "y")),
        FormField("c", "", value="x", default="x", choices=("x", "y")),
    ]
    assert read_fields(fields, {"a": " ", "b": "x", "c": "x"}) == {"c": "x"}
    assert read_fields(fields, {"a": "1", "b": "y", "c": "y"}) == {"a": "1", "b": "y", "c": "y"}


async def test_the_last_word_is_completed() -> None:
    words = LastWordSuggester(["price", "room_type"])
    assert await words.get_suggestion("log(pr") == "log(price"
    assert await words.get_suggestion("price, ro") == "price, room_type"
    assert await words.get_suggestion("price") is None
    assert await words.get_suggestion("") is None


async def test_paths_are_completed(tmp_path: Path) -> None:
    (tmp_path / "people.csv").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "folder").mkdir()
    paths = PathSuggester()
    assert await paths.get_suggestion(f"{tmp_path}/pe") == f"{tmp_path}/people.csv"
    assert await paths.get_suggestion(f"{tmp_path}/") == f"{tmp_path}/folder/"
    assert await paths.get_suggestion(f"{tmp_path}/.h") == f"{tmp_path}/.hidden"
    assert await paths.get_suggestion(f"{tmp_path}/people.csv") is None
    assert await paths.get_suggestion("/nowhere/at/all") is None
    assert await paths.get_suggestion("") is None


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(0, 20))
def test_a_sparkline_fits_and_shows_every_bar_that_is_not_empty(counts: list[int], cells: int) -> None:
    line = sparkline(counts, cells)
    assert len(line) == min(cells, len(counts))
    if len(counts) <= cells:
        assert [sign == " " for sign in line] == [count == 0 for count in counts]
    if any(counts) and cells:
        assert BLOCKS[HIGHEST] in line
        assert not set(BLOCKS[HIGHEST + 1 :]) & set(line), "pictures in adjacent lines do not touch"


def test_public_rules_are_typed_as_they_are_shown():
    rules = {"age": 5, "Race": {"other": ["4", "5"]}}
    shown = value_text(rules)
    assert shown == 'age = 5, Race = { "other" = ["4", "5"] }'
    assert parse_value(shown, "table", "recode") == rules

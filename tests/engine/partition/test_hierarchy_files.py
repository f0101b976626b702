"""Trees in the files of other programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.partition.hierarchy_files import hierarchy_csv, parse_hierarchy_rows

ROWS = (("DE11", "DE1", "DE", "*"), ("DE12", "DE1", "DE", "*"), ("FR10", "FR1", "FR", "*"))
ARGUS = "@DE\n@@DE1\n@@@DE11\n@@@DE12\n@FR\n@@FR1\n@@@FR10\n"
SDC = "@,*\n@@,DE\n@@@,DE1\n@@@@,DE11\n@@@@,DE12\n@@,FR\n@@@,FR1\n@@@@,FR10\n"


@pytest.mark.parametrize(
    "text",
    [
        "DE11;DE1;DE;*\nDE12;DE1;DE;*\nFR10;FR1;FR;*\n",
        "DE11,DE1,DE,*\nDE12,DE1,DE,*\n\nFR10,FR1,FR,*\n",
        ARGUS,
        SDC,
        SDC.replace(",", ";"),
        '"@";"*"\n'
        + "".join(f'"{line.partition(",")[0]}";"{line.partition(",")[2]}"\n' for line in SDC.splitlines()[1:]),
    ],
)
def test_every_layout_gives_the_same_rows(text: str) -> None:
    assert parse_hierarchy_rows(text) == ROWS


def test_a_value_that_lies_less_deep_is_repeated() -> None:
    assert parse_hierarchy_rows("@a\n@@a1\n@b\n") == (("a1", "a", "*"), ("b", "b", "*"))


@pytest.mark.parametrize(
    ("text", "message"), [("@a\n@@@b\n", "line 2 lies 2 deep"), ("@a\n@@\n", "line 2 names no node")]
)
def test_what_is_no_tree_names_the_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_hierarchy_rows(text)


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5).filter(lambda s: set(s) != {"@"}),
                min_size=2, max_size=8, unique=True))  # fmt: skip
def test_what_is_written_is_read_back(values: list[str]) -> None:
    tree = Hierarchy(tuple((value, "all of them") for value in values))
    assert parse_hierarchy_rows(hierarchy_csv(tree)) == tree.rows

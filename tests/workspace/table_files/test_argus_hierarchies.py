"""Hierarchies in files of tau-ARGUS: what is read, what is refused and where, and that they come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.workspace.table_files.argus_hierarchies import read_hierarchy, write_hierarchy

CODES = st.text("abcXYZ019 .-é;", min_size=1, max_size=4).filter(lambda code: code == code.strip())


def test_codes_lie_as_deep_as_their_signs_say() -> None:
    tree = read_hierarchy("Nr\n@ 1\n@ 2\nOs \n@ 4\n@@41\n@@42\nWs\n", "region.hrc", total="Total")
    assert tree.rows == (
        ("1", "1", "Nr", "Total"),
        ("2", "2", "Nr", "Total"),
        ("41", "4", "Os", "Total"),
        ("42", "4", "Os", "Total"),
        ("Ws", "Ws", "Ws", "Total"),
    )
    assert write_hierarchy(tree) == "Nr\n@1\n@2\nOs\n@4\n@@41\n@@42\nWs\n"


def test_the_sign_can_be_another() -> None:
    text = "A\n:01\nBE\n:06\n:07\n"
    assert write_hierarchy(read_hierarchy(text, "a.hrc", lead=":"), lead=":") == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.hrc: has no codes"),
        ("a\n@\n", "a.hrc, line 2: has no code"),
        ("a\n\n@@b\n", 'a.hrc, line 3: "b" lies 2 levels below the line above it'),
        ("@b\n", 'a.hrc, line 1: "b" lies 2 levels below'),
        ("a\n@b\nc\n@b\n", 'a.hrc, line 4: "b" is in line 2 too'),
        ("a\n*\n", 'a.hrc, line 2: "*" is the total'),
    ],
)
def test_a_wrong_line_is_named(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_hierarchy(text, "a.hrc")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "rows", [(("@a", "*"), ("b", "*")), ((" a", "*"), ("b", "*")), (("a", "x", "*"), ("x", "b", "*"))]
)
def test_labels_that_no_file_can_hold_are_refused(rows: tuple[tuple[str, ...], ...]) -> None:
    with pytest.raises(ValueError, match="cannot"):
        write_hierarchy(Hierarchy(rows))


@given(st.lists(st.lists(CODES, min_size=1, max_size=3), min_size=2, max_size=12))
def test_every_file_comes_back(names: list[list[str]]) -> None:
    # Numbered nodes: no code stands twice.
    lines = []
    for at, below in enumerate(names):
        lines.append(f"n{at}{below[0]}".strip())
        lines += [f"@m{at}-{deep}{code}".strip() for deep, code in enumerate(below[1:])]
    text = "".join(f"{line}\n" for line in lines)
    tree = read_hierarchy(text, "a.hrc")
    assert write_hierarchy(tree) == text
    assert read_hierarchy(write_hierarchy(tree, "::"), "a.hrc", "::") == tree

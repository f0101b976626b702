"""Plain words: texts that people read have none of the phrases below, identifiers none of the names that were replaced.

``words_left.toml`` counts the phrases that are still there, by kind of text. It only shrinks: a count that is too high fails as well.
To count again: ``SFUMATO_COUNT_WORDS=1 pytest tests/test_words.py``; it refuses to raise a number.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import tomli_w

from sfumato.engine.methods.registry import OWN, registry
from sfumato.engine.recipe.recipe import SECTIONS, recipe_params
from sfumato.tui.cli.main import sfumato
from sfumato.workspace.gate.gate import CHECKS
from sfumato.workspace.gate.sentences import sentence_templates

ROOT = Path(__file__).parents[1]
LEFT = ROOT / "tests" / "words_left.toml"
PHRASES = (
    "anew", "so many", "such a one", "is none", "are none", "nobody", "as they are", "as it is", "as they leave", "what becomes of",
    "of what", "what is asked", "held against", "holds against", "hold against", "goes on", "go on with", "take back", "takes back",
    "taken back", "take in", "takes in", "told from", "told apart", "let pass", "made elsewhere", "look higher", "what mends it", "mends",
    "cannot be told", "is said to be", "are said to be", "lie over each other",
)  # fmt: skip
FORBIDDEN = re.compile(rf"\b({'|'.join(re.escape(one) for one in PHRASES)})\b", re.IGNORECASE)
NAMES = (
    "TableSeen", "VariableSeen", "table_unseen", "most_telling", "holds_texts", "originals_of", "are_names", "kept_by", "keeping_of",
    "Keeping", "check_asking", "making_streams", "measuring_streams", "made_up", "misgivings", "told_before", "read_apart",
    "EditsInTurn", "act_next", "OnlySeen", "seen_strip", "what_goes_out", "how_often", "insertion_points", "look_at_file", "still_there",
    "asks_models", "told_apart",
)  # fmt: skip
IDENTIFIERS = re.compile(rf"\b({'|'.join(NAMES)})\b")


def commands(command: click.Command) -> Iterator[str]:
    yield command.help or ""
    yield from (one.help or "" for one in command.params if isinstance(one, click.Option))
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from commands(one)


def methods() -> Iterator[str]:
    for found in registry().values():
        if found.package == OWN:
            yield found.title
            yield from (info.param.help for info in found.spec.params())
            for output in found.result_outputs:
                label = output.label
                yield from (
                    output.meaning,
                    label.name,
                    label.says,
                    label.good,
                    label.fails,
                    *label.levers,
                    label.baseline,
                )


def gate() -> Iterator[str]:
    for check in CHECKS:
        yield from (check.title, check.unit, check.reason, check.advice)


def findings() -> Iterator[str]:
    """What the gate's checks say of a release: the templates of their sentences."""
    yield from sentence_templates().values()


def manual() -> Iterator[str]:
    """The prose of the pages, without what declarations write."""
    for page in sorted((ROOT / "workspace" / "manual").glob("*.md")):
        yield re.sub(r"<!-- generated: .*?<!-- end of generated -->", "", page.read_text("utf-8"), flags=re.DOTALL)


def recipe() -> Iterator[str]:
    for section in ("recipe", "data.format", *(name for name, declaring in SECTIONS.items() if declaring)):
        yield from (info.param.help for info in recipe_params(section))


def plain() -> Iterator[str]:
    """What plain mode itself says: the texts of its files, without docstrings."""
    for path in sorted((ROOT / "tui" / "plain").glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in described)
        yield from (node.value for node in texts if isinstance(node.value, str))


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": lambda: commands(sfumato),
    "findings": findings,
    "gate": gate,
    "manual": manual,
    "methods": methods,
    "plain": plain,
    "readme": lambda: iter([(ROOT / "README.md").read_text("utf-8")]),
    "recipe": recipe,
}


@cache
def found(kind: str) -> dict[str, int]:
    """How often each phrase occurs in the texts of a kind."""
    counts: dict[str, int] = {}
    for text in KINDS[kind]():
        for match in FORBIDDEN.findall(" ".join(text.split())):
            counts[match.lower()] = counts.get(match.lower(), 0) + 1
    return dict(sorted(counts.items()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_no_more_of_the_phrases_than_are_counted(kind: str) -> None:
    left = tomllib.loads(LEFT.read_text("utf-8")).get(kind, {})
    if os.environ.get("SFUMATO_COUNT_WORDS"):
        assert all(count <= left.get(phrase, 0) for phrase, count in found(kind).items())
        whole = tomllib.loads(LEFT.read_text("utf-8")) | {kind: found(kind)}
        LEFT.write_text(tomli_w.dumps({name: table for name, table in sorted(whole.items()) if table}), "utf-8")
        return
    assert found(kind) == left


def test_the_phrases_are_found_across_lines_and_within_words_not() -> None:
    assert FORBIDDEN.findall("It is drawn Anew; nobody\nasked. Besides, a mendsome renewal.") == ["Anew", "nobody"]


def test_the_texts_of_plain_mode_are_found_within_its_sentences() -> None:
    texts = list(plain())
    assert "list, open and begin projects" in texts
    assert any(" is interrupted; its finished steps are kept" in text for text in texts)


@pytest.mark.parametrize("layer", ["engine", "workspace", "tui"])
def test_no_identifier_has_a_name_that_was_replaced(layer: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        for name in sorted(set(IDENTIFIERS.findall(path.read_text("utf-8"))))
    ]
    assert wrong == []

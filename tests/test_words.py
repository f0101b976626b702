"""Plain words: texts that people read have none of the phrases below, identifiers none of the names that were replaced.

Read are all strings of every layer, their docstrings, the pages of the manual, and the texts beside the code. ``words_left.toml`` counts
the phrases that are still there, by kind of text. It only shrinks: a count that is too high fails as well.
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
    "cannot be told", "is said to be", "are said to be", "lie over each other", "the same of", "go on", "going on", "went on", "took back",
    "took in", "taken in", "taking back", "taking in", "mend", "mended", "tell apart", "tells apart", "goes out", "go out", "come again",
    "comes again", "not there yet", "give away", "gives away", "given away",
)  # fmt: skip
# "None", Python's value, is no word: "where the value is None" stays.
FORBIDDEN = re.compile(
    rf"\b({'|'.join(re.escape(one).replace('none', '(?-i:none)') for one in PHRASES)})\b", re.IGNORECASE
)
LAYERS = ("engine", "workspace", "tui")
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
                    label.bad,
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


def f_string_text(node: ast.JoinedStr) -> str:
    """Return the text of an f-string, with an ellipsis in place of each value."""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)


def texts_of_file(path: Path, *, docstrings: bool) -> Iterator[str]:
    """Yield the docstrings of a file, or all other strings and f-strings.

    A string that stands alone, as below a constant, counts as a docstring.
    """
    tree = ast.parse(path.read_text("utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from () if docstrings else (f_string_text(node),)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield from (node.value,) if docstrings is (id(node) in alone) else ()


def code(*, docstrings: bool) -> Iterator[str]:
    """Yield the docstrings of every layer, or all its other strings."""
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            yield from texts_of_file(path, docstrings=docstrings)


def data_files() -> Iterator[str]:
    """Yield the recipes that ship, and the schemas of documents."""
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*")):
            if path.suffix in (".toml", ".json"):
                yield path.read_text("utf-8")


def beside(*names: str) -> Iterator[str]:
    """Yield the texts of files at the root of the repository."""
    yield from ((ROOT / name).read_text("utf-8") for name in names)


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    "changelog": lambda: beside("CHANGELOG.md"),
    "commands": lambda: commands(sfumato),
    "findings": findings,
    "gate": gate,
    "manual": manual,
    "methods": methods,
    "readme": lambda: beside("README.md"),
    "recipe": recipe,
    "strings": lambda: code(docstrings=False),
}


@cache
def phrase_counts(kind: str) -> dict[str, int]:
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
        assert all(count <= left.get(phrase, 0) for phrase, count in phrase_counts(kind).items())
        whole = tomllib.loads(LEFT.read_text("utf-8")) | {kind: phrase_counts(kind)}
        LEFT.write_text(tomli_w.dumps({name: table for name, table in sorted(whole.items()) if table}), "utf-8")
        return
    assert phrase_counts(kind) == left


def test_the_phrases_are_found_across_lines_and_within_words_not() -> None:
    assert FORBIDDEN.findall("It is drawn Anew; nobody\nasked. Besides, a mendsome renewal.") == ["Anew", "nobody"]
    assert FORBIDDEN.findall("None where there is none; it is None") == ["is none"]


def test_the_strings_of_a_file_are_found_within_its_sentences_and_apart_from_its_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(
        '"""Of a module."""\nLIMIT = 3\n"""Of a constant."""\n'
        'def say(name, limit):\n    """Of a function."""\n'
        '    return {"key": f"so {name} goes "\n        "on" + f"{limit:>{name}}"}\n',
        "utf-8",
    )
    assert sorted(texts_of_file(path, docstrings=True)) == ["Of a constant.", "Of a function.", "Of a module."]
    assert sorted(texts_of_file(path, docstrings=False)) == [">…", "key", "so … goes on", "…"]


@pytest.mark.slow
def test_the_strings_of_every_layer_are_read() -> None:
    texts = set(code(docstrings=False))
    assert "list, open and begin projects" in texts
    assert any(" is interrupted; its finished steps are kept" in text for text in texts)
    assert any(text.startswith("the privacy cost of the run is unknown: …") for text in texts)
    assert any(text.startswith("the audit log of … was sealed already") for text in texts)


@pytest.mark.parametrize("layer", LAYERS)
def test_no_identifier_has_a_name_that_was_replaced(layer: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        for name in sorted(set(IDENTIFIERS.findall(path.read_text("utf-8"))))
    ]
    assert wrong == []

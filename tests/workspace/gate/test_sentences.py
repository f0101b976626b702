"""Sentences of findings: what fills a template, and that every template is used with just its fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.workspace.gate import sentences
from sfumato.workspace.gate.sentences import fill_sentence, sentence_templates, template_fields

ROOM = Path(sentences.__file__).parent
TEMPLATES = sentence_templates()
TREES = {path.name: ast.parse(path.read_text("utf-8")) for path in sorted(ROOM.glob("*.py"))}


@pytest.mark.parametrize(
    ("template", "fields", "text"),
    [
        ("{n:count record} {n:word is|are} here", {"n": 1}, "1 record is here"),
        ("{n:count record} {n:word is|are} here", {"n": 12_000}, "12,000 records are here"),
        ("{n:count class}", {"n": 2}, "2 classes"),
        ("{names:list}", {"names": ("age", "sex", "region")}, "age, sex and region"),
        ("{runs:commas}", {"runs": [1, 2]}, "1, 2"),
        ("{share:share}", {"share": 0.00436}, "0.436 %"),
        ("{share:share}", {"share": 1e-7}, "below 0.001 %"),
        ("{share:percent}", {"share": 0.99999}, "99.999 %"),
        ("{share:percent .0f}", {"share": 0.125}, "12 %"),
        ("{x:number}", {"x": 12345.6}, "12,346"),
        ("{n:,} of {x:.3g}", {"n": 1234, "x": 0.12345}, "1,234 of 0.123"),
        ("{name}", {"name": "a {column} of a stranger"}, "a {column} of a stranger"),
    ],
)
def test_plurals_lists_and_shares_are_filled_in(template: str, fields: dict[str, object], text: str) -> None:
    assert fill_sentence(template, **fields) == text


def test_a_field_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill_sentence("{n:count record}", number=1)


def _templates_named(node: ast.expr) -> list[str]:
    """The templates that an expression may be: ``sentences.A``, or one of two."""
    if isinstance(node, ast.IfExp):
        return [*_templates_named(node.body), *_templates_named(node.orelse)]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sentences":
        return [node.attr]
    return []


def _fillings() -> Iterator[tuple[str, ast.Call]]:
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fill_sentence":
                yield f"{name}:{node.lineno}", node


def test_every_call_gives_just_the_fields_of_its_template() -> None:
    wrong = []
    for place, call in _fillings():
        named = _templates_named(call.args[0])
        assert named, f"{place} names no template"
        given = {keyword.arg for keyword in call.keywords}
        wrong += [f"{place}: {name}" for name in named if template_fields(TEMPLATES[name]) != given]
    assert wrong == []


def test_every_template_is_used_and_none_with_fields_as_it_stands() -> None:
    filled = {name for _, call in _fillings() for name in _templates_named(call.args[0])}
    first = {id(node) for _, call in _fillings() for node in ast.walk(call.args[0])}
    plain = {
        name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and id(node) not in first
        for name in _templates_named(node)
        if name.isupper()
    }
    assert filled | plain == set(TEMPLATES) - {"ELSEWHERE"}
    assert [name for name in sorted(plain) if template_fields(TEMPLATES[name])] == []


def test_checks_write_no_sentence_of_their_own() -> None:
    """A message that a result or a reason has comes from a template, or from what was measured elsewhere."""
    wrong = []
    for name in ("record_checks.py", "people_checks.py", "run_checks.py", "history_checks.py", "questions.py"):
        for node in ast.walk(TREES[name]):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                continue
            if node.func.id in ("CheckResult", "NotComputable", "CheckNotApplicable") and isinstance(
                node.args[0], ast.Constant | ast.JoinedStr | ast.BinOp
            ):
                wrong.append(f"{name}:{node.lineno}")
    assert wrong == []


def test_every_check_is_declared_in_one_of_four_files() -> None:
    declaring = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "GateCheck"
    }
    assert declaring == {"record_checks.py", "people_checks.py", "run_checks.py", "history_checks.py"}

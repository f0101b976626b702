"""No screen, view, report or command knows a method by its name: what it needs to know, the method declares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.engine.methods.registry import registry

ROOT = Path(__file__).parents[1]
ABOUT_ONE_METHOD = {"workspace/service/guided_minimisation.py", "workspace/service/intruder_dial.py"}
"""The page of one study, and the dial, which counts whom the intruder of identification finds."""
FILES = [
    path
    for room in ("workspace", "tui")
    for path in sorted((ROOT / room).rglob("*.py"))
    if "recipes" not in path.parts and str(path.relative_to(ROOT)) not in ABOUT_ONE_METHOD
]
EXAMPLES = {
    "tui/cli/main.py": {"risk.attribute"},
    "workspace/documents/acro.py": {"utility.summary"},
    "workspace/documents/actors.py": {"risk.linkability"},
    "workspace/documents/first_page.py": {"risk.linkability"},
    "workspace/documents/disclosure_control.py": {"anonymisation.suppression"},
    "workspace/release/judgements.py": {"risk.linkability", "risk.singling_out"},
    "workspace/gate/run_checks.py": {"risk.linkability"},
    "workspace/reporting/questions.py": {"risk.linkability"},
    "workspace/service/lever_trials.py": {"utility.propensity"},
}
"""What a help text gives as an example, the utility that a trial adds where a plan measures none, and the keys of a document's format and questions that are a method's name by chance."""
WORDS = {"units"}
"""Names that are words for other things too, such as random streams of whole units; their keys count as any other's."""
PICTURES = {"ecdf"}
"""Names that are those of a kind of picture too, which is drawn of data whether the method is in the recipe or not."""


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The text literals of a module but for its docstrings and the list of its names."""
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            left_out |= {id(child) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.lineno, node.value


def named(text: str) -> list[tuple[int, str]]:
    """Where a module's code names a method: its key anywhere in a literal, its name as a whole one or within quotes.

    A name that is no word of the language, such as ``nmi_v1``, counts wherever it stands in a literal.
    """
    tree, methods = ast.parse(text), registry().values()
    found = []
    for line, literal in literals(tree):
        words = set(re.findall(r"[\w.]+", literal))
        for method in (one for one in methods if one.name in literal):
            whole = literal == method.name or f"'{method.name}'" in literal or f'"{method.name}"' in literal
            odd = "_" in method.name and method.name in re.findall(r"\w+", literal)
            key = any(word == method.key or word.startswith(f"{method.key}.") for word in words)
            if (whole and method.name not in PICTURES | WORDS) or odd or key:
                found.append((line, method.key))
    modules = {f"{method.family}.{method.name}" for method in methods}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sfumato.engine."):
            inside = node.module.removeprefix("sfumato.engine.")
            names = {inside, *(f"{inside}.{alias.name}" for alias in node.names)}
            found += [(node.lineno, name) for name in names & modules]
    return found


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in FILES}), ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_method_is_known_by_its_name(folder: Path) -> None:
    for path in FILES:
        if path.parent == folder:
            found = {name for _, name in named(path.read_text("utf-8"))}
            assert found - EXAMPLES.get(str(path.relative_to(ROOT)), set()) == set(), path


@pytest.mark.parametrize(
    "code",
    [
        'if row.method == "calibration":\n    pass',
        'KEYS = {"quality.pearson.rho": 1}',
        "query = \"SELECT 1 FROM result WHERE method = 'minimisation'\"",
        'words = ("nmi_v1 is scaled",)',
        "from sfumato.engine.studies.minimisation import MinimisationSpec",
        "from sfumato.engine.risk import identification",
    ],
)
def test_a_method_that_is_named_is_found(code: str) -> None:
    assert len(named(code)) == 1


def test_words_that_are_names_too_are_no_comparison() -> None:
    assert named('"""The summary of a run: calibration."""\n__all__ = ["summary"]\nsay("the cluster at work")') == []

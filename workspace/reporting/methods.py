"""How the numbers came about: convergence of the models, and the source of every method."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.methods import Method
from sfumato.engine.recipe import Recipe
from sfumato.engine.results import Diagnostic

from ..plots.markup import Child, Markup, element
from .numbers import number
from .parts import Section, definitions, section, settings, table

__all__ = ["diagnostic_section", "method_section"]


def diagnostic_section(diagnostics: Sequence[Diagnostic], *convergence: Child) -> Section | None:
    """Whether the models converged: what ``convergence`` says, and every statistic with the rule it is held against."""
    if not diagnostics:
        return None
    judged = [found.passed for found in diagnostics if found.passed is not None]
    failed = judged.count(False)
    verdict = f"{failed} of {len(judged)} are not met" if failed else f"all {len(judged)} are met"
    rows = [
        [found.target, found.name, found.parameter, number(found.value), found.rule, _passed(found.passed)]
        for found in diagnostics
    ]
    heads = ("variable", "statistic", "parameter", "value", "rule", "")
    return section(
        "Diagnostics",
        element("p", f"Rules for the models: {verdict}." if judged else ""),
        *convergence,
        table("Every statistic", heads, rows, numeric=(3,)),
    )


def _passed(passed: bool | None) -> str:
    return "" if passed is None else "✓ met" if passed else "✗ not met"


def method_section(recipes: Sequence[Recipe]) -> Section:
    """Every method that was used: what it does, where it comes from, and the settings it was used with."""
    used: dict[str, tuple[Method, list[str]]] = {}
    for recipe in recipes:
        for step in (*recipe.synthesis, *recipe.anonymisation, *recipe.measures, *recipe.studies):
            words = settings(step.spec.to_full_table())
            said = f"{step.target}: {words}" if step.target else words
            known = used.setdefault(step.method.key, (step.method, []))[1]
            if said and said not in known:
                known.append(said)
    return section("Methods and sources", [_method(method, said) for method, said in used.values()])


def _method(method: Method, said: Sequence[str]) -> Markup:
    return element(
        "article",
        element("h3", method.title, " ", element("code", method.key)),
        definitions(
            [
                ("Source", method.source),
                ("Settings", element("ul", [element("li", one) for one in said]) if said else ""),
            ]
        ),
    )

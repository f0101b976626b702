"""What was released, from what, and how to make it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from sfumato.engine.recipe import Recipe
from sfumato.engine.schema import Variable

from ..plots.markup import Markup, element
from ..store.workspace import Dataset
from ..views.runs import Run
from .numbers import duration, number
from .parts import Section, definitions, section, settings, table

__all__ = ["recipe_section", "release_section", "variable_section"]


def release_section(run: Run, dataset: Dataset, beside: Sequence[Run]) -> Section:
    """Data, recipe, seed and versions: enough to make the same release again."""
    recipe = run.recipe
    return section(
        "What was released",
        definitions(
            [
                ("Datasets", f"m = {recipe.m}, of {dataset.records:,} records each"),
                ("Released variables", ", ".join(recipe.released)),
                ("Confidential file", f"{dataset.name} (SHA-256 {dataset.source_sha256})"),
                ("Filter", recipe.data.where),
                ("Sample", f"{recipe.data.sample:,} records, without replacement" if recipe.data.sample else ""),
                ("Left out for missing values", f"{dataset.dropped:,} records" if dataset.dropped else ""),
                ("Seed", str(run.seed)),
                ("Recipe", f"SHA-256 {run.recipe_sha256}"),
                ("Made", f"run {run.id}, {_moment(run.created)}, {duration(run.seconds)} of computing"),
                ("With", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
                ("Beside it", ", ".join(f"{other.title} (run {other.id})" for other in beside)),
            ]
        ),
        _steps(recipe),
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _steps(recipe: Recipe) -> Markup | str:
    if recipe.anonymisation:
        made = [[s.method.title, settings(s.spec.to_full_table()), s.method.source] for s in recipe.anonymisation]
        return table("Anonymisation, in this order", ("method", "settings", "source"), made)
    if not recipe.synthesis:
        return element("p", "The released datasets were made by another tool and are scored here.")
    rows = [[s.target, s.method.title, settings(s.spec.to_full_table()), s.method.source] for s in recipe.synthesis]
    return table("Synthesis, in this order", ("variable", "model", "settings", "source"), rows)


def variable_section(recipe: Recipe) -> Section:
    """Every variable, its role for an intruder, and whether it is released."""
    heads = ("variable", "meaning", "kind", "role", "bounds", "in the release")
    return section("Variables", table("", heads, [list(_variable(recipe, variable)) for variable in recipe.schema]))


def _variable(recipe: Recipe, variable: Variable) -> Iterator[str]:
    yield variable.name
    yield variable.title
    yield variable.kind.value
    yield variable.role.value
    low, high = variable.bounds or (None, None)
    yield " ".join(f"{word} {number(end)}" for word, end in (("from", low), ("to", high)) if end is not None)
    yield "replaced" if variable.name in recipe.released else "unchanged"


def recipe_section(run: Run) -> Section:
    """The whole plan, to be run again."""
    return section(
        "The recipe",
        element("p", "Saved in a file, it makes the same release again: sfumato run FILE --data DATA"),
        element("pre", run.recipe_toml),
    )

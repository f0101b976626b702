"""What the public documents say of a release alike: title, account, files, variables and the levels that occur in them.

From the plan, the schema and the released tables alone: no statistic of the confidential data, no bound (whoever set it may have
looked at the data), no level that no released record has, no path, no seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.data.schema import Variable
from sfumato.engine.wording import counted

from ..ingest.file_formats import format_called
from ..release.dossier import Dossier
from ..release.tables import level_names, released_levels
from ..reporting.privacy_promise import promise
from ..reporting.user_guide import PublicRelease, account, limits
from ..visible_text import plain_cell
from .written import Written


@dataclass(frozen=True, slots=True)
class Category:
    """A level: how it stands in the files, its label, and its code where that is another text."""

    value: str
    label: str
    code: str


@dataclass(frozen=True, slots=True)
class Column:
    """A variable of the released files: ``name`` as its head is written, how its values were made, the levels that occur."""

    name: str
    variable: Variable
    made: str
    categories: tuple[Category, ...]


@dataclass(frozen=True)
class Described:
    """A release as its users may know it. ``limits`` say what not to do with it, ``privacy`` what is promised of it, if anything is.

    ``files`` are the datasets, in their order.
    """

    title: str
    kind: str
    account: str
    limits: Sequence[str]
    privacy: Sequence[str]
    datasets: int
    records: int
    files: Sequence[Written]
    columns: Sequence[Column]
    version: str
    publisher: str
    licence: str
    address: str
    published: str


def described(dossier: Dossier, written: Sequence[Written]) -> Described:
    """Read the released tables for the levels that occur in them."""
    plan, recipe = dossier.plan, dossier.plan.run.recipe
    release = PublicRelease(recipe, plan.datasets, plan.records, plan.kept, plan.replaced, (), dossier.policy.rules)
    kind = recipe.origin.upper()
    said = dossier.judgements
    return Described(
        _title(kind, recipe.form.title, plan.datasets, plan.records),
        kind,
        account(release),
        limits(release),
        [] if (privacy := dossier.promise()) is None else promise(privacy),
        plan.datasets,
        plan.records,
        [one for one in written if one.package == "public" and one.name.startswith("dataset-")],
        _columns(dossier),
        str(plan.run.versions.get("sfumato", "")),
        said.get("publisher", ""),
        said.get("licence", ""),
        said.get("address", ""),
        said.get("published", ""),
    )


def _title(kind: str, given: str, datasets: int, records: int) -> str:
    """The public title of the recipe, or what the data are; either says first of which kind they are."""
    return (
        f"{kind}: {given}" if given else f"{kind} data: {counted(datasets, 'dataset')} of {counted(records, 'record')}"
    )


def _columns(dossier: Dossier) -> list[Column]:
    plan = dossier.plan
    levels = released_levels((dossier.released(draw) for draw in range(plan.datasets)), plan.left_out)
    form = format_called(dossier.form)
    plain, coded = form.spreadsheet_safe, form.keeps_codes
    columns = []
    for variable in plan.run.recipe.released_schema:
        if variable.name in plan.left_out:
            continue
        own = levels.get(variable.name, ())
        names = level_names(variable, own)
        stands = {level: level if coded else _cell(names.get(level, level), plain) for level in own}
        categories = tuple(
            Category(stands[level], names.get(level, level), level if level in names and not coded else "")
            for level in own
        )
        columns.append(Column(_cell(variable.name, plain), variable, _made(dossier, variable.name), categories))
    return columns


def _cell(text: str, plain: bool) -> str:
    return plain_cell(text) if plain else text


def _made(dossier: Dossier, name: str) -> str:
    """How the values of a variable came about."""
    recipe = dossier.plan.run.recipe
    models = [step.method for step in recipe.synthesis if name in step.targets]
    if models:
        return f"SYNTHETIC values, drawn from a model: {models[-1].title} ({models[-1].source})"
    if name in dossier.plan.kept:
        rule = recipe.form.recode.get(name)
        return f"values of the confidential records, {f'made coarser: {rule}' if rule else 'unchanged'}"
    if recipe.anonymisation:
        return "ANONYMISED values: " + ", ".join(step.method.title for step in recipe.anonymisation)
    return f"{recipe.origin.upper()} values, made by another program"

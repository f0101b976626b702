"""Description of a release that its public documents share: title, account, files, variables and levels that occur.

It follows from the plan, the schema and the released tables alone: no statistic of the confidential data, no bound
(whoever set it may have looked at the data), no level that no released record has, no path, no seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.data.schema import Variable
from sfumato.engine.wording import count_noun

from ..ingest.file_formats import format_by_name
from ..release.dossier import ReleaseDossier
from ..release.surrogate_keys import key_variables
from ..release.tables import names_of_levels, released_levels, written_column_names
from ..reporting.privacy_promise import promise_sentences
from ..reporting.user_guide import PublicRelease, describe_released_data, usage_limits
from ..visible_text import plain_cell
from .written import WrittenFile


@dataclass(frozen=True, slots=True)
class PublishedLevel:
    """Level that occurs in a release.

    value: how it is written in the files
    label: its label
    code: its code where that is another text; empty otherwise
    """

    value: str
    label: str
    code: str


@dataclass(frozen=True, slots=True)
class PublishedColumn:
    """Variable of the released files.

    name: its name as the files' header has it
    variable: its declaration
    treatment: how its values were made, in words
    categories: the levels that occur
    date_format: form in which the files write its dates, where they are text and it is not that of ISO 8601
    """

    name: str
    variable: Variable
    treatment: str
    categories: tuple[PublishedLevel, ...]
    date_format: str = ""


@dataclass(frozen=True)
class ReleaseDescription:
    """Release as its users may know it.

    title: public title
    kind: SYNTHETIC, ANONYMISED, in capitals
    account: what was done, in words
    limits: what not to do with it
    privacy: what is promised of it, if anything is
    datasets, records: their numbers
    files: the datasets, in their order
    columns: the released variables
    version: version of Sfumato
    publisher, licence, address, published: given by people; empty where not given
    """

    title: str
    kind: str
    account: str
    limits: Sequence[str]
    privacy: Sequence[str]
    datasets: int
    records: int
    files: Sequence[WrittenFile]
    columns: Sequence[PublishedColumn]
    version: str
    publisher: str
    licence: str
    address: str
    published: str


def describe_release(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> ReleaseDescription:
    """Describe a release; its tables are read for the levels that occur in them."""
    plan, recipe = dossier.plan, dossier.plan.run.recipe
    release = PublicRelease(
        recipe,
        plan.datasets,
        plan.records,
        plan.kept,
        plan.replaced,
        (),
        dossier.policy.disclosure_rules,
        has_units=plan.has_units,
    )
    kind = recipe.origin.upper()
    said = dossier.judgements
    return ReleaseDescription(
        _public_title(kind, recipe.form.title, plan.datasets, plan.records),
        kind,
        describe_released_data(release),
        usage_limits(release),
        [] if (privacy := dossier.read_promise()) is None else promise_sentences(privacy),
        plan.datasets,
        plan.records,
        [one for one in written if one.package == "public" and one.name.startswith("dataset-")],
        _published_columns(dossier),
        str(plan.run.versions.get("sfumato", "")),
        said.get("publisher", ""),
        said.get("licence", ""),
        said.get("address", ""),
        said.get("published", ""),
    )


def _public_title(kind: str, given: str, datasets: int, records: int) -> str:
    """Return the recipe's public title, else what the data are; both begin with the kind of data."""
    return (
        f"{kind}: {given}"
        if given
        else f"{kind} data: {count_noun(datasets, 'dataset')} of {count_noun(records, 'record')}"
    )


def _published_columns(dossier: ReleaseDossier) -> list[PublishedColumn]:
    """Return the released variables with the levels that occur, as the files write them."""
    plan = dossier.plan
    levels = released_levels(dossier.stored_parts.iterate_all_released(), plan.left_out)
    form = format_by_name(dossier.form)
    plain, coded = form.spreadsheet_safe, form.keeps_codes
    written = written_column_names(dossier.form, plan.released_columns)
    columns = [
        PublishedColumn(
            _cell_text(written[one.name], plain),
            one,
            "a new number, equal in the records of one unit"
            if one.name in plan.run.recipe.renumbered_units
            else "a random key in place of the identifier",
            (),
        )
        for one in key_variables(plan.run.recipe)
    ]
    for variable in plan.run.recipe.released_schema:
        if variable.name in plan.left_out:
            continue
        own = levels.get(variable.name, ())
        names = names_of_levels(variable, own)
        stands = {level: level if coded else _cell_text(names.get(level, level), plain) for level in own}
        categories = tuple(
            PublishedLevel(stands[level], names.get(level, level), level if level in names and not coded else "")
            for level in own
        )
        treatment = _treatment_text(dossier, variable.name)
        date_format = variable.format if plain and variable.date_form is not None else ""
        if date_format:
            treatment += f"; dates are written {date_format}"
        if written[variable.name] != variable.name:
            treatment += f'; its name is "{variable.name}", which {form.kind} file cannot have'
        columns.append(
            PublishedColumn(_cell_text(written[variable.name], plain), variable, treatment, categories, date_format)
        )
    return columns


def _cell_text(text: str, plain: bool) -> str:
    return plain_cell(text) if plain else text


def _treatment_text(dossier: ReleaseDossier, name: str) -> str:
    """Return how the values of a variable were made, in words."""
    recipe = dossier.plan.run.recipe
    models = [step.method for step in recipe.synthesis if name in step.targets]
    if models:
        # Where several steps make a variable, the last one's values are released.
        return f"SYNTHETIC values, drawn from a model: {models[-1].title} ({models[-1].source})"
    if name in dossier.plan.kept:
        rule = recipe.public_rules.get(name)
        if not recipe.makes_release:
            return f"values of the confidential records, says their keeper{f', made coarser: {rule}' if rule else ''}"
        return f"values of the confidential records, {f'made coarser: {rule}' if rule else 'unchanged'}"
    if recipe.anonymisation:
        return "ANONYMISED values: " + ", ".join(step.method.title for step in recipe.anonymisation)
    return "values made by another program, how is not known"

"""What runs found, in plain text: one run, two side by side, the records most at risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import PublishedFigure, published_value_for
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, count_records
from sfumato.workspace.jobs.runs import published_tables
from sfumato.workspace.reporting.audits import strip_facts, why_facts
from sfumato.workspace.reporting.beliefs import (
    belief_lines,
    belief_object,
    belief_tables,
    guess_table,
    guesses_object,
    sure,
)
from sfumato.workspace.reporting.comparison import NOTE, compared_tables, only_lines, tally, verdicts_table
from sfumato.workspace.reporting.constraints import redraws_text
from sfumato.workspace.reporting.diagnostics import doubt_lines
from sfumato.workspace.reporting.measured import result_tables
from sfumato.workspace.reporting.recipe_difference import SAME, difference_table
from sfumato.workspace.reporting.records import legend, record_objects, record_table, value_table
from sfumato.workspace.reporting.results import (
    draw_table,
    method_title,
    result_table,
    shares_table,
    source_table,
    study_parts,
    sums_up,
    sweep_table,
    sweeps_in,
    verdict_table,
)
from sfumato.workspace.reporting.tables import Table, table
from sfumato.workspace.reporting.words import (
    PUBLIC_KEY,
    Apart,
    controls_text,
    duration,
    params_text,
    settings_apart,
    use_text,
)
from sfumato.workspace.store.artefacts import control_records
from sfumato.workspace.store.redraw_counts import redraws_of
from sfumato.workspace.store.runs import Run, records_of
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import diagnostics_of, result_rows, verdicts_of
from sfumato.workspace.visible_text import replace_unprintable

from .admin_tables import named_text
from .options import printed

if TYPE_CHECKING:
    from sfumato.workspace.views.comparison import RunComparison
    from sfumato.workspace.views.most_at_risk import AtRisk


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """0 when every threshold is met; 1 when one is not met, undecided or not computed."""
    return 0 if all(verdict.outcome == "met" for verdict in verdicts) else 1


def summarise(workspace: Workspace, run: Run, *, keys: bool = False) -> str:
    """Everything a reader needs first; with ``keys`` those of numbers stand beside their names."""
    dataset, records = workspace.dataset(run.dataset_id), records_of(workspace, run)
    head = (
        f"{run.title}: run {run.id}, {named_text(run)}{count_records(records)} of {dataset.name}, "
        f"m = {run.recipe.m}, seed {run.seed}, {f'{PUBLIC_KEY}, ' if run.key_public else ''}{duration(run.seconds)}"
    )
    rows, apart = [row for row in result_rows(workspace, run.id) if row.draw is None], settings_apart(run.recipe_toml)
    weighing = [] if run.recipe.weights is None else [replace_unprintable(f"Weights: {run.recipe.weights}")]
    held_out = [f"Controls: {controls_text(controls)}"] if (controls := control_records(workspace, run.id)) else []
    redrawn = [f"Constraints: {said}"] if (said := redraws_text(redraws_of(workspace, run.id))) else []
    parts = [
        "\n".join([replace_unprintable(head), *held_out, *redrawn, *weighing]),
        *found_text(rows, run.recipe, apart, keys=keys),
    ]
    if doubts := doubt_lines(diagnostics_of(workspace, run.id)):
        parts.append("\n".join(["Rules that models break", *doubts]))
    if verdicts := verdicts_of(workspace, run.id):
        parts.append(f"Verdicts\n{printed(verdict_table(verdicts, apart, records, keys=keys))}")
    return "\n\n".join(parts)


def found_text(rows: Sequence[Row], recipe: Recipe, apart: Apart, *, keys: bool = False) -> list[str]:
    """The averages of a run: measures by family, sweeps, then the studies that sum their points up."""
    measured = [row for row in rows if row.family != "studies"]
    parts = [printed(table) for table, _ in result_tables(measured, recipe.published, apart, keys=keys)]
    swept = [row for row in rows if row.family == "studies" and not sums_up(row)]
    for key in dict.fromkeys(row.method_key for row in swept):
        own = [row for row in swept if row.method_key == key]
        parts.append(f"{method_title(key)}\n{sweeps_text(own, apart)}")
        quoted = {row.series for row in own if published_value_for(row, recipe.published) is not None}
        if beside := [row for row in own if row.series in quoted]:
            parts.append(printed(result_table(beside, recipe.published, apart, "Beside the published figures")))
    for step in recipe.studies:
        key = step.method.key
        summed = [row for row in rows if row.method_key == key and sums_up(row)]
        own = [row for row in summed if recipe.step_of_row(key, row.params) is step]
        if own:
            use = use_text(recipe.settings(step), apart.get(key, {}))
            parts.append(
                f"{step.method.title}{f' ({use})' if use else ''}\n{study_text(step.method, own, recipe.published)}"
            )
    return parts


def study_text(method: Method, rows: Sequence[Row], published: Sequence[PublishedFigure] = ()) -> str:
    """The answers of a study that sums its points up, and the points."""
    parts = study_parts(method, rows, published)
    return "\n\n".join(printed(part) if isinstance(part, Table) else part for part in parts)


def sweeps_text(rows: Sequence[Row], apart: Apart) -> str:
    """Every sweep, and below it what the variance behind its intervals is made of."""
    parts = []
    for own in sweeps_in(rows):
        shares = shares_table(own)
        parts.append(printed(sweep_table(own, apart)) + (f"\n{printed(shares)}" if shares else ""))
    return "\n\n".join(parts)


def draws_text(workspace: Workspace, run: Run, *, keys: bool = False) -> str:
    rows = result_rows(workspace, run.id)
    return f"Every dataset\n{printed(draw_table(rows, settings_apart(run.recipe_toml), keys=keys))}"


def published_text(workspace: Workspace, runs: Sequence[Run]) -> list[str]:
    """A table for every source that the recipes of these runs quote figures from."""
    return [printed(source_table(table)) for table in published_tables(workspace, runs)]


def comparison_text(found: RunComparison) -> str:
    """Two runs side by side: numbers by family, what only one run has, verdicts."""
    plans = f"What differs between the plans ({len(found.plans)})"
    differs = printed(difference_table(found.plans, found.names, plans)) if found.plans else f"{SAME}."
    parts = [
        replace_unprintable(found.headline),
        differs,
        *map(printed, compared_tables(found.shared, found.numbers, found.apart)),
    ]
    for place, run in enumerate(found.numbers):
        if only := only_lines(found.only(place), place, found.apart):
            parts.append(f"Only run {run} has\n" + "\n".join(f"  {line}" for line in only))
    if found.verdicts:
        parts.append(printed(verdicts_table(found.verdicts, found.numbers, found.apart)))
    return "\n\n".join([*parts, f"{tally(found.shared, found.numbers)}.\n{NOTE}"])


def record_text(found: AtRisk) -> str:
    """The records in a table, what the columns mean, and the values where they were asked for."""
    records, measure = found.records, found.records.measure
    together = "all released datasets together"
    averaged = f"the average over {count_noun(records.datasets, 'released dataset')}"
    over = f"dataset {records.draw}" if records.draw else averaged if measure.whole is None else together
    params = params_text(measure.params)
    head = f"run {records.run_id}, {replace_unprintable(measure.place)} {measure.key}{f' ({params})' if params else ''}, {over}"
    matched, ranking = found.alone is not None, records.ranking
    said = legend(measure.key, unique=ranking.risk.unique is not None, own=ranking.own is not None, drivers=matched)
    hidden = "" if found.values is not None else "\nValues of the data are not shown; --values shows them."
    ranked = f"The {len(found.lines):,} of {count_noun(records.asked, 'record')} most at risk"
    if records.asked < records.total:
        ranked += f"; nothing is said of the others of {records.total:,}, which were not asked about"
    parts = [
        f"{replace_unprintable(head)}\n{ranked if found.guesses is None else f'Record {found.guesses.record:,}'}",
        printed(record_table(measure.key, found.lines, found.alone)),
        *_believed(found),
        said + hidden,
        "" if found.values is None else printed(value_table(found.lines, found.values)),
    ]
    return "\n\n".join(part for part in parts if part)


def _believed(found: AtRisk) -> list[str]:
    """The guesses at one record, else what is believed of all, or of an audit its targets, of one what gives it away."""
    if found.audited:
        facts = why_facts(found.audited[0]) if len(found.lines) == 1 else strip_facts(found.audited)
        return [printed(table(["audit", "result"], facts))]
    if found.guesses is not None:
        return ["\n".join(belief_lines(found.guesses)), printed(guess_table(found.guesses))]
    if found.beliefs is None:
        return []
    return [f"{found.beliefs.answer}\n{sure(found.beliefs)}", *map(printed, belief_tables(found.beliefs))]


def record_object(found: AtRisk) -> dict[str, Any]:
    """The object that ``--json`` writes."""
    records = found.records
    objects = record_objects(found.lines, found.alone, found.values)
    if found.guesses is not None:
        objects = [{**one, **guesses_object(found.guesses)} for one in objects]
    return {
        "run": records.run_id,
        "measure": records.measure.key,
        "place": records.measure.place,
        "params": dict(records.measure.params),
        "draw": records.draw,
        "datasets": records.datasets,
        "total": records.total,
        "asked": records.asked,
        **({} if found.beliefs is None else {"beliefs": belief_object(found.beliefs)}),
        "records": objects,
    }

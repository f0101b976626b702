"""Findings of runs in plain text: one run, two compared, the records most at risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import PublishedFigure, published_value_for
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, count_of_noun, count_records
from sfumato.workspace.jobs.runs import published_figure_tables
from sfumato.workspace.reporting.audits import audited_record_facts, audited_strip_facts
from sfumato.workspace.reporting.beliefs import (
    belief_tables,
    beliefs_object,
    certainty_text,
    guesses_object,
    ranked_guess_table,
    record_belief_lines,
)
from sfumato.workspace.reporting.comparison import (
    NOTE,
    compared_verdicts_table,
    comparison_tables,
    outcome_counts_text,
    single_run_lines,
)
from sfumato.workspace.reporting.constraints import redraws_sentence
from sfumato.workspace.reporting.diagnostics import broken_rule_lines
from sfumato.workspace.reporting.measured import result_tables
from sfumato.workspace.reporting.numbers import fold_number_lines, number_lines
from sfumato.workspace.reporting.recipe_difference import NO_DIFFERENCE, difference_table
from sfumato.workspace.reporting.records import (
    column_legend,
    record_objects,
    record_table,
    record_values_table,
    unit_objects,
)
from sfumato.workspace.reporting.results import (
    TableContext,
    dataset_rows_table,
    group_sweeps,
    is_of_answering_study,
    is_variance_share,
    method_title,
    published_source_table,
    result_table,
    study_parts,
    sweep_table,
    variance_shares_table,
    verdict_table,
)
from sfumato.workspace.reporting.tables import DisplayTable, table_from_titles
from sfumato.workspace.reporting.words import (
    PUBLIC_KEY,
    SettingsByMethod,
    duration_text,
    holdout_text,
    method_use_text,
    params_text,
    varying_settings_of_recipe,
)
from sfumato.workspace.store.artefacts import count_control_records
from sfumato.workspace.store.redraw_counts import read_redraws
from sfumato.workspace.store.runs import StoredRun, count_confidential_records
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.coverage import read_file_coverage
from sfumato.workspace.views.results import read_diagnostics, read_result_rows, read_verdicts
from sfumato.workspace.visible_text import replace_unprintable

from .admin_tables import run_name_text
from .options import table_text

if TYPE_CHECKING:
    from sfumato.workspace.views.comparison import RunComparison
    from sfumato.workspace.views.most_at_risk import RecordsAtRisk


FOLD_NOTE = "A line with more stands for several settings: that with the worst verdict, else that of most people, else the worst. --all shows each."


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """Return 0 when every threshold is met; 1 when one is not met, undecided or not computed."""
    # A number that could not be computed meets no threshold.
    return 0 if all(verdict.outcome == "met" for verdict in verdicts) else 1


def run_summary_text(workspace: Workspace, run: StoredRun, *, keys: bool = False, every_setting: bool = False) -> str:
    """Return the summary of a run for a reader; with ``keys`` the keys of numbers stand beside their names.

    ``every_setting`` gives every setting of a measure a line of its own.
    """
    dataset, records = workspace.find_dataset(run.dataset_id), count_confidential_records(workspace, run)
    head = (
        f"{run.title}: run {run.id}, {run_name_text(run)}{count_records(records)} of {dataset.name}, "
        f"m = {run.recipe.m}, seed {run.seed}, {f'{PUBLIC_KEY}, ' if run.key_public else ''}{duration_text(run.seconds)}"
    )
    rows = [row for row in read_result_rows(workspace, run.id) if row.draw is None]
    apart, verdicts = varying_settings_of_recipe(run.recipe_toml), read_verdicts(workspace, run.id)
    # published figures stand beside every setting that they are quoted for
    folded = not every_setting and not run.recipe.published
    context = TableContext(apart, run.recipe.published, verdicts, records, keys, folded)
    weighing = [] if run.recipe.weights is None else [replace_unprintable(f"Weights: {run.recipe.weights}")]
    held_out = [f"Controls: {holdout_text(controls)}"] if (controls := count_control_records(workspace, run.id)) else []
    coverage = read_file_coverage(workspace, run)
    left_out = [] if coverage.is_whole else [f"File: {coverage.text}"]
    redrawn = [f"Constraints: {said}"] if (said := redraws_sentence(read_redraws(workspace, run.id))) else []
    parts = [
        "\n".join([replace_unprintable(head), *left_out, *held_out, *redrawn, *weighing]),
        *result_tables_text(rows, run.recipe, context),
    ]
    if doubts := broken_rule_lines(read_diagnostics(workspace, run.id)):
        parts.append("\n".join(["Rules that models break", *doubts]))
    if verdicts:
        parts.append(f"Verdicts\n{table_text(verdict_table(verdicts, apart, records, keys=keys))}")
    return "\n\n".join(parts)


def result_tables_text(rows: Sequence[Row], recipe: Recipe, context: TableContext) -> list[str]:
    """Return the averages of a run as texts: measures by family, sweeps, then the studies that summarise their points.

    Where settings are folded, the measures of sweeps are lines of a table too.
    """
    swept = [row for row in rows if row.family == "studies" and not is_of_answering_study(row)]
    curves = [row for row in swept if not is_variance_share(row)] if context.folded else []
    measured = [row for row in rows if row.family != "studies"] + curves
    parts = [table_text(table) for table, _ in result_tables(measured, context)]
    if any(line.members for line in fold_number_lines(number_lines(measured))) and context.folded:
        parts.append(FOLD_NOTE)
    for key in dict.fromkeys(row.method_key for row in swept if not context.folded):
        own = [row for row in swept if row.method_key == key]
        parts.append(f"{method_title(key)}\n{sweeps_text(own, context.apart, recipe.schema.unit_noun)}")
        quoted = {row.series for row in own if published_value_for(row, recipe.published) is not None}
        if beside := [row for row in own if row.series in quoted]:
            parts.append(table_text(result_table(beside, context, "Beside the published figures")))
    apart = context.apart
    for step in recipe.studies:
        key = step.method.key
        summed = [row for row in rows if row.method_key == key and is_of_answering_study(row)]
        own = [row for row in summed if recipe.step_of_row(key, row.params) is step]
        if own:
            use = method_use_text(recipe.settings(step), apart.get(key, {}))
            parts.append(
                f"{step.method.title}{f' ({use})' if use else ''}\n{study_text(step.method, own, recipe.published)}"
            )
    return parts


def study_text(method: Method, rows: Sequence[Row], published: Sequence[PublishedFigure] = ()) -> str:
    """Return the answers of a study that summarises its points, with the points."""
    parts = study_parts(method, rows, published)
    return "\n\n".join(table_text(part) if isinstance(part, DisplayTable) else part for part in parts)


def sweeps_text(rows: Sequence[Row], apart: SettingsByMethod, unit_noun: str = "") -> str:
    """Return every sweep as a table, and below it the parts of the variance behind its intervals.

    ``unit_noun`` says what units are, in the plural.
    """
    parts = []
    for own in group_sweeps(rows):
        shares = variance_shares_table(own)
        parts.append(table_text(sweep_table(own, apart, unit_noun)) + (f"\n{table_text(shares)}" if shares else ""))
    return "\n\n".join(parts)


def draws_text(workspace: Workspace, run: StoredRun, *, keys: bool = False) -> str:
    """Return the rows of every dataset as a table."""
    rows = read_result_rows(workspace, run.id)
    return (
        f"Every dataset\n{table_text(dataset_rows_table(rows, varying_settings_of_recipe(run.recipe_toml), keys=keys))}"
    )


def published_text(workspace: Workspace, runs: Sequence[StoredRun]) -> list[str]:
    """Return a table for every source from which the recipes of these runs quote figures."""
    return [table_text(published_source_table(table)) for table in published_figure_tables(workspace, runs)]


def comparison_text(found: RunComparison) -> str:
    """Return two runs side by side: numbers by family, results that only one run has, verdicts."""
    plans = f"What differs between the plans ({len(found.plan_differences)})"
    differs = (
        table_text(difference_table(found.plan_differences, found.run_labels, plans))
        if found.plan_differences
        else f"{NO_DIFFERENCE}."
    )
    parts = [
        replace_unprintable(found.headline),
        differs,
        *map(table_text, comparison_tables(found.shared_rows, found.run_numbers, found.varying_settings)),
    ]
    for place, run in enumerate(found.run_numbers):
        if only := single_run_lines(found.rows_of_one_run(place), place, found.varying_settings):
            parts.append(f"Only run {run} has\n" + "\n".join(f"  {line}" for line in only))
    if found.verdicts:
        parts.append(table_text(compared_verdicts_table(found.verdicts, found.run_numbers, found.varying_settings)))
    return "\n\n".join([*parts, f"{outcome_counts_text(found.shared_rows, found.run_numbers)}.\n{NOTE}"])


def records_at_risk_text(found: RecordsAtRisk) -> str:
    """Return the records most at risk as a table with a legend, and with their values where requested."""
    records, measure = found.records, found.records.measure
    together = "all released datasets together"
    averaged = f"the average over {count_noun(records.n_datasets, 'released dataset')}"
    over = f"dataset {records.draw}" if records.draw else averaged if measure.combined_hash is None else together
    params = params_text(measure.params)
    head = f"run {records.run_id}, {replace_unprintable(measure.place)} {measure.key}{f' ({params})' if params else ''}, {over}"
    matched, ranking = found.candidates_without is not None, records.ranking
    noun = "" if records.units is None else records.units.noun
    said = column_legend(
        measure.key,
        unique=ranking.risk.unique is not None,
        own=ranking.confidential_risk is not None,
        drivers=matched,
        unit_noun=noun,
    )
    # Confidential values are shown only on request.
    hidden = "" if found.values is not None else "\nValues of the data are not shown; --values shows them."
    ranked = f"The {len(found.lines):,} of {count_noun(records.n_attacked, 'record')} most at risk"
    number = sum(line.is_unit for line in found.lines)
    if records.units is not None and number:
        ranked = f"The {number:,} most at risk of {count_of_noun(records.units.n_units, noun)} ({count_noun(records.n_attacked, 'record')})"
    if records.n_attacked < records.n_records:
        ranked += f"; nothing is said of the others of {records.n_records:,}, which were not asked about"
    parts = [
        f"{replace_unprintable(head)}\n{ranked if found.guesses is None else f'Record {found.guesses.record:,}'}",
        table_text(record_table(measure.key, found.lines, found.candidates_without, noun)),
        *_belief_lines(found),
        said + hidden,
        "" if found.values is None else table_text(record_values_table(found.record_lines, found.values)),
    ]
    return "\n\n".join(part for part in parts if part)


def _belief_lines(found: RecordsAtRisk) -> list[str]:
    """Return the guesses at one record, else the beliefs about all, else the results of an audit."""
    if found.audit_targets:
        facts = (
            audited_record_facts(found.audit_targets[0])
            if len(found.lines) == 1
            else audited_strip_facts(found.audit_targets)
        )
        return [table_text(table_from_titles(["audit", "result"], facts))]
    if found.guesses is not None:
        return ["\n".join(record_belief_lines(found.guesses)), table_text(ranked_guess_table(found.guesses))]
    if found.beliefs is None:
        return []
    return [
        f"{found.beliefs.result_text}\n{certainty_text(found.beliefs)}",
        *map(table_text, belief_tables(found.beliefs)),
    ]


def records_at_risk_object(found: RecordsAtRisk) -> dict[str, Any]:
    """Return the records most at risk as the object that ``--json`` writes."""
    records = found.records
    objects = record_objects(found.lines, found.candidates_without, found.values)
    if found.guesses is not None:
        objects = [{**one, **guesses_object(found.guesses)} for one in objects]
    return {
        "run": records.run_id,
        "measure": records.measure.key,
        "place": records.measure.place,
        "params": dict(records.measure.params),
        "draw": records.draw,
        "datasets": records.n_datasets,
        "total": records.n_records,
        "asked": records.n_attacked,
        **({} if found.beliefs is None else {"beliefs": beliefs_object(found.beliefs)}),
        **(
            {}
            if records.units is None
            else {
                "unit_noun": records.units.noun,
                "total_units": records.units.n_units,
                "units": unit_objects(found.lines),
            }
        ),
        "records": objects,
    }

"""Report of a run as a document. It is made from values that were read before and reads no database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.engine.data.schema import Variable
from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import Method, method_by_key
from sfumato.engine.methods.results import Diagnostic, Trace
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import SourceTable
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount, agreeing_word, count_noun, count_records

from ..plots.figure import Figure
from ..plots.planes import has_joint_curves
from ..plots.traces import plot_names, trace_figure
from ..policy.disclosure import MARKING
from .beliefs import (
    ONLY_ATTACKED_RECORDS,
    MeasureBeliefs,
    belief_figure,
    belief_ranking_table,
    belief_tables,
    certainty_text,
)
from .constraints import REDRAWS_EXPLANATION, RedrawsByDataset, redraws_sentence, redraws_table
from .diagnostics import (
    ALL_PARAMETERS,
    ParameterConvergence,
    convergence_by_parameter,
    convergence_table,
    sort_worst_first,
    statistic_table,
)
from .document import (
    BulletList,
    CaptionedFigure,
    Chapter,
    DefinitionList,
    Document,
    DocumentPart,
    Paragraph,
    PreformattedText,
    SignatureLines,
    number_figure,
)
from .measured import result_tables
from .release_summary import ReleaseDecision, release_overview, summary_lines, utc_time_text, variables_by_fate
from .results import (
    TableContext,
    group_sweeps,
    is_of_answering_study,
    published_source_table,
    study_parts,
    sweep_table,
    verdict_table,
)
from .survey import survey_design_text
from .tables import table_from_titles
from .words import (
    DIRECTION_TEXTS,
    PUBLIC_KEY,
    duration_text,
    holdout_text,
    number,
    records_and_dropped_text,
    role_text,
    settings_text,
    varying_settings_of_recipe,
)

WORST_PARAMETERS = 3
"""Number of parameters of a run whose traces are drawn."""
TRACES_ARE_CONFIDENTIAL = "Traces show posterior draws, which are as confidential as the data: this page is not for release. The report of a release leaves them out."
READING_HELP = (
    "Values of the release are averages over its datasets; their intervals are 95 % Monte Carlo intervals of that average, "
    "and where a method has a combining rule, its confidence intervals. A baseline is what the measure would be "
    "without a difference; risks stand beside those of the confidential data themselves, which is the risk without protection. "
    "A value that could not be computed says so and is never 0. No values of a confidential record are shown: "
    "figures of values leave out bars and curves that fewer than three confidential records make up."
)
OPEN_QUESTIONS_REMARK = (
    "A question that is not measured is open: no number on this page says that the risk is small. What was measured holds for an "
    "intruder who knows what the lines below say, and no more."
)
NO_DECISION_TEXT = "This report was written without a release: nothing has been decided by it."
PUBLIC_KEY_RISK = "whoever has the seed can repeat the random numbers, and so take the datasets apart"


@dataclass(frozen=True)
class ReportedRun:
    """Values of one run that a report needs: how it was made, from which file, and what it found.

    rows: its averages and the confidential data's own values
    verdicts: outcomes of its thresholds
    diagnostics: statistics of its models
    traces: traces of its samplers by variable, as confidential as the data; None in the report of a release
    beliefs: beliefs of the strongest intruder
    controls: number of hold-out records
    redraws: records that were redrawn for constraints, by dataset
    dropped: number of records that were dropped for missing values
    coverage_text: which people of the file the release does not describe; empty for none
    label, note: the analyst's name for it and remark on it; internal
    """

    id: int
    name: str
    title: str
    recipe: Recipe
    recipe_toml: str
    recipe_sha256: str
    seed: int
    key_public: bool
    versions: Mapping[str, str]
    created: float
    seconds: float | None
    file: str
    file_sha256: str
    records: int
    dropped: int
    coverage_text: str
    rows: Sequence[Row]
    verdicts: Sequence[Verdict]
    diagnostics: Sequence[Diagnostic]
    traces: Mapping[str, Trace | None] | None = None
    beliefs: Sequence[MeasureBeliefs] = ()
    controls: int = 0
    redraws: RedrawsByDataset = field(default_factory=dict)
    label: str = ""
    note: str = ""


def report_document(
    runs: Sequence[ReportedRun],
    figures: Sequence[Figure],
    published: Sequence[SourceTable],
    decision: ReleaseDecision | None = None,
    answer: Sequence[str] = (),
) -> Document:
    """Return the report of the first run, with the results of the runs beside it. Equal values give equal bytes.

    ``decision`` is what was decided about a release of the run; None where none was made. ``answer`` are the lines of
    the gate's answer, the title first, which precede everything else.
    """
    main, *beside = runs
    parts = [
        _summary_section(main, decision, answer),
        _decision_section(decision),
        _release_section(main, beside),
        _variable_section(main.recipe),
        Chapter("Verdicts", [_verdict_part(main)]),
        *_measure_chapters(main, ""),
        *_belief_chapters(main, ""),
        *[part for run in beside for part in (*_companion_chapters(run), *_belief_chapters(run, f", {run.name}"))],
        Chapter("Published figures", [published_source_table(one) for one in published]) if published else None,
        Chapter("Figures", [number_figure(one, i) for i, one in enumerate(figures, start=1)]),
        _redraw_section(main, ""),
        *[_redraw_section(run, f", {run.name}") for run in beside],
        _diagnostic_section(runs),
        _method_section([run.recipe for run in runs]),
        _recipe_section(main),
    ]
    return Document(
        main.title,
        MARKING,
        [part for part in parts if part is not None],
        summary=main.recipe.description,
        kind="disclosure control report",
        has_contents=True,
    )


def _summary_section(run: ReportedRun, decision: ReleaseDecision | None, answer: Sequence[str]) -> Chapter:
    """Return the summary: the gate's answer, what is released, how it was judged, and what was not measured."""
    made = _released_count(run)
    # an anonymised table may have fewer records, since some can be suppressed
    records = None if run.recipe.anonymisation else made
    going = release_overview(run.recipe, run.recipe.m, records)
    lines = summary_lines(going, run.verdicts, run.rows, run.recipe, decision, records=run.records)
    first = [Paragraph(line, is_strong=at == 0) for at, line in enumerate(answer)]
    return Chapter("Summary", [*first, BulletList(lines), Paragraph(f"{OPEN_QUESTIONS_REMARK} {READING_HELP}")])


def _decision_section(decision: ReleaseDecision | None) -> Chapter:
    """Return the findings of the gate, the reasons for a release, and the lines to sign on."""
    found = ReleaseDecision("pass") if decision is None else decision
    undecided = [Paragraph(NO_DECISION_TEXT)] if decision is None else []
    return Chapter("Decision", [*undecided, *found.decision_tables, SignatureLines(found.signers)])


def _verdict_part(run: ReportedRun) -> DocumentPart:
    """Return the table of verdicts, or a remark that the recipe has no thresholds."""
    if not run.verdicts:
        return Paragraph("The recipe has no thresholds.")
    return verdict_table(run.verdicts, varying_settings_of_recipe(run.recipe_toml), run.records)


def _companion_chapters(run: ReportedRun) -> list[Chapter]:
    """Return the verdicts and measures of a run beside the reported one."""
    shown = Paragraph("These thresholds are only shown; those above decide.")
    return [Chapter(f"Verdicts, {run.name}", [shown, _verdict_part(run)]), *_measure_chapters(run, f", {run.name}")]


def _measure_chapters(run: ReportedRun, of: str) -> list[Chapter]:
    """Return the measures by family and the sweeps by study, each with the definitions of its numbers."""
    apart = varying_settings_of_recipe(run.recipe_toml)
    plain = [row for row in run.rows if row.level is None and not _has_own_tables(method_by_key(row.method_key))]
    sections = [
        # the chapter's heading has the title
        Chapter(f"{one.title}{of}", [replace(one, title=""), _measure_terms(own)])
        for one, own in result_tables(plain, TableContext(apart, run.recipe.published, run.verdicts, run.records))
    ]
    swept = [row for row in run.rows if row.level is not None and not is_of_answering_study(row)]
    for key in dict.fromkeys(row.method_key for row in swept):
        own = [row for row in swept if row.method_key == key]
        method = method_by_key(key)
        tables = [sweep_table(one, apart, run.recipe.schema.unit_noun) for one in group_sweeps(own)]
        sections.append(Chapter(f"{method.title if method else key}{of}", [*tables, _measure_terms(own)]))
    return [*sections, *_study_chapters(run, of)]


def _has_own_tables(method: Method | None) -> bool:
    """Return whether a study has tables of its own: for joint curves, or for a lattice of subsets."""
    return has_joint_curves(method) or (method is not None and method.study.lattice is not None)


def _study_chapters(run: ReportedRun, of: str) -> list[Chapter]:
    """Return the chapters of the studies that have tables of their own."""
    sections = []
    for step in run.recipe.studies:
        key = step.method.key
        own = [row for row in run.rows if row.method_key == key and run.recipe.step_of_row(key, row.params) is step]
        if _has_own_tables(step.method) and own:
            parts = study_parts(step.method, own)
            tables = [Paragraph(one) if isinstance(one, str) else one for one in parts]
            sections.append(Chapter(f"{step.method.title}{of}", [*tables, _measure_terms(own)]))
    return sections


def _belief_chapters(run: ReportedRun, of: str) -> list[Chapter]:
    """Return how belief in the truth of records changed, and the records at the highest risk, without values."""
    return [
        Chapter(
            f"{found.title}: {found.measure_text}{of}",
            [
                Paragraph(
                    f"Of {found.attacked_text}: {found.result_text}. {certainty_text(found)} {ONLY_ATTACKED_RECORDS}"
                ),
                *belief_tables(found),
                belief_ranking_table(found),
                CaptionedFigure(drawn := belief_figure(found), drawn.caption, f"beliefs-{run.id}-{i}"),
            ],
        )
        for i, found in enumerate(run.beliefs, start=1)
    ]


def _measure_terms(rows: Sequence[Row]) -> DefinitionList:
    """Return the definition of each measure and which direction is better."""
    keys = dict.fromkeys((row.method_key, row.measure) for row in rows)
    known = [(method_by_key(key), measure) for key, measure in keys]
    return DefinitionList(
        [
            (
                measure_name(f"{found.key}.{measure}"),
                f"{found.output(measure).meaning}; {DIRECTION_TEXTS[found.output(measure).goal]}",
            )
            for found, measure in known
            if found is not None
        ]
    )


def _as_sentence(text: str) -> str:
    """Return a text with a capital first letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _release_section(run: ReportedRun, beside: Sequence[ReportedRun]) -> Chapter:
    """Return data, recipe, seed and versions: what is needed to repeat the release."""
    recipe = run.recipe
    return Chapter(
        "What was released",
        [
            DefinitionList(
                [
                    ("Datasets", _datasets_text(run)),
                    *((words, ", ".join(names)) for words, names in variables_by_fate(recipe).items()),
                    ("Confidential file", f"{run.file} (SHA-256 {run.file_sha256})"),
                    ("Filter", recipe.data.where),
                    (
                        "Sample",
                        f"{count_noun(recipe.data.sample, 'record')}, without replacement"
                        if recipe.data.sample
                        else "",
                    ),
                    ("Records", records_and_dropped_text(run.records, run.dropped)),
                    ("People of the file", f"The release {run.coverage_text}." if run.coverage_text else ""),
                    ("Controls", holdout_text(run.controls)),
                    ("Constraints", redraws_sentence(run.redraws)),
                    ("Survey weights", _as_sentence(survey_design_text(recipe)) if survey_design_text(recipe) else ""),
                    ("Weights", "" if recipe.weights is None else _as_sentence(str(recipe.weights))),
                    ("Seed", str(run.seed)),
                    (
                        "Key",
                        _as_sentence(f"{PUBLIC_KEY}: {PUBLIC_KEY_RISK}") if run.key_public else "the workspace's own",
                    ),
                    ("Recipe", f"SHA-256 {run.recipe_sha256}"),
                    ("Made", f"run {run.id}, {utc_time_text(run.created)}, {duration_text(run.seconds)} of computing"),
                    ("With", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
                    ("Called", run.label),
                    ("Note", run.note),
                    ("Beside it", ", ".join(f"{other.title} (run {other.id})" for other in beside)),
                ]
            ),
            _steps_part(recipe),
        ],
    )


def _released_count(run: ReportedRun) -> RecordCount:
    """Return the number of records of a dataset before suppression, or of its units where the recipe says that."""
    form, schema = run.recipe.form, run.recipe.schema
    if form.number_of_units is not None:
        return RecordCount(form.number_of_units, schema.unit_noun)
    return RecordCount(form.records or run.records, run.recipe.data.rows)


def _datasets_text(run: ReportedRun) -> str:
    """Return the number of datasets and of their records."""
    records = _released_count(run)
    return f"m = {run.recipe.m}, of {count_records(records)} {'before suppression' if run.recipe.anonymisation else 'each'}"


def _steps_part(recipe: Recipe) -> DocumentPart:
    """Return the steps of synthesis or anonymisation as a table."""
    if recipe.anonymisation:
        made = [
            [s.method.title, settings_text(s.spec.to_reported_table()), s.method.source] for s in recipe.anonymisation
        ]
        return table_from_titles(("method", "settings", "source"), made, title="Anonymisation, in this order")
    if not recipe.synthesis:
        return Paragraph("The released datasets were made by another tool and are scored here.")
    rows = [
        [s.target, s.method.title, settings_text(s.spec.to_reported_table()), s.method.source] for s in recipe.synthesis
    ]
    return table_from_titles(("variable", "model", "settings", "source"), rows, title="Synthesis, in this order")


def _variable_section(recipe: Recipe) -> Chapter:
    """Return the table of variables, with their roles and whether they are released."""
    heads = ("variable", "meaning", "kind", "role", "bounds", "in the release")
    return Chapter(
        "Variables", [table_from_titles(heads, [list(_variable_cells(recipe, variable)) for variable in recipe.schema])]
    )


def _variable_cells(recipe: Recipe, variable: Variable) -> Iterator[str]:
    """Yield the cells of a variable."""
    yield variable.name
    yield variable.title
    yield variable.kind.value
    yield role_text(variable.role.value) + (f", {variable.design} of the survey" if variable.design else "")
    low, high = variable.bounds or (None, None)
    yield " ".join(f"{word} {number(end)}" for word, end in (("from", low), ("to", high)) if end is not None)
    out = "left out" if variable.role.is_identifier else ""
    out = "renumbered" if variable.name in recipe.renumbered_units else out
    yield out or ("replaced" if variable.name in recipe.released else "unchanged")


def _recipe_section(run: ReportedRun) -> Chapter:
    """Return the text of the whole recipe, by which the release can be repeated."""
    said = "Saved in a file, it makes the same release again: sfumato run FILE --data DATA"
    return Chapter("The recipe", [Paragraph(said), PreformattedText(run.recipe_toml)])


def _redraw_section(run: ReportedRun, of: str) -> Chapter | None:
    """Return the records that each step redrew for each constraint; None where no step had constraints."""
    made = redraws_table(run.redraws)
    return Chapter(f"Records redrawn{of}", [made, Paragraph(REDRAWS_EXPLANATION)]) if made else None


def _diagnostic_section(runs: Sequence[ReportedRun]) -> Chapter | None:
    """Return the convergence of the models, traces of the worst parameters, and every statistic with its rule."""
    found = [one for run in runs for one in run.diagnostics]
    if not found:
        return None
    judged = [one.passed for one in found if one.passed is not None]
    failed = judged.count(False)
    verdict = (
        f"{failed} of {len(judged)} {agreeing_word(failed, 'is', 'are')} not met"
        if failed
        else f"all {len(judged)} are met"
    )
    parameters = [made for run in runs if (made := convergence_table(run.diagnostics))]
    rules = [Paragraph(f"Rules for the models: {verdict}.")] if judged else []
    return Chapter("Diagnostics", [*rules, *parameters, *_trace_parts(runs), statistic_table(found)])


def _trace_parts(runs: Sequence[ReportedRun]) -> Iterator[DocumentPart]:
    """Yield the traces of the worst parameters of each run, and for each model without a trace the reason."""
    figures, words = [], []
    for run in runs:
        traces = run.traces or {}
        words += [_missing_trace_text(target, trace) for target, trace in traces.items() if not plot_names(trace)]
        lines = [line for line in convergence_by_parameter(run.diagnostics) if line.target in traces]
        drawn = [line for line in sort_worst_first(lines) if plot_names(traces[line.target])][:WORST_PARAMETERS]
        # a figure has the run's number in its id, since ids of one page must differ
        figures += [
            _trace_figure_part(traces[line.target], line, f"trace-{run.id}-{i}")
            for i, line in enumerate(drawn, start=1)
        ]
    if words:
        yield BulletList(words)
    if figures:
        yield Paragraph(TRACES_ARE_CONFIDENTIAL, is_strong=True)
        yield from figures


def _missing_trace_text(target: str, trace: Trace | None) -> str:
    """Return why a model has no trace."""
    reason = getattr(trace, "reason", "")
    return f"{target}: no convergence check; {reason}." if reason else f"{target}: no trace was kept."


def _trace_figure_part(trace: Trace | None, line: ParameterConvergence, ident: str) -> CaptionedFigure:
    """Return the figure of a parameter's trace, with its convergence in the caption."""
    names: tuple[str, ...] = getattr(trace, "parameters", ())
    # the last parameter of a trace is the log posterior, which stands for the whole model
    at = len(names) - 1 if line.parameter == ALL_PARAMETERS else names.index(line.parameter)
    assert trace is not None
    figure = trace_figure(trace, plot_names(trace)[0], at, f"{line.target} {names[at]}")
    said = ", ".join(line.exceeded_limits) or "within limits"
    return CaptionedFigure(figure, f"{figure.title} ({said}). {figure.caption}", ident)


def _method_section(recipes: Sequence[Recipe]) -> Chapter:
    """Return the methods that the recipes use, with their sources and settings."""
    used: dict[str, tuple[Method, list[str]]] = {}
    for recipe in recipes:
        for step in (*recipe.synthesis, *recipe.anonymisation, *recipe.measures, *recipe.studies):
            words = settings_text(step.spec.to_reported_table())
            said = f"{step.target}: {words}" if step.target else words
            known = used.setdefault(step.method.key, (step.method, []))[1]
            if said and said not in known:
                known.append(said)
    return Chapter("Methods and sources", [_method_chapter(method, said) for method, said in used.values()])


def _method_chapter(method: Method, said: Sequence[str]) -> Chapter:
    """Return the chapter about one method."""
    settings = BulletList(said) if said else ""
    return Chapter(method.title, [DefinitionList([("Source", method.source), ("Settings", settings)])])

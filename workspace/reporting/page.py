"""A run's report as a document, from what was read of it: no database is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.engine.data.schema import Role, Variable
from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import Method, method_by_key
from sfumato.engine.methods.results import Diagnostic, Trace
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import SourceTable
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount, agreeing_word, count_noun, count_records

from ..plots.figure import Figure
from ..plots.planes import together
from ..plots.traces import plots_of, trace_figure
from ..policy.disclosure import MARKING
from .beliefs import ONLY, BeliefsFound, belief_figure, belief_tables, ranking_table, sure
from .constraints import REDRAWS_READ, Redraws, redraws_table, redraws_text
from .diagnostics import ALL, ParameterLine, parameter_lines, parameter_table, statistic_table, worst_first
from .document import (
    Chapter,
    Document,
    Drawing,
    Items,
    Paragraph,
    Part,
    Signatures,
    Terms,
    Verbatim,
    numbered,
)
from .measured import result_tables
from .release_summary import Decision, fates, moment, release_overview, summary_lines
from .results import source_table, study_parts, sums_up, sweep_table, sweeps_in, verdict_table
from .survey import survey_text
from .tables import table
from .words import (
    DIRECTIONS,
    PUBLIC_KEY,
    controls_text,
    duration,
    number,
    records_text,
    role_text,
    settings_apart,
    settings_text,
)

WORST = 3
CONFIDENTIAL = "Traces show posterior draws, which are as confidential as the data: this page is not for release. The report of a release leaves them out."
READING = (
    "Values of the release are averages over its datasets; their intervals are 95 % Monte Carlo intervals of that average, "
    "and where a method has a combining rule, its confidence intervals. A baseline is what the measure would be "
    "without a difference; risks stand beside those of the confidential data themselves, which is the risk without protection. "
    "A value that could not be computed says so and is never 0. No values of a confidential record are shown: "
    "figures of values leave out bars and curves that fewer than three confidential records make up."
)
NO_MEASURE = (
    "A question that is not measured is open: no number on this page says that the risk is small. What was measured holds for an "
    "intruder who knows what the lines below say, and no more."
)
UNDECIDED = "This report was written without a release: nothing has been decided by it."
REPEATABLE = "whoever has the seed can repeat the random numbers, and so take the datasets apart"


@dataclass(frozen=True)
class ReportedRun:
    """What a report says of one run: how it was made, of which file, and what it found.

    ``rows`` are its averages and the confidential data's own. ``traces`` hold what the samplers of its models left, by
    variable; posterior draws are as confidential as the data, and the report of a release has none. ``beliefs`` are what the strongest
    intruder believes, ``controls`` how many records were held out, ``redraws`` what was drawn anew for constraints. What its analyst ``called`` it, and the ``note``, are internal.
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
    rows: Sequence[Row]
    verdicts: Sequence[Verdict]
    diagnostics: Sequence[Diagnostic]
    traces: Mapping[str, Trace | None] | None = None
    beliefs: Sequence[BeliefsFound] = ()
    controls: int = 0
    redraws: Redraws = field(default_factory=dict)
    called: str = ""
    note: str = ""


def report(
    runs: Sequence[ReportedRun],
    figures: Sequence[Figure],
    published: Sequence[SourceTable],
    decision: Decision | None = None,
    answer: Sequence[str] = (),
) -> Document:
    """The report of the first run, with what the runs beside it found. The same values give the same document, byte for byte.

    ``decision`` is what was decided of a release of it; a report alone decides nothing. ``answer`` are the lines that say whether its
    release may leave, the title first; they stand before everything else. A run without datasets has none.
    """
    main, *beside = runs
    parts = [
        _summary_section(main, decision, answer),
        _decision_section(decision),
        _release_section(main, beside),
        _variable_section(main.recipe),
        Chapter("Verdicts", [_verdicts(main)]),
        *_found(main, ""),
        *_beliefs(main, ""),
        *[part for run in beside for part in (*_beside(run), *_beliefs(run, f", {run.name}"))],
        Chapter("Published figures", [source_table(one) for one in published]) if published else None,
        Chapter("Figures", [numbered(one, i) for i, one in enumerate(figures, start=1)]),
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
        about=main.recipe.description,
        kind="disclosure control report",
        contents=True,
    )


def _summary_section(run: ReportedRun, decision: Decision | None, answer: Sequence[str]) -> Chapter:
    """Return the whole in plain sentences: whether it may leave, what goes out, how it was judged, what was not measured."""
    made = RecordCount(run.recipe.form.records or run.records, run.recipe.data.rows)
    records = None if run.recipe.anonymisation else made
    lines = summary_lines(
        release_overview(run.recipe, run.recipe.m, records), run.verdicts, run.rows, run.recipe, decision
    )
    first = [Paragraph(line, strong=at == 0) for at, line in enumerate(answer)]
    return Chapter("Summary", [*first, Items(lines), Paragraph(f"{NO_MEASURE} {READING}")])


def _decision_section(decision: Decision | None) -> Chapter:
    """What the gate found, the reasons that were given, and the lines to sign on."""
    found = Decision("pass") if decision is None else decision
    undecided = [Paragraph(UNDECIDED)] if decision is None else []
    return Chapter("Decision", [*undecided, *found.tables, Signatures(found.people)])


def _verdicts(run: ReportedRun) -> Part:
    if not run.verdicts:
        return Paragraph("The recipe has no thresholds.")
    return verdict_table(run.verdicts, settings_apart(run.recipe_toml), run.records)


def _beside(run: ReportedRun) -> list[Chapter]:
    shown = Paragraph("These thresholds are only shown; those above decide.")
    return [Chapter(f"Verdicts, {run.name}", [shown, _verdicts(run)]), *_found(run, f", {run.name}")]


def _found(run: ReportedRun, of: str) -> list[Chapter]:
    """The measures by family, then the sweeps by study, each with what its numbers mean."""
    apart = settings_apart(run.recipe_toml)
    plain = [row for row in run.rows if row.level is None and not _apart(method_by_key(row.method_key))]
    sections = [
        Chapter(f"{one.title}{of}", [replace(one, title=""), _meanings(own)])
        for one, own in result_tables(plain, run.recipe.published, apart)
    ]
    swept = [row for row in run.rows if row.level is not None and not sums_up(row)]
    for key in dict.fromkeys(row.method_key for row in swept):
        own = [row for row in swept if row.method_key == key]
        method = method_by_key(key)
        tables = [sweep_table(one, apart) for one in sweeps_in(own)]
        sections.append(Chapter(f"{method.title if method else key}{of}", [*tables, _meanings(own)]))
    return [*sections, *_studies(run, of)]


def _apart(method: Method | None) -> bool:
    """Whether a study has tables of its own: its curves are drawn together, or it tells of every subset of some variables."""
    return together(method) or (method is not None and method.study.lattice is not None)


def _studies(run: ReportedRun, of: str) -> list[Chapter]:
    """The studies that have tables of their own."""
    sections = []
    for step in run.recipe.studies:
        key = step.method.key
        own = [row for row in run.rows if row.method_key == key and run.recipe.step_of_row(key, row.params) is step]
        if _apart(step.method) and own:
            parts = study_parts(step.method, own)
            tables = [Paragraph(one) if isinstance(one, str) else one for one in parts]
            sections.append(Chapter(f"{step.method.title}{of}", [*tables, _meanings(own)]))
    return sections


def _beliefs(run: ReportedRun, of: str) -> list[Chapter]:
    """How belief in the truth of records moved, and whose truth is most probable: records by their number, no values."""
    return [
        Chapter(
            f"{found.title}: {found.uses}{of}",
            [
                Paragraph(f"Of {found.over}: {found.answer}. {sure(found)} {ONLY}"),
                *belief_tables(found),
                ranking_table(found),
                Drawing(drawn := belief_figure(found), drawn.caption, f"beliefs-{run.id}-{i}"),
            ],
        )
        for i, found in enumerate(run.beliefs, start=1)
    ]


def _meanings(rows: Sequence[Row]) -> Terms:
    """What each measure means and which way is better."""
    keys = dict.fromkeys((row.method_key, row.measure) for row in rows)
    known = [(method_by_key(key), measure) for key, measure in keys]
    return Terms(
        [
            (
                measure_name(f"{found.key}.{measure}"),
                f"{found.output(measure).meaning}; {DIRECTIONS[found.output(measure).goal]} ({found.key}.{measure})",
            )
            for found, measure in known
            if found is not None
        ]
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _release_section(run: ReportedRun, beside: Sequence[ReportedRun]) -> Chapter:
    """Data, recipe, seed and versions: enough to make the same release again."""
    recipe = run.recipe
    return Chapter(
        "What was released",
        [
            Terms(
                [
                    ("Datasets", _datasets(run)),
                    *((words, ", ".join(names)) for words, names in fates(recipe).items()),
                    ("Confidential file", f"{run.file} (SHA-256 {run.file_sha256})"),
                    ("Filter", recipe.data.where),
                    (
                        "Sample",
                        f"{count_noun(recipe.data.sample, 'record')}, without replacement"
                        if recipe.data.sample
                        else "",
                    ),
                    ("Records", records_text(run.records, run.dropped)),
                    ("Controls", controls_text(run.controls)),
                    ("Constraints", redraws_text(run.redraws)),
                    ("Survey weights", _sentence(survey_text(recipe)) if survey_text(recipe) else ""),
                    ("Weights", "" if recipe.weights is None else _sentence(str(recipe.weights))),
                    ("Seed", str(run.seed)),
                    ("Key", _sentence(f"{PUBLIC_KEY}: {REPEATABLE}") if run.key_public else "the workspace's own"),
                    ("Recipe", f"SHA-256 {run.recipe_sha256}"),
                    ("Made", f"run {run.id}, {moment(run.created)}, {duration(run.seconds)} of computing"),
                    ("With", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
                    ("Called", run.called),
                    ("Note", run.note),
                    ("Beside it", ", ".join(f"{other.title} (run {other.id})" for other in beside)),
                ]
            ),
            _steps(recipe),
        ],
    )


def _datasets(run: ReportedRun) -> str:
    records = RecordCount(run.recipe.form.records or run.records, run.recipe.data.rows)
    return f"m = {run.recipe.m}, of {count_records(records)} {'before suppression' if run.recipe.anonymisation else 'each'}"


def _steps(recipe: Recipe) -> Part:
    if recipe.anonymisation:
        made = [
            [s.method.title, settings_text(s.spec.to_reported_table()), s.method.source] for s in recipe.anonymisation
        ]
        return table(("method", "settings", "source"), made, title="Anonymisation, in this order")
    if not recipe.synthesis:
        return Paragraph("The released datasets were made by another tool and are scored here.")
    rows = [
        [s.target, s.method.title, settings_text(s.spec.to_reported_table()), s.method.source] for s in recipe.synthesis
    ]
    return table(("variable", "model", "settings", "source"), rows, title="Synthesis, in this order")


def _variable_section(recipe: Recipe) -> Chapter:
    """Every variable, its role for an intruder, and whether it is released."""
    heads = ("variable", "meaning", "kind", "role", "bounds", "in the release")
    return Chapter("Variables", [table(heads, [list(_variable(recipe, variable)) for variable in recipe.schema])])


def _variable(recipe: Recipe, variable: Variable) -> Iterator[str]:
    yield variable.name
    yield variable.title
    yield variable.kind.value
    yield role_text(variable.role.value) + (f", {variable.design} of the survey" if variable.design else "")
    low, high = variable.bounds or (None, None)
    yield " ".join(f"{word} {number(end)}" for word, end in (("from", low), ("to", high)) if end is not None)
    out = "left out" if variable.role is Role.IDENTIFIER else ""
    yield out or ("replaced" if variable.name in recipe.released else "unchanged")


def _recipe_section(run: ReportedRun) -> Chapter:
    """The whole plan, to be run again."""
    said = "Saved in a file, it makes the same release again: sfumato run FILE --data DATA"
    return Chapter("The recipe", [Paragraph(said), Verbatim(run.recipe_toml)])


def _redraw_section(run: ReportedRun, of: str) -> Chapter | None:
    """How many records each step drew anew for each constraint, where a step was held to any."""
    made = redraws_table(run.redraws)
    return Chapter(f"Records drawn anew{of}", [made, Paragraph(REDRAWS_READ)]) if made else None


def _diagnostic_section(runs: Sequence[ReportedRun]) -> Chapter | None:
    """Whether the models converged, parameter by parameter, and every statistic with the rule it is held against."""
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
    parameters = [made for run in runs if (made := parameter_table(run.diagnostics))]
    rules = [Paragraph(f"Rules for the models: {verdict}.")] if judged else []
    return Chapter("Diagnostics", [*rules, *parameters, *_traces(runs), statistic_table(found)])


def _traces(runs: Sequence[ReportedRun]) -> Iterator[Part]:
    """The traces of the worst parameters of every run; a line for each model that has none, saying why."""
    figures, words = [], []
    for run in runs:
        traces = run.traces or {}
        words += [_why_none(target, trace) for target, trace in traces.items() if not plots_of(trace)]
        lines = [line for line in parameter_lines(run.diagnostics) if line.target in traces]
        drawn = [line for line in worst_first(lines) if plots_of(traces[line.target])][:WORST]
        figures += [_trace(traces[line.target], line, f"trace-{run.id}-{i}") for i, line in enumerate(drawn, start=1)]
    if words:
        yield Items(words)
    if figures:
        yield Paragraph(CONFIDENTIAL, strong=True)
        yield from figures


def _why_none(target: str, trace: Trace | None) -> str:
    reason = getattr(trace, "reason", "")
    return f"{target}: no convergence check; {reason}." if reason else f"{target}: no trace was kept."


def _trace(trace: Trace | None, line: ParameterLine, ident: str) -> Drawing:
    names: tuple[str, ...] = getattr(trace, "parameters", ())
    at = len(names) - 1 if line.parameter == ALL else names.index(line.parameter)
    assert trace is not None
    figure = trace_figure(trace, plots_of(trace)[0], at, f"{line.target} {names[at]}")
    said = ", ".join(line.flags) or "within limits"
    return Drawing(figure, f"{figure.title} ({said}). {figure.caption}", ident)


def _method_section(recipes: Sequence[Recipe]) -> Chapter:
    """Every method that was used: what it does, where it comes from, and the settings it was used with."""
    used: dict[str, tuple[Method, list[str]]] = {}
    for recipe in recipes:
        for step in (*recipe.synthesis, *recipe.anonymisation, *recipe.measures, *recipe.studies):
            words = settings_text(step.spec.to_reported_table())
            said = f"{step.target}: {words}" if step.target else words
            known = used.setdefault(step.method.key, (step.method, []))[1]
            if said and said not in known:
                known.append(said)
    return Chapter("Methods and sources", [_method(method, said) for method, said in used.values()])


def _method(method: Method, said: Sequence[str]) -> Chapter:
    settings = Items(said) if said else ""
    return Chapter(f"{method.title} ({method.key})", [Terms([("Source", method.source), ("Settings", settings)])])

"""Menu Findings: verdicts, explanation of a number, records most at risk, and changes that help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING

from sfumato.engine.errors import EngineError
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, count_of_noun, format_percent, singular_noun
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.reporting.findings import finding_counts_text, lead_findings
from sfumato.workspace.reporting.harm import PASSES, harm_rank, not_applying_text, passes_text, sort_by_harm
from sfumato.workspace.reporting.words import FAMILY_HEADINGS, number, thresholds_text
from sfumato.workspace.store.runs import StoredRun, count_confidential_records
from sfumato.workspace.views.results import (
    FAILURES,
    ResultSelection,
    read_result_rows,
    read_selected_rows,
    read_verdicts,
    row_of_verdict,
)

from .session import MenuEntry, NumberedMenu, PlainSession
from .tables import show_tables
from .talk import ActNotPossible, text_for_speech

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.reporting.intruder_dial import IntruderDial
    from sfumato.workspace.service.run_levers import RunLevers
    from sfumato.workspace.views.most_at_risk import RecordsAtRisk

    from ..session.lever_lines import TriedLever
    from .release import RunAtGate

MOST_RECORDS = 3


def _ask_finished_run(session: PlainSession) -> StoredRun:
    """Ask for a finished run and compare it with its seal.

    Raises ActNotPossible, and NotAsSealed where somebody changed it.
    """
    from sfumato.workspace.upkeep.integrity import verify_run

    run = session.ask_run("Which run?", must_be_done=True)
    if said := verify_run(session.workspace, run.id).message:
        session.conversation.say(said)
    return run


def _read_verdicts_by_harm(session: PlainSession, run: StoredRun) -> list[Verdict]:
    """Read the verdicts of a run in the order in which Verdicts numbers them: not met, undecided, not computed, met."""
    verdicts = read_verdicts(session.workspace, run.id)
    return [
        one
        for one in sort_by_harm((), verdicts, count_confidential_records(session.workspace, run))
        if isinstance(one, Verdict)
    ]


def show_verdicts(session: PlainSession) -> None:
    """Print whether the run's release may leave, then findings and verdicts in one list, the most harmful first."""
    from sfumato.workspace.gate.answer import answer_for_run
    from sfumato.workspace.gate.contents import has_release
    from sfumato.workspace.views.coverage import read_file_coverage

    from .release import examine_at_gate, finding_lines

    run = _ask_finished_run(session)
    if not (coverage := read_file_coverage(session.workspace, run)).is_whole:
        session.conversation.say(f"The release of run {run.id} {coverage.text}.")
    findings: list[Finding] = []
    waived: frozenset[str] = frozenset()
    lines: dict[str, list[str]] = {}
    # The gate comes first, so that no verdict reads greener than the gate.
    if has_release(session.workspace, run):
        try:
            looked = examine_at_gate(session, run)
        except (WorkspaceError, EngineError):
            # What the gate cannot examine is said in words that never read as a pass; the verdicts follow.
            answer = answer_for_run(session.workspace, run.id)
            session.conversation.print_lines([] if answer is None else list(answer.lines))
        else:
            answer = looked.release_answer
            change, hint = _advised_change(session, run, looked)
            session.conversation.print_lines([*replace(answer, change=change).lines, *([hint] if hint else [])])
            session.conversation.say(f"The gate: {finding_counts_text(looked.examination.findings)}.")
            findings, lines = lead_findings(looked.examination.findings), finding_lines(looked)
            waived = looked.waived_checks
    _say_by_harm(session, run, findings, lines, waived)


def _advised_change(session: PlainSession, run: StoredRun, looked: RunAtGate) -> tuple[str, str]:
    """Return what to change first, with what trials of this session found; and where to try it, unless it was."""
    from ..session.lever_lines import find_levers_for, known_change

    answer, memory, directory = looked.release_answer, session.lever_memory, session.workspace.directory
    if answer.may_leave == "yes" or not answer.change:
        return answer.change, ""
    if not any(run_id == run.id for run_id, *_ in memory.trials):
        return answer.change, "What changes do and cost is not tried yet: What to change tries them."
    found = find_levers_for(directory, run.id, list(looked.examination.findings), memory)
    return known_change(answer, found, memory), ""


def _say_by_harm(
    session: PlainSession,
    run: StoredRun,
    findings: Sequence[Finding],
    lines: Mapping[str, Sequence[str]],
    waived: frozenset[str],
) -> None:
    """Print findings, each in its ``lines``, and verdicts in one list; the numbers are those that Explain takes."""
    from sfumato.engine.methods.labels import labels_of
    from sfumato.workspace.reporting.explanation import verdict_line

    talk, verdicts = session.conversation, _read_verdicts_by_harm(session, run)
    if verdicts:
        talk.say(f"Run {run.id}: {thresholds_text(verdicts)}.")
    else:
        talk.say(f"The recipe of run {run.id} sets no threshold, so nothing was judged.")
    records = count_confidential_records(session.workspace, run)
    numbered = {
        id(verdict): f"{at}. {verdict_line(verdict, name, records)}."
        for at, (verdict, name) in enumerate(zip(verdicts, labels_of(verdicts), strict=True), 1)
    }
    listed = sort_by_harm(findings, verdicts, records, waived)
    passing = [one for one in listed if harm_rank(one, waived) >= PASSES]
    for one in listed[: len(listed) - len(passing)]:
        talk.print_lines([numbered[id(one)]] if isinstance(one, Verdict) else list(lines[one.check]))
    for text in filter(None, (passes_text(findings, verdicts).replace(" · ", ", "), not_applying_text(findings))):
        talk.say(f"{text}.")
    talk.print_lines([numbered[id(one)] for one in passing if isinstance(one, Verdict)])


def show_numbers(session: PlainSession) -> None:
    """Print a line for each measure and variable of one family, with the confidential value, the release and the limit."""
    from collections import Counter

    from sfumato.workspace.reporting.numbers import FAMILIES, fold_number_lines, line_sentence, number_lines
    from sfumato.workspace.reporting.words import varying_settings_of_recipe

    run = _ask_finished_run(session)
    rows = read_selected_rows(session.workspace, ResultSelection(run.id, sort=FAILURES), 0, -1)
    every = number_lines(rows, read_verdicts(session.workspace, run.id))
    folded = fold_number_lines(every)
    counts = Counter(line.row.family for line in folded)
    families = [one for one in FAMILIES if counts[one]]
    if not families:
        raise ActNotPossible(f"run {run.id} has no numbers.")
    names = [f"{FAMILY_HEADINGS[one]}, {count_noun(counts[one], 'number')}" for one in families]
    family = families[session.conversation.choose("Numbers of which family?", names, "1")]
    records = count_confidential_records(session.workspace, run)
    apart = varying_settings_of_recipe(run.recipe_toml)
    own = [line for line in folded if line.row.family == family]
    if any(line.members for line in own) and session.conversation.confirm(
        "Give every setting of a measure a line of its own?", default=False
    ):
        own = [line for line in every if line.row.family == family]
    session.conversation.print_numbered([text_for_speech(line_sentence(line, records, apart)) for line in own])


def explain_number(session: PlainSession) -> None:
    """Explain a number: its meaning, whether it is good, what it is compared with, its uncertainty, and what to change."""
    from sfumato.engine.methods.labels import labels_of
    from sfumato.workspace.reporting.explanation import (
        definition_facts,
        describe_measure,
        explanation_facts,
        explanation_title,
        name_of_counted,
        settings_facts,
    )
    from sfumato.workspace.views.explained_numbers import read_explained_number

    run, workspace = _ask_finished_run(session), session.workspace
    verdicts = _read_verdicts_by_harm(session, run)
    judged = [row_of_verdict(workspace, run.id, one) for one in verdicts]
    series = {row.series for row in judged if row is not None}
    others = [
        row
        for row in read_result_rows(workspace, run.id)
        if row.draw is None and row.dataset != "confidential" and row.series not in series
    ]
    rows = [*judged, *others]
    if not rows:
        raise ActNotPossible(f"run {run.id} has no number to explain.")
    session.conversation.say(
        f"{count_noun(len(verdicts), 'number')} with a verdict, numbered as Verdicts lists them, then {count_noun(len(others), 'other')}. help lists all."
    )
    row = rows[session.conversation.choose("Explain which number?", [*labels_of(verdicts), *labels_of(others)])]
    if row is None:
        raise ActNotPossible(f"run {run.id} has no value of this number.")
    found = read_explained_number(workspace, run.id, row)
    session.conversation.say(f"{explanation_title(row.key)}.")
    settings, meaning = settings_facts(row, {}), describe_measure(row.key)
    for name, text in (
        *explanation_facts(found),
        *definition_facts(
            replace(meaning, meaning=name_of_counted(meaning.meaning, row, found.n_records)),
            row.target,
            row.level,
            settings,
        ),
    ):
        session.conversation.say(f"{name[:1].upper()}{name[1:]}: {text_for_speech(text)}")


def show_records(session: PlainSession) -> None:
    """Print the records most at risk, with why; their values only after a question."""
    from sfumato.workspace.views.most_at_risk import read_records_at_risk
    from sfumato.workspace.views.records import record_measures, values_of_records

    run, talk = _ask_finished_run(session), session.conversation
    measures = record_measures(session.workspace, run.id)
    if not measures:
        raise ActNotPossible(
            f"no measure of run {run.id} ranks single records; add a risk that does to the plan (sfumato methods lists them)."
        )
    names = [f"{one.place} {one.key}" for one in measures]
    place = measures[talk.choose("By which measure?", names, "1")]
    found = read_records_at_risk(session.workspace, run.id, place.place, MOST_RECORDS, None, with_values=False)
    units = found.records.units
    said = f"the {len(found.lines)} of {found.records.n_attacked:,} records most at risk"
    if units is not None:
        number = sum(line.is_unit for line in found.lines)
        said = f"the {number} of {count_of_noun(units.n_units, units.noun)} most at risk, with their records"
    talk.say(f"Run {run.id}, {place.key}: {said}.")
    talk.print_lines(record_lines(found))
    # An empty line takes the default, which must not show confidential values.
    if not talk.confirm("Show the values of these records? They are confidential.", default=False):
        return
    shown = [line.record for line in found.record_lines]
    for record, own in zip(shown, values_of_records(session.workspace, run.id, shown), strict=True):
        talk.say(f"Record {record}, confidential: {', '.join(f'{name} {value}' for name, value in own.items())}.")


def record_lines(found: RecordsAtRisk) -> list[str]:
    """Return a line for each record most at risk, and the legend.

    A line reads ``Record 12: probability 1, 1 candidate; why: age, without which there would be 9``. Those of a unit of
    several records follow its own line: ``Household 7 of 3 records: probability 1, candidates 1``.
    """
    from sfumato.workspace.reporting.records import column_legend, record_risk_columns

    key = found.records.measure.key
    candidates = next(one.title for one in record_risk_columns(key) if one.name == "candidates")
    noun = "" if found.records.units is None else found.records.units.noun
    lines, r = [], -1
    for line in found.lines:
        if line.members is not None:
            by = "" if isnan(line.candidates) else f", matches {number(line.candidates)}"
            one = f"{singular_noun(noun)} {line.unit:,} of {count_noun(line.members, 'record')}"
            lines.append(f"{one[:1].upper()}{one[1:]}: probability {format_percent(line.probability)}{by}.")
            continue
        r += 1
        if isnan(line.probability):
            all_ranked = len(found.records.ranking) == found.records.n_attacked
            lines.append(
                f"Record {line.record}: {'not asked about' if all_ranked else 'less at risk than those listed'}."
            )
            continue
        parts = [f"probability {format_percent(line.probability)}", f"{candidates} {number(line.candidates)}"]
        if line.prior is not None:
            parts.append(f"before the release {format_percent(line.prior)}")
        if line.confidential_probability is not None:
            parts.append(f"unprotected {format_percent(line.confidential_probability)}")
        driver = None if found.candidates_without is None else found.candidates_without.driver(r)
        why = "" if driver is None else f"; why: {driver.variable}, without it {number(driver.without)} {candidates}"
        lines.append(f"Record {line.record}: {', '.join(parts)}{why}.")
    meant = column_legend(key, unique=False, own=False, drivers=found.candidates_without is not None, unit_noun=noun)
    return [*lines, *(f"{one[:1].upper()}{one[1:]}." for one in meant.splitlines())]


def show_levers(session: PlainSession) -> None:
    """Print what to change for the gate's answer and for every threshold that is not known to be met, then what each lever
    does in a trial.
    """
    from sfumato.engine.methods.labels import labels_of, method_and_output
    from sfumato.workspace.gate.contents import has_release

    from .release import examine_at_gate

    run = _ask_finished_run(session)
    talk, verdicts = session.conversation, _read_verdicts_by_harm(session, run)
    findings: list[Finding] = []
    if has_release(session.workspace, run):
        looked = examine_at_gate(session, run)
        findings = list(looked.examination.findings)
        talk.print_lines([line for line in looked.release_answer.lines if line.startswith("Change first: ")])
    open_ones = [pair for pair in zip(verdicts, labels_of(verdicts), strict=True) if pair[0].outcome != "met"]
    if not open_ones:
        judged = f"{thresholds_text(verdicts)}; nothing has to change for them" if verdicts else "it sets no threshold"
        talk.say(f"Run {run.id}: {judged}.")
    for verdict, name in open_ones:
        label = method_and_output(verdict.value)[1].label
        means = f" It means: {label.fails}." if label.fails and verdict.outcome == "not met" else ""
        why = f" Why: {verdict.reason}." if verdict.reason else ""
        talk.say(f"{verdict.outcome}: {name}.{means}{why}")
        talk.print_numbered(
            [f"{lever}." for lever in label.levers] or ["no lever is declared; see its method in the manual."]
        )
    _say_tried_levers(session, run, findings)


def _say_tried_levers(
    session: PlainSession, run: StoredRun, findings: list[Finding]
) -> tuple[RunLevers, list[TriedLever]]:
    """Try the levers of a run and print those that help, or that could not be tried; return all and these."""
    from ..session.lever_lines import find_levers_for, sample_text, try_levers, useless_of_tried_text

    talk, directory, memory = session.conversation, session.workspace.directory, session.lever_memory
    found = find_levers_for(directory, run.id, findings, memory)
    if not found.levers:
        talk.say(f"No lever that helps run {run.id} is known.")
        return found, []
    talk.say(f"Run {run.id}: {count_noun(len(found.levers), 'lever')} to try on a sample. Ctrl-C cancels.")
    tried = list(try_levers(directory, found, memory, lambda text: talk.say(f"{text}.")))
    shown = [one for one in tried if one.is_shown]
    talk.print_numbered([f"{one.text}." for one in shown])
    talk.print_lines([text for text in (useless_of_tried_text(tried), sample_text(tried)) if text])
    if not shown:
        talk.say(f"No lever that helps run {run.id} is known.")
    return found, shown


DONE, NONE = "Done", "None"


def turn_dial(session: PlainSession) -> None:
    """Print whom an intruder finds by what he knows, and turn variables on and off until the user is done."""
    from dataclasses import replace

    from sfumato.workspace.reporting.intruder_dial import IntruderDial
    from sfumato.workspace.service.intruder_dial import count_for_dial, count_unsure

    run, talk = _ask_finished_run(session), session.conversation
    talk.say(f"Counting whom an intruder finds in the release of run {run.id}.")
    dial = IntruderDial.from_numbers(count_for_dial(session.workspace.directory, run.id))
    if dial.numbers.counts is None:
        raise ActNotPossible(f"these numbers cannot be counted: {dial.numbers.reason}.")
    while True:
        if dial.counts is None and not dial.uncounted_reason:
            (found,) = count_unsure(session.workspace.directory, run.id, (dial.wanted_reaches,))
            dial = replace(dial, unsure={**dial.unsure, dial.wanted_reaches: found})
        talk.print_lines(dial.sentences())
        names = [one.name for one in dial.numbers.variables]
        at = talk.choose("Which variable does he know otherwise?", [*names, DONE], DONE)
        if at == len(names):
            return
        dial = _ask_certainty(session, dial, at)


def _ask_certainty(session: PlainSession, dial: IntruderDial, at: int) -> IntruderDial:
    """Ask how surely a numeric variable is known, or turn another one, and return the dial."""
    variable = dial.numbers.variables[at]
    if not variable.is_numeric:
        return dial.toggle_variable(variable.name)
    certainties = ["not at all", *(f"known {variable.choice_text(one)}".rstrip() for one in variable.certainties)]
    chosen = session.conversation.choose(f"How surely does he know {variable.name}?", certainties, "1")
    if chosen == 0:
        return dial.toggle_variable(variable.name) if variable.name in dial.known else dial
    return dial.set_reach(variable.name, variable.certainties[chosen - 1])


def try_run_levers(session: PlainSession) -> None:
    """Print the levers of a run, each tried on a sample, and run the one that the user chooses."""
    from sfumato.workspace.service.run_levers import enter_changed_run
    from sfumato.workspace.store.runs import find_run

    from ..session.lever_lines import applied_lines
    from .release import examine_at_gate
    from .runs import follow_open_run

    run, talk = _ask_finished_run(session), session.conversation
    found, shown = _say_tried_levers(session, run, list(examine_at_gate(session, run).examination.findings))
    if not shown:
        return
    at = talk.choose("Run the recipe with which lever?", [*(one.lever.change_text for one in shown), NONE], NONE)
    if at == len(shown):
        return
    lever = shown[at].lever
    entered, is_plan = enter_changed_run(session.workspace, found, lever)
    talk.print_lines(applied_lines(found, lever, entered, is_plan=is_plan))
    session.open_run(find_run(session.workspace, entered))
    follow_open_run(session)


MENU = NumberedMenu(
    "Findings",
    "whether the release may leave, and what is behind it",
    (
        MenuEntry("Verdicts", "may it leave, what the gate finds, each threshold with its limit", show_verdicts),
        MenuEntry("Explain a number", "what it says, compared with what, how sure, what to change", explain_number),
        MenuEntry("Records at risk", "the three most at risk, with why", show_records),
        MenuEntry("What to change", "for the answer and for thresholds that are not met, with trials", show_levers),
        MenuEntry("Numbers", "all numbers of one family: confidential, release, interval, limit", show_numbers),
        MenuEntry("Tables", "protected tables: what they hide, why, publish or hide a cell", show_tables),
        MenuEntry("What the intruder knows", "whom he finds, variable by variable, and what to coarsen", turn_dial),
        MenuEntry("Levers with their effect", "changes of the recipe, tried on a sample; run one", try_run_levers),
    ),
)

"""Findings: verdicts, a number explained, the records most at risk, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engine.errors import EngineError
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.reporting.words import FAMILIES, number, thresholds_text
from sfumato.workspace.store.runs import Run, records_of
from sfumato.workspace.views.results import judged_row, result_rows, rows_beside, verdicts_of, verdicts_on

from .session import Entry, Menu, Session
from .talk import NotPossible, spoken

if TYPE_CHECKING:
    from sfumato.workspace.views.most_at_risk import AtRisk

MOST_RECORDS = 3


def _ask_run(session: Session) -> Run:
    """A run that is done, compared with its seal. Raises NotPossible, and NotAsSealed where somebody changed it."""
    from sfumato.workspace.upkeep.integrity import verify_run

    run = session.ask_run("Which run?", done=True)
    if said := verify_run(session.workspace, run.id).message:
        session.talk.say(said)
    return run


def _by_family(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts in the order of the headings: disclosure risk, utility, data quality, others."""
    order = [FAMILIES[one] for one in ("risk", "utility", "quality")]
    return sorted(verdicts, key=lambda one: order.index(said) if (said := _heading(one)) in order else len(order))


def _heading(verdict: Verdict) -> str:
    return FAMILIES.get(verdict.value.partition(".")[0], "Other numbers")


def show_findings(session: Session) -> None:
    """Say whether the run's release may leave, what the gate finds, then every verdict: no verdict reads greener than the gate."""
    from sfumato.workspace.gate.answer import answer_for_run
    from sfumato.workspace.gate.contents import released_table_hashes

    from .release import examine_run, say_findings

    run = _ask_run(session)
    if released_table_hashes(session.workspace, run.id):
        try:
            looked = examine_run(session, run)
        except (WorkspaceError, EngineError):
            # What the gate cannot examine is said in words that never read as a pass; the verdicts follow.
            answer = answer_for_run(session.workspace, run.id)
            session.talk.say_all([] if answer is None else list(answer.lines))
        else:
            say_findings(session, looked)
    _say_verdicts(session, run)


def _say_verdicts(session: Session, run: Run) -> None:
    """Say every verdict in a line, under the heading of its family; the numbers are those that Explain takes."""
    from sfumato.engine.methods.labels import labels_of
    from sfumato.workspace.reporting.explanation import verdict_line

    verdicts = _by_family(verdicts_of(session.workspace, run.id))
    if not verdicts:
        session.talk.say(f"The recipe of run {run.id} sets no threshold, so nothing was judged.")
        return
    session.talk.say(f"Run {run.id}: {thresholds_text(verdicts)}.")
    records, family = records_of(session.workspace, run), ""
    for at, (verdict, name) in enumerate(zip(verdicts, labels_of(verdicts), strict=True), 1):
        if (own := _heading(verdict)) != family:
            family = own
            session.talk.say(f"{family}.")
        session.talk.say(f"{at}. {verdict_line(verdict, name, records)}.")


def explain_number(session: Session) -> None:
    """A number in the order in which people ask: what it says, good or bad, compared with what, how sure, what to change."""
    from sfumato.engine.methods.labels import labels_of
    from sfumato.workspace.reporting.explanation import FoundNumber, definition, explanation, meaning_of, title_called
    from sfumato.workspace.reporting.words import full_params
    from sfumato.workspace.views.audits import targets_beside

    run, workspace = _ask_run(session), session.workspace
    verdicts = _by_family(verdicts_of(workspace, run.id))
    judged = [judged_row(workspace, run.id, one) for one in verdicts]
    series = {row.series for row in judged if row is not None}
    others = [
        row
        for row in result_rows(workspace, run.id)
        if row.draw is None and row.dataset != "confidential" and row.series not in series
    ]
    rows = [*judged, *others]
    if not rows:
        raise NotPossible(f"run {run.id} has no number to explain.")
    session.talk.say(
        f"{count_noun(len(verdicts), 'number')} with a verdict, numbered as Verdicts lists them, then {count_noun(len(others), 'other')}. help lists all."
    )
    row = rows[session.talk.choose("Explain which number?", [*labels_of(verdicts), *labels_of(others)])]
    if row is None:
        raise NotPossible(f"run {run.id} has no value of this number.")
    records = records_of(workspace, run)
    beside, on = rows_beside(workspace, run.id, row), verdicts_on(workspace, run.id, row)
    found = FoundNumber(row, beside, on, records, targets_beside(workspace, run.id, row))
    session.talk.say(f"{title_called(row.key)}.")
    settings = list(full_params(row.params))
    for name, text in (*explanation(found), *definition(meaning_of(row.key), row.target, row.level, settings)):
        session.talk.say(f"{name[:1].upper()}{name[1:]}: {spoken(text)}")


def show_records(session: Session) -> None:
    """The records most at risk, with why; their values after a question."""
    from sfumato.workspace.views.most_at_risk import most_at_risk
    from sfumato.workspace.views.records import record_measures, values

    run, talk = _ask_run(session), session.talk
    measures = record_measures(session.workspace, run.id)
    if not measures:
        raise NotPossible(
            f"no measure of run {run.id} ranks single records; add a risk that does to the plan (sfumato methods lists them)."
        )
    names = [f"{one.place} {one.key}" for one in measures]
    place = measures[talk.choose("By which measure?", names, "1")]
    found = most_at_risk(session.workspace, run.id, place.place, MOST_RECORDS, None, with_values=False)
    talk.say(f"Run {run.id}, {place.key}: the {len(found.lines)} of {found.records.asked:,} records most at risk.")
    talk.say_all(record_lines(found))
    if not talk.confirm("Show the values of these records? They are confidential.", default=False):
        return
    shown = [line.record for line in found.lines]
    for record, own in zip(shown, values(session.workspace, run.id, shown), strict=True):
        talk.say(f"Record {record}, confidential: {', '.join(f'{name} {value}' for name, value in own.items())}.")


def record_lines(found: AtRisk) -> list[str]:
    """``Record 12: probability 1, 1 candidate; why: age, without which there would be 9``; then what the words mean."""
    from sfumato.workspace.reporting.records import columns_of, legend

    key = found.records.measure.key
    candidates = next(one.title for one in columns_of(key) if one.name == "candidates")
    lines = []
    for r, line in enumerate(found.lines):
        parts = [f"probability {number(line.probability)}", f"{candidates} {number(line.candidates)}"]
        if line.prior is not None:
            parts.append(f"before the release {number(line.prior)}")
        if line.confidential_probability is not None:
            parts.append(f"unprotected {number(line.confidential_probability)}")
        driver = None if found.alone is None else found.alone.driver(r)
        why = "" if driver is None else f"; why: {driver.variable}, without it {number(driver.without)} {candidates}"
        lines.append(f"Record {line.record}: {', '.join(parts)}{why}.")
    meant = legend(key, unique=False, own=False, drivers=found.alone is not None)
    return [*lines, *(f"{one[:1].upper()}{one[1:]}." for one in meant.splitlines())]


def show_levers(session: Session) -> None:
    """What to change for every threshold that is not known to be met."""
    from sfumato.engine.methods.labels import labels_of, method_and_output

    run = _ask_run(session)
    verdicts = _by_family(verdicts_of(session.workspace, run.id))
    if not verdicts:
        raise NotPossible(f"the recipe of run {run.id} sets no threshold, so nothing was judged.")
    open_ones = [pair for pair in zip(verdicts, labels_of(verdicts), strict=True) if pair[0].outcome != "met"]
    if not open_ones:
        session.talk.say(f"Run {run.id}: {thresholds_text(verdicts)}; nothing has to change.")
    for verdict, name in open_ones:
        label = method_and_output(verdict.value)[1].label
        means = f" It means: {label.fails}." if label.fails and verdict.outcome == "not met" else ""
        why = f" Why: {verdict.reason}." if verdict.reason else ""
        session.talk.say(f"{verdict.outcome}: {name}.{means}{why}")
        session.talk.list(
            [f"{lever}." for lever in label.levers] or ["no lever is declared; see its method in the manual."]
        )


MENU = Menu(
    "Findings",
    "whether the release may leave, and what is behind it",
    (
        Entry("Verdicts", "may it leave, what the gate finds, each threshold with its limit", show_findings),
        Entry("Explain a number", "what it says, compared with what, how sure, what to change", explain_number),
        Entry("Records at risk", "the three most at risk, with why", show_records),
        Entry("What to change", "for thresholds that are not met, undecided or not computed", show_levers),
    ),
)

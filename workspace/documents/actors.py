"""Risk of a release by actor: what each knows of a person, what was measured of such an intruder, and the verdict.

The actors are the holder of the other data, a named recipient, a motivated intruder (Information Commissioner's Office
2012, the motivated intruder test) and the public. Each answers for the measures whose intruder knows as much:

holder      all records but one, and how the release was made: measures that declare ``Beliefs``
recipient   the quasi-identifiers of people at random: what answers linkability and inference
intruder    the quasi-identifiers of the people who are easiest to find: all four questions, of the most vulnerable too, and
            the gate's comparison of the released values with the confidential ones
public      at most ``FEW`` quasi-identifiers of a person: those subsets of a lattice of knowledge

Limits are those of the gate. An actor of whom nothing was measured is not safe but not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sfumato.engine.data.schema import Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.outputs import Question
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import join_names, record_noun

from ..gate.checks import KEPT_KEYS, STATUSES, CheckResult, Intruder, Status
from ..gate.gate import CHECKS, Finding, make_finding
from ..gate.questions import evaluate_question
from ..gate.run_checks import check_of_question
from ..release.dossier import ReleaseDossier
from ..reporting.questions import risk_averages
from ..reporting.tables import DisplayCell, DisplayColumn, DisplayRow, DisplayTable
from ..reporting.words import number
from .first_page import finding_reference

FEW = 3
"""Quasi-identifiers of a person that the public knows at most: what neighbours, colleagues or the press can see."""
VERDICTS: dict[Status, str] = {
    "pass": "within the limits",
    "warn": "to be judged",
    "block": "above the limits",
    "not checked": "not measured",
}
NOT_ASKED = "no measure of the run asks such an intruder"
PARTLY_MEASURED = "not all measured"
"""Verdict on an actor of whom something passes and something was not measured."""

BY_ACTOR = "Risk by actor, under the limits of the gate; not measured is not safe"
AMONG_THEM = "; a motivated intruder may be among them"
_BLOCKING = frozenset(one.key for one in CHECKS if one.block is not None)


@dataclass(frozen=True, slots=True)
class RiskActor:
    """Somebody who may try to learn about a person.

    title: who that is
    knowledge: what is already known to them
    findings: the findings about such an intruder
    """

    title: str
    knowledge: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """Return the worst status of the findings that were made; "not checked" where there are none."""
        made = {one.status for one in self.findings if one.status != "not checked"}
        return next((one for one in STATUSES if one in made), "not checked")

    @property
    def titles_not_measured(self) -> tuple[str, ...]:
        """Return the titles of the checks that apply to the actor and could not be made."""
        titles = (one.title for one in self.findings if one.status == "not checked" and one.applies)
        return tuple(dict.fromkeys(titles))

    @property
    def verdict_cell(self) -> DisplayCell:
        """Return the verdict in words with its sign."""
        # "Within the limits" would cover what nobody has looked at.
        if self.status == "pass" and self.titles_not_measured:
            return DisplayCell(PARTLY_MEASURED, "not checked")
        return DisplayCell(VERDICTS[self.status], self.status)

    @property
    def worst_finding(self) -> Finding | None:
        """Return the finding that decides the status; None without findings."""
        deciding = [one for one in self.findings if one.status == self.status]
        return max(
            deciding,
            # Most people first, then what may block, then the largest multiple of its limit.
            key=lambda one: (
                one.people or 0,
                one.check in _BLOCKING,
                (one.compared_value or 0.0) / (one.limit or 1.0),
            ),
            default=None,
        )


def risk_actors(dossier: ReleaseDossier) -> tuple[RiskActor, ...]:
    """Return the four actors, in the order of their knowledge."""
    intruder = _motivated_intruder(dossier)
    # A motivated intruder may be among those who receive the release: no line may be better than the gate's answer for
    # its audience.
    opened = tuple(one for one in intruder.findings if one.applies and one.status in ("block", "warn"))
    audience = dossier.policy.effective_audience(dossier.plan.run.recipe.form.audience)
    recipient, public = _named_recipient(dossier), _public_actor(dossier)
    if audience == "public":
        public = replace(public, knowledge=f"{public.knowledge}{AMONG_THEM}", findings=(*public.findings, *opened))
    else:
        recipient = replace(
            recipient, knowledge=f"{recipient.knowledge}{AMONG_THEM}", findings=(*recipient.findings, *opened)
        )
    return (_data_holder(dossier), intruder, recipient, public)


def actor_table(dossier: ReleaseDossier) -> DisplayTable:
    """Return a table with a line for each actor: knowledge, worst finding and verdict."""
    columns = (
        DisplayColumn("actor", "actor"),
        DisplayColumn("knows", "knows of a person"),
        DisplayColumn("found", "worst finding"),
        DisplayColumn("verdict", "verdict"),
    )
    lines: list[DisplayRow] = [
        [one.title, one.knowledge, _worst_finding_text(dossier, one), one.verdict_cell] for one in risk_actors(dossier)
    ]
    return DisplayTable(columns, lines, BY_ACTOR)


def _worst_finding_text(dossier: ReleaseDossier, actor: RiskActor) -> str:
    """Return an actor's worst finding in one line, and what was not measured."""
    finding = actor.worst_finding
    missing = f"not measured: {'; '.join(actor.titles_not_measured)}" if actor.titles_not_measured else ""
    if finding is None or actor.status == "not checked":
        return NOT_ASKED
    if actor.status == "pass":
        # A measure that finds nobody beyond its limit is no finding: the annex has its number.
        return "; ".join(
            filter(
                None,
                ("nothing beyond the limits that were measured" if missing else "nothing beyond the limits", missing),
            )
        )
    return "; ".join(filter(None, (finding_reference(dossier, finding), missing)))


def _findings_of_intruder(dossier: ReleaseDossier, intruder: Intruder) -> tuple[Finding, ...]:
    """Return the findings of the checks that declare this intruder."""
    keys = {check.key for check in CHECKS if check.intruder == intruder}
    return tuple(finding for finding in dossier.examination.findings if finding.check in keys)


def _data_holder(dossier: ReleaseDossier) -> RiskActor:
    """Return the actor who knows all records but one."""
    found = _findings_of_intruder(dossier, "holder")
    return RiskActor("Holder of the other data", "all other records, and how the release was made", found)


def _motivated_intruder(dossier: ReleaseDossier) -> RiskActor:
    """Return the actor who knows all quasi-identifiers of the people who are easiest to find."""
    found = _findings_of_intruder(dossier, "motivated")
    known = f"{_quasi_identifiers_text(dossier)} of the people who are easiest to find"
    return RiskActor("Motivated intruder", known, found)


def _named_recipient(dossier: ReleaseDossier) -> RiskActor:
    """Return the actor who knows the quasi-identifiers of random people."""
    rows = [row for row in risk_averages(dossier.rows) if not is_about_vulnerable(row)]
    found = tuple(_finding_for_question(dossier, question, rows) for question in ("linkability", "inference"))
    return RiskActor("Named recipient", "the same columns, of people met by chance; is bound by an agreement", found)


def _public_actor(dossier: ReleaseDossier) -> RiskActor:
    """Return the actor who knows few quasi-identifiers of a person."""
    found = make_finding(check_of_question("linkability"), dossier.policy, partial(_evaluate_few_known, dossier))
    title = f"people found by at most {FEW} quasi-identifiers"
    return RiskActor("The public", f"at most {FEW} quasi-identifiers of a person", (replace(found, title=title),))


def is_about_vulnerable(row: Row) -> bool:
    """Return whether a row is about the most vulnerable people alone."""
    return row.params.get("people") == "vulnerable"


def _quasi_identifiers_text(dossier: ReleaseDossier) -> str:
    return join_names(dossier.plan.run.recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)) or "no quasi-identifier"


def _finding_for_question(dossier: ReleaseDossier, question: Question, rows: Sequence[Row]) -> Finding:
    """Return the finding on a question, computed from some of the rows as the gate does from all."""
    plan = dossier.plan
    blocks = any(one.check == KEPT_KEYS and one.status == "block" for one in dossier.examination.findings)
    look = partial(
        evaluate_question,
        question,
        rows,
        plan.run.recipe,
        dossier.policy,
        plan.records,
        dossier.share_found_by,
        kept_columns_block=blocks,
    )
    return make_finding(check_of_question(question), dossier.policy, look)


def _evaluate_few_known(dossier: ReleaseDossier) -> CheckResult:
    """Return the result for the subset of few quasi-identifiers by which most people are found. Raises NotComputable.

    .
    """
    people = dossier.original.records
    found = [row for row in _rows_with_few_known(dossier.rows) if row.value is not None]
    if not found:
        raise NotComputable("no study of the run measures what somebody finds who knows few quasi-identifiers")
    row = max(found, key=lambda one: one.value or 0.0)
    named = ", ".join(_known_variables(row))
    said = f"{number(row.value)} of {people:,} {record_noun(people)} expected to be found by {named}"
    return CheckResult(said, row.value, adjusted_value=(row.value or 0.0) / people, at_most="warn")


def _rows_with_few_known(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of a lattice of knowledge about subsets of one to ``FEW`` variables."""
    for row in risk_averages(rows):
        method = method_by_key(row.method_key)
        if (
            method is not None
            and method.study.lattice is not None
            and row.measure == method.study.lattice.risk
            and 0 < len(_known_variables(row)) <= FEW
        ):
            yield row


def _known_variables(row: Row) -> tuple[str, ...]:
    """Return the variables that the intruder of a lattice's row knows; empty for other rows."""
    method = method_by_key(row.method_key)
    given = (
        row.params.get(method.study.lattice.subset, ())
        if method is not None and method.study.lattice is not None
        else ()
    )
    return (given,) if isinstance(given, str) else tuple(given)

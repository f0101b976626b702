"""The risk of a release by actor: what each knows of a person, what was measured of such an intruder, and whether it keeps to the limits.

The holder of the other data, a named recipient, a motivated intruder (Information Commissioner's Office 2012, the motivated intruder test) and
the public. Each answers for the measures whose intruder knows as much:

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
from sfumato.engine.methods.outputs import QUESTIONS, Question
from sfumato.engine.methods.registry import method_called
from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import noun_of

from ..gate.checks import KEPT_KEYS, STATUSES, Sighting, Status
from ..gate.content_checks import CONTENT_CHECKS
from ..gate.data_checks import DATA_CHECKS
from ..gate.earlier_checks import EARLIER_CHECKS
from ..gate.gate import CHECKS, Finding, finding_of
from ..gate.kept_column_checks import KEPT_COLUMN_CHECKS
from ..gate.kept_table_checks import KEPT_TABLE_CHECKS
from ..gate.question_checks import answer_of, check_of
from ..gate.run_checks import BELIEF_CHECKS
from ..release.dossier import Dossier
from ..reporting.questions import averages_of_risk
from ..reporting.tables import Cell, Column, Line, Table
from ..reporting.words import number
from .one_leak import Said

FEW = 3
"""Quasi-identifiers of a person that the public knows at most: what neighbours, colleagues or the press can see."""
VERDICTS: dict[Status, str] = {
    "pass": "within the limits",
    "warn": "to be judged",
    "block": "above the limits",
    "not checked": "not measured",
}


AMONG_THEM = "; a motivated intruder may be among them"
OF_RUNS = frozenset({"worst_records", "risk_above_confidential", "exposed_variables", "public_key"})
"""Checks of the run that say what an intruder finds."""
_BLOCKING = frozenset(one.key for one in CHECKS if one.block is not None)


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who may try to learn of a person: who that is, what is known already, and the findings about such an intruder."""

    title: str
    knows: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst of the findings that were made; not checked where none was."""
        made = {one.status for one in self.findings if one.status != "not checked"}
        return next((one for one in STATUSES if one in made), "not checked")

    @property
    def worst(self) -> Finding | None:
        """The finding that decides: the one about most people first, one that may block before others, then the one that is most times its limit."""
        deciding = [one for one in self.findings if one.status == self.status]
        return max(
            deciding,
            key=lambda one: (
                one.people or 0,
                one.check in _BLOCKING,
                (one.held or 0.0) / (one.limit or 1.0),
            ),
            default=None,
        )


def actors(dossier: Dossier) -> tuple[Actor, ...]:
    """Return the four actors, in the order of what they know.

    A motivated intruder may be among those who receive the release, so that their line holds all open findings of such an intruder: no
    line is better than the gate's answer for its audience.
    """
    intruder = _intruder(dossier)
    opened = tuple(one for one in intruder.findings if one.applies and one.status in ("block", "warn"))
    audience = dossier.policy.audience_of(dossier.plan.run.recipe.form.audience)
    recipient, public = _recipient(dossier), _public(dossier)
    if audience == "public":
        public = replace(public, knows=f"{public.knows}{AMONG_THEM}", findings=(*public.findings, *opened))
    else:
        recipient = replace(recipient, knows=f"{recipient.knows}{AMONG_THEM}", findings=(*recipient.findings, *opened))
    return (_holder(dossier), intruder, recipient, public)


def actor_table(dossier: Dossier, said: Said) -> Table:
    """A line an actor: what is known, what was found at worst, and the verdict."""
    columns = (
        Column("actor", "actor"),
        Column("knows", "knows of a person"),
        Column("found", "worst finding"),
        Column("open", "not measured"),
        Column("verdict", "verdict"),
    )
    lines: list[Line] = [
        [one.title, one.knows, _found(one, said), _open(one), Cell(VERDICTS[one.status], one.status)]
        for one in actors(dossier)
    ]
    return Table(columns, lines, "Risk by actor")


def _found(actor: Actor, said: Said) -> str:
    return (
        "no check of such an intruder could be made"
        if actor.worst is None or actor.status == "not checked"
        else said.found(actor.worst)
    )


def _open(actor: Actor) -> str:
    titles = dict.fromkeys(one.title for one in actor.findings if one.status == "not checked" and one.applies)
    return "; ".join(titles)


def _holder(dossier: Dossier) -> Actor:
    keys = {check.key for check in BELIEF_CHECKS}
    found = tuple(one for one in dossier.examination.findings if one.check in keys)
    return Actor("Holder of the other data", "all other records, and how the release was made", found)


def _intruder(dossier: Dossier) -> Actor:
    checks = (*CONTENT_CHECKS, *DATA_CHECKS, *KEPT_COLUMN_CHECKS, *KEPT_TABLE_CHECKS, *EARLIER_CHECKS)
    keys = {check.key for check in checks} | {check_of(question).key for question in QUESTIONS} | OF_RUNS
    found = tuple(one for one in dossier.examination.findings if one.check in keys)
    known = f"all quasi-identifiers ({_known(dossier)}) of the people who are easiest to find, and the released tables"
    return Actor("Motivated intruder", known, found)


def _recipient(dossier: Dossier) -> Actor:
    rows = [row for row in averages_of_risk(dossier.rows) if not of_vulnerable(row)]
    found = tuple(_answer(dossier, question, rows) for question in ("linkability", "inference"))
    return Actor("Named recipient", "the quasi-identifiers of people met by chance; is bound by an agreement", found)


def _public(dossier: Dossier) -> Actor:
    found = finding_of(check_of("linkability"), dossier.policy, partial(_by_few, dossier))
    title = f"people found by at most {FEW} quasi-identifiers"
    return Actor("The public", f"at most {FEW} quasi-identifiers of a person", (replace(found, title=title),))


def of_vulnerable(row: Row) -> bool:
    """Whether a row speaks of the most vulnerable people alone."""
    return row.params.get("people") == "vulnerable"


def _known(dossier: Dossier) -> str:
    return ", ".join(dossier.plan.run.recipe.schema.of_role(Role.QUASI_IDENTIFIER)) or "none"


def _answer(dossier: Dossier, question: Question, rows: Sequence[Row]) -> Finding:
    plan = dossier.plan
    blocks = any(one.check == KEPT_KEYS and one.status == "block" for one in dossier.examination.findings)
    look = partial(
        answer_of,
        question,
        rows,
        plan.run.recipe,
        dossier.policy,
        plan.records,
        dossier.found_by,
        kept_columns_block=blocks,
    )
    return finding_of(check_of(question), dossier.policy, look)


def _by_few(dossier: Dossier) -> Sighting:
    """The subset of few quasi-identifiers by which most people are found, of what a lattice of knowledge measured. Raises NotComputable."""
    people = dossier.original.records
    found = [row for row in _subsets(dossier.rows) if row.value is not None]
    if not found:
        raise NotComputable("no study of the run measures what somebody finds who knows few quasi-identifiers")
    row = max(found, key=lambda one: one.value or 0.0)
    named = ", ".join(_subset(row))
    said = f"{number(row.value)} of {people:,} {noun_of(people)} expected to be found by {named}"
    return Sighting(said, row.value, judged=(row.value or 0.0) / people, at_most="warn")


def _subsets(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows of a lattice of knowledge about subsets of one to ``FEW`` variables."""
    for row in averages_of_risk(rows):
        method = method_called(row.method_key)
        if (
            method is not None
            and method.study.lattice is not None
            and row.measure == method.study.lattice.risk
            and 0 < len(_subset(row)) <= FEW
        ):
            yield row


def _subset(row: Row) -> tuple[str, ...]:
    method = method_called(row.method_key)
    given = (
        row.params.get(method.study.lattice.subset, ())
        if method is not None and method.study.lattice is not None
        else ()
    )
    return (given,) if isinstance(given, str) else tuple(given)

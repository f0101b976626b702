"""Summary of a release and of how it was judged, in plain sentences, which heads every page that is signed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sfumato.engine.methods.labels import label_of
from sfumato.engine.methods.outputs import Question
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, count_records

from .audits import audit_sentences
from .evidence import evidence_lines
from .questions import NO_LIMITS, coverage_lines, strongest_intruder_lines
from .tables import DisplayTable, table_from_titles
from .words import limit_text, observed_text, thresholds_text

PREPARED, OWNER, APPROVED = "Prepared by", "Owner of the data", "Approved by"
ROLES = (PREPARED, OWNER, "Data protection officer")
"""Roles of the people who sign where no names are given."""
MOST_MET_NAMED = 2
"""Thresholds that a sentence names where all are met; it counts the others."""
RECODING_REMARK = (
    "Risks apply this rule to what an intruder knows; utility and data quality compare with the exact values."
)


@dataclass(frozen=True, slots=True)
class ReleaseDecision:
    """Decision about a release.

    status: worst status of the gate's findings
    findings: findings that do not pass (state in words, check, message)
    waivers: waivers (check, user, reason)
    reason: reason for the release as a whole
    signers: pairs of a role and a name, which may be empty
    request_acts: request and approval (act, account, time, reason), where a second person decides
    ledger: what was charged to the population of the release; None where no step keeps a privacy account
    """

    status: str
    findings: Sequence[tuple[str, str, str]] = ()
    waivers: Sequence[tuple[str, str, str]] = ()
    reason: str = ""
    signers: Sequence[tuple[str, str]] = tuple((role, "") for role in ROLES)
    request_acts: Sequence[tuple[str, str, str, str]] = ()
    ledger: DisplayTable | None = None

    @property
    def decision_tables(self) -> list[DisplayTable]:
        """Return the tables of findings, waivers, the ledger, and request and approval, without empty ones."""
        parts = [
            table_from_titles(
                ("state", "check", "found"), [list(one) for one in self.findings], title="What the gate found"
            ),
            table_from_titles(("check", "waived by", "reason"), [list(one) for one in self.waivers], title="Waived"),
        ]
        ledger = [] if self.ledger is None else [self.ledger]
        return [*(part for part in parts if part.rows), *ledger, *self.request_tables]

    @property
    def request_tables(self) -> list[DisplayTable]:
        """Return the table of request and approval; none where no second person decides."""
        acts = [list(one) for one in self.request_acts]
        return (
            [table_from_titles(("what", "account", "time", "reason"), acts, title="Asked for and approved")]
            if acts
            else []
        )


def variables_by_fate(recipe: Recipe) -> dict[str, list[str]]:
    """Return the variables by how they are released: replaced, unchanged, coarser or left out."""
    out = recipe.schema.identifiers
    parts = {
        "Replaced": [name for name in recipe.released if name not in out],
        "Unchanged, as in the confidential data": [
            n for n in recipe.schema.names if n not in (*recipe.released, *out, *recipe.form.recode)
        ],
        "Coarser by a public rule": [f"{name} ({rule})" for name, rule in recipe.form.recode.items()],
        "With new numbers": list(recipe.renumbered_units),
        "Columns left out": [name for name in out if name not in recipe.renumbered_units],
    }
    return {words: names for words, names in parts.items() if names}


def release_overview(recipe: Recipe, datasets: int, records: int | None = None) -> str:
    """Return the number of datasets and records, and which variables are replaced, unchanged, coarser or left out."""
    tables = count_noun(datasets, f"{recipe.origin} dataset") + (
        f" of {count_records(records)}" if records is not None else ""
    )
    lines = [f"{tables}.", *(f"{words}: {', '.join(names)}." for words, names in variables_by_fate(recipe).items())]
    return " ".join([*lines, *([RECODING_REMARK] if recipe.form.recode else [])])


def thresholds_sentence(verdicts: Sequence[Verdict], records: int | None = None) -> str:
    """Return whether the thresholds are met, which are not, and the first where all are; ``records`` is the number of confidential records."""
    if not verdicts:
        return "The recipe sets no threshold: nothing was compared with a limit."
    said = thresholds_text(verdicts)
    unmet = [_verdict_text(one, records) for one in verdicts if one.outcome != "met"]
    # Which limits are met tells a reader how much that says; the annex has those beyond the first.
    named = unmet or [_verdict_text(one, records) for one in verdicts[:MOST_MET_NAMED]]
    more = len(verdicts) - len(named) if not unmet else 0
    if more:
        named.append(f"{more} more")
    return f"{said[:1].upper()}{said[1:]}: {'; '.join(named)}."


def _verdict_text(verdict: Verdict, records: int | None) -> str:
    """Return a threshold with what was found: ``People found for certain: 30 of 1,000 (3 %), limit at most 1 %``."""
    found = "not computed" if verdict.observed is None else observed_text(verdict, records)
    why = f" (undecided: {verdict.reason})" if verdict.outcome == "undecided" else ""
    return f"{label_of(verdict)}: {found}, limit {limit_text(verdict.bound, verdict.limit, verdict.value)}{why}"


def summary_lines(
    going: str,
    verdicts: Sequence[Verdict],
    rows: Iterable[Row],
    recipe: Recipe,
    decision: ReleaseDecision | None = None,
    limits: Mapping[Question, float | None] = NO_LIMITS,
    records: int | None = None,
) -> list[str]:
    """Return the summary of a release, a sentence in each line.

    It has what is released, whether thresholds are met, what answers the questions about risk, epsilon with the
    evidence, and the reason for the release. ``going`` is the sentence about what is released; ``limits`` are the
    gate's, where a policy has its own; ``records`` is the number of confidential records.
    """
    found = list(rows)
    lines = [
        going,
        thresholds_sentence(verdicts, records),
        *coverage_lines(found, recipe, limits),
        *strongest_intruder_lines(found),
        *audit_sentences(found),
        *(f"{line}." for line in evidence_lines(found)),
    ]
    if decision is not None:
        lines += [f"Reason given: {decision.reason}"] if decision.reason else []
    return lines


def utc_time_text(seconds: float | None) -> str:
    """Return a time in UTC, from seconds since 1970; a dash for none."""
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")

"""What a release is and how it was judged, in plain sentences: the head of every page that somebody signs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sfumato.engine.data.schema import Role
from sfumato.engine.methods.labels import label_of
from sfumato.engine.methods.outputs import Question
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, count_records

from .audits import given_away_lines
from .evidence import evidence_lines
from .questions import NO_LIMITS, coverage, strongest_intruder
from .tables import Table, table
from .words import limit_text, observed_text, thresholds_text

PREPARED, OWNER, APPROVED = "Prepared by", "Owner of the data", "Approved by"
ROLES = (PREPARED, OWNER, "Data protection officer")
"""Who signs where nobody is named."""
RECODED = "Risks apply this rule to what an intruder knows; utility and data quality compare with the exact values."


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of a release: the worst ``status`` of the gate's findings, those that are no pass (state in words, check, words),
    waivers (check, user, reason), the reason for the release as a whole, and who signs, by role; a name may be empty. Where a
    second person was asked, ``acts`` are the request and the approval (what, account, time, reason).
    """

    status: str
    findings: Sequence[tuple[str, str, str]] = ()
    waivers: Sequence[tuple[str, str, str]] = ()
    reason: str = ""
    people: Sequence[tuple[str, str]] = tuple((role, "") for role in ROLES)
    acts: Sequence[tuple[str, str, str, str]] = ()

    @property
    def tables(self) -> list[Table]:
        """Findings, waivers, request and approval, where there are any."""
        parts = [
            table(("state", "check", "found"), [list(one) for one in self.findings], title="What the gate found"),
            table(("check", "waived by", "reason"), [list(one) for one in self.waivers], title="Waived"),
        ]
        return [*(part for part in parts if part.rows), *self.acts_table]

    @property
    def acts_table(self) -> list[Table]:
        """Request and approval, where a second person was asked."""
        acts = [list(one) for one in self.acts]
        return [table(("what", "account", "time", "reason"), acts, title="Asked for and approved")] if acts else []


def fates(recipe: Recipe) -> dict[str, list[str]]:
    """What becomes of the variables, in words, and of which; nothing of none."""
    out = recipe.schema.names_by_role(Role.IDENTIFIER)
    parts = {
        "Replaced": [name for name in recipe.released if name not in out],
        "Unchanged, as in the confidential data": [
            n for n in recipe.schema.names if n not in (*recipe.released, *out, *recipe.form.recode)
        ],
        "Coarser by a public rule": [f"{name} ({rule})" for name, rule in recipe.form.recode.items()],
        "Left out": list(out),
    }
    return {words: names for words, names in parts.items() if names}


def release_overview(recipe: Recipe, datasets: int, records: int | None = None) -> str:
    """How many datasets of how many records, and which variables are made, kept and left out."""
    tables = count_noun(datasets, f"{recipe.origin} dataset") + (
        f" of {count_records(records)}" if records is not None else ""
    )
    lines = [f"{tables}.", *(f"{words}: {', '.join(names)}." for words, names in fates(recipe).items())]
    return " ".join([*lines, *([RECODED] if recipe.form.recode else [])])


def judged(verdicts: Sequence[Verdict]) -> str:
    """Whether the thresholds are met, and which are not."""
    if not verdicts:
        return "The recipe sets no threshold: nothing was held against a limit."
    said = thresholds_text(verdicts)
    unmet = [_unmet(one) for one in verdicts if one.outcome != "met"]
    return f"{said[:1].upper()}{said[1:]}{': ' if unmet else ''}{'; '.join(unmet)}."


def _unmet(verdict: Verdict) -> str:
    """``Re-identified with certainty: 3 % of the people, limit at most 1 %``."""
    found = "not computed" if verdict.observed is None else observed_text(verdict)
    why = f" (undecided: {verdict.reason})" if verdict.outcome == "undecided" else ""
    return f"{label_of(verdict)}: {found}, limit {limit_text(verdict.bound, verdict.limit, verdict.value)}{why}"


def summary_lines(
    going: str,
    verdicts: Sequence[Verdict],
    rows: Iterable[Row],
    recipe: Recipe,
    decision: Decision | None = None,
    limits: Mapping[Question, float | None] = NO_LIMITS,
) -> list[str]:
    """What goes out, whether thresholds are met, what was measured of the four questions, epsilon beside what the release shows, what
    the gate found, and why it went. ``limits`` are those from which on the gate blocks what answers a question, where a policy has its own.
    """
    found = list(rows)
    lines = [
        going,
        judged(verdicts),
        *coverage(found, recipe, limits),
        *strongest_intruder(found),
        *given_away_lines(found),
        *(f"{line}." for line in evidence_lines(found)),
    ]
    if decision is not None:
        lines += [f"Reason given: {decision.reason}"] if decision.reason else []
    return lines


def moment(seconds: float | None) -> str:
    """A time as people write it, in UTC; a dash for none."""
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")

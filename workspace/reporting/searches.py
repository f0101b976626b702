"""What a search found, in words: its finalists, which one may leave, or what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engine.methods.labels import label_of, name_called
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import counted

from .tables import Table, table
from .words import limit_text, observed_text


@dataclass(frozen=True)
class Finalist:
    """A plan that was judged anew. ``searched`` is its utility on the sample by which it was chosen, ``fresh`` the one found now; the verdicts hold for all finalists at once."""

    run_id: int
    label: str
    verdicts: tuple[Verdict, ...]
    blocks: tuple[str, ...]
    searched: float | None
    fresh: float | None

    @property
    def passes(self) -> bool:
        """Whether every limit is met and no check of the gate blocks."""
        return not self.blocks and all(verdict.outcome == "met" for verdict in self.verdicts)

    @property
    def open(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.outcome != "met")


@dataclass(frozen=True)
class Outcome:
    """What a search found: the finalists in the order that the search gave them; how many plans were looked at, how many could not be carried out, and whether it has ended."""

    search_id: int
    project_id: int
    objective: str
    finalists: tuple[Finalist, ...]
    looked_at: int
    refused: int
    ended: bool = True

    @property
    def winner(self) -> Finalist | None:
        """The first finalist that may leave; None where none may."""
        return next((one for one in self.finalists if one.passes), None)

    @property
    def nearest(self) -> Finalist | None:
        """The finalist that is the nearest to leaving."""
        return min(self.finalists, key=lambda one: len(one.blocks) + len(one.open), default=None)

    def in_the_way(self) -> list[tuple[Verdict, bool]]:
        """Where none may leave: of each limit that the nearest finalist does not meet its best verdict over all finalists, and whether none of them meets it."""
        if self.winner is not None or self.nearest is None:
            return []
        found = []
        for verdict in self.nearest.open:
            same = [one for finalist in self.finalists for one in finalist.verdicts if _limit(one) == _limit(verdict)]
            best = max(same, key=lambda one: float("-inf") if one.margin is None else one.margin)
            found.append((best, all(one.outcome != "met" for one in same)))
        return found


def _limit(verdict: Verdict) -> tuple[object, ...]:
    """What a verdict is about: the same of each finalist."""
    return verdict.value, verdict.target, verdict.level, verdict.bound, verdict.limit, str(verdict.params)


FINALISTS = ("run", "plan", "limits", "gate", "utility in the search", "utility on all records")


def finalist_cells(one: Finalist) -> list[str]:
    met = len(one.verdicts) - len(one.open)
    return [
        str(one.run_id),
        one.label,
        f"{met} of {len(one.verdicts)} met",
        f"{counted(len(one.blocks), 'finding')} {'blocks' if len(one.blocks) == 1 else 'block'}"
        if one.blocks
        else "passes",
        "" if one.searched is None else f"{one.searched:.4g}",
        "" if one.fresh is None else f"{one.fresh:.4g}",
    ]


def finalists_table(found: Outcome) -> Table:
    return table(FINALISTS, [finalist_cells(one) for one in found.finalists])


def headline(found: Outcome) -> str:
    """How many plans were looked at."""
    refused = f"; {found.refused} could not be carried out" if found.refused else ""
    return f"Search {found.search_id}: {counted(found.looked_at, 'plan')} looked at{refused}"


def conclusion(found: Outcome) -> list[str]:
    """Which finalist may leave, or what stands in the way of the nearest one, in lines."""
    if not found.finalists:
        return ["No plan could be carried out on all records."]
    lines = [f"Utility: {name_called(found.objective)}. The first finalist that passes is taken."]
    winner = found.winner
    if winner is not None:
        return [*lines, f"Run {winner.run_id} may leave: {winner.label}."]
    lines.append("No finalist may leave. In the way of the nearest one:")
    for verdict, everywhere in found.in_the_way():
        missed = "; every finalist misses it" if everywhere else ""
        limit = limit_text(verdict.bound, verdict.limit, verdict.value)
        lines.append(f"  {label_of(verdict)}: {limit}, nearest {observed_text(verdict)} ({verdict.outcome}){missed}")
    return [*lines, *(f"  the gate blocks: {check}" for check in (found.nearest.blocks if found.nearest else ()))]

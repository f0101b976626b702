"""Ledger of a population in words and tables: what was spent of its privacy budget, what is left, and by which runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.engine.wording import count_noun, join_names

from ..policy.charges import LedgerCharge, PopulationChange, total_delta
from .privacy_promise import LedgerSum
from .tables import DisplayTable, table_from_titles

UNBOUNDED = "no bound"
CHARGE_HEADS = ("run", "project", "epsilon", "delta", "date", "by", "remark")
POPULATION_HEADS = ("population", "projects", "epsilon spent", "left", "delta spent", "limit", "runs")


@dataclass(frozen=True)
class PopulationLedger:
    """Everything that was charged to one population.

    name: its name
    projects: names of the projects that are of it now
    charges: what each release added, oldest first
    changes: statements by which projects came to it, oldest first
    people: the largest number of people that is known of it; 0 where none is known
    budget, delta_limit: limits of the policy; None where it has none
    """

    name: str
    projects: tuple[str, ...]
    charges: tuple[LedgerCharge, ...]
    changes: tuple[PopulationChange, ...]
    people: int
    budget: float | None
    delta_limit: float | None

    @property
    def unbounded_runs(self) -> tuple[int, ...]:
        """Return the runs whose cost no proof bounds."""
        return tuple(one.run_id for one in self.charges if not one.covered)

    @property
    def epsilon(self) -> float | None:
        """Return the epsilon that was spent; None where no proof bounds it."""
        return None if self.unbounded_runs else math.fsum(one.epsilon for one in self.charges)

    @property
    def delta(self) -> float | None:
        """Return the delta that was spent; None where it is unknown."""
        return None if self.unbounded_runs else total_delta(self.charges)

    @property
    def epsilon_left(self) -> float | None:
        """Return what is left of the policy's budget, at least 0; None without a budget or a known cost."""
        spent = self.epsilon
        return None if spent is None or self.budget is None else max(0.0, self.budget - spent)

    @property
    def largest_delta(self) -> float | None:
        """Return the limit of the sum of the deltas: the policy's or 1 / people; None where neither is known."""
        limits = [self.delta_limit, 1 / self.people if self.people else None]
        return min((one for one in limits if one is not None), default=None)

    def to_table(self) -> dict[str, Any]:
        """Return the ledger as ``sfumato population --json`` writes it."""
        return {
            "population": self.name,
            "projects": list(self.projects),
            "people": self.people or None,
            "epsilon": self.epsilon,
            "epsilon_budget": self.budget,
            "epsilon_left": self.epsilon_left,
            "delta": self.delta,
            "delta_limit": self.largest_delta,
            "charges": [
                {
                    "run": one.run_id,
                    "project": one.project,
                    "time": one.time,
                    "user": one.user,
                    "epsilon": one.epsilon if one.covered else None,
                    "figures_epsilon": one.figures_epsilon,
                    "delta": one.delta,
                    "undone": one.is_undone,
                }
                for one in self.charges
            ],
            "statements": [
                {
                    "time": one.time,
                    "user": one.user,
                    "population": one.population,
                    "previous": one.previous,
                    "others_asked": one.begins_population,
                    "reason": one.reason,
                }
                for one in self.changes
            ],
        }

    @property
    def sum_for_public(self) -> LedgerSum:
        """Return the sum that public documents state: of what was charged by statement alone."""
        # Which other releases have the same people follows from the confidential data, and is not for the public.
        stated = [one for one in self.charges if self.name not in one.recognised]
        known = all(one.covered for one in stated)
        return LedgerSum(
            len(stated),
            math.fsum(one.epsilon for one in stated) if known else None,
            total_delta(stated) if known else None,
            self.budget,
        )


def _amount_text(value: float | None, missing: str = UNBOUNDED) -> str:
    """Return an epsilon or a delta as text."""
    return missing if value is None else f"{value:.6g}"


def ledger_sentences(ledger: PopulationLedger) -> list[str]:
    """Return the ledger in sentences: what was spent, what is left, and who stated what about its people."""
    projects = f" of the projects {join_names(list(ledger.projects))}" if len(ledger.projects) > 1 else ""
    of_people = f'The population "{ledger.name}"{projects}'
    runs = join_names([str(one) for one in ledger.unbounded_runs])
    if not ledger.charges:
        lines = [f"{of_people}: no release is charged yet."]
    elif runs:
        lines = [f"{of_people}: {count_noun(len(ledger.charges), 'release')} charged; the sum is unknown."]
    else:
        spent = f"epsilon {_amount_text(ledger.epsilon)}, delta {_amount_text(ledger.delta, 'unknown')}"
        lines = [f"{of_people}: {count_noun(len(ledger.charges), 'release')} charged, {spent}."]
    if runs:
        lines.append(f"No proof bounds the cost of run {runs}, so what is left is unknown.")
    elif ledger.epsilon_left is not None:
        lines.append(f"Of the budget of epsilon {ledger.budget:g}, {ledger.epsilon_left:.6g} is left.")
    else:
        lines.append("The policy sets no budget; [privacy] epsilon sets one.")
    if ledger.largest_delta is not None:
        people = f" for {ledger.people:,} people" if ledger.people else ""
        lines.append(f"All deltas together may reach {ledger.largest_delta:.3g}{people}.")
    lines += [
        f'{one.user} stated on {one.time[:10]} that these are other people than those of "{one.previous}": "{one.reason}".'
        for one in ledger.changes
        if one.begins_population
    ]
    return lines


def charge_sentences(ledger: PopulationLedger) -> list[str]:
    """Return what each release added to a ledger, a sentence for each."""
    sentences = []
    for one in ledger.charges:
        remark = _charge_remark(ledger, one)
        amount = _amount_text(one.epsilon if one.covered else None)
        sentences.append(f"Run {one.run_id}, {one.time[:10]}: epsilon {amount}{f'; {remark}' if remark else ''}.")
    return sentences


def charges_table(ledger: PopulationLedger) -> DisplayTable:
    """Return the table of what each release added to a ledger."""
    rows = [
        [
            str(one.run_id),
            one.project,
            _amount_text(one.epsilon if one.covered else None),
            _amount_text(one.delta if one.covered else None, "unknown"),
            one.time[:10],
            one.user,
            _charge_remark(ledger, one),
        ]
        for one in ledger.charges
    ]
    return table_from_titles(CHARGE_HEADS, rows, right=(0, 2, 3), spare=(5, 4, 1), title=f'Charged to "{ledger.name}"')


def _charge_remark(ledger: PopulationLedger, charge: LedgerCharge) -> str:
    """Return what is special about a charge; empty where nothing is."""
    remarks = []
    if charge.figures_epsilon:
        remarks.append(f"{charge.figures_epsilon:.6g} of it for public figures")
    if charge.is_undone:
        remarks.append("undone after it had begun")
    if ledger.name in charge.recognised:
        remarks.append("its people were recognised")
    return "; ".join(remarks)


def populations_table(ledgers: Sequence[PopulationLedger]) -> DisplayTable:
    """Return the table of all populations of a workspace."""
    rows = [
        [
            one.name,
            ", ".join(one.projects),
            _amount_text(one.epsilon),
            _amount_text(one.epsilon_left, ""),
            _amount_text(one.delta, "unknown"),
            _amount_text(one.largest_delta, ""),
            ", ".join(str(charge.run_id) for charge in one.charges),
        ]
        for one in ledgers
    ]
    return table_from_titles(POPULATION_HEADS, rows, right=(2, 3, 4, 5), spare=(1, 5, 4))

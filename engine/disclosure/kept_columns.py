"""What an intruder reads from the columns that a release keeps: people alone in their combination, and what would lower that.

A column that a release keeps unchanged, or coarser by a public rule, is true for every row. An intruder who knows these columns of a
person finds the rows with the same combination. With f such rows the guess is right with probability 1 / f (prosecutor risk: El Emam 2013,
Guide to the De-Identification of Personal Health Information, section 16.2).

A lever makes one column coarser or takes it out of the combination. ``plan_protection`` applies levers until no person is left below a
limit: it takes the lever with the most people protected for each bit of entropy that the column loses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..data.recoding import recoded
from ..data.recoding_rules import Recode
from ..data.schema import Kind
from .cells import Keys, cells_of, counted_keys, occurrences, rows_of

DAYS = (7, 31, 91, 365, 1826, 3652, 7305)
"""Steps of dates: a week, a month, a quarter, one, five, ten and twenty years."""
JOINED_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Levels of fewer than these shares of the records are joined, one rule after the other."""
FEWEST_STEPS, MOST_STEPS = 3, 50
"""A rule of steps leaves at least and at most so many different values."""
REPLACED_SHARE = 0.5
"""Share of a column's entropy that counts as lost where a model draws it: its distribution stays, its truth does not."""
MOST_RECORDS = 200_000
"""A plan is made on a sample of so many records. Classes of a sample are smaller, so that the plan protects the whole table too."""


@dataclass(frozen=True, eq=False)
class CombinationSizes:
    """How many records share each record's combination of some columns.

    sizes: number of records with the same combination, itself included, (n,)
    """

    sizes: Integers

    @classmethod
    def from_cells(cls, cells: Mapping[str, Keys], names: Sequence[str], records: int) -> CombinationSizes:
        """Count the combinations of the named columns; without a column all records share one."""
        rows = rows_of(cells, names, records)
        return cls(occurrences(rows, rows))

    def below(self, smallest_class: int) -> Integers:
        """Return the rows of the records that fewer than ``smallest_class`` records share their combination with."""
        return np.flatnonzero(self.sizes < smallest_class)

    @property
    def alone(self) -> int:
        """Return how many records share their combination with no other."""
        return int(np.count_nonzero(self.sizes == 1))

    @property
    def smallest(self) -> int:
        """Return the size of the smallest class; 0 without records."""
        return int(self.sizes.min(initial=0)) if len(self.sizes) else 0

    @property
    def expected_finds(self) -> float:
        """Return how many people an intruder finds on average who picks one row of each person's class at random."""
        return float(np.sum(1.0 / self.sizes))

    def population_finds(self, fraction: float) -> float:
        """Return the expected finds of an intruder who does not know who of the population is in the file.

        ``fraction`` is the share of the population that the records are. E(1 / F | f) of a population class of size F, where F - f
        is negative binomial (Benedetti & Franconi 1998; Hundepool et al. 2012, section 3.3.2).
        """
        sizes, rest = self.sizes.astype(np.float64), 1.0 - fraction
        if rest <= 0:
            return self.expected_finds
        odds, log = fraction / rest, np.log(1.0 / fraction)
        # The general formula holds from 3 on; for classes of 1 and 2 the closed forms are exact.
        risks = np.where(sizes == 1, odds * log, np.where(sizes == 2, odds - odds**2 * log, fraction / (sizes - rest)))
        return float(risks.sum())

    @property
    def average_risk(self) -> float:
        """Return the expected finds as a share of the records; 0 without records."""
        return self.expected_finds / len(self.sizes) if len(self.sizes) else 0.0


@dataclass(frozen=True)
class KeptColumnLimits:
    """What the combination of kept columns must satisfy.

    smallest_class: fewest records that share a combination; None for no limit
    average_risk: largest mean of 1 / f; None for no limit
    """

    smallest_class: int | None = None
    average_risk: float | None = None

    def people_over(self, sizes: CombinationSizes) -> int:
        """Return how many people the limits do not protect: all of them where the average is above its limit."""
        over = 0 if self.smallest_class is None else len(sizes.below(self.smallest_class))
        # The average speaks of everybody, but people in large classes are not who raises it.
        if self.average_risk is not None and sizes.average_risk > self.average_risk:
            over = max(over, int(np.count_nonzero(1.0 / sizes.sizes > self.average_risk)))
        return over


@dataclass(frozen=True)
class Lever:
    """One change of a kept column, and how many people the limits would not protect after it.

    rule: the public rule that makes the column coarser; None where the column is replaced or left out
    people: people over the limits after this change, the earlier ones of its plan included
    """

    variable: str
    rule: Recode | None
    people: int

    @property
    def text(self) -> str:
        """Return the change in words: ``show age in steps of 5``, ``synthesise or leave out income``."""
        if self.rule is None:
            return f"synthesise or leave out {self.variable}"
        if self.rule.width is not None:
            return f"show {self.variable} in steps of {self.rule.width:g}"
        return f"join rare levels of {self.variable}"


@dataclass(frozen=True)
class ProtectionPlan:
    """Changes after which the limits protect everybody.

    rules: public rules of the columns that stay, by column
    replaced: columns that cannot stay
    levers: the changes in the order in which they were chosen, each with the people that are left over
    """

    rules: Mapping[str, Recode] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    levers: tuple[Lever, ...] = ()


def coarser_rules(data: Microdata, name: str, smallest_class: int) -> list[Recode]:
    """List public rules for a column, from the finest to the coarsest; empty where no rule suits its kind."""
    variable = data.schema[name]
    if variable.kind is Kind.BINARY or name in data.recoding:
        return []
    if variable.kind.has_levels:
        rules: list[Recode] = []
        for rule in _joining_rules(data, name, smallest_class):
            # Rules of groups hold dictionaries, which have no hash.
            if rule not in rules:
                rules.append(rule)
        return rules
    numbers = data.numbers(name)
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return []
    spread = float(present.max() - present.min())
    widths: Sequence[float]
    if variable.kind is Kind.DATE:
        widths = DAYS
    else:
        widths = _round_widths(spread)
        if variable.kind is Kind.COUNT:
            widths = [width for width in widths if width >= 2 and float(width).is_integer()]
    return [Recode(float(width)) for width in widths if FEWEST_STEPS <= spread / width <= MOST_STEPS]


def _round_widths(spread: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten that cut a range into 3 to 50 steps, ascending."""
    if not spread > 0:
        return []
    first = int(np.floor(np.log10(spread / MOST_STEPS)))
    return [float(f"{digit}e{power}") for power in range(first, first + 4) for digit in (1, 2, 5)]


def _joining_rules(data: Microdata, name: str, smallest_class: int) -> Iterator[Recode]:
    """Yield rules that join the levels of few records under one name, ever more of them."""
    column = data.frame[name].cat
    levels = [str(level) for level in column.categories]
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(levels))
    ordinal = data.schema[name].kind is Kind.ORDINAL
    for share in JOINED_SHARES:
        least = max(smallest_class, int(share * len(data)))
        groups = _neighbours_joined(levels, counts, least) if ordinal else _rare_joined(levels, counts, least)
        if groups:
            yield Recode(None, groups)


def _rare_joined(levels: Sequence[str], counts: Integers, least: int) -> dict[str, tuple[str, ...]]:
    """Join all levels of fewer than ``least`` records, and the next larger until the group has as many."""
    order = np.argsort(counts, kind="stable")
    members = [int(i) for i in order if counts[i] < least]
    together = int(counts[members].sum()) if members else 0
    for i in order[len(members) :]:
        if not members or (together >= least and len(members) > 1):
            break
        members.append(int(i))
        together += int(counts[i])
    if len(members) < 2 or len(levels) - len(members) < 1:  # one name for everything says nothing
        return {}
    name = next(text for text in ("other", "other levels", "all other levels") if text not in levels)
    return {name: tuple(levels[i] for i in sorted(members))}


def _neighbours_joined(levels: Sequence[str], counts: Integers, least: int) -> dict[str, tuple[str, ...]]:
    """Join ordered levels with their neighbours until each group has ``least`` records."""
    groups: list[list[int]] = [[]]
    for i in range(len(levels)):
        groups[-1].append(i)
        if counts[groups[-1]].sum() >= least:
            groups.append([])
    if not groups[-1]:
        groups.pop()
    elif len(groups) > 1 and counts[groups[-1]].sum() < least:
        last = groups.pop()
        groups[-1] += last
    if len(groups) < 2:
        return {}
    return {
        f"{levels[members[0]]} to {levels[members[-1]]}": tuple(levels[i] for i in members)
        for members in groups
        if len(members) > 1
    }


def plan_protection(
    data: Microdata,
    names: Sequence[str],
    limits: KeptColumnLimits,
    rng: np.random.Generator | None = None,
    replaceable: Sequence[str] | None = None,
) -> ProtectionPlan:
    """Choose which kept columns to make coarser and which to replace, until the limits protect everybody.

    Parameters
    ----------
    data : Microdata
        The confidential records, as public rules that exist already show them.
    names : sequence of str
        The kept columns that an intruder may know.
    limits : KeptColumnLimits
        What the combination of the columns must satisfy.
    rng : numpy Generator, optional
        Draws the sample of ``MOST_RECORDS`` records of a larger table.
    replaceable : sequence of str, optional
        The columns that may be replaced or made coarser; all by default.
    """
    if len(data) > MOST_RECORDS:
        rows = np.sort((rng or np.random.default_rng(0)).choice(len(data), MOST_RECORDS, replace=False))
        data = data.alone.block(rows.tolist())
    return _Protection(data, list(names), limits, set(names if replaceable is None else replaceable)).plan()


def list_levers(data: Microdata, names: Sequence[str], limits: KeptColumnLimits) -> list[Lever]:
    """List for each kept column what one change alone would leave over: a rule that protects most, and replacing it; the best first."""
    search = _Protection(data, list(names), limits, set(names))
    found: list[Lever] = []
    for name in names:
        rules = [Lever(name, rule, search.people_with(name, rule)) for rule in search.rules_of(name)]
        if rules:
            # Of rules that protect equally many people the finest loses least.
            found.append(min(rules, key=lambda lever: lever.people))
        found.append(Lever(name, None, search.people_with(name, None)))
    return sorted(found, key=lambda lever: (lever.people, lever.rule is None))


class _Protection:
    """The search of a plan: the columns that stay, their rules, and the number of each record's cell by column and rule."""

    def __init__(self, data: Microdata, names: list[str], limits: KeptColumnLimits, replaceable: set[str]) -> None:
        self.data, self.kept, self.limits, self.replaceable = data, names, limits, replaceable
        self.rules: dict[str, Recode] = {}
        self._numbers: dict[tuple[str, str], Keys] = {}
        self._entropies: dict[tuple[str, str], float] = {}
        self._ladders: dict[str, list[Recode]] = {}

    def rules_of(self, name: str) -> list[Recode]:
        """The rules of a column that are coarser than its present one."""
        if name not in self._ladders:
            self._ladders[name] = coarser_rules(self.data, name, self.limits.smallest_class or 3)
        ladder = self._ladders[name]
        present = self.rules.get(name)
        return ladder if present is None else ladder[ladder.index(present) + 1 :]

    def _row_numbers(self, name: str, rule: Recode | None) -> Keys:
        """The share of a column in the number of each record's row, (n,)."""
        key = (name, "" if rule is None else str(rule))
        if key not in self._numbers:
            shown = self.data if rule is None else recoded(self.data, {name: rule})
            self._numbers[key] = rows_of(cells_of(shown, (name,)), (name,))
        return self._numbers[key]

    def _entropy(self, name: str, rule: Recode | None) -> float:
        """The entropy of a column under a rule, in bits."""
        key = (name, "" if rule is None else str(rule))
        if key not in self._entropies:
            shares = counted_keys(self._row_numbers(name, rule))[1] / len(self.data)
            self._entropies[key] = float(-np.sum(shares * np.log2(shares)))
        return self._entropies[key]

    def _total(self) -> Keys:
        """The number of each record's row over all columns that stay, (n,)."""
        rows = np.zeros(len(self.data), dtype=np.uint64)
        for name in self.kept:
            rows += self._row_numbers(name, self.rules.get(name))
        return rows

    def _people(self, rows: Keys) -> int:
        return self.limits.people_over(CombinationSizes(occurrences(rows, rows)))

    def people_with(self, name: str, rule: Recode | None) -> int:
        """People over the limits where one column follows a rule, or for None has left the combination."""
        rows = self._total() - self._row_numbers(name, self.rules.get(name))
        return self._people(rows if rule is None else rows + self._row_numbers(name, rule))

    def plan(self) -> ProtectionPlan:
        levers: list[Lever] = []
        replaced: list[str] = []
        total = self._total()
        people = self._people(total)
        while people and (candidates := list(self._candidates(total, people))):
            lever = max(candidates, key=lambda one: one[0])[1]
            self._apply(lever, replaced)
            levers.append(lever)
            total, people = self._total(), lever.people
        self._undo_needless(replaced)
        kept_rules = {name: rule for name, rule in self.rules.items() if name in self.kept}
        return ProtectionPlan(kept_rules, tuple(replaced), tuple(levers))

    def _apply(self, lever: Lever, replaced: list[str]) -> None:
        if lever.rule is None:
            self.kept.remove(lever.variable)
            replaced.append(lever.variable)
        else:
            self.rules[lever.variable] = lever.rule

    def _candidates(self, total: Keys, people: int) -> Iterator[tuple[tuple[float, int], Lever]]:
        """Yield the next changes, each after its worth: people protected for a bit of entropy, then fewer people left."""
        for name in self.kept:
            if name not in self.replaceable:
                continue
            present = self.rules.get(name)
            without = total - self._row_numbers(name, present)
            entropy = self._entropy(name, present)
            # All coarser rules at once: one small step often joins nobody, and would hide that a larger one does.
            for rule in (*self.rules_of(name), None):
                rows = without if rule is None else without + self._row_numbers(name, rule)
                left = self._people(rows)
                lost = REPLACED_SHARE * entropy if rule is None else entropy - self._entropy(name, rule)
                yield ((people - left) / max(lost, 1e-9), -left), Lever(name, rule, left)

    def _undo_needless(self, replaced: Sequence[str]) -> None:
        """Drop rules without which everybody is protected too: later changes may have done their work."""
        for name in [name for name in self.rules if name in self.kept and name not in replaced]:
            rule = self.rules.pop(name)
            if self._people(self._total()):
                self.rules[name] = rule

"""What an intruder reads from the columns that a release keeps: people alone in their combination, and what would lower that.

A column that a release keeps unchanged, or coarser by a public rule, is true for every row. An intruder who knows these columns of a
person finds the rows with the same combination. With f such rows the guess is right with probability 1 / f (prosecutor risk: El Emam 2013,
Guide to the De-Identification of Personal Health Information, section 16.2).

A lever makes one column coarser or takes it out of the combination. ``plan_protection`` chooses levers until no person is left below a
limit. A column that breaks the limits by itself has to change in any plan, so these go first. Then it takes the lever with the most people
protected for each bit of entropy that the column loses. At last it takes back what later levers made needless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..data.recoding import recoded
from ..data.recoding_rules import Recode
from ..data.schema import Kind
from .cells import Keys, cells_of, counted_keys, occurrences, rows_of
from .kept_column_limits import KeptColumnLimits

DAYS = {7: "a week", 31: "a month", 91: "a quarter", 365: "a year", 1826: "5 years", 3652: "10 years", 7305: "20 years"}
"""Steps of dates, and about how long each is."""
JOINED_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Levels of fewer than these shares of the records are joined, one rule after the other."""
FEWEST_STEPS, MOST_STEPS = 3, 50
"""A rule of steps leaves at least and at most so many different values."""
MOST_JOINED = 500
"""A rule that joins more levels fits no recipe that a person reads."""
REPLACED_SHARE = 0.5
"""Share of a column's entropy that counts as lost where a model draws it: its distribution stays, its truth does not."""
LEAST_BITS = 1e-9
MOST_RECORDS = 200_000
"""A plan is made on a sample of so many records. Classes of a sample are smaller, so that the plan protects the whole table too."""
Form = Recode | Literal["exact", "replaced"]
"""How a plan shows a column: by a rule, exactly, or not at all."""
_Rank = tuple[float, int, float, str, int]


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
    def classes(self) -> Integers:
        """Return the size of each combination that occurs, ascending, (c,)."""
        records = np.bincount(self.sizes)
        sizes = np.arange(len(records))
        return np.repeat(sizes, records // np.maximum(sizes, 1))

    @property
    def alone(self) -> int:
        """Return how many records share their combination with no other."""
        return int(np.count_nonzero(self.sizes == 1))

    @property
    def smallest(self) -> int:
        """Return the size of the smallest class; 0 without records."""
        return int(self.sizes.min()) if len(self.sizes) else 0

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
class Lever:
    """One change of a kept column, and how many people the limits would not protect after it.

    rule: the public rule that makes the column coarser; None where the column is replaced or left out
    people: people over the limits after this change, the earlier ones of its plan included
    without: people over the limits where a plan makes all its other changes and not this one; None of a change by itself
    is_date: whether the steps of the rule are days
    """

    variable: str
    rule: Recode | None
    people: int
    without: int | None = None
    is_date: bool = False

    @property
    def text(self) -> str:
        """Return the change in words: ``show age in steps of 5``, ``synthesise or leave out income``."""
        if self.rule is None:
            return f"synthesise or leave out {self.variable}"
        if self.rule.width is not None:
            return f"show {self.variable} in {self.steps}"
        return f"join rare levels of {self.variable}"

    @property
    def steps(self) -> str:
        """Return the steps of numbers or dates in words: ``steps of 5``, ``steps of 365 days, about a year``."""
        if self.rule is None or self.rule.width is None:
            return ""
        if not self.is_date:
            return f"steps of {self.rule.width:g}"
        about = DAYS.get(int(self.rule.width))
        return f"steps of {self.rule.width:g} days" + (f", about {about}" if about else "")


@dataclass(frozen=True)
class ProtectionPlan:
    """Changes after which the limits protect everybody.

    rules: public rules of the columns that stay, by column
    replaced: columns that cannot stay
    levers: the changes in the order in which they were chosen, each with the people that are left over
    people: people over the limits before any change
    left: people over the limits after all changes; above 0 only where columns that may not change break the limits
    """

    rules: Mapping[str, Recode] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    levers: tuple[Lever, ...] = ()
    people: int = 0
    left: int = 0


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
        widths = tuple(DAYS)
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
        groups = join_neighbouring_levels(levels, counts, least) if ordinal else join_rare_levels(levels, counts, least)
        if groups and sum(map(len, groups.values())) <= MOST_JOINED:
            yield Recode(None, groups)


def join_rare_levels(levels: Sequence[str], counts: Integers, least: int) -> dict[str, tuple[str, ...]]:
    """Join all levels of fewer than ``least`` records, and the next larger until the group has as many."""
    order = sorted(range(len(levels)), key=lambda i: (counts[i], levels[i]))
    members = [i for i in order if counts[i] < least]
    together = int(counts[members].sum()) if members else 0
    for i in order[len(members) :]:
        if not members or (together >= least and len(members) > 1):
            break
        members.append(i)
        together += int(counts[i])
    if len(members) < 2 or len(levels) - len(members) < 1:  # one name for everything says nothing
        return {}
    name = next(text for text in ("other", "other levels", "all other levels") if text not in levels)
    return {name: tuple(levels[i] for i in sorted(members))}


def join_neighbouring_levels(levels: Sequence[str], counts: Integers, least: int) -> dict[str, tuple[str, ...]]:
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

    The order of records and of names changes nothing: ties are decided by name. Only where ``replaceable`` leaves out columns may people be
    left over, and the plan says how many.

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
    return _Protection(data, names, limits, set(names if replaceable is None else replaceable)).plan()


def list_levers(data: Microdata, names: Sequence[str], limits: KeptColumnLimits) -> list[Lever]:
    """List for each kept column what one change alone would leave over: a rule that protects most, and replacing it; the best first."""
    search = _Protection(data, names, limits, set(names))
    found: list[Lever] = []
    for name in search.names:
        is_date = data.schema[name].kind is Kind.DATE
        rules = [Lever(name, rule, search.people_with(name, rule), None, is_date) for rule in search.rules_of(name)]
        if rules:
            # Of rules that protect equally many people the finest loses least.
            found.append(min(rules, key=lambda lever: lever.people))
        found.append(Lever(name, None, search.people_with(name, None)))
    return sorted(found, key=lambda lever: (lever.people, lever.rule is None, lever.variable))


class _Protection:
    """The search of a plan: how each column is shown, and the number of each record's cell by column and form."""

    def __init__(
        self, data: Microdata, names: Iterable[str], limits: KeptColumnLimits, replaceable: Collection[str]
    ) -> None:
        self.data, self.limits, self.replaceable = data, limits, replaceable
        self.names = sorted(set(names))
        self.forms: dict[str, Form] = dict.fromkeys(self.names, "exact")
        self._numbers: dict[tuple[str, str], Keys] = {}
        self._entropies: dict[tuple[str, str], float] = {}
        self._ladders: dict[str, list[Recode]] = {}

    def rules_of(self, name: str) -> list[Recode]:
        """List the rules of a column, from the finest to the coarsest."""
        if name not in self._ladders:
            self._ladders[name] = coarser_rules(self.data, name, self.limits.smallest_class or 3)
        return self._ladders[name]

    def people_with(self, name: str, rule: Recode | None) -> int:
        """Count the people over the limits where one column follows a rule, or for None has left the combination."""
        return self._people({**self.forms, name: "replaced" if rule is None else rule})

    def plan(self) -> ProtectionPlan:
        """Search the plan from the columns as they are."""
        people = self._people(self.forms)
        order: list[str] = []
        if people:
            self._change_columns_that_break_limits_alone(order)
            self._change_while_people_are_over(order)
            self._take_back_needless(order)
        return self._described(people, list(dict.fromkeys(order)))

    def _change_columns_that_break_limits_alone(self, order: list[str]) -> None:
        """Give each column its finest form that keeps the limits by itself.

        A combination has no more records than any of its columns' values, so that no plan can show such a column exactly. These are chosen
        without a look at the others, which saves most of the search.
        """
        alone = {name: self._people({name: "exact"}) for name in self.names if name in self.replaceable}
        for name in sorted(alone, key=lambda one: (-alone[one], one)):
            if alone[name]:
                self.forms[name] = next(self._forms_that_suffice(name), "replaced")
                order.append(name)

    def _forms_that_suffice(self, name: str) -> Iterator[Form]:
        """Yield the forms of a column that keep the limits by themselves, from the finest to the coarsest."""
        forms: list[Form] = ["exact", *self.rules_of(name)]
        yield from (form for form in forms if not self._people({name: form}))

    def _change_while_people_are_over(self, order: list[str]) -> None:
        """Take the change with the most people protected for a bit of entropy, until nobody is over or nothing can change."""
        sufficient = {name: list(self._forms_that_suffice(name)) for name in self.names if name in self.replaceable}
        while people := self._people(self.forms):
            change = self._best_change(sufficient, people)
            if change is None:
                break
            name, form = change
            self.forms[name] = form
            order.append(name)

    def _best_change(self, sufficient: Mapping[str, Sequence[Form]], people: int) -> tuple[str, Form] | None:
        """Return the column and form with the most people protected a bit; None where no column can change.

        Ties: fewest people left, then the column of the largest entropy, then by name.
        """
        total = self._total(self.forms)
        replacing: list[tuple[_Rank, str, Form]] = []
        rules: list[tuple[float, str, Form, int, float, Keys]] = []
        for name, forms in sufficient.items():
            present = self.forms[name]
            if present == "replaced":
                continue
            others = total - self._row_numbers(name, present)
            left, entropy = self._people_of(others), self._entropy(name, present)
            worth = (people - left) / max(REPLACED_SHARE * entropy, LEAST_BITS)
            replacing.append(((-worth, left, -entropy, name, 0), name, "replaced"))
            # No rule protects more people than leaving the column out does, which bounds its worth. Where that is nobody no rule is tried: the
            # column of the largest entropy goes, and comes back at the end if others have done its work.
            coarser = forms[forms.index(present) + 1 :] if people > left else ()
            for place, form in enumerate(coarser, 1):
                bits = max(entropy - self._entropy(name, form), LEAST_BITS)
                rules.append(((people - left) / bits, name, form, place, bits, others))
        best = min(replacing, key=lambda one: one[0], default=None)
        for bound, name, form, place, bits, others in sorted(rules, key=lambda one: (-one[0], one[1], one[3])):
            assert best is not None
            if bound < -best[0][0]:
                break
            left = self._people_of(others + self._row_numbers(name, form))
            entropy = self._entropy(name, self.forms[name])
            best = min(
                best, ((-(people - left) / bits, left, -entropy, name, place), name, form), key=lambda one: one[0]
            )
        return None if best is None else best[1:]

    def _take_back_needless(self, order: Sequence[str]) -> None:
        """Show columns more finely, the last that were changed first, where everybody is protected all the same."""
        if self._people(self.forms):
            return
        for name in reversed(list(dict.fromkeys(order))):
            for form in self._forms_that_suffice(name):
                if form == self.forms[name] or not self._people({**self.forms, name: form}):
                    self.forms[name] = form
                    break

    def _described(self, people: int, order: Sequence[str]) -> ProtectionPlan:
        """Return the plan, each change with the people that it leaves over."""
        changed = [name for name in order if self.forms[name] != "exact"]
        forms: dict[str, Form] = dict.fromkeys(self.names, "exact")
        levers = []
        for name in changed:
            forms[name] = form = self.forms[name]
            rule = form if isinstance(form, Recode) else None
            without = self._people({**self.forms, name: "exact"})
            is_date = self.data.schema[name].kind is Kind.DATE
            levers.append(Lever(name, rule, self._people(forms), without, is_date))
        rules = {name: form for name, form in self.forms.items() if isinstance(form, Recode)}
        replaced = tuple(name for name in changed if self.forms[name] == "replaced")
        return ProtectionPlan(rules, replaced, tuple(levers), people, levers[-1].people if levers else people)

    def _row_numbers(self, name: str, form: Form) -> Keys:
        """The share of a column in the number of each record's row, (n,)."""
        key = (name, str(form))
        if key not in self._numbers:
            shown = recoded(self.data, {name: form}) if isinstance(form, Recode) else self.data
            self._numbers[key] = rows_of(cells_of(shown, (name,)), (name,))
        return self._numbers[key]

    def _entropy(self, name: str, form: Form) -> float:
        """The entropy of a column under a form, in bits."""
        key = (name, str(form))
        if key not in self._entropies:
            shares = counted_keys(self._row_numbers(name, form))[1] / len(self.data)
            self._entropies[key] = float(-np.sum(shares * np.log2(shares)))
        return self._entropies[key]

    def _total(self, forms: Mapping[str, Form]) -> Keys:
        """The number of each record's row over all columns that are not replaced, (n,)."""
        rows = np.zeros(len(self.data), dtype=np.uint64)
        for name, form in forms.items():
            if form != "replaced":
                rows += self._row_numbers(name, form)
        return rows

    def _people(self, forms: Mapping[str, Form]) -> int:
        return self._people_of(self._total(forms))

    def _people_of(self, rows: Keys) -> int:
        return self.limits.people_in(counted_keys(rows)[1])

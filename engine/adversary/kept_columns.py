"""Risk from the columns that a release keeps, and a plan of changes that lowers it.

A column that a release keeps unchanged, or recodes by a public rule, is true in every row. An intruder who knows these
columns of a person finds the f rows with the same combination and guesses right with probability 1 / f (prosecutor
risk: El Emam 2013, Guide to the De-Identification of Personal Health Information, section 16.2).

A change makes one column coarser or removes it from the combination. ``plan_protection`` chooses changes greedily until
all satisfy the limits: first columns that violate them alone, then the change that protects most people per bit of
entropy lost; finally it reverts changes that became needless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from ..data.arrays import Integers
from ..data.bits import Keys
from ..data.long_arrays import compute_column, long_blocks, marked_rows
from ..data.microdata import Microdata
from ..data.recoding import recode_data
from ..data.recoding_rules import RecodeRule
from ..data.schema import Kind
from ..data.sorting import count_by_value
from ..data.units import Units
from .cells import cell_keys, count_occurrences, count_sharing, distinct_key_counts, row_keys, unit_keys
from .kept_column_limits import KeptColumnLimits

DAYS = {7: "a week", 31: "a month", 91: "a quarter", 365: "a year", 1826: "5 years", 3652: "10 years", 7305: "20 years"}
"""Widths of dates in days, and what they are called."""
JOINED_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Thresholds, as shares of the records, below which levels are joined."""
FEWEST_STEPS, MOST_STEPS = 3, 50
"""Fewest and most intervals after a rule."""
MOST_JOINED = 500
"""Largest number of joined levels that a person can read in a recipe."""
REPLACED_SHARE = 0.5
"""Share of a column's entropy lost when it is synthesised: its distribution stays."""
LEAST_BITS = 1e-9
MOST_RECORDS = 200_000
"""Size of the sample for a plan; classes of a sample are smaller, so that the plan protects the whole table."""
ColumnForm = RecodeRule | Literal["exact", "replaced"]
"""Form in which a plan shows a column: by a rule, exactly, or not at all."""
_ChangeRank = tuple[float, int, float, str, int]


@dataclass(frozen=True, eq=False)
class CombinationSizes:
    """Class sizes of the records by their combination of some columns.

    sizes: number of records with the same combination, including the record, or of units, (n,)
    """

    sizes: Integers

    @classmethod
    def from_cells(
        cls, cells: Mapping[str, Keys], names: Sequence[str], records: int, units: Units | None = None
    ) -> CombinationSizes:
        """Count the combinations of the named columns; without columns all records form one class.

        Where several records describe a unit, units with a combination are counted.
        """
        return cls(count_sharing(row_keys(cells, names, records), units))

    @classmethod
    def from_cells_of_units(cls, cells: Mapping[str, Keys], names: Sequence[str], units: Units) -> CombinationSizes:
        """Count combinations by which a record is found alone or with its unit, the smaller of both.

        An intruder who knows the columns of all records of a unit, and sees which rows belong together, finds the units
        that have the same records.
        """
        alone = cls.from_cells(cells, names, len(units.unit_of), units)
        keys = unit_keys(row_keys(cells, names, len(units.unit_of)), units)
        return cls(np.minimum(alone.sizes, count_occurrences(keys, keys)[units.unit_of]))

    def records_below(self, smallest_class: int) -> Integers:
        """Return the records in classes of fewer than ``smallest_class`` records."""
        return marked_rows(compute_column(len(self.sizes), np.bool_, lambda rows: self.sizes[rows] < smallest_class))

    @property
    def classes_by_size(self) -> tuple[Integers, Integers]:
        """Return the different sizes of the classes, ascending, and the number of classes of each, (s,)."""
        sizes, records = self._records_by_size
        return sizes, records // np.maximum(sizes, 1)

    @cached_property
    def _records_by_size(self) -> tuple[Integers, Integers]:
        """Return the different sizes, ascending, and the number of records of each."""
        return count_by_value(self.sizes[rows] for rows in long_blocks(len(self.sizes)))

    @property
    def n_unique(self) -> int:
        """Return the number of unique records."""
        return len(self.records_below(2))

    @property
    def smallest_size(self) -> int:
        """Return the size of the smallest class; 0 without records."""
        return int(self.sizes.min()) if len(self.sizes) else 0

    @property
    def expected_reidentifications(self) -> float:
        """Return the expected number of right guesses by an intruder who picks a random row of each person's class."""
        sizes, records = self._records_by_size
        return float(np.sum(records / sizes))

    def population_reidentifications(self, fraction: float) -> float:
        """Return the expected re-identifications by an intruder who does not know who is in the sample.

        ``fraction`` is the sampling fraction. The sum is of E(1 / F | f) for population class size F, where F - f is
        negative binomial (Benedetti & Franconi 1998; Hundepool et al. 2012, section 3.3.2).
        """
        by_size, records = self._records_by_size
        sizes, rest = by_size.astype(np.float64), 1.0 - fraction
        if rest <= 0:
            return self.expected_reidentifications
        odds, log = fraction / rest, np.log(1.0 / fraction)
        # The general formula holds from 3 on; for classes of 1 and 2 the closed forms are exact.
        risks = np.where(sizes == 1, odds * log, np.where(sizes == 2, odds - odds**2 * log, fraction / (sizes - rest)))
        return float((records * risks).sum())

    @property
    def average_risk(self) -> float:
        """Return the expected re-identifications per record; 0 without records."""
        return self.expected_reidentifications / len(self.sizes) if len(self.sizes) else 0.0


@dataclass(frozen=True)
class KeptColumnChange:
    """Change of one kept column, and the number of people who remain unprotected.

    variable: name of the column
    rule: public rule that makes the column coarser; None if the column is replaced or left out
    n_unprotected: people who violate the limits after this change and the earlier ones of its plan
    n_unprotected_without: the same with all other changes of the plan but not this one; None outside a plan
    is_date: whether the widths of the rule are days
    """

    variable: str
    rule: RecodeRule | None
    n_unprotected: int
    n_unprotected_without: int | None = None
    is_date: bool = False

    @property
    def description(self) -> str:
        """Return the change in words: ``show age in steps of 5``, ``synthesise or leave out income``."""
        if self.rule is None:
            return f"synthesise or leave out {self.variable}"
        if self.rule.has_end_codes:
            return f"show {self.variable} {self.rule}"
        if self.rule.width is not None:
            return f"show {self.variable} in {self.steps_text}"
        return f"join rare levels of {self.variable}"

    @property
    def joins_rare_levels(self) -> bool:
        """Return whether the change joins rare levels."""
        return self.rule is not None and not self.rule.has_end_codes and self.rule.width is None

    @property
    def steps_text(self) -> str:
        """Return the width of numbers or dates in words: ``steps of 5``, ``steps of 365 days, about a year``."""
        if self.rule is None or self.rule.width is None:
            return ""
        if not self.is_date:
            return f"steps of {self.rule.width:g}"
        about = DAYS.get(int(self.rule.width))
        return f"steps of {self.rule.width:g} days" + (f", about {about}" if about else "")


@dataclass(frozen=True)
class ProtectionPlan:
    """Changes of kept columns after which everybody satisfies the limits.

    rules: public rules of the columns that stay, by column
    replaced: columns that cannot stay
    changes: changes in the order of choice, each with the number of people left unprotected
    n_unprotected_before: unprotected people before any change
    n_unprotected_after: unprotected people after all changes; above 0 only if columns that may not change violate the
        limits
    """

    rules: Mapping[str, RecodeRule] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    changes: tuple[KeptColumnChange, ...] = ()
    n_unprotected_before: int = 0
    n_unprotected_after: int = 0


def coarser_rules(data: Microdata, name: str, smallest_class: int) -> list[RecodeRule]:
    """List public rules for a column from the finest to the coarsest; empty if no rule suits its kind."""
    variable = data.schema[name]
    if variable.kind is Kind.BINARY or name in data.recoding:
        return []
    if variable.kind.has_levels:
        rules: list[RecodeRule] = []
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
    return [RecodeRule(float(width)) for width in widths if FEWEST_STEPS <= spread / width <= MOST_STEPS]


def end_code_rules(data: Microdata, name: str, smallest_class: int) -> list[RecodeRule]:
    """List codes for the largest, the smallest, and both ends of a column of numbers; empty for other columns.

    At least ``smallest_class`` records are shown by each code.
    """
    kind = data.schema[name].kind
    if kind not in (Kind.COUNT, Kind.CONTINUOUS) or name in data.recoding:
        return []
    numbers = data.numbers(name)
    present = np.sort(numbers[np.isfinite(numbers)])
    if len(present) <= 2 * smallest_class or present[0] == present[-1]:
        return []
    bottom, top = present[smallest_class - 1], present[-smallest_class]
    if kind is Kind.CONTINUOUS:
        # Two digits of the spread, so that a code is nobody's own value.
        digits = 1 - int(np.floor(np.log10(present[-1] - present[0])))
        bottom, top = np.ceil(bottom * 10.0**digits) / 10.0**digits, np.floor(top * 10.0**digits) / 10.0**digits
    if not bottom < top:
        return []
    low, high = (float(bottom) if bottom > present[0] else None), (float(top) if top < present[-1] else None)
    ends = [(None, high), (low, None), (low, high)]
    unique = dict.fromkeys(pair for pair in ends if pair != (None, None))
    return [RecodeRule(None, {}, *pair) for pair in unique]


def _round_widths(spread: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten that cover the widths of 3 to 50 steps, ascending."""
    if not spread > 0:
        return []
    first = int(np.floor(np.log10(spread / MOST_STEPS)))
    # Parsed from text: 5 * 10.0**-6 is not the float nearest to 5e-6.
    return [float(f"{digit}e{power}") for power in range(first, first + 4) for digit in (1, 2, 5)]


def _joining_rules(data: Microdata, name: str, smallest_class: int) -> Iterator[RecodeRule]:
    """Yield rules that join rare levels, for increasing thresholds."""
    column = data.frame[name].cat
    levels = [str(level) for level in column.categories]
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(levels))
    ordinal = data.schema[name].kind is Kind.ORDINAL
    for share in JOINED_SHARES:
        least = max(smallest_class, int(share * len(data)))
        groups = join_neighbouring_levels(levels, counts, least) if ordinal else join_rare_levels(levels, counts, least)
        if groups and sum(map(len, groups.values())) <= MOST_JOINED:
            yield RecodeRule(None, groups)


def join_rare_levels(levels: Sequence[str], counts: Integers, least: int) -> dict[str, tuple[str, ...]]:
    """Join all levels with fewer than ``least`` records, and the next larger ones until the group reaches ``least``."""
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
    """Choose which kept columns to make coarser and which to replace, until everybody satisfies the limits.

    People may be left over only if ``replaceable`` leaves out columns.

    Parameters ---------- data : Microdata
        The confidential records, as existing public rules show them.
    names : sequence of str
        The kept columns that an intruder may know.
    limits : KeptColumnLimits
        Limits on the combination of the columns.
    rng : numpy Generator, optional
        Draws the sample of ``MOST_RECORDS`` records of a larger table.
    replaceable : sequence of str, optional
        Columns that may be replaced or made coarser; all by default.
    """
    if len(data) > MOST_RECORDS:
        rows = np.sort((rng or np.random.default_rng(0)).choice(len(data), MOST_RECORDS, replace=False))
        data = data.without_controls.select_rows(rows.tolist())
    return _ProtectionSearch(data, names, limits, set(names if replaceable is None else replaceable)).search_plan()


def list_column_changes(data: Microdata, names: Sequence[str], limits: KeptColumnLimits) -> list[KeptColumnChange]:
    """List the effect of single changes, best first: for each column its most protective rule, and its replacement."""
    found: list[KeptColumnChange] = []
    for ladder in list_rule_ladders(data, names, limits)[1].values():
        *rules, replaced = ladder
        if rules:
            # Of rules that protect equally many people the finest loses least.
            found.append(min(rules, key=lambda lever: lever.n_unprotected))
        found.append(replaced)
    return sorted(found, key=lambda lever: (lever.n_unprotected, lever.rule is None, lever.variable))


def list_rule_ladders(
    data: Microdata, names: Sequence[str], limits: KeptColumnLimits
) -> tuple[int, dict[str, list[KeptColumnChange]]]:
    """Return how many people are unprotected, and by column every single change of it: its rules from the finest to the
    coarsest, then its replacement.
    """
    search = _ProtectionSearch(data, names, limits, set(names))
    found: dict[str, list[KeptColumnChange]] = {}
    for name in search.names:
        is_date = data.schema[name].kind is Kind.DATE
        forms: list[RecodeRule | None] = [*search.rules_for(name), None]
        found[name] = [
            KeptColumnChange(name, rule, search.count_unprotected_with(name, rule), None, is_date) for rule in forms
        ]
    return search.count_unprotected_unchanged(), found


def list_end_codes(data: Microdata, names: Sequence[str], limits: KeptColumnLimits) -> list[KeptColumnChange]:
    """List the codes for the ends of each column that protect somebody, the most protective of a column, best first."""
    search, found = _ProtectionSearch(data, names, limits, set(names)), list[KeptColumnChange]()
    before = search.count_unprotected_unchanged()
    for name in search.names:
        rules = end_code_rules(data, name, limits.smallest_class or 3)
        changes = [KeptColumnChange(name, rule, search.count_unprotected_with(name, rule)) for rule in rules]
        helping = [one for one in changes if one.n_unprotected < before]
        if helping:
            # Of those that protect equally many people one end loses least.
            found.append(min(helping, key=lambda one: one.n_unprotected))
    return sorted(found, key=lambda one: (one.n_unprotected, one.variable))


class _ProtectionSearch:
    """Greedy search for a plan, with cached row keys and entropies of each column in each form."""

    def __init__(
        self, data: Microdata, names: Iterable[str], limits: KeptColumnLimits, replaceable: Collection[str]
    ) -> None:
        """Start with all columns shown exactly."""
        self.data, self.limits, self.replaceable = data, limits, replaceable
        self.names = sorted(set(names))
        self.forms: dict[str, ColumnForm] = dict.fromkeys(self.names, "exact")
        self._numbers: dict[tuple[str, str], Keys] = {}
        self._entropies: dict[tuple[str, str], float] = {}
        self._ladders: dict[str, list[RecodeRule]] = {}

    def rules_for(self, name: str) -> list[RecodeRule]:
        """List the rules of a column from the finest to the coarsest."""
        if name not in self._ladders:
            self._ladders[name] = coarser_rules(self.data, name, self.limits.smallest_class or 3)
        return self._ladders[name]

    def count_unprotected_unchanged(self) -> int:
        """Count the unprotected people if no column changes."""
        return self._count_unprotected(self.forms)

    def count_unprotected_with(self, name: str, rule: RecodeRule | None) -> int:
        """Count the unprotected people if one column follows a rule, or is removed (None)."""
        return self._count_unprotected({**self.forms, name: "replaced" if rule is None else rule})

    def search_plan(self) -> ProtectionPlan:
        """Search for the plan, starting from unchanged columns."""
        people = self._count_unprotected(self.forms)
        order: list[str] = []
        if people:
            self._change_failing_columns(order)
            self._change_while_unprotected(order)
            self._revert_needless_changes(order)
        return self._describe_plan(people, list(dict.fromkeys(order)))

    def _change_failing_columns(self, order: list[str]) -> None:
        """Give each column the finest form that satisfies the limits alone."""
        # A combination has no more records than a value of any of its columns, so such a column must change in every
        # plan. Doing these first saves most of the search.
        alone = {name: self._count_unprotected({name: "exact"}) for name in self.names if name in self.replaceable}
        for name in sorted(alone, key=lambda one: (-alone[one], one)):
            if alone[name]:
                self.forms[name] = next(self._forms_that_suffice(name), "replaced")
                order.append(name)

    def _forms_that_suffice(self, name: str) -> Iterator[ColumnForm]:
        """Yield the forms of a column that satisfy the limits alone, from the finest to the coarsest."""
        forms: list[ColumnForm] = ["exact", *self.rules_for(name)]
        yield from (form for form in forms if not self._count_unprotected({name: form}))

    def _change_while_unprotected(self, order: list[str]) -> None:
        """Apply the change that protects most people per bit of entropy until all are protected."""
        sufficient = {name: list(self._forms_that_suffice(name)) for name in self.names if name in self.replaceable}
        while people := self._count_unprotected(self.forms):
            change = self._best_change(sufficient, people)
            if change is None:
                break
            name, form = change
            self.forms[name] = form
            order.append(name)

    def _best_change(
        self, sufficient: Mapping[str, Sequence[ColumnForm]], people: int
    ) -> tuple[str, ColumnForm] | None:
        """Return the column and form that protect most people per bit of entropy; None if no column can change.

        Ties go to the fewest people left, then the column with the largest entropy, then by name.
        """
        total = self._total_row_keys(self.forms)
        replacing: list[tuple[_ChangeRank, str, ColumnForm]] = []
        rules: list[tuple[float, str, ColumnForm, int, float, Keys]] = []
        for name, forms in sufficient.items():
            present = self.forms[name]
            if present == "replaced":
                continue
            others = total - self._column_row_keys(name, present)
            left, entropy = self._count_unprotected_rows(others), self._column_entropy(name, present)
            worth = (people - left) / max(REPLACED_SHARE * entropy, LEAST_BITS)
            replacing.append(((-worth, left, -entropy, name, 0), name, "replaced"))
            # No rule protects more people than leaving the column out does, which bounds its worth. Where that is no
            # one, no rule is tried: the column of the largest entropy goes, and comes back at the end if others have
            # done its work.
            coarser = forms[forms.index(present) + 1 :] if people > left else ()
            for place, form in enumerate(coarser, 1):
                bits = max(entropy - self._column_entropy(name, form), LEAST_BITS)
                rules.append(((people - left) / bits, name, form, place, bits, others))
        best = min(replacing, key=lambda one: one[0], default=None)
        for bound, name, form, place, bits, others in sorted(rules, key=lambda one: (-one[0], one[1], one[3])):
            assert best is not None
            if bound < -best[0][0]:
                break
            left = self._count_unprotected_rows(others + self._column_row_keys(name, form))
            entropy = self._column_entropy(name, self.forms[name])
            best = min(
                best, ((-(people - left) / bits, left, -entropy, name, place), name, form), key=lambda one: one[0]
            )
        return None if best is None else best[1:]

    def _revert_needless_changes(self, order: Sequence[str]) -> None:
        """Show columns more finely, last changed first, as long as everybody remains protected."""
        if self._count_unprotected(self.forms):
            return
        for name in reversed(list(dict.fromkeys(order))):
            for form in self._forms_that_suffice(name):
                if form == self.forms[name] or not self._count_unprotected({**self.forms, name: form}):
                    self.forms[name] = form
                    break

    def _describe_plan(self, people: int, order: Sequence[str]) -> ProtectionPlan:
        """Return the plan, with the number of people unprotected after each change."""
        changed = [name for name in order if self.forms[name] != "exact"]
        forms: dict[str, ColumnForm] = dict.fromkeys(self.names, "exact")
        levers = []
        for name in changed:
            forms[name] = form = self.forms[name]
            rule = form if isinstance(form, RecodeRule) else None
            without = self._count_unprotected({**self.forms, name: "exact"})
            is_date = self.data.schema[name].kind is Kind.DATE
            levers.append(KeptColumnChange(name, rule, self._count_unprotected(forms), without, is_date))
        rules = {name: form for name, form in self.forms.items() if isinstance(form, RecodeRule)}
        replaced = tuple(name for name in changed if self.forms[name] == "replaced")
        return ProtectionPlan(rules, replaced, tuple(levers), people, levers[-1].n_unprotected if levers else people)

    def _column_row_keys(self, name: str, form: ColumnForm) -> Keys:
        """Return a column's summand of each record's row key, (n,)."""
        key = (name, str(form))
        if key not in self._numbers:
            shown = recode_data(self.data, {name: form}) if isinstance(form, RecodeRule) else self.data
            self._numbers[key] = row_keys(cell_keys(shown, (name,)), (name,))
        return self._numbers[key]

    def _column_entropy(self, name: str, form: ColumnForm) -> float:
        """Return the entropy of a column in a form, in bits."""
        key = (name, str(form))
        if key not in self._entropies:
            shares = distinct_key_counts(self._column_row_keys(name, form))[1] / len(self.data)
            self._entropies[key] = float(-np.sum(shares * np.log2(shares)))
        return self._entropies[key]

    def _total_row_keys(self, forms: Mapping[str, ColumnForm]) -> Keys:
        """Return each record's row key over all columns that are not replaced, (n,)."""
        rows = np.zeros(len(self.data), dtype=np.uint64)
        for name, form in forms.items():
            if form != "replaced":
                # Row keys add up over columns, so a change of one column needs no new pass over the others.
                rows += self._column_row_keys(name, form)
        return rows

    def _count_unprotected(self, forms: Mapping[str, ColumnForm]) -> int:
        """Count the unprotected people with the columns in these forms."""
        return self._count_unprotected_rows(self._total_row_keys(forms))

    def _count_unprotected_rows(self, rows: Keys) -> int:
        """Count the people in classes that the limits do not protect, by the keys of their rows, (n,)."""
        return self.limits.count_unprotected_in(distinct_key_counts(rows)[1])

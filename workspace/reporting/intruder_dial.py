"""The intruder's dial: which variables he knows, how surely, and whom he then finds, in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sfumato.engine.studies._knowledge_counts import KnowledgeCounts
from sfumato.engine.wording import agreeing_word, count_of_noun, format_number, format_percent, join_names

from .words import sign_for

Reaches = tuple[tuple[str, float], ...]
"""Half widths of what is known of some variables, by name, without those that are known surely."""
FoundBy = Literal["certain", "expected", "few"]


@dataclass(frozen=True)
class DialVariable:
    """Variable that the intruder may know.

    is_stated: whether the plan says that he knows it
    reaches: half widths within which he may know it, ascending; 0 first, which is as the plan says
    within: tolerance of a match that the plan states; empty without
    is_date: whether the half widths are in days
    """

    name: str
    is_stated: bool
    reaches: tuple[float, ...] = (0.0,)
    within: str = ""
    is_date: bool = False

    @property
    def is_numeric(self) -> bool:
        """Return whether the intruder may be unsure of it."""
        return len(self.reaches) > 1

    def reach_text(self, reach: float) -> str:
        """Return how surely the variable is known: ``± 2``, ``± 5 %``, ``± 3 days``; empty where it has no size."""
        sign, days = sign_for("plus or minus"), " days" if self.is_date else ""
        if reach:
            return f"{sign} {format_number(reach)}{days}"
        if self.within:
            return f"{sign} {self.within.replace('%', ' %')}{days}"
        return f"{sign} 0" if self.is_numeric else ""


@dataclass(frozen=True)
class DialLimits:
    """Largest numbers that the plan and the policy allow, in people; None without a limit.

    expected, certain: by the limits of the plan
    few: people left unprotected in kept columns, by the policy
    smallest_group: number of people below which a group is small, by the policy; None without
    """

    expected: float | None = None
    certain: float | None = None
    few: float | None = None
    smallest_group: int | None = None


@dataclass(frozen=True)
class DialNumbers:
    """Numbers of the dial for one run, where every variable is known as the plan says or not at all.

    variables: the variables that the dial turns; bit i of a mask is variable i
    others: variables that he knows in any case
    number: confidential records, or units
    noun: what these are, in the plural
    limits: the limits
    counts: the numbers for each set of variables; None where they cannot be counted
    reason: why they cannot
    """

    run_id: int
    variables: tuple[DialVariable, ...]
    others: tuple[str, ...]
    number: int
    noun: str
    limits: DialLimits
    counts: KnowledgeCounts | None
    reason: str = ""


@dataclass(frozen=True)
class DialLine:
    """One of the numbers of a dial.

    name: the number
    title: what is counted
    value: people
    limit: largest allowed number of people; None without
    count_text: the number in words: ``251 of 944 people (26.6 %)``
    limit_text: the limit in words; empty without
    """

    name: FoundBy
    title: str
    value: float
    limit: float | None
    count_text: str
    limit_text: str

    @property
    def is_above(self) -> bool:
        """Return whether the limit is exceeded."""
        return self.limit is not None and self.value > self.limit + 1e-9


@dataclass(frozen=True)
class IntruderDial:
    """The dial as it is turned: what the intruder knows, within which half widths, and the numbers that are counted.

    known: the variables that he knows
    reaches: half widths by variable, those above 0
    unsure: numbers where variables are known within half widths, as far as they are counted
    """

    numbers: DialNumbers
    known: frozenset[str]
    reaches: Mapping[str, float] = field(default_factory=dict)
    unsure: Mapping[Reaches, KnowledgeCounts] = field(default_factory=dict)

    @classmethod
    def from_numbers(cls, numbers: DialNumbers) -> IntruderDial:
        """Create the dial as the plan states the knowledge."""
        return cls(numbers, frozenset(one.name for one in numbers.variables if one.is_stated))

    def toggle_variable(self, name: str) -> IntruderDial:
        """Return the dial after turning a variable on or off."""
        return replace(self, known=self.known ^ {name})

    def shift_reach(self, name: str, step: int) -> IntruderDial:
        """Return the dial with a variable known within the next wider half width, or the next narrower one.

        It is the same dial where there is none.
        """
        own = next(one for one in self.numbers.variables if one.name == name).reaches
        at = own.index(self.reaches.get(name, 0.0)) + step
        return self.set_reach(name, own[at]) if 0 <= at < len(own) else self

    def set_reach(self, name: str, reach: float) -> IntruderDial:
        """Return the dial with a variable known within a half width, 0 for as the plan says."""
        rest = {other: own for other, own in self.reaches.items() if other != name}
        return replace(self, reaches={**rest, name: reach} if reach else rest, known=self.known | {name})

    @property
    def wanted_reaches(self) -> Reaches:
        """Return the half widths that count now, of known variables only."""
        names = [one.name for one in self.numbers.variables]
        used = [(name, reach) for name, reach in self.reaches.items() if name in self.known]
        return tuple(sorted(used, key=lambda one: names.index(one[0])))

    @property
    def counts(self) -> KnowledgeCounts | None:
        """Return the numbers under the present half widths; None as long as they are not counted."""
        wanted = self.wanted_reaches
        return self.unsure.get(wanted) if wanted else self.numbers.counts

    def missing_reaches(self, name: str) -> list[Reaches]:
        """Return the half widths of one variable alone that are not yet counted."""
        (own,) = (one.reaches for one in self.numbers.variables if one.name == name)
        return [one for one in (((name, reach),) for reach in own[1:]) if one not in self.unsure]

    def mask_of(self, known: frozenset[str]) -> int:
        """Return the mask of a set of variables."""
        return sum(1 << place for place, one in enumerate(self.numbers.variables) if one.name in known)

    def value_of(self, name: FoundBy, known: frozenset[str]) -> float | None:
        """Return a number for who knows a set of variables; None where it is not counted."""
        values: Sequence[float] = () if self.counts is None else getattr(self.counts, name)
        return values[self.mask_of(known)] if values else None

    def lines(self) -> list[DialLine]:
        """Return the numbers of the dial; none as long as they are not counted."""
        limits = self.numbers.limits
        group = "in small groups" if limits.smallest_group is None else f"in groups below {limits.smallest_group}"
        titles: dict[FoundBy, str] = {"certain": "found for certain", "expected": "found on average", "few": group}
        found = []
        for name, title in titles.items():
            value, limit = self.value_of(name, self.known), getattr(limits, name)
            if value is not None:
                found.append(
                    DialLine(name, title, value, limit, self.people_text(value), self._limit_text(name, limit))
                )
        return found

    def people_text(self, value: float) -> str:
        """Return a number of people of all people: ``251 of 944 people (26.6 %)``."""
        number = self.numbers.number
        share = f" ({format_percent(value / number)})" if number else ""
        return f"{format_number(value)} of {count_of_noun(number, self.numbers.noun)}{share}"

    def _limit_text(self, name: FoundBy, limit: float | None) -> str:
        """Return a limit in words: the plan's as a share or a number, the policy's as a number."""
        if limit is None:
            return ""
        if name == "certain":
            return f"the plan allows {format_percent(limit / max(1, self.numbers.number))}"
        whose = "plan" if name == "expected" else "policy"
        return f"the {whose} allows {format_number(limit) if limit else 'none'}"

    @property
    def main_line(self) -> DialLine | None:
        """Return the number that decides: the first above its limit, else the first with one, else the first."""
        lines = self.lines()
        above, limited = [one for one in lines if one.is_above], [one for one in lines if one.limit is not None]
        return next(iter([*above, *limited, *lines]), None)

    @property
    def coarsen_first(self) -> tuple[str, float] | None:
        """Return the known variable without which fewest are found, and how many then are; None if none helps."""
        main = self.main_line
        if main is None:
            return None
        left = []
        for one in self.numbers.variables:
            if one.name in self.known:
                without = self.known - {one.name}
                value, then = (self.value_of(name, without) or 0.0 for name in (main.name, "expected"))
                left.append((value, then, one.name))
        if not left:
            return None
        value, _, name = min(left, key=lambda one: one[:2])
        return (name, value) if value < main.value - 1e-9 else None

    def coarsen_text(self) -> str:
        """Return in one sentence what to coarsen first; empty as long as nothing is counted."""
        main = self.main_line
        if main is None:
            return ""
        if not self.known:
            return "Who knows none of them cannot tell people apart."
        if not main.value:
            return "There is nothing to coarsen for this intruder."
        found = self.coarsen_first
        if found is None:
            return "No single variable lowers this number: coarsen two of them."
        name, value = found
        how = {"certain": "found for certain", "expected": "found on average", "few": "in such groups"}[main.name]
        if not value:
            return f"For this intruder coarsen {name} first: then no {self.numbers.noun} are {how}."
        is_whole = value == round(value)
        people = (
            count_of_noun(round(value), self.numbers.noun)
            if is_whole
            else f"{format_number(value)} {self.numbers.noun}"
        )
        return f"For this intruder coarsen {name} first: then at most {people} {agreeing_word(1 if value == 1 else 2, 'is', 'are')} {how}."

    def variable_text(self, variable: DialVariable) -> str:
        """Return a variable with how surely it is known: ``age ± 2``."""
        reach = variable.reach_text(self.reaches.get(variable.name, 0.0))
        return f"{variable.name} {reach}".rstrip()

    def knowledge_text(self) -> str:
        """Return what the intruder knows in words: ``sex, age ± 2 and education``."""
        told = [self.variable_text(one) for one in self.numbers.variables if one.name in self.known]
        return join_names([*told, *self.numbers.others]) or "nothing"

    def sentences(self) -> list[str]:
        """Return the dial in sentences, for plain text."""
        if self.numbers.counts is None:
            return [f"Not counted: {self.numbers.reason}."]
        lines = [f"The intruder knows {self.knowledge_text()}."]
        for one in self.lines():
            limit = f"; {one.limit_text}" if one.limit_text else ""
            lines.append(f"{one.title[:1].upper()}{one.title[1:]}: {one.count_text}{limit}.")
        return [*lines, self.coarsen_text()]

    def to_table(self) -> dict[str, Any]:
        """Return the dial as ``--json`` writes it."""
        found = self.coarsen_first
        return {
            "run": self.numbers.run_id,
            "known": [one.name for one in self.numbers.variables if one.name in self.known] + list(self.numbers.others),
            "within": dict(self.wanted_reaches),
            "records": self.numbers.number,
            "noun": self.numbers.noun,
            "found": {one.name: one.value for one in self.lines()},
            "limits": {one.name: one.limit for one in self.lines()},
            "coarsen_first": None if found is None else {"variable": found[0], "then": found[1]},
            "reason": self.numbers.reason,
        }

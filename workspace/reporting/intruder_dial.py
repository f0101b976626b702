"""The intruder's dial: which variables he knows, how surely, and whom he then finds, in numbers and words."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sfumato.engine.matching.radius import Radius
from sfumato.engine.studies._knowledge_counts import KnowledgeCounts
from sfumato.engine.wording import count_of_noun, format_number, format_percent, join_names, singular_noun

from .words import CAN_BE_FOUND, FOR_CERTAIN, ON_AVERAGE, people_limit_number, sign_for

Reaches = tuple[tuple[str, float], ...]
"""Half widths of what is known of some variables, by name, without those that are known surely."""
CERTAIN_TITLE, EXPECTED_TITLE = f"{FOR_CERTAIN}, one match", f"{ON_AVERAGE}, with luck"
"""What is counted, each with its gloss."""
ARTIFICIAL = "artificial"
"""What values are that a model drew."""
EXACTLY = "exactly"
"""How surely a number is known without a half width."""
FoundBy = Literal["certain", "expected", "few"]

OF_PLAN, OF_POLICY = "plan", "policy"
"""Whose limit it is, so that nobody takes that of the plan for one of the gate."""
NONE_ALLOWED, NOBODY = "none allowed", 1e-3
"""Words for a limit of no one, and the limit below which it is one."""
MOST_WINDOWS = 64
"""Combinations of windows that are counted for drawn variables: those of two variables."""


@dataclass(frozen=True)
class DialVariable:
    """Variable that the intruder may know.

    is_stated: whether the plan says that he knows it
    reaches: half widths within which he may know it, ascending; 0 first, which for a kept variable is as the plan says
    within: tolerance of a match that the plan states; empty without
    is_date: whether the half widths are in days
    windows: windows in which he may look for a drawn number that he knows; 0 for other variables
    is_drawn: whether the release has only artificial values of it, with which he compares what he knows
    """

    name: str
    is_stated: bool
    reaches: tuple[float, ...] = (0.0,)
    within: str = ""
    is_date: bool = False
    windows: int = 0
    is_drawn: bool = False

    @property
    def certainties(self) -> tuple[float | None, ...]:
        """Return how surely he may know it, from surest to least sure: None is as the plan says, others are half widths.

        Within a half width, 0 among them, he looks for a drawn number in the window that finds most people.
        """
        return (None, *(self.reaches if self.windows else self.reaches[1:]))

    @property
    def is_numeric(self) -> bool:
        """Return whether the intruder may be unsure of it."""
        return len(self.certainties) > 1

    def reach_text(self, reach: float | None) -> str:
        """Return how surely the variable is known: ``± 2``, ``± 5 %``, ``± 3 days``; empty where he knows it exactly."""
        sign = sign_for("plus or minus")
        if reach:
            return f"{sign} {format_number(reach)}{self._days}"
        # How near a drawn number has to be is the plan's, and says nothing of how surely he knows the true one.
        if reach is None and self.within and not self.windows:
            return f"{sign} {self._spaced(self.within)}{self._days}"
        return ""

    def choice_text(self, reach: float | None) -> str:
        """Return how surely the variable is known and by what he looks for it, to choose from."""
        text = self.reach_text(reach) or (EXACTLY if self.is_numeric else "")
        if not self.windows:
            return text
        return f"{text}, {self._plan_match_text}" if reach is None else f"{text}, by the best window"

    @property
    def _plan_match_text(self) -> str:
        """Return how near the plan takes for a match of a drawn number."""
        return f"matched within {self._spaced(self.within)} as the plan says" if self.within else "matched exactly"

    def window_text(self, reach: float | None, window: Radius | None) -> str:
        """Return in a sentence how he looks for a drawn number: as the plan says where ``reach`` is None, else in the
        window that finds most, or not at all where ignoring it is as good.
        """
        if reach is None:
            return f"{self.name} is drawn: {self._plan_match_text}."
        known = f"With {self.name} {self.reach_text(reach) or f'known {EXACTLY}'}"
        if window is None:
            return f"{known} he finds as many without it."
        days = self._days if window.kind == "absolute" else ""
        return f"{known} he finds most at {sign_for('plus or minus')} {self._spaced(str(window.written))}{days}."

    def _spaced(self, within: str) -> str:
        """Return a tolerance with a space before its unit: ``10 %``."""
        return within.replace("%", " %")

    @property
    def _days(self) -> str:
        return " days" if self.is_date else ""


@dataclass(frozen=True)
class DialLimits:
    """Largest numbers that the plan and the policy allow, in people; None without a limit.

    expected, certain: by the limits of the plan
    few: people left unprotected in kept columns, by the policy
    smallest_group: number of people below which a group is small, by the policy; None without
    texts: by number what a limit compares with, of those that compare with the confidential data
    """

    expected: float | None = None
    certain: float | None = None
    few: float | None = None
    smallest_group: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


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
    most_windows: combinations of windows of drawn variables that are counted at most
    """

    run_id: int
    variables: tuple[DialVariable, ...]
    others: tuple[str, ...]
    number: int
    noun: str
    limits: DialLimits
    counts: KnowledgeCounts | None
    reason: str = ""
    most_windows: int = MOST_WINDOWS


@dataclass(frozen=True)
class DialLine:
    """One of the numbers of a dial.

    name: the number
    title: what is counted
    value: people
    limit: largest allowed number of people; None without
    count_text: the number in words: ``251 of 944 people (26.6 %)``
    limit_text: the limit in words: ``the plan allows at most 41 people (1 %)``; empty without
    before: people for what the plan states, where somebody tries something else; None otherwise
    """

    name: FoundBy
    title: str
    value: float
    limit: float | None
    count_text: str
    limit_text: str
    before: float | None = None

    @property
    def before_text(self) -> str:
        """Return the number for what the plan states, where somebody tries something else; empty otherwise."""
        return "" if self.before is None else _people_number(self.before)

    @property
    def limit_texts(self) -> tuple[str, ...]:
        """Return the limit in words, the longest first: ``the plan allows at most 41 people (1 %)``, ``plan: at most 41
        people (1 %)``, ``at most 41 people (1 %)``, ``at most 41 (1 %)``.
        """
        if self.limit is None:
            return ("no limit",)
        if abs(self.limit) < NOBODY:
            return self.limit_text, NONE_ALLOWED
        told = self.limit_text.partition(": ")[0]
        owner, people = told.removeprefix("the ").split(" allows ", 1)
        number, _, share = people.partition(" (")
        brief = f"{' '.join(number.split()[:3])} ({share}"
        return tuple(dict.fromkeys((self.limit_text, told, f"{owner}: {people}", people, brief)))

    @property
    def brief_limit_text(self) -> str:
        """Return the limit for a narrow line: ``at most 41 (1 %)``; ``no limit`` without one."""
        return self.limit_texts[-1]

    @property
    def brief_count_text(self) -> str:
        """Return the number for a narrow line: ``251 of 944 (26.6 %)``."""
        return re.sub(r"( of [\d,]+) [^(]+ \(", r"\1 (", self.count_text)

    @property
    def brief_title(self) -> str:
        """Return what is counted without its gloss."""
        return self.title.partition(",")[0]

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

    @property
    def is_turned(self) -> bool:
        """Return whether somebody has changed what the plan states of the intruder."""
        stated = frozenset(one.name for one in self.numbers.variables if one.is_stated)
        return self.known != stated or bool(self.wanted_reaches)

    @property
    def counted_text(self) -> str:
        """Return whom the numbers count, before them: ``If he knows what is ticked, of 944 people:``."""
        knows = f"he knows what is ticked, of {count_of_noun(self.numbers.number, self.numbers.noun)}:"
        # What somebody tries stands beside the gate's own count of people, which it does not change.
        return f"if {knows}" if self.is_turned else f"If {knows}"

    def is_changed(self, variable: DialVariable) -> bool:
        """Return whether somebody has changed what the plan states of one variable."""
        is_known = variable.name in self.known
        return is_known != variable.is_stated or (is_known and variable.name in self.reaches)

    def toggle_variable(self, name: str) -> IntruderDial:
        """Return the dial after turning a variable on or off."""
        return replace(self, known=self.known ^ {name})

    def shift_reach(self, name: str, step: int) -> IntruderDial:
        """Return the dial with a variable known within the next wider half width, or the next narrower one.

        It is the same dial where there is none.
        """
        own: tuple[float | None, ...] = (None, *self._variable(name).reaches[1:])
        reach = self.reaches.get(name)
        at = (own.index(reach) if reach in own else 0) + step
        return self.set_reach(name, own[at]) if 0 <= at < len(own) else self

    def set_reach(self, name: str, reach: float | None) -> IntruderDial:
        """Return the dial with a variable known within a half width, None for as the plan says."""
        rest = {other: own for other, own in self.reaches.items() if other != name}
        # A kept number that is known within 0 is known as the plan says.
        if reach is not None and (reach or self._variable(name).windows):
            rest[name] = reach
        return replace(self, reaches=rest, known=self.known | {name})

    def _variable(self, name: str) -> DialVariable:
        """Return the variable of a name."""
        return next(one for one in self.numbers.variables if one.name == name)

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
        return [
            one for one in (((name, reach),) for reach in self._variable(name).reaches[1:]) if one not in self.unsure
        ]

    @property
    def uncounted_reason(self) -> str:
        """Return why the numbers under the present half widths are not counted; empty where they are."""
        drawn = [one for one, _ in self.wanted_reaches if self._variable(one).windows]
        windows = math.prod(self._variable(name).windows for name in drawn)
        return too_many_windows_text(drawn) if windows > self.numbers.most_windows else ""

    def mask_of(self, known: frozenset[str]) -> int:
        """Return the mask of a set of variables."""
        return sum(1 << place for place, one in enumerate(self.numbers.variables) if one.name in known)

    def value_of(self, name: FoundBy, known: frozenset[str]) -> float | None:
        """Return a number for who knows a set of variables; None where it is not counted."""
        values: Sequence[float] = () if self.counts is None else getattr(self.counts, name)
        return values[self.mask_of(known)] if values else None

    def found_by_number_known(self, name: FoundBy) -> list[tuple[int, float]]:
        """Return the most people that are found by so many variables, whichever these are; none where it is not counted."""
        counts = self.numbers.counts
        values: Sequence[float] = () if counts is None else getattr(counts, name)
        most: dict[int, float] = {}
        for mask, value in enumerate(values):
            number = mask.bit_count()
            most[number] = max(most.get(number, 0.0), value)
        return sorted(most.items())

    def found_by_certainty(self, name: FoundBy, variable: DialVariable) -> list[tuple[float, float]]:
        """Return the half widths of one variable that are counted, each with how many are found within it."""
        found = []
        for reach in variable.certainties:
            value = self.set_reach(variable.name, reach).value_of(name, self.known | {variable.name})
            if value is not None and (reach is not None or not variable.windows):
                found.append((reach or 0.0, value))
        return found

    def lines(self) -> list[DialLine]:
        """Return the numbers of the dial; none as long as they are not counted."""
        limits = self.numbers.limits
        smallest = limits.smallest_group
        group = f"{CAN_BE_FOUND}, {'small group' if smallest is None else f'group under {smallest}'}"
        titles: dict[FoundBy, str] = {
            "certain": CERTAIN_TITLE,
            "expected": EXPECTED_TITLE,
            "few": group,
        }
        found, stated = [], IntruderDial.from_numbers(self.numbers)
        for name, title in titles.items():
            value, limit = self.value_of(name, self.known), getattr(limits, name)
            if value is not None:
                before = stated.value_of(name, stated.known) if self.is_turned else None
                limit_text = self._limit_text(name, value, limit)
                found.append(DialLine(name, title, value, limit, self.people_text(value), limit_text, before))
        return found

    def people_text(self, value: float) -> str:
        """Return a number of people of all people as the table of numbers has it: ``463.6 of 944 people (49.11 %)``."""
        number = self.numbers.number
        share = f" ({format_percent(value / number)})" if number else ""
        return f"{_people_number(value)} of {count_of_noun(number, self.numbers.noun)}{share}"

    def _limit_text(self, name: FoundBy, value: float, limit: float | None) -> str:
        """Return a limit in words, in people with their share, and whose it is: ``the plan allows at most 41 people (1 %)``."""
        if limit is None:
            return ""
        owner, compared = OF_POLICY if name == "few" else OF_PLAN, self.numbers.limits.texts.get(name, "")
        if abs(limit) < NOBODY:
            return f"the {owner} allows none{compared}"
        number = people_limit_number(limit, value=value)
        noun = singular_noun(self.numbers.noun) if number == "1" else self.numbers.noun
        share = format_percent(limit / max(1, self.numbers.number))
        return f"the {owner} allows at most {number} {noun} ({share}){compared}"

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
        how = {"certain": f"are {FOR_CERTAIN}", "expected": f"are {ON_AVERAGE}", "few": CAN_BE_FOUND}[main.name]
        if not value:
            return f"For this intruder change {name} first: without it no {self.numbers.noun} {how}."
        # "At most" stays true only of a number that is rounded up.
        most = math.ceil(value - 1e-9)
        people = count_of_noun(most, self.numbers.noun)
        if most == 1:
            how = how.replace("are ", "is ", 1)
        return f"For this intruder change {name} first: without it at most {people} {how}."

    def change_text(self) -> str:
        """Return in one sentence what somebody's change of the knowledge does to the number that decides, and whether it is
        within its limit; empty where nothing is changed or counted.
        """
        main, stated = self.main_line, IntruderDial.from_numbers(self.numbers)
        before = None if main is None else stated.value_of(main.name, stated.known)
        if not self.is_turned or main is None or before is None:
            return ""
        changed = [one for one in self.numbers.variables if self.is_changed(one)]
        lost = [one.name for one in changed if one.name not in self.known]
        gained = [self.variable_text(one) for one in changed if one.name in self.known]
        parts = [f"{word} {join_names(names)}" for word, names in (("without", lost), ("with", gained)) if names]
        tried = " and ".join(parts)
        number, of = _people_number(main.value), self.numbers.noun
        how = {"certain": "for certain", "expected": "on average", "few": "in small groups"}[main.name]
        found = f"{number} {singular_noun(of) if number == '1' else of} {how}"
        limit = "" if main.limit is None else f", {'above' if main.is_above else 'within'} the limit"
        if abs(main.value - before) < 1e-9:
            return f"{tried[:1].upper()}{tried[1:]} he still finds {found}{limit}."
        return f"{tried[:1].upper()}{tried[1:]} he finds {found}, not {_people_number(before)}{limit}."

    def variable_text(self, variable: DialVariable) -> str:
        """Return a variable with how surely it is known: ``age ± 2``, or ``age`` where it is known exactly."""
        return f"{variable.name} {variable.reach_text(self.reaches.get(variable.name))}".rstrip()

    def window_text(self, variable: DialVariable) -> str:
        """Return in a sentence how he looks for a drawn number that he knows; empty for others, or while it is counted."""
        reach = self.reaches.get(variable.name)
        if not variable.windows or variable.name not in self.known or (reach is not None and self.counts is None):
            return ""
        return variable.window_text(reach, None if reach is None else self.best_window(variable.name))

    def best_window(self, name: str) -> Radius | None:
        """Return the window of a drawn variable that finds most people by the number that decides.

        It is None where who ignores the variable finds as many, or nothing is counted.
        """
        main, counts = self.main_line, self.counts
        if main is None or counts is None or not counts.windows:
            return None
        if main.value <= (self.value_of(main.name, self.known - {name}) or 0.0) + 1e-9:
            return None
        best = counts.best_certain if main.name == "certain" else counts.best_expected
        return dict(counts.windows[best[self.mask_of(self.known)]]).get(name)

    def knowledge_text(self) -> str:
        """Return what the intruder knows in words: ``sex, age ± 2 and education``."""
        told = [self.variable_text(one) for one in self.numbers.variables if one.name in self.known]
        return join_names([*told, *self.numbers.others]) or "nothing"

    def sentences(self) -> list[str]:
        """Return the dial in sentences, for plain text."""
        if self.numbers.counts is None:
            return [f"Not counted: {self.numbers.reason}."]
        if self.uncounted_reason:
            return [f"The intruder knows {self.knowledge_text()}.", f"Not counted: {self.uncounted_reason}."]
        lines = [f"The intruder knows {self.knowledge_text()}."]
        if drawn := [one.name for one in self.numbers.variables if one.is_drawn and one.name in self.known]:
            lines.append(f"Of {join_names(drawn)} the release has only {ARTIFICIAL} values.")
        for one in self.lines():
            limit = f"; {one.limit_text}" if one.limit_text else ""
            lines.append(f"{one.title[:1].upper()}{one.title[1:]}: {one.count_text}{limit}.")
        looked = (self.window_text(one) for one in self.numbers.variables if one.name in self.reaches)
        return [*lines, *filter(None, looked), self.coarsen_text()]

    def to_table(self) -> dict[str, Any]:
        """Return the dial as ``--json`` writes it."""
        found = self.coarsen_first
        return {
            "run": self.numbers.run_id,
            "known": [one.name for one in self.numbers.variables if one.name in self.known] + list(self.numbers.others),
            "within": dict(self.wanted_reaches),
            "best_windows": self._window_table(),
            "records": self.numbers.number,
            "noun": self.numbers.noun,
            "found": {one.name: one.value for one in self.lines()},
            "limits": {one.name: one.limit for one in self.lines()},
            "coarsen_first": None if found is None else {"variable": found[0], "then": found[1]},
            "reason": self.numbers.reason or self.uncounted_reason,
        }

    def _window_table(self) -> dict[str, Any]:
        """Return the best window of each drawn variable that is known within a half width, as a plan writes it."""
        names = [name for name, _ in self.wanted_reaches if self._variable(name).windows]
        return {name: None if (best := self.best_window(name)) is None else best.written for name in names}


def _people_number(value: float) -> str:
    """Return a number of people; an average keeps its decimals."""
    return f"{round(value):,}" if abs(value - round(value)) < 1e-9 else format_number(value)


def too_many_windows_text(names: Collection[str]) -> str:
    """Return why the best windows of some drawn variables together are not counted."""
    if len(names) == 1:
        return f"the run is too large to try windows of {join_names(list(names))}; leave it as the plan says"
    return f"{join_names(list(names))} have too many windows to try together; leave one of them as the plan says"


def ratio_limit_text(ratio: float) -> str:
    """Return what follows a limit that is a ratio to the people found in the confidential data."""
    return f": {format_percent(ratio)} of the unprotected count"


def increase_limit_text(more: float) -> str:
    """Return what follows a limit on people beyond those found in the confidential data."""
    return f": {format_number(more)} more than the unprotected count"

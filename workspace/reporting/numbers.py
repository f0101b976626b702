"""Numbers of a run as lines of one table: a line for each measure and variable, with those of its settings folded."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sfumato.engine.methods.labels import is_of_units, measure_name, method_and_output, own_params, subject_of
from sfumato.engine.methods.outputs import ATTACK_PARTS, BEST_PARTS, QUESTIONS
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import format_percent, record_noun, singular_noun

from .tables import DisplayColumn
from .words import (
    CONFIDENTIAL_VALUE,
    NO_SETTINGS,
    SettingsByMethod,
    brief_limit_text,
    brief_value_text,
    counted_total,
    limit_text,
    method_use_text,
    number,
    people_limit_number,
    power_of_ten_text,
    rounded_text,
    row_interval_text,
    row_value_text,
    sign_for,
)

LEADING_PART = "excess_risk"
"""The part of an attack that stands for all of them: how often a guess is right beyond what controls explain."""
LEADING_BEST = {name: measure for measure, names in BEST_PARTS.items() for name in names}
"""The number of the best choice of variables in whose line its success rates are folded, by rate."""
FAMILIES = ("risk", "utility", "quality", "studies", "synthesis")
"""Families of numbers, in the order in which a key goes through them."""


NUMBER_COLUMNS = (
    DisplayColumn("sign", "", 1),
    DisplayColumn("name", "measure and variable", 36, grow_order=1, spills=True),
    DisplayColumn("confidential", "data", 7, "right"),
    DisplayColumn("release", "release", 9, "right"),
    DisplayColumn("interval", "interval", 18, drop_order=2),
    DisplayColumn("good", "goal", 4),
    DisplayColumn("limit", "limit", 8),
    DisplayColumn("others", "more", 7, drop_order=1),
)
"""How the lines of the table of numbers are listed."""
PEOPLE_UNITS = ("records", "units")
"""Units of numbers that count people."""
UNMET_SECTION = "Which limits are not met?"
PEOPLE_SECTION = "Can people be found?"
QUESTION_SECTIONS: Mapping[str, str] = dict(
    zip(
        QUESTIONS,
        (PEOPLE_SECTION, PEOPLE_SECTION, "Are sensitive values learnt?", "Can one tell who is in the data?"),
        strict=True,
    )
)
"""Headings of the numbers of a risk, by the question that they answer."""
OTHER_RISKS = "What else may the release disclose?"
ANALYSES_SECTION = "Do analyses agree?"
FAMILY_SECTIONS: Mapping[str, str] = {
    "utility": "Does the release still look like the data?",
    "quality": "How much of the data is left?",
    "synthesis": "What does the privacy account promise?",
}
"""Headings of the other families."""
SECTIONS = (
    UNMET_SECTION, *dict.fromkeys(QUESTION_SECTIONS.values()), OTHER_RISKS, FAMILY_SECTIONS["utility"], ANALYSES_SECTION,
    FAMILY_SECTIONS["quality"],
)  # fmt: skip
"""Headings in their order; those of studies follow, then the privacy account."""
ALL_RECORDS = "all records"
RELATED = "related numbers"
P_VALUES = ("p_value", "excess_p_value")
"""Names of numbers that say how often chance alone gives as much."""
"""Name of the numbers that are folded into a line, in its explanation."""
NOT_COMPUTED, UNKNOWN = "not computed", "unknown"
"""Cell of a number that could not be computed, in full and where there is less room."""
GOAL_MARKS: Mapping[str, str] = {"low": "lower is better", "high": "higher is better"}
"""Good values in a word, by the direction of a measure."""
BEST_CHOICE = ", best variables"
"""End of the name of a number of an intruder who picks the variables that he compares."""
COMPARING_ALL, PICKING = "Intruder who compares all he knows", "Intruder who picks what to compare"
"""Titles above the numbers of the two."""
AS_IN_THE_DATA = "same"
"""The good value of a statistic that the confidential data have too."""


@dataclass(frozen=True)
class ArrangedLines:
    """Lines of a table below headings, as places for each row that is shown.

    places: number of the line, or ``-1 - n`` for heading ``n``
    headings: headings with whether each is a title below another
    is_titled: whether a row is a line whose title stands above it
    """

    places: array[int] = field(default_factory=lambda: array("q"))
    headings: list[tuple[str, bool]] = field(default_factory=list)
    is_titled: bytearray = field(default_factory=bytearray)

    def add_heading(self, text: str, *, is_minor: bool = False) -> None:
        """Add a heading below the rows so far."""
        self.headings.append((text, is_minor))
        self.places.append(-len(self.headings))
        self.is_titled.append(0)

    def add_line(self, line: int, *, is_titled: bool = False) -> None:
        """Add a line below the rows so far."""
        self.places.append(line)
        self.is_titled.append(is_titled)


def arrange_lines(keys: Sequence[str], unmet: Container[int] = ()) -> ArrangedLines:
    """Return lines, given the keys of their measures, by the question that they answer; those of one title stand together.

    ``unmet`` are the numbers of lines whose limits are not met, which stand first. Within a title lines keep their order.
    """
    sections: dict[str, dict[str, list[int]]] = {}
    for line, key in enumerate(keys):
        section = UNMET_SECTION if line in unmet else section_title(key)
        sections.setdefault(section, {}).setdefault(split_title(key)[0], []).append(line)
    found = ArrangedLines()
    for section in sorted(sections, key=section_place):
        found.add_heading(section)
        for title, lines in sections[section].items():
            if len(lines) > 1:
                found.add_heading(title, is_minor=True)
            for line in lines:
                found.add_line(line, is_titled=len(lines) > 1)
    return found


def section_place(section: str) -> int:
    """Return the place of a heading among all, to sort by."""
    last = section == FAMILY_SECTIONS["synthesis"]
    return SECTIONS.index(section) if section in SECTIONS else len(SECTIONS) + last


def section_title(key: str) -> str:
    """Return the heading of a measure: the question that it answers."""
    method, output = method_and_output(key)
    family = key.partition(".")[0]
    if family == "risk":
        outputs = (output, *(method.outputs if method else ()))
        asked = next((one.risk.questions[0] for one in outputs if one.risk.questions), "")
        return QUESTION_SECTIONS.get(asked, OTHER_RISKS)
    if method is not None and method.measurement.repeats_analysis:
        return ANALYSES_SECTION
    if family == "studies":
        return f"Study: {method.title if method else 'a method that this version does not have'}"
    return FAMILY_SECTIONS.get(family, OTHER_RISKS)


def split_title(key: str) -> tuple[str, str]:
    """Return the title that a measure shares with others, and the rest of its name: ``Linkage``, ``for outsiders``.

    A study says last of what intruder its measures are: ``Best window``, ``People found on average``. People are found
    by two intruders, whose numbers would seem to contradict each other.
    """
    name = measure_name(key)
    if _is_of_two_intruders(key):
        return (PICKING if name.endswith(BEST_CHOICE) else COMPARING_ALL), name.removesuffix(BEST_CHOICE)
    if key.startswith("studies.") and ", " in name:
        rest, _, title = name.rpartition(", ")
        return f"{title[:1].upper()}{title[1:]}", rest
    title, _, rest = name.partition(": ")
    return title, rest


@lru_cache(maxsize=512)
def _is_of_two_intruders(key: str) -> bool:
    """Return whether a measure finds people and its method has numbers with the best choice of variables and without."""
    method = method_and_output(key)[0]
    if method is None or section_title(key) != PEOPLE_SECTION:
        return False
    names = {measure_name(f"{method.key}.{one.name}") for one in method.outputs}
    return any(f"{name}{BEST_CHOICE}" in names for name in names)


def titled_name(line: NumberLine, subject: str) -> str:
    """Return the name of a line below its title: the rest of its measure's name and ``subject``, what it is about."""
    parts = [split_title(line.row.key)[1], subject]
    return ", ".join(part for part in parts if part) or ALL_RECORDS


def whole_name(line: NumberLine, apart: SettingsByMethod = NO_SETTINGS, records: int | None = None) -> str:
    """Return the name of a line with what it is about."""
    return ", ".join(part for part in (measure_name(line.row.key), line_subject(line, apart, records)) if part)


def good_word(line: NumberLine) -> str:
    """Return which values of a line are good: ``↓`` for lower ones, ``↑``, ``1``, ``same``; empty where none are better."""
    output = method_and_output(line.row.key)[1]
    is_statistic = line.row.family == "utility" and line.confidential is not None and line.release is not None
    if output.goal in GOAL_MARKS:
        return sign_for(GOAL_MARKS[output.goal])
    return "1" if output.goal == "one" else AS_IN_THE_DATA if is_statistic else ""


def leading_measure(family: str, measure: str) -> str:
    """Return the measure in whose line a measure is folded: its own, except for the parts of an attack."""
    if family != "risk":
        return measure
    return LEADING_PART if measure in ATTACK_PARTS else LEADING_BEST.get(measure, measure)


@dataclass(frozen=True, slots=True)
class NumberLine:
    """Line of the table of numbers: a series, or all series of one measure and variable with one of them in front.

    confidential: row of the confidential data
    release: row of the release
    verdict: the worst verdict about it
    members: the folded lines, its own among them; empty where there is only one
    """

    confidential: Row | None
    release: Row | None
    verdict: Verdict | None = None
    members: tuple[NumberLine, ...] = ()

    @property
    def row(self) -> Row:
        """Return the row that names the line: that of the release if there is one."""
        row = self.release or self.confidential
        assert row is not None
        return row

    @property
    def fold_key(self) -> tuple[str, str, str, str]:
        """Return what lines that are folded together have in common."""
        row = self.row
        return row.family, row.method, leading_measure(row.family, row.measure), row.target

    @property
    def worst_outcome(self) -> str:
        """Return the worst outcome of its verdicts and those of folded lines; empty without a verdict."""
        found = [one.verdict.outcome for one in (self, *self.members) if one.verdict is not None]
        return min(found, key=WORST_FIRST.index, default="")

    @property
    def number_of_others(self) -> int:
        """Return how many lines are folded behind the one in front."""
        return max(0, len(self.members) - 1)


def number_lines(rows: Iterable[Row], verdicts: Sequence[Verdict] = ()) -> list[NumberLine]:
    """Return a line for each series of averages: the confidential data's row and that of the release, with its worst verdict."""
    pairs: dict[tuple[object, ...], dict[bool, Row]] = {}
    for row in rows:
        pairs.setdefault(row.series, {}).setdefault(row.dataset == "confidential", row)
    judged: dict[tuple[str, str, float | None], list[Verdict]] = {}
    for verdict in verdicts:
        judged.setdefault((verdict.value, verdict.target, verdict.level), []).append(verdict)
    found = []
    for pair in pairs.values():
        line = NumberLine(pair.get(True), pair.get(False))
        if line.release is not None:
            row = line.release
            # a verdict without parameters is about the first row of its measure
            near = judged.get((row.key, row.target, row.level), [])
            own = [one for one in near if one.params == row.params or one.params is None]
            for one in own:
                if one.params is None:
                    near.remove(one)
            line = replace(line, verdict=min(own, key=lambda one: WORST_FIRST.index(one.outcome), default=None))
        found.append(line)
    return found


def fold_number_lines(lines: Iterable[NumberLine]) -> list[NumberLine]:
    """Return one line for each measure and variable, in the order of their first lines."""
    groups: dict[tuple[str, str, str, str], list[NumberLine]] = {}
    for line in lines:
        groups.setdefault(line.fold_key, []).append(line)
    return [fold_lines(group) for group in groups.values()]


def fold_lines(group: Sequence[NumberLine]) -> NumberLine:
    """Return lines of one measure and variable as one: in front the worst that is judged, else that of most people.

    Among lines about as much, it is the one with the worst value, or whose release is furthest from the confidential
    data.
    """
    if len(group) == 1:
        return group[0]
    front = min(enumerate(group), key=lambda placed: (*_front_order(placed[1]), placed[0]))[1]
    return replace(front, members=tuple(group))


def _front_order(line: NumberLine) -> tuple[int, bool, bool, bool, int, float]:
    """Return the sort key of a line among those that are folded with it; the smallest stands in front.

    Where records belong to people or households, these are counted before their records: they are who is found.
    """
    row = line.row
    method, output = method_and_output(row.key)
    own = [value for value in own_params(method, row.params).values() if isinstance(value, (str, int, float))]
    value, confidential = row.value, line.confidential.value if line.confidential else None
    worse = 0.0
    if value is not None and output.goal in ("low", "high"):
        worse = -value if output.goal == "low" else value
    elif value is not None and confidential is not None:
        worse = -abs(value - confidential) / (abs(confidential) or 1.0)
    return (
        len(WORST_FIRST) if line.verdict is None else WORST_FIRST.index(line.verdict.outcome),
        row.measure != leading_measure(row.family, row.measure),
        value is None,
        not is_of_units(row.params),
        len(own),
        worse,
    )


def line_name(line: NumberLine) -> str:
    """Return the name of a line's measure, with the sign of a fold where others are folded behind it."""
    name = measure_name(line.row.key)
    return f"{sign_for('folded')} {name}" if line.members else name


def line_subject(line: NumberLine, apart: SettingsByMethod = NO_SETTINGS, records: int | None = None) -> str:
    """Return what a line is about: its variable, what else distinguishes it, and the use of its method.

    The number of confidential ``records`` may know what units are.
    """
    row = line.row
    uses = {name: value for name, value in apart.get(row.method_key, {}).items() if name not in _always_named(row)}
    return "; ".join(part for part in (subject_of(row, records), method_use_text(row.params, uses)) if part)


def _always_named(row: Row) -> Mapping[str, object]:
    """Return the parameters that the subject of a row has already."""
    return own_params(method_and_output(row.key)[0], row.params)


def cell_forms(line: NumberLine, name: str, cell: str, records: int | None = None) -> tuple[str, ...]:
    """Return the forms of a cell, first the longest: ``88 of 20,190 (0.44 %)``, ``88 of 20,190``, ``88``, ``0.44 %``.

    The last ones are for the narrowest tables. An interval has fewer digits there, and is then rounded outward; numbers
    with many zeros are powers of ten.
    A limit on a share of people counts them as the value beside it does: ``at most 1 % (161.7)``, ``≤ 161.7``, ``≤ 1 %``.
    The last one of a limit on a ratio is in the unit of the measure: ``≤ 459`` for ``at most 20 % of the confidential value``.
    """
    if name == "limit":
        if counted := _counted_limit(line, records):
            return f"{cell} ({counted})", brief_limit_text(f"{_bound_words(line)} {counted}"), brief_limit_text(cell)
        return cell, brief_limit_text(cell), brief_limit_text(unit_limit(line))
    if name == "interval":
        found = (cell, *(row_interval_text(line.row, records, digits) for digits in (3, 2)))
        return *found, *(one for one in [power_of_ten_text(found[-1])] if len(one) < len(found[-1]))
    if cell == NOT_COMPUTED:
        return cell, cell, cell, UNKNOWN
    brief = brief_value_text(cell, is_share=line.row.unit == "share")
    # a number keeps its noun where that fits: ``2,707 units``
    count = cell.partition(" of ")[0]
    bare = count.partition(" ")[0] if line.row.unit == "records" and count[:1].isdigit() else brief
    # A few digits fewer read better than a power of ten.
    shorter = [rounded_text(bare, digits) for digits in (2, 1)] + [power_of_ten_text(bare, digits) for digits in (2, 1)]
    return cell, cell.partition(" (")[0], count, bare, *(one for one in shorter if len(one) < len(bare))


def _counted_limit(line: NumberLine, records: int | None) -> str:
    """Return the limit on a share of all people as their number; empty where the value does not count people."""
    verdict, released = line.verdict, line.release
    if not records or verdict is None or released is None or verdict.bound not in ("max", "min"):
        return ""
    whole = counted_total(released, records)
    value = None if released.value is None else released.value * whole
    return people_limit_number(verdict.limit * whole, verdict.bound, value) if whole else ""


def _bound_words(line: NumberLine) -> str:
    """Return ``at most`` or ``at least``, as the limit of a line's verdict is."""
    return "at least" if line.verdict is not None and line.verdict.bound == "min" else "at most"


def shared_limit(line: NumberLine, records: int | None = None) -> str:
    """Return the limit of a line's verdict in the unit of the measure, in people with their share: ``at most 464 (2.87 %)``."""
    limit, released = unit_limit(line), line.release
    if released is None or line.row.unit not in PEOPLE_UNITS or limit == line_limit(line):
        return limit
    of = row_value_text(released, records).partition(" of ")[2].partition(" ")[0].replace(",", "")
    own, verdict = line.confidential, line.verdict
    if not of.isdigit() or own is None or own.value is None or verdict is None:
        return limit
    return f"{limit} ({format_percent(verdict.limit * own.value / int(of))})"


def line_limit(line: NumberLine) -> str:
    """Return the limit of a line's verdict; empty without one."""
    verdict = line.verdict
    return "" if verdict is None else limit_text(verdict.bound, verdict.limit, verdict.value)


def unit_limit(line: NumberLine) -> str:
    """Return the limit of a line's verdict in the unit of the measure, of a ratio too: ``at most 459.2``; empty without one."""
    limit, own, verdict = line_limit(line), line.confidential, line.verdict
    if verdict is None or verdict.bound != "max_ratio" or own is None or own.value is None:
        return limit
    if CONFIDENTIAL_VALUE not in limit:
        return limit
    counts_people = method_and_output(own.key)[1].label.counts == "people" and own.unit in ("records", "units")
    allowed, value = verdict.limit * own.value, None if line.release is None else line.release.value
    return f"at most {people_limit_number(allowed, value=value) if counts_people else number(allowed)}"


def line_cells(line: NumberLine, records: int | None = None, apart: SettingsByMethod = NO_SETTINGS) -> dict[str, str]:
    """Return the cells of a line by column.

    ``records`` is the number of confidential records.
    """
    verdict = line.verdict
    limit = verdict.limit if verdict is not None and verdict.bound in ("max", "min") else None
    row = line.row
    baseline = row.baseline if line.confidential is None else None
    return {
        "sign": sign_for(line.worst_outcome) if line.worst_outcome else "",
        "measure": line_name(line),
        "of": line_subject(line, apart, records),
        "confidential": "" if line.confidential is None else row_value_text(line.confidential, records),
        "release": "" if line.release is None else row_value_text(line.release, records, limit),
        "interval": "" if line.release is None else row_interval_text(line.release, records),
        "limit": line_limit(line),
        "good": good_word(line),
        "others": f"{line.number_of_others} more" if line.members else "",
        "baseline": ""
        if baseline is None
        else row_value_text(replace(row, value=baseline, status="computed"), records),
    }


def line_sentence(line: NumberLine, records: int | None = None, apart: SettingsByMethod = NO_SETTINGS) -> str:
    """Return a line in words, for a list that is read aloud: ``Mean, income: confidential 31.2, release 30.9 (30 .. 32)``."""
    cells = line_cells(line, records, apart)
    name = ", ".join(part for part in (measure_name(line.row.key), cells["of"]) if part)
    others = f"; {line.number_of_others} more settings" if line.number_of_others > 1 else ""
    others = "; 1 more setting" if line.number_of_others == 1 else others
    return f"{name}: {_values_text(line, cells)}{others}."


def _values_text(line: NumberLine, cells: Mapping[str, str]) -> str:
    """Return the values of a line with its verdict: ``release 1.2 % (1 .. 1.4 %), confidential 5 %, met, at most 2 %``."""
    released = f"release {cells['release']}" if cells["release"] else ""
    if released and cells["interval"]:
        released += f" ({cells['interval']})"
    judged = "" if line.verdict is None else f"{line.verdict.outcome}, {cells['limit']}"
    if not cells["confidential"] or cells["release"] == cells["confidential"]:
        # what is measured without the release is no number of it, and what stands alone needs no name
        both = " in release and data" if line.row.family == "utility" and cells["confidential"] else ""
        return ", ".join(part for part in (f"{released.removeprefix('release ')}{both}", judged) if part)
    said = [released, cells["confidential"] and f"confidential {cells['confidential']}", judged]
    return ", ".join(part for part in said if part)


def member_facts(
    line: NumberLine, records: int | None = None, apart: SettingsByMethod = NO_SETTINGS
) -> list[tuple[str, str]]:
    """Return a fact for each line that is folded, as pairs of a name and a text; none where nothing is folded."""
    found = []
    # Where numbers of units stand beside it, a number without a subject is of single records.
    has_units = getattr(records, "units", None) is not None
    whole = f"by {singular_noun(record_noun(records))}" if has_units else ALL_RECORDS
    of_units = [is_of_units(one.row.params) for one in line.members]
    if has_units and line.members and not any(of_units) and line.row.family in ("risk", "studies"):
        found.append((RELATED, f"each counts single {record_noun(records)}"))
    for place, one in enumerate(line.members):
        named = [line_subject(one, apart, records)]
        if has_units and any(of_units) and not of_units[place]:
            # beside numbers of units, one of records says that it is
            named.insert(0, whole)
        if one.row.measure != line.row.measure:
            named.insert(0, measure_name(one.row.key))
        cells = line_cells(one, records, apart)
        text = f"{'; '.join(part for part in named if part) or whole}: {_values_text(one, cells)}"
        if one.row.measure in P_VALUES and one.row.measure != line.row.measure:
            text += " (a p-value: how often chance alone gives as much)"
        found.append(("" if found else RELATED, text))
    return found


def families_text(counts: Mapping[str, int], chosen: str) -> str:
    """Return the number of lines by family, the chosen one in brackets: ``[all 72] · risk 30 · utility 20``."""
    parts = [("all", sum(counts.values())), *((one, counts[one]) for one in FAMILIES if counts.get(one))]
    return " · ".join(
        f"[{name} {count:,}]" if name == (chosen or "all") else f"{name} {count:,}" for name, count in parts
    )

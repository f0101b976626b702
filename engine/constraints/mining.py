"""Mining of rules that every record of a table satisfies, as suggestions for ``[constraints]``.

The search covers implications between levels, zeros and missing values (``relationship = 'Husband' -> sex = 'Male'``),
bounds of numbers and dates given a level (``married = 'yes' -> age >= 15``, rounded outwards to two digits), orders of
two columns (``born <= married_on``), and sums (``income = wage + rent``).

Each rule holds for all records, which could be chance. So each has the exact probability that it would hold for all of
them if its columns were independent, given the values in each column (permutations over the records). A rule is
suggested where this is at most ``RATE`` divided by the number of rules examined (Bonferroni): of tables with
independent columns, at most one in a hundred has any suggestion. Nothing says that a rule holds for people outside the
table.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..data.arrays import Floats
from ..data.conditions import RecordConstraint, parse_condition
from ..data.microdata import Microdata
from ..data.schema import Kind, Variable
from .evaluation import SLACK, violations

RATE = 0.01
"""The share of tables of independent columns that have any suggestion."""
MOST_LEVELS = 60
MOST_IN_SUMS = 25
"""Number of numerical columns up to which sums of three are searched; of more columns, sums of two alone."""
MOST_SUGGESTED = 200
_PLAIN = re.compile(r"[^\W\d][\w.]*(?:-\w+)*")
_WORDS = ("and", "or", "not", "is")
_DAY_ONE = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class SuggestedRule:
    """Rule that ``support`` records support and none violates.

    ``log_chance`` is the log of its probability under independence.
    """

    constraint: RecordConstraint
    support: int
    log_chance: float
    kind: str


@dataclass(frozen=True, slots=True)
class _ColumnEvents:
    """Events of a column: ``codes`` (n,) are the event of each record, -1 for none; ``texts`` describe the events."""

    name: str
    codes: NDArray[np.int64]
    texts: tuple[str, ...]
    of_levels: bool


@dataclass(frozen=True, slots=True)
class _MinedRule:
    """Rule found by the search, before it is confirmed, with its support and the log of its probability under
    independence.
    """

    text: str
    support: int
    log_chance: float
    kind: str
    name: str


def mine_constraints(data: Microdata) -> tuple[SuggestedRule, ...]:
    """Return the rules that every record satisfies and chance does not explain: sums, then orders, then implications,
    each by probability.
    """
    # A backtick quotes names in conditions, so a name with one cannot be written.
    variables = [v for v in data.schema if not v.role.is_identifier and "`" not in v.name]
    parts = [part for variable in variables for part in _column_events(data, variable)]
    numeric = [(v, data.numbers(v.name)) for v in variables if not v.kind.has_levels]
    pairs = _event_pairs(parts)
    lone = (_mine_sums(numeric), _mine_orders(numeric), _mine_bounds(parts, numeric))
    tried = sum(looked for looked, _ in lone) + sum(pair.never.size for pair in pairs)
    limit = math.log(RATE) - math.log(max(tried, 1))
    sure = [one for _, found in lone for one in found if one.log_chance <= limit]
    sure += [one for pair in pairs for one in _implications(pair, limit)]
    order = {"sum": 0, "order": 1, "implication": 2, "bound": 2}
    sure.sort(key=lambda one: (order[one.kind], one.log_chance, one.text))
    return tuple(_confirm_rules(sure, data))


def _confirm_rules(sure: Sequence[_MinedRule], data: Microdata) -> Iterator[SuggestedRule]:
    """Yield the rules that no record violates when evaluated as constraints, under unique names."""
    names: set[str] = set()
    for one in sure[:MOST_SUGGESTED]:
        name = next(found for found in _rule_names(one.name) if found not in names)
        constraint = RecordConstraint(name, one.text, parse_condition(one.text), "data")
        # The search compares codes and doubles; a text that reads otherwise as a condition must not be suggested.
        if not violations(constraint, data, replace(data.schema, constraints=())).any():
            names.add(name)
            yield SuggestedRule(constraint, one.support, one.log_chance, one.kind)


def _rule_names(stem: str) -> Iterator[str]:
    """Yield names for a rule: the stem, then the stem with numbers."""
    plain = re.sub(r"\W+", "_", stem).strip("_") or "rule"
    yield plain
    yield from (f"{plain}_{number}" for number in itertools.count(2))


def quoted_column(name: str) -> str:
    """Return a column's name as conditions write it, in backticks where it needs them."""
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else f"`{name}`"


def _level_text(level: str) -> str:
    return f'"{level}"' if "'" in level else f"'{level}'"


def _number_text(number: float, variable: Variable) -> str:
    """Return a number or a date as conditions write it."""
    if variable.kind is Kind.DATE:
        return f"'{_DAY_ONE + timedelta(days=int(number))}'"
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(float(number))


def _column_events(data: Microdata, variable: Variable) -> Iterator[_ColumnEvents]:
    """Yield the events of a column: its levels, whether a number is 0, and whether there is a value."""
    name, said = variable.name, quoted_column(variable.name)
    missing = data.missing_mask(name)
    if missing.any():
        yield _ColumnEvents(
            name, (~missing).astype(np.int64), (f"{said} is missing", f"{said} is present"), of_levels=False
        )
    if variable.kind.has_levels:
        levels = [str(level) for level in data.column(name).cat.categories]
        if 1 < len(levels) <= MOST_LEVELS and not any("'" in level and '"' in level for level in levels):
            codes = data.column(name).cat.codes.to_numpy().astype(np.int64)
            yield _ColumnEvents(name, codes, tuple(map(_level_text, levels)), of_levels=True)
    elif variable.kind is not Kind.DATE:
        numbers = data.numbers(name)
        if (numbers == 0).any() and (numbers != 0).any():
            codes = np.where(missing, -1, numbers != 0).astype(np.int64)
            yield _ColumnEvents(name, codes, (f"{said} = 0", f"{said} != 0"), of_levels=False)


def _event_text(part: _ColumnEvents, code: int) -> str:
    return f"{quoted_column(part.name)} = {part.texts[code]}" if part.of_levels else part.texts[code]


def _log_no_overlap(n: Floats | int, k: Floats | int, of: Floats | int) -> Floats:
    """Return log C(n - k, of) / C(n, of), the probability that none of ``of`` records is among k of n.

    -inf where they do not fit.
    """
    n, k, of = (np.asarray(x, dtype=np.float64) for x in (n, k, of))
    room = n - k - of
    with np.errstate(invalid="ignore"):
        # Fisher (1935): n_a records fulfil the left side, k of n the opposite of the right side, and none both.
        value = gammaln(n - k + 1) - gammaln(np.maximum(room, 0) + 1) - gammaln(n + 1) + gammaln(n - of + 1)
    return np.where(room < 0, -np.inf, value)


@dataclass(frozen=True, slots=True)
class _EventPairs:
    """Events of two columns: counts of each pair, mask of pairs that never occur, and the log probability of that under
    independence.
    """

    one: _ColumnEvents
    other: _ColumnEvents
    table: NDArray[np.int64]
    never: NDArray[np.bool_]
    log_chance: Floats

    @property
    def transposed(self) -> _EventPairs:
        return _EventPairs(self.other, self.one, self.table.T, self.never.T, self.log_chance.T)


def _event_pairs(parts: Sequence[_ColumnEvents]) -> list[_EventPairs]:
    """Return the event pairs of every two columns."""
    found = []
    for one, other in itertools.combinations(parts, 2):
        if one.name == other.name:
            continue
        both = (one.codes >= 0) & (other.codes >= 0)
        size = (len(one.texts), len(other.texts))
        table = np.bincount(one.codes[both] * size[1] + other.codes[both], minlength=size[0] * size[1]).reshape(size)
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        chance = _log_no_overlap(int(both.sum()), columns[None, :].astype(float), rows[:, None].astype(float))
        never = (table == 0) & (rows[:, None] > 0) & (columns[None, :] > 0)
        found.append(_EventPairs(one, other, table, never, chance))
    return found


def _implications(pair: _EventPairs, limit: float) -> Iterator[_MinedRule]:
    """Yield an implication for each event, in the direction that needs fewer rules to cover all pairs that surely never
    occur.
    """
    sure = pair.never & (pair.log_chance <= limit)
    if np.count_nonzero(sure.any(axis=0)) < np.count_nonzero(sure.any(axis=1)):
        pair, sure = pair.transposed, sure.T
    for code in np.flatnonzero(sure.any(axis=1)):
        never = np.flatnonzero(sure[code])
        yield _MinedRule(
            f"{_event_text(pair.one, int(code))} -> {_consequence_text(pair.other, never, pair.table[code] > 0)}",
            int(pair.table[code].sum()), float(pair.log_chance[code][never].max()), "implication", f"{pair.one.name}_{pair.other.name}",
        )  # fmt: skip


def _consequence_text(part: _ColumnEvents, never: NDArray[np.intp], seen: NDArray[np.bool_]) -> str:
    """Return the right side of an implication: the events that occur, or the negation of those that never do."""
    left = [code for code in range(len(part.texts)) if code not in never]
    if not part.of_levels:
        return part.texts[left[0]] if left else part.texts[int(never[0])]
    told = [code for code in left if seen[code]]
    # Positive only where every remaining level occurs: an unseen one is not known to be impossible.
    use, sign = (told, "=") if len(told) <= len(never) and len(told) == len(left) else (list(never), "!=")
    return f"{quoted_column(part.name)} {sign} {' | '.join(part.texts[code] for code in use)}"


def _mine_bounds(
    parts: Sequence[_ColumnEvents], numeric: Sequence[tuple[Variable, Floats]]
) -> tuple[int, list[_MinedRule]]:
    """Return the number of bounds examined, and those that records outside an event exceed."""
    tried, found = 0, []
    for variable, numbers in numeric:
        for part in parts:
            if part.name == variable.name:
                continue
            both = (part.codes >= 0) & ~np.isnan(numbers)
            values, codes = numbers[both], part.codes[both]
            if variable.kind is Kind.DATE and (values != np.floor(values)).any():
                continue
            ordered = np.sort(values)
            counts = np.bincount(codes, minlength=len(part.texts))
            for code in np.flatnonzero(counts):
                own = values[codes == code]
                smallest, largest = float(own.min()), float(own.max())
                low, high = round_outward(smallest, variable, down=True), round_outward(largest, variable, down=False)
                # The bound is the smallest value of the event's records, and k counts the records below it, so nothing
                # is lost by choosing it from the data.
                below = int(np.searchsorted(ordered, low, side="left"))
                above = len(ordered) - int(np.searchsorted(ordered, high, side="right"))
                tried += 2
                for beyond, sign, end in ((below, ">=", low), (above, "<=", high)):
                    if beyond and not (end == 0 and smallest == largest):
                        chance = float(_log_no_overlap(len(ordered), beyond, int(counts[code])))
                        text = f"{_event_text(part, int(code))} -> {quoted_column(variable.name)} {sign} {_number_text(end, variable)}"
                        found.append(
                            _MinedRule(text, int(counts[code]), chance, "bound", f"{part.name}_{variable.name}")
                        )
    return tried, found


def round_outward(number: float, variable: Variable, *, down: bool) -> float:
    """Return a number rounded outwards to two significant digits, or a date to the first of a month."""
    if variable.kind is Kind.DATE:
        day = _DAY_ONE + timedelta(days=int(number))
        first = day.replace(day=1)
        after = first if first == day or day.year == date.max.year else (first + timedelta(days=32)).replace(day=1)
        return float(((first if down else after) - _DAY_ONE).days)
    if not number or not math.isfinite(number):
        return number
    # Rounded, because an extreme is the value of one record.
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 1)
    if variable.kind is Kind.COUNT and step < 1:
        return number
    found = (math.floor(number / step + 1e-9) if down else math.ceil(number / step - 1e-9)) * step
    return float(f"{found:.12g}")


def _mine_orders(numeric: Sequence[tuple[Variable, Floats]]) -> tuple[int, list[_MinedRule]]:
    """Return the number of pairs examined, and those of one kind in which one column never exceeds the other."""
    tried, found = 0, []
    for (one, low), (other, high) in itertools.permutations(numeric, 2):
        if (one.kind is Kind.DATE) != (other.kind is Kind.DATE):
            continue
        tried += 1
        both = ~(np.isnan(low) | np.isnan(high))
        a, b = low[both], high[both]
        if len(a) and (a <= b).all() and not (a == b).all():
            text = f"{quoted_column(one.name)} <= {quoted_column(other.name)}"
            found.append(_MinedRule(text, len(a), log_chance_of_order(a, b), "order", f"{one.name}_{other.name}"))
    return tried, found


def log_chance_of_order(a: Floats, b: Floats) -> float:
    """Return the log of the share of permutations of b over the records, both (n,), for which a <= b throughout."""
    n = len(a)
    at_least = n - np.searchsorted(np.sort(b), np.sort(a)[::-1], side="left")
    # With a_(1) >= a_(2) >= ... and c_i the number of b at least a_(i): the product of (c_i - i + 1) / (n - i + 1).
    left = at_least - np.arange(n)
    return float(np.log(left).sum() - gammaln(n + 1)) if (left > 0).all() else -math.inf


def log_chance_of_equality(a: Floats) -> float:
    """Return the log of the share of permutations of a (n,) over the records that leave every value in place."""
    # The product of m_v! over the values v, m_v their counts, divided by n!.
    counts = np.unique(a, return_counts=True)[1]
    return float(gammaln(counts + 1.0).sum() - gammaln(len(a) + 1.0))


def _mine_sums(numeric: Sequence[tuple[Variable, Floats]]) -> tuple[int, list[_MinedRule]]:
    """Return the number of sums examined, and the columns that equal another, or a sum of two or three others, in every
    record.
    """
    columns = [(v, x) for v, x in numeric if v.kind is not Kind.DATE and np.nanmin(x) < np.nanmax(x)]
    sizes = (1, 2, 3) if len(columns) <= MOST_IN_SUMS else (1, 2)
    tried, found = 0, []
    for i, (variable, total) in enumerate(columns):
        others = [column for j, column in enumerate(columns) if j != i]
        told: list[set[str]] = []
        for size in sizes:
            for some in itertools.combinations(others, size):
                tried += 1
                names = {v.name for v, _ in some}
                # A longer sum that contains a found one only adds columns of zeros; of two equal columns one rule is
                # enough.
                if any(small <= names for small in told) or (size == 1 and variable.name > some[0][0].name):
                    continue
                found_here = _mine_sum(variable, total, some)
                if found_here is not None:
                    told.append(names)
                    found.append(found_here)
    return tried, found


def _mine_sum(variable: Variable, total: Floats, some: Sequence[tuple[Variable, Floats]]) -> _MinedRule | None:
    # Nearly all candidates fail within a few records.
    """Return the rule that a column is the sum of some others; None where it does not hold."""
    first = slice(0, 64)
    if (
        not _equals_sum(total[first], [x[first] for _, x in some]).all()
        or not _equals_sum(total, [x for _, x in some]).all()
    ):
        return None
    known = ~np.isnan(total + np.sum([x for _, x in some], axis=0))
    if not known.any() or any(not np.any(x[known]) for _, x in some):
        return None
    text = f"{quoted_column(variable.name)} = {' + '.join(quoted_column(v.name) for v, _ in some)}"
    # The least surprising of the columns: any of them could be the permuted one.
    chance = max(log_chance_of_equality(x[known]) for x in (total, *(x for _, x in some)))
    return _MinedRule(text, int(known.sum()), chance, "sum", f"{variable.name}_sum")


def _equals_sum(total: Floats, some: Sequence[Floats]) -> NDArray[np.bool_]:
    """Mark the records in which a total is the sum of others, up to the slack of constraints, or a value is missing."""
    size = np.abs(total) + np.sum(np.abs(some), axis=0)
    off = np.abs(total - np.sum(some, axis=0))
    return np.asarray((off <= (SLACK * size if len(some) > 1 else 0.0)) | np.isnan(off))

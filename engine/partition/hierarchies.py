"""Generalisation trees: which coarser node each value belongs to, level by level up to the root.

The geometric size of a node says how much of the root's breadth it covers: leaves have 0, and sizes do not fall towards
the root (Bloomston et al., "Measuring Data Quality for Project Lighthouse", §3.3.2). Sizes that are not given are
(values under the node - 1) / (values - 1), the normalised certainty penalty of a categorical value (Xu et al. 2006).

Labels of other tools are read too, with the values that they contain:

    [20, 30)  (20,30]  [20, 30[  20-29  20 to 29  <20  >=65  65+  [2020-01-01, 2020-01-31]  [small, large]  {a, b}

A label that is neither an interval nor a group, such as a node of a tree or ``*``, is kept as a label without contents.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.rows import distinct_codes
from ..data.schema import Kind
from ..wording import count_noun

EndParser = Callable[[str], float | None]

NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
DATE = r"\d{4}-\d{2}-\d{2}"
BRACKETS = re.compile(r"([\[(\]])\s*([^,;]+?)\s*[,;]\s*([^,;]+?)\s*([\])\[])")
RANGE = re.compile(rf"({DATE}|{NUMBER})\s*(?:-|\u2013|\.{{2,3}}|to)\s*({DATE}|{NUMBER})")
ONE_SIDED = re.compile(rf"(<=|>=|<|>|\u2264|\u2265)\s*({DATE}|{NUMBER})")
AND_MORE = re.compile(rf"({NUMBER})\s*\+")
GROUP = re.compile(r"\{(.*)\}")
UNBOUNDED = {"-inf": -math.inf, "-\u221e": -math.inf, "inf": math.inf, "+inf": math.inf, "\u221e": math.inf}
ROOT = "*"
# Widths and starts such as 0.1 are no exact binary fractions: a quotient this near to a whole number is one.
ROUNDING = 1e-9
LARGEST_EXACT = 2.0**53
"""Up to here every whole number is one of floating point."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two ends, each of which belongs to it or not.

    low, high: ends, infinite where open
    low_closed, high_closed: whether the end belongs to it
    """

    low: float
    high: float
    low_closed: bool = True
    high_closed: bool = True

    def contains(self, numbers: Floats) -> NDArray[np.bool_]:
        """Return which numbers (n,) lie in it."""
        above = numbers >= self.low if self.low_closed else numbers > self.low
        below = numbers <= self.high if self.high_closed else numbers < self.high
        return np.asarray(above & below)


def parse_interval(label: str, kind: Kind, levels: Sequence[str] = ()) -> Interval | None:
    """Parse a label as an interval of numbers, of days since 1970, or of ranks of ``levels``; None for other labels.

    ``20-29`` holds all that is below 30: whole ends are those of whole numbers.
    """
    read = _end_parser(kind, levels)
    if found := BRACKETS.fullmatch(label):
        low, high = read(found[2]), read(found[3])
        return None if low is None or high is None else Interval(low, high, found[1] == "[", found[4] == "]")
    if kind.has_levels:
        return None
    if found := RANGE.fullmatch(label):
        low, high = read(found[1]), read(found[2])
        if low is None or high is None:
            return None
        # Labels of whole ages hold fractions too: 29.5 is in "20-29".
        return Interval(low, high + 1, high_closed=False) if found[2].isdigit() else Interval(low, high)
    return _parse_one_sided(label, read)


def _parse_one_sided(label: str, read: EndParser) -> Interval | None:
    """Parse a label with one end, such as ``<20`` or ``65+``; None for other labels."""
    if found := AND_MORE.fullmatch(label):
        return Interval(float(found[1]), math.inf)
    if not (found := ONE_SIDED.fullmatch(label)) or (end := read(found[2])) is None:
        return None
    closed = found[1] not in ("<", ">")
    if found[1] in ("<", "<=", "\u2264"):
        return Interval(-math.inf, end, high_closed=closed)
    return Interval(end, math.inf, low_closed=closed)


def _end_parser(kind: Kind, levels: Sequence[str]) -> EndParser:
    """Return the function that parses an end of an interval of this kind."""
    if kind is Kind.ORDINAL:
        return {level: float(rank) for rank, level in enumerate(levels)}.get
    if kind.has_levels:
        return lambda text: None
    return _parse_day if kind is Kind.DATE else _parse_number


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(NUMBER, text) else UNBOUNDED.get(text)


def _parse_day(text: str) -> float | None:
    """Parse a date as days since 1970, or an infinite end; None for other text."""
    try:
        return float(np.datetime64(text, "D").astype(np.int64)) if re.fullmatch(DATE, text) else UNBOUNDED.get(text)
    except ValueError:
        return None


def format_label_number(number: float, *, dates: bool) -> str:
    """Format a number as labels write it; with ``dates`` it is days since 1970."""
    return str(np.datetime64(int(number), "D")) if dates else f"{number:.15g}"


def parse_group(label: str) -> tuple[str, ...]:
    """Parse a group, ``{a, b}``, and return its values; empty where the label is no group."""
    found = GROUP.fullmatch(label)
    return tuple(part.strip() for part in found[1].split(",")) if found else ()


def lies_outside_label(
    labels: NDArray[np.object_], original: Floats, kind: Kind, levels: Sequence[str] = ()
) -> NDArray[np.bool_]:
    """Return which of the original values, (n,), lie outside the interval or group that their label (n,) denotes.

    ``original`` are numbers, days since 1970, or codes of ``levels``. A missing value (NaN) lies outside of no label.
    """
    outside = np.zeros(len(labels), dtype=np.bool_)
    # Labels are few: each is parsed once.
    distinct, place = np.unique(labels.astype(str), return_inverse=True)
    for code, label in enumerate(distinct):
        rows = np.flatnonzero(place == code)
        inside = values_in_label(str(label), original[rows], kind, levels)
        if inside is not None:
            outside[rows] = ~inside & ~np.isnan(original[rows])
    return outside


def parse_single_number(label: str, kind: Kind) -> float | None:
    """Parse a label as one number, or as one day since 1970; None for other labels."""
    return _end_parser(kind, ())(label)


def values_in_label(label: str, values: Floats, kind: Kind, levels: Sequence[str]) -> NDArray[np.bool_] | None:
    """Return which values (k,) a label contains; None where it is neither an interval nor a group."""
    if (found := parse_interval(label, kind, levels)) is not None:
        return found.contains(values)
    group = parse_group(label)
    if kind.has_levels:
        codes: list[float | None] = [float(levels.index(one)) if one in levels else None for one in group]
    else:
        codes = [_end_parser(kind, levels)(one) for one in group]
    if not codes or None in codes:
        return None
    return np.isin(values, np.array(codes, dtype=np.float64))


@dataclass(frozen=True)
class Hierarchy:
    """A generalisation tree: the coarser nodes of each value, level by level up to the root.

    rows: for each value the value itself, its node at level 1, ..., the root, as ARX writes them
    sizes: geometric sizes of nodes by label; a label that stands at several levels is one node
    """

    rows: tuple[tuple[str, ...], ...]
    sizes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if the rows are no tree, or the sizes are no geometric sizes."""
        self._check_rows()
        self._check_tree()
        self._check_sizes()

    @classmethod
    def parse(cls, value: object) -> Hierarchy:
        """Read a tree from a recipe: a list of rows, or ``{ rows = [...], sizes = { node = 10 } }``.

        Raises ValueError.
        """
        table = value if isinstance(value, Mapping) else {"rows": value}
        if strange := set(table) - {"rows", "sizes"}:
            raise ValueError(f"unknown key {', '.join(sorted(map(str, strange)))}; known: rows, sizes")
        rows, sizes = table.get("rows"), table.get("sizes", {})
        if not isinstance(rows, (list, tuple)) or not all(isinstance(row, (list, tuple)) for row in rows):
            raise ValueError('must be rows of a value and its nodes up to the root, such as [["foo", "foobar", "*"]]')
        if not isinstance(sizes, Mapping) or not all(type(size) in (int, float) for size in sizes.values()):
            raise ValueError("sizes must be numbers by node, such as { foobar = 10 }")
        written = tuple(tuple(str(node) for node in row) for row in rows)
        return cls(written, {str(node): float(size) for node, size in sizes.items()})

    @property
    def written(self) -> Any:
        """Return what ``parse`` reads back to an equal tree."""
        rows = [list(row) for row in self.rows]
        return {"rows": rows, "sizes": dict(self.sizes)} if self.sizes else rows

    @property
    def values(self) -> tuple[str, ...]:
        """Return the leaves, in the order of the rows."""
        return tuple(row[0] for row in self.rows)

    @property
    def height(self) -> int:
        return len(self.rows[0]) - 1

    @property
    def root(self) -> str:
        return self.rows[0][-1]

    def _check_rows(self) -> None:
        """Raise ValueError if rows differ in length, a value is repeated, or there is no common root."""
        if not self.rows:
            raise ValueError("has no rows")
        if min(map(len, self.rows)) < 2 or len(set(map(len, self.rows))) > 1:
            raise ValueError("every row needs as many levels as the others: the value, its nodes, and the root")
        if len(set(self.values)) < len(self.rows):
            again = next(value for value in self.values if self.values.count(value) > 1)
            raise ValueError(f'"{again}" has {count_noun(self.values.count(again), "row")}')
        if len({row[-1] for row in self.rows}) > 1:
            raise ValueError("the last level must be one root for all values")

    def _check_tree(self) -> None:
        """Raise ValueError if a node lies under two others."""
        parent: dict[tuple[int, str], str] = {}
        for row in self.rows:
            for level, (node, above) in enumerate(pairwise(row)):
                if parent.setdefault((level, node), above) != above:
                    raise ValueError(f'"{node}" at level {level} lies under both "{parent[level, node]}" and "{above}"')

    def _check_sizes(self) -> None:
        """Raise ValueError if sizes name no node, fall towards the root, or do not begin with 0."""
        if strange := set(self.sizes) - {node for row in self.rows for node in row}:
            raise ValueError(f'sizes name "{min(strange)}", which is no node')
        size = self.node_sizes
        if size[0].any():
            raise ValueError("the size of a value must be 0; give sizes to the nodes above")
        if (np.diff(size, axis=0) < 0).any():
            level, row = np.argwhere(np.diff(size, axis=0) < 0)[0]
            raise ValueError(f'"{self.rows[row][level + 1]}" is smaller than "{self.rows[row][level]}" below it')
        if not size[-1].all():
            raise ValueError("the root must have a size above 0, or more than one value")

    @cached_property
    def node_numbers(self) -> Integers:
        """Return the number of the node of each value at each level, (height + 1, values)."""
        columns = [[row[level] for row in self.rows] for level in range(self.height + 1)]
        return np.stack([np.unique(column, return_inverse=True)[1] for column in columns])

    @cached_property
    def node_sizes(self) -> Floats:
        """Return the geometric size of the node of each value at each level, (height + 1, values)."""
        found = np.zeros(self.node_numbers.shape)
        for level, nodes in enumerate(self.node_numbers):
            share = (np.bincount(nodes)[nodes] - 1) / max(len(self.rows) - 1, 1)
            # Without a given size, the normalised certainty penalty of a category (Xu et al. 2006).
            found[level] = [self.sizes.get(row[level], s) for row, s in zip(self.rows, share, strict=True)]
        return found

    @cached_property
    def leaf_ranks(self) -> Integers:
        """Return the rank of each leaf, (values,), in an order in which the leaves of every node are neighbours."""
        first = [_first_place_of_node(nodes) for nodes in self.node_numbers[::-1]]
        return np.argsort(np.lexsort(tuple(first[::-1])))

    def rows_of_values(self, levels: Sequence[str]) -> Integers:
        """Return the row of each of these values. Raises ValueError with how many are not in the tree."""
        place = {value: row for row, value in enumerate(self.values)}
        if lacking := [level for level in levels if level not in place]:
            raise ValueError(f"{len(lacking)} of {len(levels)} values of the data are not in the tree")
        return np.array([place[level] for level in levels], dtype=np.int64)

    def common_levels(self, low: Integers, high: Integers) -> Integers:
        """Return the level of the lowest node over two leaves, given by row, (c,) each.

        The lowest node over a range of leaves is that over its two ends.
        """
        same = self.node_numbers[:, low] == self.node_numbers[:, high]
        # argmax finds the first level at which both agree; the root always does.
        return np.asarray(np.argmax(same, axis=0), dtype=np.int64)


def _first_place_of_node(nodes: Integers) -> Integers:
    """Return for each value the first place at which its node occurs, (values,)."""
    _, first, inverse = np.unique(nodes, return_index=True, return_inverse=True)
    return first[inverse]


def flat_hierarchy(values: Sequence[str]) -> Hierarchy:
    """Return the default tree: every value below one root, ``*`` unless a value has that name, whose size is 1."""
    root = ROOT
    # A value called "*" must not be taken for the root.
    while root in values:
        root += ROOT
    return Hierarchy(tuple((value, root) for value in values), {root: 1.0})


def interval_hierarchy(numbers: Floats, widths: Sequence[float], *, dates: bool = False) -> tuple[Hierarchy, Integers]:
    """Build the tree of intervals [a, a + w) at multiples of each width; return it and the row of each number.

    Each width must divide the next. The size of a node is its width over the range of the numbers, at most 1, which is
    the root's size. Dates are days since 1970, and labelled as dates.
    """
    for narrow, wide in pairwise(widths):
        if wide <= narrow or abs(wide / narrow - round(wide / narrow)) > ROUNDING:
            raise ValueError(f"each width must be a multiple of the previous one, not {wide:g} after {narrow:g}")
    distinct, inverse = np.unique(numbers, return_inverse=True)
    span = float(np.ptp(distinct)) or 1.0
    rows, sizes = [], {ROOT: 1.0}
    for number in distinct:
        nodes = _interval_path(number, widths, dates)
        sizes |= {node: min(width / span, 1.0) for node, width in zip(nodes, widths, strict=True)}
        rows.append((str(number), *nodes, ROOT))
    return Hierarchy(tuple(rows), sizes), inverse.astype(np.int64)


def _interval_path(number: float, widths: Sequence[float], dates: bool) -> list[str]:
    """Return the labels of the intervals that contain a number, one for each width."""
    nodes = []
    for width in widths:
        # Wider intervals are counted from the narrowest ones, so that rounding cannot put a number in a wide interval
        # that does not contain its narrow one.
        narrow = int(np.floor(number / widths[0] + ROUNDING))
        start = narrow // round(width / widths[0]) * width
        nodes.append(_interval_label(start, width, dates))
    return nodes


def _interval_label(start: float, width: float, dates: bool) -> str:
    return f"[{format_label_number(start, dates=dates)}, {format_label_number(start + width, dates=dates)})"


def interval_labels(
    numbers: Floats, widths: Sequence[float], level: int, *, dates: bool = False
) -> tuple[list[str], Integers]:
    """Return the labels at one level of ``interval_hierarchy``, ascending, and the label of each number, (n,)."""
    if level > len(widths):
        return [ROOT], np.zeros(len(numbers), dtype=np.int64)
    # The tree would have a row for each distinct number, which takes long for a continuous variable; the labels come
    # out the same.
    narrow = np.floor(numbers / widths[0] + ROUNDING)
    # Beyond 2^53 numbers of intervals are not exact as floats; ``interval_hierarchy`` counts them in Python's integers.
    if np.abs(narrow).max(initial=0.0) >= LARGEST_EXACT:
        tree, rows = interval_hierarchy(numbers, widths, dates=dates)
        return [row[level] for row in tree.rows], rows
    width = widths[level - 1]
    stretches = distinct_codes(np.floor_divide(narrow.astype(np.int64), round(width / widths[0])).astype(np.float64))
    starts = [int(stretch) * width for stretch in stretches.values]
    return [_interval_label(start, width, dates) for start in starts], stretches.codes.astype(np.int64)


def parse_arx_rows(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse the rows of a tree in ARX's layout: ``value;level 1;...;root``, one value a line, without a header."""
    return tuple(tuple(cell.strip() for cell in row) for row in csv.reader(io.StringIO(text), delimiter=";") if row)

"""What an intruder finds by each subset of what can be known: which knowledge makes the risk, and which variable to coarsen first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sfumato.engine.methods.outputs import LatticeOutputs
from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.rows import Row

from .tables import Column, Line, Table
from .words import interval, mark, number

Subset = frozenset[str]
FEW = 5
"""Variables whose subsets are all listed."""
LISTED = 3
"""Subsets of each size that are listed where there are more variables."""
NOTHING = "nothing"


@dataclass(frozen=True)
class KnowledgeLattice:
    """One use of a study that has an answer for every subset of its ``variables``.

    ``subsets`` are rows by measure and subset, ``each`` by measure and variable, ``single`` by measure; of the confidential data
    under True, of the release under False.
    """

    method: Method
    variables: tuple[str, ...]
    subsets: Mapping[tuple[bool, str, Subset], Row]
    each: Mapping[tuple[bool, str, str], Row]
    single: Mapping[tuple[bool, str], Row]

    @classmethod
    def of(cls, method: Method, rows: Iterable[Row]) -> KnowledgeLattice:
        """From the answers of one use; other rows play no part."""
        lattice = lattice_of(method)
        subsets: dict[tuple[bool, str, Subset], Row] = {}
        each: dict[tuple[bool, str, str], Row] = {}
        single: dict[tuple[bool, str], Row] = {}
        for row in rows:
            own = row.dataset == "confidential"
            if row.level is not None or row.draw is not None:
                continue
            if row.measure in (lattice.risk, *lattice.others) and lattice.subset in row.params:
                subsets[own, row.measure, frozenset(map(str, row.params[lattice.subset]))] = row
            elif row.measure in lattice.each and row.target:
                each[own, row.measure, row.target] = row
            else:
                single.setdefault((own, row.measure), row)
        variables = tuple(dict.fromkeys(name for _, _, name in each))
        return cls(method, variables, subsets, each, single)

    @property
    def lattice(self) -> LatticeOutputs:
        return lattice_of(self.method)

    def risk(self, subset: Iterable[str], *, own: bool = False, measure: str = "") -> Row | None:
        """The row of who knows these variables."""
        return self.subsets.get((own, measure or self.lattice.risk, frozenset(subset)))

    def value(self, subset: Iterable[str], *, own: bool = False, measure: str = "") -> str:
        row = self.risk(subset, own=own, measure=measure)
        return "-" if row is None else number(row.value)

    def words(self, subset: Iterable[str]) -> str:
        """The variables of a subset in the study's order; "nothing" without any."""
        chosen = frozenset(subset)
        return ", ".join(name for name in self.variables if name in chosen) or NOTHING

    @property
    def reason(self) -> str:
        """Why there is no number; empty where there are some."""
        row = self.single.get((False, self.lattice.risk)) or self.single.get((False, self.lattice.largest))
        return row.reason if row is not None and row.value is None else ""

    @property
    def strongest(self) -> Subset:
        """The subset that finds most in the release; all variables where that is not known."""
        row = self.single.get((False, self.lattice.largest))
        told = None if row is None or row.value is None else row.params.get(self.lattice.subset)
        return frozenset(self.variables if told is None else map(str, told))

    def sentences(self) -> str:
        """Who finds most, and what to coarsen first."""
        largest, first = (self.single.get((False, name)) for name in (self.lattice.largest, self.lattice.first))
        if largest is None or largest.value is None:
            return f"Not computed: {self.reason or 'there is no release'}"
        everything = self.value(self.variables)
        beside = "" if self.strongest == frozenset(self.variables) else f"; who knows all of them finds {everything}"
        own = "" if largest.baseline is None else f", of the confidential data {number(largest.baseline)}"
        said = f"Most is found by who knows {self.words(self.strongest)}: {number(largest.value)} {largest.unit}{own}{beside}."
        if first is None or first.value is None:
            return said
        return f"{said} Coarsen {first.target} first: without it nobody finds more than {number(first.value)}."

    def short(self) -> str:
        """The same in as few words as a line has room for."""
        largest, first = (self.single.get((False, name)) for name in (self.lattice.largest, self.lattice.first))
        if largest is None or largest.value is None or first is None or first.value is None:
            return self.sentences()
        said = f"Coarsen {first.target} first: then at most {number(first.value)}; most {number(largest.value)}, by {self.words(self.strongest)}"
        return said if self.strongest == frozenset(self.variables) else f"{said}; by all {self.value(self.variables)}"

    def variable_table(self) -> Table:
        """A line a variable: found by it alone, what is told of each, and the same of the confidential data on a page."""
        columns = [Column("variable", "variable"), Column("alone", "alone", align="right")]
        for own in (False, True):
            columns += [
                Column(f"{name} {own}", f"{self.method.output(name).title}{' (conf.)' if own else ''}", align="right", page=own,
                       full=f"{self.method.output(name).title}{', confidential' if own else ', release'}")
                for name in self.lattice.each
            ]  # fmt: skip
        lines: list[Line] = [
            [name, self.value([name]), *(self._each(own, measure, name) for own in (False, True) for measure in self.lattice.each)]
            for name in self.variables
        ]  # fmt: skip
        return Table(columns, lines, "What each variable makes of it")

    def _each(self, own: bool, measure: str, variable: str) -> str:
        row = self.each.get((own, measure, variable))
        return "-" if row is None else number(row.value)

    def subset_table(self) -> Table:
        """A line a subset, by how many variables it has: what is found in the release and in the confidential data.

        Of more than a few variables those subsets of each size that find most.
        """
        output = self.method.output
        others = [(name, output(name).title) for name in self.lattice.others]
        columns = [
            Column("known", "known", align="right"),
            *(Column(name, name) for name in self.variables),
            Column("risk", output(self.lattice.risk).title, align="right"),
            Column("interval", "interval", spare=1),
            Column("own", "confidential", align="right"),
            *(Column(name, title, align="right", spare=2) for name, title in others),
        ]
        lines: list[Line] = []
        for subset in self.listed():
            row = self.risk(subset)
            lines.append(
                [
                    str(len(subset)),
                    *(mark("pass") if name in subset else "" for name in self.variables),
                    self.value(subset),
                    interval(row.lower, row.upper) if row else "",
                    self.value(subset, own=True),
                    *(self.value(subset, measure=name) for name, _ in others),
                ]
            )
        all_of_them = len(self.variables) <= FEW
        return Table(
            columns, lines, "Every subset" if all_of_them else f"The {LISTED} subsets of each size that find most"
        )

    def listed(self) -> Sequence[Subset]:
        """The subsets that a table shows, smaller ones first, those that find more before others of their size."""
        found: list[Subset] = []
        for size in range(len(self.variables) + 1):
            own = [frozenset(one) for one in combinations(self.variables, size)]
            own.sort(key=lambda one: -(self._number(one) or 0.0))
            found += own if len(self.variables) <= FEW else own[:LISTED]
        return found

    def _number(self, subset: Subset) -> float | None:
        row = self.risk(subset)
        return None if row is None else row.value


def lattice_of(method: Method) -> LatticeOutputs:
    """The lattice that a study declares. It has one where this is asked."""
    assert method.study.lattice is not None
    return method.study.lattice


def lattice_parts(method: Method, rows: Iterable[Row]) -> list[Table | str]:
    """What one use of such a study says: in sentences, of each variable, and of subsets."""
    found = KnowledgeLattice.of(method, rows)
    return [found.sentences(), *([found.variable_table(), found.subset_table()] if found.variables else [])]

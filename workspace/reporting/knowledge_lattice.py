"""Disclosure risk by each subset of the variables that an intruder may know, and which variable to coarsen first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sfumato.engine.methods.outputs import LatticeOutputs
from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import join_names, record_noun

from .tables import DisplayColumn, DisplayRow, DisplayTable
from .words import interval_text, number, sign_for

Subset = frozenset[str]
MOST_VARIABLES_LISTED = 5
"""Most variables of which all subsets are listed."""
SUBSETS_OF_EACH_SIZE = 3
"""Number of subsets of each size that are listed where there are more variables."""
NO_VARIABLES = "nothing"
VARIABLE_HEADS = {"alone": "gain from it alone", "loss": "loss without it"}
"""Heads of what a variable finds by itself, and of what the best intruder loses without it."""


@dataclass(frozen=True)
class KnowledgeLattice:
    """Results of a study that has a risk for every subset of its variables.

    method: the study
    variables: variables that an intruder may know
    by_subset: rows by (confidential, measure, subset)
    by_variable: rows by (confidential, measure, variable)
    by_measure: rows by (confidential, measure)
    """

    method: Method
    variables: tuple[str, ...]
    by_subset: Mapping[tuple[bool, str, Subset], Row]
    by_variable: Mapping[tuple[bool, str, str], Row]
    by_measure: Mapping[tuple[bool, str], Row]

    @classmethod
    def from_rows(cls, method: Method, rows: Iterable[Row]) -> KnowledgeLattice:
        """Collect the rows of one use of a study; other rows are ignored."""
        lattice = declared_lattice(method)
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
        """Return the study's declaration of the lattice."""
        return declared_lattice(self.method)

    def risk_row(self, subset: Iterable[str], *, own: bool = False, measure: str = "") -> Row | None:
        """Return the row of an intruder who knows exactly these variables; None without one."""
        return self.by_subset.get((own, measure or self.lattice.risk, frozenset(subset)))

    def risk_value(self, subset: Iterable[str], *, own: bool = False, measure: str = "") -> float | None:
        """Return the risk from an intruder who knows exactly these variables; None where it is unknown."""
        row = self.risk_row(subset, own=own, measure=measure)
        return None if row is None else row.value

    def gain_alone(self, variable: str, *, own: bool = False) -> float | None:
        """Return what knowing a variable alone finds beyond knowing nothing; None where it is unknown."""
        alone, none = self.risk_value([variable], own=own), self.risk_value([], own=own)
        return None if alone is None or none is None else alone - none

    def loss_without(self, variable: str, *, own: bool = False) -> float | None:
        """Return by how much the largest risk falls where a variable is not known; None where it is unknown."""
        largest = self._largest_value(self.variables, own=own)
        left = self._largest_value([one for one in self.variables if one != variable], own=own)
        return None if largest is None or left is None else largest - left

    def _largest_value(self, variables: Sequence[str], *, own: bool) -> float | None:
        """Return the largest risk from who knows some of these variables; None where it is unknown."""
        every = [one for size in range(len(variables) + 1) for one in combinations(variables, size)]
        values = [value for one in every if (value := self.risk_value(one, own=own)) is not None]
        return max(values, default=None)

    def risk_text(self, subset: Iterable[str], *, own: bool = False, measure: str = "") -> str:
        """Return the risk from an intruder who knows exactly these variables; a dash where it is unknown."""
        row = self.risk_row(subset, own=own, measure=measure)
        return "-" if row is None else number(row.value)

    def subset_text(self, subset: Iterable[str]) -> str:
        """Return the variables of a subset in the study's order; "nothing" for the empty one."""
        chosen = frozenset(subset)
        return ", ".join(name for name in self.variables if name in chosen) or NO_VARIABLES

    @property
    def missing_reason(self) -> str:
        """Return why the risk was not computed; empty where it was."""
        row = self.by_measure.get((False, self.lattice.risk)) or self.by_measure.get((False, self.lattice.largest))
        return row.reason if row is not None and row.value is None else ""

    @property
    def strongest_subset(self) -> Subset:
        """Return the subset with the highest risk in the release; all variables where that is unknown."""
        row = self.by_measure.get((False, self.lattice.largest))
        told = None if row is None or row.value is None else row.params.get(self.lattice.subset)
        return frozenset(self.variables if told is None else map(str, told))

    def summary_text(self) -> str:
        """Return in sentences which knowledge has the highest risk, and which variable to coarsen first."""
        largest, first = (self.by_measure.get((False, name)) for name in (self.lattice.largest, self.lattice.first))
        if largest is None or largest.value is None:
            return f"Not computed: {self.missing_reason or 'there is no release'}"
        everything = self.risk_text(self.variables)
        beside = (
            "" if self.strongest_subset == frozenset(self.variables) else f"; who knows all of them finds {everything}"
        )
        own = "" if largest.baseline is None else f", of the confidential data {number(largest.baseline)}"
        said = f"Most is found by who knows {self.subset_text(self.strongest_subset)}: {number(largest.value)} {largest.unit}{own}{beside}."
        if first is None or first.value is None:
            return said
        return f"{said} Coarsen {first.target} first: without it no intruder finds more than {number(first.value)}."

    def advice_text(self, records: int | None = None) -> str:
        """Return what to coarsen first, who finds most, and which variables add nothing; ``records`` are those of the data."""
        largest, first = (self.by_measure.get((False, name)) for name in (self.lattice.largest, self.lattice.first))
        if largest is None or largest.value is None:
            return self.summary_text()
        noun = record_noun(records) if records is not None else largest.unit or "records"
        of = f" of {records:,}" if records else ""
        by = join_names([name for name in self.variables if name in self.strongest_subset]) or NO_VARIABLES
        most = f"Most are found by who knows {by}: {number(largest.value)}{of} {noun}"
        if self.strongest_subset != frozenset(self.variables):
            most += f"; who goes by all {len(self.variables)} variables finds {self.risk_text(self.variables)}"
        most += "."
        if first is None or first.value is None:
            return most
        advice = f"Coarsen {first.target} first: then at most {number(first.value)} {noun} are found on average."
        useless = [name for name in self.variables if self.loss_without(name) == 0]
        nothing = f" Without {join_names(useless)} the intruder finds as many." if useless else ""
        return f"{advice} {most}{nothing}"

    def variable_table(self) -> DisplayTable:
        """Return a line for each variable: its gain alone, the loss without it, and its other measures.

        On a page those of the confidential data follow.
        """
        columns = [DisplayColumn("variable", "variable")]
        for own in (False, True):
            beside, whose = (" (conf.)", "confidential") if own else ("", "release")
            named = {**VARIABLE_HEADS, **{name: self.method.output(name).title for name in self.lattice.each}}
            columns += [
                DisplayColumn(f"{name} {own}", f"{title}{beside}", align="right", page_only=own,
                       full_title=f"{title}, {whose}")
                for name, title in named.items()
            ]  # fmt: skip
        lines: list[DisplayRow] = [
            [name, *(text for own in (False, True) for text in self._variable_cells(own, name))]
            for name in self.variables
        ]
        return DisplayTable(columns, lines, "What each variable makes of it")

    def _variable_cells(self, own: bool, variable: str) -> list[str]:
        """Return the cells of a variable: gain alone, loss without it, and the other measures."""
        told = (self.gain_alone(variable, own=own), self.loss_without(variable, own=own))
        return [*map(number, told), *(self._variable_value(own, measure, variable) for measure in self.lattice.each)]

    def _variable_value(self, own: bool, measure: str, variable: str) -> str:
        """Return a measure of one variable as text; a dash where it is unknown."""
        row = self.by_variable.get((own, measure, variable))
        return "-" if row is None else number(row.value)

    def subset_table(self) -> DisplayTable:
        """Return a line for each listed subset, by size: its risk in the release and in the confidential data."""
        output = self.method.output
        others = [(name, output(name).title) for name in self.lattice.others]
        columns = [
            DisplayColumn("known", "known", align="right"),
            *(DisplayColumn(name, name) for name in self.variables),
            DisplayColumn("risk", output(self.lattice.risk).title, align="right"),
            DisplayColumn("interval", "interval", drop_order=1),
            DisplayColumn("own", "confidential", align="right"),
            *(DisplayColumn(name, title, align="right", drop_order=2) for name, title in others),
        ]
        lines: list[DisplayRow] = []
        for subset in self.listed_subsets():
            row = self.risk_row(subset)
            lines.append(
                [
                    str(len(subset)),
                    *(sign_for("pass") if name in subset else "" for name in self.variables),
                    self.risk_text(subset),
                    interval_text(row.lower, row.upper) if row else "",
                    self.risk_text(subset, own=True),
                    *(self.risk_text(subset, measure=name) for name, _ in others),
                ]
            )
        all_of_them = len(self.variables) <= MOST_VARIABLES_LISTED
        return DisplayTable(
            columns,
            lines,
            "Every subset" if all_of_them else f"The {SUBSETS_OF_EACH_SIZE} subsets of each size that find most",
        )

    def listed_subsets(self) -> Sequence[Subset]:
        """Return the subsets that a table lists, by size, and by falling risk within a size."""
        found: list[Subset] = []
        for size in range(len(self.variables) + 1):
            own = [frozenset(one) for one in combinations(self.variables, size)]
            own.sort(key=lambda one: -(self._risk_value(one) or 0.0))
            # the number of subsets doubles with each variable
            found += own if len(self.variables) <= MOST_VARIABLES_LISTED else own[:SUBSETS_OF_EACH_SIZE]
        return found

    def _risk_value(self, subset: Subset) -> float | None:
        """Return the risk by a subset in the release; None where it is unknown."""
        row = self.risk_row(subset)
        return None if row is None else row.value


def declared_lattice(method: Method) -> LatticeOutputs:
    """Return the lattice that a study declares; the study must have one."""
    assert method.study.lattice is not None
    return method.study.lattice


def lattice_parts(method: Method, rows: Iterable[Row]) -> list[DisplayTable | str]:
    """Return the summary and the tables of one use of a study."""
    found = KnowledgeLattice.from_rows(method, rows)
    return [found.summary_text(), *([found.variable_table(), found.subset_table()] if found.variables else [])]

"""A study of every subset of the variables that an intruder may know, as the screen shows it: from subset to subset, a variable more or less at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from textual.content import Content

from sfumato.workspace.plots.figure import Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.knowledge_lattice import KnowledgeLattice, Subset
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.reporting.words import interval_text, number, sign_for

from ..session.export import ExportTable
from .study_views import Numbers, StudyView

HEADS = ("variables known", "number known", "measure", "release", "lower", "upper", "confidential")


@dataclass(frozen=True)
class LatticeView(StudyView):
    """The subset of ``known`` variables, what it finds, and what each variable would change."""

    found: KnowledgeLattice
    known: Subset

    @classmethod
    def of(cls, found: KnowledgeLattice) -> LatticeView:
        return cls(found, found.strongest_subset)

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.found.method.title

    @property
    def measures(self) -> Sequence[str]:
        return (self.found.lattice.risk, *self.found.lattice.others)

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        return self.measures

    @property
    def answer(self) -> Content | None:
        """What to coarsen first, and who finds most."""
        return Content(self.found.short_summary_text())

    def turned(self, place: float) -> LatticeView:
        """With the variable at this place of the list known, or no longer."""
        return replace(self, known=self.known ^ {self.found.variables[int(place)]})

    def drawn(self, picture: int) -> Panel:
        """The most and the least that subsets of each size find, and where the known variables stand."""
        measure, sizes = self.measures[picture], range(len(self.found.variables) + 1)
        series = []
        for own, whose in ((True, "confidential"), (False, "release")):
            bands = [[v for v in self._of_size(size, measure, own=own) if v is not None] for size in sizes]
            told = [(size, values) for size, values in zip(sizes, bands, strict=True) if values]
            x = [float(size) for size, _ in told]
            for word, pick in (("most", max), ("least", min)):
                series.append(Series(f"{whose}, {word}", x, [pick(values) for _, values in told], thin=False))
        row = self.found.risk_row(self.known, measure=measure)
        if row is not None and row.value is not None:
            series.append(Series("known now", [float(len(self.known))], [row.value], marker="points"))
        return Panel("", tuple(one for one in series if one.x.size), self._axis, self.pictures[picture])

    @property
    def _axis(self) -> str:
        axis = self.found.method.study.axis
        return axis.label if axis else ""

    def _of_size(self, size: int, measure: str, *, own: bool) -> list[float | None]:
        rows = (self.found.risk_row(one, own=own, measure=measure) for one in combinations(self.found.variables, size))
        return [row.value for row in rows if row is not None]

    def numbers(self, picture: int) -> Numbers:
        """A row a variable: whether it is known, what is found once it is turned, and what is told of it."""
        each = [(name, self.found.method.output(name).title) for name in self.found.lattice.each]
        columns = (
            DisplayColumn("known", "known", 5),
            DisplayColumn("variable", "variable", 16, grow_order=1),
            DisplayColumn("turned", "if turned", 10, "right"),
            DisplayColumn("change", "change", 10, "right"),
            DisplayColumn("turned own", "confidential", 13, "right"),
            *(
                DisplayColumn(name, title, 9, "right", drop_order=len(each) - place)
                for place, (name, title) in enumerate(each)
            ),
        )
        rows = [self._row(name, self.measures[picture]) for name in self.found.variables]
        return Numbers(columns, rows, [float(i) for i in range(len(rows))])

    def _row(self, name: str, measure: str) -> dict[str, object]:
        other = self.known ^ {name}
        now, then = self.found.risk_row(self.known, measure=measure), self.found.risk_row(other, measure=measure)
        change = ""
        if now is not None and then is not None and now.value is not None and then.value is not None:
            change = f"{then.value - now.value:+.4g}"
        told = {one: self.found.by_variable.get((False, one, name)) for one in self.found.lattice.each}
        return {
            "known": sign_for("pass") if name in self.known else "",
            "variable": name,
            "turned": self.found.risk_text(other, measure=measure),
            "change": change,
            "turned own": self.found.risk_text(other, own=True, measure=measure),
            **{one: "-" if row is None else number(row.value) for one, row in told.items()},
        }

    def reading(self, picture: int, x: float) -> str:
        """What is found by who knows these variables, wherever the cursor is."""
        measure = self.measures[picture]
        row = self.found.risk_row(self.known, measure=measure)
        band = interval_text(row.lower, row.upper) if row is not None else ""
        own = self.found.risk_text(self.known, own=True, measure=measure)
        said = f"known: {self.found.subset_text(self.known)}   {self.found.method.output(measure).title} "
        return f"{said}{self.found.risk_text(self.known, measure=measure)}{f' ({band})' if band else ''}   confidential {own}"

    def lines(self, picture: int) -> ExportTable:
        measure, rows = self.measures[picture], []
        for size in range(len(self.found.variables) + 1):
            for one in combinations(self.found.variables, size):
                row, own = (
                    self.found.risk_row(one, measure=measure),
                    self.found.risk_row(one, own=True, measure=measure),
                )
                told = (None, None, None) if row is None else (row.value, row.lower, row.upper)
                rows.append((self.found.subset_text(one), size, measure, *told, own.value if own else None))
        return HEADS, rows

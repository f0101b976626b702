"""View of a study of every subset of the variables that an intruder may know, one variable more or less at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from textual.content import Content

from sfumato.engine.wording import record_noun
from sfumato.workspace.plots.figure import Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.knowledge_lattice import VARIABLE_HEADS, KnowledgeLattice, Subset
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.reporting.words import interval_text, number, sign_for

from ..parts.variable_titles import title_variable
from ..session.export import ExportTable
from .study_views import StudyTable, StudyView, question_text

HEADS = ("variables known", "number known", "measure", "release", "lower", "upper", "confidential")


@dataclass(frozen=True)
class LatticeView(StudyView):
    """View of one subset of known variables: its risk, and the change if a variable is added or removed.

    lattice: results by subset
    known: the subset
    records: number of confidential records; None where it is unknown
    titles: titles of variables, by name
    """

    lattice: KnowledgeLattice
    known: Subset
    records: int | None = None
    titles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_lattice(
        cls, found: KnowledgeLattice, records: int | None = None, titles: Mapping[str, str] | None = None
    ) -> LatticeView:
        """Start with the subset of the strongest intruder."""
        return cls(found, found.strongest_subset, records, titles or {})

    @property
    def question(self) -> str:
        return question_text(self.lattice.method.key, {}, self.titles)

    @property
    def settings_text(self) -> str:
        return ""

    def picture_title(self, picture: int) -> str:
        """Return what the picture counts, in words."""
        return f"{record_noun(self.records)} {self.pictures[picture]}"

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.lattice.method.title

    @property
    def measure_names(self) -> Sequence[str]:
        return (self.lattice.lattice.risk, *self.lattice.lattice.others)

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        return [self.lattice.method.output(name).title for name in self.measure_names]

    @property
    def answer_content(self) -> Content | None:
        """Return which variable to coarsen first, and which subset has the highest risk."""
        return Content(self.lattice.advice_text(self.records))

    def toggle_variable(self, place: float) -> LatticeView:
        """Return the view after switching whether the variable at this place of the list is known."""
        return replace(self, known=self.known ^ {self.lattice.variables[int(place)]})

    def panel_at(self, picture: int) -> Panel:
        """Return the highest and the lowest risk among subsets of each size, and the point of the known variables."""
        measure, sizes = self.measure_names[picture], range(len(self.lattice.variables) + 1)
        series = []
        # There are 2^k subsets of k variables, so each size is shown by its two extremes.
        for own, whose in ((True, "confidential"), (False, "release")):
            bands = [[v for v in self._values_of_size(size, measure, own=own) if v is not None] for size in sizes]
            told = [(size, values) for size, values in zip(sizes, bands, strict=True) if values]
            x = [float(size) for size, _ in told]
            for word, pick in (("most", max), ("least", min)):
                series.append(Series(f"{whose}, {word}", x, [pick(values) for _, values in told], thin=False))
        row = self.lattice.risk_row(self.known, measure=measure)
        if row is not None and row.value is not None:
            series.append(Series("known now", [float(len(self.known))], [row.value], marker="points"))
        return Panel("", tuple(one for one in series if one.x.size), self._axis_label, self.picture_title(picture))

    @property
    def _axis_label(self) -> str:
        """Return the label of the study's axis."""
        axis = self.lattice.method.study.axis
        return f"{axis.meaning}, of {len(self.lattice.variables)}" if axis else ""

    def _values_of_size(self, size: int, measure: str, *, own: bool) -> list[float | None]:
        """Return the risks of all subsets of a size; ``own`` is of the confidential data."""
        rows = (
            self.lattice.risk_row(one, own=own, measure=measure) for one in combinations(self.lattice.variables, size)
        )
        return [row.value for row in rows if row is not None]

    def study_table(self, picture: int) -> StudyTable:
        """Return a row for each variable: whether it is known, the risk after a switch, and its own measures."""
        each = [(name, self.lattice.method.output(name).title) for name in self.lattice.lattice.each]
        columns = (
            DisplayColumn("known", "known", 5),
            DisplayColumn("variable", "variable", 16, grow_order=1),
            DisplayColumn("turned", "found if switched", 17, "right"),
            DisplayColumn("change", "change", 10, "right"),
            *(DisplayColumn(name, title, len(title) + 1, "right") for name, title in VARIABLE_HEADS.items()),
            DisplayColumn("turned own", "confidential data", 17, "right", drop_order=len(each) + 1),
            *(
                DisplayColumn(name, title, len(title) + 1, "right", drop_order=len(each) - place)
                for place, (name, title) in enumerate(each)
            ),
        )
        rows = [self._variable_row(name, self.measure_names[picture]) for name in self.lattice.variables]
        return StudyTable(columns, rows, [float(i) for i in range(len(rows))])

    def _variable_row(self, name: str, measure: str) -> dict[str, object]:
        """Return the cells of a variable's row."""
        other = self.known ^ {name}
        now, then = (self.lattice.risk_value(one, measure=measure) for one in (self.known, other))
        told = {one: self.lattice.by_variable.get((False, one, name)) for one in self.lattice.lattice.each}
        return {
            "known": sign_for("pass") if name in self.known else "",
            "variable": title_variable(name, self.titles),
            "turned": self.lattice.risk_text(other, measure=measure),
            "change": "" if now is None or then is None else f"{then - now:+.4g}",
            "alone": number(self.lattice.gain_alone(name)),
            "loss": number(self.lattice.loss_without(name)),
            "turned own": self.lattice.risk_text(other, own=True, measure=measure),
            **{one: "-" if row is None else number(row.value) for one, row in told.items()},
        }

    def reading_at(self, picture: int, x: float) -> str:
        """Describe the risk from an intruder who knows these variables, wherever the cursor is."""
        measure = self.measure_names[picture]
        row = self.lattice.risk_row(self.known, measure=measure)
        band = interval_text(row.lower, row.upper) if row is not None else ""
        own = self.lattice.risk_text(self.known, own=True, measure=measure)
        said = f"known: {self.lattice.subset_text(self.known)}   {self.lattice.method.output(measure).title} "
        return f"{said}{self.lattice.risk_text(self.known, measure=measure)}{f' ({band})' if band else ''}   confidential data {own}"

    def export_rows(self, picture: int) -> ExportTable:
        """Return a row for each subset, the smallest first."""
        measure, rows = self.measure_names[picture], []
        for size in range(len(self.lattice.variables) + 1):
            for one in combinations(self.lattice.variables, size):
                row, own = (
                    self.lattice.risk_row(one, measure=measure),
                    self.lattice.risk_row(one, own=True, measure=measure),
                )
                told = (None, None, None) if row is None else (row.value, row.lower, row.upper)
                rows.append((self.lattice.subset_text(one), size, measure, *told, own.value if own else None))
        return HEADS, rows

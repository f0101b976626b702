"""Figures that a paper has published, as a recipe quotes them: which row of a run each belongs beside.

    [[published]]
    source = "Guo & Hu, Table 4"
    dataset = "synthetic"
    value = "risk.identification.expected_match_risk"
    figure = 125.59

Several figures of one source may share a table: ``figures`` lists them, and what the table says holds for each.

Beside what runs found they make one table for every source that the recipes quote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

from ..data.declaration import Param, Section, check_keys, keys_of
from ..data.schema import Origin, Schema
from ..errors import BadInput, suggestion
from ..methods.registry import Method
from ..methods.rows import Row

if TYPE_CHECKING:
    from ..methods.rows import Row

CONFIDENTIAL = "confidential"
MISSING = "the run has no such row"
Series = tuple[Any, ...]


def _source(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} must be text")
    if not value.strip():
        raise ValueError('must say where the figure stands, such as "Guo & Hu, Table 4"')
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Published(Section):
    """A published number: of which measure, on which dataset, with which parameters, and where it stands printed.

    It belongs beside every average of its measure, dataset, target and level whose parameters include ``params``.
    """

    source: Annotated[str, Param('where the figure stands, such as "Guo & Hu, Table 4"', parse=_source)]
    value: Annotated[str, Param("the measure that it is a figure of")]
    dataset: Annotated[Origin, Param("the table that it was measured on")]
    target: Annotated[str, Param("the variable that it is of")] = ""
    level: Annotated[float | None, Param("the level of a study that it was published for")] = None
    params: Annotated[Mapping[str, Any], Param("settings of the measure that it was published for")] = field(
        default_factory=dict
    )
    figure: Annotated[float, Param("the number as published")]

    @classmethod
    def from_table(
        cls, table: Mapping[str, Any], place: str, values: Mapping[str, Method], schema: Schema
    ) -> Published:
        """The figure that a recipe quotes; its value must be one of ``values``, by key. Raises BadInput."""
        found = cls.read_section(table, place)
        if found.value not in values:
            hint = suggestion(found.value, list(values)) or f"; measured: {', '.join(values) or 'nothing'}"
            raise BadInput(f"{place}.value", f'"{found.value}" is not measured by this recipe{hint}')
        if found.level is None and _swept(values[found.value]):
            raise BadInput(f"{place}.level", "a figure of a study needs the level that it was published for")
        if found.target:
            schema.require(found.target, f"{place}.target")
        return found

    def matches(self, row: Row) -> bool:
        """Whether it belongs beside this row."""
        return (
            row.draw is None
            and row.key == self.value
            and row.dataset == self.dataset
            and row.target == self.target
            and row.level == self.level
            and included(self.params, row.params)
        )


def read_published(
    tables: Sequence[Mapping[str, Any]], methods: Sequence[Method], schema: Schema
) -> tuple[Published, ...]:
    """The figures of a recipe's ``[[published]]`` tables, in their order. Raises BadInput."""
    values = {f"{method.key}.{output.name}": method for method in methods for output in method.results}
    return tuple(
        Published.from_table(one, place, values, schema)
        for i, table in enumerate(tables)
        for one, place in _spread(table, f"published[{i}]")
    )


def figure_beside(row: Row, published: Sequence[Published]) -> float | None:
    """The first published figure that belongs beside a row; None when there is none."""
    return next((one.figure for one in published if one.matches(row)), None)


def _swept(method: Method) -> bool:
    """Whether its numbers stand at levels alone: those of a study that sums nothing up, or combines releases level by level."""
    return method.family == "studies" and (method.study.summarise is None or method.combine is not None)


def _spread(table: Mapping[str, Any], place: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The table itself, or each of its ``figures`` with what they share."""
    if "figures" not in table:
        yield table, place
        return
    figures = table["figures"]
    if not isinstance(figures, list) or not all(isinstance(one, Mapping) for one in figures):
        raise BadInput(f"{place}.figures", "must be a list of tables, such as [{ figure = 125.59 }]")
    shared = {key: value for key, value in table.items() if key != "figures"}
    check_keys(shared, keys_of(Published), place)
    for j, one in enumerate(figures):
        own = f"{place}.figures[{j}]"
        figure, params, added = {**shared, **one}, shared.get("params"), one.get("params")
        if isinstance(params, Mapping) and isinstance(added, Mapping):
            figure["params"] = {**params, **added}
        yield figure, own


def included(wanted: object, found: object) -> bool:
    """Whether ``found`` has what is ``wanted``: equal values, and of tables at least the wanted keys."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(k in found and included(v, found[k]) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same = isinstance(found, (list, tuple)) and len(found) == len(wanted)
        return same and all(map(included, wanted, found))  # type: ignore[call-overload]
    return bool(wanted == found) and isinstance(wanted, bool) == isinstance(found, bool)


@dataclass(frozen=True, slots=True)
class Findings:
    """What one run brings: its name in the tables, the figures its recipe quotes, and its rows."""

    name: str
    published: Sequence[Published]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Cell:
    """A run's own value and the published one; None where there is none."""

    ours: float | None = None
    published: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of the published."""
        return ratio(self.ours, self.published)


@dataclass(frozen=True, slots=True)
class Line:
    """One number of the source: what it is, and a cell for the confidential data and for every run's release."""

    value: str
    target: str
    level: float | None
    cells: tuple[Cell, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The figures of one source; ``columns`` name the cells of every line, the confidential data first."""

    source: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]


def ratio(ours: float | None, published: float | None) -> float | None:
    """Ours as a multiple of the published; None where either is missing or the published one is 0."""
    return None if ours is None or not published else ours / published


def source_tables(runs: Sequence[Findings]) -> tuple[SourceTable, ...]:
    """A table for every source in the order in which the runs quote them, its lines in the order of its figures."""
    columns = (CONFIDENTIAL, *(run.name for run in runs))
    averages = [Findings(run.name, run.published, [row for row in run.rows if row.draw is None]) for run in runs]
    sources = dict.fromkeys(figure.source for run in runs for figure in run.published)
    return tuple(SourceTable(source, columns, tuple(_lines(_of_source(source, averages)))) for source in sources)


def _of_source(source: str, runs: Sequence[Findings]) -> list[Findings]:
    return [Findings(run.name, [one for one in run.published if one.source == source], run.rows) for run in runs]


def _lines(runs: Sequence[Findings]) -> Iterator[Line]:
    rows = [{(_side(row), row.series): row for row in run.rows} for run in runs]
    for series in _matched(runs):
        own = [found[CONFIDENTIAL, series] for found in rows if (CONFIDENTIAL, series) in found]
        quoted = [figure for run in runs for figure in run.published if figure.dataset == CONFIDENTIAL]
        cells = [_cell(own[0] if own else None, quoted)]
        cells += [_cell(found.get(("", series)), run.published) for run, found in zip(runs, rows, strict=True)]
        same = [row for found in rows for (_, key), row in found.items() if key == series]
        note = next((row.reason for row in same if row.value is None), "")
        yield Line(same[0].key, same[0].target, same[0].level, tuple(cells), same[0].params, note)
    yield from _unmatched(runs)


def _side(row: Row) -> str:
    return CONFIDENTIAL if row.dataset == CONFIDENTIAL else ""


def _matched(runs: Sequence[Findings]) -> Iterator[Series]:
    """The series that some figure belongs beside, each once: the first of every figure in their order, then the second."""
    found = [
        [row.series for row in _rows_for(figure, run, runs) if figure.matches(row)]
        for run in runs
        for figure in run.published
    ]
    yield from dict.fromkeys(series for each in zip_longest(*found) for series in each if series is not None)


def _rows_for(figure: Published, run: Findings, runs: Sequence[Findings]) -> Iterator[Row]:
    """The rows a run's figure may belong beside: its own, and of the confidential data, which all share, any run's."""
    yield from (row for each in runs if each is run or figure.dataset == CONFIDENTIAL for row in each.rows)


def _cell(row: Row | None, published: Sequence[Published]) -> Cell:
    return Cell() if row is None else Cell(row.value, figure_beside(row, published))


def _unmatched(runs: Sequence[Findings]) -> Iterator[Line]:
    """A line for every figure that no row is there for."""
    for place, run in enumerate(runs, start=1):
        for figure in run.published:
            if not any(map(figure.matches, _rows_for(figure, run, runs))):
                cells = [Cell()] * (len(runs) + 1)
                cells[0 if figure.dataset == CONFIDENTIAL else place] = Cell(None, figure.figure)
                yield Line(figure.value, figure.target, figure.level, tuple(cells), figure.params, MISSING)

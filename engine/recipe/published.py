"""Published figures of papers that a recipe quotes, and the rows of runs that they are compared with.

    [[published]]
    source = "Guo & Hu, Table 4"
    dataset = "synthetic"
    value = "risk.identification.expected_match_risk"
    figure = 125.59

Several figures of one source may share a table: ``figures`` lists them, and the other keys of the table apply to each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

from ..data.declaration import Param, Section, check_known_keys, declared_keys
from ..data.schema import Origin, Schema
from ..errors import BadInput, near_miss_hint
from ..methods.registry import Method
from ..methods.rows import Row

if TYPE_CHECKING:
    from ..methods.rows import Row

CONFIDENTIAL = "confidential"
MISSING = "the run has no such row"
Series = tuple[Any, ...]


def _parse_source(value: object) -> str:
    """Return the source. Raises ValueError where it is empty or no text."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} must be text")
    if not value.strip():
        raise ValueError('must say where the figure stands, such as "Guo & Hu, Table 4"')
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigure(Section):
    """Published number, with its measure, dataset, parameters and source.

    It is compared with every average of its measure, dataset, target and level whose parameters include ``params``.
    """

    source: Annotated[str, Param('where the figure stands, such as "Guo & Hu, Table 4"', parse=_parse_source)]
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
    ) -> PublishedFigure:
        """Create a figure that a recipe quotes; its value must be one of ``values``, by key. Raises BadInput."""
        found = cls.read_section(table, place)
        if found.value not in values:
            hint = near_miss_hint(found.value, list(values)) or f"; measured: {', '.join(values) or 'nothing'}"
            raise BadInput(f"{place}.value", f'"{found.value}" is not measured by this recipe{hint}')
        if found.level is None and _has_levels_alone(values[found.value]):
            raise BadInput(f"{place}.level", "a figure of a study needs the level that it was published for")
        if found.target:
            schema.require_variable(found.target, f"{place}.target")
        return found

    def matches(self, row: Row) -> bool:
        """Return whether it is compared with this row."""
        return (
            row.draw is None
            and row.key == self.value
            and row.dataset == self.dataset
            and row.target == self.target
            and row.level == self.level
            and includes_params(self.params, row.params)
        )


def read_published_figures(
    tables: Sequence[Mapping[str, Any]], methods: Sequence[Method], schema: Schema
) -> tuple[PublishedFigure, ...]:
    """Return the figures of a recipe's ``[[published]]`` tables, in order. Raises BadInput."""
    values = {f"{method.key}.{output.name}": method for method in methods for output in method.result_outputs}
    return tuple(
        PublishedFigure.from_table(one, place, values, schema)
        for i, table in enumerate(tables)
        for one, place in _expand_figures(table, f"published[{i}]")
    )


def published_value_for(row: Row, published: Sequence[PublishedFigure]) -> float | None:
    """Return the first published figure that is compared with a row, or None."""
    return next((one.figure for one in published if one.matches(row)), None)


def _has_levels_alone(method: Method) -> bool:
    """Return whether all rows of a method have a level: those of a study without a summary, or with a rule that
    combines level by level.
    """
    return method.family == "studies" and (method.study.summarise is None or method.combine is not None)


def _expand_figures(table: Mapping[str, Any], place: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the table itself, or each of its ``figures`` completed by the shared keys, with their places."""
    if "figures" not in table:
        yield table, place
        return
    figures = table["figures"]
    if not isinstance(figures, list) or not all(isinstance(one, Mapping) for one in figures):
        raise BadInput(f"{place}.figures", "must be a list of tables, such as [{ figure = 125.59 }]")
    shared = {key: value for key, value in table.items() if key != "figures"}
    check_known_keys(shared, declared_keys(PublishedFigure), place)
    for j, one in enumerate(figures):
        own = f"{place}.figures[{j}]"
        figure, params, added = {**shared, **one}, shared.get("params"), one.get("params")
        if isinstance(params, Mapping) and isinstance(added, Mapping):
            figure["params"] = {**params, **added}
        yield figure, own


def includes_params(wanted: object, found: object) -> bool:
    """Return whether ``found`` contains ``wanted``: equal values, and for tables at least the wanted keys."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            k in found and includes_params(v, found[k]) for k, v in wanted.items()
        )
    if isinstance(wanted, (list, tuple)):
        same = isinstance(found, (list, tuple)) and len(found) == len(wanted)
        return same and all(map(includes_params, wanted, found))  # type: ignore[call-overload]
    # True == 1 in Python, but not in a recipe.
    return bool(wanted == found) and isinstance(wanted, bool) == isinstance(found, bool)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of one run.

    name: name of the run in the tables
    published: figures that its recipe quotes
    rows: its result rows
    """

    name: str
    published: Sequence[PublishedFigure]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """Value of a run and the published one; None where missing."""

    ours: float | None = None
    published: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return the run's value as a multiple of the published one."""
        return ratio_to_published(self.ours, self.published)


@dataclass(frozen=True, slots=True)
class SourceTableLine:
    """Line of a source's table: a number, with a cell for the confidential data and for the release of every run."""

    value: str
    target: str
    level: float | None
    cells: tuple[FigureComparison, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Table of the figures of one source; ``columns`` name the cells of every line, the confidential data first."""

    source: str
    columns: tuple[str, ...]
    lines: tuple[SourceTableLine, ...]


def ratio_to_published(ours: float | None, published: float | None) -> float | None:
    """Return our value as a multiple of the published one; None where either is missing or the published one is 0."""
    return None if ours is None or not published else ours / published


def source_tables(runs: Sequence[RunFigures]) -> tuple[SourceTable, ...]:
    """Return a table for every source, in the order in which the runs quote them, its lines in the order of its
    figures.
    """
    columns = (CONFIDENTIAL, *(run.name for run in runs))
    averages = [RunFigures(run.name, run.published, [row for row in run.rows if row.draw is None]) for run in runs]
    sources = dict.fromkeys(figure.source for run in runs for figure in run.published)
    return tuple(
        SourceTable(source, columns, tuple(_source_lines(_figures_of_source(source, averages)))) for source in sources
    )


def _figures_of_source(source: str, runs: Sequence[RunFigures]) -> list[RunFigures]:
    return [RunFigures(run.name, [one for one in run.published if one.source == source], run.rows) for run in runs]


def _source_lines(runs: Sequence[RunFigures]) -> Iterator[SourceTableLine]:
    """Yield the lines of one source: the series that its figures match, then the figures without a row."""
    rows = [{(_confidential_or_release(row), row.series): row for row in run.rows} for run in runs]
    for series in _matching_series(runs):
        own = [found[CONFIDENTIAL, series] for found in rows if (CONFIDENTIAL, series) in found]
        quoted = [figure for run in runs for figure in run.published if figure.dataset == CONFIDENTIAL]
        cells = [_comparison_of(own[0] if own else None, quoted)]
        cells += [_comparison_of(found.get(("", series)), run.published) for run, found in zip(runs, rows, strict=True)]
        same = [row for found in rows for (_, key), row in found.items() if key == series]
        note = next((row.reason for row in same if row.value is None), "")
        yield SourceTableLine(same[0].key, same[0].target, same[0].level, tuple(cells), same[0].params, note)
    yield from _unmatched_lines(runs)


def _confidential_or_release(row: Row) -> str:
    return CONFIDENTIAL if row.dataset == CONFIDENTIAL else ""


def _matching_series(runs: Sequence[RunFigures]) -> Iterator[Series]:
    """Yield the distinct series that figures match: the first of every figure in order, then the second of each."""
    found = [
        [row.series for row in _candidate_rows(figure, run, runs) if figure.matches(row)]
        for run in runs
        for figure in run.published
    ]
    # By turns, so that the first lines show each figure once before a figure's further matches.
    yield from dict.fromkeys(series for each in zip_longest(*found) for series in each if series is not None)


def _candidate_rows(figure: PublishedFigure, run: RunFigures, runs: Sequence[RunFigures]) -> Iterator[Row]:
    """Yield the rows that a run's figure may be compared with: its own, or those of any run for the confidential data,
    which all share.
    """
    yield from (row for each in runs if each is run or figure.dataset == CONFIDENTIAL for row in each.rows)


def _comparison_of(row: Row | None, published: Sequence[PublishedFigure]) -> FigureComparison:
    return FigureComparison() if row is None else FigureComparison(row.value, published_value_for(row, published))


def _unmatched_lines(runs: Sequence[RunFigures]) -> Iterator[SourceTableLine]:
    """Yield a line for every figure that matches no row."""
    for place, run in enumerate(runs, start=1):
        for figure in run.published:
            if not any(map(figure.matches, _candidate_rows(figure, run, runs))):
                cells = [FigureComparison()] * (len(runs) + 1)
                cells[0 if figure.dataset == CONFIDENTIAL else place] = FigureComparison(None, figure.figure)
                yield SourceTableLine(figure.value, figure.target, figure.level, tuple(cells), figure.params, MISSING)

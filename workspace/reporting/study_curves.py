"""Studies whose curves are drawn together, as tables: every measure of each curve along the axis, and what the limits ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.rows import Row

from ..plots.planes import BASELINE, DrawnPlane, curve_of, drawn_planes
from .tables import Cell, Column, Line, Table
from .words import interval, number


def together_tables(method: Method, rows: Sequence[Row]) -> list[Table]:
    """What the limits ask for, then a table for every heading under which measures are drawn along the axis."""
    asked = limit_table(method, rows)
    planes = [one for one in drawn_planes(method, rows) if not one.plane.across]
    headings = dict.fromkeys(one.plane.heading for one in planes)
    tables = [level_table(method, h, [one for one in planes if one.plane.heading == h]) for h in headings]
    return [*([asked] if asked else []), *tables]


def answered(method: Method, row: Row) -> str:
    """What an answer says, in its own words: ``From epsilon 5 on it is within the limit``."""
    output = method.output(row.measure)
    return output.without if row.value is None else output.sentence.format(value=row.value)


def limit_table(method: Method, rows: Iterable[Row]) -> Table | None:
    """A line for every curve and limit: which point of the axis keeps to it, and what speaks against that. None without limits."""
    axis = method.axis
    assert axis is not None
    told = [row for row in rows if row.level is None and "of" in row.params]
    if not told:
        return None
    columns = (
        Column("curve", axis.curve),
        Column("of", "measure"),
        Column("limit", "limit", align="right"),
        Column("answer", f"which {axis.label}"),
        Column("reason", "but", spare=1),
    )
    lines: list[Line] = []
    for row in told:
        output = method.output(str(row.params["of"]))
        bound = "at least" if output.goal == "high" else "at most"
        outcome = "not computed" if row.value is None else "pass"
        limit = f"{bound} {number(row.params[axis.limit])}"
        lines.append([curve_of(row, axis), output.title, limit, Cell(answered(method, row), outcome), row.reason])
    return Table(columns, lines, f"Which {axis.label} keeps a measure within its limit")


def level_table(method: Method, heading: str, planes: Sequence[DrawnPlane]) -> Table:
    """A line for every measure and curve, a column a point of the axis; on a page the intervals too."""
    axis = method.axis
    assert axis is not None
    levels = sorted({row.level for one in planes for row in one.rows if row.level is not None})
    lines = [line for one in planes for line in _lines(method, one, levels)]
    columns = [
        Column("measure", "measure"),
        Column("curve", axis.curve),
        *(Column(f"{level:g}", number(level), align="right") for level in levels),
    ]
    return Table(columns, lines, heading or axis.heading, f"{heading or axis.heading}: {axis.label} is {axis.meaning}")


def _lines(method: Method, plane: DrawnPlane, levels: Sequence[float]) -> list[Line]:
    axis = method.axis
    assert axis is not None
    title = plane.panel.title
    lines: list[Line] = []
    for curve in dict.fromkeys(curve_of(row, axis) for row in plane.rows):
        at = {row.level: row for row in plane.rows if curve_of(row, axis) == curve}
        lines.append([title, curve, *(_cell(at.get(level)) for level in levels)])
    for series in plane.panel.series:
        if series.name == BASELINE and series.y.any():
            known = dict(zip(series.x.tolist(), series.y.tolist(), strict=True))
            lines.append([title, BASELINE, *(number(known.get(level)) for level in levels)])
    return lines


def _cell(row: Row | None) -> Cell | str:
    if row is None:
        return ""
    band = interval(row.lower, row.upper)
    return Cell(number(row.value), full=f"{number(row.value)} ({band})" if band and row.value is not None else "")

"""The values of a variable in the confidential data and in the release, in lines of text with a bar each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from textual.content import Content

from sfumato.engine.data.arrays import Floats
from sfumato.tui.terminal.text import fit_text
from sfumato.workspace.reporting.words import number, sign_for

if TYPE_CHECKING:
    from sfumato.workspace.plots.column import VariableValues
    from sfumato.workspace.store.runs import StoredRun
    from sfumato.workspace.store.workspace import Workspace

MOST_RECORDS = 200_000
"""Records of a dataset up to which its values are read while the cursor moves from row to row."""
LEAST_ROWS, MOST_ROWS = 2, 16
"""Fewest lines with values that are worth a heading, and most of them; more are added up."""
MOST_LABEL, LEAST_BAR, MOST_BAR = 24, 12, 48
SHARE = 9
"""Cells of a share of the records, with the gap before it."""


DrawnValues = Mapping[str, "VariableValues"]
"""Values of a variable in the data and in the release, the first one, and of those that it is drawn from."""


def read_drawn_values(workspace: Workspace, run: StoredRun, target: str, predictors: Sequence[str]) -> DrawnValues:
    """Read a variable of a run's confidential data and release, and those that it is drawn from.

    Empty where that takes long or nothing can be compared. Raises NotFound and DamagedTable.
    """
    from sfumato.workspace.views.columns_beside import read_variable_values

    if workspace.find_dataset(run.dataset_id).records > MOST_RECORDS:
        return {}
    found = read_variable_values(workspace, run.dataset_id, run, [target, *predictors])
    known = {
        name: found[name]
        for name in (target, *predictors)
        if name in found and found[name].released and not found[name].withheld_reason
    }
    return known if target in known else {}


def drawn_value_lines(values: DrawnValues, width: int, room: int) -> list[Content]:
    """Return the shares of the records by value in at most ``room`` lines of ``width`` cells; none without room.

    If room is left, how much of the variable goes with each that it is drawn from follows.
    """
    column, *others = values.values()
    labels, own, released = _shares_by_value(column, min(MOST_ROWS, room - 2))
    if len(labels) < LEAST_ROWS:
        return []
    names = [column.name, *labels, *(one.name for one in others)]
    name = min(MOST_LABEL, max(map(len, names)))
    lines = _bar_lines("share of records by value", column.name, labels, (own, released), name, width)
    found = _associations(column, others) if room >= len(lines) + 3 + len(others) else []
    if not lines or not found:
        return lines
    strengths = [np.array([pair[at] for _, pair in found]) for at in (0, 1)]
    title = "how much of it goes with each (correlation ratio, 0 to 1)"
    more = _bar_lines(title, column.name, [one for one, _ in found], strengths, name, width, is_share=False)
    return [*lines, Content(""), *more]


def _bar_lines(
    title: str, variable: str, labels: Sequence[str], values: Sequence[Floats], name: int, width: int, *,
    is_share: bool = True,
) -> list[Content]:  # fmt: skip
    """Return a title, heads and a line for each label, with its value in the data and in the release, and both as a bar.

    A bar is the value in the release (mean of its datasets), and a mark on it that in the confidential data.
    """
    own, released = values
    bar = min(MOST_BAR, width - name - 2 * SHARE - 3)
    if bar < LEAST_BAR:
        return []
    most = max(float(own.max()), float(released.max()), 1e-9) if is_share else 1.0
    said = f"; bar: release, {sign_for('limit')}: data" if width >= 100 else ""
    lines = [
        Content.assemble((f"{variable}: {title}", "bold"), (said, "$text-muted")),
        Content.styled(f"{' ' * name}{'data':>{SHARE}}{'release':>{SHARE}}", "$text-muted"),
    ]
    for label, data, share in zip(labels, own, released, strict=True):
        cells = [(sign_for("bar"), "$primary")] * _bar_cells(bar * share / most, is_share=is_share)
        cells += [(" ", "")] * (bar - len(cells))
        if data > 0:
            cells[min(bar - 1, round(bar * data / most))] = (sign_for("limit"), "$foreground bold")
        texts = [_percent(one) if is_share else f"{one:.2f}" for one in (data, share)]
        lines.append(Content.assemble(f"{fit_text(label, name)}{texts[0]:>{SHARE}}{texts[1]:>{SHARE}}   ", *cells))
    return lines


def _associations(column: VariableValues, others: Sequence[VariableValues]) -> list[tuple[str, tuple[float, float]]]:
    """Return the correlation ratio of a variable with each of others, in the data and in the release, largest first.

    None for a variable of more than two levels, which has no mean.
    """
    if len(column.levels) > 2:
        return []
    from sfumato.engine.statistics.correlation_ratio import correlation_ratio

    found = []
    for other in others:
        # Numbers are grouped by tenths of the confidential ones.
        tenths = np.arange(0.1, 1.0, 0.1)
        known = other.confidential[~np.isnan(other.confidential)]
        edges = None if other.levels or not known.size else np.unique(np.quantile(known, tenths))
        pairs = zip((column.confidential, *column.released), (other.confidential, *other.released), strict=False)
        own, *released = (correlation_ratio(y, x, edges) for y, x in pairs)
        if released and not math.isnan(own):
            found.append((other.name, (own, float(np.mean(released)))))
    return sorted(found, key=lambda one: -one[1][0])


def _bar_cells(cells: float, *, is_share: bool) -> int:
    """Return the whole cells of a bar; a share above 0 has a cell at least."""
    return math.ceil(cells) if is_share else round(cells)


def _percent(share: float) -> str:
    """Return a share in percent with one digit behind the point; a small one is no 0."""
    return f"{100 * share:.1f} %" if share == 0 or share >= 0.0005 else "< 0.1 %"


def _shares_by_value(column: VariableValues, most: int) -> tuple[list[str], Floats, Floats]:
    """Return the names of values or ranges, at most so many, and the share of each in the data and in the release."""
    from sfumato.workspace.plots.marginal import available_plots, draw_marginal

    panel = draw_marginal(column, available_plots(column)[0]).figure.panels[0]
    if len(panel.series) < 2 or most < LEAST_ROWS:
        return [], np.zeros(0), np.zeros(0)
    own, released = (np.asarray(one.y, dtype=float) for one in panel.series[:2])
    if panel.x_names:
        labels = list(panel.x_names)
        if len(labels) > most:
            kept = np.argsort(-(own + released), kind="stable")[: most - 1]
            rest = np.setdiff1d(np.arange(len(labels)), kept)
            labels = [*(labels[i] for i in kept), f"{rest.size} other values"]
            own, released = (np.append(one[kept], one[rest].sum()) for one in (own, released))
        return labels, own, released
    lows, width = np.asarray(panel.series[0].x, dtype=float) - panel.bar_width / 2, panel.bar_width
    each = -(-len(lows) // most)
    starts = range(0, len(lows), each)
    own, released = (np.add.reduceat(one, list(starts)) for one in (own, released))
    ends = [lows[min(at + each, len(lows)) - 1] + width for at in starts]
    if column.axis_unit == "date":
        return [_date_text(lows[at]) for at in starts], own, released
    # Values are whole numbers where the bins begin at halves or have the width 1.
    if width == 1.0 and each == 1 and np.allclose(lows, np.round(lows)):
        return [number(low) for low in lows], own, released
    return [f"{number(lows[at])} to {number(end)}" for at, end in zip(starts, ends, strict=True)], own, released


def _date_text(days: float) -> str:
    """Return the first day of a range, given in days since 1970."""
    return f"from {np.datetime64(round(days), 'D')}"

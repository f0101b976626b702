"""A convergence statistic of every parameter, drawn: those that break the rule marked, the rule a line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.engine.results import Diagnostic
from sfumato.tui.widgets.series import Series

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure

__all__ = ["by_statistic", "rule_limit", "statistic_figure", "statistic_series", "statistic_text"]

FROM_ZERO = {"effective_sample_size", "acceptance", "autocorrelation_time", "pareto_k"}
"""What is read from 0 up, and so drawn as bars; the others are points."""
BROKEN = "rule broken"


def by_statistic(lines: Sequence[Diagnostic]) -> Mapping[str, list[Diagnostic]]:
    """The lines by the name of their statistic, those that have a rule first."""
    found: dict[str, list[Diagnostic]] = {}
    for line in sorted(lines, key=lambda line: not line.rule):
        found.setdefault(line.name, []).append(line)
    return found


def statistic_text(line: Diagnostic) -> str:
    """``income sigma``: the model's variable and the parameter."""
    return f"{line.target} {line.parameter}"


def rule_limit(rule: str) -> float | None:
    """The number in ``at most 1.01``."""
    found = re.search(r"-?\d[\d.]*(?:e[+-]?\d+)?", rule.replace(",", ""))
    return float(found.group()) if found else None


def statistic_series(lines: Sequence[Diagnostic]) -> list[Series]:
    """The values at x = 0, 1, 2, …, those that break their rule once more as marks, and the rule."""
    if not lines:
        return []
    name, values = lines[0].name, [_value(line) for line in lines]
    places = list(range(len(lines)))
    series = [Series(name, places, values, marker="bars" if name in FROM_ZERO else "points")]
    broken = [i for i in places if lines[i].passed is False]
    if broken:
        series.append(Series(BROKEN, broken, [values[i] for i in broken], marker="points"))
    rule = next((line.rule for line in lines if line.rule), "")
    limit = rule_limit(rule)
    if limit is not None:
        ends = [0.0, len(lines) - 1.0] if len(lines) > 1 else [-0.5, 0.5]
        series.append(Series(rule, ends, [limit, limit]))
    return series


def _value(line: Diagnostic) -> float:
    return math.nan if line.value is None else line.value


def statistic_figure(lines: Sequence[Diagnostic]) -> Figure:
    """The statistic, drawn for a file."""
    from sfumato.workspace.plots.figure import Figure, Panel
    from sfumato.workspace.plots.figure import Series as FigureSeries

    name = lines[0].name
    rule = next((line.rule for line in lines if line.rule), "")
    broken = [statistic_text(line) for line in lines if line.passed is False]
    note = ", ".join(part for part in (rule, f"broken by {', '.join(broken)}" if broken else "") if part)
    series = (FigureSeries.of(name, range(len(lines)), [_value(line) for line in lines]),)
    names = tuple(statistic_text(line) for line in lines)
    return Figure(f"Diagnostics: {name}", "intervals", (Panel(name, series, x_names=names, note=note),))

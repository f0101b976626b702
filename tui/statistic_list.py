"""Every statistic of a run's models as a table."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.results import Diagnostic

from .console import number
from .widgets.pages import Column
from .words import mark

__all__ = ["COLUMNS", "statistic_values", "statistics_summary"]

COLUMNS = (
    Column("target", "model of", 10),
    Column("name", "statistic", 18),
    Column("parameter", "parameter", 10),
    Column("value", "value", 9, "right"),
    Column("rule", "rule", 12),
    Column("passed", "result", 8),
)


def statistics_summary(lines: Sequence[Diagnostic]) -> str:
    """``12 statistics of 1 model; every rule met (8)``."""
    if not lines:
        return ""
    judged = [line for line in lines if line.passed is not None]
    broken = [line for line in judged if not line.passed]
    models = len({line.target for line in lines})
    said = f"{len(lines):,} statistics of {models} model{'s' * (models != 1)}; "
    if not judged:
        return said + "none of them has a rule to meet"
    if broken:
        return said + f"{mark('fail')} {len(broken)} of {len(judged)} rules broken"
    return said + f"{mark('pass')} every rule met ({len(judged)})"


def statistic_values(line: Diagnostic) -> dict[str, object]:
    """The cells of a line by column."""
    results = {True: f"{mark('pass')} passed", False: f"{mark('fail')} FAILED", None: ""}
    return {
        "target": line.target,
        "name": line.name,
        "parameter": line.parameter,
        "value": number(line.value),
        "rule": line.rule,
        "passed": results[line.passed],
    }

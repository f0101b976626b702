"""Gauges of limits: an observed value with its interval between 0 and twice the limit."""

from __future__ import annotations

from textual.content import Content

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.reporting.words import sign_for

GAUGE = 18
"""Cells of a gauge with its two ends."""
LEAST_GAUGE = 8
"""Cells of the narrowest gauge that can be read; a narrower one is blank."""
STYLES = {
    "met": "bold",
    "not met": "$error bold",
    "undecided": "$warning bold",
    "not computed": "$text-muted bold",
}
"""Inks of verdicts by their outcome; none is green."""


def draw_gauge(verdict: Verdict, style: str, width: int = GAUGE) -> Content:
    """Return the gauge of a verdict."""
    return draw_range(verdict.observed, verdict.limit, style, verdict.lower, verdict.upper, width)


def draw_share(value: float, whole: float, limit: float | None, style: str, width: int = GAUGE) -> Content:
    """Return a gauge from 0 to ``whole`` with a value: without a mark where there is no ``limit``.

    It is for numbers without a limit, or with a limit of 0, which have no range around it.
    """
    inner = width - 2
    if whole <= 0 or width < LEAST_GAUGE:
        return Content(" " * width)
    cells = [(sign_for("track"), "$text-muted")] * inner
    places = [(limit, sign_for("limit"), "bold"), (value, sign_for("value"), style)]
    for number, sign, ink in places:
        if number is not None:
            cells[max(0, min(inner - 1, round(number / whole * (inner - 1))))] = sign, ink
    return Content.assemble((sign_for("from"), "$text-muted"), *cells, (sign_for("to"), "$text-muted"))


def draw_range(
    observed: float | None,
    limit: float,
    style: str,
    lower: float | None = None,
    upper: float | None = None,
    width: int = GAUGE,
) -> Content:
    """Return a gauge such as ``├──■━━━━━┃──┤`` from 0 to twice the limit: value, interval and limit.

    Gauges of least and of largest values run the same way. What lies beyond an end is drawn at it. The gauge is blank
    without an observed value or if the limit is not positive.
    """
    inner = width - 2
    if observed is None or limit <= 0 or width < LEAST_GAUGE:
        return Content(" " * width)

    def cell_of(value: float) -> int:
        """Return the cell of a value, within the gauge."""
        return max(0, min(inner - 1, round(min(value / (2 * limit), 1.0) * (inner - 1))))

    at, bound = cell_of(observed), cell_of(limit)
    first = at if lower is None else cell_of(lower)
    last = at if lower is None else inner - 1 if upper is None else cell_of(upper)
    parts: list[tuple[str, str]] = [(sign_for("from"), "$text-muted")]
    for place in range(inner):
        if place == at:
            parts.append((sign_for("value"), style))
        elif place == bound:
            parts.append((sign_for("limit"), "bold"))
        elif first <= place <= last:
            parts.append((sign_for("bar"), style))
        else:
            parts.append((sign_for("track"), "$text-muted"))
    return Content.assemble(*parts, (sign_for("to"), "$text-muted"))

"""How near an observed value lies to its limit, as a bar with the limit in the middle."""

from __future__ import annotations

from textual.content import Content

from sfumato.workspace.reporting.words import mark

__all__ = ["gauge"]


def gauge(observed: float | None, limit: float, width: int, style: str) -> Content:
    """A bar of ``width`` cells from 0 to twice the limit, filled up to what was observed, and its share of the limit.

    Empty where there is nothing to compare: nothing observed, a negative number, or a limit that is not positive.
    """
    said = len("  0.0067 % of the limit")
    half = (width - said - 1) // 2
    if observed is None or observed < 0 or limit <= 0 or half < 4:
        return Content("")
    share = observed / limit
    filled = min(2 * half, round(half * share))
    before, after = min(filled, half), max(filled - half, 0)
    return Content.assemble(
        (mark("bar") * before, style),
        (mark("track") * (half - before), "$text-muted"),
        (mark("limit"), "bold"),
        (mark("bar") * after, style),
        (mark("track") * (half - after), "$text-muted"),
        (f"  {_percent(share)} % of the limit", "$text-muted"),
    )


def _percent(share: float) -> str:
    """Two digits, so that 99.96 % of a limit is not called all of it."""
    percent = 100 * share
    if percent > 999:
        return ">999"
    return (
        f"{percent:.0f}"
        if abs(share - 1) > 0.005 and percent >= 1
        else f"{percent:.2g}"
        if percent < 1
        else f"{percent:.4g}"
    )

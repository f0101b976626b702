"""Numbers, states and parameters as the screens word them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.workspace.reporting.uses import NOTHING
from sfumato.workspace.views.runs import Run, RunLine, RunState, Tally

from .console import duration, number

__all__ = [
    "interval", "limit_text", "mark", "measured", "outcome_text", "params_text", "progress", "rate",
    "seconds_left", "state_text",
    "tally_text", "use_text",
]  # fmt: skip

_BOUNDS = {"max": "at most {}", "min": "at least {}", "max_ratio": "at most {} × confidential"}
_MARKS = {
    "pass": "✓", "fail": "✗", "not computed": "?", "queued": "○", "running": "●", "done": "✓", "failed": "✗",
    "interrupted": "‖", "cancelled": "–", "stalled": "!", "into": "›", "plus or minus": "±",
    "cursor": "▌", "bar": "━", "track": "─", "limit": "┃",
}  # fmt: skip
_ASCII_MARKS = {
    "pass": "+", "fail": "x", "not computed": "?", "queued": "o", "running": "*", "done": "+", "failed": "x",
    "interrupted": "=", "cancelled": "-", "stalled": "!", "into": ">", "plus or minus": "+/-",
    "cursor": ">", "bar": "=", "track": "-", "limit": "|",
}  # fmt: skip


def mark(name: str) -> str:
    """The sign of a state or an outcome, in ASCII where SFUMATO_GLYPHS says so."""
    return (_ASCII_MARKS if os.environ.get("SFUMATO_GLYPHS") == "ascii" else _MARKS)[name]


def outcome_text(outcome: str) -> str:
    """``✓ PASS``: a sign and a word, so that colour is never needed to tell."""
    return f"{mark(outcome)} {outcome.upper()}"


def limit_text(bound: str, limit: float) -> str:
    """``at most 0.02``; a ratio is held against the confidential data's own value."""
    return _BOUNDS[bound].format(number(limit))


def state_text(line: RunLine) -> str:
    """``● running``; a run that ought to go on and that nobody works on is ``! no worker``."""
    return f"{mark('stalled')} no worker" if line.stalled else f"{mark(line.run.state.value)} {line.run.state.value}"


def tally_text(tally: Tally) -> str:
    """``✓ 7 pass``, ``✗ 2 of 7 fail``; empty without verdicts."""
    if not tally.total:
        return ""
    if tally.passed == tally.total:
        return f"{mark('pass')} {tally.total} pass"
    failed = f"{mark('fail')} {tally.failed} of {tally.total} fail" if tally.failed else ""
    open_ones = f"{mark('not computed')} {tally.not_computed} not computed" if tally.not_computed else ""
    return ", ".join(part for part in (failed, open_ones) if part)


def progress(run: Run) -> str:
    """``34/120 28 %``."""
    share = run.tasks_done * 100 // run.tasks_total if run.tasks_total else 0
    return f"{run.tasks_done}/{run.tasks_total} {share:>3} %"


def rate(run: Run) -> str:
    """``2.4/s``, ``7/min``: tasks done in the time that the run has taken so far; empty when it does not go on."""
    if run.state is not RunState.RUNNING or not run.seconds or not run.tasks_done:
        return ""
    each = run.tasks_done / run.seconds
    unit, factor = next(((u, f) for u, f in (("s", 1), ("min", 60)) if each * f >= 1), ("h", 3600))
    return f"{each * factor:.2g}/{unit}" if each * factor < 10 else f"{each * factor:,.0f}/{unit}"


def seconds_left(run: Run) -> str:
    """``~3 min``; empty when the run does not go on, a dash before anything can be said."""
    if run.state is not RunState.RUNNING:
        return ""
    return "–" if run.seconds_left is None else f"~{duration(run.seconds_left)}"


def interval(lower: float | None, upper: float | None) -> str:
    """``0.011 .. 0.015``, three digits each; empty without one."""
    return "" if lower is None or upper is None else f"{_rough(lower)} .. {_rough(upper)}"


def _rough(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def params_text(params: Mapping[str, Any] | None, apart: Mapping[str, Any] = NOTHING) -> str:
    """What tells a row from its neighbours: short parameters, radii by variable, and settings ``apart`` with their defaults.

    ``apart`` are those in which uses of the method differ (``sfumato.workspace.reporting.uses``); they are spelled out
    however long they are.
    """
    shown = {**{name: value for name, value in apart.items() if value is not None}, **(params or {})}
    radius = shown.get("radius")
    parts = [
        f"{key} {value if _is_short(value) else _spelled(value)}"
        for key, value in shown.items()
        if key != "radius" and (_is_short(value) or (key in apart and value not in ([], {}, "")))
    ]
    if isinstance(radius, Mapping):
        parts += [f"{key} {mark('plus or minus')}{value}" for key, value in radius.items()]
    return ", ".join(parts)


def _is_short(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def measured(target: str, params: Mapping[str, Any] | None, apart: Mapping[str, Any] = NOTHING) -> str:
    """The target with its parameters: ``price, q 0.25``."""
    return ", ".join(part for part in (target, params_text(params, apart)) if part)


def use_text(params: Mapping[str, Any] | None, apart: Mapping[str, Any]) -> str:
    """Which of several uses of a method a row is of: ``model cart, permutations 5``."""
    told = {name: (params or {}).get(name, default) for name, default in apart.items()}
    return ", ".join(f"{name} {_spelled(value)}" for name, value in told.items() if value not in (None, [], {}, ""))


def full_params(params: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Every parameter, spelled out."""
    return [(key, _spelled(value)) for key, value in params.items()]


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_spelled(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_spelled(item) for item in value)
    return number(value) if isinstance(value, float) else str(value)

"""The steps of a plan as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.tui.fields import shown_value
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.reporting.words import mark

if TYPE_CHECKING:
    from sfumato.workspace.plan.steps import PlanView, StepLine

__all__ = ["COLUMNS", "SETTINGS", "keys", "run_text", "values"]

SETTINGS = "settings"
COLUMNS = (
    Column("mark", "", 1),
    Column("section", "step", 9),
    Column("method", "method", 22),
    Column("says", "says", 14),
)


def keys(view: PlanView) -> list[str]:
    """What tells the rows apart: ``settings``, then places."""
    return [SETTINGS, *(str(line.place) for line in view.lines or ())]


def values(view: PlanView) -> list[dict[str, object]]:
    """A row for title, data and release; then one a step."""
    data, release = _table(view.table.get("data")), _table(view.table.get("release"))
    file = shown_value(data.get("file"))
    said = ", ".join(f"{key} = {shown_value(release[key])}" for key in ("m", "seed") if key in release)
    wrong = view.at.partition(".")[0] in ("title", "data", "variables", "release")
    first: dict[str, object] = {
        "mark": mark("fail") if wrong else "",
        "section": SETTINGS,
        "method": file,
        "says": said,
    }
    return [first, *(_row(line, view.at) for line in view.lines or ())]


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _row(line: StepLine, at: str) -> dict[str, object]:
    place = str(line.place)
    wrong = at == place or at.startswith(f"{place}.")
    rest = {key: value for key, value in line.table.items() if key not in ("method", "target", "value")}
    level = {key: rest.pop(key) for key in ("level",) if key in rest}
    limits = _settings(rest) if line.place.section == "threshold" else []
    said = [shown_value(line.table.get("value")), shown_value(line.table.get("target"))]
    said += _settings(level if limits else level | rest)
    return {
        "mark": mark("fail") if wrong else "",
        "section": line.place.section,
        "method": ", ".join(limits) or line.method,
        "says": "  ".join(part for part in said if part),
    }


def _settings(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {shown_value(value)}" for key, value in table.items()]


def run_text(view: PlanView) -> str:
    """What running would compute."""
    release = _table(view.table.get("release"))
    counts = [
        (len(view.table.get(section, [])), name)
        for section, name in (("measure", "measure"), ("study", "study"), ("threshold", "threshold"))
    ]
    plural = {"study": "studies"}
    parts = [f"{n} {name if n == 1 else plural.get(name, f'{name}s')}" for n, name in counts if n]
    if not view.table.get("anonymisation"):
        parts.insert(0, f"{release.get('m', 20)} datasets")
    return f"{', '.join(parts)}. It goes on when you leave the app."

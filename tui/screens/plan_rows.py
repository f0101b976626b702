"""The steps of a plan as the rows of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.tui.fields import shown_value
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.reporting.words import mark

if TYPE_CHECKING:
    from sfumato.workspace.plan.edits import PlanView, StepLine

SETTINGS = "settings"
COLUMNS = (
    Column("mark", "", 1),
    Column("section", "step", 9),
    Column("method", "method", 22),
    Column("settings", "settings", 14),
)


def keys(view: PlanView) -> list[str]:
    """What tells the rows apart: ``settings``, then places."""
    return [SETTINGS, *(str(line.place) for line in view.lines or ())]


def values(view: PlanView) -> list[dict[str, object]]:
    """A row for title, data and release; then one a step."""
    data, release = section_of(view.table.get("data")), section_of(view.table.get("release"))
    file = shown_value(data.get("file"))
    said = ", ".join(
        f"{key} = {shown_value(release[key])}"
        for key in ("m", "seed", "records", "epsilon", "redraws", "unmet")
        if key in release
    )
    if "holdout" in data:
        said = ", ".join(filter(None, [said, f"holdout = {shown_value(data['holdout'])}"]))
    if weights := section_of(view.table.get("weights")):
        said = ", ".join(filter(None, [said, f"weights of run {shown_value(weights.get('run'))}"]))
    wrong = view.at.partition(".")[0] in ("title", "data", "weights", "variables", "release")
    first: dict[str, object] = {
        "mark": mark("fail") if wrong else "",
        "section": SETTINGS,
        "method": file,
        "settings": said,
    }
    return [first, *(_row(line, view.at) for line in view.lines or ())]


def section_of(value: object) -> Mapping[str, Any]:
    """A section of a plan; empty where it is none."""
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
        "settings": "  ".join(part for part in said if part),
    }


def _settings(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {shown_value(value)}" for key, value in table.items()]

"""Find what a number of a run is computed from: records, values, the quality board or a study; otherwise explain the
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import on
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.app_protocol import app_of
from sfumato.tui.widgets.grid import Grid
from sfumato.workspace.reporting.words import method_key_of_measure

from ..parts.page import WorkspaceReader

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RecordMeasure
    from sfumato.workspace.views.risk_utility import MapAxis

Kind = Literal["records", "values", "quality", "study", "nothing"]
POINT = (
    "A point of a study is one number over all records, at one level; no single records stand behind it. "
    "Records has those of the run's risks, at the plan's own settings"
)


@dataclass(frozen=True)
class NumberBasis:
    """Data from which a number of a run is computed.

    kind: what can be shown
    measure: place of the measure among those of the run, for records
    variable: variable, for values
    message: explanation of the number, for nothing
    """

    kind: Kind
    measure: int = 0
    variable: str = ""
    message: str = ""


@dataclass
class BasisRequested(Message):
    """Message that the user wants to see what a number of a run is computed from."""

    run_id: int
    axis: MapAxis


def find_basis(workspace: Workspace, run_id: int, axis: MapAxis) -> NumberBasis:
    """Find what a number of a run is computed from. Raises NotFound, DamagedTable."""
    from sfumato.workspace.reporting.explanation import describe_measure
    from sfumato.workspace.store.runs import find_run
    from sfumato.workspace.views.records import record_measures

    method, family = method_key_of_measure(axis.key), axis.key.partition(".")[0]
    # A point of a study is a number over all records, at one level of what an intruder knows or of noise.
    if axis.level is not None or family == "studies":
        return NumberBasis("study")
    of_method = [(place, one) for place, one in enumerate(record_measures(workspace, run_id)) if one.key == method]
    # The settings of a use need not be stored with its number, so a method's only use is its own whatever they are.
    uses = [place for place, one in of_method if len(of_method) == 1 or _matches_settings(one, axis.settings)]
    if uses:
        return NumberBasis("records", measure=uses[0])
    # A score over all columns stands on the board; a score of one column leads to the values of that column.
    if family == "quality" and not axis.target:
        return NumberBasis("quality")
    if axis.target in {variable.name for variable in find_run(workspace, run_id).recipe.schema}:
        return NumberBasis("values", variable=axis.target)
    meaning = describe_measure(axis.key).meaning
    over = "one number over all records: no records, groups or values of its own stand behind it"
    return NumberBasis("nothing", message=f"{axis.key} of run {run_id}: {meaning}. It is {over}")


def _matches_settings(measure: RecordMeasure, settings: Mapping[str, Any]) -> bool:
    """Return whether a use of a method can be that of a number with these settings."""
    shared = settings.keys() & measure.params.keys()
    return all(_comparable(settings[name]) == _comparable(measure.params[name]) for name in shared)


def _comparable(value: object) -> object:
    """Return a setting in a form that can be compared: a list as its sorted texts, whatever its order and type."""
    return sorted(map(str, value)) if isinstance(value, (list, tuple)) else value


class OpensRecords(WorkspaceReader):
    """Mixin for a screen with tabs that opens the records or values behind a number."""

    _project_id: int

    async def open_run(self, run_id: int, tab: str, measure: int | None = None) -> None:
        """Show a tab of a run; of its records those of the measure at this place."""
        raise NotImplementedError

    @on(BasisRequested)
    def _find_basis(self, event: BasisRequested) -> None:
        """Find what the number is computed from, and show that."""
        run_id, axis = event.run_id, event.axis
        self.compute(lambda workspace: find_basis(workspace, run_id, axis), partial(self._open_basis, run_id))

    async def _open_basis(self, run_id: int, ground: NumberBasis) -> None:
        """Show the records, study, quality board or values behind a number, or its explanation if there are none."""
        from .distribution import DistributionsDialog
        from .quality import QualityDialog

        if ground.kind == "records":
            await self.open_run(run_id, "records", ground.measure)
        elif ground.kind == "study":
            await self.open_run(run_id, "sweep")
        elif ground.kind == "quality":
            await self.sfumato.open(QualityDialog(run_id))
        elif ground.kind == "values":
            await self.sfumato.open(DistributionsDialog(self._project_id, run_id, ground.variable))
        else:
            self.sfumato.say(ground.message)


class ExplainsPoint(Widget):
    """Mixin that explains what a point of a study is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "point", "What a point is"),
    ]

    @on(Grid.RowSelected)
    def action_point(self) -> None:
        """Explain what a point of a study is."""
        app_of(self.app).say(POINT)

"""The traces of a run as its screen needs them. Read in a thread: the first time, numerical libraries are imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.workspace.reporting.diagnostics import ALL, OLD, Shapes

if TYPE_CHECKING:
    from sfumato.workspace.store.trace_tables import ModelTrace
    from sfumato.workspace.store.workspace import Workspace

__all__ = ["Traced", "read_traced"]


@dataclass(frozen=True)
class Traced:
    """The models with their traces, by their variable, and what a line of text shows of each parameter."""

    models: Mapping[str, ModelTrace] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)

    @property
    def whys(self) -> Mapping[str, str]:
        """Why there is nothing to look at, for the models of which there is nothing."""
        found = {target: _why(model) for target, model in self.models.items()}
        return {target: why for target, why in found.items() if why}

    def parameters(self, target: str) -> tuple[str, ...]:
        """The parameters of a model's trace; none where it has no trace."""
        model = self.models.get(target)
        found: tuple[str, ...] = getattr(model and model.trace, "parameters", ())
        return found


def _why(model: ModelTrace) -> str:
    return OLD if model.trace is None else getattr(model.trace, "reason", "")


def read_traced(workspace: Workspace, run_id: int) -> Traced:
    """The traces of a run. Raises NotFound and DamagedTable."""
    from sfumato.engine.traces import ChainTrace, ImportanceTrace
    from sfumato.workspace.plots.traces import shape_of
    from sfumato.workspace.store.trace_tables import traces_of

    models = {model.target: model for model in traces_of(workspace, run_id)}
    shapes = {
        (target, ALL if name == model.trace.parameters[-1] else name): shape_of(model.trace, j)
        for target, model in models.items()
        if isinstance(model.trace, ChainTrace | ImportanceTrace)
        for j, name in enumerate(model.trace.parameters)
    }
    return Traced(models, shapes)

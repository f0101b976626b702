"""Risk-utility map: the finished runs of a project by two of the numbers measured on their releases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from ..reporting.words import varying_settings_by_method
from ..store.workspace import Workspace


@dataclass(frozen=True)
class MapAxis:
    """Number by which runs can be placed.

    key, target, level: its measure, variable and level
    params: its parameters as JSON
    goal: low, high, one or none: which direction is better
    unit: its unit
    varying_settings: settings, with their defaults, in which the numbers of its method differ
    """

    key: str
    target: str
    params: str
    level: float | None
    goal: str
    unit: str
    varying_settings: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def ident(self) -> str:
        """Return a text that identifies the axis."""
        return json.dumps([self.key, self.target, self.params, self.level])

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the parameters of the number."""
        found: Mapping[str, Any] = json.loads(self.params)
        return found


@dataclass(frozen=True, slots=True)
class MapCoordinate:
    """Position of a run's release on an axis: the average over its datasets, with its interval if there is one."""

    value: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class MapPoint:
    """Run on two axes.

    run_id, title: the run
    x, y: its coordinates
    is_efficient: whether no other run is better on one axis and as good on the other; None where an axis has no goal
    """

    run_id: int
    title: str
    x: MapCoordinate
    y: MapCoordinate
    is_efficient: bool | None


@dataclass(frozen=True)
class RiskUtilityMap:
    """Finished runs and the numbers measured on their releases.

    run_titles: titles by run
    axes: numbers by which runs can be placed
    coordinates: coordinate of each run, by axis
    confidential_values: value of the confidential data, by axis
    baselines: baseline of each run's number, by axis
    """

    run_titles: Mapping[int, str]
    axes: tuple[MapAxis, ...]
    coordinates: Mapping[str, Mapping[int, MapCoordinate]]
    confidential_values: Mapping[str, float]
    baselines: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def reference_value(self, axis: MapAxis, run_id: int) -> float | None:
        """Return the reference of a ``max_ratio`` or ``max_increase``; None where it is unknown.

        It is the baseline where the measure declares so, otherwise the confidential data's value.
        """
        from sfumato.engine.recipe.thresholds import baseline_words

        if baseline_words(axis.key):
            return self.baselines.get(axis.ident, {}).get(run_id)
        return self.confidential_values.get(axis.ident)

    @cached_property
    def most_shared_axes(self) -> tuple[MapAxis, MapAxis]:
        """Return the risk and the utility that most runs have in common; any number where a family has none."""
        risks, utilities = (
            [axis for axis in self.axes if axis.key.startswith(f"{family}.")] or [self.axes[0]]
            for family in ("risk", "utility")
        )
        runs = {axis.ident: self.coordinates.get(axis.ident, {}).keys() for axis in self.axes}
        x = max(risks, key=lambda axis: max(len(runs[axis.ident] & runs[other.ident]) for other in utilities))
        return x, max(utilities, key=lambda axis: len(runs[axis.ident] & runs[x.ident]))

    def points_on(self, x: MapAxis, y: MapAxis) -> list[MapPoint]:
        """Return the runs that have both numbers, by rising x."""
        across, up = self.coordinates.get(x.ident, {}), self.coordinates.get(y.ident, {})
        both = sorted((run for run in across if run in up), key=lambda run: (across[run].value, up[run].value, run))
        marks = _efficient_marks([(across[run].value, up[run].value) for run in both], (x.goal, y.goal))
        return [
            MapPoint(run, self.run_titles[run], across[run], up[run], mark)
            for run, mark in zip(both, marks, strict=True)
        ]


def _efficient_marks(values: Sequence[tuple[float, float]], goals: tuple[str, str]) -> Sequence[bool | None]:
    """Return which pairs of values are non-dominated; None for each where a number has no better direction."""
    if "none" in goals or not values:
        return [None] * len(values)
    import numpy as np

    from sfumato.engine.execution.comparison import as_cost
    from sfumato.engine.search.dominance import is_non_dominated

    costs = [[as_cost(value, goal) for value, goal in zip(pair, goals, strict=True)] for pair in values]
    marks: list[bool | None] = is_non_dominated(np.array(costs)).tolist()
    return marks


def finished_run_ids(workspace: Workspace, project_id: int) -> tuple[int, ...]:
    """Return the finished runs of a project, the oldest first."""
    rows = workspace.connection.execute(
        "SELECT id FROM run WHERE project_id = ? AND state = 'done' ORDER BY id", (project_id,)
    )
    return tuple(int(row[0]) for row in rows)


def read_risk_utility_map(workspace: Workspace, project_id: int) -> RiskUtilityMap:
    """Read every number measured on the releases of a project's runs, in the order of the oldest run's measures."""
    rows = workspace.connection.execute(
        """SELECT run.id, run.title, result.family || '.' || result.method || '.' || result.measure AS key, result.target,
                  result.params, result.level, result.unit, result.dataset = 'confidential' AS own, result.value,
                  result.lower, result.upper, result.baseline
           FROM run JOIN result ON result.run_id = run.id JOIN task ON task.id = result.task_id
           WHERE run.project_id = ? AND run.state = 'done' AND task.kind = 'combine' AND result.draw IS NULL
             AND result.value IS NOT NULL
           ORDER BY run.id, result.level IS NOT NULL, result.id""",
        (project_id,),
    ).fetchall()
    axes: dict[str, MapAxis] = {}
    places: dict[str, dict[int, MapCoordinate]] = {}
    confidential: dict[str, float] = {}
    baselines: dict[str, dict[int, float]] = {}
    for row in rows:
        method = row["key"].rpartition(".")[0]
        made = _computing_parameters_json(method, row["params"])
        axis = MapAxis(row["key"], row["target"], made, row["level"], _measure_goal(row["key"]), row["unit"])
        if row["own"]:
            confidential.setdefault(axis.ident, row["value"])
            continue
        axes.setdefault(axis.ident, axis)
        places.setdefault(axis.ident, {})[row["id"]] = MapCoordinate(row["value"], row["lower"], row["upper"])
        if row["baseline"] is not None:
            baselines.setdefault(axis.ident, {})[row["id"]] = row["baseline"]
    named = [(axis.key.rpartition(".")[0], axis) for axis in axes.values()]
    apart = varying_settings_by_method((key, axis.settings) for key, axis in named)
    told = tuple(replace(axis, varying_settings=apart.get(key, {})) for key, axis in named)
    return RiskUtilityMap({row["id"]: row["title"] for row in rows}, told, places, confidential, baselines)


def computing_parameters(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a number without those that only filter the rows of a run."""
    from sfumato.engine.execution.comparison import filter_settings

    return {name: value for name, value in params.items() if name not in filter_settings(method)}


# many rows have the same parameters, and each would parse them as JSON again
@lru_cache(maxsize=256)
def _computing_parameters_json(method: str, params: str) -> str:
    """Return the computing parameters of a number, from JSON to JSON."""
    return json.dumps(computing_parameters(method, json.loads(params)), sort_keys=True)


def _measure_goal(key: str) -> str:
    """Return which direction of a measure is better; "none" for an unknown measure."""
    from sfumato.engine.methods.registry import method_by_key

    method, _, measure = key.rpartition(".")
    found = method_by_key(method)
    named = [output.goal for output in found.outputs if output.name == measure] if found else []
    return named[0] if named else "none"

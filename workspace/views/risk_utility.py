"""The risk-utility map: every run of a project that is done, by two of the numbers that were measured on their releases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from ..reporting.words import apart_in
from ..store.workspace import Workspace


@dataclass(frozen=True)
class Axis:
    """A number that runs can be placed by. ``params`` is JSON; ``goal`` low, high, one or none says which way is better.

    ``apart`` are the settings, with their defaults, in which the numbers of its method differ.
    """

    key: str
    target: str
    params: str
    level: float | None
    goal: str
    unit: str
    apart: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def ident(self) -> str:
        """What tells the axis from every other, as text."""
        return json.dumps([self.key, self.target, self.params, self.level])

    @property
    def settings(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self.params)
        return found


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Where a run's release lies on an axis: the average over its datasets, with its interval if there is one."""

    value: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class Point:
    """A run on two axes; ``efficient`` when no other run is better on one and as good on the other, None without goals."""

    run_id: int
    title: str
    x: Coordinate
    y: Coordinate
    efficient: bool | None


@dataclass(frozen=True)
class RiskUtilityMap:
    """``runs`` are titles by number; ``places`` and the ``confidential`` data's own values are by axis, and so are the ``baselines`` of
    the runs' numbers.
    """

    runs: Mapping[int, str]
    axes: tuple[Axis, ...]
    places: Mapping[str, Mapping[int, Coordinate]]
    confidential: Mapping[str, float]
    baselines: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def of_ratio(self, axis: Axis, run_id: int) -> float | None:
        """What a ``max_ratio`` or a ``max_increase`` of a run's number compares with: its baseline where the output says so, else the confidential data's."""
        from sfumato.engine.recipe.thresholds import baseline_words

        if baseline_words(axis.key):
            return self.baselines.get(axis.ident, {}).get(run_id)
        return self.confidential.get(axis.ident)

    @cached_property
    def most_shared(self) -> tuple[Axis, Axis]:
        """The risk and the utility that most runs have together, the first of several; any number where there is none of a family."""
        risks, utilities = (
            [axis for axis in self.axes if axis.key.startswith(f"{family}.")] or [self.axes[0]]
            for family in ("risk", "utility")
        )
        runs = {axis.ident: self.places.get(axis.ident, {}).keys() for axis in self.axes}
        x = max(risks, key=lambda axis: max(len(runs[axis.ident] & runs[other.ident]) for other in utilities))
        return x, max(utilities, key=lambda axis: len(runs[axis.ident] & runs[x.ident]))

    def points(self, x: Axis, y: Axis) -> list[Point]:
        """The runs that have both numbers, by rising x."""
        across, up = self.places.get(x.ident, {}), self.places.get(y.ident, {})
        both = sorted((run for run in across if run in up), key=lambda run: (across[run].value, up[run].value, run))
        marks = _efficient([(across[run].value, up[run].value) for run in both], (x.goal, y.goal))
        return [Point(run, self.runs[run], across[run], up[run], mark) for run, mark in zip(both, marks, strict=True)]


def _efficient(values: Sequence[tuple[float, float]], goals: tuple[str, str]) -> Sequence[bool | None]:
    if "none" in goals or not values:
        return [None] * len(values)
    import numpy as np

    from sfumato.engine.execution.comparison import as_cost
    from sfumato.engine.search.dominance import is_non_dominated

    costs = [[as_cost(value, goal) for value, goal in zip(pair, goals, strict=True)] for pair in values]
    marks: list[bool | None] = is_non_dominated(np.array(costs)).tolist()
    return marks


def done_runs(workspace: Workspace, project_id: int) -> tuple[int, ...]:
    """The runs of a project that are done, the oldest first."""
    rows = workspace.connection.execute(
        "SELECT id FROM run WHERE project_id = ? AND state = 'done' ORDER BY id", (project_id,)
    )
    return tuple(int(row[0]) for row in rows)


def risk_utility_map(workspace: Workspace, project_id: int) -> RiskUtilityMap:
    """Every number that was measured on the releases of a project's runs, in the order of measures of the oldest run.

    Slow the first time: the methods are asked which way is better.
    """
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
    axes: dict[str, Axis] = {}
    places: dict[str, dict[int, Coordinate]] = {}
    confidential: dict[str, float] = {}
    baselines: dict[str, dict[int, float]] = {}
    for row in rows:
        method = row["key"].rpartition(".")[0]
        made = _made(method, row["params"])
        axis = Axis(row["key"], row["target"], made, row["level"], _goal(row["key"]), row["unit"])
        if row["own"]:
            confidential.setdefault(axis.ident, row["value"])
            continue
        axes.setdefault(axis.ident, axis)
        places.setdefault(axis.ident, {})[row["id"]] = Coordinate(row["value"], row["lower"], row["upper"])
        if row["baseline"] is not None:
            baselines.setdefault(axis.ident, {})[row["id"]] = row["baseline"]
    named = [(axis.key.rpartition(".")[0], axis) for axis in axes.values()]
    apart = apart_in((key, axis.settings) for key, axis in named)
    told = tuple(replace(axis, apart=apart.get(key, {})) for key, axis in named)
    return RiskUtilityMap({row["id"]: row["title"] for row in rows}, told, places, confidential, baselines)


def made_with(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a number without those that only select which rows a run has."""
    from sfumato.engine.execution.comparison import filter_settings

    return {name: value for name, value in params.items() if name not in filter_settings(method)}


@lru_cache(maxsize=256)
def _made(method: str, params: str) -> str:
    return json.dumps(made_with(method, json.loads(params)), sort_keys=True)


def _goal(key: str) -> str:
    from sfumato.engine.methods.registry import method_by_key

    method, _, measure = key.rpartition(".")
    found = method_by_key(method)
    named = [output.goal for output in found.outputs if output.name == measure] if found else []
    return named[0] if named else "none"

"""Results of a run's studies along their axes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engine.methods.outputs import Axis, Output
from sfumato.engine.methods.registry import Method, method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.spec import Spec

from ..plots.planes import has_joint_curves
from ..store.runs import RunState, StoredRun, find_run
from ..store.workspace import Workspace
from .results import SHARE_OF_BAND, has_averages, read_study_averages

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe
    from sfumato.engine.recipe.steps import RecipeStep

_Place = TypeVar("_Place")
_Shares = Mapping[tuple[object, ...], tuple[float, ...]]


@dataclass(frozen=True)
class StudyCurve:
    """Measure of a study along its levels, for one dataset.

    key, measure, target, params, dataset: what is measured
    levels: the levels, (n,)
    values, lower, upper: values and intervals, (n,), None where not computed
    variance_shares: shares of the variance behind each interval, (n,), one for each of the study's ``share_of_band``;
        empty where unknown
    """

    key: str
    measure: str
    target: str
    params: Mapping[str, Any]
    dataset: str
    levels: tuple[float, ...]
    values: tuple[float | None, ...]
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    variance_shares: tuple[tuple[float, ...] | None, ...] = ()
    """What makes the variance behind each interval, a share for each of the study's ``share_of_band``; empty where
    nothing says.
    """


def read_study_curves(workspace: Workspace, run_id: int) -> list[StudyCurve]:
    """Read the curves of a run's studies that have no answers.

    Before the rows are averaged, the means of the rows so far are returned, without intervals.
    """
    # once averaged a group has a single row, of which avg is the value
    combined = has_averages(workspace, run_id)
    which = "task.kind = 'combine' AND result.draw IS NULL" if combined else "task.kind <> 'combine'"
    ends = ("lower", "upper") if combined else ("NULL", "NULL")
    left_out = _measures_without_curve(workspace, run_id)
    rows = workspace.connection.execute(
        f"""SELECT result.family || '.' || result.method AS key, measure, target, params, dataset, level,
                   avg(value) AS value, avg({ends[0]}) AS lower, avg({ends[1]}) AS upper
            FROM result JOIN task ON task.id = result.task_id
            WHERE result.run_id = ? AND {which} AND level IS NOT NULL AND NOT ({SHARE_OF_BAND})
                  AND result.family || '.' || result.method || '.' || measure NOT IN ({", ".join("?" * len(left_out))})
            GROUP BY result.family, result.method, measure, target, params, dataset, level
            ORDER BY min(task_id), min(result.id), level""",
        (run_id, *left_out),
    )
    grouped: dict[tuple[str, ...], list[sqlite3.Row]] = {}
    for row in rows:
        name = (row["key"], row["measure"], row["target"], row["params"], row["dataset"])
        grouped.setdefault(name, []).append(row)
    shares = _read_variance_shares(workspace, run_id) if combined else {}
    return [_study_curve(name, points, shares) for name, points in grouped.items()]


def _measures_without_curve(workspace: Workspace, run_id: int) -> list[str]:
    """Return the keys of a run's study measures that are no curves: intermediate ones, and all of studies with answers."""
    keys = workspace.connection.execute(
        "SELECT DISTINCT family || '.' || method FROM result WHERE run_id = ? AND level IS NOT NULL", (run_id,)
    )
    methods = [found for (key,) in keys if (found := method_by_key(key)) is not None]
    return [
        f"{method.key}.{output.name}"
        for method in methods
        for output in method.outputs
        if method.answer_outputs or output not in method.curve_outputs
    ]


def _read_variance_shares(workspace: Workspace, run_id: int) -> _Shares:
    """Read the shares of variance by measure, study, dataset and level."""
    rows = workspace.connection.execute(
        f"SELECT target, params, dataset, level, value FROM result WHERE run_id = ? AND {SHARE_OF_BAND} ORDER BY id",
        (run_id,),
    )
    found: dict[tuple[object, ...], list[float | None]] = {}
    for row in rows:
        params = json.loads(row["params"])
        of = params.pop("of")
        place = (of, row["target"], json.dumps(params, sort_keys=True), row["dataset"], row["level"])
        found.setdefault(place, []).append(row["value"])
    return _complete_shares(found)


def _complete_shares(found: Mapping[_Place, Sequence[float | None]]) -> dict[_Place, tuple[float, ...]]:
    """Return the shares of the places for which all are known."""
    known = {place: tuple(share for share in shares if share is not None) for place, shares in found.items()}
    return {place: shares for place, shares in known.items() if len(shares) == len(found[place])}


def _study_curve(name: tuple[str, ...], points: Sequence[sqlite3.Row], shares: _Shares) -> StudyCurve:
    """Return the curve of stored points, by rising level."""
    key, measure, target, text, dataset = name
    params = json.loads(text)
    rising = sorted(points, key=lambda row: row["level"])
    level, value, lower, upper = (
        tuple(row[column] for row in rising) for column in ("level", "value", "lower", "upper")
    )
    places = [(measure, target, json.dumps(params, sort_keys=True), dataset, row["level"]) for row in rising]
    known = [shares.get(place) for place in places]
    return StudyCurve(
        key, measure, target, params, dataset, level, value, lower, upper, tuple(known) if any(known) else ()
    )


@dataclass(frozen=True, slots=True)
class StudyAnswer:
    """Answer of a study from all its points: a value, or the reason why it is missing.

    ``params`` distinguish answers of one measure.
    """

    measure: str
    value: float | None
    reason: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyResult:
    """Result of a study that has answers.

    method, settings: the study and its settings
    points: points of its axis, ascending, (n,)
    values: values by curve and measure, (n,), None for no value
    least_values: smallest values that are enough, by measure
    answers: its answers
    rows: its averages and answers, where its curves are drawn together or it has a lattice of subsets
    """

    method: Method
    settings: Mapping[str, Any]
    points: tuple[float, ...]
    values: Mapping[tuple[str, str], tuple[float | None, ...]]
    least_values: Mapping[str, float]
    answers: tuple[StudyAnswer, ...]
    rows: tuple[Row, ...] = ()

    @property
    def axis(self) -> Axis:
        """Return the axis of the study."""
        assert self.method.study.axis is not None
        return self.method.study.axis

    @property
    def curve_names(self) -> Sequence[str]:
        """Return the names of its curves; one empty name where it has a single curve."""
        return list(dict.fromkeys(curve for curve, _ in self.values))

    def curve_outputs(self, curve: str = "") -> list[Output]:
        """Return the measures that a curve has values of."""
        return [output for output in self.method.curve_outputs if (curve, output.name) in self.values]

    def find_answer(self, measure: str, curve: str = "", **params: Any) -> StudyAnswer | None:
        """Return the answer of a measure for a curve, with these parameters; None without one."""
        wanted = {**params, self.axis.curve: curve} if self.axis.curve and curve else params
        for one in self.answers:
            if one.measure == measure and all(one.params.get(name) == value for name, value in wanted.items()):
                return one
        return None

    def answer_on_axis(self, curve: str = "") -> StudyAnswer | None:
        """Return the answer that is a point of the axis; None without one."""
        names = [output.name for output in self.method.answer_outputs if output.study.on_axis]
        return self.find_answer(names[0], curve) if names else None


def read_studies(workspace: Workspace, run_id: int) -> list[StudyResult]:
    """Read the studies of a run that have answers, in the order of its recipe. Raises NotFound."""
    rows = workspace.connection.execute(
        """SELECT family || '.' || result.method AS study, measure, level, value, reason, result.params AS params
           FROM result JOIN task ON task.id = result.task_id
           WHERE result.run_id = ? AND family = 'studies' AND task.kind = 'combine' AND result.draw IS NULL
                 AND (dataset = 'confidential' OR value IS NOT NULL) ORDER BY result.id""",
        (run_id,),
    ).fetchall()
    if not any(row["level"] is None for row in rows):
        return []
    recipe = find_run(workspace, run_id).recipe
    found: dict[str, list[_Stored]] = {}
    for row in rows:
        params = json.loads(row["params"])
        if step := recipe.step_of_row(row["study"], params):
            found.setdefault(step.place, []).append(
                (row["measure"], row["level"], StudyAnswer(row["measure"], row["value"], row["reason"], params))
            )
    kept = [step for step in recipe.studies if step.place in found and step.method.answer_outputs]
    averages = read_study_averages(workspace, run_id) if any(map(_is_shown_by_rows, kept)) else []
    return [
        replace(
            _study_result(step.method, step.spec, found[step.place]),
            rows=tuple(row for row in averages if _is_shown_by_rows(step) and _is_row_of_step(recipe, step, row)),
        )
        for step in kept
    ]


def _is_shown_by_rows(step: RecipeStep) -> bool:
    """Return whether a study is shown by its rows: with joint curves, or with a lattice of subsets."""
    return has_joint_curves(step.method) or step.method.study.lattice is not None


def _is_row_of_step(recipe: Recipe, step: RecipeStep, row: Row) -> bool:
    """Return whether a row comes from this step of a recipe."""
    return row.method_key == step.method.key and recipe.step_of_row(row.method_key, row.params) is step


_Stored = tuple[str, float | None, StudyAnswer]


def _study_result(method: Method, spec: Spec, rows: Sequence[_Stored]) -> StudyResult:
    """Return the result of a study from its stored points and answers."""
    axis = method.study.axis
    assert axis is not None
    found: dict[tuple[str, str], dict[float, float | None]] = {}
    for measure, level, one in rows:
        if level is not None:
            point = one.params.get(axis.point, level)
            found.setdefault((str(one.params.get(axis.curve, "")), measure), {}).setdefault(point, one.value)
    points = tuple(sorted({point for values in found.values() for point in values}))
    curves = {name: tuple(values.get(point) for point in points) for name, values in found.items()}
    limits = {
        output.name: float(getattr(spec, output.study.limit_parameter))
        for output in method.curve_outputs
        if output.study.limit_parameter and any(measure == output.name for _, measure in curves)
    }
    settings = {name: getattr(spec, name) for name in axis.uses}
    return StudyResult(method, settings, points, curves, limits, tuple(one for _, level, one in rows if level is None))


def has_study_answers(workspace: Workspace, run: StoredRun) -> bool:
    """Return whether a study of a finished run has answers."""
    query = "SELECT EXISTS (SELECT 1 FROM result WHERE run_id = ? AND family = 'studies' AND level IS NULL)"
    return run.state is RunState.DONE and bool(workspace.connection.execute(query, (run.id,)).fetchone()[0])

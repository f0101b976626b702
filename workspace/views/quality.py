"""What the screens show of data quality: scores with limits, sample sizes, calibrations, and which runs have any."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..store.workspace import Workspace
from .runs import Run, RunState, find_run

if TYPE_CHECKING:
    from sfumato.engine.studies.minimisation import MinimisationSpec
    from sfumato.engine.thresholds import Threshold

__all__ = [
    "METRICS",
    "CalibratedMeasure",
    "Calibration",
    "Metric",
    "Minimisation",
    "QualityBoard",
    "Score",
    "calibrations",
    "minimisations",
    "quality_board",
    "views_of",
]

Outcome = Literal["pass", "fail", "not computed", "no threshold"]
Scale = Literal["numbers", "categories", "table"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure of data quality: what it is of a column, what it is over all, and the limit in use at Lighthouse (§3)."""

    name: str
    column: str
    whole: str
    scale: Scale
    limit: float | None


METRICS = (
    Metric("rho", "quality.pearson.rho", "quality.pearson.minimum_rho", "numbers", 0.90),
    Metric("rilm", "quality.rilm.categorical", "quality.rilm.minimum_categorical", "categories", 0.90),
    Metric("rilm of numbers", "quality.rilm.numerical", "quality.rilm.minimum_numerical", "numbers", None),
    Metric("nmi v1", "quality.nmi_v1.nmi", "quality.nmi_v1.minimum_nmi", "numbers", 0.80),
    Metric("nmi v2", "quality.nmi_v2.nmi", "quality.nmi_v2.minimum_nmi", "numbers", None),
    Metric("non-suppressed", "", "quality.non_suppressed.share", "table", 0.99),
)


MINIMISED: Sequence[str] = ("rho", "rilm_categorical", "nmi", "non_suppressed")
"""The measures that studies of sample sizes take."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a measure says of a column, or over all; ``value`` is None where it could not be computed."""

    value: float | None
    limit: float | None
    reason: str = ""
    own_limit: bool = False
    """Whether the limit was set for this column rather than for the smallest of all."""

    @property
    def outcome(self) -> Outcome:
        """A value that was not computed is no pass."""
        if self.limit is None:
            return "no threshold"
        if self.value is None:
            return "not computed"
        return "pass" if self.value >= self.limit else "fail"


@dataclass(frozen=True)
class QualityBoard:
    """Scores by measure and column, and by measure over all columns, of one run.

    ``expected`` are the measures with a limit that the kinds of the quasi-identifiers call for, and which columns of them.
    """

    metrics: Sequence[Metric]
    columns: Sequence[str]
    scores: Mapping[tuple[str, str], Score]
    whole: Mapping[str, Score]
    expected: Mapping[str, Sequence[str]]

    @property
    def outcome(self) -> Literal["pass", "fail", "not computed"]:
        """Whether the release meets minimum data quality: every limit held, on every column and over all."""
        outcomes = {score.outcome for score in self.judged.values()}
        if "fail" in outcomes:
            return "fail"
        return "not computed" if self.missing or "not computed" in outcomes or not outcomes else "pass"

    @property
    def judged(self) -> Mapping[str, Score]:
        """What is held against a limit: the measures over all columns, and columns with a limit of their own."""
        own = {f"{metric} of {column}": score for (metric, column), score in self.scores.items() if score.own_limit}
        return {**{name: score for name, score in self.whole.items() if score.limit is not None}, **own}

    @property
    def missing(self) -> Sequence[Metric]:
        """Measures with a limit that the quasi-identifiers call for, and that the run has not taken."""
        return [metric for metric in METRICS if metric.name in self.expected and metric.name not in self.whole]

    @property
    def unscored(self) -> Sequence[tuple[str, str]]:
        """Quasi-identifiers that a measure of the run leaves out: measure and column."""
        return [
            (name, column)
            for name, columns in self.expected.items()
            if name in self.whole
            for column in columns
            if (name, column) not in self.scores
        ]


def views_of(workspace: Workspace, run: Run) -> frozenset[str]:
    """Which of ``quality``, ``calibrate`` and ``minimise`` a run has rows for; none before it is done."""
    if run.state is not RunState.DONE:
        return frozenset()
    wanted = {
        "quality": "family = 'quality' AND method <> 'ilm'",
        "calibrate": "family = 'studies' AND method = 'calibration'",
        "minimise": "family = 'studies' AND method = 'minimisation'",
    }
    words = {
        "quality": ("pearson", "rilm", "nmi_v", "non_suppressed"),
        "calibrate": ("calibration",),
        "minimise": ("minimisation",),
    }
    return frozenset(
        name
        for name, condition in wanted.items()
        if any(word in run.recipe_toml for word in words[name])
        and workspace.connection.execute(
            f"SELECT EXISTS (SELECT 1 FROM result WHERE run_id = ? AND {condition})", (run.id,)
        ).fetchone()[0]
    )


def quality_board(workspace: Workspace, run_id: int) -> QualityBoard:
    """The scores of a finished run with the recipe's limits, else Lighthouse's. Raises NotFound."""
    run = find_run(workspace, run_id)
    thresholds = run.recipe.thresholds
    rows = _lowest(workspace, run_id)
    known = _quasi_identifiers(run)
    scores: dict[tuple[str, str], Score] = {}
    whole: dict[str, Score] = {}
    for metric in METRICS:
        set_by_recipe = _limit(thresholds, metric.whole, "")
        overall = metric.limit if set_by_recipe is None else set_by_recipe
        for (key, column), (value, reason) in rows.items():
            if key == metric.column:
                own = _limit(thresholds, key, column)
                scores[metric.name, column] = Score(value, overall if own is None else own, reason, own is not None)
            elif key == metric.whole:
                whole[metric.name] = Score(value, overall, reason)
    columns = tuple(dict.fromkeys([*known, *(column for _, column in scores)]))
    shown = [metric for metric in METRICS if metric.name in whole]
    return QualityBoard(shown, columns, scores, whole, _expected(known))


def _expected(known: Mapping[str, Scale]) -> dict[str, Sequence[str]]:
    """The columns that each measure with a limit is for; of the whole table none, where the kind occurs."""
    columns = {m.name: [c for c, scale in known.items() if scale == m.scale] for m in METRICS if m.limit is not None}
    return {m.name: columns[m.name] for m in METRICS if m.name in columns and (columns[m.name] or m.scale == "table")}


def _lowest(workspace: Workspace, run_id: int) -> dict[tuple[str, str], tuple[float | None, str]]:
    """Value and reason by key and column; of several, as with other settings, the one without a value or the lowest."""
    rows = workspace.connection.execute(
        """SELECT family || '.' || result.method || '.' || measure AS key, target, value, reason
           FROM result JOIN task ON task.id = result.task_id
           WHERE result.run_id = ? AND family = 'quality' AND task.kind = 'combine' AND result.draw IS NULL
                 AND dataset <> 'confidential' ORDER BY value IS NOT NULL, value, result.id""",
        (run_id,),
    )
    found: dict[tuple[str, str], tuple[float | None, str]] = {}
    for row in rows:
        found.setdefault((row["key"], row["target"]), (row["value"], row["reason"]))
    return found


def _limit(thresholds: Sequence[Threshold], key: str, column: str) -> float | None:
    limits = [one.limit for one in thresholds if one.value == key and one.bound == "min" and one.target in ("", column)]
    return max(limits, default=None)


def _quasi_identifiers(run: Run) -> dict[str, Scale]:
    from sfumato.engine.partition.pairs import NUMBERS, quasi_identifiers

    recipe = run.recipe
    names = quasi_identifiers(recipe.schema, recipe.released)
    return {name: "numbers" if recipe.schema[name].kind in NUMBERS else "categories" for name in names}


@dataclass(frozen=True)
class Minimisation:
    """A study of sample sizes: ``sizes`` (s,) ascending, what each measure says at each, and the answer.

    ``values`` are the least of a size's sub-samples, None where one has none; ``passing`` the shares that meet every limit.
    ``answer`` is None, with a ``reason``, where no size is enough.
    """

    k: int
    subsamples: int
    sizes: tuple[int, ...]
    values: Mapping[str, tuple[float | None, ...]]
    limits: Mapping[str, float]
    passing: tuple[float | None, ...]
    answer: int | None
    reason: str = ""

    @property
    def fail_above(self) -> tuple[int, ...]:
        """Sizes above the answer of which some sub-sample misses a limit all the same."""
        above = self.answer or max(self.sizes, default=0)
        return tuple(n for n, share in zip(self.sizes, self.passing, strict=True) if n > above and share != 1)


def minimisations(workspace: Workspace, run_id: int) -> list[Minimisation]:
    """The studies of the smallest sufficient sample of a finished run, in the order of its recipe. Raises NotFound."""
    from sfumato.engine.studies.minimisation import MinimisationSpec

    recipe = find_run(workspace, run_id).recipe
    found: dict[str, dict[str, dict[int, float | None]]] = {}
    answers: dict[str, tuple[float | None, str]] = {}
    rows = workspace.connection.execute(
        """SELECT measure, value, reason, result.params AS params FROM result JOIN task ON task.id = result.task_id
           WHERE result.run_id = ? AND family = 'studies' AND result.method = 'minimisation' AND task.kind = 'combine'
                 AND result.draw IS NULL AND dataset = 'confidential' ORDER BY value IS NOT NULL, value, result.id""",
        (run_id,),
    )
    for row in rows:
        params = json.loads(row["params"])
        step = recipe.step_of("studies.minimisation", params)
        study = "" if step is None else step.place
        if row["measure"] == "smallest_size":
            answers[study] = row["value"], row["reason"]
        else:
            found.setdefault(study, {}).setdefault(row["measure"], {}).setdefault(params["size"], row["value"])
    return [
        _minimisation(step.spec, found[step.place], *answers[step.place])
        for step in recipe.studies
        if isinstance(step.spec, MinimisationSpec) and step.place in answers
    ]


def _minimisation(
    spec: MinimisationSpec, values: Mapping[str, Mapping[int, float | None]], answer: float | None, reason: str
) -> Minimisation:
    sizes = tuple(sorted({size for one in values.values() for size in one}))
    columns = {name: tuple(one.get(size) for size in sizes) for name, one in values.items()}
    passing = columns.pop("passing", (None,) * len(sizes))
    names: list[str] = [name for name in MINIMISED if name in columns]
    limits = {name: float(getattr(spec, name)) for name in names}
    found = None if answer is None else int(answer)
    return Minimisation(
        spec.k, spec.subsamples, sizes, {name: columns[name] for name in names}, limits, passing, found, reason
    )


RATES: Sequence[str] = ("true_positive_rate", "false_positive_rate", "precision", "error_rate")
AREAS: Sequence[str] = ("auc", "average_precision")
ERRORS: Sequence[str] = ("lost", "spurious", "sign_flip", "errors")


@dataclass(frozen=True)
class CalibratedMeasure:
    """How well a measure tells good labels from bad: ``rates`` (l,) by name at each of ``levels`` (l,), ascending.

    ``areas`` by name and generators ("all", "best", "worst"), and ``suggested``: a value, or None and why.
    """

    name: str
    levels: tuple[float, ...]
    rates: Mapping[str, tuple[float | None, ...]]
    areas: Mapping[tuple[str, str], tuple[float | None, str]]
    good: float | None
    suggested: tuple[float | None, str]


@dataclass(frozen=True)
class Calibration:
    """A calibration: its measures, and rates of error on tables that meet all of Lighthouse's limits and on the others.

    ``errors`` are by kind and whether the tables pass; ``tests`` by whether they do.
    """

    measures: tuple[CalibratedMeasure, ...]
    errors: Mapping[tuple[str, bool], float | None]
    tests: Mapping[bool, int]


Summary = tuple[str, float | None, float | None, str, Mapping[str, Any]]
"""Measure, level, value, reason and parameters of a row."""


def calibrations(workspace: Workspace, run_id: int) -> list[Calibration]:
    """The calibrations of a finished run in the order of its recipe."""
    names = (*RATES, *AREAS, *ERRORS, "good", "suggested_threshold")
    rows = workspace.connection.execute(
        f"""SELECT measure, level, value, reason, result.params AS params
            FROM result JOIN task ON task.id = result.task_id
            WHERE result.run_id = ? AND family = 'studies' AND result.method = 'calibration' AND task.kind = 'combine'
                  AND result.draw IS NULL AND measure IN ({", ".join("?" * len(names))}) ORDER BY result.id""",
        (run_id, *names),
    )
    recipe = find_run(workspace, run_id).recipe
    studies: dict[str, list[Summary]] = {step.place: [] for step in recipe.studies}
    for row in rows:
        params = json.loads(row["params"])
        if step := recipe.step_of("studies.calibration", params):
            studies[step.place].append((row["measure"], row["level"], row["value"], row["reason"], params))
    return [_calibration(study) for study in studies.values() if study]


def _calibration(rows: Sequence[Summary]) -> Calibration:
    scores = dict.fromkeys(params["score"] for *_, params in rows if "score" in params)
    measures = tuple(_calibrated(name, [row for row in rows if row[4].get("score") == name]) for name in scores)
    counted = [row for row in rows if row[0] in ERRORS]
    errors = {(kind, bool(params["passed"])): value for kind, _, value, _, params in counted}
    return Calibration(measures, errors, {bool(params["passed"]): int(params["tests"]) for *_, params in counted})


def _calibrated(name: str, rows: Sequence[Summary]) -> CalibratedMeasure:
    at = {(measure, level): value for measure, level, value, _, _ in rows if level is not None}
    levels = tuple(sorted({level for _, level in at}))
    rates = {rate: tuple(at.get((rate, level)) for level in levels) for rate in RATES}
    areas = {(m, str(params["generators"])): (value, reason) for m, _, value, reason, params in rows if m in AREAS}
    single = {measure: (value, reason) for measure, level, value, reason, _ in rows if level is None}
    good = single.get("good", (None, ""))[0]
    return CalibratedMeasure(name, levels, rates, areas, good, single.get("suggested_threshold", (None, "")))

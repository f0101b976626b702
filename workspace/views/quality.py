"""Data quality of a run: scores by column and measure with their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.statistics.comparing import is_below

from ..store.runs import RunState, StoredRun, find_run
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe
    from sfumato.engine.recipe.thresholds import Threshold

ScoreOutcome = Literal["met", "not met", "not computed", "no threshold"]
Scale = Literal["numbers", "categories", "table"]


@dataclass(frozen=True, slots=True)
class QualityMetric:
    """Measure of data quality.

    name: its name
    column_key: key of its scores of columns; empty where it has none
    table_key: key of its score of all columns
    scale: kind of columns that it scores
    default_limit: smallest acceptable score by default; None without a limit
    """

    name: str
    column_key: str
    table_key: str
    scale: Scale
    default_limit: float | None


def quality_metrics(recipe: Recipe) -> list[QualityMetric]:
    """Return the measures of data quality that score columns or the whole table, those of a recipe first."""
    taken = [step.method.key for step in recipe.measures]
    methods = sorted(
        (method for method in registry().values() if method.family == "quality"),
        key=lambda method: taken.index(method.key) if method.key in taken else len(taken),
    )
    found: dict[str, QualityMetric] = {}
    for method in methods:
        # of two measures with one title that with a limit keeps it, the other is named by its key
        for metric in sorted(_metrics_of_method(method), key=lambda one: one.default_limit is None):
            name = metric.table_key if metric.name in found else metric.name
            found[name] = replace(metric, name=name)
    return list(found.values())


def _metrics_of_method(method: Method) -> Iterator[QualityMetric]:
    """Yield the measures of data quality of one method."""
    for output in method.outputs:
        whole, limit = f"{method.key}.{output.name}", output.quality.limit.least if output.quality.limit else None
        if output.quality.minimum_of:
            column = method.output(output.quality.minimum_of)
            yield QualityMetric(
                column.title, f"{method.key}.{column.name}", whole, column.quality.scores or "table", limit
            )
        elif output.quality.scores == "table":
            yield QualityMetric(output.title, "", whole, "table", limit)


@dataclass(frozen=True, slots=True)
class QualityScore:
    """Score of a column or of all columns; ``value`` is None where it could not be computed."""

    value: float | None
    limit: float | None
    reason: str = ""
    has_own_limit: bool = False
    """Whether the limit was set for this column rather than for the smallest of all."""

    @property
    def outcome(self) -> ScoreOutcome:
        """Return whether the score meets its limit."""
        if self.limit is None:
            return "no threshold"
        if self.value is None:
            return "not computed"
        # a value that was not computed never meets a limit
        return "not met" if is_below(self.value, self.limit) else "met"


@dataclass(frozen=True)
class QualityBoard:
    """Data quality scores of one run.

    metrics: measures that the run computed
    columns: scored columns
    column_scores: scores by measure and column
    table_scores: scores by measure over all columns
    expected_columns: for each measure with a limit, the quasi-identifiers of its kind, which it should score
    """

    metrics: Sequence[QualityMetric]
    columns: Sequence[str]
    column_scores: Mapping[tuple[str, str], QualityScore]
    table_scores: Mapping[str, QualityScore]
    expected_columns: Mapping[str, Sequence[str]]

    @property
    def outcome(self) -> Literal["met", "not met", "not computed"]:
        """Return whether the release meets every limit of data quality."""
        outcomes = {score.outcome for score in self.scores_with_limit.values()}
        if "not met" in outcomes:
            return "not met"
        return "not computed" if self.missing_metrics or "not computed" in outcomes or not outcomes else "met"

    @property
    def scores_with_limit(self) -> Mapping[str, QualityScore]:
        """Return the scores that have a limit of their own, by name."""
        own = {
            f"{metric} of {column}": score
            for (metric, column), score in self.column_scores.items()
            if score.has_own_limit
        }
        return {**{name: score for name, score in self.table_scores.items() if score.limit is not None}, **own}

    @property
    def missing_metrics(self) -> Sequence[str]:
        """Return the measures with a limit that the quasi-identifiers require and the run did not compute."""
        return [name for name in self.expected_columns if name not in self.table_scores]

    @property
    def unscored_columns(self) -> Sequence[tuple[str, str]]:
        """Return the quasi-identifiers that a measure should have scored and did not, as (measure, column)."""
        return [
            (name, column)
            for name, columns in self.expected_columns.items()
            if name in self.table_scores
            for column in columns
            if (name, column) not in self.column_scores
        ]


def has_quality_results(workspace: Workspace, run: StoredRun) -> bool:
    """Return whether a finished run has measured data quality."""
    query = "SELECT EXISTS (SELECT 1 FROM result WHERE run_id = ? AND family = 'quality')"
    return run.state is RunState.DONE and bool(workspace.connection.execute(query, (run.id,)).fetchone()[0])


def read_quality_board(workspace: Workspace, run_id: int) -> QualityBoard:
    """Read the scores of a finished run with the recipe's limits, or those of the measures. Raises NotFound."""
    run = find_run(workspace, run_id)
    recipe, known = run.recipe, _quasi_identifier_scales(run)
    thresholds, every = recipe.thresholds, quality_metrics(recipe)
    rows = _lowest_scores(workspace, run_id)
    scores: dict[tuple[str, str], QualityScore] = {}
    whole: dict[str, QualityScore] = {}
    for metric in every:
        set_by_recipe = _recipe_limit(thresholds, metric.table_key, "")
        overall = metric.default_limit if set_by_recipe is None else set_by_recipe
        for (key, column), (value, reason) in rows.items():
            if key == metric.column_key:
                own = _recipe_limit(thresholds, key, column)
                scores[metric.name, column] = QualityScore(
                    value, overall if own is None else own, reason, own is not None
                )
            elif key == metric.table_key:
                whole[metric.name] = QualityScore(value, overall, reason)
    columns = tuple(dict.fromkeys([*known, *(column for _, column in scores)]))
    shown = [metric for metric in every if metric.name in whole]
    return QualityBoard(shown, columns, scores, whole, _columns_by_metric(every, known))


def _columns_by_metric(every: Sequence[QualityMetric], known: Mapping[str, Scale]) -> dict[str, Sequence[str]]:
    """Return the columns that each measure with a limit should score; none for a measure of the whole table."""
    limited = [metric for metric in every if metric.default_limit is not None]
    columns = {m.name: [c for c, scale in known.items() if scale == m.scale] for m in limited}
    return {m.name: columns[m.name] for m in limited if columns[m.name] or m.scale == "table"}


def _lowest_scores(workspace: Workspace, run_id: int) -> dict[tuple[str, str], tuple[float | None, str]]:
    """Return the lowest score and its reason, by key and column, over uses of a measure with different settings."""
    rows = workspace.connection.execute(
        """SELECT family || '.' || result.method || '.' || measure AS key, target, value, reason
           FROM result JOIN task ON task.id = result.task_id
           WHERE result.run_id = ? AND family = 'quality' AND task.kind = 'combine' AND result.draw IS NULL
                 AND dataset <> 'confidential' ORDER BY value IS NOT NULL, value, result.id""",
        (run_id,),
    )
    found: dict[tuple[str, str], tuple[float | None, str]] = {}
    for row in rows:
        # rows without a value come first: a score that failed once must not pass by another use
        found.setdefault((row["key"], row["target"]), (row["value"], row["reason"]))
    return found


def _recipe_limit(thresholds: Sequence[Threshold], key: str, column: str) -> float | None:
    """Return the recipe's limit on a score of a column; None where it has none."""
    limits = [one.limit for one in thresholds if one.value == key and one.bound == "min" and one.target in ("", column)]
    # of several limits all have to be met
    return max(limits, default=None)


def _quasi_identifier_scales(run: StoredRun) -> dict[str, Scale]:
    """Return the scale of each compared quasi-identifier of a run."""
    from sfumato.engine.partition.pairs import NUMBERS, compared_quasi_identifiers

    recipe = run.recipe
    names = compared_quasi_identifiers(recipe.schema, recipe.released)
    return {name: "numbers" if recipe.schema[name].kind in NUMBERS else "categories" for name in names}

"""What the screens show of data quality: scores by column and measure with their limits, and which runs have any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.statistics.comparing import is_below

from ..store.runs import Run, RunState, find_run
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe
    from sfumato.engine.recipe.thresholds import Threshold

ScoreOutcome = Literal["met", "not met", "not computed", "no threshold"]
Scale = Literal["numbers", "categories", "table"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure of data quality: what it is of a column, what it is over all, and the limit that holds by default."""

    name: str
    column: str
    whole: str
    scale: Scale
    limit: float | None


def metrics(recipe: Recipe) -> list[Metric]:
    """Every measure of data quality that scores columns or the whole table, those of a recipe first and in its order."""
    taken = [step.method.key for step in recipe.measures]
    methods = sorted(
        (method for method in registry().values() if method.family == "quality"),
        key=lambda method: taken.index(method.key) if method.key in taken else len(taken),
    )
    found: dict[str, Metric] = {}
    for method in methods:
        for metric in sorted(_metrics(method), key=lambda one: one.limit is None):
            name = metric.whole if metric.name in found else metric.name
            found[name] = replace(metric, name=name)
    return list(found.values())


def _metrics(method: Method) -> Iterator[Metric]:
    for output in method.outputs:
        whole, limit = f"{method.key}.{output.name}", output.quality.limit.least if output.quality.limit else None
        if output.quality.minimum_of:
            column = method.output(output.quality.minimum_of)
            yield Metric(column.title, f"{method.key}.{column.name}", whole, column.quality.scores or "table", limit)
        elif output.quality.scores == "table":
            yield Metric(output.title, "", whole, "table", limit)


@dataclass(frozen=True, slots=True)
class Score:
    """What a measure says of a column, or over all; ``value`` is None where it could not be computed."""

    value: float | None
    limit: float | None
    reason: str = ""
    own_limit: bool = False
    """Whether the limit was set for this column rather than for the smallest of all."""

    @property
    def outcome(self) -> ScoreOutcome:
        """A value that was not computed does not meet a limit."""
        if self.limit is None:
            return "no threshold"
        if self.value is None:
            return "not computed"
        return "not met" if is_below(self.value, self.limit) else "met"


@dataclass(frozen=True)
class QualityBoard:
    """Scores by measure and column, and by measure over all columns, of one run.

    ``expected`` are the measures with a limit that the kinds of the quasi-identifiers call for, and which columns of them.
    ``metrics`` are those that the run has taken.
    """

    metrics: Sequence[Metric]
    columns: Sequence[str]
    scores: Mapping[tuple[str, str], Score]
    whole: Mapping[str, Score]
    expected: Mapping[str, Sequence[str]]

    @property
    def outcome(self) -> Literal["met", "not met", "not computed"]:
        """Whether the release meets minimum data quality: every limit held, on every column and over all."""
        outcomes = {score.outcome for score in self.judged.values()}
        if "not met" in outcomes:
            return "not met"
        return "not computed" if self.missing or "not computed" in outcomes or not outcomes else "met"

    @property
    def judged(self) -> Mapping[str, Score]:
        """What is held against a limit: the measures over all columns, and columns with a limit of their own."""
        own = {f"{metric} of {column}": score for (metric, column), score in self.scores.items() if score.own_limit}
        return {**{name: score for name, score in self.whole.items() if score.limit is not None}, **own}

    @property
    def missing(self) -> Sequence[str]:
        """Measures with a limit that the quasi-identifiers call for, and that the run has not taken."""
        return [name for name in self.expected if name not in self.whole]

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


def has_quality(workspace: Workspace, run: Run) -> bool:
    """Whether a run has measured data quality; not before it is done."""
    query = "SELECT EXISTS (SELECT 1 FROM result WHERE run_id = ? AND family = 'quality')"
    return run.state is RunState.DONE and bool(workspace.connection.execute(query, (run.id,)).fetchone()[0])


def quality_board(workspace: Workspace, run_id: int) -> QualityBoard:
    """The scores of a finished run with the recipe's limits, else those that the measures declare. Raises NotFound."""
    run = find_run(workspace, run_id)
    recipe, known = run.recipe, _quasi_identifiers(run)
    thresholds, every = recipe.thresholds, metrics(recipe)
    rows = _lowest(workspace, run_id)
    scores: dict[tuple[str, str], Score] = {}
    whole: dict[str, Score] = {}
    for metric in every:
        set_by_recipe = _limit(thresholds, metric.whole, "")
        overall = metric.limit if set_by_recipe is None else set_by_recipe
        for (key, column), (value, reason) in rows.items():
            if key == metric.column:
                own = _limit(thresholds, key, column)
                scores[metric.name, column] = Score(value, overall if own is None else own, reason, own is not None)
            elif key == metric.whole:
                whole[metric.name] = Score(value, overall, reason)
    columns = tuple(dict.fromkeys([*known, *(column for _, column in scores)]))
    shown = [metric for metric in every if metric.name in whole]
    return QualityBoard(shown, columns, scores, whole, _expected(every, known))


def _expected(every: Sequence[Metric], known: Mapping[str, Scale]) -> dict[str, Sequence[str]]:
    """The columns that each measure with a limit is for; of the whole table none, where the kind occurs."""
    limited = [metric for metric in every if metric.limit is not None]
    columns = {m.name: [c for c, scale in known.items() if scale == m.scale] for m in limited}
    return {m.name: columns[m.name] for m in limited if columns[m.name] or m.scale == "table"}


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
    from sfumato.engine.partition.pairs import NUMBERS, compared_quasi_identifiers

    recipe = run.recipe
    names = compared_quasi_identifiers(recipe.schema, recipe.released)
    return {name: "numbers" if recipe.schema[name].kind in NUMBERS else "categories" for name in names}

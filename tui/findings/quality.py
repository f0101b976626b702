"""Dialog with the quality board: every column by every measure of data quality, compared with the minimum data
quality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.export import ExportTable, ScreenExport
from sfumato.tui.session.messages import WorkspaceChanged
from sfumato.tui.widgets.facts import titled_facts
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.reporting.explanation import describe_measure
from sfumato.workspace.reporting.words import number, outcome_text, sign_for
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.quality import QualityBoard, QualityMetric, QualityScore, read_quality_board
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import OffersExport
from ..parts.split import DetailQuery, LaidOut, SplitView
from ..parts.tables import TableDialog

STYLES = {"met": "$success bold", "not met": "$error bold", "not computed": "$warning bold"}
SAID = {
    "met": "meets minimum data quality",
    "not met": "does not meet minimum data quality",
    "not computed": "whether it meets minimum data quality cannot be said",
}
MINIMUM, LIMIT = "minimum", "limit"
CELL = 14


NO_RECORDS = (
    "A limit is the recipe's own, or the method's by default; no records stand behind it. "
    "enter on a variable shows its values, and from their bars the records"
)


class QualityGrid(LiveGrid):
    """Grid with the minimum over the columns, the limits, and a row for each variable."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Values behind it", show=True)]


class QualityDialog(TableDialog[int, None], OffersExport, SplitView):
    """Quality board of one run; a row is explained in full beside it."""

    manual = "app board of quality"
    id_prefix = "quality"
    least_list = 78

    DEFAULT_CSS = """
    QualityDialog #quality-why { color: $text-muted; }
    QualityDialog #quality-reading { height: 3; padding: 0 1; }
    """

    def __init__(self, run_id: int) -> None:
        """Create the board of a run."""
        super().__init__()
        self._run_id = run_id
        self._project_id = 0
        self._found: QualityBoard | None = None

    def compose_above_table(self) -> Iterator[Widget]:
        """Yield the line with the reasons for the verdict."""
        yield Line(name="quality-why")

    def make_grid(self) -> QualityGrid:
        """Return the grid of the board."""
        return QualityGrid(empty="…")

    def compose_below_table(self) -> Iterator[Widget]:
        """Yield the text about the row under the cursor."""
        yield Static("", id="quality-reading", markup=False)

    def read_query(self) -> Callable[[Workspace], tuple[int, QualityBoard]]:
        """Return the query for the run's project and the scores."""
        run_id = self._run_id
        return lambda workspace: (find_run(workspace, run_id).project_id, read_quality_board(workspace, run_id))

    def show_answer(self, answer: tuple[int, QualityBoard]) -> None:
        """Show the verdict, its reasons and the board."""
        self._project_id, found = answer
        self._found = found
        head = (f"{outcome_text(found.outcome)}  {SAID[found.outcome]}", STYLES[found.outcome])
        self.set_head(Content.assemble(f"Run {self._run_id}  ", head))
        self.query_one("#quality-why", Line).set_text(verdict_reason(found))
        self.show_rows(board_table(found), range(2 + len(found.columns)))
        self.show_row_text()

    def on_workspace_changed(self, _: WorkspaceChanged) -> None:
        """Read the board again when the workspace has changed."""
        self.reload()

    def describe_row(self, row: int) -> str:
        """Return the text about a row of the board."""
        return "" if self._found is None else board_row_text(self._found, row)

    async def open_row(self, row: int) -> None:
        """Show the distributions of a row's variable; for the minimum, those of the variable that has it."""
        found = self._found
        if found is None:
            return
        # Rows 0 and 1 are the minimum and the limits; the variables follow.
        column = found.columns[row - 2] if row >= 2 else deciding_column(found) if row == 0 else None
        if column is None:
            self.sfumato.say(NO_RECORDS)
        else:
            from .distribution import DistributionsDialog

            await self.sfumato.open(DistributionsDialog(self._project_id, self._run_id, column))

    def detail_of_row(self, row: int) -> DetailQuery | None:
        """Return the query for a row's measures, each with its limit, reason and meaning."""
        found = self._found
        if found is None:
            return None

        def query(_: Workspace) -> LaidOut:
            """Lay out the facts; the meanings are looked up here, in the thread, because the registry imports all
            methods.
            """
            title = found.columns[row - 2] if row >= 2 else "Minimum over the columns"
            return partial(titled_facts, title, score_facts(found, row, lambda key: describe_measure(key).meaning))

        return row, found, query

    def make_exportable(self) -> ScreenExport | None:
        """Return every score of the board for export."""
        found = self._found
        return None if found is None else ScreenExport(f"run-{self._run_id}-quality", lambda: score_rows(found))


def verdict_reason(board: QualityBoard) -> str:
    """Return the reasons for the verdict, such as ``nmi v1 0.7882 < 0.8``: scores below their limit, missing and left
    out ones.
    """
    said = [
        f"{name} {number(one.value)} < {number(one.limit)}"
        for name, one in board.scores_with_limit.items()
        if one.outcome == "not met"
    ]
    # What was not computed or not measured is never passed over in silence.
    said += [f"{name} not computed" for name, one in board.scores_with_limit.items() if one.outcome == "not computed"]
    said += [f"{name} not measured" for name in board.missing_metrics]
    left_out: dict[str, list[str]] = {}
    for metric, column in board.unscored_columns:
        left_out.setdefault(column, []).append(metric)
    said += [f"{column} not scored by {', '.join(metrics)}" for column, metrics in left_out.items()]
    return replace_unprintable(" · ".join(said) or "the minimum over the columns holds every limit")


def board_table(board: QualityBoard) -> GridTable[int]:
    """Return the board's table, whose rows are indices; measures without a limit are dropped first if the width is too
    small.
    """
    rows, last = board_rows(board), len(board.metrics)
    columns = [
        TableColumn[int](
            m.name, m.name, max(CELL, len(m.name)), drop_order=0 if m.default_limit is not None else last - place
        )
        for place, m in enumerate(board.metrics)
    ]
    return GridTable((TableColumn[int]("name", "variable", 12, grow_order=1), *columns), values=lambda row: rows[row])


def board_rows(board: QualityBoard) -> list[Mapping[str, object]]:
    """Return the cells of the rows: the minimum over the columns, the limits, then a row for each column."""
    minimum = {metric.name: score_cell(board.table_scores[metric.name]) for metric in board.metrics}
    limits = {m.name: _limit_text(board.table_scores[m.name]) for m in board.metrics}
    rows: list[Mapping[str, object]] = [{"name": MINIMUM, **minimum}, {"name": LIMIT, **limits}]
    for column in board.columns:
        scores = {m.name: _column_cell(board, m, column) for m in board.metrics}
        rows.append({"name": column, **scores})
    return rows


def score_cell(score: QualityScore) -> str:
    """Return a score with the sign of its outcome: ``✓ 0.9765``, ``✗ 0.5``, ``? not computed``; without a limit the
    number alone.
    """
    if score.value is None:
        return f"{sign_for('not computed')} not computed"
    return number(score.value) if score.limit is None else f"{sign_for(score.outcome)} {number(score.value)}"


def _column_cell(found: QualityBoard, metric: QualityMetric, column: str) -> str:
    """Return the score of a column by a measure; ``not scored`` if it was left out, empty if the measure has none."""
    score = found.column_scores.get((metric.name, column))
    if score is not None:
        return score_cell(score)
    return "not scored" if (metric.name, column) in found.unscored_columns else ""


def _limit_text(score: QualityScore) -> str:
    return "none" if score.limit is None else f"at least {number(score.limit)}"


def board_row_text(board: QualityBoard, index: int) -> str:
    """Describe a row of the board with the reasons."""
    if index < 2:
        parts = [_score_text(metric.name, board.table_scores[metric.name]) for metric in board.metrics]
        return replace_unprintable("Minimum over the columns: " + "; ".join(parts))
    column = board.columns[index - 2]
    parts = [
        _score_text(m.name, board.column_scores[m.name, column])
        for m in board.metrics
        if (m.name, column) in board.column_scores
    ]
    return replace_unprintable(f"{column}: " + ("; ".join(parts) or "no measure of the run scores it"))


def deciding_column(board: QualityBoard) -> str | None:
    """Return the variable with the minimum of the first measure that fails, otherwise of the first with any score."""
    # The measure that fails decides; without one the first measure with a score.
    for metric in sorted(board.metrics, key=lambda one: board.table_scores[one.name].outcome != "not met"):
        scored = {
            column: score.value
            for column in board.columns
            if (score := board.column_scores.get((metric.name, column))) is not None and score.value is not None
        }
        if scored:
            return min(scored, key=lambda column: scored[column])
    return None


def score_facts(board: QualityBoard, index: int, meaning: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return a row of the board as facts by measure: value, limit and reason, and below them the measure's meaning."""
    facts = []
    for metric in board.metrics:
        score = (
            board.table_scores[metric.name]
            if index < 2
            else board.column_scores.get((metric.name, board.columns[index - 2]))
        )
        if score is not None:
            said = _score_text("", score).strip()
            facts += [(metric.name, f"{sign_for(score.outcome)} {said}" if score.limit is not None else said)]
            facts += [("", meaning(metric.table_key if index < 2 or not metric.column_key else metric.column_key))]
    return facts or [("", "no measure of the run scores it")]


def _score_text(name: str, score: QualityScore) -> str:
    """Return a score in words, with its limit and its reason."""
    value = "not computed" if score.value is None else number(score.value)
    limit = "" if score.limit is None else f", {_limit_text(score)}"
    return f"{name} {value}{limit}" + (f" ({score.reason})" if score.reason else "")


def score_rows(board: QualityBoard) -> ExportTable:
    """Return a row for every score; those of the minimum over the columns have no variable."""
    scored: Sequence[tuple[str, str, QualityScore]] = [
        *((name, "", score) for name, score in board.table_scores.items()),
        *((name, column, score) for (name, column), score in board.column_scores.items()),
    ]
    rows = [(name, column, one.value, one.limit, one.outcome, one.reason) for name, column, one in scored]
    return ("measure", "variable", "value", "limit", "outcome", "reason"), rows

"""Text about a run: in brief below the list of runs, and in full beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.labels import label_by_key, labels_of
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.tui.widgets.facts import ONE_COLUMN, run_in_lines, wrap_text
from sfumato.workspace.reporting.plan_steps import Facts
from sfumato.workspace.reporting.recipe_difference import difference_sentence
from sfumato.workspace.reporting.results import TableContext, result_table
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.reporting.words import (
    PUBLIC_KEY,
    SettingsByMethod,
    duration_text,
    holdout_text,
    limit_text,
    observed_text,
    sign_for,
)
from sfumato.workspace.views.run_detail import RunDetail, TaskPhase
from sfumato.workspace.visible_text import replace_unprintable

MOST_CHANGES = 4
MOST_UNMET = 3
NAME, LONG_NAME = 10, 14
NUMBERS = ("measure", "variable", "confidential", "release")
NUMBERS_OF_RELEASE = tuple(title for title in NUMBERS if title != "confidential")

StyledLines = list[tuple[str, str, str]]
"""Lines as (name, text, style); the name is empty below the first line of a name."""


def brief_run_text(
    detail: RunDetail, plan: Facts, width: int, room: int, least: int = 0, *, beside: bool = False
) -> Content:
    """Return the run in brief: data, changes, time by phase, unmet limits and what would fix them, then its ``plan``.

    width: cells of a line
    room: lines that a short list leaves; they limit the text, and long lines are broken if all fit
    least: lines of the text beside a long list
    beside: whether the run is shown in full elsewhere, so that only what is missing there is shown
    """
    said = [] if beside else _run_lines(detail, MOST_CHANGES)
    unmet = [
        (_verdict_text(one, name), _outcome_style(one.outcome))
        for one, name in zip(detail.unmet_verdicts, detail.verdict_names, strict=True)
    ]
    said += _first_lines("not met", unmet, MOST_UNMET)
    levers = dict.fromkeys(lever for one in detail.unmet_verdicts for lever in label_by_key(one.value).levers)
    said += _first_lines("what to change", [(lever, "") for lever in levers], MOST_UNMET)
    # The plan is the least urgent part, so it comes only if a short list leaves room.
    if room > len(said) + 1:
        said += [*([("", "", "")] if said else []), *((name, line, "") for name, line in plan)]
    most, text_width = max(room, least), max(20, width - LONG_NAME - 1)
    broken = [
        ("" if at else name, line, style)
        for name, line, style in said
        for at, line in enumerate(wrap_text(line, text_width) or [""])
    ]
    lines = (
        broken
        if len(broken) <= most
        else [(name, cut_text(replace_unprintable(line), text_width), style) for name, line, style in said]
    )
    return Content("\n").join(
        Content.assemble((fit_text(name, LONG_NAME), "$primary"), " ", (line, style))
        for name, line, style in lines[:most]
    )


@dataclass(frozen=True)
class FullRunDetail:
    """Run in full: its brief, all its verdicts, and the rows of the first of its numbers.

    detail: the brief
    state_words: state of the run
    verdicts: its verdicts
    rows: its first rows of results
    apart: settings that differ between uses of a method
    """

    detail: RunDetail
    state_words: str
    verdicts: Sequence[Verdict]
    rows: Sequence[Row]
    apart: SettingsByMethod

    def to_lines(self, width: int) -> Content:
        """Return all of it in lines of ``width`` cells: verdicts, unmet ones first, the brief, and the numbers if a
        table fits.
        """
        verdicts = sorted(self.verdicts, key=lambda one: WORST_FIRST.index(one.outcome))
        run, *others = _run_lines(self.detail, len(self.detail.changes))
        lines_of = labelled_verdict_lines(verdicts, self.detail.records)
        judged = [(line, _outcome_style(one.outcome)) for one, line in zip(verdicts, lines_of, strict=True)]
        said = [run, ("now", self.state_words, ""), *_first_lines("verdicts", judged, len(judged)), *others]
        if width < ONE_COLUMN:
            return Content("\n").join(line for one in said for line in run_in_lines(one[0], one[1], width, one[2]))
        lines = [
            Content.assemble((f"{'' if place else name:<{NAME}}", "$primary"), (line, style))
            for name, text, style in said
            for place, line in enumerate(wrap_text(text, max(20, width - NAME)))
        ]
        table = result_table(self.rows, TableContext(self.apart, records=self.detail.records))
        numbers = ""
        # Where even folded names leave too little room, the release alone is shown.
        for titles in (NUMBERS, NUMBERS_OF_RELEASE):
            shown = table.select_columns([i for i, one in enumerate(table.columns) if one.title in titles])
            numbers = format_table(shown, width)
            if max(map(cell_len, numbers.splitlines()), default=0) <= width:
                break
        return Content("\n").join([*lines, Content(""), *map(Content, numbers.splitlines())] if self.rows else lines)


def _run_lines(detail: RunDetail, changes: int) -> StyledLines:
    """Return what a run is, with at most ``changes`` of its changes."""
    made = [] if detail.m is None else [f"m = {detail.m}"]
    key = [PUBLIC_KEY] if detail.key_public else []
    return [
        ("run", ", ".join([f"{detail.run_id}{f' {detail.name}' if detail.name else ''}: {detail.dataset_name}", f"{count_noun(detail.records, 'record')}", *made, f"seed {detail.seed}", *key]), ""),
        *_first_lines("note", [(detail.note, "")] if detail.note else [], 1),
        *_first_lines("file", [(detail.coverage_text, "$warning")] if detail.coverage_text else [], 1),
        *_first_lines("controls", [(holdout_text(detail.n_controls), "")] if detail.n_controls else [], 1),
        *_first_lines("rules", [(detail.redrawn_text, "")] if detail.redrawn_text else [], 1),
        *_first_lines("weights", [(line, "") for line in detail.weight_lines], len(detail.weight_lines)),
        *_change_lines(detail, changes),
        ("phases", ", ".join(_phase_text(phase) for phase in detail.phases), ""),
    ]  # fmt: skip


def _outcome_style(outcome: str) -> str:
    """Return the style of an outcome."""
    return {"not met": "$error", "met": ""}.get(outcome, "$warning")


def _change_lines(detail: RunDetail, most: int) -> list[tuple[str, str, str]]:
    """Return the changes since the previous run; empty without one."""
    if detail.previous_run_id is None:
        return []
    name = f"{sign_for('into')} run {detail.previous_run_id}"
    if not detail.changes:
        return [(name, "the same recipe", "$text-muted")]
    return _first_lines(name, [(difference_sentence(change), "") for change in detail.changes], most)


def _first_lines(name: str, lines: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str, str]]:
    """Return the first lines below one name, and the number of others."""
    left = len(lines) - most
    more = [("", f"and {left} more", "$text-muted")] if left > 0 else []
    return [("" if place else name, *line) for place, line in enumerate(lines[:most])] + more


def _phase_text(phase: TaskPhase) -> str:
    """Return the tasks of a phase with their time and memory."""
    tasks = f"{phase.n_done}/{phase.n_tasks}" if phase.n_done < phase.n_tasks else f"{phase.n_tasks}"
    took = f" in {duration_text(phase.seconds)}" if phase.n_done else ""
    memory = f" ({phase.peak_bytes / 1e6:.0f} MB)" if phase.peak_bytes else ""
    return f"{phase.kind} {tasks}{took}{memory}"


def labelled_verdict_lines(verdicts: Sequence[Verdict], records: int | None = None) -> list[str]:
    """Return each verdict in a line, with a name that differs from the others."""
    return [_verdict_text(one, name, records) for one, name in zip(verdicts, labels_of(verdicts), strict=True)]


def _verdict_text(verdict: Verdict, name: str, records: int | None = None) -> str:
    """Return a verdict in a line: ``✗ Re-identified with certainty: 88 of 20,190 (0.44 %), at most 0.1 %``."""
    limit = limit_text(verdict.bound, verdict.limit, verdict.value)
    found = verdict.reason if verdict.observed is None else observed_text(verdict, records)
    return f"{sign_for(verdict.outcome)} {name}: {found}, {limit}"

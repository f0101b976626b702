"""What the commands that look after a workspace print: runs, tasks, acts, and what the doctor finds."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, entry_points
from pathlib import Path

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import counted
from sfumato.workspace.audit import HEAD_FILE, Head, audit_rows, kept_head
from sfumato.workspace.reporting.tables import table
from sfumato.workspace.reporting.words import ASCII_MARKS, PUBLIC_KEY, details_text, duration, tally_text
from sfumato.workspace.store.heads import words_for
from sfumato.workspace.store.run_log import run_log
from sfumato.workspace.store.runs import Run, TaskRow, installed_version, list_runs, run_line, tasks_of
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import verify_workspace
from sfumato.workspace.upkeep.maintenance import Check, workspace_checks
from sfumato.workspace.visible_text import printable

from ..places import keys_file
from ..terminal.parts import states
from ..words import task_cells
from .options import printed

PACKAGES = (
    "textual", "duckdb", "pandas", "numpy", "scipy", "statsmodels", "scikit-learn", "emcee", "arviz-stats", "pyarrow", "loky",
)  # fmt: skip
SIGNS = {"ok": "+ ok", "note": "- note", "problem": "x problem"}


def runs_object(workspace: Workspace) -> dict[str, object]:
    """The runs of a workspace, newest first, as JSON."""
    return {"disclosure": "internal", "runs": [_run_object(workspace, run) for run in list_runs(workspace)]}


def run_object(workspace: Workspace, run: Run) -> dict[str, object]:
    """A run and its tasks as JSON."""
    tasks = [asdict(task) for task in tasks_of(workspace, run.id)]
    return {"disclosure": "internal", "run": _run_object(workspace, run), "tasks": tasks}


def _run_object(workspace: Workspace, run: Run) -> dict[str, object]:
    line = run_line(workspace, run.id)
    named = ("id", "title", "name", "note", "seed", "tasks_done", "tasks_total", "seconds", "seconds_left", "error")
    return {
        **{name: getattr(run, name) for name in named},
        "state": run.state.value,
        "recipe_sha256": run.recipe_sha256,
        "key_public": run.key_public,
        "attended": line.attended,
        "verdicts": dict(line.tally.counts),
    }


def run_list(workspace: Workspace) -> str:
    """The runs of a workspace, one a line, newest first; empty without any."""
    runs = list_runs(workspace)
    lines = [
        [
            str(run.id),
            run.titled,
            run.state.value,
            f"{run.tasks_done}/{run.tasks_total}",
            duration(run.seconds),
            "" if run.seconds_left is None else f"~{duration(run.seconds_left)}",
            _remark(workspace, run),
            "; ".join(filter(None, [key_text(run), run.error])),
        ]
        for run in runs
    ]
    titles = ("run", "title", "state", "tasks", "time", "left", "verdicts", "")
    return printed(table(titles, lines, right=(0, 3, 4, 5), spare=(7, 3, 5))) if runs else ""


def _remark(workspace: Workspace, run: Run) -> str:
    """``+ 7 met``, ``x 2 of 7 not met``; nothing before the run is done, but that nobody works on it."""
    line = run_line(workspace, run.id)
    if line.stalled:
        return f"nobody works on it; sfumato resume {run.id}"
    return tally_text(line.tally.counts, ASCII_MARKS.__getitem__)


def key_text(run: Run) -> str:
    """``public key`` of a run that has one; empty for others."""
    return PUBLIC_KEY if run.key_public else ""


def named_text(run: Run) -> str:
    """``"reference", `` of a run that has a name; empty for others."""
    return f'"{printable(run.name)}", ' if run.name else ""


def run_head(workspace: Workspace, run: Run) -> str:
    """``run 3, Visits: running, 12 of 30 tasks, 40 s, about 2 min left``, and where its log lies."""
    left = "" if run.seconds_left is None else f", about {duration(run.seconds_left)} left"
    named = f"{named_text(run)}{printable(run.title)}"
    state = f"run {run.id}, {named}: {run.state}, {run.tasks_done} of {run.tasks_total} tasks, {duration(run.seconds)}"
    lines = [f"{state}{left}"]
    if run.note:
        lines.append(f"note: {printable(run.note)}")
    if run.key_public:
        lines.append(PUBLIC_KEY)
    if run.error:
        lines.append(printable(run.error))
    log = run_log(workspace.directory, run.id)
    return "\n".join([*lines, *([f"log: {log}"] if log.is_file() else [])])


def task_table(tasks: Sequence[TaskRow]) -> str:
    lines = [task_cells(task, time.time()) for task in tasks]
    return printed(
        table(("task", "state", "phase", "time", "peak", "tried", ""), lines, right=(3, 4, 5), spare=(5, 4, 2))
    )


def act_table(workspace: Workspace) -> str:
    """Every act, oldest first; hashes by their first digits."""
    lines = [
        [str(row.number), row.time[:19].replace("T", " "), row.act, row.subject, details_text(row.details)]
        for row in audit_rows(workspace.connection)
    ]
    return printed(table(("", "time (UTC)", "act", "of", "details"), lines, right=(0,)))


def verified(workspace: Workspace, noted: str | None) -> tuple[bool, str]:
    """Whether the workspace is as it was sealed, and that in words. Raises BadInput when ``noted`` is no head."""
    head = _head(noted)
    found = verify_workspace(workspace, [] if head is None else [head])
    rows, notes = found.rows, "".join(f"\n{note}" for note in found.notes)
    if found.wrong:
        return False, "\n".join(found.wrong) + notes
    last = Head(len(rows), rows[-1].hash if rows else "")
    missing = (
        ""
        if kept_head(workspace.directory)
        else f"; the file {HEAD_FILE} is gone: rows removed at the end may go unnoticed"
    )
    outside = "" if workspace.owner else "; ".join(["", *_kept_outside(workspace)])
    return True, f"{counted(len(rows), 'row')}, none changed{missing}{outside}; head {last}{notes}"


def _kept_outside(workspace: Workspace) -> list[str]:
    """Where the head is kept outside the workspace, and whether it agrees."""
    return [words_for(place, workspace.directory, workspace.connection)[1] for place in workspace.places()]


def _head(noted: str | None) -> Head | None:
    if noted is None:
        return None
    number, _, hashed = noted.partition(":")
    if not (number.isdigit() and len(hashed) == 64):
        raise BadInput("--head", f'"{noted}" is no head such as sfumato audit verify prints: NUMBER:HASH')
    return Head(int(number), hashed)


def all_checks(directory: Path) -> list[Check]:
    """Findings about the installation, the terminal and the workspace."""
    return [*_installation(), *_methods(), *_terminal(), _keys(), *workspace_checks(directory)]


def _installation() -> list[Check]:
    findings = [Check("Python", "ok", platform.python_version())]
    for name in PACKAGES:
        try:
            findings.append(Check(name, "ok", installed_version(name)))
        except PackageNotFoundError:
            findings.append(Check(name, "problem", "not installed; reinstall Sfumato with its dependencies"))
    return findings


def _methods() -> list[Check]:
    """Other distributions that bring methods, and those whose methods cannot be used."""
    if not entry_points(group="sfumato.methods"):
        return []
    from sfumato.engine.methods.registry import OWN, refused, registry

    usable = [(found.package, found.key) for found in registry().values() if found.package != OWN]
    return [
        *(
            Check(package, "note", f"brings the method {key}, code that runs as Sfumato's own")
            for package, key in usable
        ),
        *(
            Check(one.distribution, "problem", f"the method {one.key} cannot be used: {one.reason}")
            for one in refused()
        ),
    ]


def _terminal() -> list[Check]:
    terminal = os.environ.get("TERM", "")
    encoding = (
        getattr(sys.__stdout__, "encoding", "") or ""
    ).lower()  # the app has put something else in place of stdout
    size = shutil.get_terminal_size()
    findings = [
        Check(
            "terminal",
            "ok" if terminal not in ("", "dumb") else "note",
            terminal or "TERM is not set: the app needs it",
        ),
        Check("size", "ok" if size.columns >= 80 and size.lines >= 24 else "note", f"{size.columns}x{size.lines}"),
        Check(
            "encoding",
            "ok" if "utf" in encoding else "note",
            encoding if "utf" in encoding else f"{encoding or 'unknown'}: the app will show ASCII alone",
        ),
    ]
    findings += [
        Check(
            part.key, "note" if reason else "ok", f"off: {reason}; the app works, only slower" if reason else part.does
        )
        for part, reason in states()
    ]
    if os.environ.get("NO_COLOR"):
        findings.append(Check("NO_COLOR", "ok", "set: the app uses no colour"))
    if os.environ.get("SSH_CONNECTION"):
        findings.append(Check("SSH", "note", "ssh -C makes the app lighter on the wire"))
    return findings


def _keys() -> Check:
    """Whether the file of the user's own keys can be used."""
    file = keys_file()
    if not file.exists():
        return Check("keys", "ok", f"as they come; to change them: sfumato keys > {file}")
    from ..keymap import BadKeymap, read_keymap

    try:
        return Check("keys", "ok", f"{len(read_keymap(file))} of your own, from {file}")
    except BadKeymap as error:
        return Check("keys", "problem", str(error))


def checks_text(findings: Sequence[Check]) -> str:
    return printed(table(("", "what", "finding"), [[SIGNS[f.state], f.what, f.text] for f in findings]))

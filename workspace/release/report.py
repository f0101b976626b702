"""The report of a run: what it needs is read, put into a document, and written to a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from sfumato.engine.errors import BadInput

from ..audit import Act, append
from ..gate.answer import Answer, answer_for
from ..gate.checks import Case
from ..gate.contents import plan_release
from ..gate.public_figure_checks import figures_of_case
from ..jobs.runs import published_tables
from ..plots.figure import Figure
from ..policy.policy import policy_of
from ..reporting.document import Document
from ..reporting.page import ReportedRun, report
from ..reporting.release_summary import Decision
from ..reporting.user_guide import PublicRelease, user_guide
from ..store.artefacts import control_records, traces_of
from ..store.redraw_counts import redraws_of
from ..store.runs import Run, done_together, find_run, names_of, records_of
from ..store.workspace import Workspace
from ..upkeep.integrity import hold
from ..views.beliefs import belief_measures, beliefs_of
from ..views.figures import figures_of
from ..views.results import diagnostics_of, result_rows, verdicts_of
from .users import promised, public_release


def report_of(
    workspace: Workspace,
    run_id: int | str,
    *,
    traces: bool = False,
    decision: Decision | None = None,
    figures: Sequence[Figure] | None = None,
    answer: Answer | None = None,
) -> Document:
    """The report of a run that is done, with what the runs beside it found. Raises NotFound, NotReady, NotAsSealed and NoKey.

    The same run gives the same document, byte for byte. With ``traces`` it shows posterior draws, and is as confidential as
    the data: a release has the report without them. ``decision`` is what was decided of the release that it goes with,
    ``figures`` are its figures where they were drawn before, and ``answer`` says whether it may leave, with its waivers. Without one the
    gate examines the run.
    """
    runs = done_together(workspace, run_id)
    for run in runs:
        hold(workspace, run.id, strict=True)
    reported = [_reported(workspace, run, name, traces=traces) for run, name in zip(runs, names_of(runs), strict=True)]
    drawn = figures_of(workspace, runs) if figures is None else figures
    answer = answer or answer_for(workspace, runs[0].id)
    return report(reported, drawn, published_tables(workspace, runs), decision, () if answer is None else answer.lines)


def public_release_of(workspace: Workspace, run_id: int | str) -> PublicRelease:
    """What the public may know of a run, by the workspace's policy. Raises NotFound, NotReady and BadInput."""
    plan, policy = plan_release(workspace, run_id), policy_of(workspace.directory)
    original = workspace.dataset(plan.run.dataset_id)
    rows = result_rows(workspace, plan.run.id)
    privacy = promised(plan.run.recipe, workspace.read(original), rows, secret=not plan.run.key_public)
    figures = figures_of_case(Case(workspace, plan, policy))
    return public_release(plan, policy.rules, figures, lambda draw: workspace.tables.read(plan.tables[draw]), privacy)


def report_page(
    workspace: Workspace,
    run_id: int | str,
    *,
    traces: bool = False,
    decision: Decision | None = None,
    answer: Answer | None = None,
) -> str:
    """``report_of`` as one HTML page."""
    return report_of(workspace, run_id, traces=traces, decision=decision, answer=answer).html()


def public_report_of(workspace: Workspace, run_id: int | str) -> Document:
    """What users of a run's datasets read, with public figures. Raises as ``public_release_of`` does."""
    release, run = public_release_of(workspace, run_id), find_run(workspace, run_id)
    return user_guide(release, figures_of(workspace, [run], public=True))


def _reported(workspace: Workspace, run: Run, name: str, *, traces: bool) -> ReportedRun:
    dataset = workspace.dataset(run.dataset_id)
    return ReportedRun(
        id=run.id,
        name=name,
        title=run.title,
        called=run.name,
        note=run.note,
        recipe=run.recipe,
        recipe_toml=run.recipe_toml,
        recipe_sha256=run.recipe_sha256,
        seed=run.seed,
        key_public=run.key_public,
        versions=run.versions,
        created=run.created,
        seconds=run.seconds,
        file=dataset.name,
        file_sha256=dataset.source_sha256,
        records=records_of(workspace, run),
        dropped=dataset.dropped,
        controls=control_records(workspace, run.id),
        redraws=redraws_of(workspace, run.id),
        rows=[row for row in result_rows(workspace, run.id) if row.draw is None],
        verdicts=verdicts_of(workspace, run.id),
        diagnostics=diagnostics_of(workspace, run.id),
        traces={model.target: model.trace for model in traces_of(workspace, run.id)} if traces else None,
        beliefs=[beliefs_of(workspace, run.id, one) for one in belief_measures(workspace, run.id)],
    )


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: what was there stays where the disk is full."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(content)  # a device, such as standard output
        return
    aside = target.with_name(f".{target.name[:200]}.writing-{os.getpid()}")
    try:
        aside.write_bytes(content)
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_report(
    workspace: Workspace, run_id: int | str, path: Path, *, force: bool = False, public: bool = False
) -> int:
    """Write the report, with traces, or the ``public`` one, and enter that in the audit log; returns its bytes.

    A file whose name ends in .md is Markdown, where figures are told in words; any other is an HTML page. A file that is there stays, unless ``force``. Raises BadInput.
    """
    workspace.check_own()
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput("-o", f'"{path}" is not a file in a directory that exists; name one, such as report.html')
    if path.exists() and not force:
        raise BadInput("-o", f'"{path}" exists; name another file, or add --force to replace it')
    made = public_report_of(workspace, run_id) if public else report_of(workspace, run_id, traces=True)
    page = (made.markdown() if path.suffix == ".md" else made.html()).encode()
    _write(path, page)
    subject = f"run {find_run(workspace, run_id).id}"
    with workspace.writing() as connection:
        append(
            connection,
            Act.REPORT_WRITTEN,
            subject,
            sha256=hashlib.sha256(page).hexdigest(),
            public=1 if public else None,
        )
    return len(page)


def report_to_file(directory: Path, run_id: int, path: Path, public: bool) -> int:
    """``write_report`` for a process of its own, which opens the workspace itself; the file is its owner's alone."""
    with Workspace.open(directory) as workspace:
        size = write_report(workspace, run_id, path, public=public)
    path.chmod(0o600)
    return size

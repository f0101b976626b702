"""Report of a run: its results are read, put into a document, and written to a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from sfumato.engine.errors import BadInput

from ..audit import AuditAct, append_act
from ..errors import NotReady, NotReleased
from ..gate.answer import ReleaseAnswer, answer_for_run
from ..gate.checks import ExaminedRelease
from ..gate.contents import plan_release
from ..gate.package_accounts import trusted_packages_of_run
from ..gate.public_figures import public_figures_of_release
from ..jobs.runs import published_figure_tables
from ..outgoing import write_outgoing_file
from ..plots.figure import Figure
from ..policy.policy import read_policy_of_workspace
from ..reporting.document import Document
from ..reporting.page import ReportedRun, report_document
from ..reporting.release_summary import ReleaseDecision
from ..reporting.user_guide import PublicRelease, user_guide_document
from ..store.artefacts import count_control_records, read_traces
from ..store.ledger import read_charges
from ..store.redraw_counts import read_redraws
from ..store.runs import (
    StoredRun,
    count_records_and_units,
    find_run,
    finished_with_companions,
    read_run_records,
    release_names,
)
from ..store.tombstones import released_run_manifests
from ..store.workspace import Workspace
from ..upkeep.integrity import verify_run
from ..views.beliefs import belief_measures, read_beliefs
from ..views.coverage import read_file_coverage
from ..views.figures import draw_run_figures
from ..views.results import read_diagnostics, read_result_rows, read_verdicts
from .users import make_public_release, privacy_promise_of_run


def make_report(
    workspace: Workspace,
    run_id: int | str,
    *,
    traces: bool = False,
    decision: ReleaseDecision | None = None,
    figures: Sequence[Figure] | None = None,
    answer: ReleaseAnswer | None = None,
) -> Document:
    """Return the report of a run that is done, with the results of its companions.

    Raises NotFound, NotReady, NotAsSealed and NoKey. The same run gives the same document, byte for byte. With
    ``traces`` it shows posterior draws, and is as confidential as the data: a release has the report without them.
    ``decision`` is the decision on the release that it goes with, ``figures`` are its figures if drawn before,
    ``answer`` is the gate's answer with its waivers; without one the gate examines the run.
    """
    runs = finished_with_companions(workspace, run_id)
    for run in runs:
        verify_run(workspace, run.id, strict=True)
    reported = [
        _reported_run(workspace, run, name, traces=traces) for run, name in zip(runs, release_names(runs), strict=True)
    ]
    drawn = draw_run_figures(workspace, runs) if figures is None else figures
    answer = answer or answer_for_run(workspace, runs[0].id)
    return report_document(
        reported,
        drawn,
        published_figure_tables(workspace, runs),
        decision,
        () if answer is None else answer.document_lines,
    )


def read_public_release(workspace: Workspace, run_id: int | str) -> PublicRelease:
    """Return the public part of a run, by the workspace's policy. Raises NotFound, NotReady and BadInput."""
    plan, policy = plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
    if plan.has_tables_alone:
        raise NotReady(
            f"run {plan.run.id} has tables and no dataset, so there are no numbers of datasets to publish; release it: "
            f"sfumato release {plan.run.id} -o DIR"
        )
    rows = read_result_rows(workspace, plan.run.id)
    privacy = privacy_promise_of_run(
        plan.run.recipe,
        read_run_records(workspace, plan.run),
        rows,
        secret=not plan.run.key_public,
        trusted_packages=trusted_packages_of_run(workspace, plan.run, policy.packages),
    )
    figures = public_figures_of_release(ExaminedRelease(workspace, plan, policy))
    return make_public_release(
        plan,
        policy.disclosure_rules,
        figures,
        lambda draw, names: workspace.tables.read_stored_table(plan.tables[draw], names),
        privacy,
        read_file_coverage(workspace, plan.run),
    )


def report_page(
    workspace: Workspace,
    run_id: int | str,
    *,
    traces: bool = False,
    decision: ReleaseDecision | None = None,
    answer: ReleaseAnswer | None = None,
) -> str:
    """Return the report of ``make_report`` as one HTML page."""
    return make_report(workspace, run_id, traces=traces, decision=decision, answer=answer).to_html()


def check_charged(workspace: Workspace, run_id: int | str) -> None:
    """Raise NotReleased where a run keeps a privacy account and no release of it was charged to its population.

    What leaves of such a run costs epsilon, be it a figure of the released datasets alone. Raises NotFound too.
    """
    run = find_run(workspace, run_id)
    if not any(step.method.synthesis.privacy.account for step in run.recipe.synthesis):
        return
    connection = workspace.connection
    # Releases of earlier versions entered no charge, and are counted all the same.
    if run.id in released_run_manifests(connection) or any(one.run_id == run.id for one in read_charges(connection)):
        return
    raise NotReleased(
        f"run {run.id} keeps a privacy account, and what leaves of it is charged to its population by a release. "
        f"Release it first: sfumato release {run.id} -o DIR"
    )


def make_public_report(workspace: Workspace, run_id: int | str) -> Document:
    """Return the document for users of a run's datasets, with public figures.

    Raises what ``read_public_release`` raises.
    """
    check_charged(workspace, run_id)
    release, run = read_public_release(workspace, run_id), find_run(workspace, run_id)
    return user_guide_document(release, draw_run_figures(workspace, [run], public=True))


def _reported_run(workspace: Workspace, run: StoredRun, name: str, *, traces: bool) -> ReportedRun:
    """Return a run with all that its report shows."""
    dataset = workspace.find_dataset(run.dataset_id)
    return ReportedRun(
        id=run.id,
        name=name,
        title=run.title,
        label=run.name,
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
        records=count_records_and_units(workspace, run),
        dropped=dataset.dropped,
        coverage_text="" if (coverage := read_file_coverage(workspace, run)).is_whole else coverage.text,
        controls=count_control_records(workspace, run.id),
        redraws=read_redraws(workspace, run.id),
        rows=[row for row in read_result_rows(workspace, run.id) if row.draw is None],
        verdicts=read_verdicts(workspace, run.id),
        diagnostics=read_diagnostics(workspace, run.id),
        traces={model.target: model.trace for model in read_traces(workspace, run.id)} if traces else None,
        beliefs=[read_beliefs(workspace, run.id, one) for one in belief_measures(workspace, run.id)],
    )


def _write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(content)  # a device, such as standard output
        return
    # Where the disk is full, what was there must stay. The name is cut since file systems allow 255 bytes.
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
    """Write the internal report with traces, or the ``public`` one; return its number of bytes.

    The audit log gets a row. A file whose name ends in .md is Markdown, where figures are described in words; any other
    is an HTML page. A file that is there stays, unless ``force``. Raises BadInput.
    """
    workspace.check_own()
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput("-o", f'"{path}" is not a file in a directory that exists; name one, such as report.html')
    if path.exists() and not force:
        raise BadInput("-o", f'"{path}" exists; name another file, or add --force to replace it')
    made = make_public_report(workspace, run_id) if public else make_report(workspace, run_id, traces=True)
    page = (made.to_markdown() if path.suffix == ".md" else made.to_html()).encode()
    target = path.resolve()
    if public and (target.is_file() or not target.exists()):
        try:
            write_outgoing_file(target, page, replace=force)
        except FileExistsError:  # made since it was looked for
            raise BadInput("-o", f'"{path}" exists; name another file, or add --force to replace it') from None
    else:
        _write_atomically(path, page)
    subject = f"run {find_run(workspace, run_id).id}"
    with workspace.write_transaction() as connection:
        append_act(
            connection,
            AuditAct.REPORT_WRITTEN,
            subject,
            sha256=hashlib.sha256(page).hexdigest(),
            public=1 if public else None,
        )
    return len(page)


def write_report_in_process(directory: Path, run_id: int, path: Path, public: bool) -> int:
    """Write the report in a process of its own, readable by its owner alone; return its number of bytes."""
    with Workspace.open(directory) as workspace:
        size = write_report(workspace, run_id, path, public=public)
    path.chmod(0o600)
    return size

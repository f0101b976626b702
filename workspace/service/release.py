"""Writing of a run's release, whole or not at all: ``public/`` may leave the building, ``internal/`` stays.

Where the gate blocks, the release needs a written reason, which the audit log keeps. The log has the hash of the
internal manifest, that manifest the hash of the public one, and both the hashes of their files: so released files can
be recognised.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sfumato.engine.recipe.outcomes import OUTCOMES
from sfumato.engine.recipe.thresholds import Verdict

from ..audit import AuditAct
from ..documents import (
    INTERNAL_DOCUMENTS,
    INTERNAL_DOCUMENTS_OF_TABLES,
    PUBLIC_DOCUMENTS,
    PUBLIC_DOCUMENTS_OF_TABLES,
)
from ..documents.written import DocumentWriter, WrittenFile, replace_hidden_in_json
from ..errors import LedgerChanged, NotReleased
from ..gate.answer import answer_from_examination
from ..gate.checks import ExaminedRelease
from ..gate.contents import OTHER_PACKAGE, ReleasePlan, plan_release
from ..gate.gate import apply_waivers, check_not_blocked, examine_release
from ..gate.ledger import store_people_of_release
from ..jobs.runs import result_object_with_companions
from ..outgoing import OutgoingFolder, open_guarded_folder
from ..policy.disclosure import INTERNAL as INTERNAL_MARK
from ..policy.policy import Policy, read_policy_of_workspace
from ..release.approval import apply_approval
from ..release.commitment import IN_MANIFEST, commitment_of_run, commitments_table
from ..release.decision import decision_from_dossier
from ..release.dossier import ReleaseDossier, read_dossier
from ..release.forms import DatasetForm
from ..release.public_files import estimate_dataset_bytes, public_files
from ..release.report import make_report
from ..store.disk import check_space_for_release, estimate_scratch_bytes
from ..store.keys import run_key
from ..store.release_folders import INTERNAL_FOLDER, MANIFEST_FILE, PUBLIC_FOLDER
from ..store.releases_in_progress import begin_release, publish_release, settle_releases
from ..store.runs import count_confidential_records
from ..store.workspace import Workspace

MOST_EXAMINATIONS = 10
"""Examinations of one release: each further one means that another release of the workspace was charged meanwhile."""
RELEASE_BYTES = 16 << 20
"""Room for the documents of a release."""


@dataclass(frozen=True)
class WrittenRelease:
    """Release that was written.

    directory: where
    files: names of its files
    manifest_sha256: SHA-256 of its internal manifest
    n_unmet: how many thresholds were not met
    """

    directory: Path
    files: tuple[str, ...]
    manifest_sha256: str
    n_unmet: int


@dataclass(frozen=True, slots=True)
class PastRelease:
    """Release as the audit log records it; ``time`` is UTC."""

    time: str
    user: str
    form: str
    reason: str
    manifest_sha256: str


def write_run_release(
    workspace: Workspace,
    run_id: int | str,
    directory: Path,
    form: DatasetForm = "csv",
    reason: str = "",
    waive: Mapping[str, str] | None = None,
) -> WrittenRelease:
    """Write the release of a run that is done into ``public/`` and ``internal/`` of an empty or new directory.

    ``waive`` has a reason for each blocking check to waive, ``reason`` waives all of them; where the policy requires a
    second person, both come from the request that another account approved. The result is the whole release with its
    row in the audit log, or neither; when cut off, it is completed or removed by ``resume`` and by the next release.
    Raises NotFound, NotReady, BadInput for an invalid policy or waiver, and NotReleased where the gate blocks and
    nobody entitled waives it, or where the directory is not empty, and NotEnoughDisk before anything is written.
    """
    workspace.check_own()
    settle_releases(workspace)
    plan, policy = plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
    target = directory.expanduser().resolve()
    _check_target_is_empty(target)
    _check_room(workspace, plan, target.parent, form)
    for attempt in range(MOST_EXAMINATIONS):
        try:
            # the gate, the report and the documents read the same long tables
            with workspace.tables.mapping_long_tables():
                files, manifest = _examine_and_write(workspace, plan, policy, target, form, reason, waive)
            break
        # Another release was charged since the gate looked: it looks again.
        except LedgerChanged:
            if attempt == MOST_EXAMINATIONS - 1:
                raise
    return WrittenRelease(target, files, manifest, len(plan.unmet_verdicts))


def _examine_and_write(
    workspace: Workspace,
    plan: ReleasePlan,
    policy: Policy,
    target: Path,
    form: DatasetForm,
    reason: str,
    waive: Mapping[str, str] | None,
) -> tuple[tuple[str, ...], str]:
    """Examine a release, and charge and write it where nothing blocks; return its files and the hash of its manifest.

    Raises what ``write_run_release`` raises, and LedgerChanged where another release was charged meanwhile.
    """
    # The examination at this moment counts, not one that a screen has shown: an earlier release may have been made
    # since.
    found = examine_release(workspace, plan, policy)
    charge, ledger_end = found.charge, found.ledger_end
    assert charge is not None, "every examination of a run has a charge"
    if policy.second_person:
        examination = apply_approval(workspace, plan, policy, found, form)
    else:
        examination = apply_waivers(found, policy, reason, waive)
    check_not_blocked(
        examination,
        answer_from_examination(
            examination, plan.run.recipe, policy, count_confidential_records(workspace, plan.run)
        ).sentence,
    )
    why = reason.strip() if examination.approval is None else examination.approval.reason
    dossier = read_dossier(workspace, plan, policy, examination, form, why)
    case = ExaminedRelease(workspace, plan, policy)
    charge = store_people_of_release(case, charge)
    with begin_release(workspace, plan.run.id, target, _audit_details(dossier), charge, ledger_end) as one:
        assert one.folder is not None
        files, manifest, public_manifest = _write_packages(workspace, dossier, one.folder)
        publish_release(workspace, one, manifest, public_manifest)
        return files, manifest


def _check_target_is_empty(target: Path) -> None:
    """Raise NotReleased unless the target is an empty or a new directory in one that exists."""
    if not target.parent.is_dir():
        raise NotReleased(f'there is no directory "{target.parent}"; make it first')
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NotReleased(f'"{target}" is not an empty directory; name an empty or a new one')
    # Before the examination, which may take long.
    os.close(open_guarded_folder(target.parent))


def _check_room(workspace: Workspace, plan: ReleasePlan, folder: Path, form: DatasetForm) -> None:
    """Raise NotEnoughDisk where a disk has less free space than the release may need."""
    counts = [workspace.find_dataset(plan.run.dataset_id).records]
    counts += map(workspace.tables.count_table_records, plan.tables)
    scratch = estimate_scratch_bytes(max(counts), len(plan.run.recipe.schema))
    files = estimate_dataset_bytes(workspace.tables, plan, form)
    check_space_for_release(workspace.directory, scratch, folder, RELEASE_BYTES + files)


def _write_packages(
    workspace: Workspace, dossier: ReleaseDossier, aside: OutgoingFolder
) -> tuple[tuple[str, ...], str, str]:
    """Write every file of both packages; return the files' names, and the SHA-256 of the internal and public manifests."""
    key = run_key(workspace.directory, dossier.plan.run.key_fingerprint)
    plan = dossier.plan
    bound = commitment_of_run(
        plan.run,
        dossier.original,
        plan.released_sha256,
        dossier.policy.sha256,
        plan.weights_sha256,
        plan.controls_sha256,
    )
    alone = plan.has_tables_alone
    made = () if alone else public_files(dossier, key)
    public = [_write_package_file(aside, PUBLIC_FOLDER, name, content) for name, content in made]
    documents = PUBLIC_DOCUMENTS_OF_TABLES if alone else PUBLIC_DOCUMENTS
    public += _write_documents(aside, PUBLIC_FOLDER, dossier, documents, public)
    said = replace_hidden_in_json(
        {**_public_manifest_table(dossier), "files": [_manifest_line(file) for file in public]}
    )
    # The commitment covers the public manifest, which lists the hash of every public file: it is computed when these
    # are written.
    value = bound.hmac_hex(key, said)
    manifest = _write_package_file(aside, PUBLIC_FOLDER, MANIFEST_FILE, _json_bytes({**said, IN_MANIFEST: value}))
    contents = (
        *_internal_files(workspace, dossier),
        ("commitments.json", _internal_json_bytes(commitments_table(bound, value))),
    )
    internal = [_write_package_file(aside, INTERNAL_FOLDER, name, content) for name, content in contents]
    documents = INTERNAL_DOCUMENTS_OF_TABLES if alone else INTERNAL_DOCUMENTS
    internal += _write_documents(aside, INTERNAL_FOLDER, dossier, documents, [*public, manifest, *internal])
    # The internal manifest comes last and has the hash of the public one, so the audit log needs its hash alone.
    sealed = {OTHER_PACKAGE: manifest.sha256, "files": [_manifest_line(file) for file in internal]}
    last = _write_package_file(
        aside,
        INTERNAL_FOLDER,
        MANIFEST_FILE,
        _internal_json_bytes({**_internal_manifest_table(workspace, dossier), **sealed}),
    )
    names = tuple(f"{file.package}/{file.name}" for file in (*public, *internal, manifest, last))
    return names, last.sha256, manifest.sha256


def _write_documents(
    aside: OutgoingFolder,
    package: str,
    dossier: ReleaseDossier,
    documents: Sequence[DocumentWriter],
    before: Sequence[WrittenFile],
) -> list[WrittenFile]:
    """Write the documents of a package in their order; each receives the files that were written before it."""
    made: list[WrittenFile] = []
    for document in documents:
        files = document(dossier, (*before, *made))
        made += [_write_package_file(aside, package, name, content) for name, content in files.items()]
    return made


def _write_package_file(
    aside: OutgoingFolder, package: str, name: str, content: bytes | Iterator[bytes]
) -> WrittenFile:
    """Write a file of one of the packages and return its name, size and hash."""
    written = aside.write_file(f"{package}/{name}", content)
    return WrittenFile(package, name, written.bytes, written.sha256)


def _manifest_line(file: WrittenFile) -> dict[str, Any]:
    """Return the line of a file in its package's manifest."""
    return {"name": file.name, "bytes": file.bytes, "sha256": file.sha256}


def _internal_files(workspace: Workspace, dossier: ReleaseDossier) -> Iterator[tuple[str, bytes]]:
    """Yield the files for whoever is responsible for the release, as name and bytes.

    They are as confidential as the data.
    """
    plan = dossier.plan
    page = make_report(
        workspace,
        plan.run.id,
        decision=decision_from_dossier(dossier),
        figures=dossier.draw_figures(),
        answer=dossier.answer,
    ).to_html()
    yield "report.html", page.encode()
    yield "recipe.toml", plan.run.recipe_toml.encode()
    yield "results.json", _json_bytes(result_object_with_companions(workspace, plan.run.id))
    yield (
        "examination.json",
        _internal_json_bytes(
            {**dossier.examination.to_table(), "reason": dossier.reason, "may_leave": dossier.answer.to_table()}
        ),
    )


def _public_manifest_table(dossier: ReleaseDossier) -> dict[str, Any]:
    """Return the public manifest without its files: nothing of the confidential data, the seed or the run."""
    plan = dossier.plan
    if plan.has_tables_alone:
        return {"kind": "tables", "tables": len(plan.run.recipe.tables), "versions": dict(plan.run.versions)}
    return {
        "kind": plan.run.recipe.origin,
        "format": dossier.form,
        "datasets": plan.datasets,
        "records": plan.records,
        "order": plan.run.recipe.form.order,
        "replaced": list(plan.replaced),
        "kept": list(plan.kept),
        "versions": dict(plan.run.versions),
    }


def _internal_manifest_table(workspace: Workspace, dossier: ReleaseDossier) -> dict[str, Any]:
    """Return the internal manifest without its files."""
    plan = dossier.plan
    return {
        "run": plan.run.id,
        "title": plan.run.title,
        "recipe_sha256": plan.run.recipe_sha256,
        "data_sha256": dossier.original.source_sha256,
        "policy_sha256": dossier.policy.sha256,
        "seed": plan.run.seed,
        "left_out": list(plan.left_out),
        "verdicts": _count_outcomes(plan.verdicts),
    }


def _count_outcomes(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the verdicts by outcome."""
    return {outcome: sum(verdict.outcome == outcome for verdict in verdicts) for outcome in OUTCOMES}


def _json_bytes(table: dict[str, Any]) -> bytes:
    return (json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _internal_json_bytes(table: dict[str, Any]) -> bytes:
    return _json_bytes({"disclosure": INTERNAL_MARK, **table})


def _audit_details(dossier: ReleaseDossier) -> dict[str, str | int | float | None]:
    """Return the details of a release for the audit log."""
    plan, examination = dossier.plan, dossier.examination
    return {
        "form": dossier.form,
        **({"reason": dossier.reason} if examination.approval is None else asdict(examination.approval)),
        "gate": examination.status,
        "policy_sha256": examination.policy_sha256,
        "waived": "; ".join(f"{one.check}: {one.reason}" for one in examination.waivers) or None,
        "unmet": len(plan.unmet_verdicts),
        "exposed": ", ".join(plan.exposed_variables) or None,
        "public_key": 1 if plan.has_public_key else None,
    }


def past_releases(workspace: Workspace, run_id: int) -> list[PastRelease]:
    """Return the releases of a run, the last first."""
    rows = workspace.connection.execute(
        "SELECT time, details FROM audit WHERE act = ? AND subject = ? ORDER BY number DESC",
        (AuditAct.RUN_RELEASED.value, f"run {run_id}"),
    )
    return [_past_release_from_row(row["time"], json.loads(row["details"])) for row in rows]


def _past_release_from_row(time: str, details: dict[str, Any]) -> PastRelease:
    named = {name: str(details.get(name, "")) for name in ("user", "form", "reason", "manifest_sha256")}
    return PastRelease(time, **named)

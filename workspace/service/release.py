"""A run's release, written at once or not at all: ``public/`` is what leaves the building, ``internal/`` what its keepers need.

Where the gate blocks, the release needs a written reason, which the audit log keeps. The log has the hash of the internal
manifest, that one the hash of the public one, and both those of their files: what went out can be told from what did not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sfumato.engine.recipe.outcomes import OUTCOMES
from sfumato.engine.recipe.thresholds import Verdict

from ..audit import Act
from ..documents import INTERNAL_DOCUMENTS, PUBLIC_DOCUMENTS
from ..documents.written import Document, Written, visible_words
from ..errors import NotReleased
from ..gate.answer import answer_of
from ..gate.contents import OTHER_PACKAGE, plan_release
from ..gate.gate import check_passed, examine, waived
from ..jobs.runs import result_with_companions
from ..policy.disclosure import INTERNAL as INTERNAL_MARK
from ..policy.policy import policy_of
from ..release.approval import approved
from ..release.commitment import IN_MANIFEST, commitments_table, committed
from ..release.decision import decision_of
from ..release.dossier import Dossier, dossier_of
from ..release.forms import Form
from ..release.public_files import public_files
from ..release.report import report_of
from ..store.keys import key_of_run
from ..store.release_folders import INTERNAL, MANIFEST, PUBLIC_FILES
from ..store.releases_in_progress import appear, begun, settle
from ..store.runs import records_of
from ..store.workspace import Workspace


@dataclass(frozen=True)
class Released:
    """A release that was written: where, its files, the SHA-256 of its manifest, and how many thresholds were not met."""

    directory: Path
    files: tuple[str, ...]
    manifest_sha256: str
    unmet: int


@dataclass(frozen=True, slots=True)
class PastRelease:
    """A release as the audit log has it; ``time`` is UTC."""

    time: str
    user: str
    form: str
    reason: str
    manifest_sha256: str


def release(
    workspace: Workspace,
    run_id: int | str,
    directory: Path,
    form: Form = "csv",
    reason: str = "",
    waive: Mapping[str, str] | None = None,
) -> Released:
    """Write the release of a run that is done into a directory that is empty or not there: ``public/`` and ``internal/``.

    Findings that block are waived by ``waive``, a reason for each check, or by one ``reason`` for the whole release; where the policy
    asks for a second person, both are those of the request that another account approved. Raises NotFound,
    NotReady, BadInput for a policy or a waiver that cannot be, and NotReleased: where the gate blocks and nobody who may
    waives it, or when the directory has something in it. Whatever happens, there is either the whole release with its row in
    the audit log, or neither; cut off, it is completed or removed by ``resume`` and by the next release.
    """
    workspace.check_own()
    settle(workspace)
    plan, policy = plan_release(workspace, run_id), policy_of(workspace.directory)
    target = directory.expanduser().resolve()
    _check_target(target)
    examination = examine(workspace, plan, policy)
    if policy.second_person:
        examination = approved(workspace, plan, policy, examination, form)
    else:
        examination = waived(examination, policy, reason, waive)
    check_passed(examination, answer_of(examination, plan.run.recipe, policy, records_of(workspace, plan.run)).sentence)
    why = reason.strip() if examination.approval is None else examination.approval.reason
    dossier = dossier_of(workspace, plan, policy, examination, form, why)
    with begun(workspace, plan.run.id, target, _details(dossier)) as one:
        files = _fill(workspace, dossier, one.aside)
        manifest = appear(workspace, one)
    return Released(target, files, manifest, len(plan.unmet))


def _check_target(target: Path) -> None:
    if not target.parent.is_dir():
        raise NotReleased(f'there is no directory "{target.parent}"; make it first')
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NotReleased(f'"{target}" is not an empty directory; name one that is empty or not there yet')


def _fill(workspace: Workspace, dossier: Dossier, aside: Path) -> tuple[str, ...]:
    """Write every file, the manifests last; returns the files' names. The internal manifest has the hash of the public one."""
    key = key_of_run(workspace.directory, dossier.plan.run.key_fingerprint)
    plan = dossier.plan
    bound = committed(plan.run, dossier.original, plan.tables, dossier.policy.sha256, plan.weights, plan.controls)
    public = [_keep(aside, PUBLIC_FILES, name, content) for name, content in public_files(dossier, key)]
    public += _documents(aside, PUBLIC_FILES, dossier, PUBLIC_DOCUMENTS, public)
    said = visible_words({**_public_manifest(dossier), "files": [_line(file) for file in public]})
    value = bound.sealed(key, said)
    manifest = _keep(aside, PUBLIC_FILES, MANIFEST, _json({**said, IN_MANIFEST: value}))
    contents = (*_internal(workspace, dossier), ("commitments.json", _internal_json(commitments_table(bound, value))))
    internal = [_keep(aside, INTERNAL, name, content) for name, content in contents]
    internal += _documents(aside, INTERNAL, dossier, INTERNAL_DOCUMENTS, [*public, manifest, *internal])
    sealed = {OTHER_PACKAGE: manifest.sha256, "files": [_line(file) for file in internal]}
    last = _keep(aside, INTERNAL, MANIFEST, _internal_json({**_internal_manifest(workspace, dossier), **sealed}))
    return tuple(f"{file.package}/{file.name}" for file in (*public, *internal, manifest, last))


def _documents(
    aside: Path, package: str, dossier: Dossier, documents: Sequence[Document], before: Sequence[Written]
) -> list[Written]:
    """Write the documents of a package in their order; each is told what was written before it."""
    made: list[Written] = []
    for document in documents:
        files = document(dossier, (*before, *made))
        made += [_keep(aside, package, name, content) for name, content in files.items()]
    return made


def _keep(aside: Path, package: str, name: str, content: bytes) -> Written:
    """Write a file of one of the packages."""
    path = aside / package / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return Written(package, name, len(content), hashlib.sha256(content).hexdigest())


def _line(file: Written) -> dict[str, Any]:
    """A file in the manifest of its package."""
    return {"name": file.name, "bytes": file.bytes, "sha256": file.sha256}


def _internal(workspace: Workspace, dossier: Dossier) -> Iterator[tuple[str, bytes]]:
    """The dossier of whoever answers for the release: as confidential as the data."""
    plan = dossier.plan
    page = report_of(
        workspace, plan.run.id, decision=decision_of(dossier), figures=dossier.figures(), answer=dossier.answer
    ).html()
    yield "report.html", page.encode()
    yield "recipe.toml", plan.run.recipe_toml.encode()
    yield "results.json", _json(result_with_companions(workspace, plan.run.id))
    yield (
        "examination.json",
        _internal_json(
            {**dossier.examination.to_table(), "reason": dossier.reason, "may_leave": dossier.answer.to_table()}
        ),
    )


def _public_manifest(dossier: Dossier) -> dict[str, Any]:
    plan = dossier.plan
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


def _internal_manifest(workspace: Workspace, dossier: Dossier) -> dict[str, Any]:
    plan = dossier.plan
    return {
        "run": plan.run.id,
        "title": plan.run.title,
        "recipe_sha256": plan.run.recipe_sha256,
        "data_sha256": dossier.original.source_sha256,
        "policy_sha256": dossier.policy.sha256,
        "seed": plan.run.seed,
        "left_out": list(plan.left_out),
        "verdicts": _counts(plan.verdicts),
    }


def _counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    return {outcome: sum(verdict.outcome == outcome for verdict in verdicts) for outcome in OUTCOMES}


def _json(table: dict[str, Any]) -> bytes:
    return (json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _internal_json(table: dict[str, Any]) -> bytes:
    return _json({"disclosure": INTERNAL_MARK, **table})


def _details(dossier: Dossier) -> dict[str, str | int | None]:
    """What the audit log says of a release."""
    plan, examination = dossier.plan, dossier.examination
    return {
        "form": dossier.form,
        **({"reason": dossier.reason} if examination.approval is None else asdict(examination.approval)),
        "gate": examination.status,
        "policy_sha256": examination.policy_sha256,
        "waived": "; ".join(f"{one.check}: {one.reason}" for one in examination.waivers) or None,
        "unmet": len(plan.unmet),
        "exposed": ", ".join(plan.exposed) or None,
        "public_key": 1 if plan.public_key else None,
    }


def releases_of(workspace: Workspace, run_id: int) -> list[PastRelease]:
    """The releases of a run, the last first."""
    rows = workspace.connection.execute(
        "SELECT time, details FROM audit WHERE act = ? AND subject = ? ORDER BY number DESC",
        (Act.RUN_RELEASED.value, f"run {run_id}"),
    )
    return [_past(row["time"], json.loads(row["details"])) for row in rows]


def _past(time: str, details: dict[str, Any]) -> PastRelease:
    named = {name: str(details.get(name, "")) for name in ("user", "form", "reason", "manifest_sha256")}
    return PastRelease(time, **named)

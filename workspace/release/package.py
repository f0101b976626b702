"""A run's release: its datasets, report, recipe and results in a directory of their own, written at once or not at all.

Where a threshold is not met, a sensitive variable would go out as it is, or the run has a public key, the release needs a
written reason, which the audit log keeps. The log has the hash of the manifest, the manifest those of all other files, so that what went out can be
told from what did not.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.engine.recipe import Recipe
from sfumato.engine.run import PUBLIC, Randomness
from sfumato.engine.schema import Role
from sfumato.engine.thresholds import Outcome, Verdict

from ..audit import Act, append
from ..errors import NotReady, WorkspaceError
from ..jobs.runs import result_with_companions
from ..store.keys import key_of_run
from ..store.workspace import Workspace
from ..views.results import verdicts_of
from ..views.runs import Run, done_together
from .report import report_page
from .tables import Form, codebook, dataset_bytes

MANIFEST = "manifest.json"


class NotReleased(WorkspaceError):
    """A release was refused; nothing was written."""


@dataclass(frozen=True)
class ReleasePlan:
    """What would go out: ``datasets`` tables with the ``replaced`` variables made, the ``kept`` ones as they are in the
    confidential data, and without the identifiers, ``left_out``.
    """

    run: Run
    records: int
    datasets: int
    replaced: tuple[str, ...]
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def shuffled(self) -> bool:
        """Whether the rows go out in an order that has nothing to do with that of the confidential records."""
        return self.run.recipe.form.order == "shuffled"

    @property
    def rows(self) -> str:
        """In which order the rows go out, in words."""
        return "rows shuffled" if self.shuffled else "rows in the order of the confidential records"

    @property
    def exposed(self) -> tuple[str, ...]:
        """The sensitive variables that a synthetic release would hold as they are in the confidential data.

        An anonymised release keeps them on purpose: it is the quasi-identifiers that it changes.
        """
        recipe = self.run.recipe
        sensitive = recipe.schema.of_role(Role.SENSITIVE) if recipe.origin == "synthetic" else ()
        return tuple(name for name in self.kept if name in sensitive)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against the release, in words: with any, it needs a reason."""
        said = []
        if self.unmet:
            first = self.unmet[0]
            of = f"{len(self.unmet)} of {len(self.verdicts)} thresholds of run {self.run.id}"
            said.append(f"{of} are not met ({first.value}: {first.outcome})")
        if self.exposed:
            said.append(
                f"sensitive variables would go out as they are in the confidential data ({', '.join(self.exposed)})"
            )
        if self.public_key:
            said.append(
                f"run {self.run.id} has a public key, so that whoever has the seed can repeat its random numbers and take "
                "the datasets apart"
            )
        return tuple(said)

    @property
    def public_key(self) -> bool:
        """Whether the datasets were made with random numbers that anybody can repeat."""
        return self.run.key_public and self.run.recipe.makes_release

    @property
    def unmet(self) -> tuple[Verdict, ...]:
        """The verdicts that are no pass."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome != "pass")

    def files(self, form: Form = "csv") -> tuple[str, ...]:
        """The names of the files of the release."""
        return (
            *dataset_names(self.datasets, form),
            "variables.csv",
            "report.html",
            "recipe.toml",
            "results.json",
            MANIFEST,
        )


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


def dataset_names(datasets: int, form: Form) -> tuple[str, ...]:
    """``dataset-01.csv`` and so on."""
    digits = max(2, len(str(datasets)))
    return tuple(f"dataset-{draw:0{digits}}.{form}" for draw in range(1, datasets + 1))


def plan_release(workspace: Workspace, run_id: int | str) -> ReleasePlan:
    """What a release of a run would hold. Raises NotFound, and NotReady when the run is not done or has no datasets."""
    run = done_together(workspace, run_id)[0]
    tables = _tables(workspace, run.id)
    if not tables:
        raise NotReady(f"run {run.id} has no datasets to release")
    recipe = run.recipe
    out = _left_out(recipe)
    kept = tuple(name for name in recipe.schema.names if name not in (*recipe.released, *out))
    replaced = tuple(name for name in recipe.released if name not in out)
    records = workspace.tables.read(tables[0]).num_rows
    return ReleasePlan(run, records, len(tables), replaced, kept, out, tuple(verdicts_of(workspace, run.id)))


def _left_out(recipe: Recipe) -> tuple[str, ...]:
    return tuple(variable.name for variable in recipe.schema if variable.role is Role.IDENTIFIER)


def _tables(workspace: Workspace, run_id: int) -> list[str]:
    """The hashes of the released datasets, in the order of their draws."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%'", (run_id,)
    ).fetchall()
    return [row["sha256"] for row in sorted(rows, key=lambda row: int(row["name"].partition("/")[2]))]


def release(workspace: Workspace, run_id: int | str, directory: Path, form: Form = "csv", reason: str = "") -> Released:
    """Write the release of a run that is done into a directory that is empty or not there.

    Raises NotFound, NotReady, and NotReleased: without a ``reason`` where there are ``doubts``, or when the
    directory has something in it. Whatever happens, there is either the whole release with its row in the audit log,
    or neither.
    """
    workspace.check_own()
    plan = plan_release(workspace, run_id)
    target = directory.expanduser().resolve()
    _check(plan, target, reason.strip())
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.writing-"))
    try:
        manifest = _fill(workspace, plan, aside, form)
        _put_in_place(workspace, plan, aside, target, form=form, reason=reason.strip(), manifest_sha256=manifest)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Released(target, plan.files(form), manifest, len(plan.unmet))


def _check(plan: ReleasePlan, target: Path, reason: str) -> None:
    if plan.doubts and not reason:
        raise NotReleased(f"{', and '.join(plan.doubts)}; to release it all the same, give a reason in words")
    if not target.parent.is_dir():
        raise NotReleased(f'there is no directory "{target.parent}"; make it first')
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NotReleased(f'"{target}" is not an empty directory; name one that is empty or not there yet')


def _fill(workspace: Workspace, plan: ReleasePlan, aside: Path, form: Form) -> str:
    """Write every file, the manifest last; returns the manifest's SHA-256."""
    written = []
    for name, content in _contents(workspace, plan, form):
        _write(aside / name, content)
        written.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    manifest = _json({**_manifest(workspace, plan, form), "files": written})
    _write(aside / MANIFEST, manifest)
    return hashlib.sha256(manifest).hexdigest()


def _contents(workspace: Workspace, plan: ReleasePlan, form: Form) -> Iterator[tuple[str, bytes]]:
    recipe, tables = plan.run.recipe, _tables(workspace, plan.run.id)
    schema, dataset = recipe.released_schema, workspace.dataset(plan.run.dataset_id)
    key = key_of_run(workspace.directory, plan.run.key_fingerprint) if plan.shuffled else PUBLIC
    randomness = Randomness(recipe.seed, key)
    for draw, (name, sha256) in enumerate(zip(dataset_names(plan.datasets, form), tables, strict=True), start=1):
        rng = randomness.generator("release", draw) if plan.shuffled else None
        yield name, dataset_bytes(workspace.tables.read(sha256), schema, plan.left_out, form, rng)
    original = workspace.tables.read(dataset.table_sha256), dataset.schema
    yield "variables.csv", codebook(workspace.tables.read(tables[0]), schema, plan.left_out, original).encode()
    yield "report.html", report_page(workspace, plan.run.id).encode()
    yield "recipe.toml", plan.run.recipe_toml.encode()
    yield "results.json", _json(result_with_companions(workspace, plan.run.id))


def _manifest(workspace: Workspace, plan: ReleasePlan, form: Form) -> dict[str, Any]:
    run = plan.run
    return {
        "run": run.id,
        "title": run.title,
        "recipe_sha256": run.recipe_sha256,
        "data_sha256": workspace.dataset(run.dataset_id).source_sha256,
        "seed": run.seed,
        "versions": dict(run.versions),
        "format": form,
        "datasets": plan.datasets,
        "records": plan.records,
        "order": plan.run.recipe.form.order,
        "replaced": list(plan.replaced),
        "kept": list(plan.kept),
        "left_out": list(plan.left_out),
        "verdicts": _counts(plan.verdicts),
    }


def _counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    outcomes: tuple[Outcome, ...] = ("pass", "fail", "not computed")
    return {outcome: sum(verdict.outcome == outcome for verdict in verdicts) for outcome in outcomes}


def _json(table: dict[str, Any]) -> bytes:
    return (json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(workspace: Workspace, plan: ReleasePlan, aside: Path, target: Path, **details: str) -> None:
    """Name the directory and write the audit row together: what fails before the end undoes both."""
    placed = False
    try:
        with workspace.writing() as connection:
            append(
                connection,
                Act.RUN_RELEASED,
                f"run {plan.run.id}",
                **details,
                unmet=len(plan.unmet),
                exposed=", ".join(plan.exposed) or None,
                public_key=1 if plan.public_key else None,
            )
            try:
                aside.rename(target)
            except OSError as error:
                raise NotReleased(f'"{target}" cannot be written: {error.strerror}') from None
            placed = True
    except BaseException:
        if placed:
            target.rename(aside)
        raise


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

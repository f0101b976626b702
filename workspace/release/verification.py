"""Verification of a released folder: whether it is as it was written, and which run of this workspace made it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from sfumato.engine.errors import BadInput

from ..audit import AuditAct, parse_details
from ..errors import NotReady, StrangeFile
from ..gate.contents import OTHER_PACKAGE, plan_release
from ..plain_files import is_hash, open_plain, read_plain, strange_kind
from ..policy.policy import Policy, read_policy_of_workspace
from ..store.keys import run_key
from ..store.release_folders import INTERNAL_FOLDER, MANIFEST_FILE, PUBLIC_FOLDER
from ..store.releases_in_progress import PUBLIC_MANIFEST_KEY
from ..store.runs import RunState, StoredRun, find_run
from ..store.workspace import Workspace
from ..upkeep.integrity import audit_log_problem, worth_of_seals
from ..visible_text import replace_unprintable
from .commitment import IN_MANIFEST, NO_COMMITMENT, commitment_of_run

MOST_MANIFEST_BYTES = 16 << 20


@dataclass(frozen=True)
class VerifiedFolder:
    """Released folder with the result of its verification.

    directory: the folder
    packages: the packages that are there
    n_files: how many files their manifests name
    problems: what is wrong with them, in words
    public_manifest: the public manifest; None where it is not there
    internal_manifest: the internal manifest; None where it is not there
    n_bytes: how many bytes were read, those of the manifests included
    manifest_hashes: SHA-256 of the manifest of each package that is there
    """

    directory: Path
    packages: tuple[str, ...]
    n_files: int
    problems: tuple[str, ...]
    public_manifest: Mapping[str, Any] | None = None
    internal_manifest: Mapping[str, Any] | None = None
    n_bytes: int = 0
    manifest_hashes: Mapping[str, str] = field(default_factory=dict)


def verify_release(directory: Path) -> VerifiedFolder:
    """Compare every file of a release, or of one of its packages, with the manifests.

    Raises BadInput where they are missing.
    """
    packages = _find_packages(directory)
    before = {name: _read_entries(path) for name, path in packages.items()}
    contents = {name: _read_manifest_bytes(path / MANIFEST_FILE) for name, path in packages.items()}
    manifests = {name: _parse_manifest(path, contents[name], name) for name, path in packages.items()}
    counter = _ByteCounter(sum(map(len, contents.values())))
    wrong = [
        said
        for name, path in packages.items()
        for said in _package_problems(path, _package_prefix(directory, path), manifests[name], counter)
    ]
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    wrong += _package_names_of_other_kinds(directory, packages)
    if len(packages) == 2:
        wrong += _entries_of_no_package(directory)
        if manifests[INTERNAL_FOLDER].get(OTHER_PACKAGE) != hashes[PUBLIC_FOLDER]:
            wrong.append("the internal manifest is of another public one")
    # Where something was exchanged meanwhile, what was read is not what lies there.
    wrong += [
        f"{name}/: changed while it was read; verify it again"
        for name, path in packages.items()
        if _read_entries(path) != before[name]
    ]
    files = sum(len(manifest["files"]) for manifest in manifests.values())
    return VerifiedFolder(
        directory, tuple(packages), files, tuple(map(replace_unprintable, wrong)), manifests.get(PUBLIC_FOLDER), manifests.get(INTERNAL_FOLDER),
        counter.count, hashes,
    )  # fmt: skip


@dataclass
class _ByteCounter:
    """Number of bytes that were read."""

    count: int = 0


def _find_packages(directory: Path) -> dict[str, Path]:
    """Return the packages of a release by name: both, one, or the directory itself as one of them. Raises BadInput."""
    if not directory.is_dir():
        raise BadInput("DIR", f'"{directory}" is no directory; name the one that sfumato release wrote')
    found = {
        name: directory / name
        for name in (PUBLIC_FOLDER, INTERNAL_FOLDER)
        if (directory / name).is_dir() and not (directory / name).is_symlink()
    }
    if found:
        return found
    if os.path.lexists(directory / MANIFEST_FILE):
        alone = _parse_manifest(directory, _read_manifest_bytes(directory / MANIFEST_FILE), "")
        return {INTERNAL_FOLDER if OTHER_PACKAGE in alone else PUBLIC_FOLDER: directory}
    raise BadInput("DIR", f'"{directory}" is no release: it has neither public/ nor internal/, nor a {MANIFEST_FILE}')


def _package_prefix(directory: Path, package: Path) -> str:
    return "" if package == directory else f"{package.name}/"


def _read_manifest_bytes(path: Path) -> bytes:
    """Read the bytes of a manifest. Raises BadInput."""
    try:
        # The folder may come from anybody: no link is followed, and the size is limited.
        return read_plain(path, MOST_MANIFEST_BYTES)
    except OSError as error:
        raise BadInput("DIR", f'"{path}" cannot be read: {error.strerror}') from None
    except StrangeFile as error:
        raise BadInput("DIR", f'"{path}" is {error.kind}, no manifest') from None


def _parse_manifest(package: Path, content: bytes, name: str) -> dict[str, Any]:
    """Return a package's manifest with the ``files`` that it names. Raises BadInput."""
    path = package / MANIFEST_FILE
    try:
        table = json.loads(content, object_pairs_hook=_table_of_unique_keys)
        files = [(line["name"], line["bytes"], line["sha256"]) for line in table["files"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadInput("DIR", f'"{path}" is no manifest of a release{name and f" ({name})"}') from None
    if not all(isinstance(one, str) and isinstance(size, int) and is_hash(sha256) for one, size, sha256 in files):
        raise BadInput("DIR", f'"{path}" is no manifest of a release: a line of "files" has no name, size or SHA-256')
    return dict(table)


def _table_of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a table. Raises ValueError for a key that stands twice: readers take one or the other."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a key stands twice")
    return table


def _package_problems(package: Path, prefix: str, manifest: Mapping[str, Any], counter: _ByteCounter) -> Iterator[str]:
    """Yield how a package differs from its manifest, in words."""
    # Files are looked up among those that lie there: a path in a manifest is never opened as such.
    entries = _read_entries(package)
    there = {name: "" if name in entries.unread else strange_kind(mode) for name, (mode, *_) in entries.files.items()}
    named = [line["name"] for line in manifest["files"]]
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"{prefix}{name}: the manifest names it twice"
    for line in manifest["files"]:
        kind = there.get(line["name"])
        if kind is None:
            yield f"{prefix}{line['name']}: missing"
        elif not kind and not _has_content(package / line["name"], line["bytes"], line["sha256"], counter):
            yield f"{prefix}{line['name']}: changed since it was released"
    for name, kind in sorted(there.items()):
        if kind:
            yield f"{prefix}{name}: is {kind}, not a file of the release"
        elif name not in named and name != MANIFEST_FILE:
            yield f"{prefix}{name}: not in the manifest"
    needed = {parent.as_posix() for name in named for parent in PurePosixPath(name).parents}
    for name in sorted(entries.folders.keys() - needed):
        yield f"{prefix}{name}/: a folder that is not in the manifest"
    for name in entries.unread:
        yield f"{prefix}{name}/: cannot be read, so what it has is unknown"


@dataclass(frozen=True, slots=True)
class _FolderEntries:
    """Entries of a package by name, each with its mode, inode, size and times; no link is followed.

    files: all but folders, links to folders among them
    folders: folders, the package itself as ``.``
    unread: folders that cannot be read
    """

    files: Mapping[str, tuple[int, ...]]
    folders: Mapping[str, tuple[int, ...]]
    unread: tuple[str, ...]


def _read_entries(package: Path) -> _FolderEntries:
    """Read the names and states of everything in a package."""
    files, folders, unread = dict[str, tuple[int, ...]](), dict[str, tuple[int, ...]](), list[str]()

    def name_of(path: str | Path) -> str:
        return Path(path).relative_to(package).as_posix()

    for folder, within, names in os.walk(package, onerror=lambda error: unread.append(name_of(error.filename))):
        here = Path(folder)
        with contextlib.suppress(FileNotFoundError):
            folders[name_of(here)] = _state_of(here)
        for name in (*(one for one in within if (here / one).is_symlink()), *names):
            with contextlib.suppress(FileNotFoundError):
                files[name_of(here / name)] = _state_of(here / name)
    return _FolderEntries(files, folders, tuple(sorted(unread)))


def _state_of(path: Path) -> tuple[int, ...]:
    """Return mode, inode, size and times of a file; the last is set by the system alone."""
    found = path.lstat()
    return found.st_mode, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _has_content(path: Path, size: int, sha256: str, counter: _ByteCounter) -> bool:
    """Return whether a plain file has this size and SHA-256; False where it cannot be read."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            # Before it is hashed: a file in its place may be huge.
            if os.fstat(file.fileno()).st_size != size:
                return False
            found = hashlib.file_digest(file, "sha256").hexdigest()
            counter.count += file.tell()
            return found == sha256
    except (OSError, StrangeFile):
        return False


def _package_names_of_other_kinds(directory: Path, packages: Mapping[str, Path]) -> list[str]:
    """Return remarks on entries with the name of a package that are no folders, where another package is there."""
    if directory in packages.values():
        return []
    kinds = {
        name: strange_kind((directory / name).lstat().st_mode)
        for name in (PUBLIC_FOLDER, INTERNAL_FOLDER)
        if name not in packages and os.path.lexists(directory / name)
    }
    return [f"{name}: is {kind or 'a file'}, not a package of the release" for name, kind in kinds.items()]


def _entries_of_no_package(directory: Path) -> list[str]:
    """Return remarks on entries of a release's folder that belong to neither package."""
    return sorted(
        f"{path.name}: belongs to no package"
        for path in directory.iterdir()
        if path.name not in (PUBLIC_FOLDER, INTERNAL_FOLDER)
    )


SELF_CONSISTENT = (
    "checked by its own manifest alone: this shows damage, not forgery. Whoever changed the files can have written the manifest "
    "too; anybody could have made this folder. In the workspace that made it: --commitment. Elsewhere: --known HASH, "
    "the SHA-256 of a manifest that you have from whoever released it"
)
ProofKind = Literal["own manifest", "known hash", "audit log", "commitment"]


@dataclass(frozen=True, slots=True)
class ReleaseProof:
    """What a released folder was checked by, besides its own manifest.

    kind: by what
    holds: whether it agrees
    message: the same in words, with what it is worth
    """

    kind: ProofKind
    holds: bool
    message: str


def check_known_hash(verified: VerifiedFolder, known: str) -> ReleaseProof:
    """Compare the manifests of a folder with a hash that was told by another way. Raises BadInput."""
    if not is_hash(known.strip().lower()):
        raise BadInput("--known", f'"{known}" is no SHA-256 of a manifest, which has 64 hexadecimal digits')
    package = next((name for name, own in verified.manifest_hashes.items() if own == known.strip().lower()), "")
    if not package:
        return ReleaseProof(
            "known hash", False, "no manifest here has the hash that you gave: it is another release, or forged"
        )
    other = (
        ""
        if len(verified.packages) == 1 or package == INTERNAL_FOLDER
        else f"; {INTERNAL_FOLDER}/ is not covered by it"
    )
    if verified.problems:
        return ReleaseProof(
            "known hash",
            True,
            f"the manifest of {package}/ has the hash that you gave; the files differ from it as named above",
        )
    return ReleaseProof(
        "known hash",
        True,
        f"checked by the hash that you gave: {package}/ is what its giver had, as far as you trust where you have it from{other}",
    )


def check_audit_log(workspace: Workspace, verified: VerifiedFolder) -> ReleaseProof:
    """Look for the manifests of a folder in the audit log of a workspace, whose chain and seals must be whole.

    Raises NoKey.
    """
    problem = audit_log_problem(workspace)
    if problem:
        return ReleaseProof("audit log", False, f"the audit log of the workspace proves nothing: {problem}")
    rows = workspace.connection.execute(
        "SELECT number, time, subject, details FROM audit WHERE act = ? ORDER BY number DESC",
        (AuditAct.RUN_RELEASED.value,),
    )
    # The internal manifest has the hash of the public one. Earlier versions recorded only its own.
    package = INTERNAL_FOLDER if INTERNAL_FOLDER in verified.manifest_hashes else PUBLIC_FOLDER
    key = "manifest_sha256" if package == INTERNAL_FOLDER else PUBLIC_MANIFEST_KEY
    for row in rows:
        if parse_details(row["details"]).get(key) == verified.manifest_hashes[package]:
            return ReleaseProof(
                "audit log",
                True,
                f"checked by the audit log: row {row['number']} of {str(row['time'])[:10]} records this {package} manifest for "
                f"{row['subject']}; {worth_of_seals(workspace)}",
            )
    return ReleaseProof("audit log", False, "the audit log of the workspace records no release with these manifests")


@dataclass(frozen=True, slots=True)
class ReleaseOrigin:
    """Run of a workspace that made a release.

    run: the run; None where that cannot be shown
    message: the same in words, or why it cannot be shown
    """

    run: StoredRun | None
    message: str


def find_origin(workspace: Workspace, verified: VerifiedFolder) -> ReleaseOrigin:
    """Find the run whose commitment the public manifest has, with the workspace's key. Raises BadInput and NoKey."""
    if verified.public_manifest is None:
        raise BadInput("DIR", f'"{verified.directory}" has no public package, whose manifest carries the commitment')
    value = verified.public_manifest.get(IN_MANIFEST)
    if value is None:
        return ReleaseOrigin(None, f"it carries no commitment: {NO_COMMITMENT}")
    if not is_hash(value):
        return ReleaseOrigin(None, "the value in the place of its commitment is not a commitment")
    # The commitment covers the policy, of which the manifest says nothing: each that the workspace may have released
    # under is tried.
    policies = _policy_hashes(workspace)
    rows = workspace.connection.execute(
        "SELECT id FROM run WHERE state = ? AND NOT key_public ORDER BY id DESC", (RunState.DONE.value,)
    ).fetchall()
    for row in rows:
        run = find_run(workspace, row["id"])
        if _has_commitment_of(workspace, run, verified.public_manifest, value, policies):
            said = (
                "the files differ from its manifest as named above"
                if verified.problems
                else "the public files are those that were released"
            )
            return ReleaseOrigin(run, f"run {run.id} of this workspace made it, and {said}")
    return ReleaseOrigin(None, "no run of this workspace made it, or it was changed since")


def _has_commitment_of(
    workspace: Workspace, run: StoredRun, manifest: Mapping[str, Any], value: str, policies: list[str]
) -> bool:
    """Return whether a commitment to a run, under one of the policies, gives this value."""
    try:
        plan = plan_release(workspace, run.id)
    except NotReady:
        return False
    key, dataset = run_key(workspace.directory, run.key_fingerprint), workspace.find_dataset(run.dataset_id)
    bound = [
        commitment_of_run(run, dataset, plan.released_sha256, policy, plan.weights_sha256, plan.controls_sha256)
        for policy in policies
    ]
    sealed = [one.hmac_hex(key, manifest) or "" for one in bound]
    return any(hmac.compare_digest(one, value) for one in sealed)


def _policy_hashes(workspace: Workspace) -> list[str]:
    """Return the hashes of the policies under which something may have been released."""
    released = workspace.connection.execute(
        "SELECT details FROM audit WHERE act = ? ORDER BY number DESC", (AuditAct.RUN_RELEASED.value,)
    )
    noted = [json.loads(row["details"]).get("policy_sha256") for row in released]
    return list(
        dict.fromkeys(
            [*(one for one in noted if one), read_policy_of_workspace(workspace.directory).sha256, Policy().sha256]
        )
    )

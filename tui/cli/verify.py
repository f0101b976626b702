"""Command that compares a released folder with its manifests, and with the run that it came from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.engine.wording import count_noun

from .options import JSON, WORKSPACE, check_writable, open_workspace, write_object
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.release.verification import VerifiedFolder


@click.command()
@click.argument("released", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--commitment", is_flag=True, help="Show with the workspace's key which run made it, and that it is as released."
)
@click.option(
    "--known", metavar="HASH", help="A SHA-256 of its manifest that you have from whoever released it, by another way."
)
@WORKSPACE
@JSON
def verify(
    released: Path, directory: Path | None, known: str | None, json_file: str | None, *, commitment: bool
) -> None:
    """Check that a released folder is as it was written.

    DIR is the folder or one of its packages. Every byte is read: each file's hash, what is missing, what was added.

    The answer says what the folder was checked by: its own manifest alone, which anybody could have written; a hash that
    you give; the audit log or the key of the workspace.

    Exit status 1 where something is not as its manifest says, has not the hash that you give, or where no run of the
    workspace made it.
    """
    from sfumato.workspace.release.verification import (
        SELF_CONSISTENT,
        ReleaseProof,
        check_audit_log,
        check_known_hash,
        find_origin,
        verify_release,
    )

    check_writable(json_file)
    found = verify_release(released)
    proofs = [] if known is None else [check_known_hash(found, known)]
    made = all(proof.holds for proof in proofs)
    lines = [*found.problems, verification_text(found), *_manifest_lines(found)]
    if commitment:
        workspace = open_workspace(directory)
        origin = find_origin(workspace, found)
        made = made and origin.run is not None
        lines.append(origin.message)
        proofs += [check_audit_log(workspace, found)]
        if origin.run is not None:
            proofs.append(ReleaseProof("commitment", True, COMMITMENT_HOLDS))
    holding = [proof.kind for proof in proofs if proof.holds]
    lines += [proof.message for proof in proofs]
    if not holding and not found.problems:
        lines.append(SELF_CONSISTENT)
    write_object(
        {
            "packages": found.packages,
            "files": found.n_files,
            "bytes": found.n_bytes,
            "manifests": dict(found.manifest_hashes),
            "wrong": found.problems,
            "checked_by": ["own manifest", *holding],
            "said": lines,
        },
        json_file,
    )
    if json_file != "-":
        echo("\n".join(lines))
    sys.exit(0 if made and not found.problems else 1)


COMMITMENT_HOLDS = "checked by the commitment: only somebody with the workspace's key can have made the public manifest"


def _manifest_lines(found: VerifiedFolder) -> list[str]:
    """Return a line with the hash of each package's manifest, which can be told to whoever receives it."""
    return [f"manifest of {name}: {sha256}" for name, sha256 in found.manifest_hashes.items()]


def verification_text(found: VerifiedFolder) -> str:
    """Return the result of a verification: ``public and internal: 12 files, 3,456 bytes read, all as the manifest says``."""
    packages = " and ".join(found.packages)
    count = len(found.problems)
    said = f"{count_noun(count, 'thing')} not as released" if count else "all as the manifest says"
    return f"{packages}: {count_noun(found.n_files, 'file')}, {found.n_bytes:,} bytes read, {said}"

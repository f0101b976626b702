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
@WORKSPACE
@JSON
def verify(released: Path, directory: Path | None, json_file: str | None, *, commitment: bool) -> None:
    """Check that a released folder is as it was written.

    DIR is the folder or one of its packages: each file's hash, what is missing, what was added.

    Exit status 1 where something is not as its manifest says, or where no run of the workspace made it.
    """
    from sfumato.workspace.release.verification import find_origin, verify_release

    check_writable(json_file)
    found = verify_release(released)
    lines = [*found.problems, verification_text(found)]
    made = True
    if commitment:
        origin = find_origin(open_workspace(directory), found)
        made = origin.run is not None
        lines.append(origin.message)
    write_object(
        {"packages": found.packages, "files": found.n_files, "wrong": found.problems, "said": lines}, json_file
    )
    if json_file != "-":
        echo("\n".join(lines))
    sys.exit(0 if made and not found.problems else 1)


def verification_text(found: VerifiedFolder) -> str:
    """Return the result of a verification: ``public and internal: 12 files, all as the manifest says``."""
    packages = " and ".join(found.packages)
    count = len(found.problems)
    said = f"{count_noun(count, 'thing')} not as released" if count else "all as the manifest says"
    return f"{packages}: {count_noun(found.n_files, 'file')}, {said}"

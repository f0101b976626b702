"""Commands for the workspace's key: its fingerprint, and a copy of it to keep elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from .failures import CommandListGroup
from .options import WORKSPACE, open_workspace
from .speech import echo


@click.group(cls=CommandListGroup)
def key() -> None:
    """Identify the workspace's key, or export it.

    The key itself is never shown.
    """


@key.command("fingerprint")
@WORKSPACE
def show_fingerprint(directory: Path | None) -> None:
    """Print the fingerprint of the key.

    It identifies the key and gives nothing of it away; "public" stands for a public key.
    """
    from sfumato.workspace.store.keys import compute_fingerprint

    echo(compute_fingerprint(open_workspace(directory).read_workspace_key()))


@key.command()
@click.argument("file", type=click.Path(path_type=Path))
@WORKSPACE
def export(file: Path, directory: Path | None) -> None:
    """Copy the key to a file of its owner alone.

    FILE must not be there yet. The audit log keeps that it was done.
    """
    from sfumato.workspace.store.workspace import export_key

    fingerprint = export_key(open_workspace(directory), file.expanduser())
    echo(f"key {fingerprint} written to {file}; keep it apart from what is released")

"""What can go wrong with a workspace.

WorkspaceError
├── NotAWorkspace     the directory holds none, or one that this version cannot read
├── ForbiddenPlace    its policy names a path, which only the user's or the office's may do
├── BrokenHistory     the audit log has lost its seals, or is not the one that is recorded outside the workspace
├── DamagedTable      a stored table is not what was stored
├── DamagedRecord     a record of the database is not one that we write
├── DifferentData     runs that were to be compared are on different data
├── StrangeFile       something in the workspace is no plain file or directory of its own
├── NotYours          the workspace belongs to another user: it can be looked at
├── NotReleased       a release was refused, or failed; nothing of it is left
│   ├── UnsafeFolder    somebody else could exchange the files of a release in this folder
│   └── ExchangedFiles  something else lay where a file of a release was written
├── NotEnoughMemory   a task would need more memory than there is
├── NoCluster         the Dask cluster that was to compute cannot be used
├── NotReady          a run has not come far enough for what was asked of it
└── NotFound          no such run, project or dataset
"""

from __future__ import annotations

from pathlib import Path


class WorkspaceError(Exception):
    """Base of every error of the workspace."""


class NotAWorkspace(WorkspaceError):
    """The directory is not a workspace that this version can open."""


class ForbiddenPlace(WorkspaceError):
    """The policy of the workspace names a place to write to or a key to read."""


class BrokenHistory(WorkspaceError):
    """The audit log of the workspace cannot be relied on: it has lost its seals, or another history was put in its place."""


class DamagedTable(WorkspaceError):
    """A table's bytes do not have the hash that was recorded."""


class DamagedRecord(WorkspaceError):
    """A record of the database does not hold what one of its kind does; ``what`` names the record."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the database is damaged, or another program wrote in it: {what} cannot be read; see sfumato audit verify"
        )


class StrangeFile(WorkspaceError):
    """A path is ``kind`` ("a link", "a named pipe"), or too large; nothing was read or written."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(f'"{path}" is {kind}; it is left alone: put a plain file or directory in its place')
        self.path, self.kind = path, kind


class NotYours(WorkspaceError):
    """The workspace belongs to ``owner``, another user: nothing in it is written or computed."""

    def __init__(self, directory: Path, owner: str) -> None:
        super().__init__(
            f'the workspace "{directory}" belongs to {owner} and is only looked at; '
            f"to work on it, take a checked copy of it: sfumato adopt {directory} NEW-DIRECTORY"
        )
        self.owner = owner


class DifferentData(WorkspaceError):
    """Runs that were to be compared are on different records; ``described`` describes the data of each."""

    def __init__(self, described: tuple[str, str]) -> None:
        on = " and ".join(described)
        super().__init__(f"the runs are on different data: {on}; --any-data compares them all the same")
        self.described = described


class NotReleased(WorkspaceError):
    """A release was refused, or failed; nothing was written."""


class UnsafeFolder(NotReleased):
    """Somebody else could exchange the files of a release in a folder; ``reason`` says who, ``fix`` how to change that."""

    def __init__(self, path: Path, reason: str, fix: str) -> None:
        super().__init__(
            f'"{path}" {reason} exchange the files of a release before it has its name. Nothing was written. {fix}'
        )


class ExchangedFiles(NotReleased):
    """Something else lay at ``path`` than what was written there."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f'"{path}" is not what was written there: another process exchanged or changed it meanwhile. Nothing was released. '
            "Find out which process writes there, or release to another folder"
        )


class LedgerChanged(NotReleased):
    """Error of a release whose population was charged with another one since the gate examined it."""


class NotEnoughMemory(WorkspaceError):
    """A task of a run would not fit into the memory that there is; nothing was stored or begun."""


class NoCluster(WorkspaceError):
    """The Dask cluster that was to compute does not answer, has no workers left, or has such as cannot be used."""


class NotReady(WorkspaceError):
    """A run has not come far enough, or kept too little, for the operation."""


class NotFound(WorkspaceError):
    """Nothing has this number or name."""

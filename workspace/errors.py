"""What can go wrong with a workspace.

WorkspaceError
├── NotAWorkspace     the directory holds none, or one that this version cannot read
├── DamagedTable      a stored table is not what was stored
├── DifferentData     runs that were to be compared are on different data
├── NotReady          a run has not come far enough for what was asked of it
└── NotFound          no such run, project or dataset
"""

from __future__ import annotations


class WorkspaceError(Exception):
    """Base of every error of the workspace."""


class NotAWorkspace(WorkspaceError):
    """The directory is not a workspace that this version can open."""


class DamagedTable(WorkspaceError):
    """A table's bytes do not have the hash that was recorded."""


class DifferentData(WorkspaceError):
    """Runs that were to be compared are on different records; ``described`` says of each what it is on."""

    def __init__(self, described: tuple[str, str]) -> None:
        on = " and ".join(described)
        super().__init__(f"the runs are on different data: {on}; --any-data compares them all the same")
        self.described = described


class NotReady(WorkspaceError):
    """A run has not come far enough, or kept too little, for what was asked of it."""


class NotFound(WorkspaceError):
    """Nothing has this number or name."""

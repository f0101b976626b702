"""What can go wrong with a workspace.

WorkspaceError
├── NotAWorkspace     the directory holds none, or one that this version cannot read
├── DamagedTable      a stored table is not what was stored
└── NotFound          no such run, project or dataset
"""

from __future__ import annotations

__all__ = ["DamagedTable", "NotAWorkspace", "NotFound", "WorkspaceError"]


class WorkspaceError(Exception):
    """Base of every error of the workspace."""


class NotAWorkspace(WorkspaceError):
    """The directory is not a workspace that this version can open."""


class DamagedTable(WorkspaceError):
    """A table's bytes do not have the hash that was recorded."""


class NotFound(WorkspaceError):
    """Nothing has this number or name."""

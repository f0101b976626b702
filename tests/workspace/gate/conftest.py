"""Releases go out of a workspace with a key of its own."""

import keyed_workspace

workspace = keyed_workspace.workspace

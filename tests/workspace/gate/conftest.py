"""Releases go out of a workspace with a key of its own, and their pictures are empty: nobody looks at them here."""

import keyed_workspace

workspace = keyed_workspace.workspace
blank_pictures = keyed_workspace.blank_pictures

"""Checks of the installation, the terminal and the workspace."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, entry_points
from pathlib import Path

from sfumato.workspace.store.runs import installed_version
from sfumato.workspace.upkeep.maintenance import Check, workspace_checks

from ..terminal.parts import states
from .places import keys_file

PACKAGES = (
    "textual", "duckdb", "pandas", "numpy", "scipy", "statsmodels", "scikit-learn", "emcee", "arviz-stats", "pyarrow", "loky",
)  # fmt: skip


def all_checks(directory: Path) -> list[Check]:
    """Findings about the installation, the terminal and the workspace."""
    return [*_installation(), *_methods(), *_terminal(), _keys(), *workspace_checks(directory)]


def _installation() -> list[Check]:
    findings = [Check("Python", "ok", platform.python_version())]
    for name in PACKAGES:
        try:
            findings.append(Check(name, "ok", installed_version(name)))
        except PackageNotFoundError:
            findings.append(Check(name, "problem", "not installed; reinstall Sfumato with its dependencies"))
    return findings


def _methods() -> list[Check]:
    """Other distributions that bring methods, and those whose methods cannot be used."""
    if not entry_points(group="sfumato.methods"):
        return []
    from sfumato.engine.methods.registry import OWN, refused, registry

    usable = [(found.package, found.key) for found in registry().values() if found.package != OWN]
    return [
        *(
            Check(package, "note", f"brings the method {key}, code that runs as Sfumato's own")
            for package, key in usable
        ),
        *(
            Check(one.distribution, "problem", f"the method {one.key} cannot be used: {one.reason}")
            for one in refused()
        ),
    ]


def _terminal() -> list[Check]:
    terminal = os.environ.get("TERM", "")
    encoding = (
        getattr(sys.__stdout__, "encoding", "") or ""
    ).lower()  # the app has put something else in place of stdout
    size = shutil.get_terminal_size()
    findings = [
        Check(
            "terminal",
            "ok" if terminal not in ("", "dumb") else "note",
            terminal or "TERM is not set: the app needs it",
        ),
        Check("size", "ok" if size.columns >= 80 and size.lines >= 24 else "note", f"{size.columns}x{size.lines}"),
        Check(
            "encoding",
            "ok" if "utf" in encoding else "note",
            encoding if "utf" in encoding else f"{encoding or 'unknown'}: the app will show ASCII alone",
        ),
    ]
    findings += [
        Check(
            part.key, "note" if reason else "ok", f"off: {reason}; the app works, only slower" if reason else part.does
        )
        for part, reason in states()
    ]
    if os.environ.get("NO_COLOR"):
        findings.append(Check("NO_COLOR", "ok", "set: the app uses no colour"))
    if os.environ.get("SSH_CONNECTION"):
        findings.append(Check("SSH", "note", "ssh -C makes the app lighter on the wire"))
    return findings


def _keys() -> Check:
    """Whether the file of the user's own keys can be used."""
    file = keys_file()
    if not file.exists():
        return Check("keys", "ok", f"as they come; to change them: sfumato keys > {file}")
    from ..keys.keymap import BadKeymap, read_keymap

    try:
        return Check("keys", "ok", f"{len(read_keymap(file))} of your own, from {file}")
    except BadKeymap as error:
        return Check("keys", "problem", str(error))

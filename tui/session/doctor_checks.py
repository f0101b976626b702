"""Checks of the installation, the terminal and the workspace."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, entry_points
from pathlib import Path

from sfumato.workspace.store.runs import installed_version
from sfumato.workspace.upkeep.maintenance import WorkspaceCheck, check_workspace_health

from ..terminal.parts import part_states
from .places import keys_file

PACKAGES = (
    "textual", "duckdb", "pandas", "numpy", "scipy", "statsmodels", "scikit-learn", "emcee", "arviz-stats", "pyarrow", "loky",
)  # fmt: skip


def all_checks(directory: Path) -> list[WorkspaceCheck]:
    """Check the installation, the terminal and the workspace."""
    return [
        *_check_installation(),
        *_check_method_packages(),
        *_check_terminal(),
        _check_keys_file(),
        *check_workspace_health(directory),
    ]


def _check_installation() -> list[WorkspaceCheck]:
    """Check that the packages that Sfumato needs are installed."""
    findings = [WorkspaceCheck("Python", "ok", platform.python_version())]
    for name in PACKAGES:
        try:
            findings.append(WorkspaceCheck(name, "ok", installed_version(name)))
        except PackageNotFoundError:
            findings.append(WorkspaceCheck(name, "problem", "not installed; reinstall Sfumato with its dependencies"))
    return findings


def _check_method_packages() -> list[WorkspaceCheck]:
    """Check the installed packages that add methods, and name methods that cannot be used."""
    if not entry_points(group="sfumato.methods"):
        return []
    from sfumato.engine.methods.registry import OWN, registry, rejected_plugins
    from sfumato.workspace.policy.installed_packages import recorded_package_text

    usable = [(found.package, found.key) for found in registry().values() if found.package != OWN]
    recorded = {package: recorded_package_text(package) for package in dict(usable)}
    return [
        *(
            WorkspaceCheck(
                package, "note", f"brings the method {key}, code that runs as Sfumato's own; {recorded[package]}"
            )
            for package, key in usable
        ),
        *(
            WorkspaceCheck(one.distribution, "problem", f"the method {one.key} cannot be used: {one.reason}")
            for one in rejected_plugins()
        ),
    ]


def _check_terminal() -> list[WorkspaceCheck]:
    """Check the terminal's type, size, encoding and what speeds the app up."""
    terminal = os.environ.get("TERM", "")
    encoding = (
        getattr(sys.__stdout__, "encoding", "") or ""
    ).lower()  # the app has put something else in place of stdout
    size = shutil.get_terminal_size()
    findings = [
        WorkspaceCheck(
            "terminal",
            "ok" if terminal not in ("", "dumb") else "note",
            terminal or "TERM is not set: the app needs it",
        ),
        WorkspaceCheck(
            "size", "ok" if size.columns >= 80 and size.lines >= 24 else "note", f"{size.columns}x{size.lines}"
        ),
        WorkspaceCheck(
            "encoding",
            "ok" if "utf" in encoding else "note",
            encoding if "utf" in encoding else f"{encoding or 'unknown'}: the app will show ASCII alone",
        ),
    ]
    findings += [
        WorkspaceCheck(
            part.key,
            "note" if reason else "ok",
            f"off: {reason}; the app works, only slower" if reason else part.effect,
        )
        for part, reason in part_states()
    ]
    if os.environ.get("NO_COLOR"):
        findings.append(WorkspaceCheck("NO_COLOR", "ok", "set: the app uses no colour"))
    if os.environ.get("SSH_CONNECTION"):
        findings.append(WorkspaceCheck("SSH", "note", "ssh -C makes the app lighter on the wire"))
    return findings


def _check_keys_file() -> WorkspaceCheck:
    """Check whether the file of the user's own keys can be used."""
    file = keys_file()
    if not file.exists():
        return WorkspaceCheck("keys", "ok", f"as they come; to change them: sfumato keys > {file}")
    from ..keys.keymap import BadKeymap, read_keymap

    try:
        return WorkspaceCheck("keys", "ok", f"{len(read_keymap(file))} of your own, from {file}")
    except BadKeymap as error:
        return WorkspaceCheck("keys", "problem", str(error))

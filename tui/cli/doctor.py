"""``sfumato doctor``: what could go wrong on this machine, said before it does."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

from sfumato.workspace.store.health import Finding, workspace_findings

from ..console import table
from ..places import keys_file
from ..terminal.parts import states

__all__ = ["checkup", "findings_text"]

PACKAGES = (
    "textual", "duckdb", "pandas", "numpy", "scipy", "statsmodels", "scikit-learn", "emcee", "arviz-stats", "pyarrow", "joblib",
)  # fmt: skip
SIGNS = {"ok": "+ ok", "note": "- note", "problem": "x problem"}


def checkup(directory: Path) -> list[Finding]:
    """Findings about the installation, the terminal and the workspace."""
    return [*_installation(), *_methods(), *_terminal(), _keys(), *workspace_findings(directory)]


def _installation() -> list[Finding]:
    findings = [Finding("Python", "ok", platform.python_version())]
    for name in PACKAGES:
        try:
            findings.append(Finding(name, "ok", version(name)))
        except PackageNotFoundError:
            findings.append(Finding(name, "problem", "not installed; reinstall Sfumato with its dependencies"))
    return findings


def _methods() -> list[Finding]:
    """Other distributions that bring methods, and those whose methods cannot be used."""
    if not entry_points(group="sfumato.methods"):
        return []
    from sfumato.engine.methods import OWN, refused, registry

    usable = [(found.package, found.key) for found in registry().values() if found.package != OWN]
    return [
        *(
            Finding(package, "note", f"brings the method {key}, code that runs as Sfumato's own")
            for package, key in usable
        ),
        *(
            Finding(one.distribution, "problem", f"the method {one.key} cannot be used: {one.reason}")
            for one in refused()
        ),
    ]


def _terminal() -> list[Finding]:
    terminal = os.environ.get("TERM", "")
    encoding = (sys.stdout.encoding or "").lower()
    size = shutil.get_terminal_size()
    findings = [
        Finding(
            "terminal",
            "ok" if terminal not in ("", "dumb") else "note",
            terminal or "TERM is not set: the app needs it",
        ),
        Finding("size", "ok" if size.columns >= 80 and size.lines >= 24 else "note", f"{size.columns}x{size.lines}"),
        Finding(
            "encoding",
            "ok" if "utf" in encoding else "note",
            encoding if "utf" in encoding else f"{encoding or 'unknown'}: the app will show ASCII alone",
        ),
    ]
    findings += [
        Finding(
            part.key, "note" if reason else "ok", f"off: {reason}; the app works, only slower" if reason else part.does
        )
        for part, reason in states()
    ]
    if os.environ.get("NO_COLOR"):
        findings.append(Finding("NO_COLOR", "ok", "set: the app uses no colour"))
    if os.environ.get("SSH_CONNECTION"):
        findings.append(Finding("SSH", "note", "ssh -C makes the app lighter on the wire"))
    return findings


def _keys() -> Finding:
    """Whether the file of the user's own keys can be used."""
    file = keys_file()
    if not file.exists():
        return Finding("keys", "ok", f"as they come; to change them: sfumato keys > {file}")
    from ..keymap import BadKeymap, read_keymap

    try:
        return Finding("keys", "ok", f"{len(read_keymap(file))} of your own, from {file}")
    except BadKeymap as error:
        return Finding("keys", "problem", str(error))


def findings_text(findings: Sequence[Finding]) -> str:
    """One finding a line."""
    return table(("", "what", "finding"), [[SIGNS[f.state], f.what, f.text] for f in findings])

"""Refuses a commit whose subject is not ``scope: what changes`` in at most 72 characters. Called with the message's file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
SUBJECT = re.compile(r"[a-z][a-z0-9_-]*(, [a-z][a-z0-9_-]*)*: \S.*[^.\s]")
BY_GIT = re.compile(r"(Merge|Revert) |(fixup|squash|amend)! ")
"""Subjects that git writes itself."""


def fault(subject: str) -> str:
    """What is wrong with a subject; empty where nothing is."""
    if BY_GIT.match(subject):
        return ""
    if len(subject) > LONGEST:
        return f"the subject has {len(subject)} characters; shorten it to {LONGEST}"
    if not SUBJECT.fullmatch(subject):
        return "write the subject as scope: what changes, such as tui: sort runs by name; without a full stop"
    return ""


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    found = fault(next((line for line in lines if line.strip() and not line.startswith("#")), ""))
    if found:
        sys.exit(found)

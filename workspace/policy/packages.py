"""Packages of other authors as a policy names them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackageFiles:
    """Package as a policy names it, or as it is installed: ``sha256`` is the hash of its files."""

    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} {self.sha256}"


def normalise_package_name(name: str) -> str:
    """Return the form in which names of packages are compared (PyPA, name normalization)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def package_lines(package: PackageFiles) -> tuple[str, str, str]:
    """Return the lines of ``policy.toml`` that name a package."""
    return (
        f"[privacy.packages.{json.dumps(package.name)}]",
        f"version = {json.dumps(package.version)}",
        f"sha256 = {json.dumps(package.sha256)}",
    )

"""Packages of methods that are installed for one test, as an installer would leave them."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfumato.engine.methods.registry import discover_methods

EXAMPLE = Path(__file__).parents[1] / "outside" / "example"


def install(source: Path, site: Path) -> None:
    """Put a package where Python finds it, with the metadata that an installer would write."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    shutil.copytree(source, site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    (metadata / "INSTALLER").write_text("tests\n", "utf-8")
    files = sorted(file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file())
    (metadata / "RECORD").write_text("".join(f"{name},,\n" for name in files), "utf-8")


@pytest.fixture
def find_methods_again() -> Iterator[Callable[[], None]]:
    """Forget the methods that were found, now and after the test."""

    def forget() -> None:
        discover_methods.cache_clear()
        for name in [name for name in sys.modules if name.startswith("sfumato_example")]:
            del sys.modules[name]

    yield forget
    forget()


@pytest.fixture
def example_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_methods_again: Callable[[], None]) -> Path:
    """The example of a package that brings methods, installed for this process and those that it starts."""
    site = tmp_path / "site"
    install(EXAMPLE, site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    find_methods_again()
    return site

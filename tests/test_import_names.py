"""The names under which the house is imported, and the packages that an installation holds."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("engine", "workspace", "tui")


@pytest.fixture(scope="module")
def configured() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]


def test_every_folder_with_modules_is_installed_under_the_name_of_the_house(configured: dict) -> None:
    folders = {path.parent.relative_to(ROOT) for layer in LAYERS for path in (ROOT / layer).rglob("*.py")}
    assert sorted(configured["packages"]) == sorted(".".join(("sfumato", *folder.parts)) for folder in folders)
    assert configured["package-dir"] == {f"sfumato.{layer}": layer for layer in LAYERS}


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for layer in LAYERS for path in (ROOT / layer).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_file_that_is_no_module_is_installed_too(configured: dict) -> None:
    kept = {
        path
        for package, patterns in configured["package-data"].items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }
    there = {path for layer in LAYERS for path in (ROOT / layer).rglob("*") if path.is_file()}
    assert {path for path in there if path.suffix not in {".py", ".pyc"}} == kept


@pytest.mark.parametrize("layer", LAYERS)
def test_the_links_that_mypy_follows_lead_to_the_layers(layer: str) -> None:
    assert (ROOT / ".ci" / "names" / "sfumato" / layer).resolve() == ROOT / layer


def test_modules_of_others_named_like_our_layers_do_no_harm(tmp_path: Path) -> None:
    for layer in LAYERS:
        (tmp_path / f"{layer}.py").write_text("raise SystemExit('not this one')")
    script = "import sfumato.tui.cli.main, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert not set(LAYERS) & set(done.stdout.split())

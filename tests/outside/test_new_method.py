"""``sfumato new-method`` writes a package that keeps the contract; CONTRIBUTING's example is such a method."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from loaded_process import PYTEST, run_loaded

from sfumato.engine.methods.protocols import FAMILIES
from sfumato.tui.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"## A method is one file\n.*?```python\n(.*?)```", re.DOTALL)


def written(key: str, directory: Path) -> Path:
    """The package of a new method."""
    with pytest.raises(SystemExit) as ended:
        main(["new-method", key, str(directory)])
    assert not ended.value.code
    return directory


def contract_of(package: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """The package's tests and the contract, as its own ``pytest`` runs them where it is installed."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": ""}
    return run_loaded(
        "-q", "-p", "no:cacheprovider", "-W", "ignore", code=PYTEST, folder=package, environment=environment
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_method_keeps_the_contract_as_it_is_written(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], install: Callable[[Path, Path], None]
) -> None:
    key = f"{family}.of_mine"
    package = written(key, tmp_path / "package")
    assert "pytest" in capsys.readouterr().out
    install(package, tmp_path / "site")
    done = contract_of(package, tmp_path / "site")
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 3, "the contract ran"


@pytest.mark.slow
def test_the_contract_refuses_a_new_method_that_is_spoilt(
    tmp_path: Path, install: Callable[[Path, Path], None]
) -> None:
    """The control: the same package, whose share is a percentage."""
    package = written("risk.of_mine", tmp_path / "package")
    module = package / "sfumato_of_mine" / "of_mine.py"
    text = module.read_text("utf-8")
    module.write_text(text.replace("float(np.mean(counts == 1))", "float(100 * np.mean(counts >= 0))"), "utf-8")
    assert module.read_text("utf-8") != text
    install(package, tmp_path / "site")
    assert contract_of(package, tmp_path / "site").returncode == 1


@pytest.mark.slow
def test_the_example_of_contributing_keeps_the_contract_as_it_is_printed(
    tmp_path: Path, install: Callable[[Path, Path], None]
) -> None:
    example = EXAMPLE.search((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert example is not None
    package = written("risk.my_measure", tmp_path / "package")
    (package / "sfumato_my_measure" / "my_measure.py").write_text(example[1], "utf-8")
    install(package, tmp_path / "site")
    done = contract_of(package, tmp_path / "site")
    assert done.returncode == 0, done.stdout[-3000:]

"""``sfumato new-method`` writes a method that keeps the contract: in a package, or in Sfumato itself with all that its tests ask.

The example of the manual is such a method.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installed_packages import install
from loaded_process import PYTEST, run_loaded

from sfumato.engine.contract.own_skeletons import example_entry, own_skeleton
from sfumato.engine.methods.protocols import FAMILIES
from sfumato.tui.cli import new_method
from sfumato.tui.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"## A method is one file\n.*?```python\n(.*?)```", re.DOTALL)
COPIED = ("engine", "workspace", "tui", "tests", ".ci", "pyproject.toml")
OF_ALL_METHODS = (
    "tests/contract/test_every_output_has_an_oracle.py::test_every_output_has_an_oracle_or_a_written_reason_why_there_can_be_none",
    "tests/contract/test_labels.py::test_no_two_results_of_different_methods_have_one_name",
    "tests/contract/test_metamorphic_relations.py::test_every_output_says_what_becomes_of_it",
    "tests/engine/methods/test_task_rates.py::test_every_method_of_ours_was_measured",
    "tests/tui/cli/test_manual_blocks.py::test_every_method_has_a_section",
    "tests/tui/cli/test_manual_blocks.py::test_the_blocks_of_a_page_are_up_to_date[methods]",
)
"""Tests that fail for a method of our own which lacks its evidence, label, rates or entry in the manual."""


def write_package(key: str, directory: Path) -> Path:
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
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = f"{family}.of_mine"
    package = write_package(key, tmp_path / "package")
    assert "pytest" in capsys.readouterr().out
    install(package, tmp_path / "site")
    done = contract_of(package, tmp_path / "site")
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 3, "the contract ran"


@pytest.mark.slow
def test_the_contract_refuses_a_new_method_that_is_spoilt(tmp_path: Path) -> None:
    """The control: the same package, whose share is a percentage."""
    package = write_package("risk.of_mine", tmp_path / "package")
    module = package / "sfumato_of_mine" / "of_mine.py"
    text = module.read_text("utf-8")
    module.write_text(text.replace("float(np.mean(counts == 1))", "float(100 * np.mean(counts >= 0))"), "utf-8")
    assert module.read_text("utf-8") != text
    install(package, tmp_path / "site")
    assert contract_of(package, tmp_path / "site").returncode == 1


@pytest.mark.slow
def test_the_example_of_the_manual_keeps_the_contract_as_it_is_printed(tmp_path: Path) -> None:
    example = EXAMPLE.search((ROOT / "workspace" / "manual" / "developers_methods.md").read_text("utf-8"))
    assert example is not None
    package = write_package("risk.my_measure", tmp_path / "package")
    (package / "sfumato_my_measure" / "my_measure.py").write_text(example[1], "utf-8")
    install(package, tmp_path / "site")
    done = contract_of(package, tmp_path / "site")
    assert done.returncode == 0, done.stdout[-3000:]


def run_in(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a checkout, with the packages of that checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / ".ci" / "names"), "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        [sys.executable, *words],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.slow
def test_a_measure_of_our_own_passes_its_tests_with_nothing_else_touched(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "snapshots")
            shutil.copytree(ROOT / name, checkout / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, checkout / name)
    done = run_in(checkout, "-c", "from sfumato.tui.cli.main import main; main(['new-method', 'risk.of_mine', '.'])")
    assert done.returncode == 0, done.stderr
    for part in ("engine/risk/of_mine.py", "evidence/risk_of_mine.py", "methods.md", "measured_rates.py"):
        assert part in done.stdout
    options = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "quick or slow")
    every = run_in(checkout, *options, *OF_ALL_METHODS)
    assert every.returncode == 0, every.stdout[-3000:]
    own = run_in(checkout, *options, "tests/contract", "tests/engine/risk/test_of_mine.py", "-k", "of_mine")
    assert own.returncode == 0, own.stdout[-3000:]
    again = run_in(checkout, "-c", "from sfumato.tui.cli.main import main; main(['new-method', 'risk.of_mine', '.'])")
    assert again.returncode == 2
    assert "risk.of_mine already" in again.stderr


@pytest.mark.parametrize("family", FAMILIES)
def test_the_files_of_a_method_of_our_own_import_their_neighbours_alone(family: str) -> None:
    files = own_skeleton(f"{family}.of_mine")
    for path, text in files.items():
        compile(text, path, "exec")
    module = files[f"engine/{family}/of_mine.py"]
    assert re.search(r"^from \.", module, re.MULTILINE)
    assert "sfumato.engine" not in module
    assert (f"tests/contract/evidence/{family}_of_mine.py" in files) == (family not in ("synthesis", "anonymisation"))
    assert bool(example_entry(f"{family}.of_mine")) == (family == "anonymisation")


@pytest.mark.parametrize(
    ("key", "after", "before"),
    [
        ("risk.of_mine", "## Disclosure risk", "risk.population_uniqueness"),
        ("risk.zzz", "risk.uniqueness", "## Studies"),
        ("studies.zzz", "studies.risk_utility", ""),
        ("quality.aaa", "## Data quality", "quality.ilm"),
    ],
)
def test_an_entry_of_the_manual_stands_in_the_order_of_names(key: str, after: str, before: str) -> None:
    page = (ROOT / "workspace" / "manual" / "methods.md").read_text("utf-8")
    now = new_method._with_entry(page, key)
    mark = f"<!-- generated: method {key} -->\n"
    assert now.count(mark) == 1
    earlier, _, later = now.partition(mark)
    assert after in earlier
    assert before in later[:600]
    assert all(line in now for line in page.splitlines())


def test_another_directory_is_no_checkout_of_our_own(tmp_path: Path) -> None:
    assert new_method.is_own_checkout(ROOT)
    assert not new_method.is_own_checkout(tmp_path)

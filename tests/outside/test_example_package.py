"""A package of methods outside the house: listed, run by workers and on a cluster, reported, and held to the contract."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loaded_process import PYTEST, run_loaded
from prepared_workspaces import enter_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.registry import find_method, method_by_key, registry, rejected_plugins
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.runs import read_result_rows
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace

KEYS = ("quality.values_kept", "risk.lone_matches", "studies.few_matches", "synthesis.resampling")
SECTIONS: dict[str, Any] = {
    "title": "Methods from outside",
    "synthesis": [{"target": "visits", "method": "resampling"}, {"target": "income", "method": "resampling"}],
    "measure": [
        {"method": "risk.lone_matches", "known": ["region", "visits"]},
        {"method": "quality.values_kept"},
    ],
    "study": [{"method": "studies.few_matches", "known": ["region", "visits"], "most": 2}],
    "threshold": [{"value": "risk.lone_matches.lone", "max": 0.9}],
}


NEXT = "----- the next command -----"
ONE_AFTER_ANOTHER = f"""
import json, sys
from sfumato.tui.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as ended:
        if ended.code:
            sys.exit(ended.code)
    print({NEXT!r}, flush=True)
"""


def printed(*commands: tuple[str, ...], cwd: Path) -> list[str]:
    """What each command prints, one after another in a process of their own."""
    script = [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(commands)]
    done = subprocess.run(script, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    *said, rest = done.stdout.split(f"{NEXT}\n")
    assert (len(said), rest) == (len(commands), "")
    return said


def test_its_methods_are_found_beside_ours(example_package: Path) -> None:
    assert {key for key, found in registry().items() if found.package != "sfumato"} == set(KEYS)
    assert {registry()[key].package for key in KEYS} == {"sfumato-example"}
    assert rejected_plugins() == ()
    assert all(method_by_key(key) is find_method(key, "step") is registry()[key] for key in KEYS)


def test_a_run_of_its_methods_says_whose_they_are(
    example_package: Path, small_recipe: Callable[..., Recipe], small_data: Microdata, workspace: Workspace
) -> None:
    recipe = small_recipe(**SECTIONS)
    assert recipe.packages == ("sfumato-example",)
    run_id = enter_recipe(workspace, recipe, small_data)
    assert find_run(workspace, run_id).versions["sfumato-example"] == "1.2"
    run_worker(workspace.directory, idle=0)
    assert find_run(workspace, run_id).state is RunState.DONE
    rows = read_result_rows(workspace, run_id)
    assert rows == list(execute_run(recipe, small_data, key=PUBLIC).rows)
    assert {row.method_key for row in rows} == set(KEYS) - {"synthesis.resampling"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_finds_its_methods_too(
    example_package: Path, small_recipe: Callable[..., Recipe], small_data: Microdata, workspace: Workspace
) -> None:
    distributed = pytest.importorskip("distributed")
    recipe = small_recipe(**SECTIONS)
    run_id = enter_recipe(workspace, recipe, small_data)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", protocol="tcp://"
    ) as cluster:
        run_worker(workspace.directory, idle=0, dask=cluster.scheduler_address)
    assert find_run(workspace, run_id).state is RunState.DONE
    assert read_result_rows(workspace, run_id) == list(execute_run(recipe, small_data, key=PUBLIC).rows)


@pytest.mark.slow
def test_the_command_line_lists_runs_and_reports_them(
    example_package: Path,
    small_recipe: Callable[..., Recipe],
    small_data: Microdata,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    small_data.frame.to_csv(tmp_path / "small.csv", index=False)
    (tmp_path / "recipe.toml").write_text(small_recipe(**SECTIONS).to_toml(), "utf-8")
    listed, page, _, _, records, _ = printed(
        ("methods",),
        ("methods", "risk.lone_matches"),
        ("init", "place"),
        ("run", "recipe.toml", "--data", "small.csv", "--workspace", "place", "--jobs", "2", "--json", "run.json"),
        ("records", "last", "--workspace", "place"),
        ("report", "last", "--workspace", "place", "-o", "report.html"),
        cwd=tmp_path,
    )
    for key, title in zip(KEYS, ("Values kept", "Lone matches", "Few matches", "Resampling"), strict=True):
        line = next(line for line in listed.splitlines() if line.startswith(key))
        assert line.endswith(f"{title} (from sfumato-example)")
    assert "from the package sfumato-example 1.2" in page
    assert "variables the intruder knows" in page
    found = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert found["versions"]["sfumato-example"] == "1.2"
    assert {row["method"] for row in found["rows"]} == {"lone_matches", "values_kept", "few_matches"}
    assert "risk.lone_matches" in records
    assert "the chance that a match picked at random is the record's own" in records
    report = (tmp_path / "report.html").read_text("utf-8")
    assert "sfumato-example 1.2" in report
    for words in ("risk.lone_matches", "Few matches", "Values kept"):
        assert words in report, words


@pytest.mark.slow
def test_its_own_tests_are_those_of_the_contract(example_package: Path) -> None:
    script = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(script, cwd=example_package, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout


WRONG = {
    "rng.choice(fit": "np.random.default_rng().choice(fit",
    "len(confidential))": "len(confidential)) * 86400",
    "np.mean(found == 1)": "np.mean(found == 1) + 2",
}
NOTICED = (
    "synthesis_answers_the_same_twice[synthesis.resampling]",
    "drawn_values_keep_to_the_variable[synthesis.resampling-date]",
    "measure_is_sound[risk.lone_matches]",
)


@pytest.mark.slow
def test_the_contract_notices_a_wrong_build(example_package: Path) -> None:
    """Values that no seed decides, dates in seconds, a share above 1."""
    for file in (example_package / "sfumato_example").glob("*.py"):
        text = file.read_text("utf-8")
        for right, wrong in WRONG.items():
            text = text.replace(right, wrong)
        file.write_text(text, "utf-8")
    names = " or ".join(name.partition("[")[0] for name in NOTICED)
    done = run_loaded("-q", "-p", "no:cacheprovider", "-k", names, code=PYTEST, folder=example_package)
    assert done.returncode == 1
    failed = "".join(line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert [name for name in NOTICED if name not in failed] == []
    assert "measure_is_sound[quality.values_kept]" not in failed


def test_a_recipe_of_a_package_that_is_not_there_says_so(small_recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(BadInput, match=r'^synthesis\[0\]\.method: no method "resampling"'):
        small_recipe(**SECTIONS)

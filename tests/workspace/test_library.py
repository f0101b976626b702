"""Frames in and out: the examples of the manual as they stand there, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace import library
from sfumato.workspace.errors import NotAWorkspace
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

PAGE = Path(__file__).parents[2] / "workspace" / "manual" / "python.md"


def examples() -> list[str]:
    """The blocks of Python in the manual."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def example_values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the names of the examples stand for when all have run, one after another.

    In workspaces with the same key each time: by a new one the chain of the last example takes from two seconds to three minutes.
    """
    folder = tmp_path_factory.mktemp("manual")
    for name in ("people", "visits"):
        Workspace.create(folder / f"{name}.workspace", b"k" * 32).close()
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for example in examples():
            exec(compile(example, "python.md", "exec"), names)
    return {**names, "folder": folder}


@pytest.mark.slow
def test_the_examples_of_the_manual_run(example_values: dict[str, Any]) -> None:
    assert len(examples()) == 4
    people, first = example_values["people"], example_values["first"]
    assert list(first.columns) == list(people.columns)
    assert sorted(first["region"]) == sorted(people["region"])
    assert set(first["income"]).isdisjoint(people["income"])
    assert (
        example_values["averages"]["max_abs_difference"] == 0
    )  # values dealt to other records have the same distribution
    assert set(example_values["rows"]["draw"].dropna()) == {1, 2, 3}
    assert dict(example_values["drawn"].posterior.sizes)["chain"] == 12
    assert all(1 <= float(r_hat) <= 1.01 for r_hat in example_values["r_hat"].data_vars.values())


@pytest.mark.slow
def test_results_are_the_rows_of_the_run_and_the_newest_is_taken(example_values: dict[str, Any]) -> None:
    place = example_values["folder"] / "people.workspace"
    with Workspace.open(place, read_only=True) as workspace:
        rows = [row.to_dict() for row in read_result_rows(workspace, example_values["run"])]
    pd.testing.assert_frame_equal(library.results(place, example_values["run"]), pd.DataFrame(rows))
    pd.testing.assert_frame_equal(library.results(place), library.results(place, example_values["scored"]))


@pytest.mark.slow
def test_datasets_are_dealt_anew_and_show_no_order(example_values: dict[str, Any]) -> None:
    place = example_values["folder"] / "people.workspace"
    again = library.datasets(place, example_values["run"])[0]
    assert not again.equals(example_values["first"])
    columns = list(again.columns)
    pd.testing.assert_frame_equal(
        again.sort_values(columns, ignore_index=True), example_values["first"].sort_values(columns, ignore_index=True)
    )


def test_what_cannot_be_done_is_said_and_stores_nothing(tmp_path: Path) -> None:
    mixed = pd.DataFrame({"income": [1.0, "x", object()]})
    plan = {"title": "t", "variables": {"income": {"kind": "continuous"}}}
    step = {"synthesis": [{"target": "income", "method": "cart"}]}
    place = tmp_path / "w"
    with pytest.raises(BadInput, match="makes no release"):
        library.synthesise(mixed, plan, place)
    with pytest.raises(BadInput, match="give each column values of one type"):
        library.synthesise(mixed, plan | step, place)
    with pytest.raises(BadInput, match="at least one released frame"):
        library.score(mixed, [], plan, place)
    with pytest.raises(BadInput, match="name the variables that are released"):
        library.score(mixed, [mixed], plan, place)
    with pytest.raises(NotAWorkspace):
        library.results(tmp_path / "nowhere")

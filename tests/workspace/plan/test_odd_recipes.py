"""Odd recipes from a generator are read or refused with one message that names a place; none runs away."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from near_recipes import near_recipes
from odd_recipes import odd_recipes

from sfumato.engine.contract.examples import SCHEMA, confidential, example_recipe
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import EngineError
from sfumato.engine.execution.tasks import plan_tasks
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.steps import MAKERS
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.recipes import find_recipe, shipped_recipes
from sfumato.workspace.service.prepare import prepare_run

__all__ = ["confidential"]
pytestmark = pytest.mark.slow
NUMBER, SECONDS, MOST_BYTES = 350, 30, 2 << 30


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """TimeoutError after so many seconds."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_odd_recipes_are_prepared_or_refused_with_the_place(
    tmp_path: Path, small: tuple[Recipe, Microdata], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, data = small
    data.frame.to_csv(tmp_path / "people.csv", index=False)
    own: dict[str, Any] = {**recipe.to_table(), "data": {"file": "people.csv"}}
    shipped = [tomllib.loads(find_recipe(one.name).text) for one in shipped_recipes()]
    counted: Counter[str] = Counter()
    wrong = []
    cases = list(odd_recipes([*[own] * 8, *shipped], NUMBER))
    assert len(cases) >= NUMBER
    for place, text in cases:
        (tmp_path / "recipe.toml").write_text(text, "utf-8")
        started = time.monotonic()
        try:
            with within(SECONDS):
                prepared = prepare_run(
                    find_recipe(str(tmp_path / "recipe.toml")), str(tmp_path / "people.csv"), key=PUBLIC
                )
                plan_tasks(prepared.recipe)
        except (EngineError, WorkspaceError) as error:
            counted["refused"] += 1
            if not str(error).strip() or len(str(error)) > 2000:
                wrong.append(f"{place}: a message of {len(str(error))} letters: {str(error)[:200]}")
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{place}: {type(error).__name__} {str(error)[:200]} after {time.monotonic() - started:.0f} s")
        else:
            counted["prepared"] += 1
    print("\n".join(f"{number:4}  {what}" for what, number in sorted(counted.items())))
    assert not wrong, "\n".join(wrong)
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "recipe.toml"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES


NEAR, AT_LEAST, FEW_SECONDS, LESS_BYTES = 256, 60, 10, 1 << 30
LONG = ("synthesis.ctgan", "studies.calibration", "studies.risk_utility")
"""Methods that take seconds on any table, or an extra."""


def valid_tables() -> list[dict[str, Any]]:
    """For every method a recipe with a step of it, and with a release that it looks at."""
    made = []
    for method in registry().values():
        if method.key in LONG or method.package != "sfumato":
            continue
        recipe = example_recipe(method, SCHEMA)
        table = recipe.to_table()
        step = (*recipe.synthesis, *recipe.anonymisation, *recipe.measures, *recipe.studies)[0]
        section = method.family if method.family in MAKERS else "study" if method.family == "studies" else "measure"
        every_parameter = {key: value for key, value in step.spec.to_full_table().items() if value is not None}
        table[section] = [{**every_parameter, **table[section][0]}]
        if method.family not in MAKERS:
            table["release"] = {"m": 2}
            table["synthesis"] = [
                {"target": "days", "method": "marginal_bootstrap"},
                {"target": "income", "method": "linear_regression", "predictors": ["region", "visits"]},
            ]
        made.append(table)
    return made


@pytest.mark.parametrize(
    ("number", "at_least"), [(48, 10), pytest.param(NEAR, AT_LEAST, marks=pytest.mark.study)], ids=["some", "all"]
)
def test_recipes_near_to_valid_ones_are_carried_out_or_refused_with_one_message(
    tmp_path: Path, confidential: Microdata, number: int, at_least: int
) -> None:
    people, folder = tmp_path / "people.csv", tmp_path / "recipes"
    pd.concat([confidential.frame] * 3).assign(number=range(3 * len(confidential))).to_csv(people, index=False)
    folder.mkdir()
    changes = {}
    for i, (change, text) in enumerate(near_recipes(valid_tables(), number)):
        (folder / f"{i:03}.toml").write_text(text, "utf-8")
        changes[f"{i:03}"] = change
    command = [sys.executable, "-P", str(Path(__file__).with_name("carry_out.py")), str(folder), str(people)]
    ended = subprocess.run([*command, str(FEW_SECONDS)], capture_output=True, text=True, check=False, timeout=600)
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    counted = Counter(one["how"] for one in found)
    longest, most = max(one["seconds"] for one in found), max(one["peak"] for one in found)
    print(
        f"{dict(counted)}; the longest {longest:.1f} s, in all {sum(one['seconds'] for one in found):.0f} s, {most / 1e6:.0f} MB"
    )
    wrong = [f"{changes[one['file']]}: {one['said']}" for one in found if one["how"] == "wrong"]
    wrong += [f"{changes[one['file']]}: {one['said'][:200]}" for one in found if len(one["said"]) > 2000]
    wrong += [
        f"{changes[one['file']]}: no message"
        for one in found
        if one["how"] in ("refused", "failed") and not one["said"]
    ]
    assert not wrong, "\n".join(wrong)
    assert len(found) == number, ended.stderr[-2000:]
    assert counted["done"] >= at_least, counted
    assert most < LESS_BYTES

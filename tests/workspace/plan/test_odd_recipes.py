"""Odd recipes from a generator are read or refused with one message that names a place; none runs away."""

from __future__ import annotations

import contextlib
import resource
import signal
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from odd_recipes import odd_recipes

from sfumato.engine.errors import EngineError
from sfumato.engine.execution import plan
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.run import PUBLIC
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.plan.prepare import prepare_run
from sfumato.workspace.recipes import find_recipe, shipped_recipes

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
                plan(prepared.recipe)
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

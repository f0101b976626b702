"""Plug-in of pytest: which tests are quick, which of them are looked at, and how long one may take."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[2]
TOO_LONG = 5.0
"""Seconds of processor time after which a test is no quick one: far above what developers_tests.md allows, so that no test fails on a slow day."""
FEW_MODULES = 20
LONGER = {"slow", "study", "sizes", "offline"}
WHOLLY_LONGER = re.compile(rf"^pytestmark = pytest\.mark\.({'|'.join(LONGER)})\b", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    """Studies try more examples where a test does not say how many."""
    settings.load_profile("study" if config.option.markexpr == "study" else "sfumato")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test that is asked for are not even loaded: for the quick suite those whose every test is marked as longer, for longer ones those
    that name none of their marks. The contract's tests get marks by the methods that they are of.
    """
    asked = set(re.findall(r"\w+", config.option.markexpr))
    if collection_path.suffix != ".py" or not asked & {"quick", *LONGER}:
        return None
    text = collection_path.read_text("utf-8")
    if asked == {"quick"}:
        return WHOLLY_LONGER.search(text) is not None or None
    named = "contract" in collection_path.parts or any(mark in text for mark in asked & LONGER)
    return None if "quick" in asked or named else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test that nothing marks as longer is a quick one. A slow study is a study: it runs where studies are asked for.

    Tests of ``sizes`` are looked for in ``tests/tui`` alone.
    """
    asked, kept = set(re.findall(r"\w+", config.option.markexpr)), []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if LONGER.isdisjoint(marks):
            item.add_marker("quick")
        if "sizes" in marks and ROOT / "tests" / "tui" not in item.path.parents:
            raise pytest.UsageError(
                f"{item.nodeid}: a test marked sizes stands in tests/tui, where .ci/run looks for it"
            )
        kept += [item] if not asked or (marks & LONGER) - {"slow"} <= asked else []
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A quick test that takes long fails, however it ends. One that loads modules is not judged: what it loads is loaded once."""
    if item.get_closest_marker("quick") is None:
        return (yield)
    before, loaded = sum(os.times()[:4]), len(sys.modules)
    result = yield
    spent = sum(os.times()[:4]) - before
    if spent > TOO_LONG and len(sys.modules) - loaded < FEW_MODULES:
        pytest.fail(f"it took {spent:.1f} s of processor time: mark it slow", pytrace=False)
    return result


def pytest_collection_finish() -> None:
    """From here on garbage is collected again, as seldom as in the app, and what was found is not searched for it each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    """Libraries look for what they left when Python ends: before that pytest collects five times what is not frozen."""
    atexit.register(gc.unfreeze)

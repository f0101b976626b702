"""How many keys lead from a file in an empty workspace to a verdict, counted in tmux at 80 by 24: each typed character is one."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from terminals import APP, Tmux, app_environment, kill_workers, tmux_is_here

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not tmux_is_here(), reason="tmux is not installed"),
]
OF_ADULT = {
    "age": "i", "workclass": "i", "fnlwgt": "x", "education": "i", "education_num": "x", "marital_status": "i", "occupation": "s",
    "relationship": "x", "race": "i", "sex": "i", "capital_gain": "x", "capital_loss": "x", "hours_per_week": "x", "native_country": "i",
}  # fmt: skip
"""The keys that say what Adult's columns are, in their order: the quasi-identifiers and the sensitive variable of a census, others left out."""


class Counting:
    """Somebody who counts the keys that they press, and waits for what is on the screen before the next."""

    def __init__(self, directory: Path, file: Path) -> None:
        shutil.copy(file, directory)
        self.keys = 0
        command = ["sh", "-c", f'cd "{directory}" && exec "$@"', "sh", *APP, "--workspace", "work"]
        self.terminal = Tmux(command, app_environment(directory), directory / "tmux")

    def press(self, *keys: str) -> Counting:
        self.terminal.press(*keys)
        self.keys += len(keys)
        return self

    def see(self, *patterns: str, patience: float = 60.0) -> Counting:
        self.terminal.see(*patterns, patience=patience)
        return self


@pytest.fixture
def counting(tmp_path: Path, public_data: Callable[[str], Path]) -> Iterator[Callable[[str], Counting]]:
    """A terminal in a directory that holds nothing but a public file."""
    opened: list[Counting] = []

    def at(name: str) -> Counting:
        opened.append(Counting(tmp_path, public_data(name)))
        return opened[-1].see("No projects yet")

    yield at
    for one in opened:
        one.terminal.close()
        if (tmp_path / "work" / "workspace.db").is_file():
            kill_workers(tmp_path / "work")


JUDGED = r"\d+ of \d+ plan limits? met"
"""What the list of findings says of all limits, above its lines."""


def verdict(at: Counting) -> str:
    """Run the plan that was drafted, and wait for what is said of it."""
    at.see("R runs this plan", patience=120).press("R").see("Run this plan").press("y").see(r"\[3 Runs\]", "run 1")
    at.press("4").see(r"\[4 Findings\]", "done", JUDGED, patience=600)
    return at.terminal.screen


def test_the_consumer_expenditures_have_a_verdict_after_13_keys(counting: Callable[[str], Counting]) -> None:
    at = counting("ce.csv").press("I").see("Import a file").press("c").see("ce.csv").press("right", "enter")
    at.see("none unclear").press("enter")
    at.see("4 variables", "Role of UrbanRural").press("i", "i", "i")  # the question covers the last rows of the list
    at.see("Role of Expenditure").press("s").see("Draft a plan", "synthesised: Expenditure").press("enter")
    shown = verdict(at)
    assert re.search(JUDGED, shown)
    assert at.keys == 13


def adult_with_roles(counting: Callable[[str], Counting]) -> Counting:
    """Adult's file imported, and its columns said to be what they are."""
    at = counting("adult.csv").press("I").see("Import a file").press("a").see("adult.csv").press("right", "enter")
    at.see("How adult.csv is read", "enter accepts").press("enter")
    at.see("of adult.csv are|none unclear", "enter accepts").press("enter")
    return (
        at.see("15 variables", r"age +other", "Role of age")
        .press(*OF_ADULT.values(), "escape")
        .see("9 variables, 6 left out", r"native_count\S+ +quasi-identifier")
    )


@pytest.mark.study
def test_adult_is_synthesised_and_judged_after_26_keys(counting: Callable[[str], Counting]) -> None:
    at = adult_with_roles(counting).press("D").see("Draft a plan", "enter accepts").press("enter")
    shown = verdict(at)
    assert re.search(JUDGED, shown), shown
    assert at.keys == 26
    at.press("]", "]").see(r"\[Numbers\]").press("/", *"occup", "enter").see("occupation")  # far down in few lines


@pytest.mark.study
@pytest.mark.parametrize(
    ("form", "said", "most"),
    [
        pytest.param((), {"smallest": r"[Ss]mallest group\S* .*\b11\b"}, 27, id="k = 11"),
        pytest.param(
            ("down", "down", "3"),
            {"smallest": r"[Ss]mallest group\S* .*\b11\b", "fewest": r"[Ff]ewest \S* .*\b3\b"},
            30,
            id="k = 11, l = 3",
        ),
    ],
)  # fmt: skip
def test_adult_is_anonymised_and_judged_within_30_keys(
    counting: Callable[[str], Counting], form: tuple[str, ...], said: dict[str, str], most: int
) -> None:
    at = (
        adult_with_roles(counting)
        .press("D")
        .see("Draft a plan")
        .press("l")
        .see(r"\[anonymisation\]", "generalised: age, workclass")
        .press(*form)
    )
    at.see("enter accepts").press("enter")
    verdict(at)
    assert at.keys == most
    at.press("]", "]").see(r"\[Numbers\]")
    for filter_text, row in said.items():  # met limits are folded; the table of numbers shows what was reached
        at.press("/", *filter_text, "enter").see(row)


@pytest.mark.study
def test_a_table_of_adult_is_made_protected_and_read_after_36_keys(counting: Callable[[str], Counting]) -> None:
    """From a file in an empty workspace: 14 of the keys are the names of the two variables."""
    at = counting("adult.csv").press("I").see("Import a file").press("a").see("adult.csv").press("right", "enter")
    at.see("How adult.csv is read", "enter accepts").press("enter")
    at.see("of adult.csv are|none unclear", "enter accepts").press("enter").see("Role of age").press("escape")
    at.see(r"(?s)\A(?!.*Role of age)")  # what follows an escape at once would be one key with it
    began = time.monotonic()
    at.press("2").see("adds the first step").press("a").see("Add a step").press(*"table")
    at.see("A table to protect and print").press("enter").see("Table to protect and print").press(*"education,race")
    at.press("enter").see("R runs this plan", "records by education and race", patience=120)
    at.press("R").see("Run this plan").press("y").see(r"\[3 Runs\]", "run 1")
    at.press("4").see(r"\[4 Findings\]", "done", "Tables", patience=600)
    at.press("]").see(r"\[Tables\]", "hidden to protect|for others", patience=120)
    at.press("}").see("P hidden: unsafe by a rule", "fewer").press("enter")
    at.see("any reader", "what else fits", patience=120)
    print(f"{at.keys} keys, {time.monotonic() - began:.0f} s from the imported file to a cell that is understood")
    assert at.keys == 36

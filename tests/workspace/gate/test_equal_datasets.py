"""A second look at the data costs again, also where chance makes its small datasets equal to those of the first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from prepared_workspaces import run_recipe

from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.main import sfumato
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.gate import ledger
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release, released_table_hashes
from sfumato.workspace.gate.ledger import ledger_of_release, spending_of_charges
from sfumato.workspace.gate.public_figures import public_figures_of_release
from sfumato.workspace.policy.charges import LedgerCharge
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.ledger import read_charges
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
EPSILON = 0.5
FIGURES = {"public_figures": "paid", "public_figures_epsilon": 0.25}


@pytest.fixture
def keyed(tmp_path: Path) -> Workspace:
    """A workspace with a secret key."""
    return Workspace.create(tmp_path / "keyed", bytes(range(32)))


def recipe_of(epsilon: float = EPSILON, **form: Any) -> Recipe:
    return Recipe.from_table(
        {
            "population": {"name": "residents"},
            "variables": {"x": {"kind": "count", "bounds": [0, 1], "may_be_missing": False}},
            "data": {"missing": "refuse"},
            "synthesis": [{"method": "margins", "target": ["x"], "epsilon": epsilon, "bins": {"x": "width 1"}}],
            "measure": [{"method": "utility.ecdf"}],
            "release": {"m": 1, "seed": 1, "records": 1, **form},
        }
    )


def read_case(workspace: Workspace, run_id: int) -> ExaminedRelease:
    return ExaminedRelease(workspace, plan_release(workspace, run_id), Policy(epsilon=5.0))


def run_on(workspace: Workspace, recipe: Recipe, ones: int) -> int:
    """The run of 60 records of which some are 1: tables that differ in one person have numbers beside each other."""
    frame = pd.DataFrame({"x": [1] * ones + [0] * (60 - ones)})
    return run_recipe(workspace, recipe, frame, content=f"{ones}".encode())


def pairs_with_equal_datasets(workspace: Workspace, recipe: Recipe, runs: int = 5) -> tuple[int, int]:
    """Two runs on different data that made the same dataset of one record, as two of three must."""
    seen: dict[tuple[str, ...], int] = {}
    for ones in range(30, 30 + runs):
        run_id = run_on(workspace, recipe, ones)
        made = tuple(released_table_hashes(workspace, run_id))
        if made in seen:
            return seen[made], run_id
        seen[made] = run_id
    raise AssertionError("a dataset of one record has two values")


def test_a_second_look_at_other_data_costs_again(keyed: Workspace) -> None:
    """Whoever repeats a run on slightly other data would look without end, for twice its epsilon."""
    first, second = pairs_with_equal_datasets(keyed, recipe_of())
    own = [ledger_of_release(read_case(keyed, one)).own for one in (first, second)]
    assert [one.epsilon for one in own] == [EPSILON, EPSILON]
    assert sum(one.epsilon for one in spending_of_charges(own[1], own[:1])) == 2 * EPSILON
    # The control: the same run of the same data has the same noise, and costs once.
    again = ledger_of_release(read_case(keyed, run_on(keyed, recipe_of(), 30))).own
    once = ledger_of_release(read_case(keyed, run_on(keyed, recipe_of(), 30))).own
    assert sum(one.epsilon for one in spending_of_charges(again, [once])) == EPSILON


def test_a_second_look_with_another_epsilon_costs_again(keyed: Workspace) -> None:
    own = [ledger_of_release(read_case(keyed, run_on(keyed, recipe_of(EPSILON + k / 100), 30))).own for k in range(3)]
    together = spending_of_charges(own[0], own[1:])
    assert sum(one.epsilon for one in together) == pytest.approx(3 * EPSILON + 0.03)


def test_the_noise_of_figures_is_another_for_other_data(keyed: Workspace) -> None:
    """With equal noise the difference of two figures is the one person in whom the data differ."""
    first, second = pairs_with_equal_datasets(keyed, recipe_of(**FIGURES))
    numbers = [figure.noisy for one in (first, second) for figure in public_figures_of_release(read_case(keyed, one))]
    assert len(numbers) == 2
    # Both tables have 60 records, so equal noise would give equal numbers of records.
    assert len({pair[1] for pair in numbers if pair is not None}) == 2


def test_nothing_public_of_a_run_leaves_before_it_is_charged(keyed: Workspace, tmp_path: Path) -> None:
    """The public page of each of a hundred runs would be a look at the data that no ledger has."""
    run_id = run_on(keyed, recipe_of(**FIGURES), 30)
    words = (
        ("results", str(run_id), "--public"),
        ("report", str(run_id), "--public", "-o", str(tmp_path / "page.html")),
        ("figures", str(run_id), "--public", "--svg", str(tmp_path / "drawn")),
    )

    def code_of(*given: str) -> int:
        done = CliRunner().invoke(sfumato, [*given, "--workspace", str(keyed.directory)])
        assert done.exit_code == 0 or isinstance(done.exception, NotReleased), done.output
        return done.exit_code

    assert [code_of(*one) for one in words] == [1, 1, 1]
    assert list(tmp_path.iterdir()) == [keyed.directory]
    assert code_of("results", str(run_id)) == 0, "what stays inside is shown"
    write_run_release(keyed, run_id, tmp_path / "out", reason="records of no people at all")
    assert sum(one.epsilon for one in read_charges(keyed.connection)) == EPSILON + 0.25
    assert [code_of(*one) for one in words] == [0, 0, 0]


def test_a_run_that_was_released_twice_counts_with_its_larger_delta() -> None:
    one = LedgerCharge(1, "", "", 1, "", ("a",), (), 1.0, 0.0, 1e-6, 1, True, 100, datasets="x")
    for twice in ([one, replace(one, delta=1e-3)], [replace(one, delta=1e-3), one]):
        (found,) = spending_of_charges(None, twice)
        assert (found.epsilon, found.delta, found.covered) == (1.0, 1e-3, True)
    (found,) = spending_of_charges(None, [one, replace(one, delta=None)])
    assert found.delta is None
    (found,) = spending_of_charges(None, [replace(one, covered=False), replace(one, epsilon=3.0)])
    assert (found.epsilon, found.covered) == (3.0, False)
    assert ledger.spending_of_charges(None, [one, replace(one, run_id=2)]) == [one], "another run of the same noise"

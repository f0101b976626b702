"""What a plan will take: from rates, from earlier runs, and never more exact than it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import plan_tasks
from sfumato.engine.methods import task_rates
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis.margins import SOFT_FIT_SECONDS
from sfumato.workspace.jobs import task_costs
from sfumato.workspace.jobs.memory import MemoryLimit, memory_text
from sfumato.workspace.jobs.task_costs import measure_recent_costs
from sfumato.workspace.service.costs import estimate_run_cost, plan_cost_text, rough_time_text, run_cost_text
from sfumato.workspace.store.workspace import Workspace


def test_more_records_datasets_and_fewer_jobs_take_longer(
    small: tuple[Recipe, Microdata], small_recipe: Callable[..., Recipe]
) -> None:
    recipe, _ = small
    costs = [estimate_run_cost(recipe, n, 1).seconds for n in (1_000, 100_000, 10_000_000)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]
    assert estimate_run_cost(recipe, 10_000_000, 2).seconds < estimate_run_cost(recipe, 10_000_000, 1).seconds
    assert estimate_run_cost(recipe, 10_000_000, 2).memory > estimate_run_cost(recipe, 10_000_000, 1).memory


def test_earlier_runs_of_the_workspace_stand_in_for_rates(
    workspace: Workspace, enter: Callable[..., int], small: tuple[Recipe, Microdata]
) -> None:
    recipe, data = small
    run_id = enter()
    assert measure_recent_costs(workspace, len(data)) == {}
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE task SET state = 'done', seconds = 100.05 WHERE run_id = ?", (run_id,))
        connection.execute("UPDATE run SET state = 'done' WHERE id = ?", (run_id,))
    earlier = measure_recent_costs(workspace, len(data))
    assert [took.seconds for took in earlier.values()] == pytest.approx([100 / len(data)] * len(earlier))
    assert all(took.memory is None for took in earlier.values())  # no peak was recorded
    found = estimate_run_cost(recipe, len(data), 1, earlier)
    tasks = workspace.connection.execute(
        "SELECT count(*) FROM task WHERE run_id = ? AND kind <> 'combine'", (run_id,)
    ).fetchone()[0]
    assert found.is_from_runs
    assert found.seconds == pytest.approx(100 * tasks, rel=0.05)
    assert "by earlier runs here" in run_cost_text(found)
    assert measure_recent_costs(workspace, 11 * len(data)) == {}  # so few records say little of so many
    assert "by earlier runs here" in plan_cost_text(workspace, recipe.to_toml(), len(data), 2)


def test_what_is_not_known_is_said(small_recipe: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_rates, "UNTIMED", {"utility.summary"})
    recipe = small_recipe(measure=[{"method": "utility.summary"}], threshold=[])
    assert "Not counted, since not known: utility.summary." in run_cost_text(estimate_run_cost(recipe, 100, 1))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "a few seconds"),
        (23, "about 20 seconds"),
        (89, "about 90 seconds"),
        (100, "about 2 minutes"),
        (4_000, "about 67 minutes"),
        (20_000, "about 6 hours"),
    ],
)
def test_times_are_rough(seconds: float, said: str) -> None:
    assert rough_time_text(seconds) == said


def test_memory_is_rough() -> None:
    assert (memory_text(432_100_000), memory_text(12_300_000_000)) == ("about 0.4 GB", "about 12 GB")


def test_what_runs_beside_each_other_is_counted_as_far_as_it_would_be_started(
    small_recipe: Callable[..., Recipe],
) -> None:
    recipe = small_recipe()
    one, two, four = (estimate_run_cost(recipe, 10**6, jobs).memory for jobs in (1, 2, 4))
    assert one < two < four
    assert two <= 2 * one
    limited = estimate_run_cost(recipe, 10**6, 4, limit=MemoryLimit(int(1.5 * one), "so much"))
    assert limited.memory == int(1.5 * one)
    assert limited.refused == ""
    # part by part a long table needs little more than a short one
    refused = estimate_run_cost(recipe, 10**8, 4, limit=MemoryLimit(one, "so much")).refused
    assert "(so much)" in refused
    assert refused in run_cost_text(estimate_run_cost(recipe, 10**8, 4, limit=MemoryLimit(one, "so much")))


def test_peaks_of_runs_of_like_size_stand_in_for_rates(
    workspace: Workspace, enter: Callable[..., int], small: tuple[Recipe, Microdata]
) -> None:
    recipe, data = small
    run_id = enter()
    with workspace.write_transaction() as connection:
        connection.execute(
            "UPDATE task SET state = 'done', seconds = 1, peak_bytes = 4000000000 WHERE run_id = ?", (run_id,)
        )
        connection.execute("UPDATE run SET state = 'done' WHERE id = ?", (run_id,))
    alike = estimate_run_cost(recipe, len(data), 1, measure_recent_costs(workspace, len(data))).memory
    assert alike == pytest.approx(4e9, rel=0.01)
    larger = estimate_run_cost(recipe, 2 * len(data), 1, measure_recent_costs(workspace, 2 * len(data))).memory
    assert larger == pytest.approx(2 * (4e9 - 1.2e8) + 1.2e8, rel=0.01)
    much_larger = estimate_run_cost(recipe, 5 * len(data), 1, measure_recent_costs(workspace, 5 * len(data))).memory
    assert much_larger < 1e9, "the process of a small run says nothing of a large one"


def test_the_recipe_is_planned_once(small: tuple[Recipe, Microdata], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Recipe] = []
    monkeypatch.setattr(task_costs, "plan_tasks", lambda recipe: asked.append(recipe) or plan_tasks(recipe))
    estimate_run_cost(small[0], 1000, 2)
    assert asked == [small[0]]


@pytest.mark.parametrize("records", [100, 100_000])
def test_a_noisy_fit_takes_longer_than_a_rounded_one_by_the_same_whatever_the_records(records: int) -> None:
    def seconds(**step: float) -> float:
        variables = {name: {"kind": "categorical", "levels": ["a", "b"]} for name in "xyz"}
        made = {"method": "margins", "target": [*variables], **step}
        found = task_costs.estimate_task_costs(
            Recipe.from_table({"variables": variables, "synthesis": [made]}), records
        )[0].seconds
        assert found is not None
        return found

    assert seconds(epsilon=1.0) - seconds() == pytest.approx(SOFT_FIT_SECONDS * 9)

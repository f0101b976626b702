"""Comparison of two runs, on the same data unless the user allows other data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.engine.execution.comparison import ComparedNumber, ComparedVerdict, compare_rows, compare_verdicts
from sfumato.engine.methods.labels import to_labelled_json
from sfumato.engine.recipe.difference import PlanDifference
from sfumato.engine.wording import count_noun

from ..errors import DifferentData, NotReady
from ..reporting.recipe_difference import difference_object
from ..reporting.words import SettingsByMethod, varying_settings_by_method
from ..store.runs import RunState, StoredRun, find_run
from ..store.workspace import StoredDataset, Workspace
from .recipe_difference import differences_between_runs
from .results import read_result_rows, read_verdicts


@dataclass(frozen=True)
class RunComparison:
    """Two finished runs and their results side by side.

    runs, datasets: the runs and their data
    is_same_data: whether both are on the same records
    rows: compared numbers
    verdicts: compared verdicts
    plan_differences: differences of the second run's plan from the first's
    """

    runs: tuple[StoredRun, StoredRun]
    datasets: tuple[StoredDataset, StoredDataset]
    is_same_data: bool
    rows: tuple[ComparedNumber, ...]
    verdicts: tuple[ComparedVerdict, ...]
    plan_differences: tuple[PlanDifference, ...]
    """What the second run's plan has otherwise than the first's."""

    @property
    def run_numbers(self) -> tuple[int, int]:
        """Return the numbers of the two runs."""
        return self.runs[0].id, self.runs[1].id

    @property
    def run_labels(self) -> tuple[str, str]:
        """Return the two runs as ``run 3`` and ``run 5``."""
        first, second = self.run_numbers
        return f"run {first}", f"run {second}"

    @property
    def headline(self) -> str:
        """Return a sentence that names the two runs and their data."""
        names = [f"run {run.id} ({run.label}, m = {run.recipe.m}, seed {run.seed})" for run in self.runs]
        each = [f"{count_noun(data.records, 'record')} of {data.name}" for data in self.datasets]
        on = (
            f"on the same {each[0]}"
            if self.is_same_data
            else f"on different data, {' and '.join(each)}: differences may be the data's"
        )
        return f"{names[0]} beside {names[1]}, {on}"

    @property
    def shared_rows(self) -> tuple[ComparedNumber, ...]:
        """Return the numbers that both runs have."""
        return tuple(row for row in self.rows if row.first and row.second)

    @property
    def varying_settings(self) -> SettingsByMethod:
        """Return the settings in which uses of a method differ, within a run or between the two."""
        numbers = ((row.key.rpartition(".")[0], row.params) for row in self.rows)
        return varying_settings_by_method(numbers)

    def rows_of_one_run(self, place: int) -> tuple[ComparedNumber, ...]:
        """Return the numbers that only the first run (0) or the second (1) has."""
        return tuple(row for row in self.rows if (row.second, row.first)[place] is None)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` writes."""
        return {
            "runs": [_run_to_dict(run, data) for run, data in zip(self.runs, self.datasets, strict=True)],
            "same_data": self.is_same_data,
            "plans": [difference_object(one) for one in self.plan_differences],
            "rows": [to_labelled_json(row) for row in self.shared_rows],
            "only_first": [to_labelled_json(row) for row in self.rows_of_one_run(0)],
            "only_second": [to_labelled_json(row) for row in self.rows_of_one_run(1)],
            "verdicts": [to_labelled_json(verdict) for verdict in self.verdicts],
        }


def _run_to_dict(run: StoredRun, data: StoredDataset) -> dict[str, Any]:
    """Return the object that ``--json`` writes about one run."""
    return {
        "run": run.id,
        "title": run.title,
        "recipe_sha256": run.recipe_sha256,
        "data_sha256": data.source_sha256,
        "records": data.records,
        "seed": run.seed,
    }


def compare_runs(workspace: Workspace, first: int | str, second: int | str, *, any_data: bool = False) -> RunComparison:
    """Compare the releases of two runs.

    Raises:
        NotFound: when there is no such run.
        NotReady: when one of them is not done.
        DifferentData: when they are on different records, unless ``any_data``.
    """
    runs = find_run(workspace, first), find_run(workspace, second)
    for run in runs:
        if run.state is not RunState.DONE:
            raise NotReady(f"run {run.id} is {run.state}; runs are compared when they are done")
    datasets = workspace.find_dataset(runs[0].dataset_id), workspace.find_dataset(runs[1].dataset_id)
    same = _have_same_records(runs, datasets)
    if not (same or any_data):
        raise DifferentData((_describe_run_data(runs[0], datasets[0]), _describe_run_data(runs[1], datasets[1])))
    rows = compare_rows(read_result_rows(workspace, runs[0].id), read_result_rows(workspace, runs[1].id))
    verdicts = compare_verdicts(read_verdicts(workspace, runs[0].id), read_verdicts(workspace, runs[1].id))
    return RunComparison(runs, datasets, same, rows, verdicts, differences_between_runs(*runs))


def _have_same_records(runs: tuple[StoredRun, StoredRun], datasets: tuple[StoredDataset, StoredDataset]) -> bool:
    """Return whether both runs are on the same table, or on the same records of a file with other variables."""
    if datasets[0].table_sha256 == datasets[1].table_sha256:
        return True
    # a random sample is the same only by the same seed and key
    chosen = [
        (data.source_sha256, data.records, run.recipe.data.where, run.recipe.data.sample, run.recipe.data.holdout,
         run.recipe.data.is_random and (run.seed, run.key_fingerprint))
        for run, data in zip(runs, datasets, strict=True)
    ]  # fmt: skip
    return chosen[0] == chosen[1]


def _describe_run_data(run: StoredRun, data: StoredDataset) -> str:
    """Return the data of a run: ``run 3: 10,000 records of listings.csv (sha256 1a2b3c4d, where "price > 0", ...)``."""
    source = run.recipe.data
    parts = [f"sha256 {data.source_sha256[:8]}"]
    parts += [f'where "{source.where}"'] if source.where else []
    key = "" if run.key_public else " and the workspace's key"
    parts += [f"a sample with seed {run.seed}{key}"] if source.sample else []
    if source.holdout is not None:
        share = isinstance(source.holdout, int | float)
        parts.append(
            f"without {source.holdout:.0%} of them, by seed {run.seed}{key}" if share else "without its control records"
        )
    return f"run {run.id}: {count_noun(data.records, 'record')} of {data.name} ({', '.join(parts)})"

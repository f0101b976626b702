"""Trials of recipes on a sample of a run's confidential records: what a change would do, before anybody runs it.

A trial carries a recipe out on the sample, in a workspace of its own that is gone when it ends, and asks the gate what
it finds there. So its numbers are of the same code as those of a run, and differ from them by the sample alone. Nothing
is entered among the runs, nothing is kept, and nothing may leave. A recipe that pays with an epsilon is not tried: a
look at its result is a use of the data, which a budget would have to cover.

How it could mislead: fewer records are alone more often in a sample than in the whole table, so a share of the sample
is compared with another share of the same sample, never with one of the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict

from ..errors import NotYours, WorkspaceError
from ..gate.contents import plan_release
from ..gate.gate import Examination, examine_release
from ..jobs.queue import TaskResult, claim_task, finish_task, register_worker
from ..jobs.run_task import TaskFailure, read_task_input, run_task
from ..jobs.runs import RunEntry
from ..plain_files import ensure_directory
from ..policy.installed_packages import find_trusted_packages
from ..policy.policy import read_policy_of_workspace
from ..store.artefacts import controls_hash
from ..store.heads import without_outside_heads
from ..store.runs import StoredRun, find_run, read_run_records
from ..store.workspace import Workspace
from ..views.results import read_diagnostics, read_result_rows, read_verdicts
from .prepare import PreparedRun, StoredSource
from .searching import search_objective

MOST_RECORDS = 2_000
"""Records of a trial at most, so that it takes seconds; of a table of as many or fewer it has all."""
MOST_SECONDS = 60.0
SEED = 1
"""Seed of the sample: all trials of a run are on the same records."""
FOLDER = "trials"
"""Folder of the workspace in which trials take place: as protected as the records themselves."""
KEY_LABEL = b"sfumato lever trial"
WORKER = "trial"
UTILITY_FAMILIES = ("utility", "quality")
DEFAULT_UTILITY = "utility.propensity.s_pmse"
ALL_MEASURES = "*"
"""Stands for all measures of a recipe but those that carry it out many times."""
PAYS = "not tried: this recipe pays for each look at the data with its epsilon"
OF_ANOTHER_RUN = "not tried: its weights come from another run, of all records"
OF_ANOTHER_USER = "not tried: the workspace is another user's"
TOO_LONG = "not tried: it takes longer than a minute"
NO_RELEASE = "not tried: the recipe makes no release"
ACCEPT_UNCONVERGED = "accept_unconverged"
"""Setting of the methods whose draws may be used though a sampler has not converged."""


class TrialUnconverged(WorkspaceError):
    """Error that a model of a trial has not converged."""


@dataclass(frozen=True, slots=True)
class TriedFinding:
    """Finding of the gate in a trial.

    check: key of the check
    status: ``pass``, ``warn``, ``block`` or ``not checked``
    people: how many people of the sample it is about; None where it counts none
    value: the number that is compared with the limit; None where there is none
    at_least: whether a larger number is better
    """

    check: str
    status: str
    people: int | None
    value: float | None
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class TriedLimit:
    """Limit of the recipe in a trial: what it is on, the observed number, and whether it is met."""

    value: str
    target: str
    level: float | None
    bound: str
    outcome: str
    observed: float | None


@dataclass(frozen=True, slots=True)
class TriedUtility:
    """Number of utility in a trial; None where it could not be computed.

    limit: the largest value that the recipe allows, or the smallest that it wants; None where it has no such limit
    """

    key: str
    target: str
    value: float | None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class LeverTrial:
    """What a recipe does on the sample.

    reason: why it was not tried; empty where it was
    records, people, noun: records of the sample, and the people or other units that they describe, with their plural
    is_whole: whether the sample is all records of the run
    findings: findings of the gate
    limits: limits of the recipe
    utilities: the numbers of the recipe's limits of utility, then the utility by which a search would choose
    unconverged: variables whose models had not converged on the sample, and were used all the same
    """

    reason: str = ""
    records: int = 0
    people: int = 0
    noun: str = "people"
    is_whole: bool = False
    findings: tuple[TriedFinding, ...] = ()
    limits: tuple[TriedLimit, ...] = ()
    utilities: tuple[TriedUtility, ...] = ()
    unconverged: tuple[str, ...] = ()

    def find_finding(self, check: str) -> TriedFinding | None:
        """Return the finding of a check; None where the trial has none."""
        return next((one for one in self.findings if one.check == check), None)

    def find_limit(self, value: str, target: str, level: float | None, bound: str) -> TriedLimit | None:
        """Return the limit on a number; None where the trial has none."""
        series = (value, target, level, bound)
        return next((one for one in self.limits if (one.value, one.target, one.level, one.bound) == series), None)


CallTrial = Callable[[Path, int, str, tuple[str, ...], Path], LeverTrial]
"""Function that calls ``carry_out_trial``, here or in another process."""


def try_recipe(directory: Path, run_id: int, toml: str, measures: tuple[str, ...], call: CallTrial) -> LeverTrial:
    """Try a recipe on a sample of a run's records, with these measures of it, see ``ALL_MEASURES``.

    What ``call`` raises because the trial is not wanted any more is raised; all else that keeps it from being tried is its
    ``reason``. Nothing is left of a trial, however it ends.
    """
    if reason := untried_reason(toml):
        return LeverTrial(reason)
    try:
        with _trial_place(directory) as place:
            return call(directory, run_id, toml, measures, place)
    except BadInput as error:
        return LeverTrial(f"not tried: {error}")
    except NotYours:
        return LeverTrial(OF_ANOTHER_USER)
    except OSError as error:
        return LeverTrial(f"not tried: {error.strerror or type(error).__name__}")
    except WorkspaceError as error:
        return LeverTrial(TOO_LONG if "took longer" in str(error) else f"not tried: {error}")


def untried_reason(toml: str) -> str:
    """Return why a recipe is not tried, known before any record is read; empty where it may be."""
    try:
        recipe = Recipe.from_table(read_toml(toml))
    except BadInput as error:
        return f"not tried: {error}"
    pays = any(step.method.synthesis.privacy.account is not None for step in recipe.synthesis)
    if pays or recipe.form.public_figures == "paid":
        return PAYS
    if recipe.weights is not None and recipe.weights.run is not None:
        return OF_ANOTHER_RUN
    return "" if recipe.makes_release else NO_RELEASE


@contextlib.contextmanager
def _trial_place(directory: Path) -> Iterator[Path]:
    """Make a directory of the workspace for a trial, and remove it with all that is in it.

    Those of trials whose process died are removed too. Raises NotYours, OSError and StrangeFile.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        workspace.check_own()
    folder = ensure_directory(directory, FOLDER)
    for left in folder.iterdir():
        if not _is_running(left.name.partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):  # another trial is in it
            folder.rmdir()


def _is_running(process: str) -> bool:
    """Return whether there is a process of this number."""
    if not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def carry_out_trial(directory: Path, run_id: int, toml: str, measures: tuple[str, ...], place: Path) -> LeverTrial:
    """Carry a recipe out on the sample of a run's records, in a new workspace in ``place``, and measure what it does.

    Raises BadInput and WorkspaceError, without values of the data.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        run = find_run(workspace, run_id)
        recipe, utility_key = _trial_recipe(toml, measures)
        data, is_whole = _read_sample(workspace, run, recipe)
        dataset = workspace.find_dataset(run.dataset_id)
        key = hmac.digest(workspace.read_workspace_key(), KEY_LABEL, hashlib.sha256)
    check_steps(recipe, data, find_trusted_packages(recipe, directory))
    source = StoredSource(dataset.name, b"", dataset.source_sha256)
    try:
        found, verdicts, utilities, unconverged = _measure_recipe(
            directory, place / "workspace", key, PreparedRun(recipe, source, data), utility_key
        )
    except TrialUnconverged:
        if (rough := _accept_unconverged(recipe)) is None:
            raise
        # Fewer records than those of the run: what converges there may not here, and a rough estimate beats none.
        found, verdicts, utilities, unconverged = _measure_recipe(
            directory, place / "rough", key, PreparedRun(rough, source, data), utility_key
        )
    findings = tuple(
        TriedFinding(one.check, one.status, one.people, one.compared_value, one.at_least) for one in found.findings
    )
    limits = tuple(
        TriedLimit(one.value, one.target, one.level, one.bound, one.outcome, one.observed) for one in verdicts
    )
    people, noun = len(data), recipe.data.rows or "people"
    if found.units is not None:
        people, noun = found.units, data.schema.unit_noun
    return LeverTrial("", len(data), people, noun, is_whole, findings, limits, utilities, unconverged)


def _measure_recipe(
    directory: Path, own: Path, key: bytes, prepared: PreparedRun, utility_key: str
) -> tuple[Examination, Sequence[Verdict], tuple[TriedUtility, ...], tuple[str, ...]]:
    """Carry a recipe out in a new workspace ``own``, and return what the gate finds, the verdicts, the utilities and the
    variables whose models have not converged. Raises TrialUnconverged where such a model is not accepted.
    """
    with without_outside_heads(own), Workspace.create(own, key) as trial:
        number = _run_to_end(trial, prepared)
        found = examine_release(trial, plan_release(trial, number), read_policy_of_workspace(directory))
        verdicts = read_verdicts(trial, number)
        failed = (one.target for one in read_diagnostics(trial, number) if one.passed is False)
        return found, verdicts, _read_utilities(trial, number, utility_key, verdicts), tuple(dict.fromkeys(failed))


def _accept_unconverged(recipe: Recipe) -> Recipe | None:
    """Return a recipe whose models are used though they have not converged; None where no method allows that."""
    steps = [
        {**step.to_table(), ACCEPT_UNCONVERGED: True}
        if any(one.name == ACCEPT_UNCONVERGED for one in step.method.spec.params())
        else step.to_table()
        for step in recipe.synthesis
    ]
    accepted = any(ACCEPT_UNCONVERGED in step for step in steps)
    return Recipe.from_table({**recipe.to_table(), "synthesis": steps}) if accepted else None


def _trial_recipe(toml: str, measures: tuple[str, ...]) -> tuple[Recipe, str]:
    """Return the recipe of a trial, and the key of the utility that it measures.

    It has no studies, companions or search, and only the measures that are wanted, without those that carry the recipe out
    anew. Raises BadInput.
    """
    table = {key: value for key, value in read_toml(toml).items() if key not in ("study", "companions", "search")}
    recipe = Recipe.from_table(table)
    limited = {one.value.rpartition(".")[0] for one in recipe.thresholds}
    utility = _utility_key(recipe)
    wanted = {utility.rpartition(".")[0], *measures, *(one for one in limited if one.startswith(UTILITY_FAMILIES))}
    steps = [step for step in table.get("measure", []) if _is_wanted(step, wanted)]
    measured = {str(step.get("method")) for step in steps}
    if not any(name.startswith(UTILITY_FAMILIES) for name in measured):
        steps.append({"method": DEFAULT_UTILITY.rpartition(".")[0]})
    limits = [one for one in table.get("threshold", []) if str(one.get("value")).rpartition(".")[0] in measured]
    return Recipe.from_table({**table, "measure": steps, "threshold": limits}), utility


def _utility_key(recipe: Recipe) -> str:
    """Return the key of the utility by which a search would choose, or of a measure that the trial adds."""
    try:
        return search_objective(recipe)
    except BadInput:
        return DEFAULT_UTILITY


def _is_wanted(step: Mapping[str, Any], wanted: Collection[str]) -> bool:
    """Return whether a trial has a measure: never one that carries the recipe out many times."""
    name = str(step.get("method"))
    method = method_by_key(name)
    if method is None:
        return name in wanted or ALL_MEASURES in wanted
    answered = {one for output in method.outputs if output.risk.gate_reference for one in output.risk.questions}
    return bool({name, ALL_MEASURES, *answered} & set(wanted)) and not method.measurement.refits


def _read_sample(workspace: Workspace, run: StoredRun, recipe: Recipe) -> tuple[Microdata, bool]:
    """Read the sample of a run's records as a recipe reads them, with hold-out records; and whether it is all of them."""
    whole = read_run_records(workspace, run)
    rows = sampled_rows(whole, MOST_RECORDS)
    data = _as_recipe_reads(whole, rows, recipe)
    if sha256 := controls_hash(workspace, run.id):
        schema = workspace.find_dataset(run.dataset_id).schema
        held = workspace.tables.read_microdata(sha256, schema, "confidential").with_units(whole.schema.unit_declaration)
        most = max(1, round(len(held) * len(rows) / len(whole)))
        data = data.with_controls(_as_recipe_reads(held, sampled_rows(held, most), recipe))
    return data, len(rows) == len(whole)


def sampled_rows(data: Microdata, most: int) -> list[int]:
    """Return the rows of the sample, ascending: at most ``most``, and units as a whole."""
    if len(data) <= most:
        return list(range(len(data)))
    rng = np.random.default_rng(SEED)
    units = data.units
    if units is None:
        return [int(row) for row in np.sort(rng.choice(len(data), most, replace=False))]
    sizes = np.bincount(units.unit_of)
    order = rng.permutation(len(sizes))
    chosen = order[np.cumsum(sizes[order]) <= most]
    return [int(row) for row in np.flatnonzero(np.isin(units.unit_of, chosen))]


def _as_recipe_reads(data: Microdata, rows: list[int], recipe: Recipe) -> Microdata:
    """Return some records as the recipe reads them from a file. Raises BadInput."""
    frame = data.frame.iloc[rows].reset_index(drop=True)
    kinds = None if data.kinds is None else data.kinds.iloc[rows].reset_index(drop=True)
    wanted = recipe.data
    return conform_to_schema(frame, recipe.schema, wanted.missing, tags=kinds, complete_cases=wanted.complete_cases)


def _run_to_end(workspace: Workspace, prepared: RunEntry) -> int:
    """Enter a run, compute all of its tasks in this process, and return its number. Raises WorkspaceError."""
    number = PreparedRun(prepared.recipe, prepared.source, prepared.data).enter(workspace)
    register_worker(workspace, WORKER)
    while (lease := claim_task(workspace, WORKER)) is not None:
        outcome = run_task(workspace.directory, read_task_input(workspace, lease), database=False)
        if isinstance(outcome, TaskFailure) and outcome.is_unconverged:
            raise TrialUnconverged(outcome.message)
        if isinstance(outcome, TaskFailure):
            raise WorkspaceError(outcome.message)
        assert isinstance(outcome, TaskResult)
        finish_task(workspace, lease, outcome)
    return number


def _read_utilities(
    workspace: Workspace, run_id: int, key: str, verdicts: Sequence[Verdict]
) -> tuple[TriedUtility, ...]:
    """Return the numbers of a run's limits of utility, and of the utility of this key over the release."""
    limited = [one for one in verdicts if one.value.partition(".")[0] in UTILITY_FAMILIES]
    rows = (row for row in read_result_rows(workspace, run_id) if row.key == key and row.draw is None)
    return (
        *(
            TriedUtility(one.value, one.target, one.observed, one.limit if one.bound in ("max", "min") else None)
            for one in limited
        ),
        *(TriedUtility(row.key, row.target, row.value) for row in rows if row.dataset != "confidential"),
    )

"""Who is found in a survey that keeps its quasi-identifiers, and what a change of them does: python tests/benchmarks/survey_of_kept_columns.py.

Sex, age, education and marital status of 5,000 people of Adult are kept; occupation, hours and income are drawn by trees. An intruder who also matches on
the drawn values loses most people, since the wrong values lead away from the true row: a limit on that number is met although one who
ignores them finds far more. The script prints both, the gate's finding on the kept columns, and for its first change and for the whole plan how many
people the finding predicts to be left and how many a run with the change leaves, counted in the released file by pandas.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pandas as pd
from judged_releases.entering import KEY
from judged_releases.people import sample_people
from judged_releases.tables import TABLES

from sfumato.engine.adversary.kept_columns import KeptColumnChange, list_column_changes, plan_protection
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.answer import ReleaseAnswer, answer_from_examination
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store.artefacts import read_released_dataset
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows, read_verdicts

KEPT = ("sex", "age", "education", "marital_status")
DRAWN = ("occupation", "hours_per_week", "income")
LIMIT = 0.05
EXACT, BEST = "risk.identification.true_match_rate", "risk.identification.largest_true_match_rate"
SMALLEST = 11
"""Fewest people with the same values in a public release: maximum risk .09."""


@dataclass(frozen=True)
class SurveyRun:
    """What one run of the survey shows.

    rates: share of the people who are certainly found, by output
    outcomes: verdict of the limit on each output
    finding: the gate's finding on kept columns
    answer: the gate's answer
    counted: people in classes of fewer than ``SMALLEST``, counted in the released file
    """

    rates: Mapping[str, float]
    outcomes: Mapping[str, str]
    finding: Finding
    answer: ReleaseAnswer
    counted: int


def survey_recipe(recode: Mapping[str, Any], replaced: Sequence[str]) -> Recipe:
    """Return the recipe with public rules, and with kept columns that are drawn too."""
    roles = TABLES["adult"].roles
    names = [name for name in KEPT if name not in replaced]
    steps = []
    for target in (*replaced, *DRAWN):
        steps.append({"target": target, "predictors": list(names), "method": "cart", "minbucket": 20})
        names.append(target)
    return Recipe.from_table(
        {
            "title": "survey",
            "variables": {name: {"kind": roles[name][0], "role": roles[name][1]} for name in (*KEPT, *DRAWN)},
            "release": {"m": 1, "seed": 1, **({"recode": dict(recode)} if recode else {})},
            "synthesis": steps,
            "measure": [{"method": "utility.propensity"}, {"method": "risk.identification"}],
            "threshold": [{"value": key, "max": LIMIT} for key in (EXACT, BEST)],
        }
    )


def run_survey(
    workspace: Workspace, frame: pd.DataFrame, recode: Mapping[str, Any] | None = None, replaced: Sequence[str] = ()
) -> SurveyRun:
    """Run the survey with these changes and examine its release."""
    recipe = survey_recipe(recode or {}, replaced)
    data = conform_to_schema(frame[[*KEPT, *DRAWN]], recipe.schema)
    run_id = enter_run(workspace, recipe, SourceFile("survey.csv", b"survey"), data)
    run_worker(workspace.directory, idle=0)
    rates = {
        row.key: float(row.value)
        for row in read_result_rows(workspace, run_id)
        if row.key in (EXACT, BEST) and row.dataset == "synthetic" and row.draw is None and row.value is not None
    }
    examination = examine_release(workspace, plan_release(workspace, run_id), Policy())
    released = read_released_dataset(workspace, run_id, recipe, 1)
    assert released is not None
    kept = [name for name in KEPT if name not in replaced]
    counted = 0
    if kept:
        sizes = released.frame.groupby(kept, observed=True)[DRAWN[0]].transform("size")
        counted = int((sizes < SMALLEST).sum())
    return SurveyRun(
        rates,
        {verdict.value: verdict.outcome for verdict in read_verdicts(workspace, run_id)},
        next(one for one in examination.findings if one.check == "kept_keys"),
        answer_from_examination(examination, recipe, Policy(), len(data)),
        counted,
    )


def as_recode(lever: KeptColumnChange) -> dict[str, Any]:
    """Return the rule of a change as [release] recode writes it."""
    assert lever.rule is not None
    if lever.rule.width is not None:
        return {lever.variable: lever.rule.width}
    return {lever.variable: {name: list(levels) for name, levels in lever.rule.groups.items()}}


def survey_levers(
    frame: pd.DataFrame,
) -> tuple[KeptColumnChange, tuple[KeptColumnChange, ...], dict[str, Any], tuple[str, ...]]:
    """Return the first public rule of the finding, the changes of the plan, its rules, and the columns that it replaces."""
    recipe = survey_recipe({}, ())
    data = conform_to_schema(frame[[*KEPT, *DRAWN]], recipe.schema)
    limits = Policy().audience_limits("public").limits
    first = next(lever for lever in list_column_changes(data, KEPT, limits) if lever.rule is not None)
    plan = plan_protection(data, KEPT, limits)
    rules: dict[str, Any] = {}
    for name, rule in plan.rules.items():
        rules |= as_recode(KeptColumnChange(name, rule, 0))
    return first, plan.changes, rules, plan.replaced


def main() -> None:
    """Print the survey before and after the changes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    frame = sample_people(TABLES["adult"], chosen.people, 100, chosen.seed).members
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = directory
        with Workspace.create(Path(directory) / "workspace", KEY) as workspace:
            first, levers, rules, replaced = survey_levers(frame)
            whole = "; then ".join(lever.description for lever in levers)
            for words, predicted, recode, drawn in (
                ("as drafted", None, {}, ()),
                (first.description, first.n_unprotected, as_recode(first), ()),
                (whole, levers[-1].n_unprotected, rules, replaced),
            ):
                run = run_survey(workspace, frame, recode, drawn)
                print(f"\n{words}{f'  (rules {recode}, replaced {drawn})' if recode or drawn else ''}")
                for key in (EXACT, BEST):
                    share = run.rates[key]
                    print(
                        f"  {key:46}{share * chosen.people:8.0f} people  {100 * share:6.2f} %, limit {100 * LIMIT:g} %: {run.outcomes[key]}"
                    )
                told = "" if predicted is None else f"; predicted {predicted:,}"
                print(f"  people in classes of fewer than {SMALLEST}: {run.counted:,} of {chosen.people:,}{told}")
                print(f"  kept_keys: {run.finding.state}, {run.finding.people} people. {run.finding.message}")
                print(f"  {run.answer.title} {run.answer.sentence}")


if __name__ == "__main__":
    main()

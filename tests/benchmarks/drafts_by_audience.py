"""What drafts become for each audience, and whether the gate lets them leave: python tests/benchmarks/drafts_by_audience.py [--tables T,..] [--audiences A,..].

Each row is a table and an audience: a recipe drafted from roles, run with a secret key and examined by the gate. It prints which kept
columns the draft makes coarser and which it synthesises besides the sensitive ones, ``may_leave`` with what blocks, how many findings a person has to judge,
the utility (``s_pmse``: 1 as a release of the true model; ``ecdf``: largest gap of the cumulative shares), and seconds of processor of the draft, the run and the gate.

``fair`` (statsmodels) and ``patients`` (simulated, with dates of birth) are tables that nothing was tuned to.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import statsmodels.datasets
from public_data import PUBLIC_DATA

from sfumato.engine.adversary.kept_columns import KeptColumnLimits, plan_protection
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.methods.audience import AUDIENCES, Audience
from sfumato.workspace.gate.answer import answer_from_examination
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.jobs.settings import MEMORY_VARIABLE, NO_LIMIT
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafting import DraftRequest, Want
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.draft_data import RoleAssignment, draft_file
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_raw_rows

KEY = sha256(b"a key of the benchmark").digest()


@dataclass(frozen=True)
class Table:
    """A table and who is taken to know what of it."""

    read: Callable[[], pd.DataFrame]
    known: str
    sensitive: str

    @property
    def roles(self) -> RoleAssignment:
        return RoleAssignment(tuple(self.known.split()), tuple(self.sensitive.split()))


def sampled(name: str, records: int) -> pd.DataFrame:
    frame = pd.read_csv(PUBLIC_DATA / name)
    return frame.sample(min(records, len(frame)), random_state=1)


def patients() -> pd.DataFrame:
    """Three thousand patients with dates of birth, of whom diagnosis and income follow age and sex."""
    rng = np.random.default_rng(20)
    n = 3_000
    age = np.clip(rng.normal(55, 18, n), 0, 99)
    sex = rng.choice(["f", "m"], n)
    born = np.datetime64("2024-01-01") - (age * 365.25).astype(int)
    illness = np.clip((age / 12 + (sex == "f") + rng.geometric(0.3, n)).astype(int), 0, 14)
    return pd.DataFrame(
        {
            "born": born,
            "sex": sex,
            "municipality": [f"m{i:02}" for i in np.minimum(rng.geometric(0.12, n), 30)],
            "admitted": np.datetime64("2023-01-01") + rng.integers(0, 365, n),
            "height": np.round(rng.normal(np.where(sex == "f", 165, 178), 7)),
            "diagnosis": [f"d{i}" for i in illness],
            "income": np.round(np.exp(rng.normal(10 + 0.005 * age, 0.5)), 2),
        }
    )


TABLES = {
    "adult": Table(
        lambda: sampled("adult.csv", 5_000), "age education marital_status race sex", "occupation hours_per_week income"
    ),
    "acs": Table(lambda: sampled("acs.csv", 5_000), "SEX RACE MAR", "DIS HICOV"),
    "ce": Table(lambda: sampled("ce.csv", 10_000), "UrbanRural Race", "Income Expenditure"),
    "airbnb": Table(
        lambda: sampled("AB_NYC_2019.csv", 5_000).drop(columns="id"),
        "neighbourhood_group room_type number_of_reviews",
        "price availability_365",
    ),
    "fair": Table(
        lambda: statsmodels.datasets.fair.load_pandas().data,
        "age yrs_married children religious educ occupation",
        "rate_marriage affairs",
    ),
    "patients": Table(patients, "born sex municipality", "diagnosis income"),
}


def drafted_and_examined(table: Table, audience: Audience, want: Want | None) -> dict[str, object]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        table.read().to_csv(folder / "table.csv", index=False)
        times = [time.process_time()]
        text = draft_file(str(folder / "table.csv"), {}, DraftRequest(want, audience=audience), table.roles)
        (folder / "recipe.toml").write_text(text.toml, "utf-8")
        times.append(time.process_time())
        with Workspace.create(folder / "workspace", KEY) as workspace:
            prepared = prepare_run(find_recipe(str(folder / "recipe.toml")), key=KEY)
            run_id = prepared.enter(workspace)
            run_worker(workspace.directory, idle=0.1)
            times.append(time.process_time())
            plan = plan_release(workspace, run_id)
            examination = examine_release(workspace, plan, Policy())
            answer = answer_from_examination(examination, prepared.recipe, Policy(), plan.records)
            rows = read_raw_rows(workspace, run_id)
        times.append(time.process_time())
        utility = {
            key: [row.value for row in rows if row.measure == key and row.value is not None]
            for key in ("s_pmse", "max_abs_difference")
        }
        release = prepared.recipe.form
        made = {name for step in prepared.recipe.synthesis for name in step.targets}
        return {
            "recoded": " ".join(sorted(release.recode)) or "-",
            "synthesised": " ".join(sorted(made - set(table.sensitive.split()))) or "-",
            "kept": " ".join(name for name in plan.kept if name not in release.recode) or "-",
            "leave": answer.may_leave,
            "blocks": " ".join(finding.check for finding in examination.unwaived_findings) or "-",
            "judge": sum(finding.state == "to be judged" for finding in examination.findings),
            "s_pmse": f"{np.mean(utility['s_pmse']):.3g}" if utility["s_pmse"] else "-",
            "ecdf": f"{max(utility['max_abs_difference']):.3f}" if utility["max_abs_difference"] else "-",
            "seconds": "+".join(f"{b - a:.0f}" for a, b in pairwise(times)),
            "findings": examination.unwaived_findings,
        }


def plan_seconds(records: int = 30_000) -> float:
    """Seconds of processor of a plan that protects everybody by all columns of Adult."""
    frame = sampled("adult.csv", records)
    kinds = {name: Kind.COUNT if frame[name].dtype.kind in "iu" else Kind.CATEGORICAL for name in frame.columns}
    schema = Schema(tuple(Variable(name, kind, Role.OTHER) for name, kind in kinds.items()))
    data = conform_to_schema(frame.reset_index(drop=True), schema, MissingPolicy.KEEP)
    before = time.process_time()
    plan_protection(data, schema.names, KeptColumnLimits(11))
    return time.process_time() - before


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and below it what blocks in words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--audiences", default=",".join(AUDIENCES))
    parser.add_argument("--want", default=None)
    parser.add_argument("--plan", action="store_true", help="print only the seconds of a plan on 30,000 x 15 of Adult")
    chosen = parser.parse_args(arguments)
    if chosen.plan:
        print(f"plan_protection, 30,000 records of 15 columns: {plan_seconds():.2f} s of processor")
        return
    os.environ[MEMORY_VARIABLE] = NO_LIMIT
    for audience in chosen.audiences.split(","):
        for name in chosen.tables.split(","):
            row = drafted_and_examined(TABLES[name], audience, chosen.want)
            findings = row.pop("findings")
            print(f"{name} {audience}: " + "; ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            for finding in findings:  # type: ignore[attr-defined]
                print(f"    {finding.check}: {finding.message}", flush=True)


if __name__ == "__main__":
    main()

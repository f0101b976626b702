"""Eight releases of four tables, what an honest attacker finds in each, and the gate's verdict: python tests/benchmarks/order_of_harm.py.

    python tests/benchmarks/order_of_harm.py [--tables T,..] [--members N] [--other CHECKOUT]

The releases are a copy; true quasi-identifiers with one true sensitive variable; true quasi-identifiers; trees for every variable with leaves
of 1, 5 and 50; coarsened margins; noise: columns without a relation. Whom the attacker finds counts ``honest_attacker``, which uses nothing of
the engine. ``--other`` names the checkout of another version, whose verdict on the same recipes and people is printed in a column of its own.

The order is consistent where nothing in which the attacker finds more people than in a blocked release passes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from honest_attacker import AttackResult, attack
from judged_releases.entering import KEY
from judged_releases.people import sample_people
from judged_releases.tables import TABLES, C, N, Q, S, Table, X
from leaks import MEASURED

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store.artefacts import read_released_dataset
from sfumato.workspace.store.workspace import Workspace

DATE = "date"
FIRST_DAY, BORN_DAYS = pd.Timestamp("1960-01-01"), 12 * 365
BINS = {
    "adult": {"age": "width 10", "capital_gain": "at 1, 5000", "capital_loss": "at 1, 1500", "hours_per_week": "width 10"},
    "airbnb": {
        "number_of_reviews": "at 1, 5, 20, 100", "minimum_nights": "at 2, 4, 30", "calculated_host_listings_count": "at 2, 5",
        "price": "at 50, 100, 200, 500", "availability_365": "width 60",
    },
    "acs": {},
    "born": {"birth": "width 1461", "height": "width 10", "visits": "width 2", "income": "at 10000, 20000, 40000, 80000"},
}  # fmt: skip
"""Public cuts of numbers, for margins."""
RANK = {"no": 2, "to be judged": 1, "yes": 0}


def born() -> pd.DataFrame:
    """Twelve thousand people of twelve years of birth: dates tell most of 1,500 people apart, and no column nine tenths of them."""
    rng = np.random.default_rng(79)
    n = 12_000
    day = rng.integers(0, BORN_DAYS, n)
    sex = rng.choice(["f", "m"], n)
    age = 60 - day / 365
    return pd.DataFrame(
        {
            "birth": (FIRST_DAY + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d"),
            "height": np.round(rng.normal(np.where(sex == "f", 165, 178), 7)).astype(int),
            "sex": sex,
            "region": [f"r{i}" for i in np.minimum(rng.geometric(0.25, n), 12)],
            "visits": rng.poisson(1 + age / 20),
            "income": np.round(np.exp(rng.normal(9.8 + 0.005 * age, 0.6)), 2),
        }
    )


BORN = Table(
    "born", born,
    {"birth": (DATE, Q), "height": (N, Q), "sex": (C, Q), "region": (C, Q), "visits": (N, S), "income": (X, S)},
    ((1500, 500),), ("birth", "height", "sex", "region"), ("visits", "income"),
)  # fmt: skip
HARM_TABLES = {"adult": TABLES["adult"], "acs": TABLES["acs"], "airbnb": TABLES["airbnb"], "born": BORN}


@dataclass(frozen=True)
class HarmCase:
    """A release of the benchmark: its name, the sections of its recipe, the columns it keeps, and its rows where no recipe makes them."""

    name: str
    sections: Mapping[str, Any]
    kept: tuple[str, ...] = ()
    rows: pd.DataFrame | None = None


@dataclass(frozen=True)
class HarmRow:
    """A line of the table: what the attacker finds in a release, and what the gate says of it."""

    table: str
    release: str
    found: AttackResult
    verdict: str
    blocks: tuple[str, ...]
    people: int | None
    sentence: str

    @property
    def passes(self) -> bool:
        """Return whether nothing blocks the release."""
        return self.verdict != "no"


def trees(table: Table, targets: Sequence[str], leaf: int) -> list[dict[str, Any]]:
    """Return steps that draw the targets one after another by trees, given all variables before them."""
    names = [name for name in table.roles if name not in targets]
    steps = []
    for target in targets:
        smooth = {"smoothing": True} if table.roles[target][0] in (N, X) else {}
        steps.append({"target": target, "predictors": list(names), "method": "cart", "minbucket": leaf, **smooth})
        names.append(target)
    return steps


def harm_cases(table: Table, members: pd.DataFrame, rng: np.random.Generator) -> list[HarmCase]:
    """Return the eight releases, the most harmful first."""
    names, sensitive = list(table.roles), table.sensitive
    scored = {"release": {"m": 1, "seed": 1, "released": names, "order": "shuffled"}}
    made = {"release": {"m": 1, "seed": 1}}
    margins = {"target": names, "method": "margins", "protection": "coarsened", "bins": BINS[table.name]}
    if not BINS[table.name]:
        del margins["bins"]
    keep_one = [name for name in names if name not in sensitive[1:]]
    return [
        HarmCase("copy", scored, rows=members),
        HarmCase(
            "true keys and one sensitive", {**made, "synthesis": trees(table, sensitive[1:], 20)}, tuple(keep_one)
        ),
        HarmCase("true keys", {**made, "synthesis": trees(table, sensitive, 20)}, tuple(table.keys)),
        *(HarmCase(f"trees, leaves of {k}", {**made, "synthesis": trees(table, names, k)}) for k in (1, 5, 50)),
        HarmCase("margins", {**made, "synthesis": [margins]}),
        HarmCase("noise", scored, rows=noise(table, members, rng)),
    ]


def noise(table: Table, members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return levels in an order of their own for each column, and uniform whole numbers and days."""
    n = len(members)
    columns: dict[str, Any] = {}
    for name, (kind, _) in table.roles.items():
        values = members[name]
        if kind == DATE:
            columns[name] = (FIRST_DAY + pd.to_timedelta(rng.integers(0, BORN_DAYS, n), unit="D")).strftime("%Y-%m-%d")
        elif kind in (N, X):
            top = 10.0 ** np.ceil(np.log10(max(float(values.quantile(0.99)), 9.0) + 1))
            columns[name] = rng.integers(0, int(top), n)
        else:
            columns[name] = rng.permutation(values.to_numpy())
    return pd.DataFrame(columns)


def harm_recipe(table: Table, case: HarmCase) -> Recipe:
    """Return the recipe of a release, with measures for each question of a risk assessment."""
    variables = {name: {"kind": kind, "role": role} for name, (kind, role) in table.roles.items()}
    radius = {name: "5%" for name in table.sensitive if table.roles[name][0] == X}
    measures = [
        {"method": "utility.propensity"},
        {"method": "risk.singling_out"},
        {"method": "risk.linkability"},
        {"method": "risk.attribute_inference", **({"radius": radius} if radius else {})},
        {"method": "risk.membership_inference"},
    ]
    return Recipe.from_table(
        {
            "title": f"{table.name}, {case.name}",
            "data": {"file": "people.csv", "holdout": "held_out"},
            "variables": variables,
            "measure": measures,
            **case.sections,
        }
    )


def plain_frame(data: Microdata) -> pd.DataFrame:
    """Return a table as the attacker reads it: numbers and days as floats, all else as text."""
    columns = {}
    for name in data.schema.names:
        kind = data.schema[name].kind
        if kind is Kind.DATE:
            days = pd.to_datetime(data.frame[name]) - pd.Timestamp("1900-01-01")
            columns[name] = days.dt.days.astype(float)
        elif kind.has_levels:
            columns[name] = data.frame[name].astype(str)
        else:
            columns[name] = pd.Series(data.numbers(name)).astype(float)
    return pd.DataFrame({name: column.to_numpy() for name, column in columns.items()})


def judge_table(table: Table, size: tuple[int, int], seed: int, directory: Path, *, attacked: bool) -> list[HarmRow]:
    """Make the eight releases of a table, attack them, and ask the gate of this version of the code."""
    sampled = sample_people(table, *size, seed)
    rng = np.random.default_rng([seed, 8])
    rows = []
    os.environ["XDG_STATE_HOME"] = str(directory / "state")
    with Workspace.create(directory / "workspace", KEY) as workspace:
        for case in harm_cases(table, sampled.members, rng):
            recipe = harm_recipe(table, case)
            data = conform_to_schema(sampled.members, recipe.schema)
            others = conform_to_schema(sampled.controls, recipe.schema)
            given = []
            if case.rows is not None:
                shuffled = case.rows.iloc[rng.permutation(len(case.rows))].reset_index(drop=True)
                made = conform_to_schema(shuffled, recipe.released_schema, origin=recipe.origin)
                given = [(SourceFile("released.csv", case.name.encode()), made)]
            source = SourceFile("people.csv", table.name.encode())
            run_id = enter_run(workspace, recipe, source, data.with_controls(others), external_datasets=given)
            run_worker(workspace.directory, idle=0)
            verdict = gate_verdict(workspace, run_id, recipe)
            found = AttackResult("not attacked", 0, len(data), 0, len(others))
            if attacked:
                released = read_released_dataset(workspace, run_id, recipe, 1)
                assert released is not None
                names = list(table.roles)
                frame = plain_frame(released)[names]
                # People whom no model and no measure has seen make the attacker's chance more exact.
                unseen = pd.concat([plain_frame(others), plain_frame(conform_to_schema(sampled.fresh, recipe.schema))])[
                    names
                ]
                found = attack(frame, plain_frame(data)[names], unseen.reset_index(drop=True), table.keys, case.kept)
            rows.append(HarmRow(table.name, case.name, found, **verdict))
    return rows


def gate_verdict(workspace: Workspace, run_id: int, recipe: Recipe) -> dict[str, Any]:
    """Return the gate's answer and what blocks. A version without an answer has the worst status of its findings."""
    examination = examine_release(workspace, plan_release(workspace, run_id), Policy())
    blocks = tuple(one.check for one in examination.blocking_findings if one.check not in MEASURED)
    try:
        from sfumato.workspace.gate.answer import answer_from_examination
    except ImportError:
        verdict = "no" if blocks else ("yes" if examination.status == "pass" else "to be judged")
        return {"verdict": verdict, "blocks": blocks, "people": None, "sentence": ""}
    records = len(workspace.read_stored_dataset(workspace.find_dataset(plan_release(workspace, run_id).run.dataset_id)))
    answer = answer_from_examination(examination, recipe, Policy(), records)
    # Witnesses of a leak are not counted again.
    blocks = tuple(one.check for one in examination.blocking_findings if not one.leak and one.check not in MEASURED)
    return {"verdict": answer.may_leave, "blocks": blocks, "people": answer.people, "sentence": answer.sentence}


def disorders(rows: Sequence[HarmRow]) -> list[tuple[HarmRow, HarmRow]]:
    """Return the pairs in which a release passes and a blocked one of the same table gives the attacker fewer people."""
    return [
        (passing, blocked)
        for passing in rows
        for blocked in rows
        if passing.table == blocked.table
        and passing.passes
        and not blocked.passes
        and passing.found.least > blocked.found.least
    ]


def print_rows(rows: Sequence[HarmRow], before: Mapping[tuple[str, str], HarmRow]) -> None:
    """Print the table, and the pairs that are in the wrong order."""
    print(
        f"{'table':8}{'release':30}{'found':>7}{'of':>6}{'chance':>8}{'surely':>8}  {'before':14}{'now':14}blocks now"
    )
    for row in rows:
        found = row.found
        old = before[row.table, row.release].verdict if (row.table, row.release) in before else "-"
        print(
            f"{row.table:8}{row.release:30}{found.members:>7,}{found.all_members:>6,}{found.by_chance:>8,.0f}{found.least:>8,}"
            f"  {old:14}{row.verdict:14}{', '.join(row.blocks)}"
        )
        blocked = f"; before: {', '.join(before[row.table, row.release].blocks) or 'nothing'} blocks" if before else ""
        print(f"{'':10}by {found.strategy}{blocked}")
    for what, some in (("before", [merged(row, before) for row in rows] if before else []), ("now", rows)):
        wrong = disorders(some)
        print(f"{what}: {len(wrong)} of the pairs of releases in the wrong order")
        for passing, blocked in wrong:
            print(
                f"  {passing.table}: {passing.release} passes ({passing.found.least:,} people), {blocked.release} is blocked ({blocked.found.least:,})"
            )


def merged(row: HarmRow, before: Mapping[tuple[str, str], HarmRow]) -> HarmRow:
    """Return the line with the other version's verdict."""
    old = before[row.table, row.release]
    return replace(row, verdict=old.verdict, blocks=old.blocks)


def row_from_json(line: Mapping[str, Any]) -> HarmRow:
    """Return the line that another process wrote."""
    return HarmRow(**{**line, "found": AttackResult(**line["found"]), "blocks": tuple(line["blocks"])})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(HARM_TABLES), help="names, comma-separated")
    parser.add_argument("--members", type=int, default=1500, help="people of each table; a third as many are held out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--other", default="", help="the checkout of another version")
    parser.add_argument("--verdicts-only", action="store_true", help="print the verdicts as JSON, and attack nothing")
    chosen = parser.parse_args()
    rows: list[HarmRow] = []
    for name in chosen.tables.split(","):
        size = (chosen.members, chosen.members // 3)
        with tempfile.TemporaryDirectory() as directory:
            rows += judge_table(
                HARM_TABLES[name], size, chosen.seed, Path(directory), attacked=not chosen.verdicts_only
            )
    if chosen.verdicts_only:
        print(json.dumps([asdict(row) for row in rows]))
        return
    before: dict[tuple[str, str], HarmRow] = {}
    if chosen.other:
        settings = [f"--tables={chosen.tables}", f"--members={chosen.members}", f"--seed={chosen.seed}"]
        command = [sys.executable, __file__, *settings, "--verdicts-only"]
        environment = {**os.environ, "PYTHONPATH": str(Path(chosen.other) / ".ci" / "names")}
        output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        lines = [row_from_json(line) for line in json.loads(output.splitlines()[-1])]
        before = {(line.table, line.release): line for line in lines}
    print_rows(rows, before)


if __name__ == "__main__":
    main()

"""Attacks by unit and by record on a generated census of which some households are copied whole: python tests/benchmarks/copied_households.py.

    python tests/benchmarks/copied_households.py            copied households: scores by unit and by record
    python tests/benchmarks/copied_households.py --best     the same beside the best test that knows the population
    python tests/benchmarks/copied_households.py --true     the true table released: AUC by record and by unit, with both hold-outs
    python tests/benchmarks/copied_households.py --honest   honest releases of people in households: what blocks

A release is a fresh draw from the same population, in which a share of the households of the data takes the place of others. The score by unit
is that of all households of several people by the composition of their records, the score by record that of all people, both with income
in classes. Where the records of the release have no number, they stand one household after the other, or in any order.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import sys

sys.path.insert(0, str(Path(__file__).parents[1] / "prepared"))

import numpy as np
import pandas as pd
from households import (
    SCHEMA,
    as_microdata,
    code_columns,
    copy_households,
    draw_households,
    hold_out,
    without_households,
)
from prepared_workspaces import run_recipe

from sfumato.engine.adversary.cells import cell_keys, count_occurrences
from sfumato.engine.adversary.membership_evidence import ProbeMatrix, weigh_evidence
from sfumato.engine.adversary.people import find_people_in_release, mark_cells, sum_cells
from sfumato.engine.adversary.unit_probes import RARELY_TOGETHER, list_unit_column_sets, probe_units
from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Role, Schema
from sfumato.engine.data.units import Units
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.membership_inference import MembershipInferenceSpec, gather_blocks, membership_inference
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store.workspace import Workspace

INCOME_CLASS = 500
"""With exact income every person is alone, whatever is copied."""
SHARES = (0.0, 0.005, 0.01, 0.02, 0.05)
NAMES = [name for name in SCHEMA.non_identifiers if name != "income"]
LEVELS = [name for name in NAMES if name != "age"]
SEVERAL = "the people of 2 records or more"


LEVEL = 0.009
"""The gate's level."""
FORMS = ("numbered", "in file order", "shuffled")
"""How the records of a household stand in the release: with its number, without one and one after the other, or anywhere."""


def scores_of_copies(households: int, share: float, seed: int, form: str) -> tuple[float, ...]:
    """Return the scores by unit and by record, and p of all looks of either kind."""
    rng = np.random.default_rng([seed, 7])
    data, controls = hold_out(draw_households(rng, 2 * households), rng)
    released = copy_households(draw_households(rng, households), data, share, rng)
    if form == "shuffled":
        released = released.sample(frac=1, random_state=seed)
    joint, released = (
        one.assign(income=one["income"] // INCOME_CLASS) for one in (pd.concat([data, controls]), released)
    )
    names, members = SCHEMA.non_identifiers, len(data)
    own, shown = (mark_cells(cell_keys(as_microdata(one), names), names) for one in (joint, released))
    units, of_release = (Units.from_codes(pd.factorize(one["household"])[0]) for one in (joint, released))
    rows = sum_cells(own, names)
    # strata must not depend on who is a member: the order of the file would
    order = np.argsort(count_occurrences(rows, rows) + rows / 2.0**64)
    sets = list_unit_column_sets(names, ("age", "income"), ("region", "sex", "age"), ("region", "tenure"))
    numbered = of_release if form == "numbered" else None
    by_unit = probe_units(
        own, units, [(shown, numbered)], sets, rows, order, code_columns(joint, names), [form == "in file order"]
    )
    by_record = list(find_people_in_release(own, [shown], sets, order, unit_of=units.unit_of).probes)
    found = list[float]()
    for looks in (by_unit, by_record):
        matrix = ProbeMatrix(looks, members, len(joint), units.unit_of)
        # fixed before anything is known: by all columns, everybody, or all households of several people; of these those
        # that are seldom there by chance, where nothing says which records are together
        who = "all " if looks is by_record else RARELY_TOGETHER if form == "shuffled" else SEVERAL
        how = "stand in the release one record after the other" if form == "in file order" else ""
        of_everybody = [
            float(score)
            for look, score in zip(matrix.looks, matrix.observed, strict=True)
            if (look.who.startswith(who) if looks is by_record else look.who == who)
            and f" all {len(names)} columns " in look.what
            and (looks is by_record or how in look.what)
            and "or more" not in look.what
        ]
        found.append(of_everybody[0] if of_everybody else 0.0)
    return *found, *(weigh_evidence(one, members, len(joint), LEVEL, units.unit_of).p for one in (by_unit, by_record))


def print_copies(households: int, seeds: int) -> None:
    """Print mean scores for each share of copied households."""
    print(
        f"{households:,} households of the data and as many held out; means of {seeds} seeds; found at the gate's level of {LEVEL}"
    )
    print(
        f"{'copied':>8} {'released':>14} {'z by unit':>10} {'z by record':>12} {'found by unit':>14} {'by record':>10}"
    )
    for form in FORMS:
        for share in SHARES:
            found = np.array([scores_of_copies(households, share, s, form) for s in range(seeds)])
            z, of_records = found[:, :2].mean(axis=0)
            times = (found[:, 2:] <= LEVEL).sum(axis=0)
            print(f"{share:8.1%} {form:>14} {z:10.2f} {of_records:12.2f} {times[0]:14} {times[1]:10}", flush=True)


def chances_in_population(joint: pd.DataFrame, draws: int) -> Floats:
    """Return the chance that a fresh release has all records of each household, by the shares of rows in many releases."""
    names, expected = SCHEMA.non_identifiers, np.zeros(len(joint))
    rows = sum_cells(mark_cells(cell_keys(as_microdata(joint), names), names), names)
    rng, households = np.random.default_rng(999), joint["household"].nunique() // 2
    for _ in range(draws):
        fresh = draw_households(rng, households)
        fresh = fresh.assign(income=fresh["income"] // INCOME_CLASS)
        expected += count_occurrences(rows, sum_cells(mark_cells(cell_keys(as_microdata(fresh), names), names), names))
    log_chance = np.log(-np.expm1(-(expected + 0.02) / draws))
    return np.asarray(np.exp(Units.from_codes(pd.factorize(joint["household"])[0]).sum_by_unit(log_chance)))


def print_best(households: int, releases: int = 300, draws: int = 999) -> None:
    """Print how often the most powerful test of the labels finds copied households, if it knows each one's chance."""
    frame = draw_households(np.random.default_rng([100, 7]), 2 * households)
    joint = frame.assign(income=frame["income"] // INCOME_CLASS)
    chance, several = chances_in_population(joint, 100), joint.groupby("household").size().to_numpy() > 1
    print(f"{households:,} households of the data, shuffled, without numbers; the chance of each is known")
    for share in SHARES:
        # Neyman & Pearson: the log likelihood ratio of a copied household to another one
        weight = np.where(several, np.log1p(max(share, 0.001) * (1 / np.maximum(chance, 1e-12) - 1)), 0.0)
        rng, found = np.random.default_rng(5), 0
        for _ in range(releases):
            is_member = rng.permutation(len(chance)) < households
            is_found = rng.random(len(chance)) < chance
            is_found[rng.choice(np.flatnonzero(is_member), round(share * households), replace=False)] = True
            seen = np.flatnonzero(is_found & several)
            observed, permuted = weight[seen] @ is_member[seen], (rng.random((draws, len(seen))) < 0.5) @ weight[seen]
            found += (1 + np.sum(permuted >= observed - 1e-9)) / (draws + 1) <= LEVEL
        print(f"{share:8.1%} found in {found / releases:.0%} of {releases} releases", flush=True)


def areas(data: Microdata, controls: Microdata, released: Microdata, known: list[str]) -> dict[str, float | None]:
    """Return the AUCs of membership inference by record and by unit."""
    spec = MembershipInferenceSpec(known=tuple(known), people=("random",)).for_release(data.schema, ())
    table = data.with_controls(controls)
    parts = [
        membership_inference(table, [released], lambda _: (), spec, block, Run(np.random.default_rng(1)))
        for block in range(spec.blocks)
    ]
    found = gather_blocks(table, [released], spec, parts).whole.estimates
    return {
        f"{one.measure}{' by unit' if one.params.get('of') else ''}": one.value
        for one in found
        if one.measure in ("auc", "family_auc")
    }


def print_true_table(households: int) -> None:
    """Print AUCs where the true table is released, held out by record and by household."""
    rng = np.random.default_rng(3)
    frame = draw_households(rng, 2 * households)
    order = rng.permutation(len(frame))
    by_record = frame.iloc[order[: len(frame) // 2]], frame.iloc[order[len(frame) // 2 :]]
    rows = Schema(
        tuple(replace(v, role=Role.IDENTIFIER) if v.role is Role.UNIT else replace(v, level="") for v in SCHEMA)
    )
    for known in (LEVELS, NAMES, list(SCHEMA.non_identifiers)):
        print(f"known: {', '.join(known)}")
        for how, (data, controls), schema in (
            ("held out by record", by_record, rows),
            ("held out by household", hold_out(frame, rng), SCHEMA),
        ):
            released = as_microdata(data, schema)
            found = areas(as_microdata(data, schema), as_microdata(controls, schema), released, known)
            print(
                f"  {how:22} " + ", ".join(f"{name} {value:.3f}" for name, value in found.items() if value is not None)
            )


def equal_people(rng: np.random.Generator, first: int, units: int) -> pd.DataFrame:
    """Return households of three who are equal in all columns but age (REVIEW A8)."""
    frame = draw_households(rng, 3 * units).drop_duplicates("household").iloc[np.repeat(np.arange(units), 3)]
    number = np.repeat(np.arange(first, first + units), 3)
    return frame.assign(household=number, age=rng.integers(0, 90, 3 * units)).reset_index(drop=True)


def blocking_checks(
    workspace: Workspace, data: pd.DataFrame, controls: pd.DataFrame, released: Microdata, role: str
) -> set[str]:
    """Return the checks that block a release, with membership inference measured."""
    variables = {
        v.name: {
            "kind": str(v.kind),
            "role": role if v.role is Role.UNIT else str(v.role),
            **({"level": v.level} if v.level and role == "unit" else {}),
        }
        for v in SCHEMA
    }
    recipe = Recipe.from_table(
        {
            "variables": variables,
            "data": {"holdout": "held_out"},
            "release": {"released": list(SCHEMA.non_identifiers)},
            "measure": [
                {"method": "risk.membership_inference", "false_positives": 0.05},
                {"method": "risk.attribute_inference"},
                {"method": "risk.linkability"},
                {"method": "risk.singling_out"},
            ],
        }
    )
    table = as_microdata(data, recipe.schema).with_controls(as_microdata(controls, recipe.schema))
    made = replace(released, schema=recipe.schema, origin="synthetic", linked=recipe.linked)
    run = run_recipe(
        workspace, recipe, table, "p.csv", b"p", external_datasets=[(SourceFile("made.csv", b"made"), made)]
    )
    return {one.check for one in examine_release(workspace, plan_release(workspace, run), Policy()).blocking_findings}


def print_honest(seeds: int) -> None:
    """Print how many honest releases are blocked, with the unit declared and, as a control, not declared."""

    def three(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        return equal_people(rng, 0, 150), equal_people(rng, 150, 75), equal_people(rng, 300, 150)

    def census(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        return *hold_out(draw_households(rng, 1500), rng), draw_households(rng, 750)

    for role in ("unit", "identifier"):
        for title, draw in (("450 people in households of three", three), ("census of 750 households", census)):
            blocks = Counter[str]()
            blocked = 0
            for seed in range(seeds):
                data, controls, others = draw(np.random.default_rng([seed, 11]))
                with tempfile.TemporaryDirectory() as folder, Workspace.create(Path(folder) / "w", PUBLIC) as workspace:
                    found = blocking_checks(workspace, data, controls, without_households(others), role)
                blocked += bool(found)
                blocks.update(found)
            print(f"{title}, {role}: {blocked} of {seeds} honest releases blocked {dict(blocks)}", flush=True)


def main() -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--best", action="store_true", help="the best test that knows the population")
    parser.add_argument("--true", action="store_true", help="the true table released")
    parser.add_argument("--honest", action="store_true", help="honest releases of people in households")
    parser.add_argument("--households", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=8)
    given = parser.parse_args()
    if given.best:
        print_best(given.households)
    elif given.true:
        print_true_table(given.households)
    elif given.honest:
        print_honest(given.seeds)
    else:
        print_copies(given.households, given.seeds)


if __name__ == "__main__":
    main()

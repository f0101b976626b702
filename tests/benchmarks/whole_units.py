"""Synthesis of whole units of a census and a panel whose truth is known, beside another sample and rows drawn one at a time:
python tests/benchmarks/whole_units.py.

    python tests/benchmarks/whole_units.py            what comes back, and whether households are copied
    python tests/benchmarks/whole_units.py --speed    seconds of processor and memory of 1,000,000 records
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "prepared"))

import census
import numpy as np
import pandas as pd
import panel

from sfumato.engine.adversary.cells import unit_keys
from sfumato.engine.constraints.redraw_counts import RedrawCounts
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.units import Units
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe

LEAF, SMALL = 100, 20
"""Records of a leaf: enough to copy no household of 20,000; for few households and for people whose records have few values."""
SEEDS = (1, 11, 21, 31)
"""Of the censuses whose households are looked for; controls have the seed after."""
HOUSEHOLDS, FEW, PEOPLE = 20_000, 1000, 8000
KNOWN = ["region", "tenure", "relation", "sex", "age"]


def make(table: dict[str, Any], frame: pd.DataFrame) -> tuple[Microdata, Microdata, tuple[RedrawCounts, ...]]:
    """Return the confidential records, a release of them, and how many were drawn again."""
    recipe = Recipe.from_table(table)
    data = conform_to_schema(frame, recipe.schema)
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    counts: list[tuple[RedrawCounts, ...]] = []
    released = draw_dataset(recipe, 1, data, fits, key=PUBLIC, note=counts.append)
    return data, released, counts[0]


def without(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a recipe of trees without some of their settings."""
    steps = [{key: item for key, item in step.items() if key not in keys} for step in table["synthesis"]]
    return {**table, "synthesis": steps}


def by_rows(table: dict[str, Any], unit: str) -> dict[str, Any]:
    """Return a recipe that draws each record by itself, from the variables of the record alone."""
    names = {name for name, own in table["variables"].items() if own.get("role") != "unit"}
    steps, made = [], set[str]()
    for step in table["synthesis"]:
        if step["target"] not in names:
            continue
        predictors = sorted(made)
        plain = {key: item for key, item in step.items() if key not in ("strata", "unit_effect")}
        steps.append({**plain, "predictors": predictors, "minbucket": SMALL})
        made.add(step["target"])
    release = {key: item for key, item in table["release"].items() if key not in ("units", "until")}
    variables = {name: {k: v for k, v in own.items() if k != "level"} for name, own in table["variables"].items()}
    return {**table, "variables": variables, "release": release, "synthesis": steps, "constraints": {}}


def s_pmse_of_units(data: Microdata, released: Microdata, names: Sequence[str]) -> float:
    """Return the propensity score's mean squared error of units as a multiple of what is expected."""
    method = registry()["utility.propensity"]
    spec = method.spec.from_table({"of": "units"}, "step").for_release(data.schema, tuple(names))
    measure = method.measure(data, released, spec, Run(np.random.default_rng(0)))
    return next(float(one.value) for one in measure.estimates if one.measure == "s_pmse" and one.value is not None)


def keys_of_households(table: pd.DataFrame) -> set[int]:
    """Return the keys of households of three or more people by the composition of their members."""
    units = Units.from_codes(table["household"].to_numpy())
    rows = table[KNOWN].astype(str).agg("|".join, axis=1)
    keys = unit_keys(pd.util.hash_pandas_object(rows, index=False).to_numpy(), units)
    return set(keys[units.sizes > 2].tolist())


def copied(released: pd.DataFrame, data: pd.DataFrame, controls: pd.DataFrame) -> tuple[float, float, float]:
    """Return the shares of the data's households and of controls that a release has, and z of their difference."""
    found = keys_of_households(released)
    members, others = keys_of_households(data), keys_of_households(controls)
    own, by_chance = (len(known & found) / len(known) for known in (members, others))
    both = (own * len(members) + by_chance * len(others)) / (len(members) + len(others))
    error = np.sqrt(both * (1 - both) * (1 / len(members) + 1 / len(others)))
    return own, by_chance, float((own - by_chance) / error) if error else 0.0


def copied_at(leaf: int, seed: int) -> tuple[float, float, float]:
    """Return what ``copied`` finds in a release by trees with leaves of ``leaf``."""
    table, controls = (census.draw_census(HOUSEHOLDS, one) for one in (seed, seed + 1))
    made = make({**census.census_recipe(leaf), "constraints": census.RULES}, table)[1]
    return copied(made.frame, table, controls)


def households_drawn_again(counts: Sequence[RedrawCounts]) -> int:
    """Return the number of households that broke a rule and were drawn again."""
    return {one.constraint: one for one in counts if one.step == "units"}[""].records


def row(what: str, limit: str, *found: object) -> None:
    """Print a line of the table."""
    print(f"{what:66} {limit:>10} " + " ".join(f"{one:>10}" for one in found), flush=True)


def print_census() -> None:
    """Print what comes back of a census of 20,000 households."""
    table, fresh = (census.draw_census(HOUSEHOLDS, seed) for seed in (1, 2))
    recipe = {**census.census_recipe(LEAF), "constraints": census.RULES}
    data, released, counts = make(recipe, table)
    free = make(census.census_recipe(LEAF), table)[1].frame
    plain = make(without(recipe, "strata", "unit_effect"), table)[1].frame
    alone = {**recipe, "synthesis": [dict(step) for step in recipe["synthesis"]]}
    alone["synthesis"][-1]["predictors"] = ["age", "region", "tenure", "relation"]
    effect = make(alone, table)[1].frame
    neither = make(without(alone, "unit_effect"), table)[1].frame
    rows = make(by_rows(recipe, "household"), table)[1].frame
    rows = rows.assign(household=table["household"].to_numpy())
    frame = released.frame
    types = census.household_types(table)
    row(f"census, {HOUSEHOLDS:,} households, leaves of {LEAF}", "limit", "release", "fresh", "rows")
    row(
        "total variation of types",
        "<= .020",
        *(f"{census.total_variation(census.household_types(one), types):.3f}" for one in (frame, fresh, rows)),
    )
    row("impossible households", "0", *(census.impossible_households(one) for one in (frame, fresh, rows)))
    row(
        "  before redraws; households drawn again",
        "",
        census.impossible_households(free),
        households_drawn_again(counts),
    )
    true = census.couples_difference(table)
    row(
        f"standard deviation of couples' age difference ({true:.2f})",
        "5 %",
        *(f"{census.couples_difference(one):.2f}" for one in (frame, fresh, rows)),
    )
    row("  without strata", "", f"{census.couples_difference(plain):.2f}")
    row(
        "intraclass correlation of log income",
        ">= .40",
        *(f"{census.intraclass_correlation(one):.3f}" for one in (frame, fresh, rows)),
    )
    row(
        "  by unit_effect alone; by neither that nor earlier incomes",
        "",
        f"{census.intraclass_correlation(effect):.3f}",
        f"{census.intraclass_correlation(neither):.3f}",
    )
    row("  by earlier incomes alone", "", f"{census.intraclass_correlation(plain):.3f}")
    names = Recipe.from_table(recipe).released
    as_data = [conform_to_schema(one, data.schema) for one in (fresh, rows)]
    row("S-pMSE of units", "<= 3", *(f"{s_pmse_of_units(data, one, names):.2f}" for one in (released, *as_data)))
    for leaf in (5, SMALL, LEAF):
        members, others, z = np.mean([copied_at(leaf, seed) for seed in SEEDS], axis=0)
        row(
            f"copied households of three or more, leaves of {leaf}: data, controls, z",
            "z < 2" if leaf == LEAF else "",
            f"{members:.2%}",
            f"{others:.2%}",
            f"{z * np.sqrt(len(SEEDS)):.1f}",
        )
    small = census.draw_census(FEW, 4)
    for leaf in (SMALL, LEAF):
        free = make(census.census_recipe(leaf), small)[1].frame
        _, few, counts = make({**census.census_recipe(leaf), "constraints": census.RULES}, small)
        row(
            f"{FEW:,} households, leaves of {leaf}: impossible after, before, drawn again",
            "0",
            census.impossible_households(few.frame),
            census.impossible_households(free),
            households_drawn_again(counts),
        )


def print_panel() -> None:
    """Print what comes back of a panel of 8,000 people."""
    table, fresh = panel.draw_panel(PEOPLE, 1), panel.draw_panel(PEOPLE, 2)
    recipe = panel.panel_recipe(SMALL, until="dropped")
    drawn = make(recipe, table)[1].frame
    rows = make(by_rows(recipe, "person"), table)[1].frame.assign(person=table["person"].to_numpy())
    own = (drawn, fresh, rows)
    moves, paths = panel.transitions(table), panel.trajectories(table)
    row(f"panel, {PEOPLE:,} people, {panel.WAVES} waves", "limit", "release", "fresh", "rows")
    row(
        "largest difference of a transition",
        "< .03",
        *(f"{(panel.transitions(one) - moves).abs().max():.3f}" for one in own),
    )
    row(
        "total variation of trajectories",
        "<= .10",
        *(f"{census.total_variation(panel.trajectories(one), paths):.3f}" for one in own),
    )
    row(
        "largest difference of who stayed, by wave",
        "< .01",
        *(f"{abs(panel.stayed(one) - panel.stayed(table)).max():.4f}" for one in own),
    )
    row(
        "largest difference of who drops out, by state",
        "< .01",
        *(f"{(panel.leavers(one) - panel.leavers(table)).abs().max():.4f}" for one in own),
    )
    row("records after the last wave", "0", *(int((one["wave"] > panel.WAVES).sum()) for one in own))
    differ = [one.drop_duplicates(["person", "sex", "education"])["person"].duplicated().sum() for one in own]
    row("people whose unit variables differ", "0", *differ)


RECORDS, MANY = 1_000_000, 400_000
LEVELS = (2, 5, 8, 3, 10, 4, 6, 2, 20)


def print_speed() -> None:
    """Print the seconds of processor and the memory of a fit and a draw of 1,000,000 records of 12 variables."""
    rng = np.random.default_rng(1)
    sizes = 1 + rng.multinomial(RECORDS - MANY, np.full(MANY, 1 / MANY))
    unit = np.repeat(np.arange(MANY), sizes)
    columns: dict[str, Any] = {"unit": unit, "line": np.arange(RECORDS) - np.repeat(np.cumsum(sizes) - sizes, sizes)}
    variables: dict[str, Any] = {"unit": {"kind": "count", "role": "unit"}, "line": {"kind": "count"}}
    steps: list[dict[str, Any]] = []
    for place, levels in enumerate(LEVELS):
        of_unit = place < 2
        codes = rng.integers(levels, size=MANY)[unit] if of_unit else rng.integers(levels, size=RECORDS)
        columns[f"v{place}"] = pd.Categorical.from_codes(codes, [str(level) for level in range(levels)])
        variables[f"v{place}"] = {"kind": "categorical", **({"level": "unit"} if of_unit else {})}
        before = ["v0"] if place == 1 else ["place", f"previous(v{place})", "v0", f"v{place - 1}"] if place > 1 else []
        steps.append({"target": f"v{place}", "method": "cart", "predictors": before, "minbucket": 100})
    columns["age"] = np.clip(rng.normal(45, 20, RECORDS), 0, 99).round()
    columns["income"] = np.exp(rng.normal(size=MANY)[unit] + rng.normal(size=RECORDS)) + columns["age"]
    variables |= {"age": {"kind": "count"}, "income": {"kind": "continuous"}}
    steps.insert(2, {"target": "line", "method": "cart", "predictors": ["place"], "minbucket": 1})
    steps.append(
        {"target": "age", "method": "cart", "predictors": ["first(age)", "v2"], "minbucket": 100, "strata": "v3"}
    )
    income = ["age", "first(income)", "mean(income)"]
    steps.append({"target": "income", "method": "cart", "predictors": income, "minbucket": 100, "unit_effect": True})
    recipe = Recipe.from_table(
        {
            "variables": variables,
            "data": {"order": "line"},
            "release": {"m": 1, "seed": 1, "units": "drawn"},
            "synthesis": steps,
        }
    )
    data = conform_to_schema(pd.DataFrame(columns), recipe.schema)
    start = time.process_time()
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    fitted = time.process_time()
    draw_dataset(recipe, 1, data, fits, key=PUBLIC)
    done = time.process_time()
    row(f"{RECORDS:,} records in {MANY:,} units, {len(variables)} variables", "limit", "measured")
    row("seconds of processor: fit and draw", "90", f"{done - start:.0f}")
    row("  fit; draw", "", f"{fitted - start:.0f}", f"{done - fitted:.0f}")
    import resource

    row("most memory, GB", "2", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f}")


def main() -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--speed", action="store_true", help="1,000,000 records")
    if parser.parse_args().speed:
        print_speed()
    else:
        print_census()
        print_panel()


if __name__ == "__main__":
    main()

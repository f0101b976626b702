"""Times of tree synthesis, and its utility and risk beside the published ones. Run as a script; prints tables.

    python tests/benchmarks/cart.py

10,000 listings of AB_NYC_2019.csv of the public data (SFUMATO_DATA, else ../shared/data), m = 20: days, then price.
Published: Guo & Hu tables 7 to 9.
"""

from __future__ import annotations

import statistics
import time

import pandas as pd
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import draw_dataset, execute_run, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

KNOWN = ["room_type", "neighbourhood_group", "number_of_reviews"]
RADII = ((5, "5%"), (10, "5%"), (10, "10%"))
PUBLISHED = {
    "max_abs_difference availability_365": 0.0083,
    "max_abs_difference price": 0.0078,
    "mean_squared_difference availability_365": 2.18e-5,
    "mean_squared_difference price": 1.76e-5,
    "pmse": 1.34e-5,
    "expected_match_risk": 111.54,
    "true_match_rate": 0.007,
    "false_match_rate": 0.951,
    "unique_matches": 1367,
    "risk (5, 5%)": 239,
    "risk (10, 5%)": 264,
    "risk (10, 10%)": 434,
}


def recipe(m: int = 20, **options: object) -> Recipe:
    steps = {"availability_365": KNOWN, "price": [*KNOWN, "availability_365"]}
    radii = [{"availability_365": days, "price": price} for days, price in RADII]
    return Recipe.from_table(
        {
            "title": "Listings by trees",
            "variables": {
                "room_type": {"kind": "categorical", "role": "quasi_identifier"},
                "neighbourhood_group": {"kind": "categorical", "role": "quasi_identifier"},
                "number_of_reviews": {"kind": "count", "role": "quasi_identifier"},
                "availability_365": {"kind": "count", "role": "sensitive", "bounds": [0, 365]},
                "price": {"kind": "continuous", "role": "sensitive"},
            },
            "release": {"m": m, "seed": 2020},
            "synthesis": [
                {"target": target, "method": "cart", "predictors": predictors, **options}
                for target, predictors in steps.items()
            ],
            "measure": [
                {"method": "utility.ecdf"},
                {"method": "utility.propensity"},
                {"method": "risk.identification", "known": KNOWN, "radius": radii[0]},
                *({"method": "risk.attribute", "radius": radius} for radius in radii),
            ],
        }
    )


def listings(plan: Recipe, n: int = 10_000, seed: int = 1) -> Microdata:
    frame = pd.read_csv(PUBLIC_DATA / "AB_NYC_2019.csv").query("price > 0")
    return conform_to_schema(frame.sample(n, replace=n > len(frame), random_state=seed), plan.schema)


def averages(plan: Recipe, data: Microdata) -> dict[str, float | None]:
    found, risks = {}, iter(RADII)
    for row in execute_run(plan, data, key=PUBLIC).rows:
        if row.draw is None and row.dataset == "synthetic":
            name = f"{row.measure} {row.target}".strip()
            found["risk ({}, {})".format(*next(risks)) if name == "risk" else name] = row.value
    return found


def seconds(plan: Recipe, data: Microdata) -> tuple[float, float]:
    start = time.perf_counter()
    fits = [fit_model(plan, k, data, key=PUBLIC) for k in range(2)]
    fitted = time.perf_counter()
    for draw in range(1, plan.m + 1):
        draw_dataset(plan, draw, data, fits, key=PUBLIC)
    return fitted - start, time.perf_counter() - fitted


def main() -> None:
    plans = {
        "default": recipe(),
        "proper": recipe(proper=True),
        "minbucket 7": recipe(minbucket=7),
        "minbucket 20": recipe(minbucket=20),
    }
    data = listings(plans["default"])
    seconds(plans["default"], data)  # scikit-learn is imported
    print(f"{'m = 20':<14} {'n':>9} {'fit s':>8} {'draw s':>8}")
    for name, plan in plans.items():
        for n in (10_000, 100_000):
            times = [seconds(plan, listings(plan, n)) for _ in range(3)]
            fit, draw = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{name:<14} {n:>9,} {fit:>8.2f} {draw:>8.2f}")
    print(f"\n{'10,000 listings, m = 20':<42} {'published':>10}" + "".join(f"{name:>14}" for name in plans))
    found = {name: averages(plan, data) for name, plan in plans.items()}
    for measure, published in PUBLISHED.items():
        print(f"{measure:<42} {published:>10.4g}" + "".join(f"{found[name][measure]:>14.4g}" for name in plans))


if __name__ == "__main__":
    main()

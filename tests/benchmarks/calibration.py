"""The calibration of Lighthouse §4 on Adult, beside what the paper prints, and anonymisations per minute.

    python tests/benchmarks/calibration.py                                       the shipped recipe adult-calibration
    python tests/benchmarks/calibration.py study[0].generator=synthesis.ctgan    any of its settings changed
    python tests/benchmarks/calibration.py RESULTS.json                          the table of a run's --json, at once

Needs adult.csv in ../shared/data or where SFUMATO_DATA says. Two processes; ten minutes with trees. What differs from the paper:
strict Mondrian in place of Lighthouse's unpublished algorithm; each race of 30 records or more against all others, by
Welch's t-test or a G-test, of which the paper gives no details; its values of k, sizes and shares of suppression are not
printed either; 2,880 anonymisations, not 400,000; and trees on bootstrap samples in place of GANs, unless asked for.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from public_data import PUBLIC_DATA
from threadpoolctl import threadpool_limits

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import compute_study_point
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.studies.calibration import SCORES, summarise_calibration
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run

DATA = PUBLIC_DATA / "adult.csv"
PAPER_AUC = {"nmi_v1": 0.69, "nmi_v2": 0.66}
PAPER_ERRORS = {
    True: {"lost": 0.0278, "spurious": 0.0154, "sign_flip": 0.0, "errors": 0.0432},
    False: {"lost": 0.1529, "spurious": 0.0985, "sign_flip": 0.0057, "errors": 0.2571},
}


@cache
def prepared(settings: tuple[str, ...]) -> tuple[Recipe, Microdata]:
    """The shipped recipe with these settings, and Adult as it reads it."""
    found = prepare_run(find_recipe("adult-calibration"), str(DATA), None, settings, key=PUBLIC)
    return found.recipe, found.data


def simulate(settings: tuple[str, ...], points: Sequence[float]) -> list[Row]:
    """The rows of the originals of one generator, which is trained once."""
    recipe, data = prepared(settings)
    with threadpool_limits(1):
        return [row for point in points for row in compute_study_point(recipe, 0, point, data, [], key=PUBLIC)]


def main() -> None:
    """Simulate, combine and print; or print what a run found."""
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        table(json.loads(Path(sys.argv[1]).read_text())["rows"])
        return
    settings, started = tuple(sys.argv[1:]), time.perf_counter()
    spec: Any = prepared(settings)[0].studies[0].spec
    grid = spec.grid()
    batches = [grid[i : i + spec.originals] for i in range(0, len(grid), spec.originals)]
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(simulate, [settings] * len(batches), batches))
    rows = [row for each in found for row in each]
    seconds = time.perf_counter() - started
    anonymisations = len({(row.level, row.params["subset"], row.params["k"]) for row in rows})
    print(f"{spec.generator}: {spec.generators} generators, {len(grid)} originals, {anonymisations:,} anonymisations")
    print(f"{seconds:.0f} s in two processes: {60 * anonymisations / seconds:.0f} anonymisations a minute")
    table([row.to_dict() for row in summarise_calibration(rows)])


def whose(params: dict[str, Any]) -> str | None:
    """Whose areas they are; a number is the study's setting of that name."""
    generators = params.get("generators")
    return generators if isinstance(generators, str) else None


def table(rows: Sequence[dict[str, Any]]) -> None:
    """Areas by measure, then errors by verdict."""
    rows = [row for row in rows if row["method"] == "calibration" and row["level"] is None]
    value = {(row["measure"], row["params"].get("score"), whose(row["params"])): row["value"] for row in rows}
    columns = ("AUC", "paper", "worst", "best", "AP", "worst", "best", "good", "threshold")
    print(f"{'measure':17}" + "".join(f"{name:>10}" for name in columns))
    for score in SCORES:
        auc, precision = (
            [value.get((area, score, which)) for which in ("all", "worst", "best")]
            for area in ("auc", "average_precision")
        )
        rest = [value.get((name, score, None)) for name in ("good", "suggested_threshold")]
        cells = [auc[0], PAPER_AUC.get(score), *auc[1:], *precision, *rest]
        print(f"{score:17}" + "".join(f"{'-' if cell is None else format(cell, '.2f'):>10}" for cell in cells))
    for row in rows:
        if "passed" in row["params"]:
            passed, published = row["params"]["passed"], PAPER_ERRORS[row["params"]["passed"]][row["measure"]]
            ours = "-" if row["value"] is None else f"{row['value']:.2%}"
            print(
                f"passed {passed!s:5} {row['measure']:10} {ours:>8}  paper {published:.2%}  of {row['params']['tests']:,}"
            )


if __name__ == "__main__":
    main()

"""What the strongest intruder learns of a record that is alone in a 2^4 table, over many simulated releases.

    python tests/benchmarks/contingency_table.py [--releases 200] [--seed 1] [--csv FILE]

Reiter, Wang & Zhang §3: 999 records in 15 of 16 cells, one in the last; m = 5 fully synthetic datasets by four models; the posterior of the
truth under a uniform prior. Table 1 of the paper is one such release: where its figure lies among ours is told as the share of releases that are lower.

Beside the closed form of the Dirichlet-multinomial stands the sampler of the paper's eq. 9 with its 1,000 draws of theta. It fails where
few draws come near what the release says, in both directions.
"""

from __future__ import annotations

import argparse
import csv
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.methods.release_models import IntruderGuesses
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.recipe import Recipe

CELLS = np.array(list(product((0, 1), repeat=4)))
NAMES = ("y1", "y2", "y3", "y4")
N, M, PAPER_DRAWS = 1000, 5, 1000
TARGET = N - 1
MODELS = {
    "DM, a = .0001": ({"method": "dirichlet_multinomial", "concentration": 0.0001}, 1.0),
    "DM, a = 1": ({"method": "dirichlet_multinomial", "concentration": 1.0}, 0.077),
    "N3WI": ({"method": "sequential_logistic", "order": 2}, 0.064),
    "N2WI": ({"method": "sequential_logistic", "order": 1}, 0.070),
}
"""The step of each model, and the posterior of the truth in the paper's Table 1."""


def recipe(step: dict[str, object]) -> Recipe:
    return Recipe.from_table(
        {
            "title": "2^4",
            "variables": {name: {"kind": "binary", "levels": ["0", "1"]} for name in NAMES},
            "release": {"m": M},
            "synthesis": [{**step, "target": list(NAMES)}],
        }
    )


def observed(rng: np.random.Generator) -> NDArray[np.int64]:
    """The cells (1000,) of the paper's data; the last record is alone in (0, 0, 0, 0), cell 0."""
    return np.append(rng.integers(1, 16, N - 1), 0)


def by_sampler(
    cells: NDArray[np.int64], releases: list[NDArray[np.int64]], a: float, rng: np.random.Generator
) -> float:
    """The posterior of the truth by eq. 9: the mean likelihood over draws of theta from its posterior given each guess."""
    counts = np.bincount(cells[:-1], minlength=16)
    logs = np.zeros(16)
    for guess in range(16):
        theta = rng.dirichlet(counts + a + (np.arange(16) == guess), PAPER_DRAWS)
        for z in releases:
            logs[guess] += logsumexp(xlogy(z, theta).sum(axis=1)) - np.log(PAPER_DRAWS)
    if not np.isfinite(logs).any():
        return float("nan")
    return float(np.exp(logs[0] - logsumexp(logs)))


def posterior(
    of: Recipe, data: Microdata, rng: np.random.Generator
) -> tuple[NDArray[np.float64], list[NDArray[np.int64]]]:
    """The posterior (16,) of the target's cells, and the counts (16,) of each dataset, of one simulated release."""
    (step,) = of.synthesis
    run = Run(rng)
    fit = step.method.fit(data, step.targets, step.spec, run, M)
    releases = []
    for draw in range(M):
        values = step.method.draw_targets(fit, step.spec, step.targets, data, data, draw, rng)
        frame = pd.DataFrame(
            {n: pd.Categorical.from_codes(np.asarray(values[n]).astype(int), ["0", "1"]) for n in NAMES}
        )
        releases.append(Microdata(data.schema, frame, "synthetic"))
    assert step.method.synthesis.release_model.make_model is not None
    model = step.method.synthesis.release_model.make_model(data, step.targets, step.spec, releases, run)
    guesses = IntruderGuesses(np.array([TARGET]), {n: CELLS[None, :, j].astype(float) for j, n in enumerate(NAMES)})
    logs = model.plausibility_of(guesses).likelihood[0].sum(axis=1)
    counts = [
        np.bincount(np.ravel_multi_index([r.numbers(n).astype(int) for n in NAMES], (2,) * 4), minlength=16)
        for r in releases
    ]
    return np.exp(logs - logsumexp(logs)), counts


def study(releases: int, seed: int) -> dict[str, list[dict[str, float]]]:
    """For each model and release: the posterior of the truth, its rank, the records in its cell, and the sampler's answer."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in MODELS}
    for number in range(releases):
        rng = np.random.default_rng([seed, number])
        cells = observed(rng)
        for name, (step, _) in MODELS.items():
            of = recipe(step)
            data = conform_to_schema(pd.DataFrame(CELLS[cells].astype(str), columns=list(NAMES)), of.schema)
            chance, counts = posterior(of, data, rng)
            row = {
                "posterior": float(chance[0]),
                "top": float(chance[0] >= chance.max() - 1e-12),
                "in_cell": float(sum(z[0] for z in counts)),
            }
            if name.startswith("DM"):
                row["sampler"] = by_sampler(cells, counts, float(step["concentration"]), rng)  # type: ignore[arg-type]
            found[name].append(row)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    started = time.perf_counter()
    found = study(given.releases, given.seed)
    print(
        f"{given.releases} releases, m = {M}, uniform prior over 16 cells (1/16 = .0625); {time.perf_counter() - started:.0f} s\n"
    )
    print(
        f"{'model':<15}{'5 %':>7}{'25 %':>7}{'50 %':>7}{'75 %':>7}{'95 %':>7}{'mean':>7}{'top':>6}{'paper':>8}{'lower':>7}"
    )
    for name, rows in found.items():
        values = np.array([row["posterior"] for row in rows])
        quantiles = "".join(f"{q:7.3f}" for q in np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)))
        top, paper = np.mean([row["top"] for row in rows]), MODELS[name][1]
        lower = np.mean(values < paper)
        print(f"{name:<15}{quantiles}{values.mean():7.3f}{top:6.2f}{paper:8.3f}{lower:7.2f}")
    print("\nthe sampler of eq. 9 with 1,000 draws beside the closed form")
    print(
        f"{'model':<15}{'mean |difference|':>19}{'largest':>9}{'empty cell':>12}{'closed there':>14}{'sampler there':>15}"
    )
    for name, rows in found.items():
        if "sampler" not in rows[0]:
            continue
        difference = np.array([abs(row["sampler"] - row["posterior"]) for row in rows])
        empty = [row for row in rows if not row["in_cell"]]
        closed, sampler = (
            np.mean([row[k] for row in empty]) if empty else float("nan") for k in ("posterior", "sampler")
        )
        print(
            f"{name:<15}{np.nanmean(difference):19.3f}{np.nanmax(difference):9.3f}{len(empty):12d}{closed:14.2g}{sampler:15.2g}"
        )
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["model", "release", "posterior", "top", "in_cell", "sampler"])
            for name, rows in found.items():
                writer.writerows(
                    [name, i, *[row.get(k, "") for k in ("posterior", "top", "in_cell", "sampler")]]
                    for i, row in enumerate(rows)
                )


if __name__ == "__main__":
    main()

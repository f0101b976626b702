"""Match weights beside those that splink learns from the same pairs: frozen ones, and again in an environment of its own.

python3 -m venv splink && splink/bin/pip install splink==5.0.0 numpy pandas
SFUMATO_SPLINK=splink/bin/python pytest -m study tests/engine/matching/test_splink.py

SFUMATO_SPLINK=splink/bin/python python tests/engine/matching/test_splink.py wrote splink_weights.json, in units of 2^-20.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from linkage_tables import NEAR, flipped, people, prepared

from sfumato.engine.matching import match_weights
from sfumato.engine.matching.blocks import ComparisonBlocks, order_by_values, take_evenly
from sfumato.engine.matching.comparisons import VariableComparison
from sfumato.engine.matching.match_weights import START_PROBABILITIES, WEIGHT_STEP, PatternCounts, learn_weights

FROZEN = Path(__file__).with_name("splink_weights.json")
ADULT = ["age", "workclass", "education", "marital_status", "occupation", "race", "sex", "hours_per_week"]
Case = tuple[tuple[VariableComparison, ...], ComparisonBlocks, PatternCounts]


def case(rows: pd.DataFrame, released: pd.DataFrame, radius: dict[str, Any], trained_on: int = 2_000_000) -> Case:
    comparisons, blocks = prepared(rows, released, radius)
    pairs = int(blocks.released_counts[blocks.confidential_blocks].sum())
    among = take_evenly(order_by_values(blocks, comparisons), max(len(rows) * trained_on // pairs, 1))
    return comparisons, blocks, PatternCounts.from_records(comparisons, blocks, among)


def cases() -> dict[str, Case]:
    """Small and medium tables with noise, flips, missing values, ties, copies, many variables, and few records to learn from."""
    found: dict[str, Case] = {}
    for seed, (n, blocks) in enumerate([(30, 3), (200, 2), (400, 20), (900, 1)]):
        rng = np.random.default_rng(seed)
        rows = people(rng, n, blocks)
        noise = rows.assign(
            age=np.maximum(rows.age + rng.integers(-2, 3, n), 0), pay=rows.pay * rng.lognormal(0, 0.04, n)
        )
        found[f"{n} in {blocks} blocks, noise"] = case(rows, noise, NEAR)
        for share in (0.2, 0.6):
            found[f"{n} in {blocks} blocks, {share} flipped"] = case(rows, flipped(rng, rows, share), NEAR)
    rng = np.random.default_rng(100)
    rows = people(rng, 300, 5)
    found["copy"] = case(rows, rows.copy(), NEAR)
    found["drawn independently"] = case(rows, people(rng, 300, 5).assign(zip=rows.zip), NEAR)
    holes, other = rows.copy(), flipped(rng, rows, 0.2)
    for name in NEAR:
        holes[name] = holes[name].where(rng.random(300) > 0.1)
        other[name] = other[name].where(rng.random(300) > 0.1)
    found["missing values"] = case(holes, other, NEAR)
    ties = rows.assign(age=rows.age // 30, pay=np.round(rows.pay, -3))
    found["ties"] = case(ties, flipped(rng, ties, 0.3), {"age": 0, "pay": 1000})
    two = rows[["zip", "job", "pet"]]
    found["two variables"] = case(two, flipped(rng, two, 0.4), {})
    many = rows.assign(**{f"v{k}": rng.choice([*"uvw"], 300) for k in range(12)})
    found["sixteen variables"] = case(many, flipped(rng, many, 0.5), NEAR)
    found["a sample of the records"] = case(
        rows.drop(columns="zip"), flipped(rng, rows, 0.3).drop(columns="zip"), NEAR, 9_000
    )
    return found


def adult(n: int, share: float) -> Case:
    table = Path(os.environ.get("SFUMATO_DATA", "../shared/data")) / "adult.csv"
    if not table.exists():
        pytest.skip("SFUMATO_DATA does not say where adult.csv is")
    rows = pd.read_csv(table).sample(n, random_state=n)[ADULT].reset_index(drop=True)
    return case(rows, flipped(np.random.default_rng(n), rows, share), {"age": 2, "hours_per_week": 2})


def units(weights: Sequence[Any]) -> list[list[int]]:
    return [[round(float(one) / WEIGHT_STEP) for one in own] for own in weights]


def write_case(path: Path, made: Case) -> None:
    """What splink needs of a case: codes, ranks and blocks of records, and where learning starts and ends."""
    comparisons, blocks, counts = made
    arrays: dict[str, Any] = {}
    theirs = np.flatnonzero(np.isin(blocks.released_blocks, blocks.confidential_blocks[counts.confidential_rows]))
    for side, records, block in (
        ("ours", counts.confidential_rows, blocks.confidential_blocks),
        ("theirs", theirs, blocks.released_blocks),
    ):
        arrays[f"{side}/block"] = block[records]
        for k, one in enumerate(comparisons):
            own, nothing = side == "ours", np.zeros(len(records), dtype=np.int64)
            arrays[f"{side}/code{k}"] = (one.confidential_codes if own else one.released_codes)[records]
            arrays[f"{side}/place{k}"] = nothing if own else one.released_rank[records]
            for w, (first, last) in enumerate(one.windows):
                arrays[f"{side}/first{k}_{w}"] = first[records] if own else nothing
                arrays[f"{side}/last{k}_{w}"] = last[records] if own else nothing
    start = [list(START_PROBABILITIES[one.level_count]) for one in comparisons]
    u = [one.tolist() for one in counts.probabilities_of_others([np.array(one) for one in start], least=0.5)]
    np.savez(
        path,
        start=json.dumps(start),
        u=json.dumps(u),
        converged=match_weights.CONVERGED,
        iterations=match_weights.ITERATIONS,
        **arrays,
    )


def by_splink(python: str, made: Case) -> tuple[list[list[int]], float]:
    """Weights by splink, and the seconds that it took to learn them."""
    comparisons, _, counts = made
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.npz"
        write_case(path, made)
        command = [python, str(Path(__file__).with_name("by_splink.py")), str(path)]
        found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout.splitlines()[-1])
    u = counts.probabilities_of_others(
        [np.array(START_PROBABILITIES[one.level_count]) for one in comparisons], least=0.5
    )
    weights = []
    for own, others in zip(answer["m"], u, strict=True):
        plain = np.log2(np.maximum(own, 0.5 / len(counts.confidential_rows)) / others)
        weights.append(np.maximum.accumulate(plain[::-1])[::-1])
    return units(weights), answer["seconds"]


def furthest(ours: list[list[int]], theirs: list[list[int]]) -> int:
    return max(abs(a - b) for one, two in zip(ours, theirs, strict=True) for a, b in zip(one, two, strict=True))


@pytest.mark.slow
def test_weights_equal_those_that_splink_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit that weights have. With another rule for stopping they differ."""
    frozen, made = json.loads(FROZEN.read_text("utf-8")), cases()
    assert {name: units(learn_weights(*one)) for name, one in made.items()} == frozen
    monkeypatch.setattr(match_weights, "CONVERGED", 1e-6)
    monkeypatch.setattr(match_weights, "ITERATIONS", 500)
    assert (
        furthest(units(learn_weights(*made["900 in 1 blocks, 0.6 flipped"])), frozen["900 in 1 blocks, 0.6 flipped"])
        > 1000
    )


@pytest.mark.study
def test_splink_learns_the_same_weights_again() -> None:
    python = os.environ.get("SFUMATO_SPLINK")
    if not python:
        pytest.skip("SFUMATO_SPLINK does not say where splink is")
    everything = cases() | {f"adult {n}, {share} flipped": adult(n, share) for n in (500, 5000) for share in (0.2, 0.6)}
    apart = {name: furthest(units(learn_weights(*one)), by_splink(python, one)[0]) for name, one in everything.items()}
    print(f"largest difference of {len(apart)} tables: {max(apart.values())} units of 2^-20")
    assert max(apart.values()) <= 1


if __name__ == "__main__":
    asked = os.environ.get("SFUMATO_SPLINK", sys.executable)
    answers = {name: by_splink(asked, one)[0] for name, one in cases().items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in answers.items())
    FROZEN.write_text(f"{{\n{lines}\n}}\n", "utf-8")

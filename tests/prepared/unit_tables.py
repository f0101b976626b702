"""Tables of units of several records: people in households, and people over waves; and what matches of units amount to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd


def make_households(units: int = 400, seed: int = 1) -> pd.DataFrame:
    """Return people in households that share region, rooms, heating and rent."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(units), rng.integers(1, 6, units))
    region, rooms, heating = (rng.integers(0, levels, units)[number] for levels in (8, 6, 4))
    people = len(number)
    return pd.DataFrame(
        {
            "household": number * 7 + 1_000,
            "region": region,
            "rooms": rooms,
            "heating": heating,
            "rent": (rng.lognormal(6, 0.4, units).round())[number],
            "line": np.concatenate([np.arange(1, size + 1) for size in np.bincount(number)]),
            "sex": rng.integers(0, 2, people),
            "age": rng.integers(0, 90, people),
        }
    )


def stack_waves(people: int, missing: float, seed: int, waves: int = 3) -> pd.DataFrame:
    """Return a panel in which one wave follows the other, people in the same turn, of whom a share misses each wave."""
    rng = np.random.default_rng([seed, 9])
    frame = make_panel(people, waves, seed).sort_values(["year", "id"], kind="stable")
    return frame[rng.random(len(frame)) >= missing].reset_index(drop=True)


def make_panel(people: int = 300, waves: int = 4, seed: int = 2) -> pd.DataFrame:
    """Return people over waves, whose sex, school, town and trade stay the same, with visits that change."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(people), waves)
    stays = {
        name: rng.integers(0, levels, people)[number]
        for name, levels in (("sex", 2), ("school", 5), ("town", 30), ("trade", 12))
    }
    return pd.DataFrame(
        {"id": number, "year": np.tile(np.arange(waves) + 2001, people), **stays, "visits": rng.poisson(3, len(number))}
    )


def summarise_matches(matches: Sequence[tuple[int, bool]]) -> dict[str, float | None]:
    """Return the risks of units of which each has a number of candidates and is among them or not, by their definitions."""
    single = [hit for count, hit in matches if count == 1]
    return {
        "expected_match_risk": sum(1 / count for count, hit in matches if hit),
        "true_match_rate": sum(single) / len(matches),
        "false_match_rate": 1 - sum(single) / len(single) if single else None,
        "unique_matches": len(single),
    }

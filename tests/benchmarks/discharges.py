"""Discharges from hospital, made up: data of the shape of Park & Ghosh's (Table 2), whose own are not public any more.

    python tests/benchmarks/discharges.py 1000000                        how long samples and the measures of §4.3 and §4.4 take
    python tests/benchmarks/discharges.py 1000000 discharges.parquet     writes a sample, and says what is in it

Thirteen variables with the numbers of
categories that Table 2 prints, whose product is 1.0e12 (the paper says 2e12 beside it, and 2.6e12 elsewhere). The three numbers
have the grouped values of the paper, lower ends of its groups, or with ``exact`` those before grouping, which ``BINS``
group. Variables hang together as they would: race by ZIP code, diagnosis by age and sex, severity by diagnosis, length of stay by
severity, charge by all of these. The population is one, whatever the seed of a sample.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import Run

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

POPULATION = 2011
AGES = np.arange(0, 85, 5)
STAYS = np.array([*range(10), 10, 30, 50, 70, 90])
CHARGES = np.array([0, 2, 4, 6, 8, 10, 12, *range(15, 105, 5)]) * 1000
NUMBERS = {"age": AGES, "los": STAYS, "charge": CHARGES}
BINS = {name: f"at {', '.join(map(str, ends[1:]))}" for name, ends in NUMBERS.items()}
"""The rules that group the exact numbers as the paper did."""

LEVELS: dict[str, tuple[str, ...]] = {
    "typ": ("acute", "skilled nursing", "psychiatric", "chemical dependency", "rehabilitation", "other"),
    "sex": ("male", "female", "not stated"),
    "ethncty": ("hispanic", "not hispanic", "unknown", "not stated"),
    "race": ("white", "black", "native american", "asian", "pacific", "other", "unknown"),
    "patzip": tuple(f"{z}xx" for z in (900, 902, 903, 904, 905, 906, 907, 908, 910, 911, 912, 913, 914, 915, 917, 935)),
    "disp": ("routine", *(f"care {i}" for i in range(1, 12)), "died"),
    "pay": ("medicare", "medi-cal", "private", *(f"payer {i}" for i in range(1, 7))),
    "mdc": tuple(f"{i:02}" for i in range(1, 26)),
    "sev": ("0", "1", "2"),
    "cat": ("medical", "surgical"),
}
ORDER = ("typ", "age", "sex", "ethncty", "race", "patzip", "los", "disp", "pay", "charge", "mdc", "sev", "cat")
CATEGORIES = dict(zip(ORDER, (6, 18, 3, 4, 7, 16, 16, 13, 9, 25, 25, 3, 2), strict=True))
"""Table 2's numbers of categories; a missing age and a missing stay are categories of theirs."""
KNOWN = ("age", "sex", "patzip")


def variable(name: str) -> Variable:
    """The variable as a recipe describes it."""
    role = "quasi_identifier" if name in KNOWN else "sensitive"
    if name in NUMBERS:
        return Variable.from_table(name, {"kind": "count", "role": role}, name)
    kind = Kind.BINARY if len(LEVELS[name]) == 2 else Kind.ORDINAL if name == "sev" else Kind.CATEGORICAL
    return Variable.from_table(name, {"kind": kind.value, "role": role, "levels": list(LEVELS[name])}, name)


SCHEMA = Schema(tuple(variable(name) for name in ORDER))
VARIABLES: dict[str, Any] = {found.name: found.to_table() for found in SCHEMA}
"""The recipe's table; the recipe says ``missing = "keep"`` under ``[data]``."""


def discharges(n: int, seed: int = 1, *, exact: bool = False) -> Microdata:
    """A sample of n records of the population, under ``SCHEMA``, with the paper's groups or with exact numbers."""
    made, rng = np.random.default_rng(POPULATION), np.random.default_rng(seed)
    found: dict[str, Codes] = {}

    def draw(name: str, strength: float, *given: str) -> None:
        """The level of each record by that of other variables: log shares vary by ``strength`` between them."""
        count = len(LEVELS[name]) if name in LEVELS else CATEGORIES[name]
        widths = [len(LEVELS[other]) if other in LEVELS else CATEGORIES[other] for other in given]
        usual = -np.log1p(np.arange(count)) * 0.8
        table = usual + strength * made.normal(size=(int(np.prod(widths)), count))
        key = np.zeros(n, dtype=np.int64)
        for other, width in zip(given, widths, strict=True):
            key = key * width + found[other]
        found[name] = chosen(table, key, rng)

    draw("patzip", 0.3)
    draw("race", 1.0, "patzip")
    draw("ethncty", 1.0, "race")
    draw("typ", 0.2)
    found["age"] = age_groups(found["typ"], made, rng)
    draw("sex", 0.2, "typ")
    draw("mdc", 0.9, "age", "sex")
    draw("cat", 1.0, "mdc")
    draw("sev", 0.8, "mdc")
    draw("disp", 0.8, "typ", "sev")
    draw("pay", 0.9, "age")
    years = AGES[np.minimum(found["age"], len(AGES) - 1)] + rng.integers(0, 5, n).astype(np.float64)
    years[found["age"] == len(AGES) - 1] += rng.geometric(0.15, int(np.sum(found["age"] == len(AGES) - 1))) - 1
    days = np.floor(np.exp(0.6 + 0.5 * found["sev"] + 0.5 * (found["typ"] > 0) + 0.9 * rng.standard_normal(n)))
    worth = 9.0 + 0.3 * np.log1p(days) + 0.2 * found["sev"] + 0.4 * found["cat"] + 0.004 * years
    charge = np.round(np.exp(worth + 0.6 * rng.standard_normal(n)))
    years[found["age"] == len(AGES)] = np.nan
    days[rng.random(n) < 0.005] = np.nan
    numbers = {"age": years, "los": days, "charge": charge}
    columns = {
        name: number(numbers[name], None if exact else NUMBERS[name]) if name in numbers else level(name, found[name])
        for name in ORDER
    }
    return Microdata(SCHEMA, pd.DataFrame(columns))


def chosen(table: Floats, key: Codes, rng: np.random.Generator) -> Codes:
    """A level of each record (n,), where row ``key`` (n,) of the table (keys, levels) has their log odds."""
    odds = np.exp(table - table.max(axis=1, keepdims=True))
    ends = np.cumsum(odds, axis=1) / odds.sum(axis=1, keepdims=True)
    ends[:, -1] = 1.0
    place = (ends + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(place, key + rng.random(len(key)), side="right") - key * table.shape[1]
    return np.minimum(found, table.shape[1] - 1)


def age_groups(typ: Codes, made: np.random.Generator, rng: np.random.Generator) -> Codes:
    """Groups 0 to 16 of five years and 17 for those not stated, the old more often where care is long."""
    groups = np.arange(len(AGES))
    old = made.uniform(0.0, 0.12, len(LEVELS["typ"]))
    table = old[:, None] * groups + 0.6 * np.cos(groups / 3.0)
    return chosen(np.column_stack([table, np.full(len(table), -2.5)]), typ, rng)


def level(name: str, codes: Codes) -> pd.Series:
    """A column of levels."""
    kind = SCHEMA[name].kind
    return pd.Series(pd.Categorical.from_codes(codes, list(LEVELS[name]), ordered=kind is Kind.ORDINAL))


def number(values: Floats, ends: NDArray[np.int64] | None) -> pd.Series:
    """A column of counts, by the lower ends of groups where there are some; floats where some are missing."""
    if ends is not None:
        grouped = ends[np.maximum(np.searchsorted(ends, values, side="right") - 1, 0)].astype(np.float64)
        values = np.where(np.isnan(values), np.nan, grouped)
    return pd.Series(values if np.isnan(values).any() else values.astype(np.int64))


MEASURES: dict[str, dict[str, Any]] = {
    "utility.distribution_distance": {
        "variables": list(ORDER),
        "given": ["age", "patzip"],
        "bins": dict(BINS),
    },
    "utility.regression_distance": {
        "models": ["charge ~ age + sev + cat + los", "logit: charge > 25000 ~ age + sev + cat + los"]
    },
    "risk.inference_attack": {"sensitive": "mdc", "known": ["age", "sex", "patzip"]},
    "risk.uniqueness": {"keys": ["age", "sex", "patzip"]},
}
"""The paper's measures: conditional on age and ZIP code, both regressions, the attack on the diagnosis, and uniqueness."""


def measure(confidential: Microdata, released: Microdata) -> None:
    """Print what each of the paper's measures takes, and the first of its numbers."""
    for key, table in MEASURES.items():
        method, start = registry()[key], time.perf_counter()
        spec = method.spec.from_table(table, key).for_release(SCHEMA, ORDER)
        found = method.measure(confidential, released, spec, Run(np.random.default_rng(1))).estimates[0]
        print(f"{key:32} {time.perf_counter() - start:6.1f} s  {found.measure} {found.value:.3g}")


def main() -> None:
    """Time the measures, or write a file."""
    n, start = int(sys.argv[1]), time.perf_counter()
    data = discharges(n)
    print(f"{n:,} records in {time.perf_counter() - start:.1f} s")
    if len(sys.argv) < 3:
        measure(data, discharges(n, seed=2))
        return
    frame = data.frame.astype(dict.fromkeys(LEVELS, "str"))
    frame.to_parquet(sys.argv[2]) if sys.argv[2].endswith(".parquet") else frame.to_csv(sys.argv[2], index=False)
    counts = {name: data.frame[name].nunique(dropna=False) for name in ORDER}
    cells = np.prod([float(count) for count in counts.values()])
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(f"{cells:.2e} cells, {len(data.frame.drop_duplicates()):,} of them taken")


if __name__ == "__main__":
    main()

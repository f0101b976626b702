"""What ``utility.constraint_violations`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
from oracles import EPOCH, Answers, Case, series
from relations import Expected, at_least, equals, free, not_higher, same, times

from evidence import Evidence

RULES: dict[str, Callable[[dict[str, Any]], bool | None]] = {
    "days <= 30": lambda r: None if r["days"] is None else r["days"] <= 30,
    "days <= visits + 20": lambda r: (
        None if r["days"] is None or r["visits"] is None else r["days"] <= r["visits"] + 20
    ),
    "illness = 'yes' -> days >= 1": lambda r: (
        True
        if r["illness"] == "no" or (r["days"] is not None and r["days"] >= 1)
        else None
        if r["illness"] is None or r["days"] is None
        else False
    ),
    "2 * visits - days != 1 | 2": lambda r: (
        None if r["days"] is None or r["visits"] is None else 2 * r["visits"] - r["days"] not in (1, 2)
    ),
    "income is missing or size > 'small'": lambda r: (
        r["income"] is None or (None if r["size"] is None else r["size"] != "small")
    ),
    "joined >= '2020-01-02'": lambda r: (
        None if r["joined"] is None else r["joined"] >= (pd.Timestamp("2020-01-02") - EPOCH).days
    ),
}
"""What a rule says of a record: None where nobody knows."""


def constraint_violations(case: Case) -> dict[str, Answers]:
    names = case.released.schema.names
    columns = [case.released_values(name) for name in names]
    records = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    said = {name: [RULES[text](record) for record in records] for name, text in case.spec.rules.items()}
    return {
        "broken_records": {series(name): own.count(False) for name, own in said.items()},
        "unknown_records": {series(name): own.count(None) for name, own in said.items()},
    }


EVIDENCE = Evidence(
    oracle=constraint_violations,
    outputs=("broken_records", "unknown_records"),
    tiny=[
        ("linked", {"rules": {"ill": "illness = 'yes' -> days >= 1", "odd": "2 * visits - days != 1 | 2"}}),
        ("unlinked", {"rules": {"small": "income is missing or size > 'small'", "new": "joined >= '2020-01-02'"}}),
    ],
    settings={"rules": {"few": "days <= 30", "near": "days <= visits + 20"}},
    expected={
        "broken_records": Expected(
            doubled=times(2),
            copy=equals(0),
            permuted=free("other records' values may break a rule"),
            noise=at_least(30),
        ),
        "unknown_records": Expected(
            doubled=times(2), copy=same, permuted=free("the gaps lie with other records"), noise=not_higher
        ),
    },
)

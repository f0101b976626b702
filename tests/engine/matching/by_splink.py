"""Match weights as splink learns them, on DuckDB in memory: ``PYTHON by_splink.py CASE.npz`` prints m by level and the seconds it took.

PYTHON has splink 5.0.0, numpy and pandas; it needs nothing of Sfumato. ``written`` in ``test_splink.py`` makes CASE.npz.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from splink import DuckDBAPI, Linker, SettingsCreator


def comparison(number: int, m: list[float], u: list[float]) -> dict[str, Any]:
    """The levels of one variable from the nearest to the last, and where learning starts."""
    conditions = [
        f"code{number}_l = code{number}_r",
        *(f"place{number}_r between first{number}_{w}_l and last{number}_{w}_l" for w in range(len(m) - 2)),
        "ELSE",
    ]
    return {
        "output_column_name": f"code{number}",
        "comparison_levels": [
            {
                "sql_condition": condition,
                "label_for_charts": str(level),
                "m_probability": m[level],
                "u_probability": u[level],
            }
            for level, condition in enumerate(conditions)
        ],
    }


def smoothing(levels: list[int], block: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs in a block of their own that are on each level of one variable and equal in all others."""
    which = [(number, level) for number, most in enumerate(levels) for level in range(most)]
    ours: dict[str, Any] = {"unique_id": [-1], "block": [block]}
    theirs: dict[str, Any] = {"unique_id": np.arange(-len(which), 0), "block": np.full(len(which), block)}
    for number, most in enumerate(levels):
        level = np.array([on if of == number else 0 for of, on in which])
        ours |= {f"code{number}": [0], f"place{number}": [0]}
        theirs |= {f"code{number}": np.where(level == 0, 0, 1), f"place{number}": level}
        for w in range(most - 2):
            ours |= {f"first{number}_{w}": [1], f"last{number}_{w}": [w + 1]}
            theirs |= {f"{end}{number}_{w}": np.zeros(len(which), dtype=np.int64) for end in ("first", "last")}
    return pd.DataFrame(ours), pd.DataFrame(theirs)


def main(path: str) -> None:
    """Learn and print."""
    case = np.load(path)
    start, u = json.loads(str(case["start"])), json.loads(str(case["u"]))
    levels = [len(one) for one in start]
    both = []
    for side in ("ours", "theirs"):
        frame = pd.DataFrame({name.split("/")[1]: case[name] for name in case.files if name.startswith(f"{side}/")})
        both.append(frame.assign(unique_id=np.arange(len(frame))))
    began = time.perf_counter()
    block = int(max(frame.block.max() for frame in both)) + 1
    added = smoothing(levels, block)
    pairs = int(both[0].block.map(both[1].block.value_counts()).fillna(0).sum())
    true = int(both[0].block.isin(both[1].block).sum()) + len(added[1])
    database = DuckDBAPI(":memory:")
    database.duckdb_con.execute("SET threads = 1")
    tables = [
        database.register(pd.concat([frame, more], ignore_index=True).astype(np.int32), dataset_display_name=name)
        for frame, more, name in zip(both, added, ("a_confidential", "b_released"), strict=True)
    ]
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[comparison(number, *one) for number, one in enumerate(zip(start, u, strict=True))],
        blocking_rules_to_generate_predictions=["l.block = r.block"],
        probability_two_random_records_match=true / (pairs + len(added[1])),
        em_convergence=float(case["converged"]),
        max_iterations=int(case["iterations"]),
        retain_matching_columns=False,
    )
    linker = Linker(tables, settings, log_level=logging.CRITICAL)
    linker.training.estimate_parameters_using_expectation_maximisation(
        "l.block = r.block",
        estimate_without_term_frequencies=True,
        fix_probability_two_random_records_match=True,
    )
    learned = linker.misc.save_model_to_json()["comparisons"]
    m = [[level["m_probability"] for level in one["comparison_levels"]] for one in learned]
    print(json.dumps({"m": m, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    logging.getLogger("splink").setLevel(logging.CRITICAL + 1)
    main(sys.argv[1])

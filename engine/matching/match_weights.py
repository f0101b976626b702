"""Match weights: how much the level that a variable of a pair is on speaks for one person (Fellegi & Sunter 1969).

A pair whose variables are on levels l_1, ..., l_K has the match weight  w = sum_k log2(m_k(l_k) / u_k(l_k)),  m_k and u_k being how often pairs of
one person and pairs of two are on each level. An intruder who knows that everybody of the file was released learns them
from pairs alone: u from how often all pairs are on a level, and m by expectation and maximisation (Winkler 1988), which splink does on DuckDB, in
memory, with the share of true pairs held at one a record. It starts from people who look like themselves and others as all pairs do: where values agree by themselves alone pairs teach nothing,
and without a start that knows how rare an agreement is learning ends anywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from .blocks import Blocks, pairs_of
from .comparisons import Comparison

FINEST = 2.0**-20
"""Weights are whole multiples of it, so that sums of equal weights are equal in whatever order."""
TRAINED_ON = 2_000_000
"""Pairs that weights are learned from, at most: those of so many confidential records as have so few."""
START = {2: (0.9, 0.1), 4: (0.5, 0.3, 0.1, 0.1)}
"""m by level before anything is learned: people look like themselves. It decides where pairs teach nothing, such as where one variable alone is true."""
SETTINGS: dict[str, Any] = {"em_convergence": 2e-3, "max_iterations": 15, "retain_matching_columns": False}

CODE = np.int32
"""What codes and ranks are for splink, which holds those of every record and of both records of every pair."""

Weights = tuple[Floats, ...]
"""The weight of each level, (levels,), of every comparison."""


@dataclass(frozen=True, eq=False)
class Seen:
    """On how many of the ``pairs`` of the records ``among``, (t,), each level of each variable is, (levels,)."""

    among: Integers
    pairs: int
    counts: tuple[Floats, ...]

    @classmethod
    def of(cls, comparisons: Sequence[Comparison], blocks: Blocks, among: Integers) -> Seen:
        """All pairs of these records."""
        counts: list[Floats] = [np.zeros(one.levels) for one in comparisons]
        for i, j in pairs_of(among, blocks):
            counts = [
                count + np.bincount(one.level(i, j), minlength=one.levels)
                for count, one in zip(counts, comparisons, strict=True)
            ]
        return cls(among, int(blocks.sizes[blocks.ours[among]].sum()), tuple(counts))

    def others(self, m: Sequence[NDArray[Any]], least: float = 0.0) -> list[Floats]:
        """How often pairs of two people are on each level, where those of one person are so as often as ``m`` says.

        ``least`` is the share of the pairs on a level that are of two people at least.
        """
        true = [np.minimum(own * len(self.among), (1 - least) * one) for own, one in zip(m, self.counts, strict=True)]
        left = [one - own + 0.5 for one, own in zip(self.counts, true, strict=True)]
        return [one / one.sum() for one in left]


def true_pair_weights(comparisons: Sequence[Comparison], blocks: Blocks, targets: Integers, seen: Seen) -> Weights:
    """Weights of an intruder who knows how often true pairs are on each level, those of ``targets``, (t,)."""
    own = targets[blocks.ours[targets] == blocks.theirs[targets]]
    true = [np.bincount(one.level(own, own), minlength=one.levels) + 0.5 for one in comparisons]
    m = [one / one.sum() for one in true]
    return tuple(map(_weights, m, seen.others(m)))


def learned_weights(comparisons: Sequence[Comparison], blocks: Blocks, seen: Seen) -> Weights:
    """Weights of an intruder who learns them from the pairs ``seen``, without knowing which are true."""
    among, start = seen.among, [np.array(START[one.levels]) for one in comparisons]
    others = seen.others(start, least=0.5)
    candidates = blocks.sizes[blocks.ours[among]]
    if len(comparisons) < 2 or candidates.max() < 2:
        return tuple(map(_falling, map(_weights, start, others)))
    comparing = [_in_sql(k, *one) for k, one in enumerate(zip(comparisons, start, others, strict=True))]
    theirs = np.flatnonzero(np.isin(blocks.theirs, blocks.ours[among]))
    theirs = theirs[np.lexsort([*(one.theirs[theirs] for one in comparisons), blocks.theirs[theirs]])]
    tables = _table(comparisons, blocks.ours, among, own=True), _table(comparisons, blocks.theirs, theirs, own=False)
    added = _relations(comparisons, len(blocks.sizes))
    both = tuple(pd.concat(parts, ignore_index=True) for parts in zip(tables, added, strict=True))
    true = np.count_nonzero(candidates) + len(added[1])
    found = []
    for learned, u in zip(_trained(both, comparing, true / (seen.pairs + len(added[1]))), others, strict=True):
        m = np.array([level["m_probability"] for level in learned["comparison_levels"]])
        found.append(_falling(_weights(np.maximum(m, 0.5 / len(among)), u)))
    return tuple(found)


def _relations(comparisons: Sequence[Comparison], block: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs in a block of their own that are on each level of one variable and equal in all others.

    They keep every m above 0, where maximisation would fail for a copy: no true pair of it differs in anything.
    """
    which = [(number, level) for number, one in enumerate(comparisons) for level in range(one.levels)]
    ours: dict[str, Any] = {"unique_id": [-1], "block": [block]}
    theirs: dict[str, Any] = {"unique_id": np.arange(-len(which), 0), "block": np.full(len(which), block)}
    for number, one in enumerate(comparisons):
        level = np.array([on if of == number else 0 for of, on in which])
        ours |= {f"code{number}": [0], f"place{number}": [0]}
        theirs |= {f"code{number}": np.where(level == 0, 0, 1), f"place{number}": level}
        for w in range(len(one.windows)):
            ours |= {f"first{number}_{w}": [1], f"last{number}_{w}": [w + 1]}
            theirs |= {f"{end}{number}_{w}": np.zeros(len(which), dtype=np.int64) for end in ("first", "last")}
    return pd.DataFrame(ours).astype(CODE), pd.DataFrame(theirs).astype(CODE)


def _weights(m: NDArray[Any], u: NDArray[Any]) -> Floats:
    return np.asarray(np.rint(np.log2(m / u) / FINEST) * FINEST, dtype=np.float64)


def _falling(weights: Floats) -> Floats:
    """Weights of which a nearer level never has a smaller one: whatever was learned, to be nearer speaks against nobody."""
    return np.asarray(np.maximum.accumulate(weights[::-1])[::-1])


def _in_sql(number: int, one: Comparison, m: Floats, u: Floats) -> dict[str, Any]:
    """A comparison as splink has it, its levels from the nearest to the last, and where it starts."""
    conditions = [
        f"code{number}_l = code{number}_r",
        *(f"place{number}_r between first{number}_{w}_l and last{number}_{w}_l" for w in range(len(one.windows))),
        "ELSE",
    ]
    return {
        "output_column_name": f"code{number}",
        "comparison_levels": [
            {
                "sql_condition": condition,
                "label_for_charts": str(level),
                "m_probability": float(m[level]),
                "u_probability": float(u[level]),
            }
            for level, condition in enumerate(conditions)
        ],
    }


def _table(comparisons: Sequence[Comparison], block: Integers, records: Integers, *, own: bool) -> pd.DataFrame:
    """Codes and ranks of the records in their order, under the same names for both tables."""
    columns: dict[str, NDArray[Any]] = {
        "unique_id": np.arange(len(records), dtype=CODE),
        "block": block[records].astype(CODE),
    }
    nothing = np.zeros(len(records), dtype=CODE)
    for number, one in enumerate(comparisons):
        columns[f"code{number}"] = (one.ours if own else one.theirs)[records].astype(CODE)
        columns[f"place{number}"] = nothing if own else one.place[records].astype(CODE)
        for w, ends in enumerate(one.windows):
            for name, end in zip(("first", "last"), ends, strict=True):
                columns[f"{name}{number}_{w}"] = end[records].astype(CODE) if own else nothing
    return pd.DataFrame(columns)


def _trained(tables: Sequence[pd.DataFrame], comparing: list[dict[str, Any]], share: float) -> list[dict[str, Any]]:
    """The comparisons with what splink learned of them. One thread, so that the same pairs give the same bits."""
    from splink import DuckDBAPI, Linker, SettingsCreator  # here: it takes long, and nothing else needs it

    logger = logging.getLogger("splink")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        database = DuckDBAPI(":memory:")
        connection = database.duckdb_con
        for setting in (
            "threads = 1",
            "temp_directory = ''",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        try:
            sides = [
                database.register(table, dataset_display_name=name)
                for table, name in zip(tables, ("a_confidential", "b_released"), strict=True)
            ]
            settings = SettingsCreator(
                link_type="link_only",
                comparisons=comparing,
                blocking_rules_to_generate_predictions=["l.block = r.block"],
                probability_two_random_records_match=share,
                **SETTINGS,
            )
            linker = Linker(sides, settings, log_level=logging.CRITICAL)
            linker.training.estimate_parameters_using_expectation_maximisation(
                "l.block = r.block",
                estimate_without_term_frequencies=True,
                fix_probability_two_random_records_match=True,
            )
            found: list[dict[str, Any]] = linker.misc.save_model_to_json()["comparisons"]
            return found
        finally:
            connection.close()
    finally:
        logger.setLevel(level)

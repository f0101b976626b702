"""Risk record by record: who can be found, among how many candidates, and which variable gives them away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.blocks import row_blocks
from ..data.microdata import Microdata
from ..errors import NotComputable
from ..matching.intruder import Knowledge, Nearness
from ..matching.matching import Exact, Within
from ..methods.outputs import RecordArray
from ..partition.grouping import Values
from ..recipe.recipe import Recipe

Arrays = Mapping[str, NDArray[Any]]
_NEEDED = ({"candidates", "hit"}, {"probability"})


def candidates_without(keys: Sequence[Exact | Within], records: Sequence[int]) -> NDArray[np.int64]:
    """For each chosen confidential record, the released records that match it when one variable is not asked for.

    Leaving variable v out adds the released records that differ in v alone, so one pass over the released records
    serves all variables: O(records x variables x n_r).

    Args:
        keys: the V known variables, each to be equal or within its window.
        records: R rows of the confidential records.

    Returns:
        Shape (R, V + 1): with all variables known in column 0, without variable v in column v + 1.
    """
    counts = np.zeros((len(records), len(keys) + 1), dtype=np.int64)
    for _, block in _blocks(keys):
        for r, agrees in enumerate(_agreements(block, records)):
            agreeing = _agreeing(agrees)
            near = agreeing == len(keys) - 1
            all_agree = np.count_nonzero(agreeing == len(keys))
            counts[r, 0] += all_agree
            counts[r, 1:] += [all_agree + np.count_nonzero(near & ~agree) for agree in agrees]
    return counts


def _blocks(keys: Sequence[Exact | Within]) -> Iterator[tuple[int, list[Exact | Within]]]:
    """The keys against some released records at a time, and the first row of each block."""
    for rows in row_blocks(keys[0].shape[1], len(keys)):
        yield rows.start, [replace(key, released=_some(key.released, rows)) for key in keys]


def _some(values: Values, rows: slice) -> Any:
    return values.iloc[rows] if isinstance(values, pd.Series) else values[rows]


def _agreements(keys: Sequence[Exact | Within], records: Sequence[int]) -> Iterator[list[NDArray[np.bool_]]]:
    """For each chosen confidential record and each key which released records agree, (n_r,)."""
    codes = {v: key.codes() for v, key in enumerate(keys) if isinstance(key, Exact)}
    for i in records:
        yield [
            (key.lower[i] <= key.released) & (key.released <= key.upper[i])
            if isinstance(key, Within)
            else codes[v][1] == codes[v][0][i]
            for v, key in enumerate(keys)
        ]


def _agreeing(agrees: Sequence[NDArray[np.bool_]]) -> NDArray[np.int16]:
    """On how many keys each released record agrees, (n_r,)."""
    agreeing = np.zeros(len(agrees[0]), dtype=np.int16)
    for agree in agrees:
        agreeing += agree
    return agreeing


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """Averages over ``datasets`` released datasets, (n,) each.

    ``probability``: of being found by picking one candidate at random, T/c (Reiter & Mitra 2009, §2), in each dataset the larger by all that is
    known and by the best choice of it, where the measure tells both; or of the sensitive values being given away, p (Guo & Hu §4.1). ``candidates``: how many records match. ``unique``: the share
    of the datasets in which the record's own is the only candidate; None where the measure does not ask for the own one.
    ``prior``: the probability before the release; None where the measure does not tell it. All are NaN of records that were
    not asked about.
    """

    probability: NDArray[np.float64]
    candidates: NDArray[np.float64]
    unique: NDArray[np.float64] | None
    datasets: int
    prior: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def asked(self) -> NDArray[np.bool_]:
        """Whether each record was asked about, (n,)."""
        return ~np.isnan(self.probability)

    def ranking(self, most: int | None = None) -> NDArray[np.intp]:
        """The records asked about, most at risk first: by probability, unique share, small prior, few candidates, number.

        Not more than ``most`` of them, which are found without sorting the others.
        """
        unique = None if self.unique is None else -self.unique
        keys = [key for key in (-self.probability, unique, self.prior, self.candidates) if key is not None]
        chosen = np.flatnonzero(self.asked)
        if most is not None:
            chosen = _first(keys, chosen, most)
        return np.asarray(chosen[np.lexsort([key[chosen] for key in reversed(keys)])])

    def of(self, records: NDArray[np.intp]) -> RecordRisk:
        """The same of some records (r,), rows from 0, in that order."""
        unique = None if self.unique is None else self.unique[records]
        prior = None if self.prior is None else self.prior[records]
        return RecordRisk(self.probability[records], self.candidates[records], unique, self.datasets, prior)


def _first(keys: Sequence[NDArray[np.float64]], rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Those of some rows, ascending, that come first by the keys (n,), the first key first, of equals the first rows: ``most`` of them, ascending."""
    surely = []
    for key in keys:
        if len(rows) <= most:
            break
        own = np.nan_to_num(key[rows], nan=np.inf)  # a sort puts NaN last, and NaN equals nothing
        bound = np.partition(own, most - 1)[most - 1]
        surely.append(rows[own < bound])
        rows, most = rows[own == bound], most - len(surely[-1])
    return np.sort(np.concatenate([*surely, rows[:most]]))


def has_record_risk(names: Sequence[str]) -> bool:
    """Whether arrays of these names hold what ``record_risk`` needs."""
    return any(needed <= set(names) for needed in _NEEDED)


def record_risk(per_record: Sequence[Arrays]) -> RecordRisk:
    """The average over released datasets of a measure's arrays with one value a record.

    Args:
        per_record: for each dataset ``candidates`` and ``hit``, with or without ``best_candidates`` and ``best_hit``, or ``probability`` with or
            without ``candidates`` (``matched``), (n,) each.

    Raises:
        NotComputable: when there is no dataset, or its arrays hold no probability of a match.
    """
    if not per_record:
        raise NotComputable("no dataset has values of single records")
    total, candidates, unique, prior = (np.zeros(len(next(iter(per_record[0].values())))) for _ in range(4))
    asked = all("hit" in arrays for arrays in per_record)
    told = all("prior" in arrays for arrays in per_record)
    for arrays in per_record:
        probability, matched = _probability(arrays)
        total += probability
        candidates += matched
        if asked:
            unique += np.where(np.isnan(probability), np.nan, (probability == 1) & (matched == 1))
        if told:
            prior += arrays["prior"]
    m = len(per_record)
    return RecordRisk(total / m, candidates / m, unique / m if asked else None, m, prior / m if told else None)


def _probability(arrays: Arrays) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if not has_record_risk(list(arrays)):
        raise NotComputable("the measure says nothing of single records")
    if "hit" in arrays:
        share, candidates = _share(arrays["hit"], arrays["candidates"]), arrays["candidates"]
        if {"best_candidates", "best_hit"} <= set(arrays):
            best = _share(arrays["best_hit"], arrays["best_candidates"])
            candidates = np.where(best > share, arrays["best_candidates"], candidates)
            share = np.fmax(share, best)
        return share, candidates
    probability = arrays["probability"].astype(np.float64)
    named = next((name for name in ("candidates", "matched") if name in arrays), None)
    return probability, np.full(len(probability), np.nan) if named is None else arrays[named]


def _share(hit: NDArray[Any], candidates: NDArray[Any]) -> NDArray[np.float64]:
    """The probability of finding the own record by picking one candidate at random, (n,); NaN of a record that was not asked about."""
    share = np.divide(hit, candidates, out=np.zeros(len(candidates)), where=candidates > 0)
    return np.where(np.isnan(candidates), np.nan, share)


def by_part(arrays: Arrays, declared: Sequence[RecordArray]) -> Arrays:
    """Arrays with one value a record, and under the names of their parts those that the method declares to be one."""
    parts: Arrays = {one.part: arrays[one.name] for one in declared if one.part and one.name in arrays}
    return {**arrays, **parts}


def knowledge_of(recipe: Recipe, item: int) -> tuple[tuple[str, ...], Mapping[str, Nearness]]:
    """The variables that measure ``item`` of a recipe matches on, and their radii or bins. Raises NotComputable."""
    step = recipe.measures[item]
    spec = step.spec.for_release(recipe.schema, recipe.released)
    names = dict.fromkeys((*getattr(spec, "known", ()), *getattr(spec, "synthesised", ())))
    if not names:
        raise NotComputable(f"{step.method.key} does not match on known variables")
    radius: Mapping[str, Nearness] = {**getattr(spec, "radius", {}), **getattr(spec, "bins", {})}
    return tuple(names), {name: radius[name] for name in names if name in radius}


@dataclass(frozen=True, slots=True)
class Driver:
    """The variable whose removal from the intruder's knowledge gives a record most new candidates: ``without`` in all."""

    variable: str
    without: float


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Candidates of R records: (R,) when all ``variables`` are known, and (R, V) when variable v is not."""

    variables: tuple[str, ...]
    candidates: NDArray[np.float64]
    without: NDArray[np.float64]

    def driver(self, r: int) -> Driver | None:
        """What drives the risk of the r-th record, the first of equals; None when no variable adds a candidate alone."""
        v = int(np.argmax(self.without[r]))
        if self.without[r, v] <= self.candidates[r]:
            return None
        return Driver(self.variables[v], float(self.without[r, v]))


def leave_one_out(
    confidential: Microdata,
    releases: Iterable[Microdata],
    names: Sequence[str],
    radius: Mapping[str, Nearness],
    records: Sequence[int],
) -> LeaveOneOut:
    """Mean candidates over released datasets of the chosen records, with all variables known and without each.

    Args:
        confidential: n records.
        releases: released datasets, at least one.
        names: the V variables that the intruder knows.
        radius: how near is a match, by variable; equal without one.
        records: R row numbers from 0.
    """
    knowledge = Knowledge.of(confidential.block(list(records)), names, radius)
    total, datasets = np.zeros((len(records), len(names) + 1)), 0
    for released in releases:
        exact, within = knowledge.agreeing(released)
        total += candidates_without([*exact, *within], range(len(records)))
        datasets += 1
    mean = total / datasets
    matched = [*(name for name in names if name not in radius), *(name for name in names if name in radius)]
    columns = [1 + matched.index(name) for name in names]
    return LeaveOneOut(tuple(names), mean[:, 0], mean[:, columns])


def matching_records(
    confidential: Microdata, released: Microdata, names: Sequence[str], radius: Mapping[str, Nearness], record: int
) -> NDArray[np.intp]:
    """The rows of a released dataset that match one confidential record, ascending."""
    exact, within = Knowledge.of(confidential.block([record]), names, radius).agreeing(released)
    found = [
        first + np.flatnonzero(_agreeing(agrees) == len(names))
        for first, block in _blocks([*exact, *within])
        for agrees in _agreements(block, [0])
    ]
    return np.concatenate([np.zeros(0, dtype=np.intp), *found])

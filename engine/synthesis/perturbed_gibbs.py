"""Perturbed Gibbs sampler: categories drawn one feature after another from perturbed tables of counts (Park & Ghosh §3).

For each feature a table counts its categories by key: some of the other features, and one bit of the rest. Virtual records are
added to every category, so many that a drawn record costs epsilon (eq. 4-6). A synthetic record starts as a seed and takes a
new value for each feature in turn, given the others as they are by then.

A drawn record costs epsilon, n of them n epsilon. With ``reset`` (PeGS.rs, §3.4) a block of records costs it: what a draw has
looked at is uniform for the rest of the block, each record being the seed of the next. With ``privacy = "l_diversity"`` each key has
the fewest virtual records that make the entropy of its distribution log l; that has no epsilon.

Beyond the paper: numbers are cut by rules and drawn back inside their bins; ``neighbours`` spreads each record over adjacent categories
of what is ordered, so that fewer virtual records suffice; variables that stay can stand in the keys (partial synthesis).

Privacy holds for the counts. An order, bins, levels or seeds learned from the confidential data are outside the proof, and the
account says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..design.categories import BinsByVariable, Categories, Codes, InsideBin, categories_of, check_bins, learned_of
from ..design.seed_pools import UNIFORM, SeedPoolParam, check_seeds, seeds_of, seeds_uncovered
from ..errors import BadInput
from ..methods.privacy import ACCOUNT, NoAccount, PrivacyAccount, Uncovered, virtual_records
from ..methods.registry import synthesis_method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ._conditional_tables import LARGEST_KEY, ConditionalTable, Key, mutual_information

COUNTED = "tables of counts are counted, not sampled"


@dataclass(frozen=True, eq=False)
class Features:
    """The categories of all features and the key of each target."""

    categories: Mapping[str, Categories]
    keys: Mapping[str, Key]

    def codes(self, data: Microdata, names: Sequence[str]) -> dict[str, Codes]:
        """The category of every record in each of these features."""
        return {name: self.categories[name].codes(data) for name in names}


def features_of(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec) -> Features:
    """The features of a step, by the recipe and, where it leaves that to them, the confidential data."""
    names = (*targets, *spec.predictors)
    categories = {name: categories_of(data, name, spec.bins.get(name)) for name in names}
    codes = {name: categories[name].codes(data) for name in names} if spec.order == "mutual_information" else {}
    keys = {}
    for target in targets:
        first = spec.keys.get(target, ())
        others = [name for name in names if name != target and name not in first]
        if codes:
            told = {
                n: mutual_information(codes[target], codes[n], (categories[target].size, categories[n].size))
                for n in others
            }
            others.sort(key=lambda name: -told[name])
        ordered = (*first, *others)
        named = ordered[: max(spec.hash_size, len(first))]
        keys[target] = Key(named, tuple(categories[n].size for n in named), ordered[len(named) :])
    return Features(categories, keys)


def check(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec, place: str) -> None:
    """BadInput where privacy is not said, a number is not cut, a key is too large, or settings contradict each other."""
    if spec.privacy == "differential" and (spec.epsilon is None or spec.l is not None):
        raise BadInput(f"{place}.epsilon", 'say epsilon, and no l: that is for privacy = "l_diversity"')
    if spec.privacy == "l_diversity" and (spec.l is None or spec.epsilon is not None):
        raise BadInput(f"{place}.l", "say l, and no epsilon: l-diversity has none")
    if spec.reset and (spec.iterations > 1 or spec.privacy == "l_diversity"):
        raise BadInput(f"{place}.reset", "a block with reset has one iteration a record, and an epsilon")
    if spec.neighbours and spec.l is not None:
        raise BadInput(f"{place}.neighbours", "neighbours are for differential privacy; leave them out with l")
    if spec.reset and spec.predictors:
        raise BadInput(
            f"{place}.predictors", "a block with reset makes records anew; leave the predictors or reset out"
        )
    for name, first in spec.keys.items():
        if name not in targets:
            raise BadInput(f"{place}.keys.{name}", f'"{name}" is no target of this step')
        for i, other in enumerate(first):
            if other == name or other not in (*targets, *spec.predictors) or other in first[:i]:
                raise BadInput(
                    f"{place}.keys.{name}[{i}]", f'"{other}" must be another target or a predictor, named once'
                )
    check_bins(data, (*targets, *spec.predictors), spec.bins, place)
    check_seeds(data, targets, spec.seeds, f"{place}.seeds")
    features = features_of(data, targets, spec)
    for name in targets:
        size = features.categories[name].size
        if spec.l is not None and spec.l > size:
            raise BadInput(f"{place}.l", f'"{name}" has {size} categories: l can be {size} at most')
        if features.keys[name].space * size >= LARGEST_KEY:
            raise BadInput(f"{place}.hash_size", f'the key of "{name}" would have too many values; make it smaller')


def account(
    data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec, records: int, datasets: int
) -> PrivacyAccount | NoAccount:
    """One epsilon a record, with reset one a block (Park & Ghosh §3.4), and what the proof leaves out."""
    if spec.epsilon is None:
        return NoAccount("l-diversity is no differential privacy: it has no epsilon")
    samples = math.ceil(records / spec.block) if spec.reset else records
    drawn = spec.block if spec.reset else 1
    return PrivacyAccount(spec.epsilon * spec.iterations, samples, datasets, uncovered(data, targets, spec), drawn)


LEARNED_ORDER = Uncovered(
    "the order of the features was learned from them",
    "which variables are drawn given which others was learned from the confidential data",
)


def uncovered(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec) -> tuple[Uncovered, ...]:
    """What the confidential data have said beside the counts."""
    order = (LEARNED_ORDER,) if spec.order == "mutual_information" else ()
    names = (*targets, *spec.predictors)
    return (
        *order,
        *seeds_uncovered(spec.seeds),
        *learned_of(data, names, spec.bins, inside=spec.inside),
    )


def joint_draw(
    fit: Fit,
    spec: PerturbedGibbsSpec,
    targets: tuple[str, ...],
    confidential: Microdata,
    released: Microdata,
    index: int,
    records: int,
    rng: np.random.Generator,
) -> Mapping[str, NDArray[np.generic]]:
    """A dataset of ``records`` records, each from a seed of its own; with reset, each block."""
    features = features_of(confidential, targets, spec)
    tables = {name: ConditionalTable.stored(fit.arrays, name, features.categories[name].size) for name in targets}
    mixed = {n: mixed_of(tables[n], features.categories[n], spec, len(targets)) for n in targets}
    sampler = Sampler(features, tables, mixed, spec.neighbours)
    kept = features.codes(released, spec.predictors)
    blocks = math.ceil(records / spec.block) if spec.reset else records
    own = bool(spec.predictors)
    state = seeds_of(features.categories, targets, spec.seeds, confidential, blocks, rng, own=own)
    if spec.reset:
        drawn = sampler.blocks(state, spec.block, rng)
        state = {name: codes.T.reshape(-1)[:records] for name, codes in drawn.items()}
    else:
        for _ in range(spec.iterations):
            state = sampler.sweep({**state, **kept}, blocks, rng)
    return {name: features.categories[name].values(state[name], confidential, spec.inside, rng) for name in targets}


@dataclass(frozen=True, eq=False)
class Sampler:
    """Perturbed tables of the targets, ``mixed`` (rows + 1,) saying how often a draw is uniform."""

    features: Features
    tables: Mapping[str, ConditionalTable]
    mixed: Mapping[str, Floats]
    neighbours: float = 0.0

    def sweep(self, state: Mapping[str, Codes], records: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Every target drawn once, in its turn, for ``records`` records at the same time."""
        now = dict(state)
        for name, table in self.tables.items():
            rows = table.rows(self.features.keys[name].of(now, records))
            now[name] = self._one(name, rows, self.mixed[name], rng)
        return {name: now[name] for name in self.tables}

    def blocks(self, seeds: Mapping[str, Codes], size: int, rng: np.random.Generator) -> dict[str, Codes]:
        """``size`` records from each seed, (size, blocks): a key that a block has looked at is uniform for the rest of it."""
        count = len(next(iter(seeds.values())))
        now = dict(seeds)
        seen = {name: np.empty((size, count), dtype=np.int64) for name in self.tables}
        drawn = {name: np.empty((size, count), dtype=np.int64) for name in self.tables}
        for b in range(size):
            for name, table in self.tables.items():
                rows = table.rows(self.features.keys[name].of(now, count))
                again = (seen[name][:b] == rows).any(axis=0)
                seen[name][b] = rows
                now[name] = self._one(name, np.where(again, len(table.keys), rows), self.mixed[name], rng)
                drawn[name][b] = now[name]
        return drawn

    def _one(self, name: str, rows: Codes, mixed: Floats, rng: np.random.Generator) -> Codes:
        categories, table = self.features.categories[name], self.tables[name]
        drawn, counted = table.draw(rows, mixed, rng)
        if self.neighbours and categories.ordered:
            drawn[counted] = moved(drawn[counted], categories.present, self.neighbours, rng)
        return drawn


def moved(codes: Codes, present: int, share: float, rng: np.random.Generator) -> Codes:
    """Categories of which a ``share`` is one of the two beside them; at the ends the one beside. Missing ones stay, and a single one."""
    if present < 2:
        return codes
    step = np.where(rng.random(len(codes)) < share, 1 - 2 * rng.integers(2, size=len(codes)), 0)
    inside = np.where(codes == 0, np.abs(step), np.where(codes == present - 1, -np.abs(step), step))
    return np.where(codes < present, codes + inside, codes)


def mixed_of(table: ConditionalTable, categories: Categories, spec: PerturbedGibbsSpec, features: int) -> Floats:
    """How often a draw from each row is uniform, (rows + 1,)."""
    if spec.l is not None:
        return table.mixed_by_entropy(math.log(spec.l))
    assert spec.epsilon is not None
    return table.mixed_by_virtual_records(
        virtual_records(spec.epsilon, features, largest_part(categories, spec.neighbours))
    )


def largest_part(categories: Categories, neighbours: float) -> float:
    """The most that one record adds to the count of one category."""
    return 1 - neighbours if categories.ordered and not categories.gaps else 1.0


def _diagnostics(name: str, table: ConditionalTable, mixed: Floats) -> Iterator[Diagnostic]:
    records = np.diff(table.before)
    yield Diagnostic("keys", name, float(len(table.keys)))
    yield Diagnostic("cells", name, float(len(table.categories)))
    yield Diagnostic("share_drawn_uniformly", name, float((mixed[:-1] * records).sum() / records.sum()))


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbedGibbsSpec(Spec):
    """How private, on what each feature is conditioned, and how numbers become categories."""

    epsilon: Annotated[
        float | None,
        Param("differential privacy of one drawn record; with reset of one block of them", gt=0, le=10_000),
    ] = None
    privacy: Annotated[
        Literal["differential", "l_diversity"],
        Param("what the virtual records have to give: epsilon, or entropy log l"),
    ] = "differential"
    l: Annotated[  # noqa: E741
        float | None, Param("of l-diversity: each conditional distribution has an entropy of log l or more", ge=1)
    ] = None
    reset: Annotated[bool, Param("make what a draw has looked at uniform for the rest of its block (PeGS.rs)")] = False
    block: Annotated[int, Param("records of a block, which costs one epsilon; with reset", ge=1, le=10_000)] = 10
    iterations: Annotated[
        int, Param("times that all features are drawn for one record, each at the cost of epsilon", ge=1, le=1000)
    ] = 1
    hash_size: Annotated[
        int, Param("features that stand in a key one by one; the rest are hashed to one bit", ge=0)
    ] = 2
    predictors: Annotated[
        tuple[str, ...],
        Param("variables that are kept, or were made before, to stand in the keys too", names="variables"),
    ] = ()
    order: Annotated[
        Literal["recipe", "mutual_information"],
        Param(
            "which features come first in a key: those of keys and then the targets as listed, or those that tell most in the confidential data"
        ),
    ] = "recipe"
    keys: Annotated[
        Mapping[str, tuple[str, ...]],
        # any order: a key holds drawn values of the other targets, never confidential ones
        Param("by target, the features that come first in its key", names="variables", any_order=True),
    ] = field(default_factory=dict)
    seeds: SeedPoolParam = UNIFORM
    bins: BinsByVariable = field(default_factory=dict)
    inside: InsideBin = "uniform"
    neighbours: Annotated[
        float,
        Param(
            "share of each record that counts for the adjacent categories of ordinal variables and bins", ge=0, le=0.5
        ),
    ] = 0.0

    @property
    def uses_own_record(self) -> bool:
        """Where each record starts at its own, or keys are learned from how targets go with predictors."""
        return bool(self.predictors) and (self.seeds.kind == "confidential" or self.order == "mutual_information")


@synthesis_method(
    "Perturbed Gibbs sampler",
    spec=PerturbedGibbsSpec,
    source="Park & Ghosh §3.1-3.4, eq. 1-6",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    check=check,
    account=account,
    outputs=ACCOUNT,
)
def perturbed_gibbs(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec, run: Run, draws: int) -> Fit:
    """The tables of all targets, one scan each. Arrays: of every target those of its table; noise enters when records are drawn."""
    features = features_of(data, targets, spec)
    codes = features.codes(data, (*targets, *spec.predictors))
    arrays: dict[str, NDArray[np.generic]] = {}
    found: list[Diagnostic] = []
    for name in targets:
        categories, key = features.categories[name], features.keys[name]
        table = ConditionalTable.counted(key.of(codes, len(data)), codes[name], categories.size)
        mixed = mixed_of(table, categories, spec, len(targets))
        arrays |= table.arrays(name)
        found += _diagnostics(name, table, mixed)
    return Fit(arrays, tuple(found), NoTrace(COUNTED))

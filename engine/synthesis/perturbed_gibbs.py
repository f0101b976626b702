"""Perturbed Gibbs sampler: categories drawn feature by feature from perturbed tables of counts (Park & Ghosh §3).

For each feature a table counts its categories by key: some of the other features, and one bit of the rest. Virtual
records are added to every category, enough that a drawn record costs epsilon (eq. 4-6). A synthetic record starts as a
seed and takes a new value for each feature in turn, given the current values of the others.

A drawn record costs epsilon, n of them n epsilon. With ``reset`` (PeGS.rs, §3.4) a block of records costs it. Where a
unit has up to c records, the virtual records are so many that this is the cost of the unit. With
``privacy = "l_diversity"`` each key has the fewest virtual records that make the entropy of its distribution log l;
that has no epsilon. Beyond the paper: numbers are cut by rules and drawn back inside their bins; ``neighbours`` spreads
each record over adjacent categories of ordered variables; variables that stay can stand in the keys (partial
synthesis).

Privacy holds for the counts. An order, bins, levels or seeds learned from the confidential data are outside the proof,
and the account says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema
from ..design.categories import (
    BinsByVariable,
    InsideBin,
    VariableCategories,
    categories_of_variable,
    check_bins,
    learned_from_data,
)
from ..design.seed_pools import UNIFORM, SeedPoolParam, check_seeds, draw_seeds, uncovered_seeds
from ..errors import BadInput
from ..methods.privacy import ACCOUNT, NoAccount, PrivacyAccount, UncoveredUse, virtual_records
from ..methods.registry import PrivacyDeclaration, synthesis_method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ._conditional_tables import LARGEST_KEY, ConditionalTable, FeatureKey, mutual_information

COUNTED = "tables of counts are counted, not sampled"


@dataclass(frozen=True, eq=False)
class FeatureKeys:
    """Categories of all features, and the key of each target.

    categories: categories of each feature
    keys: key of each target
    """

    categories: Mapping[str, VariableCategories]
    keys: Mapping[str, FeatureKey]

    def record_codes(self, data: Microdata, names: Sequence[str]) -> dict[str, Integers]:
        """Return the category of every record in each of these features, (n,) each."""
        return {name: self.categories[name].category_codes(data) for name in names}


def make_feature_keys(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec) -> FeatureKeys:
    """Return the features of a step: by the recipe, and by the confidential data if that order is left to them."""
    names = (*targets, *spec.predictors)
    categories = {name: categories_of_variable(data, name, spec.bins.get(name)) for name in names}
    codes = (
        {name: categories[name].category_codes(data) for name in names} if spec.order == "mutual_information" else {}
    )
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
        keys[target] = FeatureKey(named, tuple(categories[n].size for n in named), ordered[len(named) :])
    return FeatureKeys(categories, keys)


def check_data(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec, place: str) -> None:
    """Raise BadInput where settings contradict each other or do not suit the data.

    That is where privacy is not specified, a number has no bins, or a key is too large.
    """
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
            f"{place}.predictors", "a block with reset synthesises whole records; leave the predictors or reset out"
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
    features = make_feature_keys(data, targets, spec)
    for name in targets:
        size = features.categories[name].size
        if spec.l is not None and spec.l > size:
            raise BadInput(f"{place}.l", f'"{name}" has {size} categories: l can be {size} at most')
        if features.keys[name].n_values * size >= LARGEST_KEY:
            raise BadInput(f"{place}.hash_size", f'the key of "{name}" would have too many values; make it smaller')


def account(
    data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec, records: int, datasets: int
) -> PrivacyAccount | NoAccount:
    """Return the privacy cost, one epsilon for each record or block, and what the proof leaves out.

    Park & Ghosh §3.4.
    """
    if spec.epsilon is None:
        return NoAccount("l-diversity is no differential privacy: it has no epsilon")
    samples = math.ceil(records / spec.block) if spec.reset else records
    drawn = spec.block if spec.reset else 1
    return PrivacyAccount(
        spec.epsilon * spec.iterations, samples, datasets, uncovered_by_proof(data, targets, spec), drawn
    )


LEARNED_ORDER = UncoveredUse(
    "the order of the features was learned from them",
    "which variables are drawn given which others was learned from the confidential data",
)


def uncovered_by_proof(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec) -> tuple[UncoveredUse, ...]:
    """Return what was learned from the confidential data besides the counts."""
    order = (LEARNED_ORDER,) if spec.order == "mutual_information" else ()
    names = (*targets, *spec.predictors)
    return (
        *order,
        *uncovered_seeds(spec.seeds),
        *learned_from_data(data, names, spec.bins, inside=spec.inside),
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
    """Draw a dataset of ``records`` records, each from a seed of its own; with reset, a seed for each block."""
    features = make_feature_keys(confidential, targets, spec)
    tables = {name: ConditionalTable.from_arrays(fit.arrays, name, features.categories[name].size) for name in targets}
    unit_records = confidential.schema.unit_records
    mixed = {
        n: uniform_draw_shares(tables[n], features.categories[n], spec, len(targets), unit_records) for n in targets
    }
    sampler = PerturbedSampler(features, tables, mixed, spec.neighbours)
    kept = features.record_codes(released, spec.predictors)
    blocks = math.ceil(records / spec.block) if spec.reset else records
    own = bool(spec.predictors)
    state = draw_seeds(features.categories, targets, spec.seeds, confidential, blocks, rng, own=own)
    if spec.reset:
        drawn = sampler.blocks(state, spec.block, rng)
        state = {name: codes.T.reshape(-1)[:records] for name, codes in drawn.items()}
    else:
        for _ in range(spec.iterations):
            state = sampler.draw_sweep({**state, **kept}, blocks, rng)
    return {
        name: features.categories[name].draw_values(state[name], confidential, spec.inside, rng) for name in targets
    }


@dataclass(frozen=True, eq=False)
class PerturbedSampler:
    """Sampler of the targets from perturbed tables.

    features: categories and keys
    tables: table of each target
    uniform_shares: how often a draw from each row is uniform, (rows + 1,)
    neighbours: share of the draws that move to an adjacent category
    """

    features: FeatureKeys
    tables: Mapping[str, ConditionalTable]
    uniform_shares: Mapping[str, Floats]
    neighbours: float = 0.0

    def draw_sweep(self, state: Mapping[str, Integers], records: int, rng: np.random.Generator) -> dict[str, Integers]:
        """Draw every target once, in turn, for ``records`` records at the same time, and return their codes."""
        now = dict(state)
        for name, table in self.tables.items():
            rows = table.find_rows(self.features.keys[name].key_of_records(now, records))
            now[name] = self._draw_feature(name, rows, self.uniform_shares[name], rng)
        return {name: now[name] for name in self.tables}

    def blocks(self, seeds: Mapping[str, Integers], size: int, rng: np.random.Generator) -> dict[str, Integers]:
        """Draw blocks of ``size`` records, one block from each seed, and return their codes, (size, blocks)."""
        count = len(next(iter(seeds.values())))
        now = dict(seeds)
        seen = {name: np.empty((size, count), dtype=np.int64) for name in self.tables}
        drawn = {name: np.empty((size, count), dtype=np.int64) for name in self.tables}
        for b in range(size):
            for name, table in self.tables.items():
                rows = table.find_rows(self.features.keys[name].key_of_records(now, count))
                # Within a block a key that was used is uniform from then on, so that the whole block costs one epsilon.
                again = (seen[name][:b] == rows).any(axis=0)
                seen[name][b] = rows
                now[name] = self._draw_feature(
                    name, np.where(again, len(table.keys), rows), self.uniform_shares[name], rng
                )
                drawn[name][b] = now[name]
        return drawn

    def _draw_feature(self, name: str, rows: Integers, mixed: Floats, rng: np.random.Generator) -> Integers:
        """Draw a category of one target for each of these rows of its table."""
        categories, table = self.features.categories[name], self.tables[name]
        drawn, counted = table.draw_categories(rows, mixed, rng)
        if self.neighbours and categories.is_ordered:
            drawn[counted] = move_to_neighbours(drawn[counted], categories.value_count, self.neighbours, rng)
        return drawn


def move_to_neighbours(codes: Integers, present: int, share: float, rng: np.random.Generator) -> Integers:
    """Move a ``share`` of the categories to an adjacent one, at random to either side, at the ends to the only one.

    Missing values stay, and so does a single category.
    """
    if present < 2:
        return codes
    step = np.where(rng.random(len(codes)) < share, 1 - 2 * rng.integers(2, size=len(codes)), 0)
    inside = np.where(codes == 0, np.abs(step), np.where(codes == present - 1, -np.abs(step), step))
    return np.where(codes < present, codes + inside, codes)


def uniform_draw_shares(
    table: ConditionalTable,
    categories: VariableCategories,
    spec: PerturbedGibbsSpec,
    features: int,
    unit_records: int = 1,
) -> Floats:
    """Return the probability that a draw from each row is uniform, (rows + 1,), where a unit has ``unit_records``."""
    if spec.l is not None:
        return table.uniform_share_by_entropy(math.log(spec.l))
    assert spec.epsilon is not None
    # A draw looks at one row of the table, a block with reset at up to ``block`` different ones. With w records of a
    # unit among r of them each costs log(1 + w / (r alpha)), and their sum is largest where w and r are.
    rows = min(unit_records, spec.block) if spec.reset else 1
    largest = largest_part(categories, spec.neighbours) * unit_records / rows
    return table.uniform_share_by_virtual_records(virtual_records(spec.epsilon / rows, features, largest))


def largest_part(categories: VariableCategories, neighbours: float) -> float:
    """Return the largest part of a record that counts for one category."""
    # Spread over neighbours, a record adds less to any one count, and fewer virtual records suffice; a missing value is
    # not spread.
    return 1 - neighbours if categories.is_ordered and not categories.has_missing else 1.0


def _table_diagnostics(name: str, table: ConditionalTable, mixed: Floats) -> Iterator[Diagnostic]:
    """Report keys and cells of a table, and the share of the records' keys that are drawn from uniformly."""
    records = np.diff(table.records_before)
    yield Diagnostic("keys", name, float(len(table.keys)))
    yield Diagnostic("cells", name, float(len(table.categories)))
    yield Diagnostic("share_drawn_uniformly", name, float((mixed[:-1] * records).sum() / records.sum()))


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbedGibbsSpec(Spec):
    """Settings of privacy, of the features' keys, and of how numbers become categories."""

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
        """Return whether records start at their own, or keys are learned from targets and predictors together."""
        return bool(self.predictors) and (self.seeds.kind == "confidential" or self.order == "mutual_information")


def fit_uncertainty(spec: PerturbedGibbsSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that virtual records move all datasets alike."""
    return FitUncertainty("estimated", "virtual records move all shares towards equal ones")


@synthesis_method(
    "Perturbed Gibbs sampler",
    spec=PerturbedGibbsSpec,
    source="Park & Ghosh §3.1-3.4, eq. 1-6",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    check=check_data,
    privacy=PrivacyDeclaration(account, counts_units=True),
    outputs=ACCOUNT,
    fit_uncertainty=fit_uncertainty,
)
def perturbed_gibbs(data: Microdata, targets: tuple[str, ...], spec: PerturbedGibbsSpec, run: Run, draws: int) -> Fit:
    """Count the table of each target, in one scan of the records.

    Arrays: of every target those of its table; noise enters when records are drawn.
    """
    features = make_feature_keys(data, targets, spec)
    codes = features.record_codes(data, (*targets, *spec.predictors))
    arrays: dict[str, NDArray[np.generic]] = {}
    found: list[Diagnostic] = []
    for name in targets:
        categories, key = features.categories[name], features.keys[name]
        table = ConditionalTable.from_records(key.key_of_records(codes, len(data)), codes[name], categories.size)
        mixed = uniform_draw_shares(table, categories, spec, len(targets), data.schema.unit_records)
        arrays |= table.to_arrays(name)
        found += _table_diagnostics(name, table, mixed)
    return Fit(arrays, tuple(found), NoTrace(COUNTED))

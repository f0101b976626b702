"""The privacy of the perturbed Gibbs sampler, enumerated; its distributions, its account, and what keeps to the plan."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.methods.privacy import PrivacyAccount, epsilon_of_draw, virtual_records
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis import perturbed_gibbs as pegs
from sfumato.engine.synthesis._conditional_tables import ConditionalTable
from sfumato.engine.synthesis.perturbed_gibbs import (
    PerturbedGibbsSpec,
    PerturbedSampler,
    make_feature_keys,
    move_to_neighbours,
)

Table = tuple[tuple[int, ...], ...]
CUBE = list(itertools.product((0, 1), repeat=3))
NAMES = ("a", "b", "c")


def schema_of(sizes: tuple[int, ...], kind: Kind = Kind.CATEGORICAL) -> Schema:
    return Schema(
        tuple(
            Variable(name, kind, levels=tuple(map(str, range(size)))) for name, size in zip(NAMES, sizes, strict=True)
        )
    )


def data_of(rows: Table, sizes: tuple[int, ...] = (2, 2, 2), kind: Kind = Kind.CATEGORICAL) -> Microdata:
    schema = schema_of(sizes, kind)
    columns = {
        v.name: pd.Categorical.from_codes([row[i] for row in rows], list(v.levels), kind is Kind.ORDINAL)
        for i, v in enumerate(schema)
    }
    return Microdata(schema, pd.DataFrame(columns))


@dataclass(frozen=True, eq=False)
class Scripted(PerturbedSampler):
    """A sampler that draws what a script says and adds up how likely that was: its distribution, without chance."""

    script: Mapping[str, Any] = ()  # type: ignore[assignment]
    surprise: Any = None

    def _draw_feature(self, name: str, rows: Any, mixed: Any, rng: Any) -> Any:
        drawn = next(self.script[name])
        table, categories = self.tables[name], self.features.categories[name]
        shares = table.draw_probabilities(np.zeros(len(mixed)))[: len(table.keys)]
        if self.neighbours and categories.is_ordered:
            shares = shares @ spread(categories.size, self.neighbours)
        shares = np.vstack([shares, np.zeros(categories.size)])
        chance = (1 - mixed[:, None]) * shares + mixed[:, None] / categories.size
        with np.errstate(divide="ignore"):
            self.surprise[:] += np.log(chance[rows, drawn])
        return drawn


def spread(size: int, share: float) -> Any:
    """How each category's record counts for the others, written out."""
    kernel = np.zeros((size, size))
    for k in range(size):
        beside = [j for j in (k - 1, k + 1) if 0 <= j < size]
        kernel[k, k] = 1 - share
        for j in beside:
            kernel[k, j] = share / len(beside)
    return kernel


def distribution(
    rows: Table,
    spec: PerturbedGibbsSpec,
    sizes: tuple[int, ...] = (2, 2, 2),
    kind: Kind = Kind.CATEGORICAL,
    unit_records: int = 1,
) -> Any:
    """Log probability of every block of records from every seed, (seeds, blocks), with noise for units of so many records."""
    data = data_of(rows, sizes, kind)
    features = make_feature_keys(data, NAMES, spec)
    fit = pegs.perturbed_gibbs(data, NAMES, spec, Run(np.random.default_rng(1)), 1)
    tables = {n: ConditionalTable.from_arrays(fit.arrays, n, s) for n, s in zip(NAMES, sizes, strict=True)}
    mixed = {
        n: pegs.uniform_draw_shares(tables[n], features.categories[n], spec, len(NAMES), unit_records) for n in NAMES
    }
    cells = list(itertools.product(*(range(size) for size in sizes)))
    length = spec.block if spec.reset else spec.iterations
    paths = list(itertools.product(cells, *([cells] * length)))
    column = {n: np.array([[step[i] for step in path] for path in paths]) for i, n in enumerate(NAMES)}
    surprise = np.zeros(len(paths))
    script = {n: iter(column[n].T[1:]) for n in NAMES}
    sampler = Scripted(features, tables, mixed, spec.neighbours, script, surprise)
    seeds = {n: column[n][:, 0] for n in NAMES}
    rng = np.random.default_rng(1)
    if spec.reset:
        sampler.blocks(seeds, length, rng)
    else:
        state = seeds
        for _ in range(length):
            state = sampler.draw_sweep(state, len(paths), rng)
    return surprise.reshape(len(cells), -1)


def tables_of_up_to(records: int) -> Iterator[Table]:
    for size in range(1, records + 1):
        yield from itertools.combinations_with_replacement(CUBE, size)


def largest_ratio(spec: PerturbedGibbsSpec, records: int = 3) -> float:
    """The largest log ratio over all tables of up to so many records and all that have one record less."""
    found = {rows: distribution(rows, spec) for rows in tables_of_up_to(records)}
    worst = 0.0
    for rows, own in found.items():
        for place in range(len(rows)):
            less = tuple(sorted(rows[:place] + rows[place + 1 :]))
            if less:
                worst = max(worst, float(np.abs(own - found[less]).max()))
    return worst


SPECS = {
    "one record": PerturbedGibbsSpec(epsilon=1.0, hash_size=2),
    "a hashed rest": PerturbedGibbsSpec(epsilon=1.0, hash_size=1),
    "all hashed": PerturbedGibbsSpec(epsilon=0.3, hash_size=0),
    "little privacy": PerturbedGibbsSpec(epsilon=9.0, hash_size=2),
    "two iterations": PerturbedGibbsSpec(epsilon=1.0, hash_size=1, iterations=2),
    "a block with reset": PerturbedGibbsSpec(epsilon=1.0, hash_size=1, reset=True, block=2),
    "a block, all hashed": PerturbedGibbsSpec(epsilon=2.0, hash_size=0, reset=True, block=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_no_record_changes_any_outcome_by_more_than_epsilon(spec: PerturbedGibbsSpec) -> None:
    records = 2 if spec.block == 3 and spec.reset else 3
    found = largest_ratio(spec, records)
    print(
        f"every table of up to {records} records: claimed {spec.epsilon * spec.iterations:g}, largest log ratio {found:.4f}"
    )
    assert found <= spec.epsilon * spec.iterations + 1e-9


CROWDS: list[Table] = [
    (),
    ((0, 0, 0),) * 400,
    ((0, 1, 1), (1, 0, 1), (1, 1, 0)) * 400,
    tuple(cell for cell in CUBE if cell not in ((0, 0, 0), (1, 1, 1))) * 400,
]
"""What a unit stands before: another record, people who are all alike, those who differ from one or two others in one value."""


def largest_ratio_of_units(spec: PerturbedGibbsSpec, most: int, noise_for: int) -> float:
    """The largest log ratio over all units of up to ``most`` records in every crowd, and the same crowd without them."""
    worst = 0.0
    for crowd in CROWDS:
        for rest in ((), *((cell,) for cell in CUBE)) if not crowd else ((),):
            others = (*crowd, *rest)
            if others:
                without = distribution(others, spec, unit_records=noise_for)
                for size in range(1, most + 1):
                    for unit in itertools.combinations_with_replacement(CUBE, size):
                        own = distribution((*others, *unit), spec, unit_records=noise_for)
                        worst = max(worst, float(np.abs(own - without).max()))
    return worst


UNIT_SPECS = ("one record", "a hashed rest", "all hashed", "two iterations", "a block with reset")


@pytest.mark.slow
@pytest.mark.parametrize("name", UNIT_SPECS)
def test_no_unit_of_two_records_changes_any_outcome_by_more_than_epsilon(name: str) -> None:
    spec = SPECS[name]
    assert spec.epsilon is not None
    claimed = spec.epsilon * spec.iterations
    kept, for_one = (largest_ratio_of_units(spec, 2, noise) for noise in (2, 1))
    print(
        f"{name}: claimed {claimed:g} of a unit of 2 records, largest log ratio {kept:.4f}; with the noise for 1 {for_one:.4f}"
    )
    assert 0.8 * claimed < kept <= claimed + 1e-9
    assert for_one > 1.2 * claimed, "the control"


@pytest.mark.slow
def test_a_block_needs_more_than_as_many_times_the_virtual_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block looks at several rows of a table, and two records of a unit may be in two of them."""
    spec = PerturbedGibbsSpec(epsilon=9.0, hash_size=2, reset=True, block=2)
    kept = largest_ratio_of_units(spec, 2, 2)
    real = pegs.virtual_records
    monkeypatch.setattr(pegs, "virtual_records", lambda epsilon, features, largest: real(9.0, features, 2.0))
    scaled = largest_ratio_of_units(spec, 2, 2)
    print(f"a block at 9: {kept:.4f}; with twice the virtual records of one record {scaled:.4f}")
    assert kept <= 9.0 + 1e-9 < scaled


@pytest.mark.slow
def test_a_unit_that_is_not_cut_breaks_the_claim() -> None:
    spec = SPECS["one record"]
    kept, uncut = (largest_ratio_of_units(spec, most, 2) for most in (2, 3))
    print(f"units of up to 2 claimed 1: {kept:.4f}; of 3 that nothing cuts {uncut:.4f}")
    assert kept <= 1.0 < uncut


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(*(st.integers(0, 2) for _ in NAMES)), min_size=6, max_size=12),
    most=st.integers(1, 5),
    epsilon=st.floats(0.05, 20),
    hash_size=st.integers(0, 2),
    neighbours=st.sampled_from([0.0, 0.2, 0.5]),
)
def test_random_units_keep_to_epsilon(
    rows: list[tuple[int, ...]], most: int, epsilon: float, hash_size: int, neighbours: float
) -> None:
    spec = PerturbedGibbsSpec(epsilon=epsilon, hash_size=hash_size, neighbours=neighbours)
    own, less = (distribution(tuple(some), spec, (3, 3, 3), Kind.ORDINAL, most) for some in (rows, rows[most:]))
    assert np.abs(own - less).max() <= epsilon + 1e-9


def test_the_distribution_sums_to_one() -> None:
    for spec in SPECS.values():
        sums = np.exp(distribution(((0, 0, 1), (1, 0, 1)), spec))
        whole = sums.sum(axis=1) if spec.reset else sums.reshape(8, -1).sum(axis=1)
        assert np.allclose(whole, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one record", "a block with reset"])
def test_with_fewer_virtual_records_as_the_printed_inequality_allows_it_is_not_private(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pegs, "virtual_records", lambda *given: virtual_records(*given) / 4)
    found = largest_ratio(SPECS[name], 3)
    print(f"{name}, a quarter of the virtual records: claimed 1, largest log ratio {found:.4f}")
    assert found > 1.0


@pytest.mark.slow
def test_a_block_without_reset_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_reset(self: PerturbedSampler, seeds: Mapping[str, Any], size: int, rng: Any) -> dict[str, Any]:
        now = dict(seeds)
        for _ in range(size):
            now = self.draw_sweep(now, len(now["a"]), rng)
        return now

    monkeypatch.setattr(PerturbedSampler, "blocks", without_reset)
    assert largest_ratio(SPECS["a block, all hashed"], 2) > 2.0


rows_of = st.lists(st.tuples(*(st.integers(0, 2) for _ in NAMES)), min_size=2, max_size=12)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    rows=rows_of,
    epsilon=st.floats(0.05, 20),
    hash_size=st.integers(0, 2),
    reset=st.booleans(),
    neighbours=st.sampled_from([0.0, 0.2, 0.5]),
)
def test_random_tables_keep_to_epsilon(
    rows: list[tuple[int, ...]], epsilon: float, hash_size: int, reset: bool, neighbours: float
) -> None:
    spec = PerturbedGibbsSpec(epsilon=epsilon, hash_size=hash_size, reset=reset, block=1, neighbours=neighbours)
    sizes = (3, 3, 3)
    own = distribution(tuple(rows), spec, sizes, Kind.ORDINAL)
    less = distribution(tuple(rows[1:]), spec, sizes, Kind.ORDINAL)
    assert np.abs(own - less).max() <= epsilon + 1e-9


def test_spreading_a_record_needs_the_noise_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = PerturbedGibbsSpec(epsilon=1.0, hash_size=2, neighbours=0.5)
    rows = ((0, 0, 0), *((0, 0, 2),) * 6)
    pairs = [(distribution(rows, spec, (3, 3, 3), Kind.ORDINAL), distribution(rows[1:], spec, (3, 3, 3), Kind.ORDINAL))]
    monkeypatch.setattr(pegs, "largest_part", lambda *_: 0.1)
    pairs.append(
        (distribution(rows, spec, (3, 3, 3), Kind.ORDINAL), distribution(rows[1:], spec, (3, 3, 3), Kind.ORDINAL))
    )
    kept, broken = (float(np.abs(own - less).max()) for own, less in pairs)
    assert kept <= 1.0 < broken


def fit_and_draw(
    rows: Table, spec: PerturbedGibbsSpec, records: int, sizes: tuple[int, ...], kind: Kind = Kind.ORDINAL
) -> Any:
    data = data_of(rows, sizes, kind)
    fit = pegs.perturbed_gibbs(data, NAMES, spec, Run(np.random.default_rng(1)), 1)
    made = pegs.joint_draw(fit, spec, NAMES, data, data, 0, records, np.random.default_rng(5))
    return np.column_stack([made[name] for name in NAMES]).astype(np.int64)


@pytest.mark.parametrize(
    "spec",
    [
        PerturbedGibbsSpec(epsilon=3.0, hash_size=1),
        PerturbedGibbsSpec(epsilon=3.0, hash_size=2, neighbours=0.4),
        PerturbedGibbsSpec(epsilon=3.0, hash_size=1, iterations=2),
        PerturbedGibbsSpec(epsilon=6.0, hash_size=1, reset=True, block=2),
        PerturbedGibbsSpec(privacy="l_diversity", l=1.7, hash_size=1),
    ],
    ids=["one", "neighbours", "iterations", "reset", "l"],
)
def test_what_is_drawn_has_the_distribution_that_was_enumerated(spec: PerturbedGibbsSpec) -> None:
    rows, sizes = ((0, 0, 0), (0, 1, 2), (1, 1, 2), (1, 1, 2), (0, 1, 1)), (2, 2, 3)
    length = spec.block if spec.reset else spec.iterations
    chance = np.exp(distribution(rows, spec, sizes, Kind.ORDINAL)).mean(axis=0).reshape((12,) * length)
    if not spec.reset:
        chance = chance.reshape(-1, 12).sum(axis=0)
    found = fit_and_draw(rows, spec, 60_000, sizes)
    cells = found @ np.array([6, 3, 1])
    if spec.reset:
        cells = cells.reshape(-1, length) @ np.array([12, 1])
    counts = np.bincount(cells, minlength=chance.size)
    expected = chance.reshape(-1) * counts.sum()
    possible = expected > 0
    assert not counts[~possible].any()
    assert stats.chisquare(counts[possible], expected[possible]).pvalue > 1e-4
    assert stats.chisquare(np.roll(counts[possible], 1), expected[possible]).pvalue < 1e-9, "the negative control"


def test_epsilon_and_back() -> None:
    for epsilon in (0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0):
        for features in (1, 3, 13):
            alpha = virtual_records(epsilon, features)
            assert epsilon_of_draw(alpha, features) == pytest.approx(epsilon, rel=1e-12)
        print(f"epsilon {epsilon:g} of 13 features: alpha {alpha:.6g}, and back {epsilon_of_draw(alpha, 13):.12g}")
    assert virtual_records(math.log(2), 1) == pytest.approx(1.0)
    assert virtual_records(1e6, 1) > 0


@pytest.mark.parametrize(
    ("spec", "samples"),
    [
        (PerturbedGibbsSpec(epsilon=0.5), 1000),
        (PerturbedGibbsSpec(epsilon=0.5, iterations=3), 3000),
        (PerturbedGibbsSpec(epsilon=0.5, reset=True, block=10), 100),
        (PerturbedGibbsSpec(epsilon=0.5, reset=True, block=7), 143),
    ],
    ids=["a record", "iterations", "blocks", "a block that is not full"],
)
def test_the_account_of_n_samples_is_n_epsilon(spec: PerturbedGibbsSpec, samples: int) -> None:
    account = pegs.account(data_of(((0, 0, 1), (1, 1, 0))), NAMES, spec, 1000, 2)
    assert isinstance(account, PrivacyAccount)
    print(f"1,000 records, {samples:,} samples at 0.5: {account.noise / 2:g} a dataset, {account.release} both")
    assert account.noise == pytest.approx(2 * samples * 0.5, rel=1e-12)
    assert (account.release, account.substitution) == (account.noise, 2 * account.noise)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rows=rows_of, share=st.floats(0.0, 1.0))
def test_the_entropy_is_met_and_with_equality_where_noise_was_needed(rows: list[tuple[int, ...]], share: float) -> None:
    size, least = 3, share * math.log(3)
    codes = np.array(rows)
    table = ConditionalTable.from_records(codes[:, 1] * 3 + codes[:, 2], codes[:, 0], size)
    mixed = table.uniform_share_by_entropy(least)
    chance = table.draw_probabilities(mixed)
    entropy = -np.where(chance > 0, chance * np.log(np.maximum(chance, 1e-300)), 0).sum(axis=1)
    bare = table.draw_probabilities(np.append(np.zeros(len(table.keys)), 1.0))
    without = -np.where(bare > 0, bare * np.log(np.maximum(bare, 1e-300)), 0).sum(axis=1)
    assert (entropy >= least - 1e-9).all()
    needed = (without < least)[:-1]
    assert np.allclose(entropy[:-1][needed], least, atol=1e-9)
    assert (mixed[:-1][~needed] == 0).all()


def test_neighbours_are_beside() -> None:
    codes = np.repeat(np.arange(5), 20_000)
    found = move_to_neighbours(codes, 4, 0.3, np.random.default_rng(1))
    assert (np.abs(found - codes) <= 1).all()
    assert (found[codes == 4] == 4).all(), "a missing value stays"
    assert ((found >= 0) & (found <= 4)).all()
    assert not ((codes < 4) & (found == 4)).any()
    for k in range(4):
        assert (found[codes == k] != k).mean() == pytest.approx(0.3, abs=0.02)


def test_a_record_that_no_table_holds_is_drawn_uniformly() -> None:
    spec = PerturbedGibbsSpec(epsilon=50.0, hash_size=2)
    table = ConditionalTable.from_records(np.array([3, 3]), np.array([0, 0]), 2)
    mixed = pegs.uniform_draw_shares(
        table, make_feature_keys(data_of(((0, 0, 1), (1, 1, 0))), NAMES, spec).categories["a"], spec, 3
    )
    draws, _ = table.draw_categories(np.full(4000, 1), mixed, np.random.default_rng(2))
    assert stats.binomtest(int(draws.sum()), 4000).pvalue > 1e-4
    assert replace(spec, epsilon=1.0) != spec

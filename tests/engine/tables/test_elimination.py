"""The greedy rule hides what a peer hides; what follows modulo a prime is what follows by fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from table_oracle import DATA, RationalSpan, greedy_by_fractions, peer_cases, random_margins

from sfumato.engine.errors import NotComputable
from sfumato.engine.tables.elimination import (
    PRIME,
    SECOND_PRIME,
    centre_modulo,
    find_following,
    find_known_pairs,
    find_known_to_unit,
    invert_modulo,
    multiply_modulo,
    suppress_cells,
)

SEEDS = st.integers(0, 2**32 - 1)


def cells_of(case: dict[str, Any]) -> Any:
    atoms, cells = case["members"]
    return sparse.csc_matrix((np.ones(len(atoms), dtype=np.int64), (atoms, cells)), (case["atoms"], case["cells"]))


@pytest.mark.slow
@pytest.mark.parametrize("case", peer_cases(), ids=lambda case: case["name"])
@pytest.mark.parametrize("prime", [PRIME, SECOND_PRIME])
def test_the_peer_hides_the_same_cells(case: dict[str, Any], prime: int) -> None:
    columns, primary = cells_of(case), np.array(case["primary"])
    order = np.array([cell for cell in case["order"] if cell not in set(case["primary"])])
    found = suppress_cells(columns, order, columns[:, primary], prime=prime)
    hidden = np.flatnonzero(~found.published)
    assert not found.unprotected.any()
    if case["singleton_atoms"]:
        # The peer's handling of single contributors is a heuristic of its own: without it the answer is the other case's.
        assert len(hidden) == 521 < len(case["suppressed"])
        # With those who know a sum taken in, nobody of them learns another one.
        values = np.array(case["published"]["ant"])
        sole = np.flatnonzero(values[primary] == 1)
        assert find_known_pairs(columns, columns[:, found.published], primary[sole], primary)
        safe = suppress_cells(columns, order, columns[:, primary], sole=sole, prime=prime)
        left = find_known_pairs(columns, columns[:, safe.published], primary[sole], primary)
        # Cells with equal columns are one cell.
        assert all((columns[:, a] != columns[:, b]).nnz == 0 for a, b, _ in left)
    else:
        assert hidden.tolist() == case["suppressed"]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="public data are not at hand")
def test_the_peer_hides_the_same_cells_of_14160() -> None:
    case = np.load(DATA / "sosial_fiktiv.npz")
    columns = sparse.csc_matrix((np.ones(len(case["atom"]), dtype=np.int64), (case["atom"], case["cell"])))
    order = case["order"][~np.isin(case["order"], case["primary"])]
    found = suppress_cells(columns, order, columns[:, case["primary"]])
    assert np.flatnonzero(~found.published).tolist() == case["suppressed"].tolist()
    assert not find_following(columns[:, case["primary"]], columns[:, found.published]).any()


@pytest.mark.slow
@given(SEEDS, st.integers(1, 3), st.sampled_from([2, 3, 64]))
@settings(max_examples=30, deadline=None)
def test_the_greedy_rule_is_that_of_fractions(seed: int, tables: int, batch: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, counts = random_margins(rng, tables)
    values = counts @ matrix
    protected = np.flatnonzero(values < 3)
    order = [cell for cell in rng.permutation(matrix.shape[1]).tolist() if cell not in set(protected.tolist())]
    columns = sparse.csc_matrix(matrix)
    expected = greedy_by_fractions(matrix, order, protected.tolist())
    for prime in (PRIME, SECOND_PRIME):
        found = suppress_cells(
            columns, np.array(order, dtype=np.int64), columns[:, protected], prime=prime, batch=batch
        )
        assert set(np.flatnonzero(found.published).tolist()) == expected


@pytest.mark.slow
@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_what_follows_is_what_follows_by_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, _ = random_margins(rng, 3)
    columns = sparse.csc_matrix(matrix)
    printed = np.flatnonzero(rng.random(matrix.shape[1]) < rng.random())
    span = RationalSpan.of(matrix, printed)
    expected = [span.contains(matrix[:, cell].tolist()) for cell in range(matrix.shape[1])]
    for prime in (PRIME, SECOND_PRIME):
        assert find_following(columns, columns[:, printed], prime).tolist() == expected


@pytest.mark.slow
@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_what_follows_for_a_contributor_is_what_follows_by_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, _ = random_margins(rng, 2)
    columns, cells = sparse.csc_matrix(matrix), np.arange(matrix.shape[1])
    printed = np.flatnonzero(rng.random(matrix.shape[1]) < 0.4)
    span = RationalSpan.of(matrix, printed)
    free = [cell for cell in cells.tolist() if not span.contains(matrix[:, cell].tolist())]
    expected = set()
    for cell in free:
        with_it = RationalSpan.of(matrix, [*printed, cell])
        expected |= {(cell, other) for other in free if other != cell and with_it.contains(matrix[:, other].tolist())}
    triples = find_known_pairs(columns, columns[:, printed], cells, cells)
    assert {(a, b) for a, b, _ in triples} == expected
    for a, b, factor in triples:
        # The factor is a fraction modulo the prime: its column follows.
        virtual = sparse.csc_matrix(np.mod(matrix[:, [b]] - factor * matrix[:, [a]], PRIME))
        assert find_following(virtual, columns[:, printed]).all()
    readers = [rng.choice(cells, 2, replace=False) for _ in range(3)]
    for own, found in zip(readers, find_known_to_unit(columns, columns[:, printed], readers, cells), strict=True):
        with_own = RationalSpan.of(matrix, [*printed, *own])
        assert found.tolist() == [
            cell for cell in free if cell not in set(own.tolist()) and with_own.contains(matrix[:, cell].tolist())
        ]


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_nobody_who_knows_a_sum_learns_another_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, counts = random_margins(rng, 3)
    values, columns = counts @ matrix, sparse.csc_matrix(matrix)
    protected = np.flatnonzero(values < 3)
    sole = np.flatnonzero(values[protected] == 1)
    order = np.setdiff1d(np.argsort(-values, kind="stable"), protected, assume_unique=True)
    found = suppress_cells(columns, order, columns[:, protected], sole=sole, batch=4)
    printed = np.flatnonzero(found.published)
    for cell in protected[sole]:
        span = RationalSpan.of(matrix, [*printed, cell])
        others = [other for other in protected if other != cell]
        assert not any(span.contains(matrix[:, other].tolist()) for other in others)


def test_frozen_cells_are_printed_and_what_follows_from_them_is_named() -> None:
    # a, b, a + b, c, d, c + d, with a + b and b frozen: a follows whatever is done; c is still protected.
    matrix = np.array([[1, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 1], [0, 0, 0, 0, 1, 1]])
    columns = sparse.csc_matrix(matrix)
    found = suppress_cells(columns, np.array([5, 4]), columns[:, [0, 3]], frozen=[1, 2])
    assert found.unprotected.tolist() == [True, False]
    assert found.published.tolist() == [False, True, True, False, False, True]


def test_a_system_that_is_too_large_is_not_looked_at() -> None:
    columns = sparse.csc_matrix((300_000, 5_000), dtype=np.int64)
    with pytest.raises(NotComputable, match="300,000 different combinations of groups"):
        suppress_cells(columns, np.arange(5_000), columns[:, [0]])


def test_without_protected_cells_everything_is_printed() -> None:
    columns = sparse.csc_matrix(np.eye(3, dtype=np.int64))
    assert suppress_cells(columns, np.arange(3), columns[:, []]).published.all()


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_arithmetic_modulo_a_prime(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for prime in (PRIME, SECOND_PRIME):
        left, right = rng.integers(0, prime, (3, 300)), rng.integers(0, prime, (300, 4))
        found = multiply_modulo(
            centre_modulo(left.astype(float), prime), centre_modulo(right.astype(float), prime), prime
        )
        expected = [
            [sum(int(a) * int(b) for a, b in zip(row, col, strict=True)) % prime for col in right.T] for row in left
        ]
        assert (found % prime).astype(int).tolist() == expected
        numbers = rng.integers(1, prime, rng.integers(1, 40))
        assert (numbers * invert_modulo(numbers, prime) % prime == 1).all()

"""What follows from released counts, compared with lists of all tables of whole numbers that have them.

pytest -s -m study tests/engine/margins/test_margin_audit.py    # 500 random tables, with seconds of both
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from whole_tables import counts_that_follow

from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.margins.domain import Clique, Domain, margin_of
from sfumato.engine.margins.margin_audit import MarginAudit, PublishedBounds, audit_margins, known_record_range
from sfumato.engine.margins.record_moves import find_closed_groupings, list_groupings

DOMAIN = Domain((2, 2, 2))
PAIRS: list[Clique] = [(0, 1), (0, 2), (1, 2)]
UNKNOWN = (0.0, math.inf)
MOST_TABLES = 5_000
"""Tables that the plain search looks at; cases of more are left out."""


def coarse(table: np.ndarray, limit: int) -> np.ndarray:
    return np.asarray(limit * np.floor(table / limit + 0.5))


def codes_of(truth: np.ndarray) -> np.ndarray:
    """The records of a table of counts."""
    places = np.argwhere(truth > 0)
    return np.repeat(places, truth[truth > 0].astype(int), axis=0)


def released_of(truth: np.ndarray, cliques: Sequence[Clique], limit: int = 0) -> list[PublishedBounds]:
    """Margins rounded to multiples of a limit; 0: as they are."""
    margins = [margin_of(truth, tuple(range(truth.ndim)), clique) for clique in cliques]
    if not limit:
        return [PublishedBounds.from_exact(clique, own) for clique, own in zip(cliques, margins, strict=True)]
    return [
        PublishedBounds.from_coarsened(c, coarse(own, limit), limit) for c, own in zip(cliques, margins, strict=True)
    ]


def audited(
    truth: np.ndarray, released: list[PublishedBounds], limit: int, known: bool = False, **more: int
) -> MarginAudit:
    records = (float(truth.sum()), float(truth.sum())) if known else UNKNOWN
    return audit_margins(Domain(truth.shape), released, codes_of(truth), limit, records, **more)


@pytest.mark.slow
def test_all_pairs_of_four_variables_give_counts_away_that_no_two_of_them_give() -> None:
    truth = np.random.default_rng(1).poisson(0.5, (2, 2, 2, 2)).astype(float)
    pairs = list(itertools.combinations(range(4), 2))
    released = released_of(truth, pairs)
    whole = audited(truth, released, 3)
    every = counts_that_follow(truth.shape, margins(released), truth, 3, 0, math.inf, MOST_TABLES)
    assert every is not None
    assert whole.exact == len(every) > 0
    assert _two_at_a_time_find_fewer(truth, released, 3, whole)
    assert any(len(variables) > 2 for variables, _ in whole.variables), "counts that no table has follow"


def test_the_number_of_rows_gives_away_what_a_rounded_table_does_not() -> None:
    """18 people, 4 of them ill, and a limit of 10: the table says no: 10, ill: 0, which are 5 to 14 and 0 to 4."""
    truth = np.array([14.0, 4.0])
    released = [PublishedBounds.from_coarsened((0,), coarse(truth, 10), 10)]
    assert audited(truth, released, 20, known=True).exact == 2
    assert audited(truth, released, 20).exact == 0
    rounded = known_record_range(released_rows(18, 20))
    assert audit_margins(Domain((2,)), released, codes_of(truth), 20, rounded).exact == 0


def test_a_number_of_rows_says_how_many_records_there_are_or_to_what_they_are_rounded() -> None:
    assert known_record_range(released_rows(18, 18)) == known_record_range(released_rows(18, 20, 18)) == (18, 18)
    assert known_record_range(released_rows(18, 20)) == (15, 25)
    assert known_record_range(released_rows(1234, 1000, 1200)) == (1150, 1250)
    assert known_record_range(released_rows(0, 0)) == (0, 0)
    assert known_record_range(released_rows(3, 0)) == (0, math.inf), "a release without rows says nothing"
    assert known_record_range(released_rows(18, 500)) == known_record_range([]) == UNKNOWN


def released_rows(records: int, *rows: int) -> list[ReleaseProvenance]:
    """Releases of the same records, with one dataset each."""
    return [ReleaseProvenance("synthetic", records, (one,), (), ()) for one in rows]


def margins(released: Sequence[PublishedBounds]) -> list[tuple[Clique, np.ndarray, np.ndarray]]:
    return [(one.clique, one.low, one.high) for one in released]


def random_table(seed: int) -> tuple[np.ndarray, list[Clique], int]:
    """Rings, and all pairs, of three to six variables with few levels; a few people, their margins exact or rounded to 3."""
    rng = np.random.default_rng(seed)
    d = (3, 4, 4, 5, 6)[seed % 5]
    sizes = tuple(rng.integers(2, 4 if d <= 4 else 3, d).tolist())
    ring = bool(rng.integers(2))
    cliques = [tuple(sorted((i, (i + 1) % d))) for i in range(d)] if ring else list(itertools.combinations(range(d), 2))
    shares = rng.dirichlet(np.full(math.prod(sizes), 0.3))
    truth = rng.multinomial(int(rng.integers(4, 13)), shares).reshape(sizes).astype(float)
    return truth, cliques, int(rng.choice([0, 3]))


def compare(seeds: Sequence[int]) -> None:
    """No small count that is the same in all tables of whole numbers is missed, and none is named that is not."""
    cases = skipped = follow = missed = alone = 0
    plain = ours = 0.0
    for seed in seeds:
        truth, cliques, limit = random_table(seed)
        released, small = released_of(truth, cliques, limit), limit or 10
        for known in (True, False):
            low, high = (truth.sum(),) * 2 if known else UNKNOWN
            start = time.process_time()
            every = counts_that_follow(truth.shape, margins(released), truth, small, low, high, MOST_TABLES)
            between = time.process_time()
            if every is None:
                skipped += 1
                continue
            whole = audited(truth, released, small, known, max_programs=10**5)
            ours, plain = ours + time.process_time() - between, plain + between - start
            cases, follow = cases + 1, follow + len(every)
            missed += abs(len(every) - whole.exact)
            assert whole.undecided == whole.too_large == 0
            _no_open_record_is_counted(truth, released, every, small, (low, high))
            alone += seed % 5 == 2 and not known and _two_at_a_time_find_fewer(truth, released, small, whole)
    print(
        f"\n{cases} cases ({skipped} with more than {MOST_TABLES:,} tables left out): {follow} small counts follow, {missed} missed or too many"
    )
    print(f"plain search {plain:.1f} s, audit {ours:.1f} s of processor time")
    assert missed == 0
    assert follow > 0
    assert alone > 0, "the control: margins two at a time find fewer"


def _two_at_a_time_find_fewer(
    truth: np.ndarray, released: list[PublishedBounds], limit: int, whole: MarginAudit
) -> bool:
    """Whether audits of every two margins that share a variable find fewer counts of some variables, even all of them added up."""
    parts = Counter[Clique]()
    for a, b in itertools.combinations(released, 2):
        if set(a.clique) & set(b.clique):
            parts.update(dict(audited(truth, [a, b], limit).variables))
    return any(number > parts[variables] for variables, number in whole.variables)


def _no_open_record_is_counted(
    truth: np.ndarray,
    released: Sequence[PublishedBounds],
    every: set[tuple[tuple[int, int], ...]],
    limit: int,
    records: tuple[float, float],
) -> None:
    """Moves of records call no count open that follows, and some that do not."""
    codes, sizes = codes_of(truth), truth.shape
    groupings = list_groupings(range(len(sizes)), sizes, released)
    closed = find_closed_groupings(sizes, released, codes, groupings, limit, np.random.default_rng(0), records)
    at = {grouping.variable: place for place, grouping in enumerate(groupings)}
    for count in every:
        counted = np.all([codes[:, variable] == level for variable, level in count], axis=0)
        assert closed[np.ix_(counted, [at[variable] for variable, _ in count])].all()


@pytest.mark.slow
def test_no_count_is_missed_that_follows_from_small_tables_of_whole_numbers() -> None:
    compare(range(5))  # every number of variables once


@pytest.mark.study
def test_no_count_is_missed_that_follows_from_500_small_tables_of_whole_numbers() -> None:
    compare(range(500))


def test_exact_margins_give_small_counts_away_and_coarse_ones_do_not() -> None:
    truth = np.array([[[30.0, 0], [2, 40]], [[1, 50], [0, 60]]])
    exact = audited(truth, released_of(truth, PAIRS), 10)
    assert exact.exact == exact.looked_at > 0
    rounded = audited(truth, released_of(truth, PAIRS, 10), 10, known=True)
    assert rounded.exact == rounded.undecided == rounded.too_large == 0


def test_two_finely_rounded_margins_with_a_known_total_can_give_a_count_away() -> None:
    """All other cells are said to be 0 by structural zeros: what is left is the number of records."""
    truth = np.array([[2.0, 0.0], [0.0, 0.0]])
    impossible = np.array([[False, True], [True, True]])
    released = [PublishedBounds.from_coarsened((0, 1), coarse(truth, 10), 10, impossible)]
    assert audited(truth, released, 10).exact == 0
    assert audited(truth, released, 10, known=True).exact == 1


def test_what_too_many_programs_would_have_to_find_out_is_undecided_and_not_safe() -> None:
    truth = np.array([[[30.0, 0], [2, 40]], [[1, 50], [0, 60]]])
    found = audited(truth, released_of(truth, PAIRS), 10, max_programs=0)
    assert found.undecided > 0
    assert found.exact + found.undecided == found.looked_at, "what equations show needs no program"
    assert audited(truth, released_of(truth, PAIRS), 10).undecided == 0


@pytest.mark.slow
def test_a_system_that_is_too_large_never_counts_as_looked_at_unless_moves_of_records_prove_it() -> None:
    truth = np.random.default_rng(1).poisson(0.5, (2, 2, 2, 2)).astype(float)
    pairs = list(itertools.combinations(range(4), 2))
    found = audited(truth, released_of(truth, pairs), 3, max_cells=8)
    assert found.too_large == 1
    assert found.undecided > 0
    assert 0 < found.exact <= audited(truth, released_of(truth, pairs), 3).exact, "what follows from parts is named"
    rich = np.random.default_rng(2).poisson(200.0, (2, 2, 2, 2)).astype(float)
    rich[0, 0, 0, 0] = 1
    loose = audited(rich, released_of(rich, pairs, 10), 10, known=True, max_cells=8)
    assert loose.exact == loose.undecided == loose.too_large == 0
    assert loose.looked_at > 0


def test_two_releases_together_give_away_what_neither_does_alone() -> None:
    """Counts by whole and by half categories, rounded to 10 and to 15: every table that has both is listed, and the same counts follow."""
    truth = np.array([8.0, 12.0, 7.0])
    domain = Domain((3,))
    fine = PublishedBounds.from_coarsened((0,), coarse(truth, 10), 10)
    halves = np.array([0, 0, 1])
    rough = PublishedBounds.from_coarsened((0,), coarse(np.array([20.0, 7.0]), 15), 15)
    rough = PublishedBounds((0,), rough.low, rough.high, (halves,))
    every = np.array(list(itertools.product(range(40), repeat=3)), dtype=float)
    for released in ([fine], [rough], [fine, rough]):
        kept = np.ones(len(every), dtype=bool)
        for one in released:
            sums = every if not one.groups else np.column_stack([every[:, :2].sum(axis=1), every[:, 2]])
            kept &= ((sums >= one.low) & (sums <= one.high)).all(axis=1)
        shown = np.column_stack([every, every[:, :2].sum(axis=1)] if len(released) > 1 else [every])
        exact = int(((np.ptp(shown[kept], axis=0) < 1) & (shown[kept][0] < 15)).sum())
        found = audit_margins(domain, released, codes_of(truth), 15)
        assert found.undecided == 0
        assert found.exact == exact
    tight = PublishedBounds((0,), np.array([8.0, 12.0, 0.0]), np.array([14.0, 14.0, 99.0]))
    total = PublishedBounds((0,), np.array([20.0, 0.0]), np.array([20.0, 99.0]), (halves,))
    alone = [audit_margins(domain, [one], codes_of(truth), 15).exact for one in (tight, total)]
    both = audit_margins(domain, [tight, total], codes_of(truth), 15)
    assert alone == [0, 0]
    assert both.exact == 2, "8 and 12 are all that is left, and their sum of 20 is no small count"

"""Share of a release's rows that repeat confidential records, compared with an independent sample.

If the release keeps no variable, the baseline is the share of the records that equal another one, which is exact and
unbiased for a reference of n - 1 records. If it keeps some, the synthesised values of the nearest other record take the
place of the record's own (``sfumato.engine.adversary.neighbours``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers
from ..data.bits import Keys
from ..data.long_arrays import compress_column, compute_column, long_blocks, marked_rows, take_block
from ..data.microdata import Microdata
from ..data.sorting import count_by_value, is_run_start, sort_with_order, sorted_search, sorted_values
from .cells import Cells, count_occurrences, find_positions, row_keys, run_starts_and_lengths
from .likeness import MemorisationShare, share_standard_error
from .membership_evidence import MembershipProbe, ProbeCounts, count_probe
from .neighbours import NeighbourPairs, nearest_neighbour_pairs


def measure_equal_records(
    confidential: Microdata,
    own: Cells,
    releases: Sequence[Cells],
    kept: Sequence[str],
    drawn: Sequence[str],
    pairs: NeighbourPairs | None = None,
) -> MemorisationShare:
    """Measure the mean share of released rows, over the datasets, that equal a confidential record in all variables.

    ``own`` and ``releases`` are the cells of the confidential data and of each dataset, ``pairs`` the nearest records
    in the kept variables if known. ``records`` of the result are those repeated.
    """
    n = len(confidential)
    # of a long table each column of keys counts: those of the drawn values are the difference
    kept_rows, names = row_keys(own, kept, n), (*kept, *drawn)
    drawn_rows = row_keys(own, drawn, n)
    rows: Keys = compute_column(n, np.uint64, lambda some: kept_rows[some] + drawn_rows[some])
    order, ordered = sort_with_order(rows)
    lengths, copied = list[int](), False
    classes = _KeptValueClasses.from_rows(kept_rows, order, ordered) if kept else None
    del order
    by_one = list[float]()

    def sorted_release_rows() -> Iterator[Keys]:
        """Yield the sorted row keys of each dataset and note what later steps need of them."""
        nonlocal copied
        for cells in releases:
            one = sorted_values(row_keys(cells, names))
            copied |= len(one) == n and all(np.array_equal(one[some], ordered[some]) for some in long_blocks(n))
            lengths.append(len(one))
            if classes is not None:
                by_one.append(classes.share_lost_by_leaving_one_out(one))
            yield one

    shares, taken = _shares_of_matching_rows(compress_column(ordered, is_run_start(ordered)), sorted_release_rows())
    is_repeated = compute_column(n, np.bool_, lambda some: find_positions(taken, rows[some]) >= 0)
    value, repeated = float(np.mean(shares)), marked_rows(is_repeated)
    # A dataset with exactly the confidential rows is a copy, however alike these are.
    if copied:
        return MemorisationShare(1.0, 0.0, records=repeated)
    if classes is None:
        repeats = run_starts_and_lengths(ordered)[1]
        several = sum(int(repeats[some][repeats[some] > 1].sum()) for some in long_blocks(len(repeats)))
        baseline, cases = several / n, n
    else:
        pairs = nearest_neighbour_pairs(confidential, kept, rows) if pairs is None else pairs
        own_kept, other_kept = take_block(kept_rows, pairs.own), take_block(kept_rows, pairs.other)
        made = own_kept + (take_block(rows, pairs.other) - other_kept)
        found = sorted_search(ordered, made, "right") - sorted_search(ordered, made)
        alike = own_kept == other_kept
        found -= alike
        # The other record is compared with its class without itself, one record fewer than a released row is, so the
        # gain by one more is added. It is at most what the records themselves show, since a release that copies gains
        # more.
        one_fewer = pairs.weighted_share(
            np.where(alike & (found == 1), 1 / np.maximum(take_block(classes.sizes, pairs.own) - 1, 1), 0.0)
        )
        baseline = min(
            1.0, pairs.weighted_share((found > 0).astype(np.float64)) + min(one_fewer, float(np.mean(by_one)))
        )
        cases = pairs.cases
    noise = 2 * float(np.hypot(share_standard_error(baseline, cases), share_standard_error(baseline, lengths[0])))
    return MemorisationShare(value, baseline, 1.0, noise, repeated)


@dataclass(frozen=True, eq=False)
class _KeptValueClasses:
    """Classes of records with equal kept values.

    sizes: class size of each record, (n,)
    rows: distinct rows, ascending, (u,)
    sizes_of_single: class size of a row that one record has, 0 of any other row and in a class of one, (u,)
    """

    sizes: Integers
    rows: Keys
    sizes_of_single: Integers

    @classmethod
    def from_rows(cls, kept_rows: Keys, order: Integers, ascending: Keys) -> _KeptValueClasses:
        """Form the classes from the keys of the kept values, and the order of the row keys and these ascending, (n,) each."""
        # numbers of records below 2^31 at half the memory of others
        whole = np.dtype(np.int32 if len(order) < 1 << 31 else np.int64)
        repeats, n = count_occurrences(kept_rows, kept_rows), len(order)
        sizes = compute_column(n, whole, repeats.__getitem__)
        del repeats
        starts = is_run_start(ascending)

        def sizes_of_single(some: slice) -> NDArray[Any]:
            """Return the class sizes of the rows of single records, 0 of others and in classes of one."""
            is_last = np.append(starts[some.start + 1 : some.stop + 1], np.ones(int(some.stop == n), dtype=np.bool_))
            alike = take_block(sizes, order[some])
            return np.where(is_last & (alike > 1), alike, 0)

        singles = compress_column(compute_column(n, whole, sizes_of_single), starts)
        return cls(sizes, compress_column(ascending, starts), singles)

    def share_lost_by_leaving_one_out(self, released: Keys) -> float:
        """Return the expected share of released rows (k,) that lose their record when one of the class is left out."""
        places = find_positions(self.rows, released)

        def sizes_of_found(some: slice) -> NDArray[Any]:
            found = take_block(self.sizes_of_single, places[some][places[some] >= 0])
            return found[found > 0]

        # a row is lost where the record that is left out is the one that has it
        alike, counts = count_by_value(map(sizes_of_found, long_blocks(len(places))))
        return float((counts / alike).sum()) / max(1, len(released))


def count_members_with_released_row(
    rows: Keys, members: int, releases: Sequence[Keys], unit_of: Integers | None = None
) -> ProbeCounts:
    """Count the members and hold-out people whose row some dataset has; ``rows`` (N,) lists members first.

    Units with such a row are counted, numbered from 0, where ``unit_of`` (N,) is given.
    """
    shown = np.zeros(len(rows), dtype=np.bool_)
    for one in releases:
        shown |= count_occurrences(rows, one) > 0
    # A model that overproduces common rows equals more rows than an independent sample, but of hold-out people as
    # often.
    return count_probe(MembershipProbe("all people", "", np.flatnonzero(shown)), members, len(rows), unit_of=unit_of)


def _shares_of_matching_rows(values: Keys, releases: Iterable[Keys]) -> tuple[list[float], Keys]:
    """Return each dataset's share of keys (k,) that are among ascending values (n,), and the values matched by any."""
    shares, taken = [], np.zeros(len(values), dtype=np.bool_)
    for one in releases:
        places, matching = find_positions(values, one), 0
        for rows in long_blocks(len(places)):
            found = places[rows][places[rows] >= 0]
            taken[found] = True
            matching += len(found)
        shares.append(matching / len(one) if len(one) else 0.0)
    return shares, compress_column(values, taken)

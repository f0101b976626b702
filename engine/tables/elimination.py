"""Which cells may be printed such that no protected sum follows: Gaussian elimination modulo a prime.

A cell is a sum of atoms, a column of a matrix X of zeros and ones (atoms, cells). What is printed lets a reader work out
every column in the span of the printed ones. A protected column must not lie in it.

    atoms that the printed cells leave free span the null space {u : X_K' u = 0}; a column x follows exactly where
    x'u = 0 for all of them, and a random u shows that with a probability of error of about 1 / p

p = 2^31 - 1: products of two numbers below it fit 64 bits. A dependence over the rationals is one modulo p; the reverse
fails with probability about 1 / p, towards hiding too much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..errors import NotComputable
from ..wording import count_noun

PRIME = 2**31 - 1
SECOND_PRIME = 2**31 - 19
"""Another prime just below 2^31: both give the same answer, but for chance."""
BATCH = 64
"""Random vectors that are kept at a time: each printed cell that says something new uses one up."""
AUDIT_BATCH = 256
"""Columns that are taken in at a time where all of them are printed."""
SPARE_VECTORS = 3
"""Vectors that a batch keeps to the end: two tell whether columns are parallel, a third whether pairs of them are."""
MAX_EXACT_TERMS = 128
"""Products of 16 and of 31 bits that floating point adds up exactly, with a bit to spare."""
MAX_MATRIX_ENTRIES = 200_000_000
"""Entries that the matrix of a system can come to, 8 bytes each; a larger system is not looked at."""
ReportSteps = Callable[[int, int, str], None]
"""Takes how many of how many of what are done."""


def ignore_steps(done: int, total: int, what: str) -> None: ...


MAX_DEAD_SHARE = 0.2
"""Share of columns and rows without contents above which a matrix is copied without them."""
MAX_SPARSE_SHARE = 0.05
"""Share of entries other than 0 up to which a matrix is multiplied as a sparse one."""
BLOCK_ENTRIES = 1 << 17
"""Entries of a block of rows that stays in a processor's cache."""


@dataclass(frozen=True, eq=False)
class CellSuppression:
    """Which cells are printed, and what could not be protected.

    published: cells that are printed, (cells,)
    unprotected: protected columns that follow from what had to be printed, (protected,)
    """

    published: Booleans
    unprotected: Booleans


def suppress_cells(
    columns: Any,
    order: Integers,
    protected: Any,
    frozen: Integers | Sequence[int] = (),
    sole: Integers | Sequence[int] = (),
    targets: Booleans | None = None,
    prime: int = PRIME,
    batch: int = BATCH,
    report: ReportSteps = ignore_steps,
) -> CellSuppression:
    """Print cells one after the other, each unless a protected column would then follow.

    Args:
        columns: atoms of each cell, 1 or 0, (atoms, cells), sparse.
        order: cells that may be printed, in the order in which they are tried, the most wanted first.
        protected: columns that must not follow, whole numbers modulo ``prime``, (atoms, protected), sparse.
        frozen: cells that are printed whatever follows from them.
        sole: protected columns whose sum one contributor knows; with it no column of ``targets`` may follow either.
        targets: protected columns that such a contributor must not learn, (protected,); all by default.
        prime: modulus.
        batch: random vectors that are kept at a time.
        report: takes how many cells were tried.

    The rule is greedy and exact: whether a cell is printed depends on the order and on the spans alone. Raises
    NotComputable for a system that is too large.
    """
    columns, protected = columns.tocsc(), protected.tocsc()
    _check_size(*columns.shape)
    published = np.zeros(columns.shape[1], dtype=np.bool_)
    frozen = np.asarray(frozen, dtype=np.int64)
    published[frozen] = True
    space = NullSpace(columns.shape[0], prime)
    for start in range(0, len(frozen), batch):
        space.add_columns(columns[:, frozen[start : start + batch]])
    rng = np.random.default_rng(0)  # which vectors are drawn changes nothing but chances of 1 / p
    order = np.asarray(order, dtype=np.int64)
    order = order[~published[order]]
    watch = _ProtectedImages(protected, np.asarray(sole, dtype=np.int64), targets, prime)
    unprotected = np.zeros(protected.shape[1], dtype=np.bool_)
    start, first = 0, True
    while first or start < len(order):
        report(start, len(order), "cells")
        vectors = space.draw_vectors(max(batch, SPARE_VECTORS + 1), rng)
        watch.restart(vectors)
        if first:
            unprotected = watch.drop_following()
            first = False
        accepted, start = _print_batch(columns, order, start, vectors, watch, published, prime)
        if start < len(order):
            space.add_columns(columns[:, accepted])
    return CellSuppression(published, unprotected)


def _check_size(atoms: int, cells: int) -> None:
    """Raise NotComputable for a system whose matrix would need too much memory."""
    rank = min(cells, atoms // 2)
    if rank * (atoms - rank) > MAX_MATRIX_ENTRIES:
        raise NotComputable(
            f"the tables have {count_noun(atoms, 'different combination')} of groups with records and "
            f"{count_noun(cells, 'cell')}, more than can be looked at together; use fewer variables or coarser groups"
        )


def draw_open_vectors(printed: Any, number: int, prime: int = PRIME) -> Integers:
    """Draw random vectors u with X' u = 0 for printed columns X (atoms, k), sparse; return them, (atoms, v).

    A column follows from the printed ones exactly where its product with each of them is 0, but for chances of 1 / p.
    There is at least one vector, 0 where nothing is open, and at most as many as there are open directions.
    """
    printed = printed.tocsc()
    atoms = printed.shape[0]
    # An atom that is printed is 0 in each vector; what is left of other columns may be one atom in turn.
    open_atoms = np.ones(atoms, dtype=np.bool_)
    while True:
        left = printed[np.flatnonzero(open_atoms)]
        single = np.flatnonzero(np.diff(left.indptr) == 1)
        if not len(single):
            break
        fixed = np.flatnonzero(open_atoms)[left.indices[left.indptr[single]]]
        open_atoms[fixed] = False
    sizes = np.diff(left.indptr)
    _check_size(left.shape[0], int((sizes > 0).sum()))
    order = np.flatnonzero(sizes)[np.argsort(sizes[sizes > 0], kind="stable")]  # short ones change little
    space = NullSpace(left.shape[0], prime)
    for start in range(0, len(order), AUDIT_BATCH):
        if not space.dimension:
            break
        space.add_columns(left[:, order[start : start + AUDIT_BATCH]])
    vectors = space.draw_vectors(number, np.random.default_rng(0))
    found = np.zeros((atoms, vectors.shape[1]), dtype=np.int64)
    found[open_atoms] = vectors
    return found


def find_following(columns: Any, printed: Any, prime: int = PRIME) -> Booleans:
    """Return which columns (atoms, k) follow from the printed ones (atoms, j), both sparse, (k,)."""
    images = _apply_columns(columns, draw_open_vectors(printed, 1, prime), prime)
    return np.asarray(~images.any(axis=1), dtype=np.bool_)


def find_known_pairs(
    columns: Any, printed: Any, sole: Integers, targets: Integers, prime: int = PRIME
) -> list[tuple[int, int, int]]:
    """Return what follows for those who know one sum more than is printed.

    Args:
        columns: atoms of each cell, (atoms, cells), sparse.
        printed: columns that are printed, (atoms, k), sparse.
        sole: cells whose sum one contributor knows.
        targets: cells that the contributor must not learn.
        prime: modulus.

    Returns triples of a cell of ``sole``, a cell of ``targets`` that follows for its contributor, and the factor: the
    column of the second minus the factor times that of the first follows from what is printed. Cells that follow for
    everybody are left out.
    """
    vectors = draw_open_vectors(printed, 2, prime)
    own = _apply_columns(columns[:, sole], vectors, prime)
    other = _apply_columns(columns[:, targets], vectors, prime)
    sole, own = sole[own[:, 0] != 0], own[own[:, 0] != 0]
    targets, other = targets[other[:, 0] != 0], other[other[:, 0] != 0]
    if vectors.shape[1] == 1:
        # One direction is open: whoever knows one sum knows all.
        own_ratio, other_ratio = np.zeros(len(sole), dtype=np.int64), np.zeros(len(targets), dtype=np.int64)
    else:
        own_ratio = own[:, 1] * invert_modulo(own[:, 0], prime) % prime
        other_ratio = other[:, 1] * invert_modulo(other[:, 0], prime) % prime
    order = np.argsort(other_ratio, kind="stable")
    low = np.searchsorted(other_ratio[order], own_ratio, "left")
    high = np.searchsorted(other_ratio[order], own_ratio, "right")
    found = []
    for at, cell in enumerate(sole.tolist()):
        for place in order[low[at] : high[at]].tolist():
            if int(targets[place]) != cell:
                factor = int(other[place, 0]) * pow(int(own[at, 0]), -1, prime) % prime
                found.append((cell, int(targets[place]), factor))
    return found


def find_known_to_unit(
    columns: Any, printed: Any, known: Sequence[Integers], targets: Integers, prime: int = PRIME
) -> list[Integers]:
    """Return for each of several readers which cells follow once it knows the sums of some cells too.

    ``known`` has the cells of each reader. Cells that follow for everybody, and the reader's own, are left out.
    """
    most = max((len(own) for own in known), default=0)
    vectors = draw_open_vectors(printed, most + 1, prime)
    images = _apply_columns(columns, vectors, prime)
    others = images[targets]
    open_still = others.any(axis=1)
    found = []
    for own in known:
        rows = others
        left = [images[cell] for cell in own.tolist()]
        while left:
            image = left.pop()
            if image.any():
                if len(image) == 1:
                    rows = np.zeros((len(rows), 1), dtype=np.int64)
                    break
                left = [_drop_direction(row[None], image, prime)[0] for row in left]
                rows = _drop_direction(rows, image, prime)
        follows = ~rows.any(axis=1) & open_still & ~np.isin(targets, own)
        found.append(targets[follows])
    return found


def _print_batch(
    columns: Any,
    order: Integers,
    start: int,
    vectors: Integers,
    watch: _ProtectedImages,
    published: Booleans,
    prime: int,
) -> tuple[list[int], int]:
    """Try cells from place ``start`` of the order until the vectors are used up; return those that said something new."""
    size = vectors.shape[1]
    images = _apply_columns(columns[:, order[start:]], vectors, prime)
    change = np.eye(size, dtype=np.int64)  # vectors of now in terms of those that the batch began with
    accepted = list[int]()
    for place in range(len(images)):
        if change.shape[1] <= SPARE_VECTORS and size > SPARE_VECTORS:
            return accepted, start + place
        cell = int(order[start + place])
        image = (images[place, :, None] * change % prime).sum(axis=0) % prime
        if not image.any():
            published[cell] = True  # it follows from what is printed already
            continue
        if watch.breaks_protection(image):
            continue
        published[cell] = True
        accepted.append(cell)
        change = _drop_direction(change, image, prime)
        watch.drop_direction(image)
    return accepted, len(order)


def _apply_columns(columns: Any, vectors: Integers, prime: int) -> Integers:
    """Return the products of columns (atoms, k) with vectors (atoms, v) modulo a prime, (k, v)."""
    columns = columns.tocsc()
    if columns.nnz and np.abs(columns.data).max() > 1 << 16:
        # Entries of virtual columns are any numbers below p: their two halves keep sums of products within 63 bits.
        high, low = columns.copy(), columns.copy()
        high.data, low.data = columns.data >> 16, columns.data & 0xFFFF
        upper = np.asarray(high.T @ vectors) % prime
        return np.asarray((upper * (1 << 16) + np.asarray(low.T @ vectors)) % prime)
    return np.asarray(columns.T @ vectors) % prime


def _drop_direction(rows: Integers, image: Integers, prime: int) -> Integers:
    """Return rows (r, v) in terms of the v - 1 vectors that are left where that of ``image`` (v,) must become 0."""
    # The last vector that the cell sees is used up, so that those in front stay as they are for long.
    pivot = int(np.flatnonzero(image)[-1])
    factors = image * pow(int(image[pivot]), -1, prime) % prime
    rest = np.arange(rows.shape[1]) != pivot
    used = rows[:, pivot, None]
    return np.asarray((rows[:, rest] - used * factors[rest] % prime) % prime)


class _ProtectedImages:
    """Products of protected columns with the random vectors of now, by which one sees what a cell would give away.

    Only the first few columns of products are kept up to date; another one is computed when a cell uses its vector up.

    protected: columns, (atoms, protected), sparse
    sole: those whose sum one contributor knows
    targets: those that such a contributor must not learn, (protected,)
    """

    def __init__(self, protected: Any, sole: Integers, targets: Booleans | None, prime: int) -> None:
        self.protected = protected
        self.prime = prime
        self.kept = np.ones(protected.shape[1], dtype=np.bool_)
        self.is_sole = np.zeros(protected.shape[1], dtype=np.bool_)
        self.is_sole[sole] = True
        self.is_target = np.ones(protected.shape[1], dtype=np.bool_) if targets is None else targets
        self.pairs = 0
        self.restart(np.zeros((protected.shape[0], 1), dtype=np.int64))

    def restart(self, vectors: Integers) -> None:
        """Take new vectors (atoms, v)."""
        rows = _apply_columns(self.protected[:, np.flatnonzero(self.kept)], vectors, self.prime)
        self.base = np.asfortranarray(rows)
        self.front = rows[:, :SPARE_VECTORS].T.copy()
        self.places = list(range(vectors.shape[1]))  # vectors that are left, in the order of images
        self.used = np.zeros((len(rows), vectors.shape[1]), order="F")
        self.factors = np.zeros((vectors.shape[1], vectors.shape[1]))
        self.steps = 0
        self.last: tuple[int, Integers] | None = None

    def drop_following(self) -> Booleans:
        """Leave out columns that follow already, and mark them, (protected,)."""
        following = ~self.base.any(axis=1)
        found = self.kept.copy()
        found[np.flatnonzero(self.kept)[~following]] = False
        self.kept &= ~found
        self.base, self.front = np.asfortranarray(self.base[~following]), self.front[:, ~following]
        self.used, self.last = self.used[~following], None
        if self.is_sole[self.kept].any() and len(self.front) > 1:
            self.pairs = self._count_known_pairs(self.front[0], self.front[1])
        return found

    def breaks_protection(self, image: Integers) -> bool:
        """Return whether a protected column follows once the cell with this image (v,) is printed."""
        if not len(self.base):
            return False
        if len(image) == 1:
            return True  # it is the last direction that is open: nothing is hidden any more
        # Two vectors suffice, the one that the cell uses up and another one: both are random, so that parallel images
        # are parallel columns but for chance. Where a third one is at hand, it makes the chance one of 1 / p^2.
        pivot = int(np.flatnonzero(image)[-1])
        scale, own = int(image[pivot]), self._column(pivot)
        others = [at for at in range(min(SPARE_VECTORS, len(image))) if at != pivot][:2]
        after = [(self.front[at] * scale - own * int(image[at])) % self.prime for at in others]
        open_still = after[0] != 0
        if not open_still.all():
            return len(after) == 1 or not (open_still | (after[1] != 0)).all()
        if not self.is_sole[self.kept].any():
            return False
        # With one vector left, all columns are multiples of one another.
        return len(after) == 1 or self._count_known_pairs(after[0], after[1]) > self.pairs

    def drop_direction(self, image: Integers) -> None:
        """Let the cell with this image (v,) be printed."""
        pivot = int(np.flatnonzero(image)[-1])
        own = self._column(pivot)
        factors = image * pow(int(image[pivot]), -1, self.prime) % self.prime
        self.used[:, self.steps] = centre_modulo(own.astype(np.float64), self.prime)
        self.factors[self.steps, self.places] = centre_modulo(factors.astype(np.float64), self.prime)
        self.steps += 1
        del self.places[pivot]
        self.last = None
        if pivot < len(self.front):
            self.front = np.array([self._column(at) for at in range(min(SPARE_VECTORS, len(self.places)))])
        else:
            self.front = (self.front - own * factors[: len(self.front), None] % self.prime) % self.prime

    def _column(self, at: int) -> Integers:
        """Return the products with the vector at a place of the images, (protected,)."""
        if self.last is not None and self.last[0] == at:
            return self.last[1]
        place = self.places[at]
        factors = self.factors[: self.steps, place]
        high = np.rint(factors * 2.0**-16)
        used = self.used[:, : self.steps]
        upper = centre_modulo(used @ high, self.prime)
        change = centre_modulo(upper * 2.0**16 + used @ (factors - high * 2.0**16), self.prime)
        found = (self.base[:, place] - change.astype(np.int64)) % self.prime
        self.last = (at, found)
        return found

    def _count_known_pairs(self, first: Integers, second: Integers) -> int:
        """Count pairs of a column that a contributor knows and another one that then follows."""
        ratios = second * invert_modulo(first, self.prime) % self.prime
        sole, targets = self.is_sole[self.kept], self.is_target[self.kept]
        of_targets = np.sort(ratios[targets])
        own = ratios[sole]
        found = np.searchsorted(of_targets, own, "right") - np.searchsorted(of_targets, own, "left")
        return int(found.sum() - (sole & targets).sum())


class NullSpace:
    """All u with X_K' u = 0 modulo a prime, for columns K that are added bit by bit.

    Some atoms are free, the others are sums of them: u of a dependent atom is minus its row of ``matrix`` times u of the
    free ones; an atom that is neither is 0.

    free: atom of each column of ``matrix``, -1 where the column is no longer in use
    dependent: atom of each row
    matrix: whole numbers between -p/2 and p/2, (dependent, free)
    """

    def __init__(self, atoms: int, prime: int = PRIME) -> None:
        self.prime = prime
        self.atoms = atoms
        self.free: Integers = np.arange(atoms, dtype=np.int64)
        self.dependent: Integers = np.zeros(0, dtype=np.int64)
        self.matrix: Floats = np.zeros((0, atoms))
        self.rows = 0

    @property
    def dimension(self) -> int:
        """Return the number of atoms that are free."""
        return int((self.free >= 0).sum())

    def draw_vectors(self, number: int, rng: np.random.Generator) -> Integers:
        """Draw random vectors of the space, (atoms, v), at most as many as it has dimensions and at least one."""
        in_use = np.flatnonzero(self.free >= 0)
        number = max(1, min(number, len(in_use)))
        vectors = np.zeros((self.atoms, number), dtype=np.int64)
        drawn = np.zeros((len(self.free), number), dtype=np.int64)
        drawn[in_use] = rng.integers(0, self.prime, (len(in_use), number))
        vectors[self.free[in_use]] = drawn[in_use]
        vectors[self.dependent[: self.rows]] = -self._multiply_matrix(drawn) % self.prime
        return vectors

    def _multiply_matrix(self, vectors: Integers) -> Integers:
        """Return the product of the matrix with vectors (free, v) modulo the prime, (dependent, v)."""
        from scipy import sparse

        matrix = self.matrix[: self.rows]
        if np.count_nonzero(matrix) > MAX_SPARSE_SHARE * matrix.size:
            found = multiply_modulo(matrix, centre_modulo(vectors.astype(np.float64), self.prime), self.prime)
            return np.mod(found, self.prime).astype(np.int64)
        entries = sparse.csr_matrix(matrix)
        high = entries.copy()
        high.data = np.rint(entries.data * 2.0**-16)
        low = (entries - high * 2.0**16).astype(np.int64)
        upper = np.asarray(high.astype(np.int64) @ vectors) % self.prime
        return np.asarray((upper * (1 << 16) + np.asarray(low @ vectors)) % self.prime)

    def add_columns(self, columns: Any) -> Integers:
        """Add columns of small whole numbers, (atoms, k), sparse, and return places of those that say something new.

        The others follow from these and from what was there.
        """
        fresh = self._reduce(columns)
        filled = np.flatnonzero(fresh.any(axis=1))
        if not len(filled):
            return filled
        fresh = fresh[filled]
        pivots, rows = self._find_pivots(fresh)
        fresh = fresh[rows]
        inverse = _invert_matrix(np.mod(fresh[:, pivots], self.prime).astype(np.int64), self.prime)
        rows_of_pivots = multiply_modulo(centre_modulo(inverse.astype(np.float64), self.prime), fresh, self.prime)
        rows_of_pivots[:, pivots] = 0
        self._substitute(pivots, rows_of_pivots)
        self._append(self.free[pivots].copy(), rows_of_pivots)
        self.free[pivots] = -1
        if (self.free < 0).mean() > MAX_DEAD_SHARE:
            self._compact()
        return np.sort(filled[rows])

    def _reduce(self, columns: Any) -> Floats:
        """Return columns in terms of the free atoms, (k, free)."""
        from scipy import sparse

        rows = sparse.csr_matrix(columns.T).astype(np.float64)
        in_use = self.free >= 0
        found = np.zeros((rows.shape[0], len(self.free)))
        found[:, in_use] = rows[:, self.free[in_use]].toarray()
        if self.rows:
            found -= rows[:, self.dependent[: self.rows]] @ self.matrix[: self.rows]
        return centre_modulo(found, self.prime)

    def _find_pivots(self, fresh: Floats) -> tuple[Integers, Integers]:
        """Return free atoms to become dependent, as places of columns, and the rows that they stand for, both (r,)."""
        number = len(fresh)
        filled = np.flatnonzero((fresh != 0).any(axis=0))
        # An atom on which few others depend changes few rows.
        weight = (self.matrix[: self.rows, filled] != 0).sum(axis=0)
        candidates = filled[np.argsort(weight, kind="stable")]
        transform = np.eye(number, dtype=np.int64)
        left = np.arange(number)
        pivots, rows = list[int](), list[int]()
        width = 2 * number
        for start in range(0, len(candidates), width):
            places = candidates[start : start + width]
            part = np.mod(
                multiply_modulo(
                    centre_modulo(transform[left].astype(np.float64), self.prime), fresh[:, places], self.prime
                ),
                self.prime,
            ).astype(np.int64)
            part = np.concatenate([part, transform[left]], axis=1)
            done = np.zeros(len(left), dtype=np.bool_)
            for at in range(len(places)):
                open_rows = np.flatnonzero((part[:, at] != 0) & ~done)
                if not len(open_rows):
                    continue
                row = open_rows[0]
                done[row] = True
                pivots.append(int(places[at]))
                rows.append(int(left[row]))
                if len(open_rows) > 1:
                    rest = open_rows[1:]
                    factors = part[rest, at] * pow(int(part[row, at]), -1, self.prime) % self.prime
                    part[rest, at:] = (part[rest, at:] - factors[:, None] * part[row, at:] % self.prime) % self.prime
                if done.all():
                    break
            transform[left] = part[:, len(places) :]
            left = left[~done]
            if not len(left):
                break
        return np.array(pivots, dtype=np.int64), np.array(rows, dtype=np.int64)

    def _substitute(self, pivots: Integers, rows_of_pivots: Floats) -> None:
        """Put the rows of new dependent atoms into those of the others."""
        matrix = self.matrix[: self.rows]
        touched = np.flatnonzero((matrix[:, pivots] != 0).any(axis=1))
        used = np.flatnonzero((rows_of_pivots != 0).any(axis=0))
        inner = rows_of_pivots[:, used]
        step = max(1, BLOCK_ENTRIES // max(1, len(used)))
        for start in range(0, len(touched), step):
            rows = touched[start : start + step]
            change = multiply_modulo(matrix[np.ix_(rows, pivots)], inner, self.prime)
            part = matrix[rows]
            part[:, pivots] = 0
            part[:, used] = centre_modulo(part[:, used] - change, self.prime)
            matrix[rows] = part

    def _append(self, atoms: Integers, rows: Floats) -> None:
        filled = rows.any(axis=1)  # an atom without a row is 0, whatever the others are
        atoms, rows = atoms[filled], rows[filled]
        needed = self.rows + len(atoms)
        if needed > len(self.matrix):
            grown = np.zeros((max(needed, len(self.matrix) * 5 // 4 + 64), len(self.free)))
            grown[: self.rows] = self.matrix[: self.rows]
            self.matrix = grown
            places = np.zeros(len(grown), dtype=np.int64)
            places[: self.rows] = self.dependent[: self.rows]
            self.dependent = places
        self.matrix[self.rows : needed] = rows
        self.dependent[self.rows : needed] = atoms
        self.rows = needed

    def _compact(self) -> None:
        """Leave out columns that are no longer in use, and rows of atoms that have become 0."""
        in_use = self.free >= 0
        filled = self.matrix[: self.rows].any(axis=1)
        self.matrix = self.matrix[: self.rows][np.ix_(filled, in_use)]
        self.dependent = self.dependent[: self.rows][filled]
        self.free = self.free[in_use]
        self.rows = len(self.matrix)


def centre_modulo(numbers: Floats, prime: int) -> Floats:
    """Return whole numbers below 2^53 as residues between -p/2 and p/2."""
    return np.asarray(numbers - np.rint(numbers * (1.0 / prime)) * prime)


def multiply_modulo(left: Floats, right: Floats, prime: int) -> Floats:
    """Multiply matrices (m, k) and (k, n) of residues between -p/2 and p/2 modulo a prime.

    The left one is split into two halves of 16 bits, so that floating point adds the products exactly.
    """
    found = np.zeros((left.shape[0], right.shape[1]))
    step = max(1, BLOCK_ENTRIES // max(1, right.shape[1]))
    for start in range(0, left.shape[0], step):
        rows = left[start : start + step]
        high = np.rint(rows * 2.0**-16)
        low = rows - high * 2.0**16
        total = found[start : start + step]
        for at in range(0, left.shape[1], MAX_EXACT_TERMS):
            inner = right[at : at + MAX_EXACT_TERMS]
            upper = centre_modulo(high[:, at : at + MAX_EXACT_TERMS] @ inner, prime)
            total += upper * 2.0**16 + low[:, at : at + MAX_EXACT_TERMS] @ inner
            total[:] = centre_modulo(total, prime)
    return found


def invert_modulo(numbers: Integers, prime: int) -> Integers:
    """Return the inverses of numbers (n,) other than 0 modulo a prime."""
    # Products of neighbours, and of these, up to one number that is inverted: three products a number.
    levels = [numbers % prime]
    while len(levels[-1]) > 1:
        own = levels[-1]
        if len(own) % 2:
            own = np.append(own, 1)
            levels[-1] = own
        levels.append(own[0::2] * own[1::2] % prime)
    if not len(numbers):
        return numbers
    inverse = np.array([pow(int(levels[-1][0]), -1, prime)], dtype=np.int64)
    for own in reversed(levels[:-1]):
        below = np.empty(len(own), dtype=np.int64)
        below[0::2] = inverse[: len(own) // 2] * own[1::2] % prime
        below[1::2] = inverse[: len(own) // 2] * own[0::2] % prime
        inverse = below
    return inverse[: len(numbers)]


def _invert_matrix(matrix: Integers, prime: int) -> Integers:
    """Invert a matrix (n, n) modulo a prime."""
    size = len(matrix)
    work = np.concatenate([matrix, np.eye(size, dtype=np.int64)], axis=1)
    for at in range(size):
        row = at + int(np.flatnonzero(work[at:, at])[0])
        work[[at, row]] = work[[row, at]]
        work[at] = work[at] * pow(int(work[at, at]), -1, prime) % prime
        others = np.flatnonzero(work[:, at])
        others = others[others != at]
        work[others] = (work[others] - work[others, at, None] * work[at] % prime) % prime
    return work[:, size:]

"""Models of honest size that draw releases: margins, a Gaussian copula, a Bayesian network, trees, latent classes.

All work on codes of ``CodedTable``: each code stands for so many people or more, and a number is drawn between the numbers of such a group.
A model that is fitted to members then has no value of one of them, and a code of 1 person is only used where the people fitted are others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

from .people import draw_from_trees
from .tables import Frame, Rng, Table

UNITS = (1000.0, 500.0, 100.0, 50.0, 10.0, 5.0, 1.0, 0.5, 0.1, 0.01, 0.001, 0.0001)
"""Units that numbers may be multiples of, largest first."""


def coarsest_unit(values: np.ndarray) -> float:
    """Return the largest unit of which nine in ten of the numbers other than 0 are multiples."""
    numbers = values[values != 0]
    for unit in UNITS:
        if len(numbers) and np.mean(np.abs(numbers / unit - np.round(numbers / unit)) < 1e-6) >= 0.9:
            return unit
    return UNITS[-1]


@dataclass(frozen=True)
class CodedNumber:
    """Groups of equal or neighbouring numbers, in order.

    low, high: ends of each group, (K,); equal for a group of one value
    unit: what drawn numbers are rounded to
    """

    low: np.ndarray
    high: np.ndarray
    unit: float

    def decode(self, codes: np.ndarray, rng: Rng) -> np.ndarray:
        """Return numbers drawn between the ends of the groups."""
        low, high = self.low[codes], self.high[codes]
        drawn = np.round((low + rng.random(len(codes)) * (high - low)) / self.unit) * self.unit
        return np.where(low == high, low, np.round(drawn, 6))


@dataclass(frozen=True)
class CodedLevels:
    """Levels that enough people share, and others under one code that draws from what other people have.

    levels: level of each code, (K,); empty for the code of the rest
    rest: levels to draw for the rest, (R,)
    """

    levels: np.ndarray
    rest: np.ndarray

    def decode(self, codes: np.ndarray, rng: Rng) -> np.ndarray:
        """Return the levels of the codes."""
        found = self.levels[codes].astype(object)
        hidden = found == ""
        found[hidden] = rng.choice(self.rest, int(hidden.sum()))
        return found


@dataclass(frozen=True)
class CodedTable:
    """A table in codes of which each stands for several people.

    codes: by column, (n,)
    columns: how each column's codes become values again
    numbers: columns that are numbers, whose codes are in their order
    """

    codes: Frame
    columns: Mapping[str, CodedNumber | CodedLevels]
    numbers: tuple[str, ...]

    def decode(self, codes: Frame, rng: Rng, roles: Mapping[str, tuple[str, str]]) -> Frame:
        """Return values for drawn codes, counts as whole numbers."""
        made = {name: self.columns[name].decode(codes[name].to_numpy(int), rng) for name in codes}
        frame = pd.DataFrame(made)
        for name in frame:
            if roles[str(name)][0] == "count":
                frame[name] = frame[name].round().astype(int)
        return frame


def code_number(values: np.ndarray, least: int) -> tuple[np.ndarray, CodedNumber]:
    """Return codes of groups of ``least`` numbers or more: values that so many share, and runs of neighbours.

    Ends of a run lie half-way to the next number; the outermost are means of the most extreme ones, so that no end is one person's.
    """
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    group, low, high = np.zeros(len(distinct), dtype=int), [], []
    heaped = counts >= least
    at = 0
    while at < len(distinct):
        end = at + 1
        if not heaped[at]:
            people = counts[at]
            # A run ends where enough people stand in it, unless too few would be left before the next heap.
            while end < len(distinct) and not heaped[end]:
                ahead = end + int(np.argmax(heaped[end:])) if heaped[end:].any() else len(distinct)
                if people >= least and counts[end:ahead].sum() >= least:
                    break
                people += counts[end]
                end += 1
            if people < least and low:
                # Few stand between two heaps: they count as those below.
                group[at:end] = len(low) - 1
                at = end
                continue
            inner = np.repeat(distinct[at:end], counts[at:end])
            few = max(1, min(least, len(inner)) // 2)
            low.append(float((distinct[at - 1] + distinct[at]) / 2 if at else inner[:few].mean()))
            high.append(float((distinct[end - 1] + distinct[end]) / 2 if end < len(distinct) else inner[-few:].mean()))
            if people < least:
                low[-1] = high[-1] = float(np.median(inner))
        else:
            low.append(float(distinct[at]))
            high.append(float(distinct[at]))
        group[at:end] = len(low) - 1
        at = end
    return group[inverse], CodedNumber(np.array(low), np.array(high), coarsest_unit(values))


def code_levels(values: np.ndarray, others: np.ndarray, least: int) -> tuple[np.ndarray, CodedLevels]:
    """Return codes of the levels that ``least`` people or more share and one of the rest."""
    levels, inverse, counts = np.unique(values.astype(str), return_inverse=True, return_counts=True)
    known = counts >= least
    if not known.any():
        known[np.argmax(counts)] = True
    kept = levels[known]
    codes = np.where(known, np.cumsum(known) - 1, len(kept))[inverse]
    seen = others.astype(str)
    rest = seen[~np.isin(seen, kept)]
    # Without a level that others have beside, the rest becomes the commonest level.
    rest = rest if len(rest) else np.array([levels[np.argmax(counts)]])
    return codes, CodedLevels(np.append(kept.astype(object), ""), rest.astype(object))


def code_table(people: Frame, others: Frame, table: Table, least: int) -> CodedTable:
    """Return the people's table in codes of ``least`` people or more; ``others`` say which rare levels there are."""
    codes, columns = {}, {}
    for name in map(str, people):
        if name in table.numbers:
            values = people[name].to_numpy(float)
            codes[name], columns[name] = code_number(values, least)
        else:
            codes[name], columns[name] = code_levels(
                people[name].to_numpy(object), others[name].to_numpy(object), least
            )
    return CodedTable(pd.DataFrame(codes), columns, tuple(n for n in codes if n in table.numbers))


def _columns(codes: Frame) -> list[np.ndarray]:
    return [codes[name].to_numpy(int) for name in codes]


def draw_margins(coded: CodedTable, rows: int, rng: Rng, size: int) -> Frame:
    """Draw each column by itself."""
    return pd.DataFrame(
        {name: coded.codes[name].to_numpy()[rng.integers(0, len(coded.codes), rows)] for name in coded.codes}
    )


def draw_copula(coded: CodedTable, rows: int, rng: Rng, size: int) -> Frame:
    """Draw from a Gaussian copula of normal scores, equal codes in random order."""
    n = len(coded.codes)
    scores = []
    for codes in _columns(coded.codes):
        order = np.lexsort((rng.random(n), codes))
        place = np.empty(n)
        place[order] = np.arange(1, n + 1)
        scores.append(norm.ppf(place / (n + 1)))
    correlation = np.corrcoef(np.array(scores)) + 1e-6 * np.eye(len(scores))
    drawn = norm.cdf(rng.standard_normal((rows, len(scores))) @ np.linalg.cholesky(correlation).T)
    at = np.minimum((drawn * n).astype(int), n - 1)
    return pd.DataFrame({name: np.sort(coded.codes[name].to_numpy())[at[:, i]] for i, name in enumerate(coded.codes)})


def _coarse(codes: np.ndarray, groups: int) -> np.ndarray:
    """Return the codes in few groups of about as many people."""
    shares = np.cumsum(np.bincount(codes)) / len(codes)
    return np.minimum((shares * groups - 1e-9).astype(int), groups - 1)[codes]


def _information(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mutual information of two columns of codes."""
    joint = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(joint, (one, other), 1 / len(one))
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / apart[some])).sum())


def draw_network(coded: CodedTable, rows: int, rng: Rng, size: int) -> Frame:
    """Draw from a Bayesian network in a random order, each column given the one or two earlier ones that tell most of it.

    Parents are in six groups at most; where fewer than ``size`` people have a combination of them the margin is drawn.
    """
    parents = int(rng.integers(1, 3))
    names = list(coded.codes)
    coarse = {name: _coarse(coded.codes[name].to_numpy(int), 6) for name in names}
    groups = {name: dict(zip(coded.codes[name], coarse[name], strict=True)) for name in names}
    drawn: dict[str, np.ndarray] = {}
    for name in (names[i] for i in rng.permutation(len(names))):
        codes = coded.codes[name].to_numpy(int)
        told = sorted(drawn, key=lambda other: -_information(coarse[name], coarse[other]))
        own, theirs = np.zeros(len(codes), dtype=int), np.zeros(rows, dtype=int)
        for parent in told[:parents]:
            own = own * 6 + coarse[parent]
            theirs = theirs * 6 + pd.Series(drawn[parent]).map(groups[parent]).to_numpy(int)
        made = codes[rng.integers(0, len(codes), rows)]
        for cell in np.unique(theirs):
            donors, places = codes[own == cell], np.flatnonzero(theirs == cell)
            if len(donors) >= size:
                made[places] = donors[rng.integers(0, len(donors), len(places))]
        drawn[name] = made
    return pd.DataFrame({name: drawn[name] for name in names})


def draw_trees(coded: CodedTable, rows: int, rng: Rng, size: int) -> Frame:
    """Draw by trees whose leaves have ``size`` people or more."""
    return draw_from_trees(coded.codes, rows, size, rng, coded.numbers)


def draw_classes(coded: CodedTable, rows: int, rng: Rng, size: int) -> Frame:
    """Draw from latent classes in which columns are independent, of ``size`` people or more on average; by twenty steps of EM."""
    n = len(coded.codes)
    classes = int(np.clip(n // (2 * size), 2, 12))
    columns = _columns(coded.codes)
    weight = rng.dirichlet(np.ones(classes), n)
    tables: list[np.ndarray] = []
    shares = np.full(classes, 1 / classes)
    for _ in range(20):
        shares = (weight.sum(axis=0) + 1) / (n + classes)
        tables = []
        for codes in columns:
            margin = np.bincount(codes) / n
            counts = np.zeros((len(margin), classes))
            np.add.at(counts, codes, weight)
            # The margin counts as much as ten people.
            tables.append((counts + 10 * margin[:, None]) / (weight.sum(axis=0) + 10))
        log = np.log(shares) + sum(np.log(one[codes]) for one, codes in zip(tables, columns, strict=True))
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
    kind = rng.choice(classes, rows, p=shares)
    drawn = {}
    for name, one in zip(coded.codes, tables, strict=True):
        made = np.zeros(rows, dtype=int)
        for k in range(classes):
            places = kind == k
            made[places] = rng.choice(len(one), int(places.sum()), p=one[:, k] / one[:, k].sum())
        drawn[name] = made
    return pd.DataFrame(drawn)


Draw = Callable[[CodedTable, int, Rng, int], Frame]
MODELS: dict[str, Draw] = {
    "margins": draw_margins,
    "copula": draw_copula,
    "network": draw_network,
    "trees": draw_trees,
    "latent classes": draw_classes,
}
"""How codes are drawn: from a coded table so many rows, with the people that a leaf, a cell or a class has at least."""

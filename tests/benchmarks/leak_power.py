"""Whether any test could find a leak: oracles that know its kind, held to the level of the gate's checks.

An oracle knows which columns are copied, how they are changed, and how rare the people are. It does not know who was copied. A released
row points to the people of the joint table (members and hold-out records) from whom the leak could have made it, each as likely
as the leak makes it from him; how much points to a person is his score.

**Hold-out.** An honest release points to members as often as to hold-out records. The labels are permuted among equally rare people
(Fisher 1935): the sum of the members' scores, and the number of lone people who are pointed to (hypergeometric), each at half of the
level. No test can be better by much that has nothing but this release and these hold-out records.

**Model.** The other oracle has no use for hold-out records: it knows the model that draws honest releases and draws many of them. Its statistic is
the likelihood ratio of the leak for Poisson counts of rows, which is the most powerful one (Neyman & Pearson 1933) where rows are equal or not;
with noise it is the sum of the scores. Its p is the rank of the release among those that it draws (Barnard 1963). What it does not find nobody finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy.stats import hypergeom, rankdata

Frame = pd.DataFrame
Change = Callable[[Frame], Frame]
Rng = np.random.Generator
PERMUTATIONS = 1999
DRAWS, NOISY_DRAWS = 199, 99
"""Honest releases that the second oracle draws; with 99 of them its smallest p is the level."""


@dataclass(frozen=True)
class Trace:
    """What an oracle looks for: ``columns``, all where None, of the ``share`` rarest people, of whom a share ``copied`` is copied.

    ``spelled`` writes a table as the leak does. Numbers named in ``noisy`` have a relative error of ``noise`` and one of ``width``, any cell is
    that of another person with probability ``flips`` (levels alone where ``levels_alone``). A leak that is ``certain`` is seen in the
    columns that stay.
    """

    columns: tuple[str, ...] | None = None
    share: float = 1.0
    copied: float = 1.0
    spelled: Change | None = None
    noise: float = 0.0
    width: float = 0.0
    noisy: tuple[str, ...] = ()
    flips: float = 0.0
    levels_alone: bool = True
    certain: bool = False

    @property
    def exact(self) -> bool:
        return not self.noisy and not self.flips


def rarity(table: Frame, numbers: Sequence[str]) -> np.ndarray:
    """The sum of the logarithms of the shares of a record's values, numbers in twentieths, (n,): lower is rarer."""
    total = np.zeros(len(table))
    for name in table:
        values = table[name]
        if name in numbers and is_numeric_dtype(values):
            values = (rankdata(values) * 20 / len(table)).astype(int)
        codes = pd.factorize(values)[0]
        total += np.log(np.bincount(codes)[codes] / len(table))
    return total


def _codes(tables: Sequence[pd.Series]) -> list[np.ndarray]:
    """The same code for the same value, numbers to nine digits."""
    joined = pd.concat(tables, ignore_index=True)
    if joined.dtype.kind in "fiu":
        values = joined.to_numpy(float)
        with np.errstate(divide="ignore"):
            unit = 10.0 ** (np.floor(np.log10(np.abs(values), out=np.zeros(len(values)), where=values != 0)) - 8)
        joined = pd.Series(np.round(values / unit) * unit)
    codes = pd.factorize(joined)[0]
    return np.split(codes, np.cumsum([len(one) for one in tables])[:-1])


def _rows(tables: Sequence[Frame], columns: Sequence[str]) -> list[np.ndarray]:
    """The same number for the same row."""
    total = np.zeros(sum(map(len, tables)), dtype=np.int64)
    for name in columns:
        codes = np.concatenate(_codes([one[name] for one in tables]))
        total = pd.factorize(total * (codes.max() + 2) + codes)[0].astype(np.int64)
    return np.split(total, np.cumsum([len(one) for one in tables])[:-1])


def pointed(own: Frame, released: Frame, columns: Sequence[str], trace: Trace, counts: Sequence[str]) -> np.ndarray:
    """How many released rows point to each person, (N,): each row is shared among the people it may be made from.

    A row may also be nobody's: that weighs as much as all people would if their columns were independent.
    """
    if trace.exact:
        mine, made = _rows([own, released], columns)
        size = int(max(mine.max(), made.max())) + 1
        return (np.bincount(made, minlength=size) / np.maximum(1, np.bincount(mine, minlength=size)))[mine]
    log = np.zeros((len(own), len(released)), dtype=np.float32)
    nobody = np.full(len(released), np.log(len(own)), dtype=np.float32)
    for name in columns:
        if name in trace.noisy:
            mine, made = own[name].to_numpy(np.float32)[:, None], released[name].to_numpy(np.float32)[None, :]
            unit = 1.0 if name in counts else 0.01
            width = np.hypot(trace.noise * np.abs(mine), np.hypot(trace.width, unit / np.sqrt(12))).astype(np.float32)
            like = np.exp(-0.5 * np.square((made - mine) / width)) / width
            if not trace.levels_alone:
                like = (1 - trace.flips) * like + trace.flips * like.mean(axis=0)
        else:
            mine, made = _codes([own[name], released[name]])
            shares = np.bincount(made, minlength=int(mine.max()) + 1)[made] / len(made)
            flips = 0.0 if trace.levels_alone and is_numeric_dtype(own[name]) else trace.flips
            like = ((1 - flips) * (mine[:, None] == made[None, :]) + flips * shares[None, :]).astype(np.float32)
        like = np.maximum(like, np.float32(1e-12))
        nobody += np.log(like.mean(axis=0))
        log += np.log(like, out=like)
    most = np.maximum(log.max(axis=0), nobody)
    weight = np.exp(log - most)
    return np.asarray((weight / (weight.sum(axis=0) + np.exp(nobody - most))).sum(axis=1))


def _permuted(scores: np.ndarray, is_member: np.ndarray, rng: Rng) -> float:
    """The probability of so large a sum of the members' scores where it does not matter who is a member."""
    seen, few = scores[~is_member].sum(), int((~is_member).sum())
    if not few:
        return 1.0
    below, done = 0, 0
    while done < PERMUTATIONS:
        some = min(200, PERMUTATIONS - done)
        chosen = np.argpartition(rng.random((some, len(scores))), few - 1, axis=1)[:, :few]
        below += int((scores[chosen].sum(axis=1) <= seen * (1 + 1e-12)).sum())
        done += some
    return (1 + below) / (1 + PERMUTATIONS)


def by_holdout(
    members: Frame, controls: Frame, releases: Sequence[Frame], trace: Trace, counts: Sequence[str], numbers: Sequence[str], rng: Rng
) -> float:  # fmt: skip
    """The p of the oracle that has the hold-out records."""
    joint = pd.concat([members, controls], ignore_index=True)
    columns = list(trace.columns or members.columns)
    score = rarity(joint, numbers)
    some = np.argsort(score + 1e-6 * rng.random(len(joint)))[: max(1, round(trace.share * len(joint)))]
    own = joint if trace.spelled is None else trace.spelled(joint)
    points = np.sum([pointed(own, one, columns, trace, counts) for one in releases], axis=0)[some]
    is_member = some < len(members)
    alone = np.ones(len(some), dtype=np.bool_)
    if trace.exact:
        mine = _rows([own], columns)[0]
        alone = (np.bincount(mine)[mine] == 1)[some]
    hit = alone & (points >= 0.5)
    by_count = hypergeom.sf((hit & is_member).sum() - 1, alone.sum(), (alone & is_member).sum(), hit.sum())
    return min(1.0, 2 * min(float(by_count), _permuted(points, is_member, rng)))


def by_model(
    members: Frame, releases: Sequence[Frame], honest: Sequence[Frame], trace: Trace, counts: Sequence[str], numbers: Sequence[str], rng: Rng
) -> float:  # fmt: skip
    """The p of the oracle that draws ``honest`` releases."""
    columns = list(trace.columns or members.columns)
    k = max(1, round(trace.share * len(members)))
    some = np.argsort(rarity(members, numbers) + 1e-6 * rng.random(len(members)))[:k]
    spelled = trace.spelled or (lambda one: one)
    own = spelled(members.iloc[some].reset_index(drop=True))
    honest = [spelled(one) for one in (honest if trace.exact else honest[:NOISY_DRAWS])]
    tables = [*releases, *honest]
    if trace.exact:
        mine, *made = _rows([own, *tables], columns)
        values, held = np.unique(mine, return_counts=True)
        size = max(int(one.max()) for one in (mine, *made)) + 1
        seen = np.stack([np.bincount(one, minlength=size)[values] for one in made])
        expected = (seen.sum(axis=0) + 0.5) / len(made)
        statistic = (seen * np.log1p(trace.copied * held / expected)).sum(axis=1)
    else:
        statistic = np.array([pointed(own, one, columns, trace, counts).sum() for one in tables])
    m = len(releases)
    ours, theirs = statistic[:m], statistic[m:]
    drawn = theirs if m == 1 else theirs[rng.integers(0, len(theirs), (len(theirs), m))].sum(axis=1)
    return float((1 + (drawn >= ours.sum() * (1 - 1e-12)).sum()) / (1 + len(drawn)))

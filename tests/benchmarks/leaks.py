"""Which leaks the gate blocks, and which honest releases: python tests/benchmarks/leaks.py [--tables T,..] [--leaks L,..] [--seeds N].

Each case is a run of a workspace, entered as the product enters one, with hold-out records beside the members. A leak is put into an
honest carrier (trees with leaves of 20 that were fitted to other people). A case is blocked where a finding of the gate blocks that is about
the release itself: that a recipe without measures measured nothing is no finding here, and no measure or limit of a plan is counted.
Sizes of leaks are shares of the members; a leak names how many people it is about.

``--power`` asks for each case whether any test could have found the leak, by the oracles of ``leak_power``; with ``--report`` it asks for what the
files hold. A leak that the gate misses is then findable by its hold-out records, by nobody who does not know the model, or by nobody.

The AUC compares the number of blocking findings of leaks with that of honest releases: 1 separates them, .5 does not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from judged_releases.entering import KEY, Case, Maker, enter_and_examine, recipe_of, shuffle_rows
from judged_releases.people import People, draw_from_trees, sample_people
from judged_releases.spellings import as_continuous
from judged_releases.tables import DEVELOP, TABLES, C, Frame, N, Q, Rng, S, X
from leak_power import DRAWS, Trace, by_holdout, by_model
from scipy.stats import binomtest, rankdata

from sfumato.engine.adversary.evidence import CONTENT_LEVEL
from sfumato.workspace.store.workspace import Workspace

MEASURED = {"unmet_thresholds", "thresholds_set", "risk_measured", "utility_measured", "questions_open"}
NAMED = tuple(name for name in DEVELOP if TABLES[name].sizes)
"""Tables that have the named leaks."""
MANY = 20
"""Leaks that concern so many people or more are counted apart."""
TRIED = 20
"""An oracle that does not know the kind of leak tests so many kinds, each at a twentieth of the level: the smallest p that the permutations can give."""


def put(people: People, rows: np.ndarray, columns: Sequence[str] | None = None, carrier: Frame | None = None) -> Frame:
    """A carrier in which the first rows have the values of these members; shuffled when it is entered."""
    made = people.carrier() if carrier is None else carrier.copy()
    for name in columns or list(people.table.roles):
        values = made[name].to_numpy().copy()
        values[: len(rows)] = people.members[name].to_numpy()[rows]
        made[name] = values
    return made


def whole(change: Callable[[People, Frame], Frame]) -> Maker:
    """All members, changed."""
    return lambda people: Case([change(people, people.members.copy())], people.n)


def verbatim(share: float, rare: bool = False, change: Callable[[People, Frame], Frame] | None = None) -> Maker:
    def make(people: People) -> Case:
        k = people.some(share)
        rows = people.rarest[:k] if rare else people.rng.choice(people.n, k, replace=False)
        made = put(people, rows)
        return Case([made if change is None else change(people, made)], k)

    return make


def keys_and_target(share: float) -> Maker:
    def make(people: People) -> Case:
        k = people.some(share)
        return Case([put(people, people.rarest[:k], [*people.table.keys, people.table.sensitive[0]])], k)

    return make


def repeated(of: int, share: float) -> Maker:
    def make(people: People) -> Case:
        return Case([put(people, np.resize(people.rarest[:of], max(of, people.some(share))))], of)

    return make


def keys_and_one(people: People) -> Case:
    made = people.carrier()
    for name in (*people.table.keys, people.table.sensitive[-1]):
        made[name] = people.members[name]
    return Case([made], people.n)


def noised(people: People, made: Frame, noise: float = 0.03, flips: float = 0.1) -> Frame:
    for name in people.table.roles:
        if name in people.table.numbers:
            values = made[name] * (1 + people.rng.normal(0, noise, len(made)))
            made[name] = values.round().astype(int) if people.table.roles[name][0] == N else values.round(2)
        else:
            other = made[name].to_numpy()[people.rng.permutation(len(made))]
            made[name] = np.where(people.rng.random(len(made)) < flips, other, made[name])
    return made


def mapped(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[People, Frame], Frame]:
    """Every number by a function of it; released counts stay whole numbers where they can, so the kind becomes continuous."""

    def change(people: People, made: Frame) -> Frame:
        for name in people.table.numbers:
            made[name] = np.asarray(function(made[name].to_numpy(float)))
        return made

    return change


def transformed(make: Maker) -> Maker:
    """The same with counts declared continuous, so that any number may be released."""

    def make_continuous(people: People) -> Case | None:
        case = make(people) if people.table.numbers else None
        return None if case is None else replace(case, roles=as_continuous(people.table.roles))

    return make_continuous


def recoded(people: People, made: Frame) -> Frame:
    """The levels of every column permuted among themselves."""
    for name in people.table.levels:
        everybody = (people.members, people.controls, people.fitted, people.fresh)
        levels = np.unique(np.concatenate([one[name] for one in everybody]).astype(str))
        made[name] = made[name].map(dict(zip(levels, np.roll(levels, 1), strict=True)))
    return made


def but_two(function: Callable[[Rng, np.ndarray], np.ndarray]) -> Maker:
    """All records unchanged but for two numbers, the last ones."""

    def make(people: People) -> Case | None:
        names = people.table.numbers[-2:]
        if not names:
            return None
        made = people.members.copy()
        for name in names:
            made[name] = function(people.rng, made[name].to_numpy(float))
        return Case([made], people.n, as_continuous(people.table.roles))

    return make


def categorical_copy(people: People) -> Case | None:
    table = people.table
    if len(table.levels) < 3:
        return None
    made = people.carrier()
    for name in table.levels:
        made[name] = people.members[name]
    made[table.levels[0]] = people.rng.permutation(made[table.levels[0]].to_numpy())
    return Case([made], people.n)


def as_text(people: People) -> Case | None:
    if not people.table.numbers:
        return None
    roles = {name: (C, role) for name, (_, role) in people.table.roles.items()}
    change = lambda frame: frame.assign(**{n: frame[n].map(str) for n in people.table.numbers})  # noqa: E731
    return Case(
        [change(people.members)], people.n, roles, members=change(people.members), controls=change(people.controls)
    )


def kept_in_clear(people: People) -> Case:
    """All but one column kept as quasi-identifiers, the sensitive ones among them."""
    *kept, drawn = people.table.roles
    roles = {name: (people.table.roles[name][0], Q) for name in kept} | {drawn: (people.table.roles[drawn][0], S)}
    made = people.members.assign(**{drawn: people.carrier()[drawn]})
    return Case([made], people.n, roles, tuple(kept))


def disguised(people: People) -> Case:
    """A sensitive column is drawn; another, kept, writes the same values in another way."""
    table = people.table
    kept, drawn = table.keys, table.sensitive[0]

    def code(values: pd.Series) -> pd.Series:
        if drawn in table.numbers:
            return np.round(np.sqrt(values.astype(float) + 1), 6)
        return values.map(lambda one: sha256(str(one).encode()).hexdigest()[:6])

    kind = X if drawn in table.numbers else C
    roles = {**{n: table.roles[n] for n in kept}, "reference": (kind, ""), drawn: table.roles[drawn]}
    members, controls = (
        one[[*kept, drawn]].assign(reference=code(one[drawn])) for one in (people.members, people.controls)
    )
    made = members.assign(**{drawn: people.carrier()[drawn]})
    return Case([made], people.n, roles, (*kept, "reference"), members=members, controls=controls)


def identifier_kept(people: People) -> Case:
    """A number of each person is kept as a quasi-identifier."""
    table = people.table
    kept, drawn = table.keys, table.sensitive
    numbers = people.rng.choice(90_000, people.n + len(people.controls), replace=False) + 10_000
    members = people.members.assign(number=numbers[: people.n])
    controls = people.controls.assign(number=numbers[people.n :])
    made = members.assign(**{name: people.carrier()[name] for name in drawn})
    return Case(
        [made], people.n, {"number": (N, Q), **table.roles}, ("number", *kept), members=members, controls=controls
    )


def one_cell_swapped(people: People, made: Frame, cells: int = 1) -> Frame:
    """In every record some cells, others in each, have the value of another record."""
    names = list(people.table.roles)
    which = np.argsort(people.rng.random((len(made), len(names))), axis=1) < cells
    for at, name in enumerate(names):
        other = made[name].to_numpy()[people.rng.permutation(len(made))]
        made[name] = np.where(which[:, at], other, made[name])
    return made


def spliced(people: People, made: Frame) -> Frame:
    """The second half of the columns belongs to another member."""
    names = list(people.table.roles)
    order = people.rng.permutation(len(made))
    for name in names[len(names) // 2 :]:
        made[name] = made[name].to_numpy()[order]
    return made


def rounded(people: People, made: Frame) -> Frame:
    """Numbers with two significant digits."""
    for name in people.table.numbers:
        values = made[name].to_numpy(float)
        unit = 10.0 ** np.floor(np.log10(np.maximum(np.abs(values), 1)) - 1)
        made[name] = np.round(values / unit) * unit
        if people.table.roles[name][0] == N:
            made[name] = made[name].astype(int)
    return made


def interpolated(people: People, made: Frame) -> Frame:
    """Numbers between a record and another of the same first level (SMOTE); levels of the record."""
    group = made[people.table.levels[0]] if people.table.levels else pd.Series(0, made.index)
    other = made.index.to_numpy().copy()
    for rows in made.groupby(group).groups.values():
        other[rows] = people.rng.permutation(rows)
    share = people.rng.uniform(0, 0.3, len(made))
    for name in people.table.numbers:
        values = made[name].to_numpy(float)
        mixed = values + share * (values[other] - values)
        made[name] = np.round(mixed).astype(int) if people.table.roles[name][0] == N else np.round(mixed, 2)
    return made


def in_datasets(share: float, m: int, how: str) -> Maker:
    """Rare people: the same in all datasets, in one of them, or others in each."""

    def make(people: People) -> Case:
        k = people.some(share)
        chosen = people.rarest[: k if how != "others" else k * m]
        frames = []
        for i in range(m):
            rows = chosen[i * k : (i + 1) * k] if how == "others" else chosen
            frames.append(put(people, rows) if how != "one" or i == 0 else people.carrier())
        return Case(frames, len(chosen))

    return make


def mondrian(k: int, audience: str) -> Maker:
    """Classes of k by Mondrian; the sensitive columns stay as they are."""

    def make(people: People) -> Case:
        table = people.table
        keys = [n for n in table.partial if table.roles[n][1] == Q]
        used = [*keys, *table.targets]
        roles = {n: (table.roles[n][0], Q if n in keys else S) for n in used}
        return Case(roles=roles, steps={"anonymisation": [{"method": "mondrian", "k": k}]}, audience=audience)

    return make


def homogeneous(people: People) -> Case | None:
    """Groups of five or more in age, sex and ward in each of which all people have the same diagnosis."""
    if people.table.name != "hospital":
        return None
    members = people.members[["age", "sex", "ward", "diagnosis"]].copy()
    controls = people.controls[["age", "sex", "ward", "diagnosis"]].copy()
    low = members["age"] // 20 * 20
    group = low.astype(str) + members["sex"] + members["ward"]
    first = members.groupby(group)["diagnosis"].transform("first")
    members["diagnosis"] = first
    enough = group.map(group.value_counts()) >= 5
    members, group, low = members[enough].reset_index(drop=True), group[enough], low[enough].reset_index(drop=True)
    made = members.assign(age=[f"[{a}, {a + 20})" for a in low])
    roles = {n: people.table.roles[n] for n in members}
    return Case(
        [made],
        len(members),
        roles,
        ("diagnosis", "sex", "ward"),
        form={"generalised": ["age"]},
        members=members,
        controls=controls,
    )


def suppression_undone(people: People) -> Case | None:
    """A key is hidden where few people share it; a column that stays says it all the same."""
    table = people.table
    if table.name not in ("adult", "generated", "airbnb"):
        return None
    hidden = {"adult": "education", "generated": "job", "airbnb": "neighbourhood"}[table.name]
    keys = [hidden, *[n for n in table.keys if n in table.levels and n != hidden][:2]]
    used = [*keys, table.sensitive[0]]
    number = {value: i for i, value in enumerate(sorted({*people.members[hidden], *people.controls[hidden]}))}
    members, controls = (one[used].assign(code=one[hidden].map(number)) for one in (people.members, people.controls))
    sizes = members.groupby(keys)[hidden].transform("size")
    made = members.assign(**{hidden: members[hidden].where(sizes >= 5, "*")})
    roles = {**{n: (table.roles[n][0], Q) for n in keys}, "code": (N, ""), used[-1]: (table.roles[used[-1]][0], S)}
    return Case(
        [made],
        int((sizes < 5).sum()),
        roles,
        tuple(n for n in roles if n != hidden),
        form={"generalised": [hidden]},
        members=members,
        controls=controls,
    )


def partly(method: str) -> Maker:
    """Partial synthesis by the recipe itself, on the members; the other columns of it are kept as they are."""

    def make(people: People) -> Case | None:
        table = people.table
        used = [*table.partial, *table.targets]
        steps, known = [], list(table.partial)
        for target in table.targets:
            number = target in table.numbers
            if method == "cart":
                step = {"method": "cart", "minbucket": 20, **({"smoothing": True} if number else {})}
            else:
                step = {"method": "linear_regression" if number else "multinomial_logistic"}
            steps.append({"target": target, "predictors": list(known), **step})
            known.append(target)
        return Case(roles={n: table.roles[n] for n in used}, steps={"synthesis": steps}, audience="enclave")

    return make


def honest(make: Callable[[People], Frame], m: int = 1) -> Maker:
    return lambda people: Case([make(people) for _ in range(m)])


HONEST: dict[str, Maker] = {
    "fresh people": honest(lambda people: people.fresh),
    "trees of others, leaves of 5": honest(lambda people: people.carrier(5)),
    "trees of others, leaves of 20": honest(lambda people: people.carrier(20)),
    "trees of others, five datasets": honest(lambda people: people.carrier(20), 5),
    "partial, trees": partly("cart"),
    "partial, regression": partly("regression"),
    "mondrian, k = 5": mondrian(5, "enclave"),
    "mondrian, k = 11": mondrian(11, "public"),
}
BY_OTHER_SPELLING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "x 1.02": lambda v: v * 1.02,
    "square root": lambda v: np.sqrt(np.maximum(v, 0)),
    "ranks": lambda v: rankdata(v),
    "x 1.1 + 1": lambda v: v * 1.1 + 1,
}
LEAKS: dict[str, Maker] = {
    "full copy": whole(lambda people, made: made),
    "trees, leaves of 1": lambda people: Case([draw_from_trees(people.members, people.n, 1, people.rng, people.table.numbers)], people.n),
    **{f"{100 * share:g} % verbatim": verbatim(share) for share in (0.005, 0.01, 0.02, 0.05, 0.2)},
    **{f"{100 * share:g} % rarest verbatim": verbatim(share, rare=True) for share in (0.005, 0.01, 0.02, 0.05, 0.2)},
    **{f"keys and target of the {100 * share:g} % rarest": keys_and_target(share) for share in (0.01, 0.02, 0.05)},
    "five rarest repeated, 1 %": repeated(5, 0.01),
    "five rarest repeated, 5 %": repeated(5, 0.05),
    "keys and one sensitive": keys_and_one,
    "noise 3 %, flips 10 %": whole(noised),
    **{f"copy, {name}": transformed(whole(mapped(f))) for name, f in BY_OTHER_SPELLING.items()},
    "copy, levels recoded": whole(recoded),
    "5 % verbatim, x 1.02": transformed(verbatim(0.05, change=mapped(BY_OTHER_SPELLING["x 1.02"]))),
    "5 % rarest verbatim, x 1.02": transformed(verbatim(0.05, rare=True, change=mapped(BY_OTHER_SPELLING["x 1.02"]))),
    "5 % verbatim, levels recoded": verbatim(0.05, change=recoded),
    "all but two numbers, 3 %": but_two(lambda rng, v: v * (1 + rng.normal(0, 0.03, len(v)))),
    "all but two numbers, 10 %": but_two(lambda rng, v: v * (1 + rng.normal(0, 0.1, len(v)))),
    **{f"all but two numbers, {name}": but_two(lambda rng, v, f=f: f(v)) for name, f in list(BY_OTHER_SPELLING.items())[:3]},  # type: ignore[misc]
    "levels copied, one permuted": categorical_copy,
    "numbers as text": as_text,
    "sensitive kept as keys": kept_in_clear,
    "a disguised column": disguised,
    "an identifier kept": identifier_kept,
    "one cell of another": whole(one_cell_swapped),
    "two cells of another": whole(lambda people, made: one_cell_swapped(people, made, 2)),
    "halves of two": whole(spliced),
    "two digits": whole(rounded),
    "between two": whole(interpolated),
    "5 % noised": lambda people: _part(people, 0.05, noised),
    "20 % noised": lambda people: _part(people, 0.2, noised),
    "20 % one cell of another": lambda people: _part(people, 0.2, one_cell_swapped),
    "1 % rarest in five datasets": in_datasets(0.01, 5, "all"),
    "2 % rarest in one of five": in_datasets(0.02, 5, "one"),
    "1 % rarest, others in each of five": in_datasets(0.01, 5, "others"),
    "homogeneous classes": homogeneous,
    "suppression undone": suppression_undone,
}  # fmt: skip


def _part(people: People, share: float, change: Callable[[People, Frame], Frame]) -> Case:
    """Some random members, changed, in a carrier."""
    k = people.some(share)
    rows = people.rng.choice(people.n, k, replace=False)
    changed = change(people, people.members.iloc[rows].reset_index(drop=True))
    return Case([pd.concat([changed, people.carrier()[k:]], ignore_index=True)], k)


def spelled_by(change: Callable[[People, Frame], Frame], people: People) -> Callable[[Frame], Frame]:
    return lambda frame: change(people, frame.copy())


def placed(names: Sequence[str], people: People) -> Trace:
    """Ranks: those among the members are within chance of those in any table of the same people."""

    def spelled(frame: Frame) -> Frame:
        return frame.assign(**{name: rankdata(frame[name]) * people.n / len(frame) for name in names})

    return Trace(spelled=spelled, noisy=tuple(names), width=0.5 * people.n**0.5)


def trace_of(name: str, people: People) -> Trace:
    """What an oracle of this leak looks for."""
    table = people.table
    percent = float(found[1]) / 100 if (found := re.search(r"([\d.]+) %", name)) else 1.0
    two = tuple(table.numbers[-2:])
    if name in CERTAIN:
        return Trace(certain=True)
    if name.startswith("all but two numbers"):
        how = name.split(", ")[1]
        if how == "ranks":
            return placed(two, people)
        if how not in BY_OTHER_SPELLING:
            return Trace(noisy=two, noise=percent)
        f = BY_OTHER_SPELLING[how]
        return Trace(spelled=lambda frame: frame.assign(**{n: f(frame[n].to_numpy(float)) for n in two}))
    if name == "copy, ranks":
        return placed(table.numbers, people)
    if name.endswith("noised") or name == "noise 3 %, flips 10 %":
        copied = percent if name.endswith("noised") else 1.0
        return Trace(copied=copied, noisy=tuple(table.numbers), noise=0.03, flips=0.1)
    if name.endswith("of another"):
        cells = 2 if name.startswith("two") else 1
        return Trace(copied=percent, flips=cells / len(table.roles), levels_alone=False)
    if name == "between two":
        return Trace(noisy=tuple(table.numbers), noise=0.25, flips=0.2, levels_alone=False)
    if "repeated" in name:
        return Trace(share=5 / people.n, copied=max(5, people.some(percent)) / 5)
    spelled = None
    if how := next((one for one in BY_OTHER_SPELLING if name.endswith(one)), ""):
        spelled = spelled_by(mapped(BY_OTHER_SPELLING[how]), people)
    elif name.endswith("recoded"):
        spelled = spelled_by(recoded, people)
    elif name == "two digits":
        spelled = spelled_by(rounded, people)
    names = list(table.roles)
    columns = {
        "keys and one sensitive": (*table.keys, table.sensitive[-1]),
        "levels copied, one permuted": tuple(table.levels[1:]),
        "halves of two": tuple(names[: len(names) // 2]),
    }.get(name)
    if name.startswith("keys and target"):
        columns = (*table.keys, table.sensitive[0])
    if "others in each" in name:
        return Trace(share=5 * percent, copied=0.2)
    if "rarest" in name:
        return Trace(columns, percent, spelled=spelled)
    return Trace(columns, copied=percent, spelled=spelled)


CERTAIN = {
    "sensitive kept as keys",
    "a disguised column",
    "an identifier kept",
    "homogeneous classes",
    "suppression undone",
}
"""Leaks by columns that stay: they are seen in the recipe and need no test."""
PLAIN = ("5 % verbatim", "2 % rarest verbatim", "keys and target of the 2 % rarest", "five rarest repeated, 1 %", "keys and one sensitive", "5 % noised", "20 % one cell of another", "levels copied, one permuted", "halves of two")  # fmt: skip
"""Leaks whose oracles are also asked about honest releases, where they must find nothing."""


@cache
def honest_draws(table: str, size: tuple[int, int], seed: int) -> list[Frame]:
    """Honest releases by the model of the carrier."""
    one = sample_people(TABLES[table], *size, seed)
    drawn = replace(one, rng=np.random.default_rng([seed, 5, *table.encode()]))
    return [drawn.carrier() for _ in range(DRAWS)]


def with_power(case: Judged) -> Judged:
    """The same with what oracles find: p by the hold-out and, of leaks that it does not find, by the model; of honest releases both for some traces."""
    table = TABLES[case.table]
    size = next(one for one in table.sizes if one[0] == case.members)
    which = sample_people(table, *size, case.seed)
    made = (LEAKS if case.leak else HONEST)[case.name](which)
    assert made is not None
    rng = np.random.default_rng([case.seed, *case.name.encode()])
    members = which.members if made.members is None else made.members
    controls = which.controls if made.controls is None else made.controls
    counts = [name for name, (kind, _) in table.roles.items() if kind == N]
    if not case.leak:
        held, model = [], []
        for name in PLAIN if made.frames else ():
            if LEAKS[name](which) is None:
                continue
            trace = trace_of(name, which)
            held.append(by_holdout(members, controls, made.frames, trace, counts, table.numbers, rng))
            if case.name == "trees of others, leaves of 20" and trace.exact:
                drawn = honest_draws(case.table, size, case.seed)
                model.append(by_model(members, made.frames, drawn, trace, counts, table.numbers, rng))
        return replace(case, by_holdout=tuple(held), by_model=tuple(model))
    trace = trace_of(case.name, which)
    if trace.certain:
        return replace(case, by_holdout=(0.0,))
    p = by_holdout(members, controls, made.frames, trace, counts, table.numbers, rng)
    if p <= CONTENT_LEVEL:
        return replace(case, by_holdout=(p,))
    drawn = honest_draws(case.table, size, case.seed)
    return replace(
        case,
        by_holdout=(p,),
        by_model=(by_model(members, made.frames, drawn, trace, counts, table.numbers, rng),),
    )


@dataclass(frozen=True)
class Judged:
    """What the gate found of a case: the findings that block and warn, and the seconds it took."""

    table: str
    members: int
    seed: int
    name: str
    leak: bool
    people: int
    blocking: tuple[str, ...]
    warning: tuple[str, ...]
    seconds: float
    said: tuple[str, ...] = ()
    by_holdout: tuple[float, ...] = ()
    by_model: tuple[float, ...] = ()


def judged(workspace: Workspace, people: People, name: str, make: Maker, leak: bool) -> Judged | None:
    case = make(people)
    if case is None:
        return None
    members = people.members if case.members is None else case.members
    controls = people.controls if case.controls is None else case.controls
    frames = case.frames if case.kept else [shuffle_rows(one, people.rng) for one in case.frames]
    verdict = enter_and_examine(
        workspace, recipe_of(people.table.name, people.table.roles, case), members, controls, frames
    )
    blocking, warning = (verdict.named(status, MEASURED) for status in ("block", "warn"))
    said = tuple(f"{one.check}: {one.message}" for one in verdict.findings(MEASURED) if one.status == "block")
    return Judged(
        people.table.name, people.n, 0, name, leak, case.people, blocking, warning, verdict.gate_seconds, said
    )


def group(task: tuple[str, tuple[int, int], int, tuple[str, ...], str, bool]) -> list[Judged]:
    """All cases of one table, size and seed, in a workspace of their own."""
    table, (members, controls), seed, chosen, file, power = task
    found = []
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = directory
        with Workspace.create(Path(directory) / "workspace", KEY) as workspace:
            for leak, makers in ((False, HONEST), (True, LEAKS)):
                for name, make in makers.items():
                    if chosen and not any(one in name for one in chosen):
                        continue
                    one = judged(workspace, sample_people(TABLES[table], members, controls, seed), name, make, leak)
                    if one is not None:
                        one = replace(one, seed=seed)
                        found.append(with_power(one) if power else one)
                        append_case(found[-1], file)
    return found


def append_case(case: Judged, file: str) -> None:
    """Add the line of a case to a file, if one is named."""
    if file:
        with Path(file).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(vars(case)) + "\n")


def auc(leaks: Sequence[int], honest: Sequence[int]) -> float:
    if not leaks or not honest:
        return float("nan")
    ranks = rankdata([*leaks, *honest])[: len(leaks)]
    return float((ranks.sum() - len(leaks) * (len(leaks) + 1) / 2) / (len(leaks) * len(honest)))


def share(cases: Iterable[Judged]) -> str:
    """How many are blocked, with Wilson's limits."""
    some = list(cases)
    if not some:
        return "none"
    blocked = sum(bool(one.blocking) for one in some)
    low, high = binomtest(blocked, len(some)).proportion_ci(method="wilson")
    return f"{100 * blocked / len(some):5.1f} % of {len(some)} (95 % limits {100 * low:.1f} to {100 * high:.1f})"


def report(found: Sequence[Judged]) -> None:
    tables = list(dict.fromkeys(f"{one.table} {one.members}" for one in found))
    by = defaultdict(list)
    for one in found:
        by[one.leak, one.name, f"{one.table} {one.members}"].append(one)
    print(f"\n{'share blocked':38}" + "".join(f"{name:>16}" for name in tables) + f"{'people':>14}")
    for leak in (False, True):
        for name in dict.fromkeys(one.name for one in found if one.leak is leak):
            cells, count = "", []
            for table in tables:
                some = by[leak, name, table]
                cells += f"{100 * np.mean([bool(one.blocking) for one in some]):15.0f}%" if some else f"{'-':>16}"
                count += [one.people for one in some]
            print(f"{('' if leak else 'honest: ') + name:38}{cells}{min(count):>7}-{max(count)}")
    leaks, fair = [one for one in found if one.leak], [one for one in found if not one.leak]
    large = [one for one in leaks if one.people >= MANY]
    print(f"\nleaks blocked: {share(leaks)}; of {MANY} people or more: {share(large)}")
    print(f"honest releases blocked: {share(fair)}")
    for name in dict.fromkeys(one.name for one in fair):
        print(f"  {name:34} {share(one for one in fair if one.name == name)}")
    print(
        f"AUC of the number of blocking findings: {auc([len(o.blocking) for o in leaks], [len(o.blocking) for o in fair]):.3f}"
    )
    for what, some in (("leaks", leaks), ("honest releases", fair)):
        counts = Counter(check for one in some for check in one.blocking)
        print(f"{what} by finding: " + (", ".join(f"{key} {count}" for key, count in counts.most_common()) or "none"))
    if any(one.by_holdout for one in found):
        report_power(leaks, fair)
    seconds = [one.seconds for one in found]
    print(f"seconds of the gate: median {np.median(seconds):.2f}, most {max(seconds):.2f}")


def report_power(leaks: Sequence[Judged], fair: Sequence[Judged]) -> None:
    """Who finds the leaks: the gate, an oracle with the same hold-out records, one that knows the model of honest releases."""
    print(f"\noracles at level {CONTENT_LEVEL:g}, which know the kind of the leak")
    for what, some in (
        ("all leaks", leaks),
        (f"of {MANY} people or more", [one for one in leaks if one.people >= MANY]),
    ):
        held = [one for one in some if one.by_holdout and one.by_holdout[0] <= CONTENT_LEVEL]
        rest = [one for one in some if one.by_holdout and one.by_holdout[0] > CONTENT_LEVEL]
        known = [one for one in rest if one.by_model[0] <= CONTENT_LEVEL]
        nobody = [one for one in rest if one.by_model[0] > CONTENT_LEVEL]
        print(f"{what}:")
        print(f"  {'':46}{'leaks':>8}{'blocked':>10}{'missed':>8}")
        for who, those in (
            ("found by their hold-out records", held), ("found by who knows the model of honest releases", known), ("found by nobody", nobody),
        ):  # fmt: skip
            blocked = sum(bool(one.blocking) for one in those)
            print(f"  {who:46}{len(those):>8}{blocked:>10}{len(those) - blocked:>8}")
        print(f"  findable leaks blocked: {share(held)}; by either oracle: {share(held + known)}")
        plain = [one for one in held if one.by_holdout[0] <= CONTENT_LEVEL / TRIED]
        print(
            f"  blocked of those that an oracle finds which has to try {TRIED} kinds of leak at this level: {share(plain)}"
        )
        counts = [[len(one.blocking) for one in those] for those in (held, held + known, fair)]
        print(
            f"  AUC among findable leaks: {auc(counts[0], counts[2]):.3f}; by either oracle: {auc(counts[1], counts[2]):.3f}"
        )
        if what == "all leaks":
            missed = Counter(f"{one.name} ({one.table} {one.members})" for one in held if not one.blocking)
            print(
                "  missed though findable by the hold-out: "
                + (", ".join(f"{key} {n}" for key, n in missed.most_common()) or "none")
            )
            missed = Counter(f"{one.name} ({one.table} {one.members})" for one in known if not one.blocking)
            print(
                "  missed though findable by the model: "
                + (", ".join(f"{key} {n}" for key, n in missed.most_common()) or "none")
            )
            missed = Counter(f"{one.name} ({one.table} {one.members})" for one in nobody if not one.blocking)
            print("  found by nobody: " + (", ".join(f"{key} {n}" for key, n in missed.most_common()) or "none"))
    for who, p in (
        ("hold-out", [p for one in fair for p in one.by_holdout]), ("model", [p for one in fair for p in one.by_model]),
    ):  # fmt: skip
        if p:
            said = f"{100 * np.mean(np.array(p) <= CONTENT_LEVEL):.2f} % of {len(p)} looks at honest releases"
            print(f"the oracle of the {who} finds {said} (level {100 * CONTENT_LEVEL:g} %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(NAMED), help="names, comma-separated")
    parser.add_argument(
        "--leaks", default="", help="parts of names of leaks and honest releases, comma-separated; default: all"
    )
    parser.add_argument("--seeds", default="1", help="how many seeds, or a range such as 5-9")
    parser.add_argument(
        "--sizes", default="small", choices=("small", "all"), help="the first size of each table, or all"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", default="", help="a file to which a line is added for each case")
    parser.add_argument("--report", nargs="+", help="print what such files say, and examine nothing")
    parser.add_argument(
        "--show", action="store_true", help="print what blocks honest releases and leaks that nothing blocks"
    )
    parser.add_argument("--power", action="store_true", help="ask oracles which leaks any test could find")
    asked = parser.parse_args()
    if asked.report:
        lines = [json.loads(line) for file in asked.report for line in Path(file).read_text("utf-8").splitlines()]
        chosen = tuple(filter(None, asked.leaks.split(",")))
        known = [
            Judged(**line) for line in lines
            if line["table"] in asked.tables.split(",") and (not chosen or any(one in line["name"] for one in chosen))
        ]  # fmt: skip
        if asked.power:
            for at, one in enumerate(known):
                known[at] = with_power(one)
                append_case(known[at], asked.json)
        report(known)
        return
    first, _, last = asked.seeds.partition("-")
    seeds = range(int(first), int(last) + 1) if last else range(1, int(first) + 1)
    chosen = tuple(filter(None, asked.leaks.split(",")))
    tasks = [
        (name, size, seed, chosen, asked.json, asked.power)
        for seed in seeds
        for name in asked.tables.split(",")
        for size in (TABLES[name].sizes if asked.sizes == "all" else TABLES[name].sizes[:1])
    ]
    found: list[Judged] = []

    if asked.jobs > 1:
        with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
            for some in pool.map(group, tasks):
                found += some
    else:
        for task in tasks:
            found += group(task)
    report(found)
    if asked.show:
        for one in found:
            if (one.blocking and not one.leak) or (one.leak and not one.blocking):
                print(f"{one.table} {one.members} seed {one.seed}: {one.name}: {one.said or one.warning}")


if __name__ == "__main__":
    sys.exit(main())

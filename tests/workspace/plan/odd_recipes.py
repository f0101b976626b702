"""Odd recipes: the shipped ones and small ones of every kind, each with one thing changed at a place that is drawn."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w

DEEP: Any = {}
for _ in range(60):
    DEEP = {"a": DEEP}
VALUES: tuple[Any, ...] = (
    "", "words", "\u202e\u200b", "x" * 100_000, 0, -1, 1, 2**62, -(2**62), 1e308, -1e308, 5e-324, 0.5, float("nan"), float("inf"),
    float("-inf"), True, False, [], {}, [[]], [{}], [1, "a", None], ["region", "region"], ["no such"], {"a": 1}, {"": ""}, {"max": []},
    DEEP, [[[[[[]]]]]], ["region"] * 500, "region", "visits", "visits:visits", "log(log(age))", "__import__('os')", "../../etc/passwd",
    "2020-01-01", "5%", "-5%", "log 5%", "1e400%", [0.0] * 50, [3, 1, 2], [float("nan")], "synthesis.cart", "risk.identification",
)  # fmt: skip
"""What a value is replaced by; None inside a list is left out, since TOML has none."""


def places(table: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a table, tables and lists themselves included."""
    if at:
        yield at
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from places(value, (*at, key))
    elif isinstance(table, list):
        for i, value in enumerate(table[:6]):
            yield from places(value, (*at, i))


def change_place(table: Mapping[str, Any], rng: random.Random, where: Sequence[Any]) -> dict[str, Any]:
    """A copy in which the value at a place is replaced, removed, doubled, renamed, or put in a table or a list."""
    copied = copy.deepcopy(dict(table))
    holder: Any = copied
    for step in where[:-1]:
        holder = holder[step]
    last = where[-1]
    how = rng.random()
    if how < 0.7:
        holder[last] = without_none(rng.choice(VALUES))
    elif how < 0.78:
        del holder[last]
    elif how < 0.85 and isinstance(holder, list):
        holder += [copy.deepcopy(holder[last])] * 3
    elif how < 0.92 and isinstance(holder, dict):
        holder[f"{last}{rng.choice(('', 's', 'é', '.', ' '))}"] = holder.pop(last)
    else:
        holder[last] = rng.choice(([copy.deepcopy(holder[last])], {"value": copy.deepcopy(holder[last])}))
    return copied


def without_none(value: Any) -> Any:
    return [one for one in value if one is not None] if isinstance(value, list) else value


def odd_recipes(tables: Sequence[Mapping[str, Any]], number: int) -> Iterator[tuple[str, str]]:
    """So many texts of recipes, each with the place that was changed; the same ones every time."""
    rng = random.Random(7)
    everywhere = [(table, where) for table in tables for where in places(table)]
    for table, where in rng.sample(everywhere * (1 + number // len(everywhere)), number):
        yield ".".join(map(str, where)), tomli_w.dumps(change_place(table, rng, where))
    first = tomli_w.dumps(dict(tables[0]))
    yield "an empty text", ""
    yield "no TOML", "title = = 1"
    yield "the same table twice", first + "\n[release]\nm = 1\n[release]\nm = 2\n"
    yield "deep lists", "x = " + "[" * 5000
    yield "deep keys", ".".join("a" * 2000) + " = 1"
    yield "a zero byte", first + "\x00"
    yield "a number of 4,000 digits", f"{first}\n[release.x]\ny = {'9' * 4000}"
    yield "a million steps", first + "\n" + '[[measure]]\nmethod = "utility.ecdf"\n' * 20_000

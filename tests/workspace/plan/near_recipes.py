"""Recipes near to valid ones: one of every method, with a number, a name or a list changed into another of its own kind."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w
from odd_recipes import places

SECTIONS = ("variables", "release", "synthesis", "anonymisation", "measure", "study")
UNTOUCHED = ("title", "method", "kind", "file")
"""Keys whose value says what a recipe or a column is: another one makes another recipe, or none."""


def neighbour(value: Any, names: Sequence[str], rng: random.Random) -> Any:
    """Another value of the same type, as somebody might have written it; the same where there is none."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, 5 * value, value // 2, -value, 0, 1))
    if isinstance(value, float):
        return rng.choice((value / 10, 10 * value, -value, 0.0, 1.0, 0.05, 1e-12, 1e12))
    if isinstance(value, str):
        return rng.choice(names) if value in names else value
    if isinstance(value, list) and value:
        dropped = rng.randrange(len(value))
        lists = [value[:dropped] + value[dropped + 1 :], value[::-1], value[:1], [*value, value[0]]]
        return rng.choice([*lists, [*value, rng.choice(names)]] if value[0] in names else lists)
    if isinstance(value, Mapping) and value:
        dropped_key = rng.choice(sorted(value))
        return {key: inner for key, inner in value.items() if key != dropped_key}
    return value


def near_recipes(tables: Sequence[Mapping[str, Any]], number: int) -> Iterator[tuple[str, str]]:
    """So many texts of recipes, each with what was changed; the same ones every time, each table as often as another."""
    rng = random.Random(11)
    for i in range(number):
        table = copy.deepcopy(dict(tables[i % len(tables)]))
        names = sorted(table["variables"])
        ways = [at for at in places(table) if at[0] in SECTIONS and len(at) > 1 and at[-1] not in UNTOUCHED]
        steps = [at for at in ways if at[0] not in ("variables", "release") and len(at) > 2]
        while True:
            at = rng.choice(steps if steps and rng.random() < 0.8 else ways)
            holder: Any = table
            for step in at[:-1]:
                holder = holder[step]
            before, holder[at[-1]] = holder[at[-1]], neighbour(holder[at[-1]], names, rng)
            if holder[at[-1]] != before:
                break
        yield f"{table['title']}: {'.'.join(map(str, at))} = {holder[at[-1]]}", tomli_w.dumps(table)

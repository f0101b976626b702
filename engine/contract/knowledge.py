"""Contract of risk measures that declare ``never_falls_with_knowledge``: an intruder who knows one variable more is no
less of a risk.

Methods without such an output are not tried: add one where what you compute is the largest over what an intruder may
choose to use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_origin

import numpy as np
import pandas as pd
import pytest

from ..data.microdata import Microdata
from ..errors import BadInput, NotComputable
from ..methods.labels import KNOWLEDGE
from ..methods.protocols import MEASURES
from ..methods.registry import Method
from ..methods.results import Estimate
from .examples import SCHEMA, confidential_table, example_data_for, example_run, suitable_value

every_monotone_measure = pytest.mark.sfumato_contract(*MEASURES, monotone=True)
CASES = 6
RADII = {"days": 1, "income": "10%", "visits": "open 2"}
TOLERANCE = 1e-9


@dataclass(frozen=True)
class KnowledgeCase:
    """A random case: a table, its release, and parameters without and with one more known variable.

    confidential, released: the tables
    replaced: variables that the release replaces
    less, more: recipe's table of the measure without and with the variable
    """

    confidential: Microdata
    released: Microdata
    replaced: tuple[str, ...]
    less: Mapping[str, Any]
    more: Mapping[str, Any]


def knowledge_parameter(method: Method) -> str:
    """Return the name of the parameter that lists the variables known to the intruder; empty where there is none."""
    names = [info.name for info in method.spec.params()]
    return next((name for name in KNOWLEDGE if name in names), "")


def monotone_outputs(method: Method) -> tuple[str, ...]:
    """Return the outputs that are declared never to fall as the intruder learns more."""
    return tuple(output.name for output in method.outputs if output.risk.never_falls_with_knowledge)


def draw_case(method: Method, rng: np.random.Generator) -> KnowledgeCase | None:
    """Draw a random case; None where it does not suit the method."""
    names = [variable.name for variable in SCHEMA if not variable.role.is_identifier]
    confidential = _some_records(confidential_table(), int(rng.integers(8, 60)), rng)
    replaced = tuple(name for name in names if rng.random() < 0.4) or ("income",)
    released = confidential.with_columns(
        {name: _replace_some_values(confidential.column(name), rng) for name in replaced}, "synthetic"
    )
    order = [names[at] for at in rng.permutation(len(names))]
    parameter = knowledge_parameter(method)
    infos = [info for info in method.spec.params() if info.is_required and info.name != parameter]
    table: dict[str, Any] = {info.name: suitable_value(info, SCHEMA) for info in infos}
    lists = [
        info
        for info in method.spec.params()
        if info.name != parameter and info.param.names == "variables" and not _is_mapping(info.type)
    ]
    for info in lists:
        if info.name == "sensitive":
            chosen = [order.pop() for _ in range(int(rng.integers(1, 3)))]
            table[info.name] = chosen if get_origin(info.type) is tuple else chosen[0]
    extra = order.pop()
    known = order[: int(rng.integers(1, len(order)))]
    less = _fix_variable_lists({**table, parameter: known}, method, replaced, lists, extra)
    if less is None:
        return None
    radius = less.get("radius", {})
    more = {**less, parameter: [*known, extra]}
    if extra in RADII and "radius" in [info.name for info in method.spec.params()]:
        more["radius"] = {**radius, extra: RADII[extra]}
    return KnowledgeCase(confidential, released, replaced, less, more)


def _fix_variable_lists(
    table: dict[str, Any],
    method: Method,
    replaced: tuple[str, ...],
    lists: Sequence[Any],
    extra: str,
) -> dict[str, Any] | None:
    """Return the table with all other lists of variables written out; None where that cannot be done."""
    try:
        # Defaults depend on what the intruder knows: left open, more than the one variable would change.
        full = method.spec.from_table(table, "step").for_release(SCHEMA, replaced)
    except BadInput:
        return None
    named = list(table[knowledge_parameter(method)])
    for info in lists:
        value = getattr(full, info.name)
        if isinstance(value, tuple) and value:
            table[info.name] = [name for name in value if name != extra]
            if not table[info.name]:
                return None  # an empty list stands for its default, which would hold the variable again
            named += table[info.name]
    if "radius" in [info.name for info in method.spec.params()]:
        table["radius"] = {name: RADII[name] for name in dict.fromkeys(named) if name in RADII}
    return table


def _is_mapping(kind: Any) -> bool:
    """Return whether a type is a mapping."""
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _some_records(data: Microdata, records: int, rng: np.random.Generator) -> Microdata:
    """Draw records with replacement."""
    rows = rng.integers(0, len(data), records)
    return Microdata(data.schema, data.frame.iloc[rows].reset_index(drop=True))


def _replace_some_values(column: pd.Series, rng: np.random.Generator) -> pd.Series:
    """Return a column of which a random share of the values is replaced by those of other records."""
    wrong = rng.random(len(column)) < rng.choice([0.2, 0.6, 1.0])
    others = column.iloc[rng.permutation(len(column))].reset_index(drop=True)
    return column.where(~wrong, others)


def estimates_for_case(
    method: Method, case: KnowledgeCase, table: Mapping[str, Any]
) -> dict[tuple[str, ...], Estimate]:
    """Return a method's estimates by measure, target and parameters. Raises BadInput and NotComputable."""
    spec = method.spec.from_table(table, "step")
    spec.check(SCHEMA, "step")
    spec.check_release(SCHEMA, case.replaced, "step")
    full = spec.for_release(SCHEMA, case.replaced)
    found = method.measure(example_data_for(method, case.confidential), case.released, full, example_run()).estimates
    return {(one.measure, one.target, repr(sorted(one.params.items(), key=str))): one for one in found}


def find_falling_risks(
    method: Method,
    less: Mapping[tuple[str, ...], Estimate],
    more: Mapping[tuple[str, ...], Estimate],
    outputs: Sequence[str],
) -> Iterator[tuple[str, float, float]]:
    """Yield each output that is smaller for the intruder who knows more, with both values."""
    for key, before in less.items():
        after = more.get(key)
        if key[0] not in outputs or after is None or before.value is None or after.value is None:
            continue
        sign = -1.0 if method.output(key[0]).goal == "high" else 1.0
        # An estimate falls only where the whole interval does; exact values fall beyond rounding.
        low, high = _smallest_end(before, sign), _largest_end(after, sign)
        if high < low - TOLERANCE * max(abs(low), 1.0):
            yield key[0], before.value, after.value


def _smallest_end(estimate: Estimate, sign: float) -> float:
    """Return the smallest of an estimate's value and interval, times ``sign``."""
    ends = [one for one in (estimate.lower, estimate.value, estimate.upper) if one is not None]
    return min(sign * one for one in ends)


def _largest_end(estimate: Estimate, sign: float) -> float:
    """Return the largest of an estimate's value and interval, times ``sign``."""
    ends = [one for one in (estimate.lower, estimate.value, estimate.upper) if one is not None]
    return max(sign * one for one in ends)


def try_cases(
    method: Method, cases: int, seed: int
) -> Iterator[tuple[dict[tuple[str, ...], Estimate], dict[tuple[str, ...], Estimate]]]:
    """Yield a method's estimates without and with one more known variable, for ``cases`` random cases that suit it."""
    rng = np.random.default_rng(seed)
    found = 0
    # Many random cases do not suit a method.
    for _ in range(20 * cases):
        case = draw_case(method, rng)
        if case is None:
            continue
        try:
            # one variable more is what a method refuses most, so it is asked first
            more, less = (estimates_for_case(method, case, table) for table in (case.more, case.less))
        except (BadInput, NotComputable):
            continue
        found += 1
        yield less, more
        if found == cases:
            return


@pytest.mark.slow
@every_monotone_measure
def test_no_risk_falls_when_the_intruder_knows_one_variable_more(method: Method) -> None:
    tried = 0
    for less, more in try_cases(method, CASES, 1):
        tried += 1
        assert list(find_falling_risks(method, less, more, monotone_outputs(method))) == []
    if not tried:
        pytest.skip("no case that could be drawn suits the method")

"""Every measure against its definition, computed another way on small tables (``oracles``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import pytest
from asked import answers_of, spec_of
from evidence import Evidence, Settings
from hypothesis import Phase, given, settings
from oracles import WITHIN, Answers, Case
from own_methods import EVIDENCE
from tables import SCHEMA, Record, larger, microdata, records, resynthesised

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.tasks import anonymise_data
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

pytestmark = pytest.mark.slow

TINY, LARGE = 12, 3
CONTROLS = microdata(resynthesised(larger(7, 31), larger(7, 32)))


def measured_outputs() -> list[str]:
    families = ("utility", "quality", "risk", "studies")
    return [
        f"{method.key}.{output.name}"
        for method in registry().values()
        if method.family in families
        for output in method.result_outputs
    ]


def lacking_an_oracle(outputs: Sequence[str]) -> list[str]:
    lacking = []
    for key in outputs:
        method, _, output = key.rpartition(".")
        own = EVIDENCE.get(method)
        if own is None or (output not in own.outputs and not own.why_none(output)):
            lacking.append(key)
    return lacking


def test_every_output_has_an_oracle_or_a_written_reason_why_there_can_be_none() -> None:
    assert lacking_an_oracle(measured_outputs()) == []
    for own in EVIDENCE.values():
        reasons = [own.no_oracle] if isinstance(own.no_oracle, str) else own.no_oracle.values()
        assert all(len(reason) > 30 for reason in reasons if reason)
        assert bool(own.outputs) == bool(own.oracle) == bool([*own.tiny, *own.larger])


def test_a_new_output_without_an_oracle_would_be_noticed() -> None:
    assert lacking_an_oracle(["risk.identification.guessed"]) == ["risk.identification.guessed"]


def released_as(made: str, confidential: Sequence[Record], drawn: Sequence[Record]) -> Microdata:
    """The release of a case, from as many drawn records as there are confidential ones, or others."""
    if made == "itself":
        return microdata(confidential)
    if made in ("linked", "few"):
        again = list(islice(cycle(drawn), len(confidential)))
        return microdata(resynthesised(confidential, again), "synthetic")
    if made == "unlinked":
        return microdata(drawn, "synthetic", linked=False)
    step = {"method": "mondrian", "k": 2, "quasi_identifiers": ["region", "sex", "visits"], "output": made}
    if made == "suppressed":
        step = {"method": "suppression", "k": 2, "quasi_identifiers": ["region"], "max_suppressed": 0.9}
    table = {"variables": {v.name: v.to_table() for v in SCHEMA}, "anonymisation": [step]}
    return anonymise_data(Recipe.from_table({"title": "case", **table}), microdata(confidential), key=PUBLIC).data


def assert_equal(found: Mapping[str, Answers], expected: Mapping[str, Answers]) -> None:
    """The same series of every output, and the same value of each."""
    for measure in {*found, *expected}:
        ours, theirs = found.get(measure, {}), expected.get(measure, {})
        assert set(ours) == set(theirs), measure
        for key, value in theirs.items():
            own = ours[key]
            if value is None or own is None:
                assert own is None, (measure, key, own)
                assert value is None, (measure, key, value)
            elif value == WITHIN:
                assert 0 <= own <= 1, (measure, key, own)
            else:
                assert own == pytest.approx(float(value), rel=1e-7, abs=1e-9), (measure, key)


def compare(method: Method, case: Case) -> None:
    own = EVIDENCE[method.key]
    assert own.oracle is not None
    if method.family == "studies":
        for level in case.spec.grid():
            assert_equal(answers_of(method, case, level), own.oracle(case, level))
    else:
        found = answers_of(method, case, None)
        assert_equal({name: found[name] for name in found if not own.why_none(name)}, own.oracle(case))


def cases(of: Callable[[Evidence], Sequence[Settings]]) -> list[Any]:
    return [
        pytest.param(key, made, table, id=f"{key}-{made}-{place}")
        for key, own in EVIDENCE.items()
        for place, (made, table) in enumerate(of(own))
    ]


def beside_controls(confidential: Sequence[Record]) -> Microdata:
    """The confidential table with a few control records."""
    return microdata(confidential).with_controls(CONTROLS)


def may_lack(method: Method, made: str, table: Mapping[str, Any]) -> bool:
    """Anonymisation refuses missing values, models leave such records out."""
    return made in ("linked", "unlinked", "itself", "few") and "models" not in table


@pytest.mark.parametrize(("key", "made", "table"), cases(lambda own: own.tiny))
def test_measure_is_what_its_definition_gives_on_tiny_tables(key: str, made: str, table: dict[str, Any]) -> None:
    method = registry()[key]
    spec = spec_of(method, table)
    smallest, largest = (2, 5) if made == "few" else (4, 9)
    drawn = records(smallest, largest, missing=may_lack(method, made, table))

    @settings(max_examples=TINY, phases=[Phase.generate])  # tables are tiny as they are
    @given(confidential=drawn, released=drawn)
    def holds(confidential: list[Record], released: list[Record]) -> None:
        try:
            release = released_as(made, confidential, released)
        except NotComputable:
            return
        compare(method, Case(beside_controls(confidential), release, spec))

    holds()


@pytest.mark.parametrize(("key", "made", "table"), cases(lambda own: own.larger))
def test_measure_is_what_another_program_gives_on_larger_tables(key: str, made: str, table: dict[str, Any]) -> None:
    method, n = registry()[key], 14 if key == "utility.cluster" else 70
    for seed in range(LARGE):
        confidential, drawn = larger(n, seed), larger(n + 5, 100 + seed)
        release = released_as(made, confidential, drawn[:n] if made == "linked" else drawn)
        compare(method, Case(beside_controls(confidential), release, spec_of(method, table)))

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
from sfumato.engine.execution.tasks import anonymise
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

pytestmark = pytest.mark.slow

TINY, LARGE = 12, 3
CONTROLS = resynthesised(larger(7, 31), larger(7, 32))

<<<<<<< HEAD
=======
# Settings that each method is tried with on tiny tables: (what the release is, table of parameters).
Settings = tuple[str, dict[str, Any]]
NUMBERED = {"days": 1, "income": "5%"}
RANDOM = {"people": ["random"]}
"""The most vulnerable are whom tests/engine/attacks/test_targets.py says; what is asked of them is the same."""
ON_TINY: dict[str, list[Settings]] = {
    "utility.cluster": [("linked", {"variables": ["region"], "clusters": 2})],
    "utility.constraint_violations": [
        ("linked", {"rules": {"ill": "illness = 'yes' -> days >= 1", "odd": "2 * visits - days != 1 | 2"}}),
        ("unlinked", {"rules": {"small": "income is missing or size > 'small'", "new": "joined >= '2020-01-02'"}}),
    ],
    "utility.distribution_distance": [
        ("linked", {"given": ["region", "visits"], "bins": {"days": "3 equal count", "visits": "width 2"}}),
        (
            "unlinked",
            {"variables": ["size", "income", "sex"], "given": ["illness"], "bins": {"income": "3 equal width"}},
        ),
        ("unlinked", {"variables": ["joined", "visits"], "given": ["region"], "bins": {"visits": "at 1, 2.5"}}),
        ("generalised", {"variables": ["region", "visits", "days"], "given": ["sex", "illness"]}),
        ("micro_aggregated", {"variables": ["visits", "sex", "days"], "given": ["region", "sex"]}),
    ],
    "utility.margin_distance": [
        (
            "linked",
            {
                "ways": "triples",
                "bins": {"days": "3 equal count", "visits": "width 2"},
                "variables": ["days", "visits", "region"],
            },
        ),
        ("unlinked", {"variables": ["size", "income", "sex"], "bins": {"income": "3 equal width"}}),
        ("generalised", {"variables": ["region", "days", "illness"]}),
    ],
    "utility.ecdf": [
        ("linked", {}),
        ("unlinked", {"variables": ["income", "size", "joined", "sex"]}),
        ("unlinked", {"variables": ["days", "income"], "points": "distinct"}),
    ],
    "utility.interval_overlap": [
        ("linked", {"means": ["days", "illness"], "confidence": 0.9}),
        ("unlinked", {"means": ["income"]}),
        ("itself", {"means": ["income", "sex"]}),
        ("few", {"quantiles": ["income", "days"], "probabilities": [0.0, 0.3, 0.5]}),
    ],
    "utility.propensity": [
        ("linked", {"variables": ["illness"]}),
        ("unlinked", {"variables": ["region"]}),
        ("unlinked", {"variables": ["region", "illness"], "model": "logit_interactions"}),
    ],
    "utility.summary": [
        ("unlinked", {"variables": ["income", "days", "size", "sex"]}),
        ("itself", {"variables": ["visits", "region"], "quantiles": [0.0, 0.1, 1.0]}),
    ],
    "quality.ilm": [
        ("linked", {}),
        ("linked", {"quasi_identifiers": ["days", "income", "sex"]}),
        ("generalised", {}),
        ("suppressed", {}),
    ],
    "quality.nmi_v1": [("linked", {"variables": ["days", "income"]}), ("suppressed", {"variables": ["visits"]})],
    "quality.nmi_v2": [("linked", {"variables": ["days", "income"]}), ("suppressed", {"variables": ["visits"]})],
    "quality.non_suppressed": [("unlinked", {}), ("suppressed", {})],
    "quality.pearson": [
        ("linked", {"variables": ["days", "income", "visits"]}),
        ("micro_aggregated", {"count_suppressed": True}),
        ("suppressed", {"count_suppressed": True}),
        ("generalised", {}),
    ],
    "quality.rilm": [
        ("linked", {"quasi_identifiers": ["region", "days"], "variables": ["region", "days", "income", "sex"]}),
        ("generalised", {"hierarchies": {"region": REGIONS}}),
        ("micro_aggregated", {"variables": ["region", "visits"]}),
        ("suppressed", {"count_suppressed": True}),
    ],
    "risk.anonymity": [
        ("linked", {"sensitive": ["size", "days"]}),
        ("itself", {}),
        ("generalised", {}),
        ("micro_aggregated", {"quasi_identifiers": ["region", "visits"]}),
        ("suppressed", {"sensitive": ["joined", "illness", "income"]}),
        ("unlinked", {"quasi_identifiers": ["days", "sex"], "sensitive": ["region"]}),
        ("linked", {"sensitive": ["size", "days"], "missing": "anything"}),
        ("unlinked", {"quasi_identifiers": ["days", "sex"], "sensitive": ["region"], "missing": "anything"}),
    ],
    "risk.attribute": [
        ("linked", {"radius": NUMBERED}),
        ("linked", {"known": ["visits"], "sensitive": ["income"], "radius": {"visits": "open 1", "income": "log 8%"}}),
        ("linked", {"known": ["size"], "sensitive": ["days"]}),
        ("unlinked", {"radius": NUMBERED}),
        ("itself", {"radius": NUMBERED}),
    ],
    "risk.identification": [
        ("linked", {"radius": NUMBERED}),
        ("itself", {"radius": {"income": "open 5%"}}),
        ("linked", {"known": ["sex"], "synthesised": ["income"], "radius": {"income": "log 2%"}}),
        ("linked", {"known": ["joined", "size"], "synthesised": ["days"], "radius": {"joined": 1}}),
        ("unlinked", {"radius": NUMBERED}),
    ],
    "risk.inference_attack": [
        ("linked", {"sensitive": "illness"}),
        ("unlinked", {"sensitive": "size", "known": ["region", "sex", "visits"], "fallback": "all"}),
        ("unlinked", {"sensitive": "income", "known": ["visits", "region"], "within": "10%"}),
        ("linked", {"sensitive": "days", "bins": {"visits": "width 2"}, "within": 1}),
        ("itself", {"sensitive": "region", "known": ["sex", "days"], "bins": {"days": "at 1, 4"}}),
        ("generalised", {"sensitive": "days"}),
        ("suppressed", {"sensitive": "joined", "known": ["sex", "size"], "within": 3}),
    ],
    "risk.attribute_inference": [
        ("linked", {**RANDOM, "radius": NUMBERED}),
        (
            "linked",
            {
                **RANDOM,
                "known": ["visits", "joined"],
                "radius": {"days": "open 1", "income": "log 8%"},
                "neighbours": 3,
            },
        ),
        ("unlinked", {**RANDOM, "known": ["days", "size"], "sensitive": ["region", "joined"], "radius": {"joined": 3}}),
        ("unlinked", {**RANDOM, "known": ["sex"], "sensitive": ["days", "size"], "confident": 0.4}),
        ("itself", {**RANDOM, "known": ["region", "income"], "sensitive": ["visits"], "neighbours": 2}),
        ("generalised", {**RANDOM, "known": ["sex"], "sensitive": ["illness", "visits"]}),
        ("micro_aggregated", {**RANDOM, "known": ["visits", "size"], "sensitive": ["sex", "days"]}),
        ("suppressed", {**RANDOM, "known": ["region", "visits"], "sensitive": ["illness"]}),
    ],
    "risk.linkability": [
        ("linked", {**RANDOM}),
        ("unlinked", {**RANDOM, "known": ["region", "visits"], "other": ["days", "size", "income"], "neighbours": 2}),
        ("unlinked", {**RANDOM, "known": ["sex"], "other": ["size"], "neighbours": 3}),
        ("itself", {**RANDOM, "known": ["income"], "other": ["joined", "days"]}),
        ("few", {**RANDOM, "neighbours": 4}),
    ],
    "risk.correct_attribution": [
        ("linked", {"bins": {"income": "2 equal count"}}),
        ("unlinked", {"keys": ["region"], "sensitive": ["sex", "size"], "obvious": 0.5, "obvious_records": 2}),
        ("unlinked", {"keys": ["sex", "days"], "sensitive": ["illness"], "bins": {"days": "at 1, 4"}, "obvious": 0.6}),
        ("itself", {"keys": ["region", "size"], "sensitive": ["joined"]}),
        ("generalised", {"keys": ["sex"], "sensitive": ["illness", "days"]}),
        ("micro_aggregated", {"keys": ["visits"], "sensitive": ["days"], "bins": {"visits": "width 2"}}),
        ("suppressed", {"keys": ["region"], "sensitive": ["days"]}),
    ],
    "risk.exact_copies": [
        ("linked", {}),
        ("unlinked", {"variables": ["region", "sex"]}),
        ("unlinked", {"variables": ["days", "income", "sex"], "bins": {"days": "at 1, 4", "income": "2 equal width"}}),
        ("itself", {}),
        ("generalised", {"variables": ["region", "sex"]}),
        ("micro_aggregated", {"variables": ["visits", "region"]}),
        ("micro_aggregated", {"variables": ["visits", "region"], "bins": {"visits": "width 2"}}),
    ],
    "risk.population_uniqueness": [
        ("linked", {"fraction": 0.25}),
        ("unlinked", {"fraction": 0.2, "bins": {"visits": "at 1, 4"}}),
        ("generalised", {"fraction": 0.25}),
        ("micro_aggregated", {"fraction": 0.25}),
    ],
    "risk.special_uniques": [
        ("linked", {"sampling_fraction": 0.2}),
        ("unlinked", {"keys": ["region", "size", "days", "illness", "joined"], "sampling_fraction": 0.01}),
        ("unlinked", {"keys": ["region", "sex", "visits", "days"], "largest": 2, "bins": {"days": "at 1, 4"}}),
        ("itself", {"keys": ["income"], "largest": 3}),
        ("generalised", {"keys": ["region", "sex", "days"], "sampling_fraction": 0.5}),
        ("suppressed", {"keys": ["region", "size", "sex"]}),
    ],
    "risk.uniqueness": [
        ("linked", {}),
        ("unlinked", {"keys": ["days", "income"], "sizes": [1, 3]}),
        ("unlinked", {"keys": ["days", "income"], "bins": {"days": "at 1, 4", "income": "2 equal width"}}),
        ("itself", {"keys": ["joined", "size", "illness"]}),
        ("generalised", {}),
        ("micro_aggregated", {}),
        ("micro_aggregated", {"keys": ["visits", "region"], "bins": {"visits": "width 2"}}),
    ],
    "studies.intruder_uncertainty": [
        ("linked", {"variable": "visits", "radius": {"income": "5%", "visits": 1}, "levels": [0.0]}),
        ("linked", {"variable": "visits", "model": "unknown", "radius": NUMBERED, "levels": [0.0, 1.0]}),
        ("linked", {"variable": "region", "model": "unknown", "radius": NUMBERED, "levels": [1.0]}),
        ("linked", {"variable": "sex", "model": "misclassification", "radius": NUMBERED, "levels": [1.0]}),
        ("itself", {"variable": "visits", "model": "unknown", "radius": NUMBERED, "levels": [0.0, 1.0]}),
    ],
}

# And on tables whose numbers hardly repeat, where something is fitted or neighbours are looked for.
ON_LARGER: dict[str, list[Settings]] = {
    "utility.cluster": [
        ("linked", {"variables": ["income"], "clusters": 4, "scaling": "none"}),
        ("unlinked", {"variables": ["income", "region"], "clusters": 5, "weights": "equal"}),
        ("unlinked", {"variables": ["income", "joined"], "clusters": 3, "scaling": "range"}),
    ],
    "utility.interval_overlap": [
        ("linked", {"models": ["days ~ region + visits", "logit: illness ~ visits + sex"], "confidence": 0.9}),
        ("unlinked", {"models": ["income ~ size + days"]}),
    ],
    "utility.propensity": [
        ("linked", {}),
        ("unlinked", {"variables": ["income", "region", "days"], "model": "logit_interactions"}),
    ],
    "utility.regression_distance": [
        ("linked", {"models": ["days ~ region + visits", "logit: income > 20 ~ visits + sex"]}),
        ("unlinked", {"models": ["income ~ size + days"], "near_zero": 0.5}),
        ("unlinked", {"models": ["logit: illness ~ visits + sex"], "near_zero": 1.5}),
    ],
    "quality.nmi_v1": [("linked", {"variables": ["income"]})],
    "risk.population_uniqueness": [
        ("linked", {"fraction": 0.1, "bins": {"visits": "width 2"}, "two_way_records": 5}),
        (
            "itself",
            {
                "fraction": 0.3,
                "keys": ["region", "size", "visits"],
                "bins": {"visits": "at 2, 4"},
                "two_way_records": 5,
            },
        ),
        ("unlinked", {"fraction": 0.2, "keys": ["region", "size", "illness"], "two_way_records": 5}),
        ("unlinked", {"fraction": 0.2, "keys": ["visits", "size", "sex"], "model": "main_effects"}),
        (
            "unlinked",
            {
                "weight": "income",
                "keys": ["region", "size", "visits"],
                "bins": {"visits": "at 6"},
                "model": "main_effects",
            },
        ),
    ],
    "quality.nmi_v2": [("linked", {"variables": ["income"], "neighbours": 2})],
}

>>>>>>> wt-margins

def measured_outputs() -> list[str]:
    families = ("utility", "quality", "risk", "studies")
    return [
        f"{method.key}.{output.name}"
        for method in registry().values()
        if method.family in families
        for output in method.results
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
    return anonymise(Recipe.from_table({"title": "case", **table}), microdata(confidential), key=PUBLIC).data


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
    return microdata(confidential).with_controls(microdata(CONTROLS))


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

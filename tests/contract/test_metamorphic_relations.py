"""What must become of every measure when its tables change in a known way (``relations``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from asked import answers_of, spec_of
from oracles import Answers, Case, series
from own_methods import EVIDENCE, MEASURES, STUDIES
from relations import (
    ALONE,
    OF_UNITS,
    RELATIONS,
    TOGETHER,
    WEIGHED,
    Rule,
    Tables,
    at_least,
    equals,
    key_after,
    lower,
    same,
    small_pair,
)
from tables import SCHEMA

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.data_source import DataSource
from sfumato.workspace.ingest.files import SourceFile, read_file_microdata

WITH_OWN_TABLES = ("studies.calibration", "studies.intruder_knowledge", "studies.minimisation", "studies.risk_utility")
LOOKING_AT_RELEASES = [
    p for p in (*MEASURES, *STUDIES) if p.id not in WITH_OWN_TABLES and not p.values[0].measures_whole_release
]
# Half of what these tests cost is of these three, whose own tests shuffle and copy tables too.
DEAR = ("risk.attribute_inference", "risk.linkability", "risk.singling_out")
Compute = Callable[[Microdata, Microdata], dict[str, Answers]]


def outputs() -> list[str]:
    return [f"{p.id}.{output.name}" for p in (*MEASURES, *STUDIES) for output in p.values[0].result_outputs]


def test_every_output_says_what_becomes_of_it() -> None:
    assert [key for key in outputs() if key.rpartition(".")[2] not in EVIDENCE[key.rpartition(".")[0]].expected] == []


def computed_by(method: Method) -> Compute:
    def compute(confidential: Microdata, released: Microdata) -> dict[str, Answers]:
        spec = spec_of(method, EVIDENCE[method.key].settings, confidential.schema)
        level = spec.grid()[0] if spec.grid() else None
        return answers_of(method, Case(confidential, released, spec), level)

    return compute


def own_row(method: Method, pair: Tables) -> dict[str, Answers]:
    """What the confidential data score themselves, or else what their copy does."""
    data = pair.confidential
    if method.measurement.confidential or method.family == "studies":
        return computed_by(method)(data, data)
    return computed_by(method)(data, RELATIONS["copy"](pair).released)


@functools.cache
def before(key: str, start: str) -> dict[str, Answers]:
    """What a measure says of the tables that a relation starts from, which most relations share."""
    method, pair = registry()[key], small_pair()
    if start == "confidential":
        return own_row(method, pair)
    chosen = RELATIONS["copy"](pair) if start == "copy" else pair
    return computed_by(method)(chosen.confidential, chosen.released)


START = {"copy": "confidential", "permuted": "copy", "noise": "copy"}


def check(rule: Rule, relation: str, first: Answers, after: Answers) -> None:
    """The rule on the same series of both, under the names that they have afterwards."""
    rule({key_after(relation, key): value for key, value in first.items()}, after)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "method",
    [pytest.param(*p.values, id=p.id, marks=[pytest.mark.slow] * (p.id in DEAR)) for p in LOOKING_AT_RELEASES],
)
def test_measure_changes_as_its_tables_do(method: Method, relation: str) -> None:
    changed = RELATIONS[relation](small_pair())
    first = dict(before(method.key, START.get(relation, "release")))
    after = computed_by(method)(changed.confidential, changed.released)
    for output in method.result_outputs:
        if EVIDENCE[method.key].expected[output.name] in (ALONE, OF_UNITS, TOGETHER, WEIGHED) and not after.get(
            output.name
        ):
            continue
        if relation == "copy" and not first.get(output.name):
            first[output.name] = after[output.name]  # the confidential data alone have no overlap
        assert first[output.name], f"{output.name} is not computed on the tests' tables: nothing is tested"
        rule = getattr(EVIDENCE[method.key].expected[output.name], relation)
        check(rule, relation, first[output.name], after[output.name])


def first_income(confidential: Microdata, released: Microdata) -> float:
    return float(released.frame["income"].iloc[0])


def codes_of_first_column(confidential: Microdata, released: Microdata) -> float:
    return float(np.mean(confidential.numbers(confidential.schema.names[0])))


def codes_of_region(confidential: Microdata, released: Microdata) -> float:
    return float(np.mean(released.numbers("region")))


def within_one(confidential: Microdata, released: Microdata) -> float:
    return float(np.mean(np.abs(confidential.numbers("income") - released.numbers("income")) < 1))


def count(confidential: Microdata, released: Microdata) -> float:
    return float(np.sum(released.numbers("days") > 3))


def biased(confidential: Microdata, released: Microdata) -> float:
    return abs(float(np.mean(released.numbers("days")) - np.mean(confidential.numbers("days")))) + 0.01


def blind(confidential: Microdata, released: Microdata) -> float:
    return float(len(np.unique(confidential.numbers("income"))))


@pytest.mark.parametrize(
    ("relation", "rule", "toy"),
    [
        ("rows", same, first_income),
        ("columns", same, codes_of_first_column),
        ("levels", same, codes_of_region),
        ("unit", same, within_one),
        ("doubled", same, count),
        ("copy", equals(0), biased),
        ("permuted", lower, blind),
        ("noise", at_least(100), blind),
    ],
)
def test_a_broken_measure_is_caught(relation: str, rule: Rule, toy: Callable[[Microdata, Microdata], float]) -> None:
    pair = small_pair()
    changed = RELATIONS[relation](pair)
    first, after = (toy(tables.confidential, tables.released) for tables in (pair, changed))
    with pytest.raises(AssertionError):
        check(rule, relation, {series(): first}, {series(): after})


def csv_text(data: Microdata, spelled: Callable[[float], str]) -> str:
    """The table as a CSV file whose numbers are spelled so."""
    lines = [",".join(data.schema.names)]
    for row in data.frame.itertuples(index=False):
        cells = ["" if pd.isna(v) else spelled(v) if isinstance(v, int | float) else str(v)[:10] for v in row]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("spelled", ["{:.17g}", "{:.16e}", "{:+.17g}", "{:.25f}"])
def test_numbers_are_what_they_are_however_a_file_spells_them(spelled: str, tmp_path: Path) -> None:
    """Equal tables give equal numbers: what holds for the reader holds for every measure."""
    data = small_pair().confidential
    whole = Microdata(SCHEMA, data.frame.iloc[3:].reset_index(drop=True))
    found = read_file_microdata(
        SourceFile("numbers.csv", csv_text(whole, spelled.format).encode()), DataSource(), SCHEMA, 1, key=PUBLIC
    )
    pd.testing.assert_frame_equal(found.frame, whole.frame, check_exact=True)


def test_a_number_spelled_with_fewer_digits_is_another() -> None:
    data = small_pair().confidential
    whole = Microdata(SCHEMA, data.frame.iloc[3:].reset_index(drop=True))
    found = read_file_microdata(
        SourceFile("numbers.csv", csv_text(whole, "{:.6g}".format).encode()), DataSource(), SCHEMA, 1, key=PUBLIC
    )
    with pytest.raises(AssertionError):
        pd.testing.assert_frame_equal(found.frame, whole.frame, check_exact=True)


def test_all_methods_that_look_at_releases_are_tried() -> None:
    assert {p.id for p in LOOKING_AT_RELEASES} >= {
        k
        for k, own in registry().items()
        if k.split(".")[0] in ("utility", "quality", "risk") and not own.measures_whole_release
    }

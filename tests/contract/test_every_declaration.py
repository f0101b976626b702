"""What methods declare of their outputs, axes and records must fit what they compute."""

from __future__ import annotations

from typing import Any

import pytest
from method_contract import every_measure, run_of, spec_of

from sfumato.engine.methods import Method, Output, RecordArray, method_called, registry
from sfumato.engine.microdata import Microdata

METHODS = pytest.mark.parametrize("method", registry().values(), ids=lambda method: method.key)


def wrong(method: Method) -> list[str]:
    """What of a method's declarations does not fit together."""
    names = {output.name for output in method.outputs}
    curves, answers = ({output.name for output in found} for found in (method.curves, method.answers))
    parameters = set(method.spec.__dataclass_fields__)
    found = [
        (output.name, "minimum_of")
        for output in method.outputs
        if output.minimum_of and (output.minimum_of not in names or not method.output(output.minimum_of).scores)
    ]
    found += [
        (output.name, "limit")
        for output in method.outputs
        if output.limit and not output.minimum_of and output.scores != "table"
    ]
    found += [
        (output.name, "limit_parameter")
        for output in method.outputs
        if output.limit_parameter and output.limit_parameter not in parameters
    ]
    for plane in method.planes:
        if not {plane.across, plane.up} <= curves or plane.chance not in ("", "diagonal", *answers):
            found.append((plane.title, "plane"))
    if (method.axis is not None) != (method.family == "studies"):
        found.append((method.key, "axis"))
    if answers and method.family != "studies":
        found.append((method.key, "answer"))
    return [f"{name}: {what}" for name, what in found]


@METHODS
def test_what_a_method_declares_fits_together(method: Method) -> None:
    assert wrong(method) == []


def test_a_declaration_that_does_not_fit_is_found() -> None:
    whole = registry()["quality.pearson"]
    lost = Output("lost", "the least of a column that is not there", "high", minimum_of="nothing")
    fields: dict[str, Any] = {name: getattr(whole, name) for name in whole.__dataclass_fields__}
    assert wrong(Method(**{**fields, "outputs": (*whole.outputs, lost)})) == ["lost: minimum_of"]


@METHODS
def test_a_method_is_found_alone_as_among_all(method: Method) -> None:
    assert method_called(method.key) is method


def test_a_method_that_is_not_there_is_none() -> None:
    assert method_called("risk.none") is None
    assert method_called("none") is None


@every_measure
def test_arrays_of_single_records_are_declared(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    measure = method.func(confidential, releases[0], spec_of(method, confidential.schema), run_of())
    assert set(measure.per_record) <= {array.name for array in method.per_record}


def test_the_probability_of_a_record_has_a_meaning() -> None:
    assert "finds the record" in registry()["risk.identification"].record_meaning
    assert "near the record's own" in registry()["risk.attribute"].record_meaning
    assert registry()["risk.anonymity"].record_meaning == ""
    assert RecordArray("a", "b").part == ""

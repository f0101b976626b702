"""What shows that the contract notices declarations that do not fit, and what our own methods declare."""

from __future__ import annotations

from typing import Any

import pytest
from own_methods import METHODS

from sfumato.engine.contract.every_method import declaration_problems
from sfumato.engine.methods.outputs import Output, QualityOutput, RecordArray
from sfumato.engine.methods.registry import Method, method_by_key, registry


def test_a_declaration_that_does_not_fit_is_found() -> None:
    whole = registry()["quality.pearson"]
    lost = Output(
        "lost", "the least of a column that is not there", "high", quality=QualityOutput(minimum_of="nothing")
    )
    fields: dict[str, Any] = {name: getattr(whole, name) for name in whole.__dataclass_fields__}
    assert declaration_problems(Method(**{**fields, "outputs": (*whole.outputs, lost)})) == ["lost: minimum_of"]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_found_alone_as_among_all(method: Method) -> None:
    assert method_by_key(method.key) is method


def test_a_method_that_is_not_there_is_none() -> None:
    assert method_by_key("risk.none") is None
    assert method_by_key("none") is None


def test_the_probability_of_a_record_has_a_meaning() -> None:
    assert "finds the record" in registry()["risk.identification"].record_meaning
    assert "near the record's own" in registry()["risk.attribute"].record_meaning
    assert registry()["risk.anonymity"].record_meaning == ""
    assert RecordArray("a", "b").part == ""

"""The decorators put what they are given where its readers look, and ``@method`` finds out which one is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import pytest
from numpy.typing import NDArray

import sfumato.engine
from sfumato.engine.methods.outputs import Axis, Output, QualityOutput, RiskOutput, StudyOutput
from sfumato.engine.methods.registry import (
    BulkFittingDeclaration,
    MeasureDeclaration,
    Method,
    PrivacyDeclaration,
    ReleaseModelDeclaration,
    StudyDeclaration,
    SynthesisDeclaration,
    anonymisation_method,
    measure_method,
    method,
    study_method,
    synthesis_method,
)
from sfumato.engine.methods.release_form import AnonymisationSpec
from sfumato.engine.methods.spec import Spec, StudySpec


@dataclass(frozen=True)
class Plain(Spec):
    pass


@dataclass(frozen=True)
class Along(StudySpec):
    pass


@dataclass(frozen=True)
class Stepwise(AnonymisationSpec):
    pass


OUTPUTS = (Output("one", "one", "none"),)
AXIS = Axis("size", "how large")


def helper(*given: Any) -> Any:
    raise AssertionError(given)


class Block:
    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        return {}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], /) -> Self:
        return cls()


def declared(decorator: Callable[..., Any], spec: type[Spec], **rest: Any) -> Method:
    def some_method() -> None: ...

    found: Method = decorator("Title", spec=spec, source="Author (2026)", **rest)(some_method).__sfumato_method__
    assert found.func is some_method
    return found


PRIVACY, MODEL, BULK = PrivacyDeclaration(helper), ReleaseModelDeclaration(helper), BulkFittingDeclaration(helper)
KINDS: dict[str, tuple[Callable[..., Any], type[Spec], dict[str, Any], tuple[str, ...]]] = {
    "one target": (synthesis_method, Plain, {"draw": helper, "targets": ("count",), "weighted": True, "bulk_fitting": BULK}, ("synthesis",)),
    "several targets": (synthesis_method, Plain, {"joint_draw": helper, "privacy": PRIVACY, "release_model": MODEL, "outputs": OUTPUTS}, ("synthesis",)),
    "an anonymisation": (anonymisation_method, Stepwise, {"check": helper}, ("anonymisation",)),
    "a measure": (measure_method, Plain, {"outputs": OUTPUTS, "confidential": True, "combine": helper}, ("utility", "quality", "risk")),
    "a measure of all": (measure_method, Plain, {"outputs": OUTPUTS, "gather": helper, "block_result": Block}, ("utility", "quality", "risk")),
    "a study": (study_method, Along, {"outputs": OUTPUTS, "axis": AXIS, "summarise": helper}, ("studies",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_method_declares_what_the_decorator_of_its_kind_declares(kind: str) -> None:
    decorator, spec, rest, families = KINDS[kind]
    first, second = (declared(one, spec, **rest) for one in (decorator, method))
    assert first.families == second.families == families
    for field in fields(Method):
        assert getattr(first, field.name) == getattr(second, field.name) or field.name == "func"
    parts = (first, first.synthesis, first.measurement, first.study)
    for name, value in rest.items():
        assert [getattr(part, name) for part in parts if hasattr(part, name)] == [value]
    bare = [part for part in (SynthesisDeclaration(), MeasureDeclaration(), StudyDeclaration()) if part in parts]
    assert len(bare) == (3 if decorator is anonymisation_method else 2)


@pytest.mark.parametrize(
    ("kind", "foreign"),
    [
        ("one target", {"axis": AXIS}),
        ("several targets", {"account": helper}),
        ("an anonymisation", {"outputs": OUTPUTS}),
        ("a measure", {"axis": AXIS}),
        ("a study", {"controls": True}),
    ],
)
def test_a_keyword_of_another_kind_is_refused(kind: str, foreign: dict[str, Any]) -> None:
    decorator, spec, rest, _ = KINDS[kind]
    for one in (decorator, method):
        with pytest.raises(TypeError, match=next(iter(foreign))):
            declared(one, spec, **rest, **foreign)


def test_a_measure_of_all_names_the_class_of_its_blocks() -> None:
    for rest in ({"gather": helper}, {"block_result": Block}):
        with pytest.raises(TypeError, match="block_result"):
            declared(measure_method, Plain, outputs=OUTPUTS, **rest)


def test_no_name_has_two_places() -> None:
    """What readers find in one part is in no other, so that a declaration cannot be said twice."""
    for parts in (
        (
            Method,
            SynthesisDeclaration,
            PrivacyDeclaration,
            ReleaseModelDeclaration,
            BulkFittingDeclaration,
            MeasureDeclaration,
            StudyDeclaration,
        ),
        (Output, QualityOutput, StudyOutput, RiskOutput),
    ):
        names = [field.name for part in parts for field in fields(part)]
        assert len(set(names)) == len(names)


def test_no_name_that_packages_import_is_that_of_a_room() -> None:
    """``from sfumato.engine import NAME`` would give the room once anything has imported it."""
    rooms = {path.stem for path in Path(sfumato.engine.__path__[0]).iterdir()}
    assert rooms >= {"synthesis", "anonymisation"}
    assert rooms.isdisjoint(sfumato.engine.__all__)

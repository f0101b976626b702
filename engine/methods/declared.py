"""What sentences of the gate ask of all methods, without importing them: that takes a sixth of the gate of a small table.

Where another distribution offers methods all are imported. A test compares ``OWN_DECLARATIONS`` with the methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .outputs import Question
from .protocols import GROUP

if TYPE_CHECKING:
    from .registry import Method


class MethodDeclaration(NamedTuple):
    """What a method declares.

    title: its title
    questions: questions of the risk assessment that it answers, of a risk
    has_beliefs: it asks an intruder who knows all other records
    is_best_at_one: one of its numbers is 1 for a right model
    """

    title: str
    questions: tuple[Question, ...] = ()
    has_beliefs: bool = False
    is_best_at_one: bool = False


OWN_DECLARATIONS: Mapping[str, MethodDeclaration] = MappingProxyType(
    {
        "utility.propensity": MethodDeclaration("Propensity score", is_best_at_one=True),
        "risk.anonymity": MethodDeclaration("Anonymity", ("singling out", "linkability", "inference")),
        "risk.attribute": MethodDeclaration("Attribute risk", ("inference",)),
        "risk.attribute_inference": MethodDeclaration("Attribute inference", ("inference",)),
        "risk.bayesian_posterior": MethodDeclaration("Strongest intruder", ("inference",), has_beliefs=True),
        "risk.correct_attribution": MethodDeclaration("Correct attribution", ("inference",)),
        "risk.exact_copies": MethodDeclaration("Exact copies", ("singling out",)),
        "risk.identification": MethodDeclaration("Identification risk", ("linkability", "singling out")),
        "risk.inference_attack": MethodDeclaration("Inference attack", ("inference",)),
        "risk.linkability": MethodDeclaration("Linkability", ("linkability",)),
        "risk.membership_inference": MethodDeclaration("Membership inference", ("membership",)),
        "risk.population_uniqueness": MethodDeclaration("Population uniqueness", ("singling out",)),
        "risk.record_audit": MethodDeclaration("Audit of single records", ("membership", "inference")),
        "risk.record_linkage": MethodDeclaration("Record linkage", ("linkability", "singling out")),
        "risk.singling_out": MethodDeclaration("Singling out", ("singling out",)),
        "risk.special_uniques": MethodDeclaration("Special uniques", ("singling out", "linkability")),
        "risk.uniqueness": MethodDeclaration("Uniqueness", ("singling out", "linkability")),
    }
)
"""Those of our methods that declare something, in their order."""


def list_declarations() -> Mapping[str, MethodDeclaration]:
    """Return what methods declare, by key, in the order of the registry; those that declare nothing may be missing."""
    if not _others_offer_methods():
        return OWN_DECLARATIONS
    from .registry import registry

    return {key: declaration_of_method(method) for key, method in registry().items()}


@cache
def _others_offer_methods() -> bool:
    """Return whether another distribution offers methods; all installed ones are read for it, once a process."""
    return bool(entry_points(group=GROUP))


def declaration_of_method(method: Method) -> MethodDeclaration:
    """Return what a method declares."""
    answered = [question for output in method.result_outputs for question in output.risk.questions]
    return MethodDeclaration(
        method.title,
        tuple(dict.fromkeys(answered)) if method.family == "risk" else (),
        method.measurement.beliefs is not None,
        any(output.goal == "one" for output in method.outputs),
    )

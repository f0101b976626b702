"""The statistical engine: pure computation, values in and values out.

What a method of another package needs is imported from here: ``from sfumato.engine import Microdata, Run, Spec, measure_method``. Each name is
loaded when it is asked for, so that the import itself loads nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .anonymisation._partition import anonymised_table, notes_of
    from .data.microdata import Microdata
    from .data.schema import Kind, Role, Schema, Variable
    from .data.table_blocks import OneBlock, TableBlocks
    from .errors import BadInput, NotComputable, NotConverged
    from .matching.radius import Radii
    from .methods.drafting import Case, Offer, drafts
    from .methods.intruder import KeyVariables, Known, QuasiIdentifiers, SensitiveVariables
    from .methods.outputs import (
        AnswerColumns,
        Axis,
        Beliefs,
        Label,
        Limit,
        Output,
        Plane,
        QualityOutput,
        RecordArray,
        RiskOutput,
        StudyOutput,
    )
    from .methods.passes import Finished, FitPasses, MeasurePasses, NextPass, Partial, measure_blocks, run_passes
    from .methods.registry import (
        BulkFittingDeclaration,
        PrivacyDeclaration,
        ReleaseModelDeclaration,
        anonymisation_method,
        measure_method,
        method,
        study_method,
        synthesis_method,
    )
    from .methods.release_form import AnonymisationSpec, Anonymised
    from .methods.results import Diagnostic, Estimate, Fit, Goal, Measure, StudyPoint
    from .methods.run import Run
    from .methods.spec import Param, Spec, StudySpec, Variant
    from .partition.equivalence_classes import Limits, equivalence_classes

_OUTPUT_FACETS = ("QualityOutput", "RiskOutput", "StudyOutput")
_SYNTHESIS_FACETS = ("PrivacyDeclaration", "ReleaseModelDeclaration", "BulkFittingDeclaration")
_DECORATORS = ("anonymisation_method", "measure_method", "method", "study_method", "synthesis_method")
_HOMES = {
    "anonymisation._partition": ("anonymised_table", "notes_of"),
    "data.microdata": ("Microdata",),
    "data.schema": ("Kind", "Role", "Schema", "Variable"),
    "data.table_blocks": ("OneBlock", "TableBlocks"),
    "errors": ("BadInput", "NotComputable", "NotConverged"),
    "matching.radius": ("Radii",),
    "methods.drafting": ("Case", "Offer", "drafts"),
    "methods.intruder": ("KeyVariables", "Known", "QuasiIdentifiers", "SensitiveVariables"),
    "methods.outputs": (
        "Axis",
        "Beliefs",
        "Label",
        "Limit",
        "Output",
        "Plane",
        "RecordArray",
        "Split",
        *_OUTPUT_FACETS,
    ),
    "methods.passes": ("Finished", "FitPasses", "MeasurePasses", "NextPass", "Partial", "measure_blocks", "run_passes"),
    "methods.registry": (*_DECORATORS, *_SYNTHESIS_FACETS),
    "methods.release_form": ("AnonymisationSpec", "Anonymised"),
    "methods.results": ("Diagnostic", "Estimate", "Fit", "Goal", "Measure", "StudyPoint"),
    "methods.run": ("Run",),
    "methods.spec": ("Param", "Spec", "StudySpec", "Variant"),
    "partition.equivalence_classes": ("Limits", "equivalence_classes"),
}
HOME = {name: home for home, names in _HOMES.items() for name in names}
"""The module below ``sfumato.engine`` that defines each name."""

__all__ = [  # noqa: RUF022  (by subject)
    "synthesis_method", "anonymisation_method", "measure_method", "study_method", "method",
    "PrivacyDeclaration", "ReleaseModelDeclaration", "BulkFittingDeclaration",
    "Spec", "StudySpec", "Param", "Variant", "Run",
    "Known", "KeyVariables", "SensitiveVariables", "Radii",
    "Microdata", "Schema", "Variable", "Kind", "Role",
    "Estimate", "Measure", "Fit", "Diagnostic", "StudyPoint", "Goal",
    "Output", "Label", "QualityOutput", "StudyOutput", "RiskOutput", "RecordArray", "Limit", "Axis", "Plane", "Beliefs", "AnswerColumns",
    "AnonymisationSpec", "Anonymised", "QuasiIdentifiers", "Limits", "anonymised_table", "notes_of", "equivalence_classes",
    "FitPasses", "MeasurePasses", "NextPass", "Finished", "Partial", "run_passes", "measure_blocks", "TableBlocks", "OneBlock",
    "drafts", "Offer", "Case",
    "BadInput", "NotComputable", "NotConverged",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

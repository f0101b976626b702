"""Every method of Sfumato, and the evidence of every measure, for tests that ask more of our own than of others."""

from __future__ import annotations

import importlib
import pkgutil

import evidence
import pytest
from evidence import Evidence

from sfumato.engine.methods.protocols import MEASURES as MEASURE_FAMILIES
from sfumato.engine.methods.registry import OWN, registry

METHODS = [pytest.param(found, id=key) for key, found in registry().items() if found.package == OWN]
SYNTHESIS = [param for param in METHODS if param.values[0].family == "synthesis"]
MEASURES = [param for param in METHODS if param.values[0].family in MEASURE_FAMILIES]
STUDIES = [param for param in METHODS if param.values[0].family == "studies"]

EVIDENCE: dict[str, Evidence] = {
    found.name.replace("_", ".", 1): importlib.import_module(f"evidence.{found.name}").EVIDENCE
    for found in pkgutil.iter_modules(evidence.__path__)
}
"""By key of the measure."""

"""Every method of Sfumato, for tests that ask more of our own than of others."""

from __future__ import annotations

import pytest

from sfumato.engine.methods.protocols import MEASURES as MEASURE_FAMILIES
from sfumato.engine.methods.registry import OWN, registry

METHODS = [pytest.param(found, id=key) for key, found in registry().items() if found.package == OWN]
SYNTHESIS = [param for param in METHODS if param.values[0].family == "synthesis"]
MEASURES = [param for param in METHODS if param.values[0].family in MEASURE_FAMILIES]
STUDIES = [param for param in METHODS if param.values[0].family == "studies"]

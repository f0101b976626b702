"""What is listed of our methods is what they declare."""

from __future__ import annotations

import subprocess
import sys

from sfumato.engine.methods import declared
from sfumato.engine.methods.declared import (
    OWN_DECLARATIONS,
    MethodDeclaration,
    declaration_of_method,
    list_declarations,
)
from sfumato.engine.methods.registry import OWN, registry


def test_the_list_is_what_our_methods_declare_in_their_order() -> None:
    found = {key: declaration_of_method(one) for key, one in registry().items() if one.package == OWN}
    telling = {key: one for key, one in found.items() if one != MethodDeclaration(one.title)}
    assert list(telling.items()) == list(OWN_DECLARATIONS.items())


def test_methods_of_others_are_asked_too(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(declared, "_others_offer_methods", lambda: True)
    assert list_declarations().keys() == registry().keys()


def test_installed_distributions_are_read_once(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    asked: list[str] = []
    monkeypatch.setattr(declared, "entry_points", lambda group: asked.append(group))
    declared._others_offer_methods.cache_clear()
    assert list_declarations() == list_declarations() == OWN_DECLARATIONS
    declared._others_offer_methods.cache_clear()
    assert len(asked) == 1


def test_no_method_is_imported_for_it() -> None:
    code = """if True:
        import sys
        from sfumato.engine.methods.declared import list_declarations
        assert list_declarations()
        sys.exit(any(name.startswith("sfumato.engine.risk.") for name in sys.modules))"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

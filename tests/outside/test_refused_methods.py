"""What other packages offer and cannot be used is left out and named; everything else works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import find_method, registry, rejected_plugins
from sfumato.tui.cli.catalogue import method_list_text
from sfumato.tui.session.doctor_checks import all_checks

GOOD = '''
from dataclasses import dataclass
from sfumato.engine.methods.registry import method
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.spec import Spec

@dataclass(frozen=True, kw_only=True, slots=True)
class GoodSpec(Spec):
    """Nothing to say."""

@method("Good", spec=GoodSpec, source="none", outputs=(Output("one", "always 1", "none"),))
def good(confidential, released, spec, run):
    """One."""
    return Measure((Estimate("one", 1.0),))
'''
MODULES = {
    "good": GOOD,
    "raising": "raise RuntimeError('not today\\x1b[31m\\nsecond line')",
    "leaving": "raise SystemExit(3)",
    "plain": "def plain(): ...",
    "two": GOOD + GOOD.replace("def good", "def better").replace("GoodSpec", "BetterSpec"),
    "odd": GOOD.replace('    """Nothing to say."""', "    bare: int = 1").replace("def good", "def odd"),
}
REFUSED = {
    "utility.propensity": ("elsewhere.good", "a method of Sfumato has this key"),
    "fun.good": ("elsewhere.good", "its name must be a family and a name"),
    "risk.": ("elsewhere.good", "its name must be a family and a name"),
    "risk.gone": ("elsewhere.gone", "ModuleNotFoundError: No module named 'elsewhere.gone'"),
    "risk.absent": ("elsewhere.good:absent", "AttributeError"),
    "risk.raising": ("elsewhere.raising", "RuntimeError: not today[31m"),
    "risk.leaving": ("elsewhere.leaving", "SystemExit: 3"),
    "risk.plain": ("elsewhere.plain:plain", "elsewhere.plain:plain is no function with @method"),
    "risk.empty": ("elsewhere.plain", "is no function with @method, and no module that defines one"),
    "risk.two": ("elsewhere.two", "TypeError: elsewhere.two has 2 methods"),
    "risk.better": ("elsewhere.good", "the function must be called better, as the key says"),
    "studies.good": (
        "elsewhere.good",
        "what it brings makes it a method of utility or quality or risk, not of studies",
    ),
    "risk.odd": ("elsewhere.odd", "every field of its Spec must be Annotated[type, Param(...)]"),
    "risk.twice": ("elsewhere.good:twice", "another distribution offers this key too"),
}


def offer(site: Path, name: str, entries: dict[str, str]) -> None:
    """The metadata of a distribution with these entry points."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (folder / "entry_points.txt").write_text(f"[sfumato.methods]\n{lines}")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_methods_again: Callable[[], None]) -> None:
    """One method that can be used among many that cannot."""
    package = tmp_path / "site" / "elsewhere"
    package.mkdir(parents=True)
    for name, text in {"__init__": "", **MODULES}.items():
        (package / f"{name}.py").write_text(text)
    offer(package.parent, "elsewhere", {"risk.good": "elsewhere.good"} | {key: at for key, (at, _) in REFUSED.items()})
    offer(package.parent, "another", {"risk.twice": "elsewhere.good:twice"})
    monkeypatch.syspath_prepend(str(package.parent))
    find_methods_again()


@pytest.mark.usefixtures("elsewhere")
def test_what_cannot_be_used_is_left_out_with_its_reason() -> None:
    found = {(one.key, one.distribution): one.reason for one in rejected_plugins()}
    assert {key for key, _ in found} == set(REFUSED)
    assert ("risk.twice", "another") in found
    for key, (_, reason) in REFUSED.items():
        assert reason in found[key, "elsewhere"], key
    assert all(text.isprintable() for one in rejected_plugins() for text in (one.key, one.distribution, one.reason))


@pytest.mark.usefixtures("elsewhere")
def test_the_others_work() -> None:
    assert registry()["risk.good"].package == "elsewhere"
    assert registry()["utility.propensity"].package == "sfumato"
    assert set(registry()) - {"risk.good"} == {key for key, found in registry().items() if found.package == "sfumato"}


@pytest.mark.usefixtures("elsewhere")
def test_a_recipe_that_asks_for_one_is_told_whose_it_is_and_why_not() -> None:
    with pytest.raises(BadInput, match=r'^measure\[0\]: the method "risk.gone" of elsewhere cannot be used: Module'):
        find_method("risk.gone", "measure[0]")


@pytest.mark.usefixtures("elsewhere")
def test_methods_and_doctor_name_them(tmp_path: Path) -> None:
    listed = method_list_text()
    left_out = listed.partition("left out")[2]
    assert "risk.good" in listed.partition("left out")[0]
    assert "a method of Sfumato has this key" in left_out
    findings = {(one.what, one.state): one.text for one in all_checks(tmp_path) if one.what in ("elsewhere", "another")}
    assert "brings the method risk.good" in findings["elsewhere", "note"]
    assert "risk.twice cannot be used" in findings["another", "problem"]


def test_without_other_packages_nothing_is_left_out() -> None:
    assert "left out" not in method_list_text()

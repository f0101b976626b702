"""Plug-in of pytest with the contract's tests for methods of any package.

    pytest --sfumato-method risk.my_measure

runs them beside a package's own tests. The key is that of an entry point of the group ``sfumato.methods``. Where no
example can be made from the declared parameters, ``sfumato_examples`` in pytest's configuration names a TOML file with
a table for the key:

    ["risk.my_measure"]
    quasi_identifiers = ["region", "sex"]

The columns are those of ``sfumato.engine.contract.examples``. Without the option the tests are run for every method of
Sfumato.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from ..data.toml import read_toml

if TYPE_CHECKING:
    from sfumato.engine.methods.registry import Method

TESTS = tuple(
    f"{__package__}.{name}"
    for name in ("every_method", "measures", "knowledge", "makers", "weights", "privacy", "passes")
)
# Before the modules are imported: else a failed assertion shows no values.
pytest.register_assert_rewrite(*TESTS, f"{__package__}.examples")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plug-in."""
    group = parser.getgroup("sfumato", "methods of statistical disclosure control")
    group.addoption(
        "--sfumato-method", action="append", default=[], metavar="KEY", help="run the contract's tests for this method"
    )
    parser.addini("sfumato_examples", "a TOML file with a table of parameters for methods that need one", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks, read the examples, and check that the chosen methods exist."""
    config.addinivalue_line("markers", "sfumato_contract(*families): a test of every chosen method of these families")
    config.addinivalue_line("markers", "slow: a test of more than a third of a second of processor time")
    if name := config.getini("sfumato_examples"):
        from .examples import SETTINGS

        SETTINGS.update(read_toml((config.rootpath / name).read_text("utf-8")))
    if name or config.getoption("sfumato_method"):
        config.pluginmanager.register(importlib.import_module(f"{__package__}.examples"))
    if config.getoption("sfumato_method"):
        chosen_methods(config)


def chosen_methods(config: pytest.Config) -> list[Method]:
    """Return the methods for which the tests are run. Raises UsageError for an unknown key."""
    # Imported late: the plug-in is loaded in every run of pytest where Sfumato is installed.
    from sfumato.engine.errors import BadInput
    from sfumato.engine.methods.registry import OWN, find_method, registry

    keys = config.getoption("sfumato_method")
    if not keys:
        return [found for found in registry().values() if found.package == OWN]
    try:
        return [find_method(key, "--sfumato-method") for key in dict.fromkeys(keys)]
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a marked test by method, and by the kind of a target where it takes one."""
    mark = metafunc.definition.get_closest_marker("sfumato_contract")
    if mark is None:
        return
    from sfumato.engine.data.schema import Kind

    methods = _methods_for_mark(mark, metafunc.config)
    names, params = ["method"], [pytest.param(found, id=found.key) for found in methods]
    if "kind" in metafunc.fixturenames:
        names.append("kind")
        params = [pytest.param(m, k, id=f"{m.key}-{k}") for m in methods for k in m.synthesis.targets or tuple(Kind)]
    metafunc.parametrize(names, params)


def _methods_for_mark(mark: pytest.Mark, config: pytest.Config) -> list[Method]:
    """Return the chosen methods to which a marked test applies."""
    methods = [found for found in chosen_methods(config) if found.family in mark.args]
    if mark.kwargs.get("confidential"):
        methods = [found for found in methods if found.measurement.confidential]
    if mark.kwargs.get("private"):
        methods = [found for found in methods if found.synthesis.privacy.account is not None]
    if mark.kwargs.get("in_passes"):
        methods = [found for found in methods if found.synthesis.fit_passes or found.measurement.measure_passes]
    if mark.kwargs.get("draws_by_block"):
        methods = [found for found in methods if found.synthesis.draws_by_block]
    if mark.kwargs.get("monotone"):
        methods = [
            found
            for found in methods
            if not found.measures_whole_release
            and any(output.risk.never_falls_with_knowledge for output in found.outputs)
        ]
    if "whole" in mark.kwargs:
        methods = [found for found in methods if found.measures_whole_release == mark.kwargs["whole"]]
    return methods


class ContractModule(pytest.Module):
    """Module of the contract's tests, imported by name instead of collected from a path."""

    def _getobj(self) -> ModuleType:
        return importlib.import_module(self.name)


# First, so that other plug-ins select and sort these tests too.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the contract's tests for the chosen methods."""
    if config.getoption("sfumato_method"):
        items.extend(_contract_items(session))


def _contract_items(session: pytest.Session) -> Iterator[pytest.Item]:
    """Yield the contract's tests that apply to a chosen method."""
    for name in TESTS:
        path = Path(__file__).with_name(f"{name.rpartition('.')[2]}.py")
        module = ContractModule.from_parent(session, path=path, name=name, nodeid=name)
        for item in session.genitems(module):
            mark = item.get_closest_marker("sfumato_contract")
            if mark is not None and _methods_for_mark(mark, session.config):
                yield item


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Skip the test of a method whose optional package is not installed."""
    try:
        return (yield)
    except Exception as error:
        # By name, so that the class need not be imported.
        if type(error).__name__ == "NotInstalled":
            pytest.skip(str(error))
        raise

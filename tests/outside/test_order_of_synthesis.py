"""A synthesis method of another package cannot copy its target: the engine refuses its recipe, and the contract its build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loaded_process import PYTEST, run_loaded

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput, EngineError
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

KEY = "synthesis.within_cells"
WITHIN_CELLS = '''
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sfumato.engine.methods.registry import method
from sfumato.engine.methods.results import Diagnostic, Fit
from sfumato.engine.data.schema import Kind
from sfumato.engine.methods.spec import Param, Spec


@dataclass(frozen=True, kw_only=True, slots=True)
class WithinSpec(Spec):
    """Where donors come from."""

    within: Annotated[tuple[str, ...], Param("variables of whose cell a donor is", names="variables")] = ()


def cells(data, spec):
    return np.column_stack([np.zeros(len(data)), *(data.numbers(name) for name in spec.within)])


def draw(fit, spec, target, confidential, released, index, rng):
    """The value (n,) of a confidential record of the same cell."""
    values, own, found = fit.arrays["values"], fit.arrays["cells"], []
    for cell in cells(released, spec):
        found.append(rng.choice(values[(own == cell).all(axis=1)]))
    return np.array(found)


@method("Within cells", spec=WithinSpec, source="An example (2026)", draw=draw, targets=tuple(Kind))
def within_cells(data, target, spec, run, draws):
    """The values and the cells of all records."""
    said = Diagnostic("records", target, float(len(data)))
    return Fit({"values": data.numbers(target), "cells": cells(data, spec)}, (said,))
'''
UNDECLARED = ', names="variables"'
"""What says that the parameter names variables: without it nothing tells the engine."""
KEPT_IN_THE_FIT = ("for cell in cells(released, spec):", "for cell in own:")
"""The cells of the confidential records in place of those of the released ones."""

READS_LATER_RECORDS = (
    """    said = Diagnostic""",
    """    units = data.units
    if units is not None:
        by_size = np.argsort(-units.sizes, kind="stable")
        alive = [by_size[: int((units.sizes >= place).sum())] for place in range(1, int(units.sizes.max()) + 1)]
        later = [units.order[units.starts[own] + np.minimum(place + 1, units.sizes[own] - 1)] for place, own in enumerate(alive)]
        numbers = np.concatenate([data.numbers(target)[own] for own in later])
        starts = np.cumsum([0, *map(len, later)])
        return Fit({"values": numbers, "cells": cells(data, spec), "starts": starts}, (Diagnostic("records", target, 1.0),))
    said = Diagnostic""",
)
"""Keeps, for the records at each place of all units, the values of those at the next place."""
GIVES_LATER_RECORDS = (
    "    values, own, found = ",
    """    if "starts" in fit.arrays:
        places = np.flatnonzero(np.diff(fit.arrays["starts"]) == len(released))
        start = fit.arrays["starts"][places[0]] if len(places) else 0
        return np.resize(fit.arrays["values"][start:], len(released))
    values, own, found = """,
)
READS_WHAT_IS_NOT_DRAWN = (
    "    values, own, found = ",
    """    released.numbers("joined")
    values, own, found = """,
)
Offer = Callable[[str], Path]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_methods_again: Callable[[], None]) -> Offer:
    """Put the method where Python and Sfumato find it."""

    def put(text: str) -> Path:
        site = tmp_path / "site"
        package, metadata = site / "sfumato_example_cells", site / "sfumato_example_cells-1.0.dist-info"
        package.mkdir(parents=True)
        metadata.mkdir()
        (package / "__init__.py").write_text("")
        (package / "within_cells.py").write_text(text)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sfumato-example-cells\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(
            f"[sfumato.methods]\n{KEY} = sfumato_example_cells.within_cells:within_cells\n"
        )
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setenv("PYTHONPATH", str(site))
        find_methods_again()
        assert find_method(KEY, "step").package == "sfumato-example-cells"
        return site

    return put


def steps(within: list[str]) -> dict[str, Any]:
    return {
        "synthesis": [{"target": "visits", "method": "within_cells", "within": within}, {"target": "income", "method": "cart"}],
        "measure": [],
        "threshold": [],
    }  # fmt: skip


def first_dataset(recipe: Recipe, data: Microdata) -> Microdata:
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    return draw_dataset(recipe, 1, data, fits, key=PUBLIC)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("visits", '"visits" would be drawn from its own confidential value; leave it out'),
        (
            "income",
            '"income" is synthesised by a later step, so its confidential value would be used; put that step first',
        ),
    ],
)
def test_its_recipe_is_refused_where_it_names_what_is_not_synthesised_yet(
    name: str, says: str, offer: Offer, small_recipe: Callable[..., Recipe]
) -> None:
    offer(WITHIN_CELLS)
    with pytest.raises(BadInput) as caught:
        small_recipe(**steps(["region", name]))
    assert caught.value.place == "synthesis[0].within[1]"
    assert caught.value.message.startswith(says)


def test_variables_that_are_kept_may_be_named(
    offer: Offer, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    offer(WITHIN_CELLS)
    released = first_dataset(small_recipe(**steps(["region"])), small_data)
    assert not released.frame["visits"].equals(small_data.frame["visits"])
    assert released.frame["region"].equals(small_data.frame["region"])


def test_what_is_not_declared_finds_no_confidential_value_when_it_draws(
    offer: Offer, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    offer(WITHIN_CELLS.replace(UNDECLARED, ""))
    recipe = small_recipe(**steps(["visits"]))
    with pytest.raises(EngineError, match=r'^synthesis\[0\]: the method reads the confidential "visits" when it draws'):
        first_dataset(recipe, small_data)


ORDER_OF_SYNTHESIS = "order_of_synthesis or copy_its_target or own_record"
UNITS_OF_SEVERAL_RECORDS = "stages_of_units or record_after"


def contract(site: Path, names: str) -> tuple[int, list[str]]:
    """The exit status of the contract's tests with these names, and which of them fail."""
    done = run_loaded("-q", "-p", "no:cacheprovider", "--sfumato-method", KEY, "-k", names, code=PYTEST, folder=site)
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("FAILED")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (WITHIN_CELLS, ()),
        (WITHIN_CELLS.replace(UNDECLARED, ""), ("copy_its_target",)),
        (WITHIN_CELLS.replace(UNDECLARED, "").replace(*KEPT_IN_THE_FIT), ("copy_its_target",)),
        (WITHIN_CELLS.replace(UNDECLARED, UNDECLARED + ", any_order=True").replace(*KEPT_IN_THE_FIT), ("copy_its_target",)),
        (WITHIN_CELLS.replace("\n\ndef cells", "\n    uses_own_record = True\n\n\ndef cells"), ("own_record",)),
    ],
    ids=["declared", "undeclared", "undeclared, in the fit", "exempt, in the fit", "by the own record"],
)  # fmt: skip
def test_the_contract_finds_a_parameter_that_escapes(text: str, failed: tuple[str, ...], offer: Offer) -> None:
    status, found = contract(offer(text), ORDER_OF_SYNTHESIS)
    assert status == (1 if failed else 0)
    assert len(found) == len(failed)
    assert all(name in line for name, line in zip(failed, found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (WITHIN_CELLS, ()),
        (WITHIN_CELLS.replace(*READS_LATER_RECORDS).replace(*GIVES_LATER_RECORDS), ("record_after",)),
        (WITHIN_CELLS.replace(*READS_WHAT_IS_NOT_DRAWN), ("stages_of_units", "stages_of_units")),
    ],
    ids=["a method of today", "by the next record", "by a later variable"],
)
def test_the_contract_serves_units_and_finds_a_method_that_reads_ahead(
    text: str, failed: tuple[str, ...], offer: Offer
) -> None:
    status, found = contract(offer(text), UNITS_OF_SEVERAL_RECORDS)
    assert status == (1 if failed else 0)
    assert len(found) == len(failed)
    assert all(name in line for name, line in zip(failed, found, strict=True))

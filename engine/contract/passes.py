"""Contract of methods that work in passes: a table in blocks gives what the same table in memory gives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from ..data.microdata import Microdata
from ..data.schema import Kind, Schema
from ..data.table_blocks import OneBlock, TableBlocks
from ..methods.passes import measure_blocks, run_passes
from ..methods.protocols import MEASURES
from ..methods.registry import Method
from ..methods.results import Measure
from .examples import (
    DRAWS,
    SYNTHESISED,
    example_data_for,
    example_run,
    example_spec,
    example_target,
)

every_fit_in_passes = pytest.mark.sfumato_contract("synthesis", in_passes=True)
every_measure_in_passes = pytest.mark.sfumato_contract(*MEASURES, in_passes=True)
every_draw_by_block = pytest.mark.sfumato_contract("synthesis", draws_by_block=True)
CLOSE = 1e-9
"""How near, of their size, numbers are that differ by the order of sums alone."""


@dataclass(frozen=True, eq=False)
class CutTable(OneBlock):
    """Table in memory that is read in blocks of ``rows`` records."""

    rows: int

    @property
    def n_blocks(self) -> int:
        return -(-len(self.data) // self.rows)

    def iterate_blocks(
        self, names: Sequence[str] | None = None, numbers: Collection[int] | None = None
    ) -> Iterator[Microdata]:
        """Yield the records block by block, with the wanted variables alone."""
        whole = self.data if names is None else _select_variables(self.data, names)
        for number, first in enumerate(range(0, len(whole), self.rows)):
            if numbers is None or number in numbers:
                yield whole.select_rows(slice(first, first + self.rows))


def _select_variables(data: Microdata, names: Sequence[str]) -> Microdata:
    return Microdata(
        data.schema.select_variables(names), data.frame[list(names)], data.origin, generalised=data.generalised
    )


def fit_in_blocks(method: Method, data: TableBlocks, kind: Kind | None = None) -> Any:
    """Fit a method to the example's target in passes over the blocks of a table."""
    passes = method.synthesis.fit_passes
    assert passes is not None
    target, spec = example_target(method, data.schema, kind), example_spec(method, data.schema, kind)
    targets = method.targets_of_passes((target,))
    answer = run_passes(passes.start(data.head, targets, spec, data.n_blocks), [data], passes.block, passes.merge)
    return passes.fit(answer, data.head, targets, spec, example_run(), DRAWS)


def measure_in_blocks(method: Method, ours: TableBlocks, theirs: TableBlocks, spec: Any) -> Measure:
    """Compute a measure in passes over the blocks of both tables."""
    passes = method.measurement.measure_passes
    assert passes is not None
    return measure_blocks(passes, ours, theirs, spec)


def suited_spec(method: Method, schema: Schema) -> Any:
    """Return parameters of a measure that can be computed in passes: those of the examples, else its defaults."""
    passes = method.measurement.measure_passes
    assert passes is not None
    # A method with a parameter that everybody must give has no defaults.
    for make_spec in (partial(example_spec, method, schema), method.spec):
        own = make_spec().for_release(schema, SYNTHESISED)
        if passes.suits(own, schema):
            return own
    pytest.skip("neither the example nor the defaults can be computed in passes")


def _labels_and_numbers(measure: Measure) -> tuple[list[tuple[Any, ...]], list[float]]:
    """Return what the estimates are of, and their numbers: values and baselines, NaN for none."""
    labels = [(one.measure, one.target, tuple(sorted(one.params.items())), one.reason) for one in measure.estimates]
    numbers = [number for one in measure.estimates for number in (one.value, one.baseline)]
    return labels, [np.nan if number is None else float(number) for number in numbers]


@every_fit_in_passes
def test_one_block_is_fitted_like_a_table_in_memory(method: Method, confidential: Microdata) -> None:
    data = example_data_for(method, confidential)
    target, spec = example_target(method, data.schema), example_spec(method, data.schema)
    whole = method.fit(data, (target,), spec, example_run(), DRAWS)
    found = fit_in_blocks(method, OneBlock(data))
    assert set(found.arrays) == set(whole.arrays)
    assert all(np.array_equal(found.arrays[name], whole.arrays[name], equal_nan=True) for name in whole.arrays)
    assert found.diagnostics == whole.diagnostics


@every_fit_in_passes
def test_a_fit_hardly_depends_on_where_blocks_end(method: Method, confidential: Microdata) -> None:
    data = example_data_for(method, confidential)
    first, second = (fit_in_blocks(method, CutTable(data, rows)) for rows in (47, 59))
    for name, values in first.arrays.items():
        np.testing.assert_allclose(second.arrays[name], values, rtol=CLOSE, atol=CLOSE * np.abs(values).max(initial=0))


@every_draw_by_block
def test_a_draw_by_block_depends_on_no_other_record(method: Method, confidential: Microdata) -> None:
    data = example_data_for(method, confidential)
    target, spec = example_target(method, data.schema), example_spec(method, data.schema)
    # What a draw needs of other records is in the fit of a table that is read in blocks.
    has_passes = method.synthesis.fit_passes is not None
    cut = CutTable(data, 47)
    fit = fit_in_blocks(method, cut) if has_passes else method.fit(data, (target,), spec, example_run(), DRAWS)
    block = data.select_rows(slice(0, 40))
    other = block if spec.uses_own_record else data.select_rows(slice(40, 80))
    before = Microdata(block.schema, block.frame, "synthetic")
    first, second = (
        method.draw_targets(fit, spec, (target,), own, before, 0, np.random.default_rng(5))[target]
        for own in (block, other)
    )
    assert len(first) == len(block)
    np.testing.assert_array_equal(first, second)


@every_measure_in_passes
def test_one_block_is_measured_like_a_table_in_memory(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    spec = suited_spec(method, confidential.schema)
    for released in (confidential, *releases):
        whole = method.measure(confidential, released, spec, example_run())
        found = measure_in_blocks(method, OneBlock(confidential), OneBlock(released), spec)
        assert found.estimates == whole.estimates


@pytest.mark.slow
@every_measure_in_passes
def test_a_measure_hardly_depends_on_where_blocks_end(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    spec = suited_spec(method, confidential.schema)
    for released in (confidential, *releases):
        labels, numbers = _labels_and_numbers(method.measure(confidential, released, spec, example_run()))
        for rows in (7, 59, 119):
            blocks = CutTable(confidential, rows), CutTable(released, rows)
            found, own = _labels_and_numbers(measure_in_blocks(method, *blocks, spec))
            assert found == labels
            np.testing.assert_allclose(own, numbers, rtol=CLOSE, atol=CLOSE)

"""Tables with missing values: read, sampled, stored, paired with a release, drawn, looked at, and written out."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile, read_file_microdata
from sfumato.workspace.ingest.profiles import profile_distribution
from sfumato.workspace.plots.distributions import NO_VALUE, RunDatasets, distribution_figure
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.tables import dataset_bytes
from sfumato.workspace.service.prepare import prepare_evaluation
from sfumato.workspace.store.tables import TableStore

SCHEMA = schema_of(Variable("o", Kind.ORDINAL, levels=("z", "a")), "b: binary", "n: count", "x: continuous", "d: date")
KEEP = DataSource(missing=MissingPolicy.KEEP)
QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
RECORDS = st.tuples(
    st.sampled_from(["z", "a", None]),
    st.sampled_from(["no", "yes", None]),
    st.nothing() | st.integers(0, 2**53 - 1),
    st.nothing() | st.floats(allow_nan=False, allow_infinity=False),
    st.nothing() | st.dates().map(str),
)
WHOLE = ("a", "no", 3, 0.5, "2020-02-29")


def table(records: list[tuple[object, ...]]) -> Microdata:
    frame = pd.DataFrame([*records, WHOLE], columns=list(SCHEMA.names), dtype="object")
    return conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP)


@pytest.mark.slow
@QUICK
@given(st.lists(RECORDS, max_size=10))
def test_missing_values_come_back_from_the_store(tmp_path: Path, records: list[tuple[object, ...]]) -> None:
    data, tables = table(records), TableStore(tmp_path / "tables")
    sha256 = tables.write_microdata(data)
    back = tables.read_microdata(sha256, SCHEMA, "confidential")
    pd.testing.assert_frame_equal(back.frame, data.frame, check_exact=True)
    assert tables.write_microdata(back) == sha256


def csv(text: str) -> SourceFile:
    return SourceFile("people.csv", text.encode())


def test_empty_fields_and_codes_of_a_file_are_missing() -> None:
    schema = Schema((Variable("age", Kind.COUNT, missing=(-9,)), Variable("sex", Kind.BINARY)))
    data = read_file_microdata(csv("age,sex\n30,f\n,m\n-9,\n41,m\n"), KEEP, schema, 1, key=PUBLIC)
    assert data.missing_mask("age").tolist() == [False, True, True, False]
    assert data.missing_mask("sex").tolist() == [False, False, True, False]
    assert (len(data), data.dropped) == (4, 0)


def test_a_sample_without_missing_values_has_whole_counts() -> None:
    schema, lines = Schema((Variable("age", Kind.COUNT),)), "\n".join(["age", '""', *map(str, range(50))])
    dtypes, everything = set(), read_file_microdata(csv(lines), KEEP, schema, 1, key=PUBLIC)
    assert str(everything.column("age").dtype) == "float64"
    for seed in range(8):
        sample = read_file_microdata(
            csv(lines), DataSource(sample=25, missing=MissingPolicy.KEEP), schema, seed, key=PUBLIC
        ).column("age")
        assert str(sample.dtype) == ("float64" if sample.isna().any() else "int64")
        dtypes.add(str(sample.dtype))
    assert dtypes == {"float64", "int64"}


def test_a_sample_of_missing_values_alone_is_refused() -> None:
    schema = Schema((Variable("age", Kind.COUNT), Variable("n", Kind.COUNT)))
    lines = "\n".join(["age,n", "5,0", *(f",{i}" for i in range(99))])
    with pytest.raises(BadInput, match="no sampled record has a value"):
        read_file_microdata(csv(lines), DataSource(sample=1, missing=MissingPolicy.KEEP), schema, 1, key=PUBLIC)


def evaluation(folder: Path, original: str, released: str, missing: str = "keep", order: str = "original") -> Recipe:
    (folder / "original.csv").write_text(original)
    (folder / "released.csv").write_text(released)
    recipe = {
        "data": {"missing": missing},
        "variables": {"age": {"kind": "count", "role": "quasi_identifier"}, "pay": {"kind": "count"}},
        "release": {"released": ["pay"], "order": order},
        "measure": [{"method": "utility.summary"}],
    }
    (folder / "recipe.toml").write_text(tomli_w.dumps(recipe))
    files = str(folder / "original.csv"), [str(folder / "released.csv")]
    return prepare_evaluation(find_recipe(str(folder / "recipe.toml")), *files, key=PUBLIC).recipe


def test_a_given_release_pairs_missing_values_with_missing_values(tmp_path: Path) -> None:
    original = "age,pay\n30,1\n,2\n41,\n"
    evaluation(tmp_path, original, "age,pay\n30,\n,7\n41,8\n")
    with pytest.raises(BadInput, match="1 of 3 records differ from the original"):
        evaluation(tmp_path, original, "age,pay\n30,1\n31,7\n41,8\n")
    with pytest.raises(BadInput, match="1 of 3 records have no value"):
        evaluation(tmp_path, "age,pay\n30,1\n3,2\n41,5\n", "age,pay\n30,\n3,7\n41,8\n", "refuse")


def test_a_shuffled_release_has_missing_values_only_where_the_original_has_some(tmp_path: Path) -> None:
    evaluation(tmp_path, "age,pay\n30,1\n,2\n41,\n", "age,pay\n41.0,\n30,7\n,8\n", order="shuffled")
    with pytest.raises(BadInput, match="age: 1 of 3 records have a value that no original record has"):
        evaluation(tmp_path, "age,pay\n30,1\n31,2\n41,\n", "age,pay\n41,\n30,7\n,8\n", order="shuffled")


def test_counts_are_whole_in_released_files() -> None:
    data = table([("z", None, None, None, None)])
    arrow = pa.Table.from_pandas(data.frame, preserve_index=False)
    assert dataset_bytes(arrow, SCHEMA, (), "csv") == b"o,b,n,x,d\nz,,,,\na,no,3,0.5,2020-02-29\n"
    frame = pd.read_parquet(BytesIO(dataset_bytes(arrow, SCHEMA, (), "parquet")), dtype_backend="pyarrow")
    assert frame["n"].tolist() == [pd.NA, 3]
    assert str(frame["n"].dtype) == "int64[pyarrow]"


@pytest.mark.parametrize("name", SCHEMA.names)
def test_figures_draw_the_values_present(name: str) -> None:
    rng = np.random.default_rng(1)
    records = [("z", "yes", int(rng.integers(50)), float(rng.normal()), "2020-01-05") for _ in range(60)]
    lacking: list[tuple[object, ...]] = [(None,) * 5] * 20
    data = table([*records, *lacking])
    released = data.with_columns({}, "synthetic")
    empty = data.with_columns({name: data.column(name).mask(np.ones(len(data), bool))}, "synthetic")
    figure = distribution_figure(SCHEMA[name], data, [RunDatasets("run", (released, empty))])
    series = figure.panels[0].series
    assert len(series) == 3
    if SCHEMA[name].kind.has_levels:
        assert figure.panels[0].x_names[-1] == NO_VALUE
        assert [round(81 * one.y[-1], 9) for one in series] == [20, 20, 81]
    else:
        assert "Records without a value are not drawn." in figure.caption
        assert np.nansum(series[1].y) > 0


@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_profile_is_that_of_the_values_present(name: str) -> None:
    whole: list[tuple[object, ...]] = [("z", "yes", i % 7, i / 2, "2020-01-05") for i in range(40)]
    lacking: list[tuple[object, ...]] = [(None,) * 5] * 20
    assert profile_distribution(table([*whole, *lacking]), name) == profile_distribution(table(whole), name)
    assert profile_distribution(table([*whole, *whole[:9]]), name) != profile_distribution(table(whole), name)

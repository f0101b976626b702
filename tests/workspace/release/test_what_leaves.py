"""Nothing in ``public/`` says more than the policy lets out: every file is searched for the secrets of a run that has canaries.

The search walks the directory, so that it covers the files of whoever adds one. Each internal file is shown to be found when
it lies there.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from file_leaks import Leak, Secrets, binaries, leaks, readings, strayed, telling
from prepared_workspaces import run_recipe

import sfumato.workspace.audit as auditing
import sfumato.workspace.gate.gate as gating
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.main import sfumato
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.plots.figure import CONFIDENTIAL
from sfumato.workspace.policy.disclosure import INTERNAL
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

KEY = bytes(range(100, 132))
SEED = 918_273_645
RECORDS = 1_931
USER = "canary.keeper"
REASON = "the board of canaries asked for it"
VARIABLES: dict[str, Any] = {
    "region": {"kind": "categorical", "role": "quasi_identifier", "title": "Region of the person"},
    "age": {"kind": "count", "role": "quasi_identifier"},
    "visits": {"kind": "count", "role": "sensitive", "bounds": [0, 999]},
    "income": {"kind": "continuous", "role": "sensitive", "title": "Income, a year"},
}
RECIPE: dict[str, Any] = {
    "title": "Canary title of the clinic",
    "label": "canary label",
    "description": "Canary description: Mrs Zwölfer is in here",
    "data": {"file": "/canary/enclave/people.csv", "where": "age >= 0 AND 'canary filter' <> ''"},
    "variables": VARIABLES,
    "release": {"m": 3, "seed": SEED, "public_figures": "rounded"},
    "synthesis": [
        {"target": "visits", "method": "linear_regression", "predictors": ["region", "age"]},
        {"target": "income", "method": "linear_regression", "predictors": ["region", "age", "visits"]},
    ],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "utility.propensity"},
        {"method": "utility.summary", "quantiles": [0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0]},
        {
            "method": "utility.interval_overlap",
            "means": ["visits", "income"],
            "quantiles": ["income"],
            "probabilities": [0.001, 0.5, 0.9],
            "models": ["income ~ region + age + visits"],
        },
        {"method": "risk.identification", "radius": {"income": "5%", "visits": 40}},
        {"method": "risk.attribute", "radius": {"income": "5%", "visits": 40}},
        {"method": "risk.bayesian_posterior", "records": 5, "points": 6, "blocks": 1},
    ],
    "threshold": [
        {"value": "utility.ecdf.max_abs_difference", "max": 0.5},
        {"value": "risk.identification.true_match_rate", "max": 0.123456},
    ],
}  # fmt: skip


def people() -> Microdata:
    """Records whose statistics have many digits; one is alone with the largest income."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 95, RECORDS)
    income = np.exp(rng.normal(10.3, 0.5, RECORDS)) + age * 117.31
    income[77] = 987_654.321
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], RECORDS),
            "age": age,
            "visits": np.where(rng.random(RECORDS) < 0.7, 0, rng.integers(100, 900, RECORDS)),
            "income": income,
        }
    )
    return conform_to_schema(frame, Recipe.from_table(RECIPE).schema)


@dataclass(frozen=True)
class Case:
    """A run in a workspace, and what nobody outside may learn of it."""

    workspace: Workspace
    run_id: int
    secrets: Secrets


def secrets_of(workspace: Workspace, run_id: int, data: Microdata) -> Secrets:
    run, plan = find_run(workspace, run_id), plan_release(workspace, run_id)
    original = workspace.find_dataset(run.dataset_id)
    hashes = {
        "recipe hash": run.recipe_sha256, "data hash": original.source_sha256, "confidential table": original.table_sha256,
        "policy hash": read_policy_of_workspace(workspace.directory).sha256,
        **{f"stored dataset {i}": sha256 for i, sha256 in enumerate(plan.tables)},
    }  # fmt: skip
    found = {"key": KEY, "half of the key": KEY[:16]}
    for what, sha256 in hashes.items():
        found |= binaries(what, sha256)
    texts = {
        "key fingerprint": run.key_fingerprint, "seed": str(SEED), "seed with commas": f"{SEED:,}", "seed in hexadecimal": f"{SEED:x}",
        "title": "Canary title", "label": "canary label", "description": "Mrs Zwölfer", "path": "/canary/enclave",
        "file": "people.csv", "filter": "canary filter", "workspace": str(workspace.directory), "user": USER, "reason": REASON,
        "limit of a threshold": "0.123456",
    }  # fmt: skip
    return Secrets(texts, found, telling(statistics(data) | row_values(workspace, run_id)))


def statistics(data: Microdata) -> dict[str, float | None]:
    """Exact statistics of the variables that the release replaces."""
    found: dict[str, float | None] = {}
    for name in ("visits", "income"):
        values = data.numbers(name)
        found |= {f"{what} of {name}": float(getattr(values, what)()) for what in ("mean", "min", "max", "sum", "var")}
        found[f"sd of {name}"] = float(values.std(ddof=1))
        found |= {
            f"quantile {q} of {name}": float(np.quantile(values, q))
            for q in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
        }
        found |= {f"{place} largest of {name}": float(np.sort(values)[-place]) for place in (2, 3)}
    zeros = float((data.numbers("visits") == 0).sum())
    found |= {"records without visits": zeros, "share without visits": zeros / RECORDS}
    x = np.column_stack([np.ones(RECORDS), *[data.numbers(name) for name in ("region", "age", "visits")]])
    coefficients = np.linalg.lstsq(x, data.numbers("income"), rcond=None)[0]
    return found | {f"coefficient {i}": float(value) for i, value in enumerate(coefficients)}


def row_values(workspace: Workspace, run_id: int) -> dict[str, float | None]:
    """Every number of the confidential data's rows, and of every risk."""
    found: dict[str, float | None] = {}
    for i, row in enumerate(read_result_rows(workspace, run_id)):
        if row.dataset == "confidential" or row.family == "risk":
            for what in ("value", "lower", "upper", "baseline"):
                found[f"{what} of {row.key} {row.target} ({i})"] = getattr(row, what)
    return found


@pytest.fixture(autouse=True)
def blank_pictures() -> None:
    """Pictures are as they leave: a secret may stand in one."""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    directory = tmp_path_factory.mktemp("canary-enclave")
    with pytest.MonkeyPatch.context() as patch:
        for module in (auditing, gating):
            patch.setattr(module, "user", lambda: USER)
        workspace = Workspace.create(directory / "workspace", KEY)
        data = people()
        run_id = run_recipe(workspace, RECIPE, data, "people.csv", b"canary bytes")
        yield Case(workspace, run_id, secrets_of(workspace, run_id, data))
        workspace.close()


@pytest.fixture(scope="module", params=["csv", "parquet"])
def out(case: Case, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("released") / "out"
    write_run_release(case.workspace, case.run_id, target, request.param, REASON)
    return target


@pytest.mark.slow
def test_nothing_in_the_public_package_is_a_secret(case: Case, out: Path) -> None:
    assert len([*(out / "public").iterdir()]) >= 7
    assert leaks(out / "public", case.secrets) == []
    assert strayed(out / "public", out / "internal") == []


@pytest.mark.slow
def test_every_internal_file_is_found_when_it_lies_in_public(case: Case, out: Path, tmp_path: Path) -> None:
    inside = [path for path in (out / "internal").rglob("*") if path.is_file()]
    assert len(inside) >= 6
    by_its_bytes = []
    for path in inside:
        public = tmp_path / "public"
        public.mkdir()
        shutil.copy(path, public / "notes")
        assert strayed(public, out / "internal") == ["notes"]
        by_its_bytes += [] if leaks(public, case.secrets) else [str(path.relative_to(out / "internal"))]
        shutil.rmtree(public)
    assert [name for name in by_its_bytes if not fnmatch_any(name, HOLDS_NONE)] == []


HOLDS_NONE = (
    "*.schema.json",
    "acro/checksums/*.txt",
    "acro/risk-CalculatedRatios.csv",
    "acro/utility-StatisticalHypothesisTests.csv",
    "crate/bagit.txt",
    "crate/*manifest-sha512.txt",
)
"""A schema, sums of internal files, a table without a computed number, and one of scores that ``public/utility.csv`` has too: no secret
stands in them, and only their own bytes tell that they are internal."""


def fnmatch_any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


@pytest.fixture(scope="module")
def exported(case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Report, figures and results of the run, as files: the public ones, and the internal ones."""
    made = {}
    for public in (True, False):
        folder = tmp_path_factory.mktemp("public" if public else "internal")
        where = ["--workspace", str(case.workspace.directory), *(["--public"] if public else [])]
        for words in (
            ["report", "1", "-o", str(folder / "report.html")],
            ["figures", "1", "--svg", str(folder / "figures")],
            ["results", "1", "--json", str(folder / "results.json")],
        ):
            done = CliRunner().invoke(sfumato, [*words, *where], catch_exceptions=False)
            assert done.exit_code == 0, done.output
        for name, words in (("figures.txt", ["figures", "1"]), ("results.txt", ["results", "1"])):
            (folder / name).write_text(CliRunner().invoke(sfumato, [*words, *where]).output, "utf-8")
        made[public] = folder
    return made


@pytest.mark.slow
def test_public_reports_figures_and_results_hold_no_secret_and_internal_ones_do(
    case: Case, exported: dict[bool, Path]
) -> None:
    assert leaks(exported[True], case.secrets) == []
    found = {leak.file for leak in leaks(exported[False], case.secrets)}
    files = {str(path.relative_to(exported[False])) for path in exported[False].rglob("*") if path.is_file()}
    assert found == files
    marked = [
        path.read_text("utf-8") for path in exported[False].rglob("*") if path.name != "results.txt" and path.is_file()
    ]
    assert all(INTERNAL in " ".join(text.split()) for text in marked)
    assert not [path for path in exported[True].rglob("*") if path.is_file() and INTERNAL in path.read_text("utf-8")]


@pytest.mark.slow
def test_a_public_figure_draws_the_released_data_alone(exported: dict[bool, Path]) -> None:
    drawn = {
        public: [path.read_text("utf-8") for path in sorted((exported[public] / "figures").glob("*.svg"))]
        for public in (True, False)
    }
    assert drawn[True]
    assert not [text for text in drawn[True] if CONFIDENTIAL in text]
    assert [text for text in drawn[False] if CONFIDENTIAL in text], "the negative control"


@pytest.mark.slow
def test_an_anonymised_release_holds_neither_seed_nor_hash_nor_path(case: Case, tmp_path: Path) -> None:
    """Its values are confidential ones made coarser, so that only what never belongs to data is searched for."""
    changed = {"synthesis": [], "anonymisation": [{"method": "mondrian", "k": 5}], "release": {"seed": SEED}}
    measures = [
        {"method": "quality.pearson"},
        {"method": "quality.rilm"},
        {"method": "quality.ilm"},
        {"method": "risk.anonymity"},
    ]
    recipe = Recipe.from_table({**RECIPE, **changed, "measure": measures, "threshold": []})
    run_id = run_recipe(case.workspace, recipe, people(), "people.csv", b"canary bytes")
    write_run_release(case.workspace, run_id, tmp_path / "out", "csv", REASON)
    secrets = secrets_of(case.workspace, run_id, people())
    assert leaks(tmp_path / "out/public", replace(secrets, numbers={})) == []
    assert leaks(tmp_path / "out/internal", replace(secrets, numbers={})), "the negative control"
    assert not (tmp_path / "out/public/utility.csv").exists(), "no figure leaves unless the recipe asks for it"
    page = (tmp_path / "out/public/using-these-data.html").read_text("utf-8")
    assert "pearson" not in page.lower()
    assert "figures do not leave" in page


@pytest.mark.slow
@pytest.mark.parametrize("covered", [True, False])
def test_what_is_promised_of_privacy_holds_no_secret(case: Case, tmp_path: Path, covered: bool) -> None:
    bounds = {
        "age": {"bounds": [0, 120]},
        "income": {"bounds": [0, 2_000_000]},
        "region": {"levels": ["north", "south", "west"]},
    }
    variables = {name: {**own, **(bounds.get(name, {}) if covered else {})} for name, own in VARIABLES.items()}
    step = {
        "method": "perturbed_gibbs", "target": list(VARIABLES), "epsilon": 2.0,
        "bins": {"age": "width 10", "visits": "at 1, 300", "income": "5 equal width"},
    }  # fmt: skip
    release_part = {"m": 1, "seed": SEED, "title": "Visits, drawn anew"} | ({"records": 700} if covered else {})
    plan = {
        "variables": variables,
        "synthesis": [step],
        "release": release_part,
        "measure": [{"method": "utility.ecdf"}],
    }
    recipe = Recipe.from_table({**RECIPE, **plan, "threshold": []})
    data = people()
    run_id = run_recipe(case.workspace, recipe, data.frame, "people.csv", b"canary bytes")
    write_run_release(case.workspace, run_id, tmp_path / "out", "csv", REASON)
    said = (tmp_path / "out/public/privacy.txt").read_text("utf-8")
    assert said.startswith("These data are differentially private" if covered else "No guarantee")
    secrets = secrets_of(case.workspace, run_id, data)
    assert leaks(tmp_path / "out/public", secrets) == []
    (tmp_path / "out/public/privacy.txt").write_text(f"{said} The largest income is 987,654.321.\n", "utf-8")
    assert {leak.file for leak in leaks(tmp_path / "out/public", secrets)} == {"privacy.txt"}, "the negative control"


@pytest.mark.slow
def test_public_output_follows_the_policy_of_the_workspace(case: Case, tmp_path: Path) -> None:
    def results() -> dict[str, Any]:
        done = CliRunner().invoke(
            sfumato, ["results", "1", "--public", "--json", "-", "--workspace", str(case.workspace.directory)]
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    before, policy = results(), case.workspace.directory / "policy.toml"
    try:
        policy.write_text("digits = 1\nrounding = 50\n")
        after = results()
        policy.write_text("smallest_cell = 7000\n")
        without = results()
    finally:
        policy.unlink()
    assert after["rules"] == {"smallest_cell": 10, "rounding": 50, "digits": 1}
    for found in (before, after):
        assert {(row["method"], row["measure"]) for row in found["rows"]} == {("ecdf", "max_abs_difference")}
        assert {row["target"] for row in found["rows"]} == {"visits", "income"}
    assert all(float(f"{row['value']:.0e}") == row["value"] for row in after["rows"])
    assert [row["value"] for row in before["rows"]] != [row["value"] for row in after["rows"]]
    assert without["rows"] == [], "there are too few records for a smallest cell of 7,000"
    exact = [
        one.value
        for one in read_result_rows(case.workspace, 1)
        if one.measure == "max_abs_difference" and one.draw is None
    ]
    assert not {row["value"] for row in before["rows"]} & set(exact), "what was measured does not leave"


def spellings(value: float) -> list[str]:
    """A number as the exporters, other programs and people would write it, to four digits and more."""
    return [
        repr(value), f"{value:.4g}", f"{value:,.2f}", f"{value:.1f}", f"{value:.6e}", f"{value:.3e}", f"-{value:.5g}",
        f"{value:,.2f}".replace(",", "'"), f"{value:,.2f}".replace(",", "\u2009"), f"{value:.2f}".replace(".", ","),
        f"{value:,.2f}".replace(",", " ").replace(".", ","), f"{value / 1e4:.5f} × 10^4", f"{value:.0f}",
        f"{value:,.2f}".translate(str.maketrans(",.", ".,")),
    ]  # fmt: skip


@pytest.mark.parametrize("spelt", spellings(41_738.264951))
def test_a_statistic_is_found_however_it_is_spelt(tmp_path: Path, spelt: str) -> None:
    secrets = Secrets(numbers={"mean": 41_738.264951})
    wrapped = [f"a mean of {spelt}, they say", f"<td>{spelt}</td>", json.dumps({"mean": spelt}), f"x,{spelt};"]
    for text in wrapped if "," not in spelt else wrapped[:3]:
        (tmp_path / "page.html").write_text(text, "utf-8")
        assert [leak.what for leak in leaks(tmp_path, secrets)] == ["mean"], text


@pytest.mark.parametrize("spelt", ["41,700", "4.17e4", "42 thousand", "41,742", "138.26", "417.4 m", "4173826495"])
def test_a_rounded_or_another_number_is_no_leak(tmp_path: Path, spelt: str) -> None:
    (tmp_path / "page.txt").write_text(f"about {spelt} of them", "utf-8")
    assert leaks(tmp_path, Secrets(numbers={"mean": 41_738.264951})) == []


def test_shares_are_found_in_per_cent() -> None:
    assert any(abs(value - 0.41738) <= unit for value, unit in readings("41.74 %"))


BYTES = bytes.fromhex("00ff10a5") * 8


@pytest.mark.parametrize(
    "spelt",
    [BYTES.hex(), BYTES.hex().upper(), BYTES.hex(":"), base64.b64encode(BYTES).decode(), base64.urlsafe_b64encode(BYTES).decode().rstrip("="),
     base64.b64encode(b"sha256:" + BYTES.hex().encode()).decode(), "".join(f"&#{ord(c)};" for c in BYTES.hex())],
)  # fmt: skip
def test_a_hash_is_found_however_it_is_written(tmp_path: Path, spelt: str) -> None:
    (tmp_path / "file").write_text(f'{{"sha": "{spelt}"}}')
    assert [leak.what for leak in leaks(tmp_path, Secrets(binaries={"hash": BYTES}))] == ["hash"]


def test_names_metadata_dictionaries_and_archives_are_searched(tmp_path: Path) -> None:
    secrets = Secrets({"path": "/secret/place", "level": "zoonosis"}, {"hash": BYTES}, {"mean": 41_738.264951})
    column = pa.array(["a", "b"]).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string()))
    hidden = pa.DictionaryArray.from_arrays(column.indices, pa.array(["a", "b", "zoonosis"]))
    schema = pa.schema([pa.field("x", hidden.type, metadata={"from": "/secret/place"}), pa.field("y", pa.float64())])
    pq.write_table(pa.table([hidden, pa.array([1.0, 41_738.264951])], schema.with_metadata({"h": BYTES.hex()})), tmp_path / "t.parquet", compression="zstd")  # fmt: skip
    assert {leak.what for leak in leaks(tmp_path, secrets)} == {"path", "level", "hash", "mean"}
    (tmp_path / "t.parquet").unlink()
    (tmp_path / "sub").mkdir()
    shutil.make_archive(str(tmp_path / "sub/bundle"), "zip", Path(__file__).parent, "file_leaks.py")
    assert Leak("sub/bundle.zip", "code", "def leaks") in leaks(tmp_path, Secrets({"code": "def leaks"}))
    (tmp_path / "sub/zoonosis.txt").touch()
    assert Leak("sub/zoonosis.txt", "level", "zoonosis") in leaks(tmp_path, secrets)


def test_the_size_of_a_file_that_is_there_is_no_secret_in_its_manifest(tmp_path: Path) -> None:
    secrets = Secrets({"count": "1363"})
    (tmp_path / "data.csv").write_text("x" * 1363)
    for said, found in (('{"bytes": 1363}', False), ('{"bytes": 1363, "records": 1363}', True)):
        (tmp_path / "manifest.json").write_text(said)
        assert [leak.what for leak in leaks(tmp_path, secrets)] == ["count"] * found
    (tmp_path / "data.csv").write_text("x" * 1362)
    (tmp_path / "manifest.json").write_text('{"bytes": 1363}')
    assert leaks(tmp_path, secrets) != [], "no file has that size"

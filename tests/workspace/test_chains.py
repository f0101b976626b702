"""All draws of a sampler, kept where a step asks: what is kept, that ArviZ judges it as we do, and that it never leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import enter_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import fit_model, synthesis_streams
from sfumato.engine.methods.chains import chain_storage_bytes
from sfumato.engine.methods.results import LOG_POSTERIOR, ChainTrace, Fit, SamplerDraws
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace import library
from sfumato.workspace.errors import DamagedTable, NotReady, WorkspaceError
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.report import report_page
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.chains import byte_size_text, chains_name, kept_chains_remark, read_chains, write_chains
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import verify_run, verify_workspace
from sfumato.workspace.views.results import read_diagnostics

COUNTS: dict[str, Any] = {
    "target": "days", "method": "zero_inflated_truncated_poisson", "predictors": ["age"], "sampler": "emcee", "most_steps": 120,
    "accept_unconverged": True, "keep_chains": True,
}  # fmt: skip
MIXTURE: dict[str, Any] = {
    "target": ["region", "job"], "method": "dpmpm", "sweeps": 120, "burn_in": 40, "chains": 3, "classes": 8, "accept_unconverged": True,
    "keep_chains": True,
}  # fmt: skip
EXACT: dict[str, Any] = {"target": "income", "method": "linear_regression", "predictors": ["age"]}
VARIABLES = {
    "age": {"kind": "continuous", "role": "quasi_identifier"},
    "days": {"kind": "count", "role": "sensitive", "bounds": [0, 20]},
    "region": {"kind": "categorical", "role": "sensitive"},
    "job": {"kind": "categorical", "role": "sensitive"},
    "income": {"kind": "continuous", "role": "sensitive"},
}


def recipe(*steps: dict[str, Any], **release: Any) -> Recipe:
    return Recipe.from_table(
        {"variables": VARIABLES, "release": {"m": 2, "seed": 3, **release}, "synthesis": list(steps), "measure": []}
    )


def people(plan: Recipe, n: int = 150) -> Microdata:
    rng = np.random.default_rng(4)
    age = rng.integers(0, 4, n) / 2.0
    region = rng.choice(["n", "s"], n)
    frame = pd.DataFrame(
        {
            "age": age,
            "days": np.minimum(rng.poisson(np.exp(1 + 0.5 * age)), 20) * (rng.random(n) < 0.7),
            "region": region,
            "job": np.where(rng.random(n) < 0.7, region, rng.choice(["n", "s"], n)),
            "income": age + rng.normal(size=n),
        }
    )
    return conform_to_schema(frame, plan.schema)


def carried_out(directory: Path, plan: Recipe, key: bytes = PUBLIC) -> Workspace:
    workspace = Workspace.create(directory, key)
    enter_recipe(workspace, plan, people(plan), "people.csv", b"people")
    run_worker(directory, idle=0)
    return workspace


@pytest.fixture(scope="module")
def workspace_with_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = carried_out(tmp_path_factory.mktemp("chains") / "workspace", recipe(COUNTS, MIXTURE, EXACT))
    yield workspace
    workspace.close()


def left(workspace: Workspace, run: int = 1) -> dict[str, str]:
    rows = workspace.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = ?", (run,))
    return {str(name): str(sha256) for name, sha256 in rows}


def fit_step(step: dict[str, Any]) -> Fit:
    plan = recipe(step)
    return fit_model(plan, 0, people(plan), key=PUBLIC)


# what is kept


@pytest.mark.slow
def test_every_step_of_every_chain_is_kept_in_the_order_of_sampling() -> None:
    fit = fit_step(COUNTS)
    chains, trace = fit.chains, fit.trace
    assert chains is not None
    assert isinstance(trace, ChainTrace)
    assert chains.values.shape == (16, 120, 5)
    assert chains.density.shape == (16, 120)
    assert chains.parameters == ("alpha[intercept]", "alpha[age]", "beta[intercept]", "beta[age]", "log_tau")
    assert (chains.burn_in, chains.density_name) == (24, LOG_POSTERIOR)
    # the trace keeps some chains, with the log posterior less its largest: the same numbers at the same places
    ours = np.concatenate([chains.values, (chains.density - chains.density.max())[..., None]], axis=2)
    np.testing.assert_array_equal(ours[trace.chain - 1][:, trace.step - 1].astype(np.float32), trace.values)
    # what the datasets are drawn by is among what is kept after the burn-in
    settled = chains.values[:, chains.burn_in :].reshape(-1, 5)
    for theta in fit.arrays["theta"]:
        assert (settled == theta).all(axis=1).any()


@pytest.mark.slow
def test_a_mixture_keeps_what_does_not_hang_on_the_labels_of_classes() -> None:
    fit = fit_step(MIXTURE)
    chains, trace = fit.chains, fit.trace
    assert chains is not None
    assert isinstance(trace, ChainTrace)
    assert chains.parameters == ("occupied classes", "alpha")
    assert chains.values.shape == (3, 120, 2)
    assert chains.burn_in == 40
    np.testing.assert_array_equal(chains.values[trace.chain - 1].astype(np.float32), trace.values[..., :2])


@pytest.mark.slow
@pytest.mark.parametrize("step", [COUNTS, MIXTURE])
def test_nothing_is_kept_unasked_and_keeping_changes_no_draw(step: dict[str, Any]) -> None:
    asked, unasked = fit_step(step), fit_step({**step, "keep_chains": False})
    assert unasked.chains is None
    assert asked.diagnostics == unasked.diagnostics
    for name, array in asked.arrays.items():
        np.testing.assert_array_equal(array, unasked.arrays[name])


def test_a_keyed_stream_is_not_bound_to_what_is_kept_beside_the_datasets() -> None:
    asked, unasked, other = (recipe({**COUNTS, **change}) for change in ({}, {"keep_chains": False}, {"walkers": 20}))
    numbers = [
        synthesis_streams(plan, people(plan), b"k" * 32).generator("fit", 0).integers(2**60)
        for plan in (asked, unasked, other)
    ]
    assert numbers[0] == numbers[1] != numbers[2]
    assert asked.sha256 != unasked.sha256, "the recipe says what was kept"


@pytest.mark.slow
def test_chains_that_did_not_converge_are_kept_to_be_looked_at(tmp_path: Path) -> None:
    step = {**COUNTS, "accept_unconverged": False}
    with carried_out(tmp_path / "w", recipe(step)) as workspace:
        assert workspace.connection.execute("SELECT state FROM run").fetchone()[0] == "failed"
        assert chains_name(0) in left(workspace)
    assert dict(library.chains(tmp_path / "w").posterior.sizes) == {"chain": 16, "draw": 96}


# what it takes, said before


def test_what_chains_take_is_said_before_and_is_a_bound() -> None:
    plan = recipe(COUNTS, MIXTURE, EXACT)
    data = people(plan)
    sizes = [step.spec.chain_bytes(data) for step in plan.synthesis]
    assert sizes == [16 * 120 * 6 * 8, 3 * 120 * 3 * 8, 0]
    said = kept_chains_remark(plan, data)
    assert said == (
        "All draws of the chains of days; region, job are kept in the workspace, at most 100.8 kB, as confidential as the data."
    )
    assert "at most" not in kept_chains_remark(plan, None)
    assert kept_chains_remark(recipe(EXACT), data) == ""
    assert chain_storage_bytes(16, 120, 5) == 16 * 120 * 6 * 8


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (4_200_000, "4.2 MB"), (3e9, "3.0 GB")]
)
def test_sizes_have_a_unit(size: int, words: str) -> None:
    assert byte_size_text(size) == words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sampler": "laplace"}, 'draws no chains.*use sampler = "emcee"'),
        ({"most_steps": 10_000_000}, "up to 7.7 GB of draws would be kept, more than 4 GB; ask for fewer steps"),
    ],
)
def test_chains_that_are_none_or_too_large_are_refused_before_anything_is_computed(
    change: dict[str, Any], words: str
) -> None:
    plan = recipe({**COUNTS, **change})
    with pytest.raises(BadInput, match=words) as refused:
        check_steps(plan, people(plan))
    assert refused.value.place == "synthesis[0].keep_chains"


# stored, sealed, never released


@pytest.mark.slow
def test_chains_come_back_as_they_were_stored(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values, density = rng.normal(size=(3, 7, 2)), rng.normal(size=(3, 7))
    chains = SamplerDraws(("a", ".chain"), values, density, "a", 2, "x")
    tables = TableStore(tmp_path)
    sha256 = write_chains(tables, chains)
    found = read_chains(tables, sha256)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.density, density)
    assert (found.parameters, found.density_name) == (("a", ".chain"), "a")
    assert (found.burn_in, found.sampler) == (2, "x")
    table = tables.read_stored_table(sha256)
    assert table.column(0).to_pylist()[:8] == [1] * 7 + [2]
    assert table.column(1).to_pylist()[:8] == [1, 2, 3, 4, 5, 6, 7, 1]
    assert table.column(2).to_pylist()[:4] == [True, True, False, False]
    with pytest.raises(DamagedTable, match="holds no chains"):
        read_chains(tables, tables.write_arrays({"weights": values}))


@pytest.mark.slow
def test_chains_are_sealed_as_all_that_a_run_leaves(workspace_with_runs: Workspace) -> None:
    names = {row[0] for row in workspace_with_runs.connection.execute("SELECT part FROM seal WHERE run_id = 1")}
    assert {f"table {chains_name(item)}" for item in (0, 1)} <= names
    verify_run(workspace_with_runs, 1, strict=True)
    names_of = left(workspace_with_runs)
    swap = "UPDATE artefact SET sha256 = ? WHERE run_id = 1 AND name = 'chains/0'"
    with workspace_with_runs.write_transaction() as connection:
        connection.execute(swap, (names_of[chains_name(1)],))
    try:
        assert any("chains/0" in said for said in verify_workspace(workspace_with_runs).wrong)
    finally:
        with workspace_with_runs.write_transaction() as connection:
            connection.execute(swap, (names_of[chains_name(0)],))
    verify_run(workspace_with_runs, 1, strict=True)


@pytest.mark.slow
def test_no_release_and_no_report_changes_by_chains_that_are_kept(
    workspace_with_runs: Workspace, tmp_path: Path
) -> None:
    """Posterior draws follow from the confidential data without any protection: not a number of them may leave."""
    plain = [{**step, "keep_chains": False} for step in (COUNTS, MIXTURE)]
    other = carried_out(tmp_path / "w", recipe(*plain, EXACT))
    written = []
    for at, workspace in (("kept", workspace_with_runs), ("plain", other)):
        write_run_release(workspace, 1, tmp_path / at, reason="simulated data only")
        files = sorted(path.relative_to(tmp_path / at) for path in (tmp_path / at).rglob("*") if path.is_file())
        written.append(files)
        content = b"".join((tmp_path / at / file).read_bytes() for file in files)
        for name, sha256 in left(workspace_with_runs).items():
            if name.startswith("chains/"):
                assert sha256.encode() not in content
                density = read_chains(workspace_with_runs.tables, sha256).density.ravel()
                assert not any(repr(float(value)).encode() in content for value in density[:: len(density) // 200])
    assert written[0] == written[1]
    public = {path for path in written[0] if path.parts[0] == "public"}
    assert public
    for file in public:
        assert b"keep_chains" not in (tmp_path / "kept" / file).read_bytes()
    assert ".warmup" not in report_page(workspace_with_runs, 1)
    other.close()


@pytest.mark.slow
def test_chains_leave_the_workspace_with_their_run(tmp_path: Path) -> None:
    with carried_out(tmp_path / "w", recipe(MIXTURE)) as workspace:
        path = workspace.tables.path_of(left(workspace)[chains_name(0)])
        assert path.exists()
        os.utime(path, (0, 0))
        delete_run(workspace, 1)
        assert not path.exists()


# read by ArviZ


@pytest.mark.slow
def test_arviz_judges_the_chains_as_we_do(workspace_with_runs: Workspace) -> None:
    import arviz

    ours = {(one.target, one.parameter, one.name): one.value for one in read_diagnostics(workspace_with_runs, 1)}
    for target, names in (("days", ("lp",)), ("region, job", ("log likelihood",))):
        drawn = library.chains(workspace_with_runs.directory, 1, target)
        parameters = [str(name) for name in drawn.posterior.data_vars]
        for name in (*parameters, *(name for name in names if (target, name, "r_hat") in ours)):
            group = drawn.posterior if name in parameters else drawn.sample_stats
            assert float(arviz.rhat(group[[name]], method="rank")[name]) == pytest.approx(
                ours[target, name, "r_hat"], rel=1e-6
            )
            assert float(arviz.ess(group[[name]], method="bulk")[name]) == pytest.approx(
                ours[target, name, "effective_sample_size"], rel=1e-6
            )
            if target == "days":
                assert float(arviz.ess(group[[name]], method="tail")[name]) == pytest.approx(
                    ours[target, name, "tail_effective_sample_size"], rel=1e-6
                )


@pytest.mark.slow
def test_judged_with_the_burn_in_the_numbers_would_be_others(workspace_with_runs: Workspace) -> None:
    """The negative control of the test above."""
    import arviz

    ours = {(one.target, one.parameter, one.name): one.value for one in read_diagnostics(workspace_with_runs, 1)}
    drawn = library.chains(workspace_with_runs.directory, 1, "days")
    whole = np.concatenate([drawn.warmup_posterior["log_tau"], drawn.posterior["log_tau"]], axis=1)
    assert whole.shape == (16, 120)
    assert float(arviz.rhat(whole)) != pytest.approx(ours["days", "log_tau", "r_hat"], rel=1e-3)


@pytest.mark.slow
def test_the_groups_have_chains_and_draws_in_order(workspace_with_runs: Workspace) -> None:
    stored = read_chains(workspace_with_runs.tables, left(workspace_with_runs)[chains_name(0)])
    drawn = library.chains(workspace_with_runs.directory, 1, "days")
    assert set(drawn.groups()) == {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"}
    assert drawn.posterior["log_tau"].dims == ("chain", "draw")
    np.testing.assert_array_equal(drawn.posterior["log_tau"], stored.values[:, 24:, 4])
    np.testing.assert_array_equal(drawn.warmup_posterior["log_tau"], stored.values[:, :24, 4])
    np.testing.assert_array_equal(drawn.sample_stats["lp"], stored.density[:, 24:])
    np.testing.assert_array_equal(drawn.warmup_sample_stats["lp"], stored.density[:, :24])
    assert drawn.attrs["inference_library"].startswith("emcee")
    assert (drawn.attrs["sfumato_run"], drawn.attrs["sfumato_target"]) == (1, "days")
    assert library.chains(workspace_with_runs.directory, 1, "job").attrs["sfumato_target"] == "region, job"


@pytest.mark.slow
def test_what_there_is_none_of_says_why(workspace_with_runs: Workspace, tmp_path: Path) -> None:
    place = workspace_with_runs.directory
    with pytest.raises(BadInput, match="several steps kept chains; name one: days; region, job"):
        library.chains(place)
    with pytest.raises(BadInput, match='no step of run 1 makes "height"; they make: days; region, job; income'):
        library.chains(place, 1, "height")
    with pytest.raises(NotReady, match="no convergence check; its posterior draws are exact and independent"):
        library.chains(place, 1, "income")
    with carried_out(tmp_path / "w", recipe({**MIXTURE, "keep_chains": False})) as other:
        with pytest.raises(NotReady, match="run 1 kept no chains; a step of a method that draws chains keeps them"):
            library.chains(other.directory)
        with pytest.raises(NotReady, match=r"say keep_chains = true in synthesis\[0\], and run it again"):
            library.chains(other.directory, 1, "job")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (None, r"need ArviZ, which is not installed; install the extra: pip install 'sfumato\[arviz\]'"),
        (SimpleNamespace(__version__="1.2.0"), r"ArviZ 1\.2\.0 has no InferenceData"),
    ],
)
def test_without_arviz_one_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: object, words: str
) -> None:
    monkeypatch.setitem(sys.modules, "arviz", module)
    with pytest.raises(WorkspaceError, match=words):
        library.chains(tmp_path / "nowhere")

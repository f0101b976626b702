"""Conversion of a sampler's chains to the ``InferenceData`` of ArviZ, an extra that is imported only here."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.results import LOG_POSTERIOR, NoTrace, SamplerDraws
from sfumato.engine.recipe.steps import RecipeStep

from ..errors import NotReady, WorkspaceError
from ..store.artefacts import read_traces
from ..store.chains import chains_name, read_chains
from ..store.runs import StoredRun
from ..store.workspace import Workspace

if TYPE_CHECKING:
    import arviz

INSTALL = "install the extra: pip install 'sfumato[arviz]'"
STATISTICS = {LOG_POSTERIOR: "lp"}
"""Names of densities among ArviZ's statistics of a sample; other densities keep their own name."""


def import_arviz() -> Any:
    """Return the module ArviZ. Raises WorkspaceError where it is not installed or has no ``InferenceData``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it announces version 1
            import arviz
    except ImportError:
        raise WorkspaceError(f"draws as InferenceData need ArviZ, which is not installed; {INSTALL}") from None
    # versions from 1 on do not have it
    if not hasattr(arviz, "InferenceData"):
        raise WorkspaceError(f"ArviZ {arviz.__version__} has no InferenceData; {INSTALL}, which takes an earlier one")
    return arviz


def read_target_chains(workspace: Workspace, run: StoredRun, target: str = "") -> tuple[RecipeStep, SamplerDraws]:
    """Return the synthesis step that makes ``target``, and all draws of its chains.

    Without a target the only step that kept chains is taken. Raises BadInput where no step makes the target or several
    kept chains, and NotReady where the step kept none.
    """
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'chains/%'", (run.id,)
    )
    left = {str(row["name"]): str(row["sha256"]) for row in rows}
    steps = list(enumerate(run.recipe.synthesis))
    kept = [(item, step) for item, step in steps if chains_name(item) in left]
    wanted = [(item, step) for item, step in steps if target in (step.target, *step.targets)] if target else kept
    if target and not wanted:
        made = "; ".join(step.target for _, step in steps) or "nothing"
        raise BadInput("target", f'no step of run {run.id} makes "{target}"; they make: {made}')
    if len(wanted) > 1:
        raise BadInput("target", f"several steps kept chains; name one: {'; '.join(step.target for _, step in wanted)}")
    if not wanted:
        raise NotReady(f"run {run.id} kept no chains; {_keep_chains_hint(None)}")
    ((item, step),) = wanted
    if chains_name(item) not in left:
        raise NotReady(
            f"{step.target}: run {run.id} kept no chains of it; {_missing_chains_reason(workspace, run, step)}"
        )
    return step, read_chains(workspace.tables, left[chains_name(item)])


def _missing_chains_reason(workspace: Workspace, run: StoredRun, step: RecipeStep) -> str:
    """Return why a step has no chains: its method draws none, or the recipe does not keep them."""
    traces = {model.target: model.trace for model in read_traces(workspace, run.id)}
    trace = traces.get(step.target)
    return f"no convergence check; {trace.reason}" if isinstance(trace, NoTrace) else _keep_chains_hint(step)


def _keep_chains_hint(step: RecipeStep | None) -> str:
    """Return how a recipe keeps chains."""
    if step is None or "keep_chains" not in {info.name for info in step.spec.params()}:
        return "a step of a method that draws chains keeps them where it says keep_chains = true"
    return f"say keep_chains = true in {step.place}, and run it again"


def to_inference_data(chains: SamplerDraws, run_id: int, target: str) -> arviz.InferenceData:
    """Return all draws as ``InferenceData``: a variable for each parameter, (chain, draw), in the order of sampling.

    ``posterior`` and ``sample_stats`` have the steps after the burn-in, ``warmup_posterior`` and
    ``warmup_sample_stats`` those of the burn-in. Chains and draws of each group are numbered from 0, as in ArviZ.
    """
    library = import_arviz()
    density = STATISTICS.get(chains.density_name, chains.density_name)

    def split_chains(part: slice) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the values of each parameter, and the density, at some of the steps."""
        values = {name: chains.values[:, part, j] for j, name in enumerate(chains.parameters)}
        return values, {density: chains.density[:, part]}

    (warm, warm_statistics), (posterior, statistics) = (
        split_chains(slice(chains.burn_in)),
        split_chains(slice(chains.burn_in, None)),
    )
    made: arviz.InferenceData = library.from_dict(
        posterior=posterior,
        sample_stats=statistics,
        warmup_posterior=warm if chains.burn_in else None,
        warmup_sample_stats=warm_statistics if chains.burn_in else None,
        save_warmup=True,
        attrs={"inference_library": chains.sampler, "sfumato_run": run_id, "sfumato_target": target},
    )
    return made

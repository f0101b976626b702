"""Commitment in the public manifest: an HMAC, by the workspace's key, of values that the manifest must not show.

To anybody without the key it is a random number: no guess at a value, a seed or a table can be compared with it.
Whoever has the key and the workspace can show which run a release came from, and could not have prepared another run
that fits. It covers the public manifest too, and so every public file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sfumato.engine.recipe.recipe import Recipe

from ..store.runs import StoredRun
from ..store.workspace import StoredDataset

LABEL = "sfumato commitment"
"""Keeps it apart from all else that is derived from a key."""
ALGORITHM = "HMAC-SHA-256"
IN_MANIFEST = "commitment"
"""The key of the public manifest under which it stands."""
NO_COMMITMENT = (
    "the run has a public key, so that an HMAC by it would commit to nothing and show guesses right or wrong"
)


@dataclass(frozen=True, slots=True)
class ReleaseCommitment:
    """Values that a release is bound to. Its fields are keys of ``commitments.json``.

    recipe_sha256, recipe_text_sha256: the run's recipe as it was understood, and as it was written
    data_sha256, confidential_table_sha256: the confidential file and its stored table
    table_sha256: the released tables
    seed: the run's seed
    versions: versions of the programs
    policy_sha256: the policy
    key_fingerprint: the workspace's key
    files: hashes of public files that the recipe took something from, by place; left out without such files
    weights_sha256: the records' weights; left out without weights
    controls_sha256: the records that were held out; left out without a hold-out
    """

    recipe_sha256: str
    recipe_text_sha256: str
    data_sha256: str
    confidential_table_sha256: str
    table_sha256: tuple[str, ...]
    seed: int
    versions: Mapping[str, str]
    policy_sha256: str
    key_fingerprint: str
    files: Mapping[str, str] = field(default_factory=dict)
    weights_sha256: str = ""
    controls_sha256: str = ""

    def to_table(self) -> dict[str, Any]:
        """Return all fields by name, as bound and as ``commitments.json`` has them."""
        return {
            name: value
            for name, value in asdict(self).items()
            # Earlier versions had no such fields: left out where empty, so that commitments of their releases still
            # verify.
            if value or name not in ("files", "weights_sha256", "controls_sha256")
        }

    def canonical_bytes(self, manifest: Mapping[str, Any]) -> bytes:
        """Return the bytes that the HMAC covers: fields and manifest, without its commitment, as canonical JSON."""
        bare = {key: value for key, value in manifest.items() if key != IN_MANIFEST}
        return json.dumps([LABEL, self.to_table(), bare], sort_keys=True, separators=(",", ":")).encode()

    def hmac_hex(self, key: bytes, manifest: Mapping[str, Any]) -> str | None:
        """Return the HMAC in hexadecimal digits; None with a public key."""
        # By a public key anybody could compute the HMAC of each guess.
        return hmac.digest(key, self.canonical_bytes(manifest), "sha256").hex() if key else None


def hashes_of_named_files(recipe: Recipe) -> dict[str, str]:
    """Return the SHA-256 of the contents that a recipe took from public files, by place in the recipe."""
    found = {}
    for step in (*recipe.synthesis, *recipe.anonymisation, *recipe.measures, *recipe.studies):
        for info in step.spec.params():
            value = getattr(step.spec, info.name)
            if getattr(value, "lines", ()):
                found[f"{step.place}.{info.name}"] = str(value.sha256)
    return found


def commitment_of_run(
    run: StoredRun,
    dataset: StoredDataset,
    tables: Sequence[str],
    policy_sha256: str,
    weights_sha256: str = "",
    controls_sha256: str = "",
) -> ReleaseCommitment:
    """Return the commitment of a run's release.

    ``dataset`` is the confidential one, ``tables`` are the hashes of the released ones.
    """
    return ReleaseCommitment(
        run.recipe_sha256,
        hashlib.sha256(run.recipe_toml.encode()).hexdigest(),
        dataset.source_sha256,
        dataset.table_sha256,
        tuple(tables),
        run.seed,
        dict(run.versions),
        policy_sha256,
        run.key_fingerprint,
        hashes_of_named_files(run.recipe),
        weights_sha256,
        controls_sha256,
    )


def commitments_table(commitment: ReleaseCommitment, value: str | None) -> dict[str, Any]:
    """Return the content of ``internal/commitments.json``: what was committed, how, and the value in the manifest."""
    return {
        "commitment": value,
        "algorithm": ALGORITHM if value else None,
        "label": LABEL,
        "reason": "" if value else NO_COMMITMENT,
        "committed": commitment.to_table(),
    }

"""Five Safes RO-Crate 0.4 of the release, in a BagIt 1.0 bag: run, disclosure check and sign-off.

The bag is the folder ``crate/``, for the records of a trusted research environment. Its payload has the recipe as a
workflow crate and the record of disclosure control. What the profile leaves to people, such as the sign-off, is pending
until they have done it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ..policy.disclosure import MARKING
from ..release.dossier import ReleaseDossier
from ..reporting.privacy_promise import promise_sentences
from ..visible_text import replace_hidden
from .disclosure_control import disclosure_control_record
from .written import WrittenFile, json_document

CRATE = "https://w3id.org/ro/crate/1.2"
PROFILE = "https://w3id.org/5s-crate/0.4"
WORKFLOW = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
METADATA = "ro-crate-metadata.json"
COMPLETED, FAILED, POTENTIAL = (
    f"http://schema.org/{word}ActionStatus" for word in ("Completed", "Failed", "Potential")
)
TO_BE_COMPLETED = "To be completed by a person"
Entity = dict[str, Any]


def ro_crate(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return the files of the bag as bytes, by name."""
    payload = {
        "workflow/recipe.toml": dossier.plan.run.recipe_toml.encode(),
        f"workflow/{METADATA}": json_document(_workflow_crate(dossier)),
        "disclosure-control.json": json_document(disclosure_control_record(dossier, written)),
        METADATA: json_document(_json_ld_graph(_crate_entities(dossier, written))),
    }
    return {
        f"crate/{name}": content for name, content in bagit_files(payload, _bag_information(dossier, written)).items()
    }


def bagit_files(payload: Mapping[str, bytes], information: Mapping[str, str]) -> dict[str, bytes]:
    """Return a BagIt 1.0 bag (RFC 8493) of files, with SHA-512 manifests of the payload and of the bag's own files."""
    size = sum(map(len, payload.values()))
    told = {**information, "Payload-Oxum": f"{size}.{len(payload)}"}
    data = {f"data/{name}": content for name, content in sorted(payload.items())}
    tags = {
        "bagit.txt": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": "".join(f"{key}: {_one_line(value)}\n" for key, value in told.items() if value).encode(),
        "manifest-sha512.txt": _sha512_manifest(data),
    }
    return {**data, **tags, "tagmanifest-sha512.txt": _sha512_manifest(tags)}


def _sha512_manifest(files: Mapping[str, bytes]) -> bytes:
    """Return a BagIt manifest: a line with the SHA-512 and the name of each file."""
    return "".join(f"{hashlib.sha512(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()


def _one_line(value: str) -> str:
    """Return a text on one line, as ``bag-info.txt`` needs it."""
    # A line end in a foreign text would begin a field of its own.
    return " ".join(replace_hidden(value).split())


def _bag_information(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, str]:
    """Return the content of ``bag-info.txt``."""
    return {
        "Source-Organization": dossier.judgements.get("publisher", ""),
        "External-Description": f"Disclosure control of a release. {MARKING}",
        "External-Identifier": _document_urn(dossier, written, "crate"),
    }


def _document_urn(dossier: ReleaseDossier, written: Sequence[WrittenFile], what: str) -> str:
    """Return an identifier that is the same for the same run and the same public files."""
    manifest = next((one.sha256 for one in written if (one.package, one.name) == ("public", "manifest.json")), "")
    # A random identifier would differ each time that the same release is written.
    space = uuid.uuid5(uuid.NAMESPACE_URL, PROFILE)
    return f"urn:uuid:{uuid.uuid5(space, '/'.join((dossier.plan.run.recipe_sha256, manifest, what)))}"


def _json_ld_graph(entities: Sequence[Entity]) -> dict[str, Any]:
    """Return entities as an RO-Crate's metadata."""
    return {"@context": f"{CRATE}/context", "@graph": list(entities)}


def _metadata_descriptor() -> Entity:
    """Return the entity of the metadata file itself."""
    return {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": CRATE}}


def _workflow_crate(dossier: ReleaseDossier) -> dict[str, Any]:
    """Return the metadata of the recipe as the workflow that was carried out."""
    language = {"@id": "#sfumato-recipe", "@type": "ComputerLanguage", "name": "Sfumato recipe (TOML)"}
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Recipe of {dossier.plan.run.title}",
        "description": "The plan of a disclosure control run: data, models, measures and thresholds.",
        "datePublished": _day_finished(dossier),
        "license": MARKING,
        "hasPart": [{"@id": "recipe.toml"}],
        "mainEntity": {"@id": "recipe.toml"},
    }
    recipe = {
        "@id": "recipe.toml",
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "Recipe",
        "encodingFormat": "application/toml",
        "sha256": hashlib.sha256(dossier.plan.run.recipe_toml.encode()).hexdigest(),
        "programmingLanguage": {"@id": language["@id"]},
    }
    # The profile requires RO-Crate 1.2 or later.
    descriptor = {**_metadata_descriptor(), "conformsTo": [{"@id": CRATE}, {"@id": WORKFLOW}]}
    return _json_ld_graph([descriptor, root, recipe, language])


def _crate_entities(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> list[Entity]:
    """Return all entities of the crate: actions, people, organisations and files."""
    results = [one for one in written if one.package == "public"]
    # Released files are named with their SHA-256 but not in the bag: the profile's way for outputs that are requested
    # separately.
    documents = [_public_file_entity(dossier, written, one) for one in results]
    actions = [_run_action(dossier, documents), _disclosure_check_action(dossier), _sign_off_action(dossier)]
    return [
        _metadata_descriptor(),
        _root_entity(dossier, actions),
        {"@id": PROFILE, "@type": "Profile", "name": "Five Safes RO-Crate profile"},
        *actions,
        *_context_entities(dossier),
        *documents,
        {
            "@id": "#permission",
            "@type": "DigitalDocumentPermission",
            "permissionType": "http://schema.org/ReadPermission",
            "grantee": {"@id": "#project"},
        },
    ]


def _root_entity(dossier: ReleaseDossier, actions: Sequence[Entity]) -> Entity:
    """Return the entity of the crate as a whole."""
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Disclosure control of a release: {dossier.plan.run.title}",
        "description": f"Run, disclosure check and sign-off of a release. {MARKING}",
        "datePublished": _day_finished(dossier),
        "license": MARKING,
        "conformsTo": {"@id": PROFILE},
        "hasPart": [{"@id": "workflow/"}, {"@id": "disclosure-control.json"}],
        "mainEntity": {"@id": "workflow/"},
        "mentions": [{"@id": action["@id"]} for action in actions],
        "sourceOrganization": {"@id": "#project"},
        "publisher": {"@id": "#keeper"},
    }


def _run_action(dossier: ReleaseDossier, results: Sequence[Entity]) -> Entity:
    """Return the run that made the datasets, as an action."""
    run = dossier.plan.run
    return {
        "@id": f"#run-{run.id}",
        "@type": "CreateAction",
        "name": f"Run {run.id}: {run.title}",
        "startTime": _utc_time(run.started or run.created),
        "endTime": _utc_time(run.finished or run.created),
        "actionStatus": COMPLETED,
        "agent": {"@id": "#requester"},
        "instrument": {"@id": "workflow/"},
        "object": [{"@id": "#confidential-file"}],
        "result": [{"@id": one["@id"]} for one in results],
        **(
            {} if (privacy := dossier.read_promise()) is None else {"description": " ".join(promise_sentences(privacy))}
        ),
    }


def _disclosure_check_action(dossier: ReleaseDossier) -> Entity:
    """Return the gate's check as an action; it has failed where an unwaived finding blocks."""
    examination = dossier.examination
    waived = (
        f"; waived by {', '.join(dict.fromkeys(one.user for one in examination.waivers))}"
        if examination.waivers
        else ""
    )
    return {
        "@id": "#disclosure-check",
        "@type": "AssessAction",
        "additionalType": {"@id": "https://w3id.org/shp#DisclosureCheck"},
        "name": f"Disclosure check of the datasets: {dossier.answer.title}{waived}",
        "description": dossier.reason,
        "object": [{"@id": "./"}, {"@id": "disclosure-control.json"}],
        "instrument": {"@id": "#policy"},
        "agent": {"@id": "#gate"},
        # A check that blocks has failed until it is waived.
        "actionStatus": FAILED if examination.unwaived_findings else COMPLETED,
        **({} if examination.approval is None else {"endTime": examination.approval.approved_at}),
    }


def _sign_off_action(dossier: ReleaseDossier) -> Entity:
    """Return the sign-off as an action: by the account that approved the release, else pending."""
    approval = dossier.examination.approval
    pending = {
        "@id": "#sign-off",
        "@type": "AssessAction",
        "additionalType": {"@id": "https://w3id.org/shp#SignOff"},
        "name": "Sign-off of the release: pending, to be signed by the owner of the data",
        "object": [{"@id": "./"}, {"@id": "workflow/"}, {"@id": "#project"}],
        "instrument": {"@id": "#policy"},
        "agent": {"@id": "#owner"},
        "actionStatus": POTENTIAL,
    }
    # Whoever owns the risk then signs by hand, which no program can state.
    if approval is None:
        return pending
    return {
        **pending,
        "name": f"Sign-off of the release: approved by the account {approval.approved_by}",
        "description": approval.approval_reason,
        "agent": {"@id": "#approver"},
        "actionStatus": COMPLETED,
        "endTime": approval.approved_at,
    }


def _context_entities(dossier: ReleaseDossier) -> list[Entity]:
    """Return the people, the organisation, the policy and the files that the actions refer to."""
    policy, said = dossier.policy, dossier.judgements
    version = str(dossier.plan.run.versions.get("sfumato", ""))
    approval = dossier.examination.approval
    approver = {"@id": "#approver", "@type": "Person", "affiliation": {"@id": "#keeper"}}
    return [
        *([] if approval is None else [{**approver, "name": approval.approved_by}]),
        {"@id": "#requester", "@type": "Person", "name": dossier.user or TO_BE_COMPLETED, "affiliation": {"@id": "#keeper"},
         "memberOf": [{"@id": "#project"}]},
        {"@id": "#owner", "@type": "Person", "name": said.get("owner", TO_BE_COMPLETED), "affiliation": {"@id": "#keeper"}},
        {"@id": "#keeper", "@type": "Organization", "name": said.get("publisher", TO_BE_COMPLETED)},
        {"@id": "#project", "@type": "Project", "name": dossier.plan.run.title, "member": [{"@id": "#keeper"}]},
        {"@id": "#gate", "@type": "SoftwareApplication", "name": "Sfumato, the gate of releases", "version": version,
         "provider": {"@id": "#keeper"}},
        {"@id": "#policy", "@type": "CreativeWork", "name": policy.name or "The default policy", "identifier": policy.sha256},
        {"@id": "#confidential-file", "@type": "DigitalDocument", "name": dossier.original.name,
         "sha256": dossier.original.source_sha256},
        {"@id": "workflow/", "@type": "Dataset", "name": f"Recipe of {dossier.plan.run.title}",
         "conformsTo": {"@id": WORKFLOW}},
        {"@id": "disclosure-control.json", "@type": "File", "name": "Record of disclosure control",
         "encodingFormat": "application/json"},
    ]  # fmt: skip


def _public_file_entity(dossier: ReleaseDossier, written: Sequence[WrittenFile], file: WrittenFile) -> Entity:
    """Return the entity of a public file, which lies outside the bag."""
    return {
        "@id": _document_urn(dossier, written, file.name),
        "@type": "DigitalDocument",
        "name": file.name,
        "contentSize": str(file.bytes),
        "sha256": file.sha256,
        "hasDigitalDocumentPermission": {"@id": "#permission"},
    }


def _utc_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _day_finished(dossier: ReleaseDossier) -> str:
    return _utc_time(dossier.plan.run.finished or dossier.plan.run.created)[:10]

"""What only a person can say of a release, in ``assessment.toml`` beside the database: it stands in the risk assessment.

```toml
owner = "Maria Rossi, data protection officer"    # holds for every run of the workspace
recipients = "accredited researchers, under contract 2026-4"

[run.7]                                           # of one run alone: judgements always are
linkability = "acceptable: no register of the region has these variables"
review = "2027-11-01"
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sfumato.engine.errors import BadInput, suggestion

from ..plain_files import read_plain
from ..policy.justification import checked_justification

ASSESSMENT_FILE = "assessment.toml"
MOST_ASSESSMENT_BYTES = 1 << 20
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asked:
    """Something that only a person can say: its key in the file, what it is, what is asked, and whether of one run alone."""

    key: str
    title: str
    asked: str
    of_run: bool = False

    def place(self, run_id: int) -> str:
        """Its key in the file."""
        return f"{f'run.{run_id}.' if self.of_run else ''}{self.key}"


CONTEXT = (
    Asked("recipients", "Recipients", "who receives the release, for what purpose, under which agreement?"),
    Asked("environment", "Environment", "where will they hold it (open, licensed, secure), with which controls?"),
    Asked(
        "motives", "Threats and motives", "who might try to re-identify a person, why, and with what skill and means?"
    ),
    Asked("other_data", "Other data", "which other data on these persons could an intruder hold or buy?"),
)
DATA = (
    Asked("population", "Population", "whom are the data about; all of a population, or a sample of which size?"),
    Asked("harm", "Harm", "what harm would a disclosure do to a person; are vulnerable groups among them?"),
)
JUDGEMENTS = {
    "singling out": Asked("singling_out", "Judgement", "is the risk of singling out acceptable, and why?", of_run=True),
    "linkability": Asked("linkability", "Judgement", "is the risk of linking acceptable, and why?", of_run=True),
    "inference": Asked("inference", "Judgement", "is the risk of inference acceptable, and why?", of_run=True),
    "membership": Asked(
        "membership", "Judgement", "is the risk of telling who is in the data acceptable, and why?", of_run=True
    ),
}
"""By the question that a measure answers."""
RESIDUAL = Asked("residual", "Residual risk", "which risk remains, who accepts it, and why?", of_run=True)
GOVERNANCE = (
    Asked("owner", "Owner of the risk", "who answers for the release (name, role)?"),
    Asked("review", "Review date", "when will this assessment be looked at again?"),
    Asked("monitoring", "Monitoring", "how will new data, new attacks and further releases be watched?"),
    Asked("incidents", "Incidents", "what happens, and who is told, if a person is re-identified?"),
    Asked("transparency", "Transparency", "what are the data subjects and the public told?"),
)
PUBLICATION = (
    Asked("publisher", "Publisher", "who publishes the datasets? It stands in the public documents"),
    Asked("licence", "Licence", "under which licence (its address)? It stands in the public documents"),
    Asked("address", "Address", "at which address of the web? It stands in the public documents"),
    Asked(
        "published", "Date of publication", "when, such as 2027-01-31? It stands in the public documents", of_run=True
    ),
)
"""What the public documents say of the publication; it leaves the building as it is written."""
ASKED = (*CONTEXT, *DATA, *JUDGEMENTS.values(), RESIDUAL, *GOVERNANCE, *PUBLICATION)


def judgements_of(directory: Path, run_id: int) -> Mapping[str, str]:
    """What the file of the workspace says of a run, by key; nothing where there is no file. Raises BadInput and StrangeFile."""
    try:
        content = read_plain(directory / ASSESSMENT_FILE, MOST_ASSESSMENT_BYTES)
    except FileNotFoundError:
        return NOTHING
    except OSError as error:
        raise BadInput(ASSESSMENT_FILE, f"cannot be read: {error.strerror}") from None
    return read_judgements(content, run_id)


def read_judgements(content: bytes, run_id: int) -> Mapping[str, str]:
    """What is written of a run: what holds for all, and over it what is said of this one. Raises BadInput with the place."""
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(ASSESSMENT_FILE, f"is not TOML: {error}") from None
    runs = table.pop("run", {})
    said = _answers(table, "")
    if not isinstance(runs, dict):
        raise BadInput(f"{ASSESSMENT_FILE}: run", "must be tables by the number of a run, such as [run.7]")
    for number, answers in runs.items():
        if not (number.isdecimal() and number.isascii()) or number.startswith("0"):
            raise BadInput(f"{ASSESSMENT_FILE}: run.{number}", "must be the number of a run, such as [run.7]")
        own = _answers(answers, f"run.{number}.")
        if number == str(run_id):
            said |= own
    return said


def _answers(table: Any, prefix: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise BadInput(f"{ASSESSMENT_FILE}: {prefix.rstrip('.')}", "must be a table of keys and words")
    known = {one.key: one for one in ASKED}
    for key, answer in table.items():
        place = f"{ASSESSMENT_FILE}: {prefix}{key}"
        if key not in known:
            raise BadInput(place, f"unknown key{suggestion(key, known) or '; known: ' + ', '.join(known)}")
        if known[key].of_run and not prefix:
            raise BadInput(
                place, f"is a judgement of one run: write it under the number of the run, [run.7] with {key}"
            )
        if not isinstance(answer, str):
            raise BadInput(place, "must be text")
    judged = {one.key for one in (*JUDGEMENTS.values(), RESIDUAL)}
    return {
        key: checked_justification(answer, f"{ASSESSMENT_FILE}: {prefix}{key}") if key in judged else answer.strip()
        for key, answer in table.items()
        if answer.strip()
    }

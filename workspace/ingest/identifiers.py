"""Columns that may say who a record is: names, addresses, telephone numbers, numbers of their own, free text. Suspected with reasons.

A reason speaks of the column's name and of the form of its values, and never holds a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

FEW_LEVELS = 20
"""A column of so few different values tells records apart too little to be an identifier."""
MOST_LOOKED_AT = 2_000
"""Different values whose form is looked at."""
MOST = 0.8
FREE_TEXT_WORDS = 5
SHARE_OF_ITS_OWN = 0.1
"""Of the records: a column called a name or a number of something has at least so many different values before it is suspected."""

FORMS = (
    (re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"), "most values are written like e-mail addresses"),
    (re.compile(r"(?=(?:\D*\d){7,15}\D*$)(?:\+|00|\(|0)[\d\s()/.–-]{6,}", re.ASCII), "most values are written like telephone numbers"),
    (re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE), "most values are web addresses"),
    (re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE), "most values are UUIDs"),
    (re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}"), "most values are written like bank account numbers"),
    (re.compile(r"\d{1,3}(?:\.\d{1,3}){3}"), "most values are written like internet addresses"),
)  # fmt: skip
WORDS: Mapping[str, frozenset[str]] = {
    "its name says that it names somebody or something": frozenset(
        [
            "name",
            "names",
            "surname",
            "forename",
            "firstname",
            "lastname",
            "fullname",
            "givenname",
            "familyname",
            "username",
            "vorname",
            "nachname",
            "nom",
            "prenom",
            "nombre",
            "apellido",
            "apellidos",
            "cognome",
            "navn",
            "namn",
        ]
    ),
    "its name says that it is an address": frozenset(
        [
            "email",
            "mail",
            "phone",
            "telephone",
            "tel",
            "telefon",
            "mobile",
            "handy",
            "fax",
            "address",
            "street",
            "strasse",
            "adresse",
            "rue",
            "direccion",
            "url",
        ]
    ),
    "its name says that it is a number of its own": frozenset(
        [
            "id",
            "ids",
            "identifier",
            "uuid",
            "guid",
            "ssn",
            "nin",
            "nino",
            "passport",
            "iban",
            "pid",
            "personid",
            "caseid",
            "respid",
            "respondentid",
            "hhid",
            "userid",
            "patientid",
            "idnr",
            "persnr",
            "caseno",
            "serial",
        ]
    ),
}


def suspected_identifiers(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Why columns of a table (n, k) may say who a record is, by the names of those that may."""
    found = {str(name): reasons(str(name), frame[name].dropna()) for name in frame.columns}
    return {name: why for name, why in found.items() if why}


def reasons(name: str, present: pd.Series, having: int | None = None) -> tuple[str, ...]:
    """Why a column may say who a record is, from its name and the values present (k,); empty where nothing speaks for that.

    ``having`` is how many records have one, where ``present`` has each but once.
    """
    records = len(present) if having is None else having
    different = present.unique()
    if len(different) <= FEW_LEVELS or pd.api.types.is_datetime64_any_dtype(present.dtype):
        return ()
    number = pd.api.types.is_numeric_dtype(present.dtype)
    found = [] if number else _by_form([str(value) for value in different[:MOST_LOOKED_AT]], len(different), records)
    whole = not number or bool((present % 1 == 0).all())
    if len(different) == records and whole:
        found.append("every record has a value of its own")
    elif whole and len(different) >= SHARE_OF_ITS_OWN * records:
        found += [why for why, words in WORDS.items() if words & set(_words(name)) and not (number and "names" in why)]
    return tuple(found)


def _by_form(texts: list[str], different: int, records: int) -> list[str]:
    found = [why for form, why in FORMS if sum(form.fullmatch(text.strip()) is not None for text in texts) > MOST * len(texts)]  # fmt: skip
    long = sorted(len(text.split()) for text in texts)[len(texts) // 2]
    if long >= FREE_TEXT_WORDS and different > records / 2:
        found.append(f"it holds free text: half of the values have {long} words or more, and most differ")
    return found


def _words(name: str) -> list[str]:
    """The words of a name, in small letters: of ``hostName``, ``host_name`` and ``Host name`` host and name."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-zà-ÿ]+|\d+", name)]

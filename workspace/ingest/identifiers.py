"""Detection of columns that may identify a record: names, addresses, telephone numbers, numbers of a record, free text.

Reasons refer to the column's name and to the form of its values; they never contain a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

MAX_LEVELS_NOT_IDENTIFYING = 20
"""Number of distinct values up to which a column distinguishes too few records to be an identifier."""
MAX_VALUES_EXAMINED = 2_000
"""Number of distinct values whose form is examined."""
MIN_FORM_SHARE = 0.8
"""Share of the examined values above which a form counts as that of the column."""
FREE_TEXT_WORDS = 5
"""Median number of words from which a text is free text."""
MIN_DISTINCT_SHARE = 0.1
"""Distinct values per record from which a column that is named like an identifier is suspected."""
MIN_OWN_SHARE = 0.9
"""Distinct texts per record from which nearly every record has one of its own: a list of people may have a double."""
MIN_RECORDS_PER_CODE = 5
"""Mean number of records with each value from which numbers that are named as codes need no question."""

SERIAL_SPAN = 1.5
"""Range of whole numbers, in records, up to which numbers that all differ count the records."""
MIN_SERIAL_DIGITS = 7
"""Digits from which whole numbers that all differ and all have as many digits are taken for numbers of records."""

VALUE_FORMS = (
    (re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"), "most values are written like e-mail addresses"),
    (re.compile(r"(?=(?:\D*\d){7,15}\D*$)(?:\+|00|\(|0)[\d\s()/.–-]{6,}", re.ASCII), "most values are written like telephone numbers"),
    (re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE), "most values are web addresses"),
    (re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE), "most values are UUIDs"),
    (re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}"), "most values are written like bank account numbers"),
    (re.compile(r"\d{1,3}(?:\.\d{1,3}){3}"), "most values are written like internet addresses"),
)  # fmt: skip
NUMBER_OF_ITS_OWN = "its name says that it is a number of its own"
NAME_WORDS: Mapping[str, frozenset[str]] = {
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
    NUMBER_OF_ITS_OWN: frozenset(
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


CODE_WORDS = frozenset(
    [
        "code",
        "codes",
        "zip",
        "zipcode",
        "zcta",
        "plz",
        "postcode",
        "postal",
        "postleitzahl",
        "fips",
        "nuts",
        "isco",
        "nace",
        "naics",
        "sic",
        "icd",
        "lau",
        "ags",
        "codice",
        "codigo",
        "código",
        "kode",
        "schlüssel",
        "schluessel",
    ]
)
"""Words of a name that say that digits are a code of a classification."""
AREA_WORDS = frozenset(["county", "country", "region", "province", "district", "municipality"])
"""Areas, whose number is a code: the ``county_id`` of a person is no number of the person."""
LEVEL_WORDS = AREA_WORDS | frozenset(
    [
        "category", "class", "type", "state", "department", "dept", "institution", "faculty", "hospital", "clinic", "ward",
        "centre", "center", "branch", "location", "firm", "company", "abteilung", "klinik", "krankenhaus", "filiale",
        "gemeinde", "landkreis", "bundesland",
    ]
)  # fmt: skip
"""Last words of a name that say so too: a county is a code, the population of a county is none."""
RELATION_WORDS = frozenset(["of", "per", "in", "by", "from", "to", "each", "pro", "je", "par", "por"])
"""Words between two nouns, the first of which is what is counted: pupils per class, lines of code."""
PERSON_WORDS = frozenset(
    [
        "surname", "forename", "firstname", "lastname", "fullname", "givenname", "familyname", "vorname", "nachname", "prenom",
        "prénom", "apellido", "apellidos", "cognome",
    ]
)  # fmt: skip
"""Words of a name that only names of people have."""
LATITUDE_WORDS = frozenset(["lat", "latitude", "latitud", "latitudine", "breitengrad", "breedtegraad"])
"""Words of a name that say that a column has the latitudes of places."""
PERSON_UNITS = frozenset(
    [
        "patient", "subject", "respondent", "participant", "proband", "person", "pupil", "student", "employee", "customer",
        "father", "mother",
    ]
)  # fmt: skip
"""Last words of a name that say that numbers are those of people."""
UNIT_NUMBER = re.compile(r"(?!num|alumi|plati|mag)[a-zà-ÿ]{2,}(?:num|nr|nbr)")
"""Words that say that a number is that of a unit: persnum, casenum, hausnr."""


def is_named_as_code(name: str) -> bool:
    """Return whether a column's name says that its values are codes of a classification, such as postal codes."""
    words = words_of_name(name)
    return (
        _numbers_area(words)
        or not CODE_WORDS.isdisjoint(words)
        or any(word.endswith("code") for word in words)
        or (any(word in LEVEL_WORDS for word in words[-1:]) and RELATION_WORDS.isdisjoint(words))
    )


def _numbers_area(words: Sequence[str]) -> bool:
    """Return whether the words of a name say that numbers are those of areas: ``county_id``, not ``patient_id``."""
    return words[-1:] == ["id"] and not AREA_WORDS.isdisjoint(words[-2:])


def _names_area(words: Sequence[str]) -> bool:
    """Return whether the words of a name end in the name of an area: ``state name``, not ``name``."""
    from .given_names import names_places

    before = [word for word in words if word not in ("name", "names")][-1:]
    return names_places(words) or not (AREA_WORDS | {"state"}).isdisjoint(before)


def is_named_as_area(name: str) -> bool:
    """Return whether a column's name ends in an area, such as ``state`` and ``county_id``, which are no people."""
    words = [word for word in words_of_name(name) if not word.isdigit()]
    return _numbers_area(words) or not (AREA_WORDS | {"state"}).isdisjoint(words[-1:])


def is_named_as_person(name: str) -> bool:
    """Return whether a name ends in a person: ``patient`` has the number of one, ``patient age`` has none."""
    words = [word for word in words_of_name(name) if not word.isdigit()]
    return any(word in PERSON_UNITS for word in words[-1:])


def is_surely_code(name: str, distinct: int, records: int) -> bool:
    """Return whether numbers of a name of codes need no question: the name names one, and each stands in many records.

    distinct: number of different values
    records: number of records with a value
    """
    # the code of a patient is a number of a person
    of_person = not PERSON_UNITS.isdisjoint(words_of_name(name)) or is_named_as_number_of_its_own(name)
    return names_a_code(name) and not of_person and records >= MIN_RECORDS_PER_CODE * distinct


def names_a_code(name: str) -> bool:
    """Return whether a name names a code and nothing that a code has: ``zip``, not ``zip population``."""
    words = [word for word in words_of_name(name) if not word.isdigit()]
    last = words[-1] if words else ""
    ends = last in CODE_WORDS | LEVEL_WORDS or last.endswith("code") or _numbers_area(words)
    # nouns come first in the languages that write it so
    return RELATION_WORDS.isdisjoint(words) and (ends or words[:1] in (["codice"], ["codigo"], ["código"]))


def is_named_as_number_of_its_own(name: str) -> bool:
    """Return whether a column's name says that its values are numbers of records, people or other units."""
    words = words_of_name(name)
    if _numbers_area(words):
        return False
    return not NAME_WORDS[NUMBER_OF_ITS_OWN].isdisjoint(words) or any(map(UNIT_NUMBER.fullmatch, words))


def is_named_as_latitude(name: str) -> bool:
    """Return whether a column's name says that it has the latitudes of places."""
    return not LATITUDE_WORDS.isdisjoint(words_of_name(name))


def places_records(name: str, present: pd.Series, records: int) -> bool:
    """Return whether a column has latitudes that place most of its records within about 100 m, each at its own.

    ``present`` are the values (n,), or the distinct ones. The longitudes beside them say nothing without them.
    """
    if not is_named_as_latitude(name) or not pd.api.types.is_float_dtype(present.dtype):
        return False
    different = present.drop_duplicates()
    if (
        len(different) <= MAX_LEVELS_NOT_IDENTIFYING
        or 2 * len(different) < records
        or float(different.abs().max()) > 90
    ):
        return False
    # two decimals of a degree are a square kilometre
    return bool(((different * 100) % 1).between(1e-6, 1 - 1e-6).mean() > MIN_FORM_SHARE)


def names_people(name: str, distinct: int, records: int) -> bool:
    """Return whether a column's name says that its texts name people, however few they are.

    A ``name`` may be that of a thing, whose values repeat.
    """
    words = words_of_name(name)
    return not PERSON_WORDS.isdisjoint(words) or (
        not {"name", "names"}.isdisjoint(words) and not _names_area(words) and 2 * distinct > records
    )


def suspected_identifiers(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the columns of a table (n, k) that may identify a record, with the reasons."""
    found = {str(name): identifier_reasons(str(name), frame[name].dropna()) for name in frame.columns}
    return {name: why for name, why in found.items() if why}


def identifier_reasons(
    name: str, present: pd.Series, n_present: int | None = None, more_values: int = 0
) -> tuple[str, ...]:
    """Return the reasons why a column may identify a record, from its name and the values present (k,).

    Empty where nothing suggests it. ``n_present`` is the number of records with a value, where ``present`` has each
    value only once, and ``more_values`` that of further numbers between the least and the greatest.
    """
    records = len(present) if n_present is None else n_present
    different = present.unique()
    n_different = len(different) + more_values
    if n_different <= MAX_LEVELS_NOT_IDENTIFYING or pd.api.types.is_datetime64_any_dtype(present.dtype):
        return ()
    number = pd.api.types.is_numeric_dtype(present.dtype)
    found = (
        []
        if number
        else _reasons_by_form([str(value) for value in different[:MAX_VALUES_EXAMINED]], n_different, records)
    )
    # measurements with decimals may all differ without identifying anybody beyond the file
    whole = not number or bool((present % 1 == 0).all())
    if (
        n_different == records
        and whole
        and (not number or _number_records(different, n_different) or names_a_code(name))
    ):
        found.append("every record has a value of its own")
    elif whole and n_different >= MIN_DISTINCT_SHARE * records:
        found += [
            why
            for why, words in NAME_WORDS.items()
            # a number is not somebody's name, and the name or the number of an area not those of a record
            if words & set(words_of_name(name))
            and not ("names" in why and (number or _names_area(words_of_name(name))))
            and not (why == NUMBER_OF_ITS_OWN and _numbers_area(words_of_name(name)))
        ]
    return tuple(found)


def _number_records(different: Any, n_different: int) -> bool:
    """Return whether whole numbers that all differ, the least and the greatest of which are among ``different``, number
    the records, rather than measure something.

    Numbers of records follow each other with few gaps, or have one length that is filled up from the start, as numbers
    of persons do. Magnitudes such as turnover differ in every record of a small file too, but are spread over lengths.
    """
    low, high = float(min(different)), float(max(different))
    if high - low < SERIAL_SPAN * n_different:
        return True
    return low >= 10 ** (MIN_SERIAL_DIGITS - 1) and len(f"{low:.0f}") == len(f"{high:.0f}")


def _reasons_by_form(texts: list[str], different: int, records: int) -> list[str]:
    """Return the reasons that lie in the form of texts: addresses, numbers of accounts and telephones, free text."""
    found = [why for form, why in VALUE_FORMS if sum(form.fullmatch(text.strip()) is not None for text in texts) > MIN_FORM_SHARE * len(texts)]  # fmt: skip
    # the median, since some short answers do not make a column of comments harmless
    long = sorted(len(text.split()) for text in texts)[len(texts) // 2]
    if long >= FREE_TEXT_WORDS and different > records / 2:
        found.append(f"it holds free text: half of the values have {long} words or more, and most differ")
    return found


def words_of_name(name: str) -> list[str]:
    """Split a name into lower-case words: ``hostName``, ``host_name`` and ``Host name`` give host and name."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-zà-ÿ]+|\d+", name)]

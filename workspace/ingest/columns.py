"""Guesses at the kind of each column of a file, from its values and from the file's own description.

A column whose values are all labelled has levels. A column of which only some values are labelled is a number, and a
code whose label means "no answer" is a missing code, as are the codes that the file declares missing. Columns that may
identify a record become identifiers (``identifiers``); a column without any value is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.engine.data.date_forms import DateForm
from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.wording import count_noun

from .date_votes import DateVote, NearlyDates, is_named_as_birth, is_regular_series, vote_on_dates
from .number_signs import write_padded_digits

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from .distinct_values import DistinctValues
    from .raw_tables import ColumnDescription, RawTable
    from .unit_detection import HiddenUnits

MAX_CODE_LEVELS = 20
"""Most distinct whole numbers that are taken for codes of levels."""
MAX_LABELLED_CODES = 100
"""Most distinct numbers that are taken for codes of a nominal or ordinal variable because the file declares it so."""
NO_ANSWER = re.compile(
    r"refus|don'?t know|do not know|\bdk\b|no answer|not answered|not applicable|\bn/?a\b|\binap|missing|not stated|not asked|"
    r"not ascertained|unknown|no response|non-?response|keine angabe|\bk\.\s?a\.|wei(?:ß|ss) nicht|verweigert|trifft nicht zu|"
    r"sans réponse|ne sait pas|non réponse|non concerné|no sabe|no contesta|ns/nc|no procede",
    re.IGNORECASE,
)
MAX_SIGNS = 10
"""Most distinct texts among numbers that are taken for signs of no value; a column of numbers has more distinct ones."""
MAX_SIGN_LENGTH = 24
MAX_SIGN_SHARE = 0.3
"""Largest share of the records with a value that signs among numbers may have."""
SUPPRESSED = "*"
CYCLIC_FORMAT = re.compile(r"(WKDAY|MONTH)\d+")
"""Formats of SPSS that show numbers to 7 or 12 as days of the week or months: these are levels."""
PLAIN_FORMATS = ("", "SDATE10", "DATETIME20", "%td", "%tc", "YYMMDD10.", "DATETIME20.")
"""Formats of SPSS, Stata and SAS that a release has unless a variable says another."""
DAY_AND_MONTH = (("day", "month", "year"), ("month", "day", "year"))
"""Orders of dates whose days and months may be mistaken for each other."""
NO_VALUE = "no record has a value"
UNIT_QUESTION = (
    "it numbers {each}, such as households or people over time, which stay together; --as {name}=categorical if each record is one person "
    "({why})"
)
HIDDEN_QUESTION = (
    "several records may be of one person, and stay together; --leave-out {name} if each record is one person (neighbours in the file agree in "
    "most columns in {like:.0%} of the pairs, others in {chance:.1%})"
)
WAVES_QUESTION = (
    "each value may be a wave of the same people, who stay together only where a column numbers them: add one to the file (records agree in "
    "most columns with one near their place in the next wave in {like:.0%} of the cases, in another order in {chance:.1%})"
)
"""Questions about units: the answer comes before the evidence, so that a small terminal shows it."""
OWN_DATE_QUESTION = "every record has a date of its own; if it names the record, --leave-out {name}"
BIRTH_QUESTION = "full dates of birth single people out; --leave-out {name}, or --keep {name} to have them"
TIME_TEXT = r"[+-]?(?:\d+ days?,? )?[+-]?\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?"
"""Times of day and durations, as spreadsheets and programs write them."""
MIN_TIME_SHARE = 0.95
"""Share of the different texts that write a time from which a column has times."""
PLACE_QUESTION = (
    "most records have a place of their own, within 100 m; if people live there, --leave-out {name}, or --keep {name} to "
    "have them"
)
ROW_NAMES = ("column_1", "row_names", "Unnamed: 0")
"""Names that a first column gets that has none."""


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """Guessed variable of a column of a file, with counts of its values.

    variable: guessed variable
    missing: number of records without a value
    distinct: number of distinct values
    exclusion_reasons: why the column does not enter the project: it may be an identifier, has no value, or is not
        wanted
    question: the other reading of its values that remains, and the option that chooses it; empty where there is none
    signs: values that are taken for missing values, unless the owner says that it has levels
    other_formats: other forms that all its dates fit, in another order of day, month and year
    orders_units: whether the records of a unit are ordered by it
    """

    variable: Variable
    missing: int
    distinct: int
    exclusion_reasons: tuple[str, ...] = ()
    question: str = ""
    signs: tuple[str | float, ...] = ()
    other_formats: tuple[str, ...] = ()
    orders_units: bool = False

    @property
    def is_included(self) -> bool:
        """Return whether the column is stored: it is no identifier and has a value."""
        return not self.exclusion_reasons


def profile_columns(raw: RawTable, names: Collection[str] | None = None) -> list[ColumnProfile]:
    """Return a profile of each column of a file, or of those of these ``names``, in the file's order.

    A column that numbers units of several records has the role of one. Where the file has units and numbers none, a
    profile follows of the variable that would number them. Some of the columns alone do not show units.
    """
    from .distinct_values import distinct_of_series, distinct_of_spooled
    from .identifiers import is_named_as_latitude
    from .raw_tables import ColumnDescription
    from .unit_detection import MOST_RECORDS_EXAMINED

    about = raw.descriptions
    # R and pandas write the names of rows into a first column without a name
    has_row_names = raw.names[:1] in [(name,) for name in ROW_NAMES] and "column_2" not in raw.names
    found: list[ColumnProfile] = []
    first_records: dict[str, pd.Series] = {}
    chosen = raw.names if names is None else tuple(name for name in raw.names if name in names)
    for name in chosen:
        description = about.get(name, ColumnDescription())
        may_name_rows = has_row_names and name == raw.names[0]
        spooled = raw.spooled_columns([name]).get(name)
        if spooled is not None and not description.labels and not description.missing:
            distinct = distinct_of_spooled(spooled, keep_all=is_named_as_latitude(name))
            first_records[name] = raw.first_values(name, MOST_RECORDS_EXAMINED)
        else:
            ((_, values),) = raw.iterate_columns([name])
            distinct = distinct_of_series(values)
            # Of a large file the first records are kept, so that it is not read a second time; a view would keep all.
            first_records[name] = values[:MOST_RECORDS_EXAMINED].copy()
            del values
        found.append(_profile_column(name, distinct, description, may_name_rows=may_name_rows))
    if names is None:
        return _propose_units(_settle_date_orders(found), first_records, raw.records)
    if len(chosen) < len(raw.names) and any(column.other_formats for column in found):
        # the file's other dates decide which number of a date is the day
        return [column for column in profile_columns(raw) if column.variable.name in chosen]
    return _settle_date_orders(found)


def _propose_units(
    columns: Sequence[ColumnProfile], first_records: Mapping[str, pd.Series], n_records: int
) -> list[ColumnProfile]:
    """Return the columns with the one that numbers units as such, or with one more that numbers hidden units.

    ``first_records`` are values of each column.
    """
    import pandas as pd

    from .unit_detection import (
        CodedTable,
        find_hidden_units,
        find_stacked_waves,
        list_unit_candidates,
        propose_unit,
    )

    frame = pd.DataFrame({name: values.reset_index(drop=True) for name, values in first_records.items()}, copy=False)
    candidates = list_unit_candidates(c.variable for c in columns if c.distinct > 1)
    table = CodedTable.from_frame(frame)
    proposal = propose_unit(table, candidates)
    if proposal is None:
        if (hidden := find_hidden_units(table)) is not None:
            return [*columns, _profile_of_hidden_units(hidden, columns, n_records)]
        if (waves := find_stacked_waves(table)) is not None:
            question = WAVES_QUESTION.format(like=waves.like_share, chance=waves.chance_share)
            return [
                replace(c, question="; ".join(filter(None, (c.question, question))))
                if c.variable.name == waves.wave
                else c
                for c in columns
            ]
        return list(columns)
    whole = n_records == len(frame)
    each = f"{proposal.n_units:,} units of {proposal.n_records / proposal.n_units:.1f} records each"
    question = UNIT_QUESTION.format(
        name=proposal.name, each=each if whole else f"units ({each} at first)", why=proposal.reason
    )
    found = []
    for column in columns:
        name, variable = column.variable.name, column.variable
        if name == proposal.name:
            found.append(
                replace(column, variable=replace(variable, role=Role.UNIT), exclusion_reasons=(), question=question)
            )
            continue
        # of a large file only the first records were compared
        if name in proposal.unit_level and whole and column.is_included:
            variable = replace(variable, level="unit")
        found.append(replace(column, variable=variable, orders_units=name == proposal.order))
    return found


def _profile_of_hidden_units(hidden: HiddenUnits, columns: Sequence[ColumnProfile], n_records: int) -> ColumnProfile:
    """Return the profile of a variable that numbers the units of a file that numbers none."""
    taken = {column.variable.name for column in columns}
    name = next(one for one in ("unit", *(f"unit_{i}" for i in range(2, len(taken) + 3))) if one not in taken)
    runs_of = tuple(one for one in hidden.runs_of if one in taken)
    question = HIDDEN_QUESTION.format(name=name, like=hidden.like_share, chance=hidden.chance_share)
    variable = Variable(
        name, Kind.COUNT, Role.UNIT, title="records that follow each other and are alike", runs_of=runs_of
    )
    return ColumnProfile(variable, 0, hidden.n_units, question=question)


def _settle_date_orders(columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Read days and months that may be either in the order of the file's other dates, and ask about them."""
    sure = {
        order
        for column in columns
        if not column.other_formats and (order := _order_of_parts(column.variable.date_form)) in DAY_AND_MONTH
    }
    found = []
    for column in columns:
        variable = column.variable
        if not column.other_formats:
            found.append(column)
            continue
        formats = (variable.format, *column.other_formats)
        told = [text for text in formats if _order_of_parts(DateForm.parse(text)) in sure] if len(sure) == 1 else []
        first, *others = sorted(formats, key=lambda text: text not in told)
        as_others = ", as the file's other dates are" if told else ""
        options = " or ".join(f"--as {variable.name}=date:{text}" for text in others)
        asked = f"read as {first}{as_others}, which other orders fit too: {options}"
        question = "; ".join(filter(None, (asked, column.question.replace(variable.format, first))))
        found.append(
            replace(column, variable=replace(variable, format=first), other_formats=tuple(others), question=question)
        )
    return found


def _order_of_parts(form: DateForm | None) -> tuple[str, ...]:
    """Return the order of day, month and year in a form; empty without one, or where the month is a word."""
    if form is None or {"MON", "Mon", "mon"} & set(form.tokens):
        return ()
    return tuple(part for part in form.parts if part in ("day", "month", "year"))


def records_with_missing(raw: RawTable, columns: Sequence[ColumnProfile]) -> NDArray[np.bool_]:
    """Mark the records that have no value in some of the included columns, (n,)."""
    import numpy as np

    from sfumato.engine.data.missing_codes import mask_missing_codes

    entering = {column.variable.name: column.variable for column in columns if column.is_included}
    found = np.zeros(raw.records, dtype=np.bool_)
    for name, values in raw.iterate_columns(tuple(entering)):
        found |= mask_missing_codes(values, entering[name]).isna().to_numpy()
    return found


def _profile_column(
    name: str, column: DistinctValues, about: ColumnDescription, *, may_name_rows: bool = False
) -> ColumnProfile:
    """Guess the kind, the missing codes and the role of one column, and count its values."""
    import pandas as pd

    from sfumato.engine.data.missing_codes import mask_missing_codes
    from sfumato.engine.data.spelling import read_numbers

    from .identifiers import identifier_reasons, is_named_as_code, is_surely_code

    as_read = Variable(name, Kind.CATEGORICAL, missing=about.missing)
    values, times, records = column.values, column.times, column.records
    present = mask_missing_codes(values, as_read).dropna()
    # the labels can name further missing codes only once the declared ones are gone
    codes = (*about.missing, *_no_answer_codes(present, about))
    if len(codes) > len(about.missing):
        present = mask_missing_codes(values, replace(as_read, missing=codes)).dropna()
    dates = None if about.labels or column.more_values else vote_on_dates(name, present, times)
    if isinstance(dates, DateVote):
        return _profile_dates(name, present, times, replace(as_read, missing=codes, title=about.title), records, dates)
    signs = () if about.labels else _signs_of_no_value(present, times)
    if signs:
        codes = (*codes, *signs)
        present = present[~present.isin(signs)]
        # beside ``*`` there may be words, which stay as they are
        numbers = read_numbers(present)
        present = numbers if numbers.notna().all() else present
    distinct = int(present.nunique()) + column.more_values
    shows_time = bool(about.format) and pd.api.types.is_numeric_dtype(present.dtype)
    kind, few = _kind_of_column(name, present, times, about, distinct, shows_time=shows_time)
    variable = Variable(name, kind, labels=non_blank_labels(about.labels), missing=codes, title=about.title)
    if about.format not in PLAIN_FORMATS:
        variable = replace(variable, format=about.format)
    having = len(present) if times is None else int(times[present.index].sum()) + column.more_records
    missing = records - having
    if not distinct:
        return ColumnProfile(variable, missing, 0, (NO_VALUE,))
    # a column with labelled values is a classification, however many values it has, and times are no numbers of records
    is_described = shows_time or labelled_values(about, codes)
    why = () if is_described else identifier_reasons(name, present, having, column.more_values)
    if (
        not why
        and not isinstance(dates, NearlyDates)
        and kind.has_levels
        and not shows_time
        and _are_nearly_all_own(present, distinct, having)
    ):
        why = ("nearly every record has a value of its own",)
    if may_name_rows and not why and distinct == having and _has_no_decimals(present):
        why = ("it has no name, as names of rows, and every record has a value of its own",)
    if why and kind in (Kind.CATEGORICAL, Kind.COUNT):
        return ColumnProfile(replace(variable, role=Role.IDENTIFIER), missing, distinct, why)
    if kind is Kind.COUNT and not about.labels and is_named_as_code(name):
        kind = Kind.CATEGORICAL
        if is_surely_code(name, distinct, having):
            return ColumnProfile(replace(variable, kind=kind), missing, distinct)
        why_codes = "digits of one length" if _has_one_length(present) else "numbers of such a name"
        question = f"{why_codes} are read as codes; --as {name}=count reads them as numbers"
        return ColumnProfile(replace(variable, kind=kind), missing, distinct, question=question)
    own_time = shows_time and MAX_CODE_LEVELS < distinct == having
    question = (
        OWN_DATE_QUESTION.format(name=name)
        if own_time
        else few or _remaining_question(name, present, times, kind, having, distinct)
    )
    if isinstance(dates, NearlyDates):
        question = (
            f"all values but {dates.others:,} are dates written {dates.form.text}; it is a date once the file's others are "
            "corrected, or missing"
        )
    if kind is Kind.DATE and is_named_as_birth(name):
        question = BIRTH_QUESTION.format(name=name)
    if signs and not _are_usual_signs(signs):
        rest = " and the rest for numbers" if kind in (Kind.COUNT, Kind.CONTINUOUS) else ""
        question = _question_of_signs(name, signs, rest)
    return ColumnProfile(variable, missing, distinct, question=question, signs=signs)


def _kind_of_column(
    name: str,
    present: pd.Series,
    times: NDArray[np.intp] | None,
    about: ColumnDescription,
    distinct: int,
    *,
    shows_time: bool,
) -> tuple[Kind, str]:
    """Return the kind of a column of ``distinct`` values, and a question about few small numbers or nothing.

    ``present`` are the values (n,), or different ones (k,) with the number of records of each in ``times``.
    ``shows_time`` says whether they are numbers that the file shows as times.
    """
    import pandas as pd

    kind = _kind_from_labels(present, distinct, about) or _kind_from_values(present, distinct)
    is_described = bool(about.labels or about.measure)
    if shows_time and kind.has_levels and not about.labels and not CYCLIC_FORMAT.fullmatch(about.format):
        # two times are no two levels, just as two days are dates
        return _kind_of_number(present), ""
    if kind is Kind.CATEGORICAL and pd.api.types.is_numeric_dtype(present.dtype) and not is_described:
        return _kind_of_few_numbers(name, about.title, present, times)
    return kind, ""


def _are_usual_signs(signs: Sequence[str | float]) -> bool:
    """Return whether all signs stand for a missing value in any file, so that among numbers or dates there is no doubt."""
    from .dialects import AMBIGUOUS_MISSING_WORDS, MISSING_WORDS

    return set(signs) <= set(MISSING_WORDS) - AMBIGUOUS_MISSING_WORDS


def _question_of_signs(name: str, signs: Sequence[str | float], rest: str) -> str:
    """Return what is said about texts that are taken for missing values, and about the ``rest``."""
    shown = ", ".join(f'"{sign}"' for sign in signs)
    verb, noun, them = (
        ("is", "a missing value", "it a level") if len(signs) == 1 else ("are", "missing values", "them levels")
    )
    return f"{shown} {verb} taken for {noun}{rest}; --as {name}=categorical makes {them}"


def _profile_dates(
    name: str,
    present: pd.Series,
    times: NDArray[np.intp] | None,
    variable: Variable,
    records: int,
    dates: DateVote,
) -> ColumnProfile:
    """Return the profile of a column whose values have voted to be dates."""
    from sfumato.engine.data.date_texts import read_dates

    if dates.signs:
        present = present[~present.isin(dates.signs)]
    having = len(present) if times is None else int(times[present.index].sum())
    variable = replace(variable, kind=Kind.DATE, format=dates.format, missing=(*variable.missing, *dates.signs))
    distinct = int(present.nunique())
    questions = [
        *(
            [_question_of_signs(name, dates.signs, " and the rest for dates")]
            if dates.signs and not _are_usual_signs(dates.signs)
            else []
        ),
        *dates.questions,
        *([BIRTH_QUESTION.format(name=name)] if is_named_as_birth(name) else []),
        # dates of birth are asked about already
        *(
            [OWN_DATE_QUESTION.format(name=name)]
            if MAX_CODE_LEVELS < distinct == having
            and not is_named_as_birth(name)
            and not is_regular_series(read_dates(present.astype("str").tolist(), dates.form))
            else []
        ),
    ]
    other = tuple(form.text for form in dates.other_forms)
    return ColumnProfile(
        variable,
        records - having,
        distinct,
        question="; ".join(questions),
        signs=dates.signs,
        other_formats=other,
    )


def _signs_of_no_value(present: pd.Series, times: NDArray[np.intp] | None) -> tuple[str, ...]:
    """Return the texts of a column that break its type: a few short ones among numbers, and ``*`` for suppressed cells.

    ``present`` are the values (n,), or the distinct ones (k,) with the number of records of each in ``times``.
    """
    import numpy as np
    import pandas as pd

    from sfumato.engine.data.spelling import read_numbers

    if pd.api.types.is_numeric_dtype(present.dtype) or pd.api.types.is_datetime64_any_dtype(present.dtype):
        return ()
    texts = present.astype("str").drop_duplicates()
    if len(texts) < 2 or write_padded_digits(text for text in texts if text.isdigit()):
        return ()
    is_number = read_numbers(texts).notna()
    breaking = texts[~is_number].tolist()
    suppressed = (SUPPRESSED,) if SUPPRESSED in breaking else ()
    few = len(breaking) <= MAX_SIGNS < int(is_number.sum()) and max(map(len, breaking), default=0) <= MAX_SIGN_LENGTH
    if not breaking or not few:
        return suppressed
    if times is None:
        shown = present.astype("str").isin(breaking)
        records, of_them = len(present), int(shown.sum())
    else:
        counts = times[present.index]
        records, of_them = int(counts.sum()), int(counts[np.flatnonzero(present.isin(breaking).to_numpy())].sum())
    return tuple(breaking) if of_them <= MAX_SIGN_SHARE * records else suppressed


def _kind_of_number(present: pd.Series) -> Kind:
    """Return the kind of numbers (n,) that are no levels."""
    return Kind.COUNT if bool((present % 1 == 0).all()) and present.min() >= 0 else Kind.CONTINUOUS


def _kind_of_few_numbers(name: str, title: str, present: pd.Series, times: NDArray[np.intp] | None) -> tuple[Kind, str]:
    """Return the kind of few small whole numbers (n,), or (k,) of ``times`` records each, and a question or nothing."""
    from .few_numbers import read_few_numbers
    from .identifiers import is_named_as_code

    number = Kind.COUNT if present.min() >= 0 else Kind.CONTINUOUS
    if is_named_as_code(name):
        return Kind.CATEGORICAL, ""
    is_number = read_few_numbers(name, title, present, times)
    if is_number:
        return number, ""
    asked = (
        "" if is_number is False else f"few whole numbers are read as codes; --as {name}={number} reads them as numbers"
    )
    return Kind.CATEGORICAL, asked


def _has_no_decimals(present: pd.Series) -> bool:
    """Return whether values (k,) are texts or whole numbers."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(present.dtype) or bool((present % 1 == 0).all())


def _has_one_length(present: pd.Series) -> bool:
    """Return whether whole numbers (k,) all have the same number of digits, at least two."""
    return bool(present.min() >= 10) and len(f"{present.min():.0f}") == len(f"{present.max():.0f}")


def _remaining_question(
    name: str, present: pd.Series, times: NDArray[np.intp] | None, kind: Kind, records: int, distinct: int
) -> str:
    """Return what the ``distinct`` values of a column may be besides its kind, with the option that says so.

    ``present`` are the values (n,), or different ones (k,) with the number of records of each in ``times``.
    """
    import pandas as pd

    from .few_numbers import says_quantity
    from .given_names import may_name_people, names_places
    from .identifiers import (
        MAX_VALUES_EXAMINED,
        is_named_as_code,
        is_named_as_number_of_its_own,
        is_named_as_person,
        names_people,
        places_records,
        words_of_name,
    )
    from .unit_numbers import may_number_units

    if kind is Kind.DATE and MAX_CODE_LEVELS < distinct == records and not _is_text(present):
        moments = pd.to_datetime(present, utc=True).dt.tz_localize(None).to_numpy()
        return "" if is_regular_series(moments) else OWN_DATE_QUESTION.format(name=name)
    # numbers of many lengths are magnitudes: numbers of persons or firms fill one length
    own = kind is Kind.COUNT and MAX_CODE_LEVELS < distinct == records
    from .distinct_values import UNIQUE_VALUES_FROM

    # values of a long column come in their own order, not in that of the file
    ascends = len(present) <= UNIQUE_VALUES_FROM and present.is_monotonic_increasing
    if own and (ascends or _has_one_length(present)):
        return f"every record has a number of its own; if it names the record, --leave-out {name}"
    if kind is Kind.CONTINUOUS and places_records(name, present, records):
        return PLACE_QUESTION.format(name=name)
    # names that repeat are no identifiers by their number, and would be released as levels
    is_text = kind.has_levels and _is_text(present)
    if is_text and names_people(name, distinct, records):
        return f"its name says that it names somebody or something; if it names people, --leave-out {name}"
    if (
        kind is Kind.CATEGORICAL
        and not names_places(words_of_name(name))
        and may_name_people(map(str, present.unique()[:MAX_VALUES_EXAMINED]))
    ):
        return f"many values have a given name; if they name people, --leave-out {name}"
    many = kind is Kind.CATEGORICAL and distinct > MAX_CODE_LEVELS
    if (
        distinct > MAX_CODE_LEVELS
        and kind in (Kind.CATEGORICAL, Kind.COUNT)
        and (is_named_as_number_of_its_own(name) or (is_named_as_person(name) and not says_quantity(name, "")))
    ):
        return f"its name says that it is a number of its own, though values repeat; if it names people, --leave-out {name}"
    if is_text and many and _write_times(present):
        return (
            f"its values are times, which are read as levels; write them as a number of seconds, or --leave-out {name}"
        )
    if kind is Kind.COUNT and may_number_units(name, present, times):
        return (
            f"its numbers may be those of units, such as schools: --as {name}=categorical reads them as codes; if they "
            f"number people, --leave-out {name}"
        )
    if many and (others := _texts_among_numbers(present)) and len(others[0]) <= MAX_SIGN_LENGTH:
        return (
            f'most values are numbers, but {count_noun(len(others), "value")} such as "{others[0]}" '
            f"{'makes' if len(others) == 1 else 'make'} them levels; --missing names what stands for no value"
        )
    if many and not is_named_as_code(name) and write_padded_digits(map(str, present)):
        return f"leading zeros are kept, so the values are codes; --as {name}=count reads them as numbers"
    return ""


def _is_text(present: pd.Series) -> bool:
    """Return whether values (k,) are texts."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(present.dtype) and not pd.api.types.is_datetime64_any_dtype(present.dtype)


def _are_nearly_all_own(present: pd.Series, distinct: int, records: int) -> bool:
    """Return whether nearly all records have a text of their own, which is neither a number nor a time.

    Such texts are names, addresses or words: as levels they would be released as they stand.
    """
    from .identifiers import MIN_OWN_SHARE

    many = distinct > MAX_CODE_LEVELS and MIN_OWN_SHARE * records <= distinct
    return many and _is_text(present) and not _texts_among_numbers(present) and not _write_times(present)


def _write_times(present: pd.Series) -> bool:
    """Return whether nearly all different texts (k,) write a time of day or a duration, such as 1:34:47."""
    texts = present.astype("str").drop_duplicates()
    return bool(texts.str.fullmatch(TIME_TEXT).mean() >= MIN_TIME_SHARE)


def _texts_among_numbers(present: pd.Series) -> list[str]:
    """Return the texts that are no numbers in a column (k,) whose other different texts, more than half, are numbers."""
    import pandas as pd

    from sfumato.engine.data.spelling import read_numbers

    if pd.api.types.is_numeric_dtype(present.dtype):
        return []
    texts = present.astype("str").drop_duplicates()
    is_number = read_numbers(texts).notna()
    return sorted(texts[~is_number], key=len) if 2 * int(is_number.sum()) > len(texts) else []


def non_blank_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that contain more than blanks."""
    return {code: label for code, label in labels.items() if label.strip()}


def labelled_values(description: ColumnDescription, codes: Sequence[str | float]) -> dict[str, str]:
    """Return the labels of values, without those of missing codes."""
    import pandas as pd

    from sfumato.engine.data.missing_codes import is_missing_code

    hidden = Variable("", Kind.CATEGORICAL, missing=tuple(codes))
    names = list(non_blank_labels(description.labels))
    if not names:
        return {}
    missing = is_missing_code(pd.Series(names, dtype="object"), hidden).to_numpy()
    return {
        name: description.labels[name]
        for name, is_missing in zip(names, missing, strict=True)
        # .a to .z and ._ are kinds of missing value in Stata and SAS, not levels
        if not (is_missing or (name.startswith(".") and len(name) == 2))
    }


def _value_texts(present: pd.Series) -> set[str]:
    """Return the distinct values present as texts, in the spelling that codes of labels have."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(present.dtype):
        # 15 digits, as the readers spell the codes of labels
        return {f"{value:.15g}" for value in present.astype("float64").unique()}
    return set(map(str, present.unique()))


def _no_answer_codes(present: pd.Series, about: ColumnDescription) -> tuple[str | float, ...]:
    """Return the codes of a partly labelled scale whose labels mean that there is no answer."""
    import pandas as pd

    labels = labelled_values(about, about.missing)
    if not labels or not pd.api.types.is_numeric_dtype(present.dtype) or _value_texts(present) <= set(labels):
        return ()
    numbers = (float(code) for code, label in labels.items() if NO_ANSWER.search(label))
    return tuple(int(number) if number.is_integer() else number for number in numbers)


def _kind_from_labels(present: pd.Series, distinct: int, about: ColumnDescription) -> Kind | None:
    """Return the kind of a column that the file describes, or None where its description does not settle the kind."""
    import pandas as pd

    if not distinct:
        return None
    labels = labelled_values(about, about.missing)
    ordered = Kind.ORDINAL if about.measure == "ordinal" else Kind.CATEGORICAL
    if labels and _value_texts(present) <= set(labels):
        return Kind.BINARY if max(distinct, len(labels)) <= 2 else ordered
    if not pd.api.types.is_numeric_dtype(present.dtype) or pd.api.types.is_bool_dtype(present.dtype):
        return None
    whole = bool((present % 1 == 0).all())
    if about.measure in ("nominal", "ordinal") and whole and 2 < distinct <= MAX_LABELLED_CODES:
        return ordered
    ends = {f"{present.min():.15g}", f"{present.max():.15g}"}
    # a rating scale often has labels at its two ends alone
    if labels and whole and 2 < distinct <= MAX_CODE_LEVELS and ends <= set(labels):
        return Kind.ORDINAL
    if (labels or about.measure == "scale") and distinct > 2:
        return _kind_of_number(present)
    return None


def _kind_from_values(present: pd.Series, distinct: int) -> Kind:
    """Guess the kind of a column from its values alone."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(present) and distinct >= 2:
        return Kind.DATE
    if distinct <= 2:
        return Kind.BINARY
    if pd.api.types.is_numeric_dtype(present) and not pd.api.types.is_bool_dtype(present):
        whole = bool((present % 1 == 0).all())
        # few small whole numbers are codes more often than counts
        if whole and distinct <= MAX_CODE_LEVELS and present.abs().max() < 100:
            return Kind.CATEGORICAL
        return _kind_of_number(present)
    # 0101 and 20190731 would be read as dates of a compact ISO form; digits with leading zeros are codes
    if write_padded_digits(map(str, present)):
        return Kind.CATEGORICAL
    # parsing all texts of a long column as dates takes too long to be a guess
    some = pd.Series(present.unique()[:1000]).astype("str")
    dates = pd.to_datetime(some, errors="coerce", format="ISO8601", utc=True)
    return Kind.DATE if len(dates) and dates.notna().all() else Kind.CATEGORICAL

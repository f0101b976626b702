"""Guide for users of released data: what the data are, how to analyse them, what they keep of the confidential data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.combining import CombiningRule, combining_rule
from sfumato.engine.wording import count_noun, join_names

from ..plots.figure import Figure
from ..policy.disclosure import INFORMATION_LOSS, DisclosureRules, PublicFigure
from .document import BulletList, Chapter, DefinitionList, Document, DocumentPart, Paragraph, number_figure
from .privacy_promise import PrivacyPromise, promise_sentences
from .results import row_output
from .tables import DisplayRow, DisplayTable, table_from_titles
from .words import DIRECTION_TEXTS, interval_text, number, target_text
from .worked_example import BoundedMean, CombinedMean

BETWEEN_DEGREES = "t from Student's distribution of (m - 1)(1 + m k u / b)² degrees of freedom"
"""Of the rule with b, as ``sfumato.engine.statistics.combining`` has it."""
MADE_ELSEWHERE = "Data made by another program"
OWN_PACKAGE = "sfumato"
UTILITY_HEADS = ("measure", "of", "value", "interval", "without a difference", "better")


@dataclass(frozen=True)
class PublicRelease:
    """Public knowledge about a release.

    recipe: its recipe
    n_datasets, n_records: number of datasets, and of records of each
    kept_variables: variables that are released unchanged
    replaced_variables: variables with replaced values
    figures: protected figures of utility
    rules: rules by which figures are protected
    example: worked example on the released data
    privacy: privacy guarantee
    coverage: fewest of the file's people whom the release describes, and most whom it leaves out, by protected counts;
        None where they do not leave
    has_units: whether several records describe one unit, such as a household
    """

    recipe: Recipe
    n_datasets: int
    n_records: int
    kept_variables: Sequence[str]
    replaced_variables: Sequence[str]
    figures: Sequence[PublicFigure]
    rules: DisclosureRules
    example: CombinedMean | BoundedMean | None = None
    privacy: PrivacyPromise | None = None
    coverage: tuple[int, int] | None = None
    has_units: bool = False

    @property
    def provenance(self) -> ReleaseProvenance:
        """Return how the release came about."""
        return release_provenance(self.recipe, self.n_records)

    @property
    def combining_rule(self) -> CombiningRule | str:
        """Return the rule by which estimates of the datasets are combined, or why no rule covers."""
        try:
            return combining_rule(self.provenance)
        except NotComputable as error:
            return error.reason

    @property
    def figure_rows(self) -> list[Row]:
        """Return the rows of the protected figures."""
        return [figure.row for figure in self.figures]

    @property
    def disclosure_text(self) -> str:
        """Return what the public numbers are computed from, in words."""
        if not self.figures:
            return "PUBLIC: every number is computed from the released files alone"
        if self.recipe.form.public_figures == "paid":
            return (
                "PUBLIC: numbers are computed from the released files alone, and figures of utility have noise that the "
                f"privacy account pays for (epsilon {number(sum(one.epsilon for one in self.figures))})"
            )
        return (
            "PUBLIC: numbers are computed from the released files alone, and figures of utility from counts of confidential "
            f"records rounded to multiples of {self.rules.base}; counts near 0 or near all records are taken for one"
        )

    @property
    def title(self) -> str:
        """Return the recipe's public title of the data, or a description where it has none."""
        kind = f"{self.recipe.origin.capitalize()} data" if self.recipe.makes_release else MADE_ELSEWHERE
        return (
            self.recipe.form.title
            or f"{kind}: {count_noun(self.n_datasets, 'dataset')} of {count_noun(self.n_records, 'record')}"
        )

    @property
    def kind_text(self) -> str:
        """Return what kind of data they are, in capitals: only who made them is known of files made elsewhere."""
        return f"{self.recipe.origin.upper()} DATA" if self.recipe.makes_release else MADE_ELSEWHERE.upper()


def user_guide_document(release: PublicRelease, figures: Sequence[Figure] = ()) -> Document:
    """Return the guide as a document, with public figures where there are some."""
    synthetic = release.recipe.origin == "synthetic"
    parts: list[DocumentPart] = [
        Chapter("What these data are", _description_parts(release)),
        Chapter("Variables", [_variables_table(release)]),
        Chapter(
            "How to compute with them", _combining_parts(release) if synthetic else _generalised_values_parts(release)
        ),
        Chapter("What they keep of the confidential data", _utility_parts(release)),
        *(
            [Chapter("What they promise of privacy", [BulletList(promise_sentences(release.privacy))])]
            if release.privacy
            else []
        ),
        Chapter("What not to do with them", [BulletList(usage_limits(release))]),
    ]
    if figures:
        drawn = [number_figure(figure, i) for i, figure in enumerate(figures, start=1)]
        parts.append(Chapter("Figures", drawn))
    return Document(release.title, f"{release.kind_text}. {release.disclosure_text}.", parts)


def describe_released_data(release: PublicRelease) -> str:
    """Return what the data are and where their values come from, in a few sentences."""
    if not release.recipe.makes_release:
        return _describe_files_made_elsewhere(release)
    if release.recipe.origin == "synthetic":
        # a person or household with several records has several rows
        whose = "record" if release.has_units else "person"
        return (
            f"{_datasets_text(release)}. The values of {_names_text(release.replaced_variables)} are drawn from statistical models that were fitted to "
            "confidential data. A drawn value may be one that somebody has: models such as trees draw among the values of real records. "
            + _unchecked_methods_text(release.recipe)
            + (
                f"The values of {_names_text(release.kept_variables)} are those of the confidential records, each row one {whose}'s."
                if release.kept_variables
                else "No variable was kept from the confidential records."
            )
            + recoding_text(release.recipe)
        )
    return (
        f"{_datasets_text(release)}. They are confidential records whose values of {_names_text(release.replaced_variables)} were made coarser; some "
        "records may have been left out."
        + (f" The values of {_names_text(release.kept_variables)} are as they were." if release.kept_variables else "")
    )


def _unchecked_methods_text(recipe: Recipe) -> str:
    """Return that methods of other packages drew values, whose description is their authors'; empty without such methods."""
    others = dict.fromkeys(step.method.package for step in recipe.synthesis if step.method.package != OWN_PACKAGE)
    if not others:
        return ""
    return f"Methods of other packages drew some of them ({', '.join(others)}), and what they do is described by their authors alone. "


def _describe_files_made_elsewhere(release: PublicRelease) -> str:
    """Return what is known of data that another program made: what their keeper declared, and no more."""
    recipe = release.recipe
    made = f"{_datasets_text(release)}, made by another program. How it made the values of {_names_text(release.replaced_variables)} is not known here"
    if recipe.origin == "anonymised":
        made += "; their keeper describes them as confidential records whose values were made coarser, of which some may have been left out."
    else:
        made += ", nor whether some of them are values of real people."
    if release.kept_variables:
        made += f" Their keeper describes the values of {_names_text(release.kept_variables)} as those of the confidential records."
    else:
        made += " Whether a variable was kept from the confidential records is not known."
    return made + recoding_text(recipe)


def recoding_text(recipe: Recipe) -> str:
    """Return the public rules that made values coarser; empty without such rules."""
    said = "; ".join(f"{name}: {rule}" for name, rule in recipe.public_rules.items())
    return f" Values were made coarser by rules that are public ({said})." if said else ""


def _description_parts(release: PublicRelease) -> list[DocumentPart]:
    """Return the description of the data, the steps that made them, and the order of their rows."""
    recipe = release.recipe
    if recipe.origin == "synthetic":
        made = [[step.target, step.method.title, step.method.source] for step in recipe.synthesis]
        heads: tuple[str, ...] = ("variable", "model", "source")
        title = "How the values were drawn, in this order"
    else:
        made = [[step.method.title, step.method.source] for step in recipe.anonymisation]
        heads, title = ("method", "source"), "How the records were changed, in this order"
    parts: list[DocumentPart] = [Paragraph(describe_released_data(release))]
    if made:
        parts.append(table_from_titles(heads, made, title=title))
    else:
        parts.append(Paragraph("Methods: not known."))
    shuffled = "a random order, each dataset in its own"
    if recipe.form.order != "shuffled":
        shuffled = (
            "the order of the confidential records"
            if recipe.makes_release
            else "the order of the files that were scored"
        )
    described = [Paragraph(text)] if (text := coverage_sentence(release)) else []
    return [*parts, *described, Paragraph(f"Rows stand in {shuffled}. The files are described in codebook.csv.")]


def may_leave_people_out(recipe: Recipe) -> bool:
    """Return whether a recipe can leave out people of its file: for missing values, or in an anonymised table."""
    dropping = recipe.data.missing is MissingPolicy.DROP or recipe.data.complete_cases
    return bool(dropping) or recipe.origin == "anonymised"


def coverage_sentence(release: PublicRelease) -> str:
    """Return whom of the file the release leaves out, at most, where that leaves; empty where the recipe leaves nobody
    out.
    """
    recipe = release.recipe
    noun = recipe.data.rows or ("records" if release.has_units else "people")
    # Of whom another program left out people nothing is known: the recipe's rules are about the records it was scored with.
    if not may_leave_people_out(recipe) or not recipe.makes_release:
        return ""
    shown = (*release.replaced_variables, *release.kept_variables)
    named = [name for name in recipe.data.complete_cases if name in shown]
    lacking = f"a value of {join_names(named)}" if len(named) == len(recipe.data.complete_cases) > 0 else "some value"
    drops = recipe.data.missing is MissingPolicy.DROP or recipe.data.complete_cases
    reason = f"{noun.capitalize()} without {lacking} are left out." if drops else ""
    if release.coverage is None:
        return reason
    described, left_out = release.coverage
    percent = 100 * described // (described + left_out)  # never all, which would say that nobody is left out
    bound = (
        f"They describe at least {percent} % of the {noun} of the keeper's file: at most {left_out:,} are left out."
        if percent
        else f"At most {left_out:,} {noun} of the keeper's file are left out."
    )
    return " ".join((bound, reason)).rstrip()


def _datasets_text(release: PublicRelease) -> str:
    """Return the number of datasets and of their records."""
    m = release.n_datasets
    return f"{count_noun(m, 'dataset')} of {count_noun(release.n_records, 'record')}{' each' * (m != 1)}"


def _names_text(names: Sequence[str]) -> str:
    """Return names as a list in words: ``age, sex and price``."""
    return ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1] if names else "no variable"


def _variables_table(release: PublicRelease) -> DisplayTable:
    """Return the released variables and whether their values are replaced or coarser."""
    shown = {
        name: "replaced"
        if name in release.replaced_variables
        else "as it was"
        if release.recipe.makes_release
        else "made by another program"
        if name in release.replaced_variables
        else "as it was, says the keeper"
        for name in (*release.replaced_variables, *release.kept_variables)
    }
    shown |= {
        name: f"{shown[name]}, {rule}" if name in release.replaced_variables else rule
        for name, rule in release.recipe.public_rules.items()
        if name in shown
    }
    schema = release.recipe.released_schema
    lines: list[DisplayRow] = [[v.name, v.title, v.kind.value, shown[v.name]] for v in schema if v.name in shown]
    keys: list[DisplayRow] = [
        [name, "joins the released tables that have it", "key", "random, in place of an identifier"]
        for name in release.recipe.form.surrogate_keys
    ]
    keys += [
        [name, "joins the records of a unit", "number", "1, 2, ..., new ones in every dataset"]
        for name in release.recipe.renumbered_units
    ]
    return table_from_titles(("variable", "meaning", "kind", "values"), [*keys, *lines])


def _combining_parts(release: PublicRelease) -> list[DocumentPart]:
    """Return how datasets are analysed together, with a worked example on the mean of a variable."""
    m, example, rule = release.n_datasets, release.example, release.combining_rule
    steps = [
        f"Do the analysis on each of the {count_noun(m, 'dataset')} by itself. Do not stack them: {m} times as many rows are not {m} times as "
        "many people, and standard errors would come out too small.",
        "Note the estimate q of each dataset and u, its squared standard error.",
    ]
    if isinstance(rule, str):
        mean = "The combined estimate is the mean of the q." if m > 1 else "The estimate q is the best that there is."
        return [
            BulletList([*(steps if m > 1 else []), mean]),
            Paragraph(
                f"There is no 95 % interval that covers: {rule}. The standard errors of a dataset are too small, since they leave "
                "out that another release would have given other values."
                + (
                    " Where protected tables are in the package, compute shares from these: their noise or rounding is stated."
                    if "protected tables" in release.provenance.published
                    else ""
                )
            ),
        ]
    parts: list[DocumentPart] = [BulletList([*(steps if m > 1 else steps[1:]), _variance_text(release, rule)])]
    parts.append(
        Paragraph(
            f"Why this rule: {rule.reason}. {_rule_condition(release)} Estimates that need what the models "
            "left out, such as interactions or tails that they do not have, can be wrong in all datasets alike."
        )
    )
    if isinstance(example, CombinedMean) and example.combined is not None:
        low, high = example.combined.interval()
        degrees = example.combined.degrees_of_freedom
        result = DefinitionList(
            [
                ("combined estimate q", number(example.combined.estimate)),
                ("mean u", number(sum(example.variances) / len(example.variances))),
                *([("b, between datasets", number(example.between_variance))] if m > 1 else []),
                ("T", number(example.combined.variance)),
                ("degrees of freedom", number(degrees) if degrees < 1e6 else "more than a million: a normal interval"),
                ("95 % interval", interval_text(low, high)),
            ]
        )
        parts.append(
            Chapter(f"Worked out on these datasets: the mean of {example.variable}", [example.dataset_table, result])
        )
    return parts


def _rule_condition(release: PublicRelease) -> str:
    """Return when the combining rule holds, and whether that is known."""
    if release.recipe.makes_release:
        return "It holds where the models hold for the population."
    return "It holds where each dataset was drawn by itself, from models that hold for the population. Whether that is so is not known here."


def _variance_text(release: PublicRelease, rule: CombiningRule) -> str:
    """Return the variance of a combined estimate and its interval, in words."""
    between = rule.parameters == "unknown"
    return (
        "The combined estimate is the mean q of the q. With u the mean of the u"
        + (" and b the variance of the q between datasets (divided by m - 1)" if between else "")
        + f", its variance is {rule.formula}. "
        + (
            "Here k = 1, as each dataset has as many rows as there were records. "
            if release.recipe.form.records is None and release.recipe.form.number_of_units is None
            else "k is the number of rows for each confidential record. Ask the data's keeper for it: the number of records is not public. "
        )
        + "95 % intervals are q ± "
        + (f"t √T, with {BETWEEN_DEGREES}." if between else "1.96 √T.")
    )


def _generalised_values_parts(release: PublicRelease) -> list[DocumentPart]:
    """Return how generalised values are analysed, with a worked example on the mean of a variable."""
    labels = [name for name in release.replaced_variables if name in release.recipe.generalised]
    means = [name for name in release.replaced_variables if name not in release.recipe.generalised]
    items = []
    if labels:
        items += [
            f"Values of {_names_text(labels)} may be intervals: [20, 30) holds 20 and everything below 30, [20, 30] holds 30 too. {{a, b}} is "
            "one of a and b, the name of a group one of its members, and * anything at all.",
            "Do not put the middle of an interval in its place: that invents values, and correlations with them come out wrong. "
            "Analyse the intervals as categories, or give the lowest and the highest possible result, as below.",
        ]
    if means:
        items.append(
            f"Values of {_names_text(means)} are means (of ordered levels medians, of categories the most frequent) of the records of a class. "
            "Their mean is right; their variance is too small, and correlations with other variables come out too large."
        )
    items.append(
        "If records were left out they were the unusual ones: rare combinations are rarer here than in the population."
    )
    parts: list[DocumentPart] = [BulletList(items)]
    if isinstance(release.example, BoundedMean):
        found = release.example
        said = (
            f"The lower ends of the {count_noun(found.n_intervals, 'value')} of {found.variable} that are intervals have the mean "
            f"{number(found.lower_mean)}, the upper ends {number(found.upper_mean)}: the mean of the exact values lies between."
        )
        left = found.n_records - found.n_intervals
        more = f" Of {count_noun(left, 'record')} more nothing can be said." if left else ""
        parts.append(Chapter(f"Worked out on these data: the mean of {found.variable}", [Paragraph(said + more)]))
    return parts


def _utility_parts(release: PublicRelease) -> list[DocumentPart]:
    """Return how far analyses of the released data differ from those of the confidential data, by public figures."""
    measured_inside = any(step.method.family in INFORMATION_LOSS for step in release.recipe.measures)
    office = (
        "The data's keeper measured how well these data keep the confidential ones. Ask there before you rely on a result."
        if measured_inside
        else "Expect differences, and ask the data's keeper before you rely on a result."
    )
    if not release.figures:
        return [
            Paragraph(
                f"{office} The figures do not leave: each was computed from confidential records and could reveal one of them."
                if measured_inside
                else office
            )
        ]
    outputs = {_row_name(row): output for row in release.figure_rows if (output := row_output(row))}
    noise = release.recipe.form.public_figures == "paid"
    protection = (
        "Each has random noise, and none is exact."
        if noise
        else f"Each is computed from rounded counts, so that differences of about {count_noun(release.rules.smallest_cell, 'record')} do not show."
    )
    return [
        Paragraph(
            f"Averages over the datasets, compared with the confidential data. {protection} They count records without a value too. "
            f"They are in utility.csv too. {office}"
        ),
        utility_table(release.figure_rows),
        DefinitionList([(name, output.meaning) for name, output in outputs.items()]),
    ]


def _row_name(row: Row) -> str:
    """Return the name of a row's measure."""
    return measure_name(row.key)


def utility_table(rows: Sequence[Row]) -> DisplayTable:
    """Return the table of public utility figures."""
    lines: list[DisplayRow] = [
        [
            _row_name(row),
            target_text(row.target, row.params),
            number(row.value),
            interval_text(row.lower, row.upper),
            "" if row.baseline is None else number(row.baseline),
            DIRECTION_TEXTS[output.goal] if (output := row_output(row)) else "",
        ]
        for row in rows
    ]
    return table_from_titles(UTILITY_HEADS, lines, right=(2, 3, 4), spare=(5, 4, 3))


def usage_limits(release: PublicRelease) -> list[str]:
    """Return the sentences on what not to do with the data."""
    items = [
        "Do not try to find out who a record is about, and do not link the records with others about people.",
        "Do not take a single record, a smallest or largest value or a rare combination for a fact.",
    ]
    if noisy := release.provenance.noisy_domain:
        items.append(
            f"Do not take extremes of {_names_text(noisy)} for those of the population. Noise found their levels or ranges, and values "
            "beyond them are left out."
        )
    if release.recipe.origin == "synthetic":
        items.append(
            "Before a decision or a publication rests on a result, have it confirmed on the confidential data."
        )
    return items

"""Sentences of the gate's findings and answer: templates with named fields, and the function that fills them.

A field may have a format of Python's, or one of these:

``{n:count record}``      ``1 record``, ``12 records``
``{n:word is|are}``       the word that agrees with the number
``{names:list}``          ``age, sex and region``
``{names:commas}``        ``age, sex, region``
``{x:number}``            four significant digits
``{share:percent}``       two decimals, more where it would read as 0 or 100 %
``{share:percent .2g}``   percent in a format of Python's
``{share:share}``         three significant digits; below 0.001 % in words

The test of words reads every template, and another test that each call gives just the fields of its template.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

from sfumato.engine.wording import agreeing_word, count_noun, format_number, format_percent, join_names


class _SentenceFormatter(Formatter):
    """Formatter of templates that knows the format specifications of the module's sentences."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a field in its format: a kind such as ``count``, ``list`` or ``percent`` with its arguments, else one
        of Python's.
        """
        kind, _, rest = format_spec.partition(" ")
        match kind:
            case "count":
                return count_noun(value, rest)
            case "word":
                one, _, several = rest.partition("|")
                return agreeing_word(value, one, several)
            case "list":
                return join_names(list(value))
            case "commas":
                return ", ".join(map(str, value))
            case "number":
                return format_number(value)
            case "percent":
                return f"{100 * value:{rest}} %" if rest else format_percent(value)
            case "share":
                return format_share(value)
        return format(value, format_spec)


_FORMATTER = _SentenceFormatter()


def fill_sentence(template: str, **fields: object) -> str:
    """Return a template with its named fields filled in. Raises KeyError for a field that is not given."""
    return _FORMATTER.vformat(template, (), fields)


def template_fields(template: str) -> frozenset[str]:
    """Return the names of the fields of a template."""
    fields = [(name, specification or "") for _, name, specification, _ in _FORMATTER.parse(template) if name]
    return frozenset(name for name, _ in fields).union(*(template_fields(specification) for _, specification in fields))


def sentence_templates() -> Mapping[str, str]:
    """Return every template by its name."""
    return {name: text for name, text in globals().items() if name.isupper() and isinstance(text, str)}


def format_share(share: float) -> str:
    """Return a share as ``0.436 %``; one that is too small to write is below 0.001 %, not 0."""
    return "below 0.001 %" if 0 < share < 1e-5 else f"{100 * share:.3g} %"


# What several checks say.
ELSEWHERE = "releases from other workspaces are not known here"
NOT_AN_ANONYMISED_TABLE = "not an anonymised table"
PROTECTED_BY_CLASSES = "records of an anonymised table are protected by their classes"
NOTHING_DRAWN = "nothing is drawn"
NO_QUASI_IDENTIFIER = "no variable is a quasi-identifier"
UNCONTROLLED = "; no record was held out to compare with"
SAME_PEOPLE_EVIDENCE = "{common:,} {relation} {names:list}: {first_share:share} of {first:,} here and {second_share:share} of {second:,} there"
SAME_IDENTIFIER = "have the same"
ALONE_IN_BOTH_TABLES = "are alone in both tables with the same"
UNREADABLE_RELEASE = "run {run}, released before, cannot be read: {error}"
RELEASE_GONE = "run {run}, released before, is gone, and the audit log does not say that it was deleted"
TOO_FEW_IDENTIFIED = "the columns in common ({names:commas}) identify too few people"
NO_COMMON_COLUMN = "no column in common"
TOO_FEW_COLUMNS_LEFT = "too few columns are left in common"
UNCERTAIN_PEOPLE = "; it is unknown whether the people of run {run}, released before, are the same: {reason}"
POOL_OF_ONE_RUN = "{datasets:count dataset} of {rows:,} records, compared with {records:,}{alone}"
POOL_ALONE = "; this release alone"
POOL_OF_RUNS = (
    "{datasets:count dataset} against {records:count record}; "
    "{releases} releases together, this one and {earlier:word run|runs} {runs:commas} before"
)
DATASETS_LOOKED_AT = "{size}; {used} of {all} datasets were looked at"

MORE_NAMES = "{number} more"

# The answer of the whole gate.
MAY_THIS_LEAVE = "May this leave {audience}? {answer}"
NOT_EXAMINED = "The gate could not examine the release: {error}."
OTHERS_BLOCK = " {others:count other finding} {others:word blocks|block} too."
NOTHING_BLOCKS = "Nothing blocks."
NOBODY_FOUND = "0 of {records:,} {noun} are above the allowed risk."
NOBODY_OF_ALL = "0 of {records:,} {noun} are above the allowed risk."
WAIVED = "{waived:count block} {waived:word was|were} waived by {users:list}."
WAIVED_TO_JUDGE = "{waived:count block} {waived:word was|were} waived by {users:list}, and {waived:word needs|need} a person's judgement: {titles:list}."
OTHERS_TO_BE_JUDGED = "{number:count other finding} {number:word needs|need} a person's judgement: {titles:list}."
OVERRULED_ANSWER = "NO, unless a person overrules it"
TO_BE_JUDGED = "{number:count finding} {number:word needs|need} a person's judgement: {titles:list}."
CHECKS_NOT_MADE = "{number:count check} could not be made."
CLAUSE_OF_CHECKS = "{clause} ({number:,} checks)"
MORE_CHECKS = "{number:count more check}"
NOT_COVERED = "{clauses:list}."
NOBODY_FOUND_BY_MADE_CHECKS = "0 of {records:,} {noun} are above the allowed risk, by the checks that were made."
NOBODY_OF_ALL_BY_MADE_CHECKS = "0 of {records:,} {noun} are above the allowed risk, by the checks that were made."
ATTACKS_TRIED = "Tried, and within the limits: {attacks:list}."
LEARNED_OF_NOBODY = (
    "A row shows the true {kept:list} of a person; of {drawn:list} only artificial values, drawn from a model."
)
ALL_IS_DRAWN = "Only artificial values, drawn from a model: {drawn:list}."
MAY_NOT_LEAVE = "No: {number:count check} {number:word blocks|block}."
TO_DO_THEN = " Once none does, a person has to {acts:list}."
TO_DO_FIRST = "Not yet: a person has to {acts:list}{then}."
DECIDE = "decide {question}"
JUDGE_MILDER = "judge {number:count finding} that {number:word does|do} not block"
JUDGE_FINDINGS = "judge {number:count finding}"
JUDGE_OTHERS = "judge {number:count other finding}"
ACCEPT_UNMADE = "accept that {number:count check} {number:word was|were} not made"
MAY_LEAVE = "Yes: every check that applies was made, and none objects."
CHANGE_AND_LEFT = "{change}: {left:,} of {people:,} {left:word is|are} still found"
NOBODY_LEFT = "{change}: no person is found by these columns"
REPLACE_OR_LEAVE_OUT = "make {names:list} artificial (synthesise), or leave {number:word it|them} out"
JOIN_RARE_LEVELS = "join rare levels of {names:list}"
COARSEN_KEPT = "give {names:list} artificial values (synthesise) or coarser ones"
COARSEN_KEPT_BEST = (
    "make {variable} artificial (synthesise): {left:,} of these {people:,} {noun} {left:word is|are} still found "
    "by the other columns{others}"
)
COARSEN_KEPT_NEXT = "; doing this to {variable} instead, {left:,}"
COARSEN_KEPT_USELESS = "; doing this to {variable} instead leaves all of them"
COARSEN_KEPT_TOGETHER = (
    "give {names:list} artificial values (synthesise) or coarser ones: one of them alone does not help, since "
    "these {people:,} {noun} are still found by the others"
)
COARSEN_FIRST = "coarsen {variable}: without it no intruder of the study finds more than {value:number} on average"
NOTHING_TO_CHANGE = "Nothing, as far as was examined."
CAN_BE_FOUND = "{people:,} of {records:,} {noun} can be found"
PEOPLE_CONCERNED = "{people:,} of {records:,} {noun} are concerned"
PEOPLE_EXPOSED = "{people:,} of {records:,} {noun} exposed"
FINDINGS_BLOCK = "{number:count finding} {number:word blocks|block}"
FINDINGS_TO_JUDGE = "{number:count finding} {number:word needs|need} a judgement"
NOBODY_BEYOND_LIMITS = "no person is above the allowed risk"
FINDING_WITH_TITLE = "{title}: {message}."
PEOPLE_OF_ALL = "{people:,} of {records:,} {noun} ({share:percent})"
UNITS_OF_ALL = "{people:,} of {records:,} {noun} ({share:percent}; all {records:,} have {described})"
PEOPLE_AND_CLAUSE = "{people} {clause}{counted}."
PEOPLE_COUNTED = "{people}{counted}."
ABOUT_PEOPLE = "about {people}"
SHOWN_TO_BE_MEMBERS = (
    "Who knows their values and finds them in a row may conclude that they are in the data: of held-out {noun}, who are "
    "not in the data, fewer have such a row."
)
SHOWN_BY_COLUMNS = (
    "Who knows their {columns:list} and finds a row with these may conclude that they are in the data: of {noun} outside "
    "the data fewer have such a row."
)
SHOWN_BY_OWN_ROWS = "Their own rows have the values that were drawn for them more often than other rows would."
PEOPLE_AND_TITLE = "{people}: {title}."

# Records.
DRAWN_VALUES_ONLY = "asked of artificial values only; records of an anonymised table are protected by their classes"
WEIGHT_ALONE = "nothing but the survey weight is drawn"
EQUAL_RECORDS = (
    "{share:share} of the released rows equal a confidential record in all {variables} variables; of an independent sample it would be "
    "{baseline:share} ({size}); {repeated:count record} {repeated:word is|are} repeated"
)
ROWS_OF_HOLDOUT = (
    "{message}; rows of {controls:,} of {eligible_controls:,} hold-out {noun} are released, and of {members:,} of {eligible_members:,} "
    "{noun} of the data"
)
NO_NUMBERS = "no numbers or dates are replaced"
NO_EXTREMES = "no smallest or largest value that few records have is released unchanged"
EXTREMES = "released unchanged: {columns} ({size}){uncontrolled}"
EXTREMES_OF_COLUMN = "{name}: the {ends} value"
ONE_DATASET = "there is one dataset"
ROWS_OF_ONE_RECORD_UNKNOWN = "nothing says which rows of the datasets are of the same record"
ROWS_NOT_LINKED = "rows of different datasets cannot be linked to the same record"
AGREED_VALUES = (
    "{name}: the {datasets:count value} together reveal {share:share} of the {linked:count record} whose rows can be linked, and "
    "{baseline:share} of the records most like them ({size}){chance}"
)
AGREED_BY_CHANCE = "; with so few records it may be chance"
NOTHING_REPLACED = "nothing is replaced"
NO_KEPT_WEIGHT = "no survey weight is released unchanged"
KEPT_WEIGHT = (
    "{few:,} of {records:,} {noun} ({share:share}) have a survey weight ({weight}) that fewer than {smallest_cell} {noun} share; "
    "{alone:,} of them have a unique one: whoever knows how the weights were made knows their strata and classes"
)
NO_KEPT_VARIABLE = "no variable is released unchanged"
IDENTIFYING_COLUMN = (
    "{name} is released unchanged, and {alone:,} of {records:,} {noun} ({share:share}) have a unique value"
)
FOUND_BY_COLUMN = "can be found by {name} alone, which is released unchanged"
SMALL_CLASSES = (
    "the smallest class of records that agree on all quasi-identifiers has {smallest:,}; {share:share} of the records are in classes of "
    "fewer than {smallest_cell}{limit}"
)
CLASS_LIMIT = "; the limit for this audience ({audience}) is {limit}"
IN_SMALL_CLASSES = "are in classes of fewer than {limit} with the same {names:list}"
FORMULA_CELLS = "levels that a spreadsheet may take for a formula: {names}"
NO_DISGUISED_COLUMN = "no column that stays says what another is to hide"
DISGUISED_COLUMN = "{column} stays and {relation} as {secret}, which is {why}"
DISGUISED_FOR_SOME = (
    "{column} stays and {relation}: it gives {secret}, which is {why}, of {share:percent .3g} of the {noun}"
)
NO_CONSTRAINTS = "the recipe declares no constraints"
CONSTRAINTS_KEPT = "no record of {datasets} datasets breaks one of {rules} rules"
CONSTRAINTS_BROKEN = "broken: {rules}"
CONSTRAINT_BROKEN = "constraint {name}: {broken:,} of {records:,} records of dataset {dataset}"
CONSTRAINTS_UNKNOWN = "; for some records it is unknown whether they keep to {names:commas}"

# Tables that join.
NO_SURROGATE_KEY = "no surrogate key is released"
PUBLIC_SURROGATE_KEYS = "the surrogate keys follow from a public key: whoever knows an identifier finds its rows"
JOINED_RELEASES = (
    "joined by the surrogate key of {keys:list}{runs}, {few:,} of {people:,} {noun} ({share:percent}) share their values of "
    "{columns:list}{groups} with fewer than {others} others{draws}{uncounted}; " + ELSEWHERE
)
NO_COLUMN = "no column"
JOINED_RUNS = " with the releases of the runs {runs:commas}"
JOINED_GROUPS = ", and those of all rows with their key,"
JOINED_DRAWS = "; artificial values of one record can be put together too, which no measure of single datasets sees"
UNCOUNTED_RUNS = "; the releases of the runs {runs:commas} join too, and their columns cannot be counted here"
FOUND_BY_JOINED = "can be found by {columns:list} once tables are joined by the surrogate key"

# People.
ROWS_OF_UNITS = "; rows of one unit are seen to belong together, so that {units} count whose records together are those of few others"
ROWS_BY_THEMSELVES = (
    "; single {rows} are counted, since the release does not show which are of one of the {units}: who is found by all {rows} of one of them "
    "together is counted by the check of the record that is most at risk"
)
CLASSES_ARE_CHECKED = "small_classes looks at the quasi-identifiers of an anonymised table"
NO_KEPT_COLUMN = "no column is released unchanged"
NO_KEPT_COLUMN_COUNTS = "no column that counts for this audience ({audience}) is released unchanged"
KEPT_UNCHANGED = "released unchanged"
KEPT_BY_RULES = "released unchanged or by public rules"
KEPT_AS_RELEASED = "as released"
KEPT_COLUMNS = (
    "{few:,} of {people:,} {noun} ({few_share:percent}) share their values of {columns}, {how}, with fewer than {others} others; "
    "{alone:,} {alone:word {one}|{noun}} {alone:word has|have} a unique combination; an intruder who picks a matching row for each finds "
    "{found:number} on average ({found_share:percent}){population}"
)
KEPT_IN_POPULATION = ", {found:number} without knowing who of the population is in the file"
KEPT_OTHER_COLUMNS = "; who also knows {names:list} finds {found:,} in classes of fewer than {limit}: judge whether this audience can know these columns"
FOUND_BY_KEPT_COLUMNS = "can be found by {columns}, {how}"
FOUND_BY_WHOLE_UNIT = "can be found by {columns} of all their {rows} together, {how}"
FOUND_BY_INTRUDER = "can be found by {columns}"
NAMED_BY_INTRUDER = "each more likely than not{certain}"
CERTAIN_OF_NAMED = ", {certain:,} of them found for certain"
NAMED_FOR_CERTAIN = "each found for certain"
IN_SMALL_GROUP = "each is in a group of fewer than {limit:,} {noun} with the same values{alone}"
ALONE_IN_GROUP = ", {alone:,} of them alone"
UNCHANGED_AND_DRAWN = "{kept}, released unchanged, and by artificial values of {drawn}"
TRUE_VALUES_LEARNED = "Whoever finds one of them reads the true {names}."
DRAWN_VALUES_LEARNED = "That they are in the data, and their true {kept}; of {drawn} only artificial values."
NO_OTHER_TRUE_VALUES_LEARNED = "Who knows some of these columns reads the true others; artificial: {drawn}."
NO_TRUE_VALUES_LEARNED = "That they are in the data; of {drawn} only artificial values."
ONLY_DRAWN_VALUES_LEARNED = "Only artificial values, drawn from a model: {drawn}."
MEMBERS_LEARNED = "That they are in the data, and so what is true of everybody in it."
VALUES_BESIDE_LEARNED = "That they are in the data. Beside their values a row shows {others:list}: artificial; how near these are to their own was not measured."
NO_SINGLE_CHANGE = "No single change helps: with each, {left:,} of {people:,} {left:word is|are} still found."
CHANGES_TOGETHER = "Together they help. With each one more:"
EFFECT_OF_CHANGE = "{change}: {left:,} of {people:,} still found."
NO_HOLDOUT = "no record was held out of the run, so that nothing shows whom a release finds that never saw them; hold out some under [data]"
LOOK_COUNTS = (
    "{members:,}{members_share} of {eligible_members:,} {noun} of the data{stratum} {what}; of {eligible_controls:,} such hold-out "
    "{noun} {controls}{controls_share}"
)
SHARE_BESIDE = " ({share:percent .0f})"
LOOKS_TOGETHER = "are found by the ways of comparing that find too many"
STRATUM = " among {who} (in the data or held out)"
HONEST_RELEASES = "a release that copies no person shows as much in {p:percent .2g} of cases"
NO_POWER = "too few {noun} have rare values for copies of them to be noticed in four of five releases"
POWER = "copies of {fewest:,} {noun} ({share:share}) or more would be noticed in four of five releases"
LOOKS = "{objecting:,} of {looks:count way} of comparing {objecting:word finds|find} too many, and {honest}; {power} ({size})"
NOTHING_FOUND = "no way of comparing finds anybody in the release ({size})"
NO_EVIDENCE = (
    "no evidence that {noun} of the data are found more often than {noun} who were held out: at most, {counts}; {about}"
)
SHOWN_BEYOND_CHANCE = "are shown to be in the data, beyond what chance explains"
EVIDENCE = (
    "about {excess:,} {noun} more than chance explains stand in the release with their values; {counts}, so that chance "
    "explains {by_chance:,} of the {members:,}; {about}"
)
ROWS_BESIDE_LOOKS = "; {about}"
HOLDOUT_OPEN = "; the hold-out neither confirms nor contradicts it: {about}"
ROWS_FOUND = (
    "{people} of {members:,} of the data, alone with their values in {columns}, {found:word stands|stand} in the release{holdout}, where "
    "{chance}: rows that are drawn independently show as much in at most {p:percent .2g} of cases{beside}"
)
ROWS_OF_CONTROLS = ", and {controls} of {eligible:,} hold-out {noun}"
NO_COLUMN_KEPT = "the release keeps no column"
NO_OWN_ROW = "no row is known to be a record's own; keep the order of the records, or link them"
NOBODY_SHARES = "no two {noun} share {names:list}"
OWN_VALUES = (
    "of {people:,} {noun} who share all values that are not drawn with others, {found:,} have their own values of {columns} in their own "
    "row, and {expected:,.0f} would if rows of the same kept values were exchanged; {honest} ({size})"
)
OWN_VALUES_BY_CHANCE = (
    "a record's own row says no more of its artificial values than rows of the same kept values do: {found}"
)
NO_SENSITIVE_VARIABLE = "no variable is sensitive"
UNANIMOUS_CLASSES = (
    "{name}: {people:,} of {records:,} {noun} are in classes that all have the same value, so that whoever knows the quasi-identifiers "
    "knows it; {beside}"
)
UNANIMOUS_IN_HOLDOUT = "of {controls:,} hold-out {noun} like them {share:percent .0f} have it too"
UNANIMOUS_IN_ALL = "{share:percent .0f} of all {noun} have such a value"
INFERENCE_JUDGED_ELSEWHERE = "{message}; the check of inferred values judges what is so of these people alone"
OTHERS_UNMEASURED = (
    "{message}; no measure asked about all records: the gate assumes that the others are disclosed with more than {likely:g}, since they are "
    "not known to be safer"
)
NO_RECORD_MEASURED = "no measure of this run looks at single records: {why}"
ADD_RECORD_MEASURE = "add a measure of identification"
NO_ROW_OF_RECORD = "no released row is known to be of one"
RECORD_NOT_ASKED = "{method}: no record was asked about in all releases"
WORST_RECORD = (
    "{method}: {likely_records:,} of {asked:,} records are disclosed with probability above {likely:g}; most surely record {record}{equals}, with "
    "{probability:.3g} over {datasets:count dataset}{releases}{one_dataset}{matches}{alone}{compared}"
)
WORST_UNIT = (
    "{method}: {likely_units:,} of {asked:,} {units} are found by all their records with probability above {likely:g}; most surely "
    "{unit} {number:,} (record {record}){equals}, with {probability:.3g} over {datasets:count dataset}{one_dataset}{matches}{alone}{compared}"
)
AS_SURELY = " and {number:count other}"
CHANCE_OF_ONE_DATASET = "; of one dataset it may be chance"
WRONG_MATCHES = (
    "; among people who have all that is kept in common, {own:,} {own:word is|are} found with more than {sure:g}, and {wrong:.3g} would be "
    "if their rows were dealt among them at random (p = {p:.2g}){chance}"
)
WRONG_UNIT_MATCHES = (
    "; among {units} that have all that is kept in common, {own:,} {own:word is|are} found with more than {sure:g}, and {wrong:.3g} would be "
    "if their records were dealt among them at random (p = {p:.2g}){chance}"
)
MAY_BE_CHANCE = ": it may be chance"
COMPARED_LESS = (
    ". No other record is disclosed with more than {others:number}. Who is alone counts here as {above}{compared:number}, not as "
    "{highest:number}: that is compared with the limit"
)
RELEASES_TOGETHER = " ({releases} releases together, this one and {runs} before)"
ALONE_WITH_KEPT = ". {number:,} of them {number:word is|are} alone in the columns that are released unchanged, which the check of these columns judges"
ABOVE = "above "
UNITS_COMPARED_LESS = (
    ". Of the other {units} none is found with more than {others:number}. Who is alone counts here as {above}{compared:number}, not as "
    "{highest:number}: that is compared with the limit"
)
UNITS_ALONE_WITH_KEPT = (
    ". {number:,} of them {number:word is|are} alone in the columns that are released unchanged, with all their {rows} together, which the "
    "check of these columns judges"
)
UNITS_ALONE_UNSEEN = (
    ". {number:,} of them {number:word is|are} alone in the columns that are released unchanged only with all their {rows} together; the "
    "check of these columns counts single {rows}, since no column of the release says which are of one of the {units}"
)
INFERRED_RECORD = (
    "{method}: the value of record {record} is inferred with probability {probability:.3g}{beyond}, and of {likely_records:,} of {asked:,} "
    "with more than {likely:g}; it may be so of people in general"
)
BEYOND_A_GUESS = ", beyond a guess at everybody"
INFERENCE_ADDED = "{message}. {inferred}{why}"
INFERENCE_COUNTS_LESS = (
    ": the gate counts {inferred:number} as above {likely:g}, which is to be judged and never blocks"
)
STRONGEST_NOT_TRIED = "no measure tried an intruder who knows everybody else: {remedy}"
ADD_MEASURE = "add the measure {titles:list}"
DRAW_OTHERWISE = "add the measure {titles:list}, and draw by models that it can ask; it cannot ask {made:list}"
NEWLY_CERTAIN = (
    "{method} ({measure}): of {attacked} the truth of {newly:,} has a probability of {certain:g} or more once the release is known, and had "
    "less before"
)
EARLIER_NOT_COUNTED = (
    "{message}; this release alone; with the {releases:count earlier release} of these people the intruder learns more"
)
PRIOR_KNOWS_NOTHING = (
    "what an intruder learns who knows all records but one was asked only with a prior that knows nothing, so it is unknown what the release "
    "adds; measure it with a prior of the models too"
)
GUESSED_RIGHT = "{method} ({measure}): of {attacked} a share of {after:.4g} is guessed right once the release is known, {before:.4g} before"

# The run.
MEASURED = "measured: {methods:commas}"
NOT_MEASURED = "the run has no computed measure of {what}"
DISCLOSURE_RISK = "disclosure risk"
UTILITY = "utility or data quality"
NO_THRESHOLD = "the recipe sets no threshold"
THRESHOLDS_MET = "run {run}: {thresholds}"
THRESHOLDS_UNMET = "run {run}: {thresholds} ({unmet})"
KEEP_MORE_OF_TABLE = (
    "keep more of the data (a smaller k, fewer columns made coarser, records with missing values), or set the limits of "
    "utility that the use needs: those that are not met are of utility, and say nothing of people at risk"
)
MODEL_MORE = (
    "draw what the unmet limits name by better models, or set the limits of utility that the use needs: those that are "
    "not met say nothing of people at risk"
)
THRESHOLD_OUTCOME = "{name}: {outcome}"
THRESHOLDS_SET = "the recipe sets {number:count threshold}"
FILE_NOT_COUNTED = (
    "an older version did not count the people of the file that the sample was drawn from; run the recipe again"
)
UNITS_DECLARED = "{unit} numbers {units:,} units of {records:,} records, which are sampled, held out and judged whole"
UNITS_WITHOUT_NUMBER = "; {records:,} records have no number, and each of them counts as a unit of its own"
UNITS_SUSPECTED = (
    "{name} has {units:,} values of {records:.1f} records each and may number households or people over time ({reason}); the recipe counts "
    "each record as a person"
)
UNITS_HIDDEN = (
    "{like:percent} of the records that follow each other agree in most columns, {chance:percent} of others do: several may be of one person; "
    "the recipe counts each record as a person"
)
UNITS_IN_WAVES = (
    "{like:percent} of the records agree in most columns with one near their place in the next {wave}, {chance:percent} do where these are in "
    "another order: {wave} may be a wave of the same people; the recipe counts each record as a person"
)
UNITS_NOT_IN_SAMPLE = (
    "no sign in the sample that several records are of one person; a sample rarely has two neighbours of the file"
)
UNITS_NOT_FOUND = "no sign that several records are of one person or household"
ALL_DESCRIBED = "the release describes everybody of the file"
SOME_DESCRIBED = "the release {coverage}"
NO_THRESHOLD_SET = "the recipe sets no threshold: nothing was judged by it"
KEEPS_SENSITIVE = "an anonymised table keeps its sensitive variables"
NOTHING_EXPOSED = "no sensitive variable of a synthetic release is kept"
EXPOSED = "sensitive variables would be released unchanged ({names:commas})"
NOT_REPEATABLE = "its random numbers cannot be repeated without the key of the workspace"
REPEATABLE_BY_ANYBODY = (
    "run {run} has a public key, so that whoever has the seed can repeat its random numbers and take the datasets apart"
)
RUN_AS_SEALED = "recipe, rows, verdicts and tables are what was sealed when the run ended"
POLICY_OF_RUN = "it is examined under the policy that held when the run ended"
RISK_AND_CONFIDENTIAL = "{measure}{target} is {value:.4g}, {own:.4g} in the confidential data{size}{remark}"
OF_TARGET = " of {target}"
OTHER_SIZE = "; of {records:,} records, where uniques are more of all"
OF_PEOPLE_IN_GENERAL = ", which by itself is no disclosure: a smoother or larger table says more of people in general"
CHANCE_MAY_GIVE_AS_MUCH = "; chance may give as much"
NO_RISK_OF_CONFIDENTIAL = "no risk of the run was measured of the confidential data too"
NO_DIAGNOSTIC = "no model of the run has a rule that it could break"
DIAGNOSTICS_FAILED = "diagnostics failed: {diagnostics:commas}"
DIAGNOSTIC = "{target} ({name})"
DIAGNOSTICS_PASSED = "no diagnostic of {number} failed"
ALL_QUESTIONS_ANSWERED = "all are answered: {questions:commas}"
OPEN_QUESTION = "{question}: {reason}{add}"
ADD_METHODS = "; add the measure {methods}"
QUESTION_WITHOUT_BASELINE = "{question}: measured, by nothing that says what there would be without a disclosure"
KNOWS_KEPT_COLUMNS = (
    "; the intruder knows columns that are released unchanged ({names:commas}), by which alone at most {picked:percent} of the {noun} can "
    "be found"
)
MEASURED_RISK = "{label}: {value}{interval}{baseline}{remark}{chance}"
RISK_INTERVAL = " (interval {lower} to {upper})"
WITHOUT_DISCLOSURE = ", {baseline} without a disclosure"
CHANCE_ALONE = "; chance alone may give as much, so that it {consequence}"
ONLY_WARNS = "only warns"
NO_FINDING = "is no finding"
NOT_WEIGHTED = "every record says as much to the models as any other"
WEIGHTED = "the run is weighted: {weights}. What it measured is of its own release; no number measures what the weights themselves reveal"
COARSER_HIDES = (
    "coarser values are further from the exact ones than a fitted model is, and would hide that the others are repeated"
)
NO_DISTANCE = "no distance that a right model has at 1 was computed; add the measure {methods}"
MEMORISED = "{measure} is {value:.3g}: a release that a right model draws has about 1. It repeats the confidential records more closely than a fitted model can"
NOT_MEMORISED = "{measure} is {value:.3g}: a release that a right model draws has about 1. It is no closer than a fitted model can be"
NO_PUBLIC_FIGURE = "no figure that was computed from confidential records is in the public package"
PUBLIC_FIGURES = "{figures:count public figure} of utility, {how}"
WITH_PAID_NOISE = "with noise that the privacy account pays for (epsilon {epsilon:g})"
OF_ROUNDED_COUNTS = "computed from counts rounded to multiples of {base}"
UNPROTECTED_FIGURES = (
    "{bare} of {figures:count public figure} of utility would leave without protection: {names:commas}"
)

# History.
KEEPS_SENSITIVE_COLUMNS = "an anonymised table keeps its sensitive columns"
ROLES_ELSEWHERE = "kept here, and called sensitive or an identifier in another run of the same data: {columns}"
ROLE_IN_RUN = "{name} ({role} in run {run})"
NOT_COMPARABLE = "no earlier release can be compared record by record; " + ELSEWHERE
NO_DIFFERENCE = "no release differs from an earlier one by a few records{uncertain}; " + ELSEWHERE
NO_KNOWN_DIFFERENCE = "no release is known to differ from an earlier one by a few records{uncertain}; " + ELSEWHERE
DIFFERENCE = (
    "run {run}, released before, is of the same people but for {here:,} that are only here and {there:,} that are only there{evidence}; "
) + ELSEWHERE
EVIDENCE_OF_DIFFERENCE = " ({evidence})"
POSSIBLE_DIFFERENCE = (
    "it is unknown whether run {run}, released before, is of the same people ({reason}); it has {more:,} {fewer_or_more} of them if "
    "so; "
) + ELSEWHERE
FEWER = "fewer"
MORE = "more"
CLASSES_COMPARED = "small classes of an anonymised table are compared"
NO_OTHER_TABLE = "no other anonymised table of the same records was released; " + ELSEWHERE
NO_CLASSES = "nothing says in which classes the records stand"
INTERSECTION = (
    "with {others:word run|runs} {runs}, released before, the smallest class that {who} has {smallest:count record}, where each alone has at "
    "least {least:,}; "
) + ELSEWHERE
BOTH_TABLES = "both tables leave"
ALL_TABLES = "the {tables} tables leave"
NO_ACCOUNT_AND_BUDGET = "no step keeps a privacy account, and neither recipe nor policy sets a budget"
NO_ACCOUNT = "no step keeps a privacy account"
COST_UNKNOWN = "the privacy cost of {run} is unknown, and so is that of all releases together; " + ELSEWHERE
NO_BUDGET = "{message}; neither recipe nor policy sets a budget"
SPENT = "epsilon of {releases}: {spent:g}{budget}{ledger}{shared}{repeated}"
LEDGER_OF_POPULATION = '; charged to the population "{population}"{begun}{runs}'
OTHERS_ASKED = ', of which {user} stated on {date} that other people were asked: "{reason}"'
SPENT_BEFORE = "; spent before: {runs:commas}"
RUN_SPENT = "{epsilon:g} by run {run}"
RECOGNISED_POPULATIONS = "; people of the population {names:list} are recognised in it, so it is charged to them too"
DELTA_SPENT = "delta of {releases}: {spent:g}{limit}; 1 / n is {share:.3g} for {people:,} people{ledger}"
DELTA_LIMIT = ", limit {limit:g} (policy.toml)"
DELTA_UNKNOWN = "the delta of run {runs:commas} is unknown: an earlier version deleted the run"
DELTA_WITHOUT_PROOF = (
    "no proof covers {count:word run|runs} {runs:list}, so the delta of all releases together is unknown"
)
ACCOUNT_OF_PACKAGE = "; it has the account of {packages:commas}, which Sfumato has not checked"
RELEASES_OF_THESE_PEOPLE = "{number:count release} of these people"
THIS_RELEASE = "this release"
SHARED_PEOPLE = "; some of these people are in {runs:commas} too"
RUN_SHARES = "run {run} ({people})"
NO_BUDGET_TO_COMPARE = "{message}; " + ELSEWHERE + "; neither recipe nor policy sets a budget to compare it with"
SPENT_AND_POSSIBLE = "{message}{possible}; " + ELSEWHERE
COST_OF_RUNS_UNKNOWN = "{uncertain}; the privacy cost of {runs:commas} is unknown"
POSSIBLE_COST = "{uncertain}; with the same people epsilon would be {most:g}"
UNCOMPARED_MARKS = (
    "; the people of {runs:commas} are marked by another key, as in a workspace that was adopted, so it is unknown whether "
    "they are the same: with them epsilon would be {most:g}"
)
UNSTATED_POPULATION = (
    '; no statement says whose data the project "{project}" has: with the people of {names:list} epsilon would be {most:g} '
    "(sfumato population PROJECT --name NAME)"
)
RUN_NAME = "run {run}"
NOT_RELEASED_BEFORE = "no other release is known to be of these people{uncertain}; " + ELSEWHERE
RELEASED_BEFORE = (
    "{number:word run|runs} {runs} of the same people {number:word was|were} released before; an intruder has all together{uncertain}; "
) + ELSEWHERE
RECORDS_AS_SEALED = "the records of all earlier releases are as they were sealed"
NO_TOMBSTONE = (
    "{number:word run|runs} {runs:commas} {number:word was|were} released, and deleted by an earlier version that left no tombstone: what "
    "the release spent is unknown"
)
DELETED_WITH_DATA = (
    "{number:word run|runs} {runs:commas} {number:word was|were} released and deleted with the data, and has too few variables in common "
    "with this one to show whether the people are the same"
)
TOMBSTONES_LEFT = "every deleted run that was released left a tombstone, and can be compared"
TABLES_WITHHELD = (
    "the tables are not published: small counts follow from them, or it was not found out (diagnostics of the fit); "
    "round to a larger limit, keep fewer tables, or release a rounded number of records"
)
NO_TABLES = "no step publishes tables of counts"
TABLES_GONE = "{runs:count deleted run} of these records was released before, and its tables are gone; " + ELSEWHERE
OTHER_LEVELS = (
    "run {runs:commas}, released before, joins other levels than this release does: their tables cannot be compared cell by cell; "
) + ELSEWHERE
NOISY_TABLES = "the published tables have noise: no count follows exactly from them; " + ELSEWHERE
COUNTS_FOLLOW = (
    "from {tables}{known}, {exact:,} of {looked:count small count} {looked:word follows|follow} exactly{named}{undecided}{too_large}; "
) + ELSEWHERE
TABLES_OF_RELEASE = "the tables of this release"
TABLES_OF_RELEASES = "the tables of this release and of run {runs:commas}, released before"
NUMBER_OF_RECORDS_KNOWN = " and the number of records"
COUNTS_BY_VARIABLES = " ({counts}{more})"
COUNTS_OF_VARIABLES = "{names}: {number:,}"
MORE_SETS = "; and {number:,} more sets of variables"
COUNTS_UNDECIDED = "; {number:,} are undecided"
TABLES_TOO_LARGE = (
    "; {number:count set} of connected tables {number:word has|have} too many cells to be audited as a whole"
)
NO_PRINTED_TABLES = "the recipe has no [[table]]"
TABLES_ALONE = "the release has tables and no dataset"
TABLES_NOT_PROTECTED = "the tables of the recipe are not stored with the run; run it again"
TABLES_NOT_COMPARED = (
    "the tables of run {run}, released before, cannot be compared, since it is not known whether people are the same (where other people were "
    "asked, a person states that with a reason: sfumato population PROJECT --others NAME --reason TEXT)"
)
PRINTED_TABLES_GONE = (
    "{runs:count deleted run} of these people was released before, and what tables it printed is not known"
)
DATASETS_NOT_COMPARED = "the datasets of run {run}, released before of other records of these people, show {names:list} and were not compared with the tables"
COARSE_BESIDE_TABLES = "what the datasets show of {names:list} was not compared with the tables: they are too large to be looked at together, or changed otherwise"
ROUNDED_BESIDE_TABLES = "the rounded tables that are published with the datasets were not compared with the printed ones: they are too large to be looked at together"
CONTRIBUTORS_BESIDE_TABLES = "what contributors, who know their own part of each cell, work out from the tables with what stands beside them was not examined: there are too many cells"
ROUNDED_GONE = "run {run}, released before, was deleted, and whether it published rounded tables is not known"
ROUNDED_OF_OTHERS = "the rounded tables of run {run}, released before of other records of these people, were not compared with the printed ones"
TABLES_NOT_BESIDE = (
    "{tables:list} {number:word was|were} not compared with the rounded tables and the coarser columns of the datasets"
)
COARSE_COLUMNS = "the groups of {names:list} in datasets"
ROUNDED_TABLES = "rounded tables"
ROUNDED_COUNTS_FOLLOW = (
    "; {number:count small count} of rounded tables {number:word follows|follow} exactly from them ({names:list})"
)
ROUNDED_COUNTS_UNDECIDED = "; of {number:count small count} of rounded tables it was not found out"
MEASURES_ADD_UP = (
    "what the tables add up is related record by record ({names:list}), and what follows from one for the others was not "
    "examined"
)
GROUPS_NOT_COMPARED = (
    "the tables {first} and {second} are of different records and have different groups of the same people, and not all "
    "of the few by whom sums of their cells differ were examined"
)
POPULATIONS_NOT_COMPARED = (
    "the tables are of {number} different sets of records, too many to examine all of the few by whom several of them "
    "together differ"
)
TABLE_OF_RELEASE = '"{name}" of {release}'
PRINTED_TABLES = "{tables:count table} with {cells:count different cell}"
TABLES_BESIDE = ", together with {names:list}"
DATASETS_OF_RELEASE = "the datasets of this release"
CELLS_FOLLOW = (
    "from {tables}, {failing:,} of {unsafe:count unsafe cell} {failing:word is|are} not protected{readers}{named}{rounded}{undecided}{unexamined}{unclear}{lost}; "
    "groups all of whose people lie in one cell are not examined; "
) + ELSEWHERE
FOR_READERS = " ({counts:commas})"
FOR_OUTSIDE = "exact for anybody"
FOR_ZEROS_SHOWN = "exact for whoever sees that zeros are printed"
FOR_CONTRIBUTOR = "exact for a contributor, who knows the own part of each cell"
SHORT_OF_LEVEL = "known too closely"
NAMED_CELLS = ": {names}{more}"
MORE_CELLS = "; and {number:,} more"
CELLS_UNDECIDED = "; of {number:count cell} it was not found out"
CONTRIBUTORS_UNEXAMINED = (
    "; what contributors, who know their own part of each cell, work out was not examined, since there are too many "
    "cells"
)
CELLS_LOST = (
    "; {number:count unsafe cell} {number:word was|were} printed by earlier releases or {number:word follows|follow} from these alone, which "
    "nothing here changes"
)
IN_CELLS_THAT_FOLLOW = "are in hidden cells that readers of the tables work out"
LEARNED_FROM_CELLS = "A reader learns how many they are, or the sum of their values, though the tables hide it."
NO_EARLIER_TABLES = "no earlier release of these people printed tables"
CHANGES_FOLLOW = (
    "between {runs:list} and this release, {follows:,} of {looked:count change} that few people make {follows:word follows|follow}{named}; "
) + ELSEWHERE
CHANGES_UNCLEAR = "{message}; {unclear:commas}"
NAMED_CHANGE = "{cell} ({units:count person} since {release})"
CHANGED_BETWEEN_RELEASES = "came, left or moved between two releases, and the difference of their tables shows it"
LEARNED_FROM_CHANGES = (
    "A reader learns what the few people who changed have in common, from tables that are safe one by one."
)
TABLE_RULES_KEPT = "the rules for tables are at least those of the policy"
TABLE_RULES_LOOSE = "the policy wants {rules:list}"
LOOSE_THRESHOLD = "a threshold of at least {least} (the recipe has {own})"
LOOSE_DOMINANCE = "the rule of dominance ({n}, {k:g})"
LOOSE_P_PERCENT = "p_percent of at least {p:g}"
LOOSE_PRIOR_POSTERIOR = "prior_posterior of at least ({p:g}, {q:g})"

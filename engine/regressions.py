"""Regressions that an analyst of a release would run: a response and predictor terms in the closed grammar.

model := [("linear" | "logit") ":"] response "~" term ("+" term)*

``response`` is a column or a function of a numeric column, ``term`` as in ``sfumato.engine.terms``: nothing is ever
evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, NotComputable
from .microdata import Microdata
from .schema import Kind, Schema
from .statistics.collinearity import independent_columns
from .statistics.estimation import IntervalEstimate, linear_coefficients, logistic_coefficients
from .terms import Design, Term, check_domain, parse_term

__all__ = ["Answer", "Model"]

Floats = NDArray[np.float64]
Answer = IntervalEstimate | NotComputable
"""An estimate, or why it cannot be computed."""

_WRITTEN = re.compile(r"\s*(?:(linear|logit)\s*:)?([^~]+)~([^~]+)")
_FITS = {"linear": linear_coefficients, "logit": logistic_coefficients}
_RESPONSES = {"linear": (Kind.COUNT, Kind.CONTINUOUS), "logit": (Kind.BINARY,)}


@dataclass(frozen=True, slots=True)
class Model:
    """A linear or logistic regression of a response on predictor terms, each as the recipe writes it."""

    response: str
    terms: tuple[str, ...]
    family: Literal["linear", "logit"] = "linear"

    @classmethod
    def parse(cls, value: object) -> Model:
        """The model that a recipe writes, such as ``log(price) ~ room_type + days`` or ``logit: smoker ~ age``.

        Raises:
            ValueError: when it is not of this form.
        """
        if isinstance(value, Model):
            return value
        found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(
                f'{value!r} is not a model: write "log(price) ~ room_type + days" or "logit: smoker ~ age"'
            )
        response, terms = found[2].strip(), tuple(term.strip() for term in found[3].split("+"))
        if not response or not all(terms):
            raise ValueError(f"{value!r} lacks a response or a term beside ~ or +")
        if twice := [term for position, term in enumerate(terms) if term in terms[:position]]:
            raise ValueError(f'{value!r} has the term "{twice[0]}" twice')
        return cls(response, terms, "logit" if found[1] == "logit" else "linear")

    @property
    def written(self) -> str:
        """The form that a recipe carries: ``Model.parse(model.written) == model``."""
        return ("logit: " if self.family == "logit" else "") + f"{self.response} ~ {' + '.join(self.terms)}"

    def response_column(self, schema: Schema, place: str) -> str:
        """The column whose values, or a function of them, are the response. Raises BadInput."""
        return self._response(schema, place).columns[0]

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """The columns that the regression reads, each once."""
        terms = (self._response(schema, ""), *self._predictors(schema, ""))
        return tuple(dict.fromkeys(name for term in terms for name in term.columns))

    def check(self, schema: Schema, place: str) -> None:
        """BadInput when a column is not there, or is of a kind that the regression cannot use."""
        column, allowed = self.response_column(schema, place), _RESPONSES[self.family]
        if (kind := schema[column].kind) not in allowed:
            other = f'; write "logit: {self.written}"' if kind is Kind.BINARY else ""
            raise BadInput(place, f'the response "{column}" is {kind}; this needs {" or ".join(allowed)}{other}')
        for term in self._predictors(schema, place):
            if column in term.columns:
                raise BadInput(place, f'"{column}" is the response; leave it out of the terms')

    def check_domains(self, data: Microdata, place: str) -> None:
        """BadInput when a function of a column is undefined for some of its values."""
        for term in (self._response(data.schema, place), *self._predictors(data.schema, place)):
            for factor in term.factors:
                check_domain(factor, data.numbers(factor.column), place)

    def estimates(self, confidential: Microdata, data: Microdata, confidence: float = 0.95) -> dict[str, Answer]:
        """The coefficients on ``data`` by name; the confidential data fix the levels, the first is the reference.

        A coefficient whose column the ones before it determine in ``data`` has no estimate, the others have theirs.
        Records that lack a value of one of the columns are left out.
        """
        design = Design.of(self._predictors(confidential.schema, ""), confidential)
        try:
            found = self._fitted(design, data, confidence)
        except NotComputable as error:
            return dict.fromkeys(design.names, error)
        except BadInput as error:
            return dict.fromkeys(design.names, NotComputable(error.message))
        return dict(zip(design.names, found, strict=True))

    def _fitted(self, design: Design, data: Microdata, confidence: float) -> Sequence[Answer]:
        whole = ~np.any([data.missing(name) for name in self.columns(design.schema)], axis=0)
        if not whole.any():
            raise NotComputable("every record lacks a value of one of the variables")
        x = design.matrix(data)[whole]
        kept = independent_columns(x)
        found = iter(_FITS[self.family](x[:, kept], self._values(data)[whole], confidence))
        aliased = NotComputable("aliased: the terms before it determine it here, or no record has the level")
        return [next(found) if independent else aliased for independent in kept]

    def _values(self, data: Microdata) -> Floats:
        """The response (n,)."""
        response = self._response(data.schema, "")
        if self.family == "logit":
            return data.numbers(response.columns[0])
        return Design((response,), data.schema, ()).matrix(data)[:, 1]

    def _response(self, schema: Schema, place: str) -> Term:
        response = parse_term(self.response, schema, place)
        if len(response.factors) > 1:
            raise BadInput(place, f'the response "{self.response}" must be a column, or a function of one')
        return response

    def _predictors(self, schema: Schema, place: str) -> list[Term]:
        return [parse_term(text, schema, place) for text in self.terms]

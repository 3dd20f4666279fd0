"""The base of every contract: immutable, strict about unknown fields, JSON both ways."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Contract(BaseModel):
    """A value that passes between programs. Immutable; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> bytes:
        """Serialize to compact JSON."""
        return self.model_dump_json().encode()

    @classmethod
    def from_json(cls, raw: bytes | str) -> Self:
        """Parse JSON.

        Raises:
            pydantic.ValidationError: if ``raw`` is not JSON of this model.
        """
        return cls.model_validate_json(raw)

    @classmethod
    def read(cls, raw: bytes | str) -> Self:
        """Parse JSON of another program, which may be newer: what is not known here is left out.

        Raises:
            pydantic.ValidationError: if ``raw`` is not JSON of this model.
        """
        return cls.model_validate_json(raw, extra="ignore")


class Manifest(Contract):
    """A part of the ParcaeJob object: camelCase outside, snake_case in Python."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )

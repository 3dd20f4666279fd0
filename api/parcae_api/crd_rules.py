"""What the API server checks of a ParcaeJob beyond types and bounds: rules in CEL.

The models check the same in Python, with the same sentences: local runs know no API server, and the
operator trusts none. Tests on a real API server hold the two together.

The server estimates what a rule may cost at worst, and refuses a dear one. So sentences are made by
``format``: to put texts together with ``+`` counts as if each number had megabytes of digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parcae_api.job import CONFIG_MAP, ENTRYPOINT, MAX_NAME, NAME

_ENDS = "with a letter or digit at both ends"


@dataclass(frozen=True)
class Rule:
    """One rule on the whole object, or on an object in it."""

    holds: str
    """CEL: true where all is well. ``oldSelf`` makes it a rule about changes."""
    refusal: str
    """The sentence for people, after the field's path; %d and %s stand for ``values``."""
    meaning: str
    """The rule in words, for the reference."""
    values: tuple[str, ...] = ()
    """CEL: what the sentence shows."""
    at: str | None = None
    """Path from that object to the field at fault."""
    reason: str = "FieldValueInvalid"

    def to_schema(self) -> dict[str, str]:
        """The entry of ``x-kubernetes-validations``."""
        entry = {"rule": self.holds, "reason": self.reason}
        if self.values:
            entry["messageExpression"] = f'"{self.refusal}".format([{", ".join(self.values)}])'
        else:
            entry["message"] = self.refusal
        return entry if self.at is None else {**entry, "fieldPath": self.at}


def _ordered(low: str, high: str) -> Rule:
    return Rule(
        holds=f"self.{low} <= self.{high}",
        refusal=f"{low} (%d) must not be above {high} (%d); lower {low} or raise {high}",
        values=(f"self.{low}", f"self.{high}"),
        meaning=f"`{low}` is not above `{high}`",
        at=f".{low}",
    )


def _fixed(name: str, why: str, *, optional: bool = False) -> Rule:
    """A field that keeps its first value; ``optional`` where it may be missing."""
    same = f"self.{name} == oldSelf.{name}"
    if optional:
        there = f"has(self.{name})"
        same = f"{there} == has(oldSelf.{name}) && (!{there} || {same})"
    return Rule(
        holds=same,
        refusal=f"cannot be changed: {why}; create another job instead",
        meaning=f"`{name}` cannot be changed",
        at=f".{name}",
        reason="FieldValueForbidden",
    )


def _matches(value: str, pattern: str) -> str:
    """All of the value has that form; in a raw string, where no backslash needs another."""
    return f'{value}.matches(r"^{pattern}$")'


_ANOTHER = "it would no longer be one and the same training"

RULES: Mapping[str, tuple[Rule, ...]] = {
    "": (
        Rule(
            holds=f"size(self.metadata.name) <= {MAX_NAME}",
            refusal=(
                "metadata.name has %d characters, but pods are named after the job; "
                f"use at most {MAX_NAME}"
            ),
            values=("size(self.metadata.name)",),
            meaning=f"`metadata.name` has at most {MAX_NAME} characters: pods are named after it",
        ),
        Rule(
            holds=_matches("self.metadata.name", NAME),
            refusal=(
                "metadata.name '%s' cannot name pods; use lower-case letters, digits and '-', "
                f"{_ENDS}"
            ),
            values=("self.metadata.name",),
            meaning="`metadata.name` holds lower-case letters, digits and `-` only",
        ),
    ),
    "spec": (
        Rule(
            holds="self.pipeline.minStages <= self.instances.max",
            refusal=(
                "pipeline.minStages (%d) needs as many instances, but instances.max is %d; "
                "raise max or lower minStages"
            ),
            values=("self.pipeline.minStages", "self.instances.max"),
            meaning="`pipeline.minStages` is not above `instances.max`",
            at=".pipeline.minStages",
        ),
        _fixed("entrypoint", _ANOTHER),
        _fixed("reduction", _ANOTHER),
        _fixed("seed", _ANOTHER),
        _fixed("threadsPerWorker", _ANOTHER),
    ),
    "spec.instances": (_ordered("min", "max"),),
    "spec.pipeline": (_ordered("minStages", "maxStages"),),
    "spec.entrypoint": (
        Rule(
            holds=_matches("self.__function__", ENTRYPOINT),  # a word that CEL keeps to itself
            refusal="'%s' must have the form module:function, like train:gpt",
            values=("self.__function__",),
            meaning="`function` has the form `module:function`",
            at=".function",
        ),
        Rule(
            holds="!has(self.configMap) || " + _matches("self.configMap", CONFIG_MAP),
            refusal=(
                "'%s' cannot be the name of a ConfigMap; use lower-case letters, digits, '-' and "
                f"'.', {_ENDS}"
            ),
            values=("self.configMap",),
            meaning="`configMap` can be the name of a ConfigMap",
            at=".configMap",
        ),
    ),
    "spec.checkpoint": (
        _fixed("path", "saved state would be looked for in another folder", optional=True),
    ),
}
"""By the path of the object that they look at; the empty path is the whole."""

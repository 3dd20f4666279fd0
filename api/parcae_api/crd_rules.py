"""What the API server checks of a ParcaeJob beyond types and bounds: rules in CEL.

The models check the same in Python, with the same sentences: local runs know no API server, and the
operator trusts none. Tests on a real API server hold the two together.
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
    """CEL: the sentence for people, after the field's path."""
    meaning: str
    """The rule in words, for the reference."""
    at: str | None = None
    """Path from that object to the field at fault."""
    reason: str = "FieldValueInvalid"

    def to_schema(self) -> dict[str, str]:
        """The entry of ``x-kubernetes-validations``."""
        entry = {"rule": self.holds, "messageExpression": self.refusal, "reason": self.reason}
        return entry if self.at is None else {**entry, "fieldPath": self.at}


def _ordered(low: str, high: str) -> Rule:
    return Rule(
        holds=f"self.{low} <= self.{high}",
        refusal=(
            f'"{low} (" + string(self.{low}) + ") must not be above {high} (" '
            f'+ string(self.{high}) + "); lower {low} or raise {high}"'
        ),
        meaning=f"`{low}` is not above `{high}`",
        at=f".{low}",
    )


def _fixed(name: str, why: str, *, unset: bool = False) -> Rule:
    """A field that keeps its first value; ``unset`` where it may be missing."""
    same = f"self.{name} == oldSelf.{name}"
    if unset:
        there = f"has(self.{name})"
        same = f"{there} == has(oldSelf.{name}) && (!{there} || {same})"
    return Rule(
        holds=same,
        refusal=f'"cannot be changed: {why}; create another job instead"',
        meaning=f"`{name}` cannot be changed",
        at=f".{name}",
        reason="FieldValueForbidden",
    )


def _matches(value: str, pattern: str) -> str:
    """All of the value has that form; in a raw string, where no backslash needs another."""
    return f'{value}.matches(r"^{pattern}$")'


_CHANGES_BITS = "it would no longer be one and the same training"

RULES: Mapping[str, tuple[Rule, ...]] = {
    "": (
        Rule(
            holds=f"size(self.metadata.name) <= {MAX_NAME}",
            refusal=(
                '"metadata.name has " + string(size(self.metadata.name)) + " characters, but pods '
                f'are named after the job; use at most {MAX_NAME}"'
            ),
            meaning=f"`metadata.name` has at most {MAX_NAME} characters: pods are named after it",
        ),
        Rule(
            holds=_matches("self.metadata.name", NAME),
            refusal=(
                """"metadata.name '" + self.metadata.name + "' cannot name pods; use lower-case """
                f"""letters, digits and '-', {_ENDS}\""""
            ),
            meaning="`metadata.name` holds lower-case letters, digits and `-` only",
        ),
    ),
    "spec": (
        Rule(
            holds="self.pipeline.minStages <= self.instances.max",
            refusal=(
                '"pipeline.minStages (" + string(self.pipeline.minStages) + ") needs as many '
                'instances, but instances.max is " + string(self.instances.max) + "; raise max or '
                'lower minStages"'
            ),
            meaning="`pipeline.minStages` is not above `instances.max`",
            at=".pipeline.minStages",
        ),
        _fixed("entrypoint", _CHANGES_BITS),
        _fixed("reduction", _CHANGES_BITS),
        _fixed("seed", _CHANGES_BITS),
        _fixed("threadsPerWorker", _CHANGES_BITS),
    ),
    "spec.instances": (_ordered("min", "max"),),
    "spec.pipeline": (_ordered("minStages", "maxStages"),),
    "spec.entrypoint": (
        Rule(
            holds=_matches("self.function", ENTRYPOINT),
            refusal=(
                """"'" + self.function + "' must have the form module:function, like """
                'train:gpt"'
            ),
            meaning="`function` has the form `module:function`",
            at=".function",
        ),
        Rule(
            holds="!has(self.configMap) || " + _matches("self.configMap", CONFIG_MAP),
            refusal=(
                """"'" + self.configMap + "' cannot be the name of a ConfigMap; use lower-case """
                f"""letters, digits, '-' and '.', {_ENDS}\""""
            ),
            meaning="`configMap` can be the name of a ConfigMap",
            at=".configMap",
        ),
    ),
    "spec.checkpoint": (
        _fixed("path", "saved state would be looked for in another folder", unset=True),
    ),
}
"""By the path of the object that they look at; the empty path is the whole."""

"""The fields of a ParcaeJob as tables for people, from the schema that Kubernetes gets.

They fill the part of ``docs/parcaejob.md`` between two marks; what stands around it is written by
hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from parcae_api.crd import Schema, job_schema
from parcae_api.crd_rules import RULES

REFERENCE_FILE = Path("docs") / "parcaejob.md"
BEGIN = "<!-- Written by `make crds` from the models in api/parcae_api; edit those. -->"
END = "<!-- End of what `make crds` writes. -->"
_HARDLY_A_BOUND = 2**31 - 1


def with_reference(page: str) -> str:
    """The page with the tables as they are now.

    Raises:
        ValueError: the page lacks one of the marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{REFERENCE_FILE}: must hold the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def reference() -> str:
    """A section for every object, in the order of the schema."""
    root = job_schema()
    sections = [f"## The object\n\n{root['description']}\n{_rules('')}"]
    for name in ("spec", "status"):
        sections += _sections(root["properties"][name], name)
    return "\n".join(sections)


def _sections(schema: Schema, path: str) -> Iterator[str]:
    """The object's own section, then those of the objects in it."""
    if "properties" not in schema or path == "spec.template":
        return
    title = "#" * (path.count(".") + 2) + f" {path}\n\n{schema['description']}\n"
    yield f"{title}\n{_table(schema)}{_rules(path)}"
    for name, field in schema["properties"].items():
        if field["type"] == "array":
            yield from _sections(field["items"], f"{path}.{name}[]")
        else:
            yield from _sections(field, f"{path}.{name}")


def _table(schema: Schema) -> str:
    required = schema.get("required", ())
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        default = "required" if name in required else _default(field)
        rows.append(f"| `{name}` | {_type(field)} | {default} | {field['description']} |")
    return "\n".join(rows) + "\n"


def _rules(path: str) -> str:
    meanings = "".join(f"- {rule.meaning}\n" for rule in RULES.get(path, ()))
    return f"\nChecked when it is applied:\n\n{meanings}" if meanings else ""


def _default(field: Schema) -> str:
    if "default" not in field:
        return ""
    if any("default" in part for part in field.get("properties", {}).values()):
        return "see below"
    return f"`{json.dumps(field['default'])}`"


def _type(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    match field["type"]:
        case "integer" | "number":
            return _between(field["type"], field.get("minimum"), field.get("maximum"))
        case "string":
            return f"string, up to {field['maxLength']}"
        case "array":
            return f"list, up to {field['maxItems']}"
        case "object" if "maxProperties" in field:
            return f"map, up to {field['maxProperties']}"
        case kind:
            return str(kind)


def _between(kind: str, low: float | None, high: float | None) -> str:
    if low is None:
        return kind
    return (
        f"{kind}, {low} to {high}" if high and high < _HARDLY_A_BOUND else f"{kind}, {low} or more"
    )

"""The generated schema by the rules of structural schemas, and by ours. No API server here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from parcae_api.crd import custom_resource_definition, job_schema
from parcae_api.crd_rules import RULES
from parcae_api.job import JobSpec, ParcaeJob
from parcae_api.job_status import Condition, ConditionType, JobStatus

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = sorted((ROOT / "examples").rglob("*.yaml"))
SCHEMA = job_schema()
PRESERVED = "x-kubernetes-preserve-unknown-fields"
ALLOWED = {
    "description",
    "type",
    "default",
    "format",
    "nullable",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "items",
    "properties",
    "additionalProperties",
    "required",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
}


def _nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from _nodes(part, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from _nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from _nodes(schema["additionalProperties"], f"{path}{{}}")


NODES = dict(_nodes(SCHEMA))


@pytest.mark.parametrize("path", NODES)
def test_structural(path: str) -> None:
    node = NODES[path]
    assert set(node) <= ALLOWED
    assert node.get("type") in {"object", "array", "string", "integer", "number", "boolean"} or (
        node == {PRESERVED: True, "nullable": True}
    )
    assert not {"properties", "additionalProperties"} <= set(node)
    assert set(node.get("required", ())) <= set(node.get("properties", ()))
    if "default" in node:
        assert jsonschema_rs.is_valid(node, node["default"])


@pytest.mark.parametrize("path", NODES)
def test_bounded(path: str) -> None:
    # The API server estimates what a rule costs from these bounds, and refuses a dear one.
    node = NODES[path]
    bound = {"string": "maxLength", "array": "maxItems"}.get(node.get("type", ""))
    if node.get("type") == "object" and "properties" not in node and PRESERVED not in node:
        bound = "maxProperties"
    assert bound is None or bound in node or "enum" in node
    if node.get("type") == "integer":
        assert "minimum" in node


def test_open_in_two_places_only() -> None:
    places = {path for path, node in NODES.items() if PRESERVED in node}
    assert {p for p in places if not p.startswith("spec.template")} == {"spec.entrypoint.args{}"}


@pytest.mark.parametrize("path", [p for p in NODES if p and not p.endswith("}")])
def test_described(path: str) -> None:
    if path.endswith("[]") and PRESERVED in NODES[path]:
        return
    text = NODES[path]["description"]
    assert text[0].isupper() or text[0] == "`"
    assert text.endswith(".")
    assert "  " not in text
    assert "``" not in text
    assert "_stages" not in text


def test_every_field_of_the_models_is_there() -> None:
    for model, name in ((JobSpec, "spec"), (JobStatus, "status")):
        aliases = {field.alias for field in model.model_fields.values()}
        assert set(SCHEMA["properties"][name]["properties"]) == aliases


def test_rules_look_at_objects_that_exist() -> None:
    for path, rules in RULES.items():
        node = NODES[path]
        assert node["x-kubernetes-validations"] == [rule.to_schema() for rule in rules]
        for rule in rules:
            if rule.at is not None:
                assert f"{path}{rule.at}" in NODES


def test_conditions_are_a_map_by_type() -> None:
    node = NODES["status.conditions"]
    assert node["x-kubernetes-list-type"] == "map"
    assert node["x-kubernetes-list-map-keys"] == ["type"]
    assert node["maxItems"] >= len(ConditionType)


def test_a_status_has_no_defaults() -> None:
    # They would say something before the operator has said anything.
    assert not [p for p, node in NODES.items() if p.startswith("status") and "default" in node]


def test_names_and_columns() -> None:
    crd = custom_resource_definition()
    assert crd["metadata"]["name"] == "parcaejobs.parcae.dev"
    names = crd["spec"]["names"]
    assert (names["kind"], names["plural"]) == ("ParcaeJob", "parcaejobs")
    assert names["shortNames"] == ["pj"]
    assert names["categories"] == ["all", "parcae"]
    (version,) = crd["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    shown = [c["name"] for c in columns if not c.get("priority")]
    assert shown == ["Phase", "Config", "Step", "Instances", "Liveput", "Preemptions", "Age"]
    assert [c["name"] for c in columns if c.get("priority")] == [
        "Throughput",
        "Revision",
        "Message",
    ]
    for column in columns:
        path = column["jsonPath"].lstrip(".")
        if path.startswith("status") and "[" not in path:
            assert NODES[path]["type"] == column["type"]


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as strict validation reads it: unknown fields are errors."""
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: _closed(part) for name, part in made["properties"].items()}
        if PRESERVED not in made:
            made["additionalProperties"] = False
    if "items" in made:
        made["items"] = _closed(made["items"])
    return made


def _validator() -> jsonschema_rs.Validator:
    closed = _closed(SCHEMA)
    closed["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {}}
    return jsonschema_rs.validator_for(closed)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_examples_fit(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    _validator().validate(document)
    ParcaeJob.model_validate(document)


def test_what_the_models_write_fits() -> None:
    status = JobStatus(
        conditions=(Condition(type=ConditionType.READY, status="True", reason="Training"),)
    )
    job = ParcaeJob.model_validate(yaml.safe_load(MANIFESTS[0].read_text()))
    written = job.model_copy(update={"status": status}).model_dump_json(
        by_alias=True, exclude_none=True
    )
    _validator().validate(json.loads(written))


@pytest.mark.parametrize("field", ["spec.instanzes", "status.extra", "spec.pipeline.stages"])
def test_unknown_fields_do_not_fit(field: str) -> None:
    document = yaml.safe_load(MANIFESTS[0].read_text())
    *above, last = field.split(".")
    place = document
    for part in above:
        place = place.setdefault(part, {})
    place[last] = 1
    assert not _validator().is_valid(document)

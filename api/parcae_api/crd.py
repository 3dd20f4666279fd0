"""The CustomResourceDefinition of ParcaeJob, generated from its models.

``python -m parcae_api.crd``, started in the repository's root, writes it to ``crds/`` and the
reference of its fields to ``docs/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from parcae_api.crd_rules import RULES
from parcae_api.job import API_VERSION, KIND, ParcaeJob

PLURAL = "parcaejobs"
GROUP, _, VERSION = API_VERSION.partition("/")
CRD_FILE = Path("crds") / f"{GROUP}_{PLURAL}.yaml"

Schema = dict[str, Any]

_OPEN: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_ANYTHING: Schema = {**_OPEN, "nullable": True}
"""Without ``nullable`` the server drops arguments that are null, and a function takes others."""
_MAX_INT32 = 2**31 - 1
_OBJECT = frozenset({"properties", "required", "additionalProperties", "maxProperties"})
_KEPT = ("enum", "minimum", "maximum", "minLength", "maxLength", "maxItems", "maxProperties")
_DROPPED = frozenset({"title", "default", "description", "type", "items", "anyOf", "const"})

_TEMPLATE: Schema = {
    "type": "object",
    **_OPEN,
    "properties": {
        "spec": {
            "description": "Specification of the pods, as in a Deployment's template.",
            "type": "object",
            **_OPEN,
            "required": ["containers"],
            "properties": {
                "containers": {
                    "description": "Containers of a pod; the first one trains.",
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 64,
                    "items": {"type": "object", **_OPEN},
                }
            },
        }
    },
}
"""A pod template is the API server's to check when a pod is made of it. Only what no pod can do
without is checked here."""

_COLUMNS = (
    ("Phase", "string", ".status.phase", 0, "The job in one word."),
    ("Config", "string", ".status.configuration", 0, "Replicas by pipeline stages."),
    ("Step", "integer", ".status.step", 0, "Committed steps."),
    ("Instances", "integer", ".status.instances", 0, "Instances that are ready, and to stay."),
    (
        "Liveput",
        "number",
        ".status.liveputSamplesPerSecond",
        0,
        "Committed samples per second that are expected under the forecast.",
    ),
    ("Preemptions", "integer", ".status.preemptions", 0, "Instances lost so far."),
    ("Age", "date", ".metadata.creationTimestamp", 0, "Since the job was created."),
    (
        "Throughput",
        "number",
        ".status.throughputSamplesPerSecond",
        1,
        "Committed samples per second, as measured.",
    ),
    ("Revision", "integer", ".status.revision", 1, "Number of the current plan."),
    (
        "Message",
        "string",
        '.status.conditions[?(@.type=="Progressing")].message',
        1,
        "What the job does or waits for.",
    ),
)


def custom_resource_definition() -> dict[str, Any]:
    """The whole object, as ``kubectl apply`` takes it."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["pj"],
                "categories": ["all", "parcae"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": ".status.phase"}],
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": job_schema()},
                }
            ],
        },
    }


def job_schema() -> Schema:
    """The structural schema of the object. What Kubernetes itself knows of it is left to it."""
    root = ParcaeJob.model_json_schema()
    definitions = root.pop("$defs")
    parts = {name: root["properties"][name] for name in ("spec", "status")}
    only = {**root, "properties": parts, "required": ["spec"]}
    return _structural(only, definitions, ())


def crd_yaml() -> str:
    """The text of ``crds/parcae.dev_parcaejobs.yaml``."""
    body = yaml.safe_dump(
        custom_resource_definition(), sort_keys=False, width=100, allow_unicode=True
    )
    return f"# Written by `make crds` from the models in api/parcae_api; edit those.\n{body}"


def _column(name: str, type_: str, path: str, priority: int, description: str) -> dict[str, Any]:
    column = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return {**column, "priority": priority} if priority else column


def _structural(node: Schema, definitions: Mapping[str, Schema], path: tuple[str, ...]) -> Schema:
    """One node of pydantic's JSON schema in the subset that Kubernetes takes.

    ``path`` leads to it; items and values of a list or map have ``*`` for a name.
    """
    node = _resolved(node, definitions)
    name = ".".join(path)
    made: Schema = {}
    if "description" in node:
        made["description"] = _one_line(node["description"])
    if path[:1] != ("status",) and node.get("default") is not None:
        # Whole, since rules hold for it too. A status is what the operator said, nothing more.
        made["default"] = _without_none(node["default"])
    if name == "spec.template":
        return {**made, **_TEMPLATE}
    if "type" not in node:
        return {**made, **_ANYTHING}
    made["type"] = node["type"]
    _refuse_others(node, name)
    if node["type"] in ("integer", "number"):
        made["format"] = _format(node)
    if "const" in node:
        made["enum"] = [node["const"]]
    made |= {key: node[key] for key in _KEPT if key in node}
    match node["type"]:
        case "array":
            made["items"] = _structural(node["items"], definitions, (*path, "*"))
        case "object" if "properties" in node:
            made |= {"required": node["required"]} if "required" in node else {}
            made["properties"] = {
                key: _structural(value, definitions, (*path, key))
                for key, value in node["properties"].items()
            }
        case "object":
            values = _structural(node["additionalProperties"], definitions, (*path, "*"))
            made["additionalProperties"] = values
    if name == "status.conditions":
        made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    if name in RULES:
        made["x-kubernetes-validations"] = [rule.to_schema() for rule in RULES[name]]
    return made


def _resolved(node: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The node without references and without the choice of null: an optional field is left out."""
    if "$ref" in node:
        target = definitions[node["$ref"].removeprefix("#/$defs/")]
        return _resolved({**target, **{k: v for k, v in node.items() if k != "$ref"}}, definitions)
    if "anyOf" in node:
        (one,) = (choice for choice in node["anyOf"] if choice.get("type") != "null")
        return _resolved({**one, **{k: v for k, v in node.items() if k != "anyOf"}}, definitions)
    return node


def _refuse_others(node: Schema, name: str) -> None:
    unknown = set(node) - set(_KEPT) - _OBJECT - _DROPPED
    if unknown:
        raise ValueError(f"{name}: no structural schema says {', '.join(sorted(unknown))}")


def _format(node: Schema) -> str:
    if node["type"] == "number":
        return "double"
    return "int32" if node.get("maximum", _MAX_INT32 + 1) <= _MAX_INT32 else "int64"


def _without_none(value: Any) -> Any:
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _one_line(docstring: str) -> str:
    return " ".join(docstring.split()).replace("``", "`")


def main() -> None:
    """Write the files, and say which."""
    from parcae_api.crd_reference import REFERENCE_FILE, with_reference

    CRD_FILE.parent.mkdir(exist_ok=True)
    CRD_FILE.write_text(crd_yaml(), encoding="utf-8")
    page = REFERENCE_FILE.read_text(encoding="utf-8")
    REFERENCE_FILE.write_text(with_reference(page), encoding="utf-8")
    print(CRD_FILE, REFERENCE_FILE, sep="\n")


if __name__ == "__main__":
    main()

"""What needs no Helm: the CRD's copy, the spot labels, the lists of values and their schema."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from chart_site import CHART, ROOT

from parcae_api.crd import CRD_FILE
from parcae_operator.signals.identity import SPOT
from parcae_operator.signals.model import Place


def test_the_chart_has_the_crd_as_it_is() -> None:
    assert (CHART / "crd" / CRD_FILE.name).read_text() == (ROOT / CRD_FILE).read_text(), (
        "run `make crds`"
    )


def test_pods_avoid_every_label_by_which_the_operator_knows_spot_nodes() -> None:
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()
    block = re.search(r'define "parcae.notSpot" -}}\n(.*?){{- end', helpers, re.DOTALL)
    assert block is not None
    avoided = {each["key"]: each for each in yaml.safe_load(block[1])}
    known = {each.key: each for each in SPOT if each.place is Place.LABEL}
    assert avoided.keys() == known.keys()
    for key, identity in known.items():
        values = {value.lower() for value in avoided[key].get("values", [])}
        assert values == set(identity.values), key


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{chart["appVersion"]}"' in project


def test_the_schema_knows_the_values_and_no_others() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    _same(schema, values, schema["$defs"], "")


def _same(schema: dict[str, Any], values: Any, definitions: dict[str, Any], where: str) -> None:
    if reference := schema.get("$ref"):
        schema = definitions[reference.rpartition("/")[2]]
    properties = schema.get("properties")
    if properties is None or not isinstance(values, dict):
        return
    assert schema["additionalProperties"] is False, where
    unknown = values.keys() - properties.keys()
    assert not unknown, f"{where}: {unknown}"
    if not where:
        assert properties.keys() - values.keys() == {"global"}
    for name, value in values.items():
        _same(properties[name], value, definitions, f"{where}.{name}")


def test_every_value_is_used() -> None:
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*.*"))
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for name, value in values.items():
        inner = [f"{name}.{key}" for key in value] if isinstance(value, dict) and value else [name]
        for path in inner:
            if path != "image.tag":
                assert re.search(rf"\.Values\.{re.escape(path)}\b", templates), path

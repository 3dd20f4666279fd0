"""Prometheus' text format, version 0.0.4. Pure.

The client library's own writer checks each label's name anew: many jobs would take it too long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def write_text(registry: CollectorRegistry) -> bytes:
    """All that a registry tells."""
    return "".join(line for family in registry.collect() for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    name = family.name + ("_total" if family.type == "counter" else "")
    yield f"# HELP {name} {_on_one_line(family.documentation)}\n"
    yield f"# TYPE {name} {family.type}\n"
    for sample in family.samples:
        if sample.name.endswith("_created"):
            continue  # when a series began: of OpenMetrics, and nobody's question
        labels = ",".join([f'{key}="{_escaped(value)}"' for key, value in sample.labels.items()])
        shown = f"{{{labels}}}" if labels else ""
        yield f"{sample.name}{shown} {_number(sample.value)}\n"


@lru_cache(maxsize=4096)
def _escaped(value: str) -> str:
    return _on_one_line(value).replace('"', '\\"')


def _on_one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"

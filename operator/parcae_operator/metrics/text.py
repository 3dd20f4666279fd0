"""A registry of Prometheus' client as text.

The client library's own writer checks each label's name anew: many jobs would take it too long.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family

from parcae_api.exposition import head, sample_line


def write_text(registry: CollectorRegistry) -> bytes:
    """All that a registry tells."""
    return "".join(line for family in registry.collect() for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    name = family.name + ("_total" if family.type == "counter" else "")
    yield from head(name, family.type, family.documentation)
    for sample in family.samples:
        if not sample.name.endswith("_created"):  # when a series began: nobody's question
            yield sample_line(sample.name, sample.labels, sample.value)

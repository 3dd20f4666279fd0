"""Prometheus' text format, version 0.0.4, line by line. Pure, and without Prometheus' client."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from parcae_api.metric import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Sample(NamedTuple):
    """One value of a metric."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""
    """Of a summary or histogram: ``_sum``, ``_count`` or ``_bucket``."""


def metric_lines(metric: Metric, samples: Iterable[Sample]) -> Iterator[str]:
    """One metric with its samples; nothing where there are none."""
    found = list(samples)
    if not found:
        return
    yield from head(metric.name, metric.kind, metric.help)
    for value, labels, suffix in found:
        yield sample_line(metric.name + suffix, labels, value)


def head(name: str, kind: str, text: str) -> Iterator[str]:
    """What stands above a metric's samples."""
    yield f"# HELP {name} {_on_one_line(text)}\n"
    yield f"# TYPE {name} {kind}\n"


def sample_line(name: str, labels: Mapping[str, str], value: float) -> str:
    """One sample."""
    shown = ",".join([f'{key}="{_escaped(told)}"' for key, told in labels.items()])
    return f"{name}{{{shown}}} {_number(value)}\n" if shown else f"{name} {_number(value)}\n"


@lru_cache(maxsize=4096)
def _escaped(value: str) -> str:
    return _on_one_line(value).replace('"', '\\"')


def _on_one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"

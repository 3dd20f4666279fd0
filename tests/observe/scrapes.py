"""What a scrape of each program takes: time by Prometheus' own clock, bytes as it is served."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.cluster import Cluster
from tests.cluster.api import request

from .prometheus import Prometheus


@dataclass(frozen=True)
class Scrape:
    """Of one program."""

    program: str
    scrapes: int
    median_ms: float
    most_ms: float
    size_bytes: int


def sizes(cluster: Cluster, prometheus: Prometheus) -> dict[str, int]:
    """Bytes of the answer of each target that is up, the most of each program."""
    found: dict[str, int] = {}
    for target in prometheus.targets():
        if target["health"] == "up":
            url, program = urlsplit(target["scrapeUrl"]), target["labels"]["container"]
            network = cluster.site.network
            _, body = request(network, str(url.hostname), url.port or 80, "GET", url.path)
            found[program] = max(found.get(program, 0), len(body))
    return found


def scrapes(
    prometheus: Prometheus, sized: dict[str, int], start_s: float, end_s: float
) -> list[Scrape]:
    """All scrapes that succeeded, by program."""
    told: dict[str, list[float]] = {}
    expr = "scrape_duration_seconds and up == 1"
    for series in prometheus.over_time(expr, start_s, end_s, 1.0):
        program = dict(series.labels)["container"]
        told.setdefault(program, []).extend(series.values.values())
    return [
        Scrape(
            program,
            len(values),
            1000 * sorted(values)[len(values) // 2],
            1000 * max(values),
            sized.get(program, 0),
        )
        for program, values in sorted(told.items())
    ]

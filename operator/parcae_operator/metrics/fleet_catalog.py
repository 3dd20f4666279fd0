"""The metrics of the operator and of all it sees."""

from __future__ import annotations

from parcae_api.metric import Kind, Metric, Restart

_PROCESS = "this process"


def _gauge(name: str, unit: str, text: str, *labels: str, source: str) -> Metric:
    return Metric(f"parcae_{name}", Kind.GAUGE, labels, unit, text, source, Restart.AS_SEEN)


BOARD_UP = _gauge("board_up", "0 or 1", "Whether etcd answers.", source="a read every five seconds")
PLANNER_UP = _gauge(
    "planner_up",
    "0 or 1",
    "Whether the planner answers; absent where the operator was given none.",
    source="its /healthz every five seconds",
)
API_SERVER_UP = _gauge(
    "api_server_up",
    "0 or 1",
    "Whether the API server answered the newest call.",
    source="calls to it, one every resync at least",
)
JOBS = _gauge("jobs", "jobs", "Jobs that exist, those that are over included.", source=_PROCESS)
NODES = _gauge(
    "nodes",
    "nodes",
    "Nodes of the cluster: healthy, suspect (not ready or silent), hinted (may go), leaving.",
    "zone",
    "spot",
    "state",
    source="node objects and what is latched of them",
)
BUILD_INFO = _gauge("build_info", "1", "The operator's version.", "version", source=_PROCESS)
SCRAPE_FAILURES = _gauge(
    "scrape_failures",
    "parts",
    "Parts of this very answer that are missing because of an error; the log says which.",
    source=_PROCESS,
)
PLAN_SECONDS = Metric(
    "parcae_plan_seconds",
    Kind.HISTOGRAM,
    (),
    "s",
    "What one planning question took, answers without the planner included.",
    _PROCESS,
    Restart.ANEW,
)
NOTICES = Metric(
    "parcae_notices_total",
    Kind.COUNTER,
    ("source", "severity"),
    "times",
    "How often a node's standing worsened (suspect, hint, notice, gone), and notices of single "
    "pods, by what said so. A notice that still stands counts again after a restart.",
    "signals on nodes and pods, agents",
    Restart.ANEW,
)
NOTICE_LEAD = Metric(
    "parcae_notice_lead_seconds",
    Kind.HISTOGRAM,
    (),
    "s",
    "Time from when an instance's notice was first heard to its deadline; of instances of jobs.",
    "signals on nodes and pods, agents",
    Restart.ANEW,
)

FLEET_METRICS = (
    PLAN_SECONDS,
    BOARD_UP,
    PLANNER_UP,
    API_SERVER_UP,
    JOBS,
    NOTICES,
    NOTICE_LEAD,
    NODES,
    BUILD_INFO,
    SCRAPE_FAILURES,
)

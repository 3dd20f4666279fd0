"""Whatever objects hold, reading them never raises."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from signal_objects import T0, ended, make_event, make_node, make_pod, taint

from parcae_operator.signals import NoticeLatch, Severity, read_event, read_node, read_pod

NODE = make_node("gke", taints=[taint("ToBeDeletedByClusterAutoscaler", "1")])
POD = make_pod(containerStatuses=ended(1), conditions=[{"type": "DisruptionTarget"}])
EVENT = make_event("SpotInterruption")

nonsense = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _paths(raw: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(raw, dict):
        for key in raw:
            found += _paths(raw[key], (*path, key))
    if isinstance(raw, list):
        for index in range(len(raw)):
            found += _paths(raw[index], (*path, index))
    return found


def _with(raw: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(raw) if isinstance(raw, dict) else list(raw)
    copy[path[0]] = _with(copy[path[0]], path[1:], value)
    return copy


def damaged(raw: dict[str, Any]) -> st.SearchStrategy[Any]:
    """The object with nonsense in one place."""
    paths = [path for path in _paths(raw) if path]
    return st.builds(_with, st.just(raw), st.sampled_from(paths), nonsense)


objects = st.dictionaries(st.sampled_from(["metadata", "spec", "status", "x"]), nonsense)


@given(damaged(NODE) | objects)
def test_nodes(raw: Any) -> None:
    reading = read_node(raw, T0)
    assert isinstance(reading.uid, str)
    assert isinstance(reading.usable, bool)
    NoticeLatch().observe(reading)


@given(damaged(POD) | objects, damaged(NODE), st.booleans())
def test_pods(raw: Any, node: Any, node_gone: bool) -> None:
    reading = read_pod(raw, read_node(node, T0), T0, node_gone=node_gone)
    assert reading.loss is None or reading.loss.blame
    assert reading.notice is None or reading.notice.source


@given(damaged(EVENT) | objects)
def test_events(raw: Any) -> None:
    read_event(raw, read_node(make_node(), T0), T0)


def test_wrong_types_read_as_absent() -> None:
    node = {
        "metadata": {"name": 7, "uid": None, "labels": ["karpenter.sh/capacity-type"]},
        "spec": {"taints": {"key": "karpenter.sh/disrupted"}, "unschedulable": "perhaps"},
        "status": {"conditions": "Ready", "allocatable": 3},
    }
    reading = read_node(node, T0)
    assert (reading.uid, reading.spot, reading.ready) == ("", False, False)
    assert reading.severity is Severity.HEALTHY
    latch = NoticeLatch()
    latch.observe(reading)
    assert latch.states() == {}, "nobody's reading leaves no trace"


def test_one_bad_taint_hides_no_other() -> None:
    taints = [None, 3, {"key": ["x"]}, {}, taint("karpenter.sh/disrupted")]
    reading = read_node(make_node(taints=taints), T0)
    assert reading.severity is Severity.HINT

"""The program around the jobs: what starts it, what kopf tells it, when it counts as stuck."""

from __future__ import annotations

import asyncio
import copy
import itertools
import subprocess
import sys
import time
from typing import Any

import kopf
import pytest
from kube_fakes import FakeApi
from kube_objects import job_body, make_node, make_pod

import parcae_operator.kube.pace as pace_module
from parcae_operator.kube import handlers, startup
from parcae_operator.kube.errors import ClusterRefused, ClusterUnavailable, Forbidden
from parcae_operator.kube.program import Program, _await_kind
from parcae_operator.kube.settings import OperatorSettings


class Ear:
    """Notes which of its methods are called, and with what name."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda body: self.heard.append((name, body["metadata"]["name"]))


def program() -> tuple[Program, Ear, Ear]:
    made, store, jobs = Program(OperatorSettings(board="etcd:1")), Ear(), Ear()
    made.services = type("Services", (), {"store": store})()
    made.jobs = jobs  # type: ignore[assignment]
    return made, store, jobs


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(None, "saw"), ("ADDED", "saw"), ("MODIFIED", "saw"), ("DELETED", "lost")],
)
def test_what_watches_tell_goes_where_it_belongs(kind: str | None, expected: str) -> None:
    memo, store, jobs = program()
    event_of = {
        handlers.job_event: job_body(),
        handlers.pod_event: make_pod(),
        handlers.node_event: make_node(),
    }
    for handler, body in event_of.items():
        asyncio.run(handler(event={"type": kind, "object": body}, memo=memo))
    assert jobs.heard == [(expected, "gpt")]
    assert store.heard == [(f"{expected}_pod", "gpt-aaaaaa"), (f"{expected}_node", "node-1")]


def test_events_about_nodes_only_raise() -> None:
    memo, store, _ = program()
    body = {"metadata": {"name": "e"}}
    for kind in (None, "ADDED", "DELETED"):
        asyncio.run(handlers.cluster_event(event={"type": kind, "object": body}, memo=memo))
    assert store.heard == [("saw_event", "e")] * 2


def test_nothing_that_kopf_would_write_is_registered() -> None:
    # Finalizers and annotations would bind objects to an operator that may not be there.
    registry = handlers.registry
    for kind in (registry._changing, registry._spawning, registry._webhooks, registry._indexing):
        assert list(kind.get_all_handlers()) == []
    assert len(list(registry._watching.get_all_handlers())) == 4


def test_kopf_is_told_to_keep_its_hands_off() -> None:
    settings = kopf.OperatorSettings()
    startup.configure(settings)
    assert settings.peering.standalone
    assert settings.scanning.disabled
    assert not settings.posting.enabled
    assert settings.watching.label_selectors["v1", "pods"] == "parcae.dev/job"
    backoffs = list(itertools.islice(settings.networking.error_backoffs, 100))
    assert all(0 < wait_s <= 36 for wait_s in backoffs)  # for ever, and never for long
    assert backoffs[0] < 2


def test_all_objects_share_one_program() -> None:
    memo, _, _ = program()
    assert copy.copy(memo) is memo


def test_a_program_that_does_not_look_any_more_is_stuck() -> None:
    memo, _, jobs = program()
    jobs.looked_s = time.monotonic()
    assert not memo.is_stuck()
    assert asyncio.run(startup.alive(memo=memo)) == "looking"
    jobs.looked_s = time.monotonic() - 10 * memo.settings.resync_seconds - 1
    assert memo.is_stuck()
    with pytest.raises(kopf.PermanentError):
        asyncio.run(startup.alive(memo=memo))


class KindApi(FakeApi):
    """Knows our kind after some errors."""

    def __init__(self, *answers: bool | Exception) -> None:
        super().__init__()
        self.answers = list(answers)

    async def has_jobs_kind(self) -> bool:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_an_api_server_that_is_away_at_the_start_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace_module, "FIRST_S", 0.01)
    away = ClusterUnavailable("away")
    api = KindApi(away, away, away, True)
    asyncio.run(_await_kind(api))  # type: ignore[arg-type]
    assert api.answers == []


def test_a_cluster_without_our_kind_is_told_what_to_do() -> None:
    with pytest.raises(ClusterRefused, match=r"not installed; apply crds/parcae"):
        asyncio.run(_await_kind(KindApi(False)))  # type: ignore[arg-type]


def test_an_operator_that_may_not_even_look_ends() -> None:
    with pytest.raises(Forbidden):
        asyncio.run(_await_kind(KindApi(Forbidden("no"))))  # type: ignore[arg-type]


def test_a_mistake_in_the_settings_is_one_line_and_exit_code_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "parcae_operator"],
        env={"PARCAE_BOARD": "etcd:1", "PARCAE_GRACE_SECONDS": "soon"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("parcae-operator: PARCAE_GRACE_SECONDS: ")
    assert done.stderr.count("\n") == 1

"""Each cloud's metadata service: what is heard, and when."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from metadata_servers import azure_event
from notice_ear import MakeEar, MakeServer, await_listening, wait_for


def due_in(deadline_unix_s: float, seconds: float) -> bool:
    return abs(deadline_unix_s - time.time() - seconds) < 10


def aws_date(in_s: float) -> str:
    return datetime.fromtimestamp(time.time() + in_s, UTC).strftime("%d %b %Y %H:%M:%S GMT")


@pytest.mark.parametrize(
    ("cloud", "source", "lead_s"),
    [
        ("aws", "aws-spot-terminate", 120),
        ("gce", "gce-preempted", 30),
        ("azure", "azure-preempt", 30),
    ],
)
def test_clouds_own_notice(
    make_server: MakeServer, make_ear: MakeEar, cloud: str, source: str, lead_s: float
) -> None:
    server = make_server(cloud)
    ear = make_ear(server.url)
    await_listening(server, cloud)
    assert ear.told == [], "a quiet cloud"
    server.notice()
    notice = ear.await_notice()
    assert notice.source == source
    assert due_in(notice.deadline_unix_s, lead_s)
    told = len(ear.told)
    server.clear()
    asked = len(server.requests)
    wait_for(lambda: len(server.requests) > asked, "it is asked again")
    assert ear.told[-1].notice == notice, "latched"
    assert len(ear.told) == told, "and told once"


def test_notice_that_is_there_at_the_start(make_server: MakeServer, make_ear: MakeEar) -> None:
    for cloud in ("aws", "gce", "azure"):
        server = make_server(cloud)
        server.notice()
        assert make_ear(server.url).await_notice().source.startswith(cloud)


# AWS


@pytest.mark.parametrize(
    ("action", "source", "lead_s"),
    [
        ({"action": "stop", "time": "2017-09-18T08:22:00Z"}, "aws-spot-stop", None),
        ({"action": "hibernate", "time": "2037-09-18T08:22:00Z"}, "aws-spot-hibernate", 0),
        ({"action": "terminate"}, "aws-spot-terminate", 120),
        ({"action": "terminate", "time": "soon"}, "aws-spot-terminate", 120),
    ],
)
def test_aws_interruptions(
    make_server: MakeServer,
    make_ear: MakeEar,
    action: dict[str, str],
    source: str,
    lead_s: float | None,
) -> None:
    server = make_server("aws")
    server.update({"spot_action": action})
    notice = make_ear(server.url).await_notice()
    assert notice.source == source
    if lead_s is None:
        assert notice.deadline_unix_s == datetime(2017, 9, 18, 8, 22, tzinfo=UTC).timestamp()
    else:
        assert due_in(notice.deadline_unix_s, lead_s)


def test_aws_nonsense_is_no_notice(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("aws")
    ear = make_ear(server.url, poll_s=0.01)
    for text in ("{", "[]", '{"action": "dance"}', "null"):
        server.update({"spot_action": text})
        asked = server.count("instance-action")
        wait_for(lambda asked=asked: server.count("instance-action") > asked + 1, "asked")
    assert all(heard.notice is None for heard in ear.told)
    server.notice()
    ear.await_notice()


def test_aws_rebalance_is_a_hint_and_the_interruption_a_notice(
    make_server: MakeServer, make_ear: MakeEar
) -> None:
    server = make_server("aws")
    ear = make_ear(server.url)
    server.update({"rebalance": "2030-01-01T00:00:00Z"})
    hint = ear.await_hint()
    assert (hint.source, hint.deadline_unix_s) == ("aws-rebalance", None)
    assert ear.told[-1].notice is None
    server.notice()
    ear.await_notice()
    assert ear.told[-1].hint == hint


def test_aws_auto_scaling_group_takes_it(make_server: MakeServer, make_ear: MakeEar) -> None:
    """It says so at every poll, without a time: the deadline counts from the first."""
    server = make_server("aws")
    ear = make_ear(server.url)
    server.update({"lifecycle": "Terminated"})
    notice = ear.await_notice()
    assert notice.source == "aws-asg-terminated"
    assert due_in(notice.deadline_unix_s, 120)
    asked = server.count("target-lifecycle-state")
    wait_for(lambda: server.count("target-lifecycle-state") > asked + 3, "asked again")
    assert len(ear.told) == 1


def test_aws_scheduled_stop(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("aws")
    ear = make_ear(server.url)
    event = {"Code": "instance-stop", "EventId": "e", "State": "active"}
    server.update({"scheduled": [event | {"NotBefore": aws_date(86400)}]})
    hint = ear.await_hint()
    assert hint.source == "aws-instance-stop"
    assert hint.deadline_unix_s is not None
    assert due_in(hint.deadline_unix_s, 86400)
    server.update({"scheduled": [event | {"State": "canceled"}]})
    ear.await_told(lambda heard: heard.hint is None)
    server.update({"scheduled": [event | {"NotBefore": aws_date(60)}]})
    assert due_in(ear.await_notice().deadline_unix_s, 60), "so near it is certain"


def test_aws_token_runs_out(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("aws")
    server.update({"most_ttl_s": 1})
    ear = make_ear(server.url)
    wait_for(lambda: server.count("PUT") >= 3, "it takes new tokens in time")
    server.notice()
    ear.await_notice()


def test_aws_forgets_its_tokens(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("aws")
    ear = make_ear(server.url)
    wait_for(lambda: server.count("instance-action") > 2, "it is being asked")
    server.cloud.forget_tokens()  # type: ignore[attr-defined]
    wait_for(lambda: server.count("PUT") >= 2, "after a 401 it takes another")
    server.notice()
    ear.await_notice()


# Google


def test_gce_holds_its_answer_back(make_server: MakeServer, make_ear: MakeEar) -> None:
    """Two questions are open: that is all that a quiet hour costs."""
    server = make_server("gce")
    ear = make_ear(server.url)
    wait_for(lambda: server.count("wait_for_change=true&last_etag=") == 2, "both wait")
    asked = len(server.requests)
    began_s = time.monotonic()
    server.notice()
    ear.await_notice()
    assert server.count("/preempted") <= asked + 2
    assert time.monotonic() - began_s < 20


def test_gce_maintenance_is_a_hint_that_may_pass(
    make_server: MakeServer, make_ear: MakeEar
) -> None:
    server = make_server("gce")
    ear = make_ear(server.url)
    server.update({"maintenance-event": "TERMINATE_ON_HOST_MAINTENANCE"})
    assert ear.await_hint().source == "gce-maintenance-terminate"
    server.update({"maintenance-event": "NONE"})
    ear.await_told(lambda heard: heard.hint is None)
    assert ear.told[-1].notice is None


def test_gce_without_maintenance_events(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("gce")
    server.fail("404", path="maintenance-event")
    ear = make_ear(server.url)
    wait_for(lambda: server.count("last_etag") > 0, "it listens all the same")
    server.notice()
    ear.await_notice()


# Azure


def test_azure_counts_only_what_names_this_machine(
    make_server: MakeServer, make_ear: MakeEar
) -> None:
    server = make_server("azure")
    ear = make_ear(server.url)
    others = [azure_event("Preempt", ["aks-gpu-1-vmss_1", "aks-gpu-1-vmss_121"], 30)]
    server.update({"events": others})
    wait_for(lambda: server.count("scheduledevents") > 5, "asked")
    assert ear.told == []
    server.update({"events": [*others, azure_event("Preempt", ["AKS-gpu-1-vmss_12"], 30)]})
    ear.await_notice()
    assert server.cloud.state["acknowledged"] == [], "that would be for all machines it names"


def test_azure_name_from_the_provider_id(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("azure")
    provider_id = (
        "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute"
        "/virtualMachineScaleSets/other/virtualMachines/7"
    )
    server.update({"events": [azure_event("Preempt", ["other_7"], 30)]})
    make_ear(server.url, provider_id=provider_id).await_notice()


def test_azure_started_has_no_time(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("azure")
    name = server.cloud.state["name"]
    event = azure_event("Preempt", [name], 30, EventStatus="Started", NotBefore="")
    server.update({"events": [event]})
    assert due_in(make_ear(server.url).await_notice().deadline_unix_s, 0)


@pytest.mark.parametrize("kind", ["Redeploy", "Reboot", "Freeze"])
def test_azure_planned_events_are_hints(
    make_server: MakeServer, make_ear: MakeEar, kind: str
) -> None:
    server = make_server("azure")
    name = server.cloud.state["name"]
    ear = make_ear(server.url)
    server.update({"events": [azure_event(kind, [name], 900)]})
    hint = ear.await_hint()
    assert hint.source == f"azure-{kind.lower()}"
    assert hint.deadline_unix_s is not None
    assert due_in(hint.deadline_unix_s, 900)
    server.update({"events": []})
    ear.await_told(lambda heard: heard == type(heard)())
    server.update({"events": [azure_event(kind, [name], 20)]})
    if kind == "Freeze":
        ear.await_hint()
        assert ear.told[-1].notice is None, "it is over in seconds"
    else:
        ear.await_notice()

"""Operators that come and go, and what they lean on being away."""

from __future__ import annotations

import pytest
from kube_fakes import until
from kube_site import KubeSite, on_site

import parcae_operator.loop as loop_module
from parcae_api.errors import PlannerUnavailable
from parcae_api.plan import PlanReason
from parcae_api.planning import PlanAnswer, Planner, PlanRequest
from parcae_cli.etcd_server import EtcdServer
from parcae_operator import reunion
from parcae_operator.actions import Action
from parcae_operator.kube.errors import ClusterUnavailable, Forbidden
from parcae_operator.observation import Observation

pytestmark = pytest.mark.processes

AWAY = ClusterUnavailable("the API server is away")


# Operators that come and go.


def test_another_operator_goes_on_where_the_last_one_ended(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        site.lose(site.pods[1])
        await site.await_plan(2)
        site.form(7)
        await until(lambda: site.status.step == 7, "it trains")
        await until(lambda: site.status.preemptions == 1, "the loss is counted")
        before, events = site.status, len(site.api.events)
        pods = site.pods
        await operator.end()
        written = len(site.api.statuses)
        site.start("operator-1")
        site.form(9)
        await until(lambda: site.status.step == 9, "it drives on")
        after = site.status
        assert after.preemptions == 1
        assert after.decisions == before.decisions
        assert after.start_time == before.start_time
        assert site.pods == pods
        times = {c.type: c.last_transition_time for c in before.conditions}
        assert {c.type: c.last_transition_time for c in after.conditions} == times
        for status in site.api.statuses[written:]:  # never a moment in which all seems lost
            assert status["step"] >= 7
            assert status["conditions"]
        told = [event["note"] for event in site.api.events[events:]]
        assert not any("ready to train" in note or "revision 1" in note for note in told)

    on_site(kube_etcd.endpoint, work)


def test_of_two_operators_one_acts_and_the_other_takes_over(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        first = site.start("first")
        site.apply()
        await until(lambda: len(site.pods) == 2, "the first drives")
        second = site.start("second")
        await until(lambda: len(second.jobs) == 1, "the second looks")
        site.run_pods()
        await site.await_plan(1)
        site.form(3)
        await until(lambda: site.phase == "Training", "it trains")
        assert len(site.pods) == 2
        assert {e["reportingInstance"] for e in site.api.events} == {"first"}
        leader = site.board.leader()
        assert leader is not None
        assert leader.identity.startswith("first-")
        await first.end()
        site.lose(site.pods[0])
        plan = await site.await_plan(2)
        assert plan.reason is PlanReason.LOSS
        await until(lambda: site.status.revision == 2, "it writes the status")
        assert len(site.status.decisions) == 2  # the first's is not lost
        await until(lambda: len(site.pods) == 2, "it asks for another pod")

    on_site(kube_etcd.endpoint, work)


def test_an_operator_that_dies_is_replaced_within_its_lease(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        first = site.start("first")
        site.apply()
        await site.train()
        await first.die()
        site.start("second")
        site.lose(site.pods[0])
        plan = await site.await_plan(2)
        assert plan.reason is PlanReason.LOSS

    on_site(kube_etcd.endpoint, work)


# Outages.


def test_while_the_api_server_is_away_plans_go_on(
    kube_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reunion, "DOUBTFUL_S", 0.0)  # as if the operator had been there for long

    async def work(site: KubeSite) -> None:
        site.start()
        site.apply(instances={"min": 1, "max": 3})
        await site.train(pods=3)
        site.api.down = AWAY
        lost = site.pods[0]
        site._leases.pop(lost).revoke()  # only the board tells
        await site.await_plan(2)
        site.form(8)
        tried = site.api.count("write_status")
        await until(lambda: site.api.count("write_status") > tried, "the status is tried")
        assert site.status.revision == 1
        site.api.down = None
        await until(lambda: site.status.revision == 2, "the status catches up")
        assert site.status.step == 8

    on_site(kube_etcd.endpoint, work)


def test_while_the_board_is_away_people_are_told(mortal_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        mortal_etcd.kill()
        operator = site.start()
        site.apply()
        await until(lambda: site.reason() == "BoardUnavailable", "it is said")
        assert site.phase == "Pending"
        assert site.pods == []
        mortal_etcd.start()
        await site.train()
        await until(lambda: site.reason() == "", "all is well again")
        mortal_etcd.kill()
        await until(lambda: operator.claim.board_is_away, "its lease runs out")
        await until(lambda: site.reason() == "BoardUnavailable", "it is said again")
        assert site.phase == "Training"
        assert site.status.step == 3
        pods = site.pods
        mortal_etcd.start()
        await until(lambda: site.reason() == "", "all is well again")
        assert site.pods == pods
        assert site.status.revision == 1

    on_site(mortal_etcd.endpoint, work)


def test_a_slip_while_operator_and_board_are_away(mortal_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        await operator.end()
        mortal_etcd.kill()
        site.edit(template={})
        site.start()
        await until(lambda: site.reason() == "BoardUnavailable", "it is said")
        assert site.status.observed_generation == 1
        mortal_etcd.start()
        await until(lambda: site.reason() == "InvalidSpec", "the slip is told")
        site.form(9)
        await until(lambda: site.status.step == 9, "the last good spec is in force")
        assert site.status.observed_generation == 2

    on_site(mortal_etcd.endpoint, work)


def test_pods_that_are_refused_are_told_and_asked_for_again(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.api.faults["create_pod"].extend([Forbidden("exceeded quota")] * 3)
        site.start()
        site.apply()
        await until(lambda: site.reason() == "PodsRefused", "it is said")
        await until(lambda: len(site.pods) == 2, "and tried again")
        await until(lambda: site.reason() == "", "all is well again")

    on_site(kube_etcd.endpoint, work)


def test_events_that_cannot_be_written_stop_nothing(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.api.faults["create_event"].extend([Forbidden("no events")] * 100)
        site.start()
        site.apply()
        await site.train()
        assert site.api.events == []

    on_site(kube_etcd.endpoint, work)


# Mistakes.


def test_a_mistake_in_this_program_is_told_and_tried_again(
    kube_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = loop_module.decide
    left = [3]

    def decide(seen: Observation, planner: Planner) -> list[Action]:
        if left[0]:
            left[0] -= 1
            raise ZeroDivisionError("a mistake")
        return right(seen, planner)

    async def work(site: KubeSite) -> None:
        monkeypatch.setattr(loop_module, "decide", decide)
        site.start()
        site.apply()
        await until(lambda: site.reason() == "OperatorError", "it is told")
        await site.train()
        await until(lambda: site.reason() == "", "all is well")

    on_site(kube_etcd.endpoint, work)


def test_a_planner_that_is_away_is_told_and_training_begins(kube_etcd: EtcdServer) -> None:
    class Away:
        def plan(self, request: PlanRequest) -> PlanAnswer:
            raise PlannerUnavailable("no answer")

    async def work(site: KubeSite) -> None:
        site.planner = Away()
        site.start()
        site.apply()
        await site.train()
        await until(lambda: site.reason() == "PlannerUnavailable", "it is told")
        assert site.phase == "Training"

    on_site(kube_etcd.endpoint, work)

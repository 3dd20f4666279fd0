"""Jobs from the moment they are applied to their end, by operators that come and go."""

from __future__ import annotations

import copy
import time

import pytest
from kube_fakes import until
from kube_objects import template
from kube_site import TOTAL_STEPS, KubeSite, on_site

import parcae_operator.loop as loop_module
from parcae_api.board import JobBoard
from parcae_api.errors import PlannerUnavailable
from parcae_api.events import Failed
from parcae_api.job import Entrypoint, Instances, JobSpec, Metadata, ParcaeJob
from parcae_api.plan import PlanReason
from parcae_api.planning import PlanAnswer, Planner, PlanRequest
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.actions import Action
from parcae_operator.kube.errors import ClusterUnavailable, Forbidden
from parcae_operator.observation import Observation

pytestmark = pytest.mark.processes

AWAY = ClusterUnavailable("the API server is away")


# The beginning.


def test_a_job_is_driven_from_nothing_to_training(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        status = site.status
        assert (status.step, status.configuration, status.revision) == (3, "2x1", 1)
        assert status.observed_generation == 1
        assert status.start_time
        assert [d.reason for d in status.decisions] == ["initial"]
        assert all(c.last_transition_time for c in status.conditions)
        job = site.board.job()
        assert job is not None
        assert job.metadata.uid == f"uid-of-{site.name}"
        await until(
            lambda: {"Planned", "InstanceJoined"} <= {e["reason"] for e in site.api.events},
            "people are told",
        )

    on_site(kube_etcd.endpoint, work)


@pytest.mark.parametrize("call", ["nodes", "pods", "jobs"])
def test_nothing_is_touched_before_the_first_complete_look(
    kube_etcd: EtcdServer, call: str
) -> None:
    # To an operator that has just started, all pods and nodes would seem to be missing.
    async def work(site: KubeSite) -> None:
        site.apply()
        site.api.faults[call].extend([AWAY, Forbidden("no"), AWAY])
        operator = site.start()
        site.edit(seed=3)  # its watch tells of it
        await until(lambda: site.api.count(call) == 3, "it has tried")
        assert len(operator.jobs) == 0
        assert site.pods == []
        await until(lambda: len(site.pods) == 2, "then it begins")

    on_site(kube_etcd.endpoint, work)


def test_a_spec_that_cannot_work_creates_nothing_until_it_is_corrected(
    kube_etcd: EtcdServer,
) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply(template={})
        await until(lambda: site.reason() == "InvalidSpec", "it says so")
        degraded = next(c for c in site.status.conditions if c.type == "Degraded")
        assert degraded.message.startswith("spec.template.spec.containers: is required")
        assert site.pods == []
        assert site.board.job() is None
        written = len(site.api.statuses)
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "it looks again and again")
        assert len(site.api.statuses) == written
        site.edit(template=template())
        await until(lambda: len(site.pods) == 2, "it begins")
        await until(lambda: site.reason() == "", "all is well")
        assert site.status.observed_generation == 2

    on_site(kube_etcd.endpoint, work)


# Edits.


def test_an_edit_reaches_the_job(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        site.edit(instances={"min": 1, "max": 4})
        await until(lambda: len(site.pods) == 4, "more pods are asked for")
        site.edit(instances={"min": 1, "max": 2})
        await until(lambda: len(site.pods) == 2, "those that wait are given back")
        assert all(site.api.pods_by_name[p]["spec"].get("nodeName") for p in site.pods)
        await until(lambda: site.status.observed_generation == 3, "it is said")
        assert site.status.preemptions == 0

    on_site(kube_etcd.endpoint, work)


def test_a_slip_in_an_edit_leaves_the_last_good_spec_in_force(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        site.edit(instances={"min": 1, "max": 3})
        await until(lambda: len(site.pods) == 3, "a good edit")
        site.edit(instances={"min": 1, "max": 5}, template={})
        await until(lambda: site.reason() == "InvalidSpec", "it is said")
        assert site.phase == "Training"
        site.lose(site.pods[0])
        plan = await site.await_plan(2)
        assert plan.reason is PlanReason.LOSS
        await operator.end()
        site.start()  # another one knows only the board
        site.form(5)
        await until(lambda: site.status.step == 5, "it drives on")
        assert site.reason() == "InvalidSpec"
        await until(lambda: len(site.pods) == 3, "by the last good spec, not the first")

    on_site(kube_etcd.endpoint, work)


def test_suspended_and_on_again(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply(suspend=True)
        await until(lambda: site.phase == "Suspended", "it is said")
        assert site.pods == []
        site.edit(suspend=False)
        await site.train()

    on_site(kube_etcd.endpoint, work)


# The end.


async def complete(site: KubeSite) -> None:
    site.form(TOTAL_STEPS)
    await until(lambda: not site.is_there or site.phase == "Completed", "it is complete")


def test_a_finished_job_gives_its_pods_back_and_stays(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        await complete(site)
        status = site.status
        assert status.completion_time
        assert (status.step, status.configuration, status.instances) == (TOTAL_STEPS, "", 0)
        assert len(status.decisions) == 1
        await until(lambda: site.pods == [], "its pods go")
        assert set(site.api.graces.values()) == {5}
        written = len(site.api.statuses)
        await operator.end()
        site.start()
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "another one looks at it")
        assert site.status == status
        assert len(site.api.statuses) == written
        assert site.pods == []

    on_site(kube_etcd.endpoint, work)


def test_a_finished_job_is_deleted_when_its_time_has_come(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        await complete(site)
        site.edit(ttlSecondsAfterFinished=3600)  # edits count after the end, too
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "it looks again and again")
        assert site.is_there
        site.edit(ttlSecondsAfterFinished=0)
        await until(lambda: not site.is_there, "it is deleted")
        await until(lambda: site.board.job() is None, "with its board")

    on_site(kube_etcd.endpoint, work)


def test_a_failure_of_the_users_code_ends_the_job_for_good(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        crashed, other = site.pods
        failed = Failed(
            at_unix_s=time.time(), worker=f"{crashed}-0/0", step=3, message="ValueError: boom"
        )
        site.board.put_failure(failed)
        site.api.end(crashed, 42)
        await until(lambda: site.phase == "Failed", "it is said")
        message = next(c.message for c in site.status.conditions if c.type == "Failed")
        assert message == "ValueError: boom"
        assert site.status.failures == 1
        await until(lambda: site.pods == [crashed], f"{other} goes, the other's logs stay")
        await operator.end()
        site.start()
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 3, "another one looks at it")
        assert site.pods == [crashed]
        assert site.phase == "Failed"

    on_site(kube_etcd.endpoint, work)


def test_pods_that_cannot_be_given_back_yet_are_later(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        site.api.faults["delete_pod"].extend([AWAY] * 3)
        await complete(site)
        await until(lambda: site.pods == [], "its pods go")

    on_site(kube_etcd.endpoint, work)


# Deletion.


def test_a_deleted_job_leaves_nothing(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        site.delete()
        await until(lambda: site.pods == [], "its pods go")
        await until(lambda: not site.client.list(site.board.prefix).items, "its board is clear")
        assert len(operator.jobs) == 0
        assert set(site.api.graces.values()) == {1}

    on_site(kube_etcd.endpoint, work)


def test_a_deletion_that_no_watch_told_is_found(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        operator.is_deaf = True
        site.delete()
        await until(lambda: len(operator.jobs) == 0, "the list tells")
        await until(lambda: not site.client.list(site.board.prefix).items, "its board is clear")

    on_site(kube_etcd.endpoint, work)


def test_a_deleted_job_is_not_brought_back_by_an_old_list(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        old = copy.deepcopy(site.api.jobs_by_name[site.name])
        site.delete()
        operator.jobs.saw(old)
        assert len(operator.jobs) == 0

    on_site(kube_etcd.endpoint, work)


def test_a_job_that_is_being_deleted_is_let_go(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        body = copy.deepcopy(site.api.jobs_by_name[site.name])
        body["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        site.api.put_job(body)  # in the foreground: its pods first
        await until(lambda: len(operator.jobs) == 0, "it is let go")
        await until(lambda: site.pods == [], "its pods go")
        site.delete()
        looked = site.api.count("jobs")
        await until(lambda: site.api.count("jobs") > looked + 2, "that is all")
        assert len(operator.jobs) == 0

    on_site(kube_etcd.endpoint, work)


def test_a_job_of_the_same_name_is_another(kube_etcd: EtcdServer) -> None:
    # `kubectl replace --force`: the first one's farewell must not touch the second.
    async def work(site: KubeSite) -> None:
        site.start()
        site.apply()
        await site.train()
        first = set(site.pods)
        site.delete()
        site.apply(uid="second", seed=4)
        await until(
            lambda: len(site.pods) == 2 and not first & set(site.pods), "the second's pods only"
        )
        second = set(site.pods)
        assert all(
            site.api.pods_by_name[p]["metadata"]["labels"]["parcae.dev/job-uid"] == "second"
            for p in second
        )
        await until(
            lambda: (job := site.board.job()) is not None and job.metadata.uid == "second",
            "the board is the second's",
        )
        site.run_pods()
        plan = await site.await_plan(1)
        assert plan.revision == 1
        assert {w.removesuffix("-0/0") for w in plan.workers} == second
        assert set(site.pods) == second

    on_site(kube_etcd.endpoint, work)


def test_boards_of_jobs_that_were_deleted_meanwhile_are_cleared(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        await operator.end()
        site.delete()
        local = JobBoard(site.client, "team", f"{site.name}-local")
        spec = JobSpec(instances=Instances(max=1), entrypoint=Entrypoint(function="a:b"))
        local.put_job(
            ParcaeJob(
                api_version="parcae.dev/v1alpha1",
                kind="ParcaeJob",
                metadata=Metadata(name=f"{site.name}-local", namespace="team"),
                spec=spec,
            )
        )
        site.start()
        await until(lambda: not site.client.list(site.board.prefix).items, "the board is clear")
        assert local.job() is not None
        local.clear()

    on_site(kube_etcd.endpoint, work)


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


def test_while_the_api_server_is_away_plans_go_on(kube_etcd: EtcdServer) -> None:
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


# Lists and watches.


def test_an_old_list_does_not_undo_an_edit(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        site.apply()
        await site.train()
        old = copy.deepcopy(site.api.jobs_by_name[site.name])
        site.edit(instances={"min": 1, "max": 4})
        operator.jobs.saw(old)
        await until(lambda: len(site.pods) == 4, "the edit holds")
        assert site.api.count("delete_pod") == 0

    on_site(kube_etcd.endpoint, work)


def test_a_job_that_came_while_the_list_was_under_way_stays(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        await until(lambda: site.api.count("jobs") > 0, "it has looked")
        slow = site.api.jobs

        async def jobs(namespace: str = "") -> list[dict[str, object]]:
            found = await slow(namespace)
            if not site.is_there:
                site.apply()
            return found

        site.api.jobs = jobs  # type: ignore[method-assign]
        await until(lambda: len(operator.jobs) == 1, "it is there")
        await site.train()
        assert site.api.count("delete_pod") == 0

    on_site(kube_etcd.endpoint, work)


def test_without_any_watch_lists_are_enough(kube_etcd: EtcdServer) -> None:
    async def work(site: KubeSite) -> None:
        operator = site.start()
        operator.is_deaf = True
        site.apply()
        await site.train()
        site.edit(instances={"min": 1, "max": 3})
        await until(lambda: len(site.pods) == 3, "the edit is found")
        site.lose(site.pods[0])
        await site.await_plan(2)

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

"""A job's pods, asked for and given back through an API server that may fail."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kube_fakes import FakeApi, LoopThread
from kube_objects import deleting, make_job, make_node, make_pod, template

import parcae_operator.kube.pace as pace_module
from parcae_api.events import InstanceLost
from parcae_api.membership import AgentState, Membership
from parcae_operator.kube.errors import ClusterUnavailable, Conflict, Forbidden
from parcae_operator.kube.pod_cluster import PodCluster
from parcae_operator.kube.settings import OperatorSettings
from parcae_operator.kube.store import ClusterStore
from parcae_operator.observation import Pod, PodPhase

AWAY = ClusterUnavailable("the server is away")


class Site:
    """One job's pods on a fake API server whose watches are perfect."""

    def __init__(self, loop: LoopThread) -> None:
        self.api = FakeApi()
        self.store = ClusterStore(on_change=lambda key: None)
        self.agents: dict[str, Membership] = {}
        self.lost: list[InstanceLost] = []
        self.api.on_pod = self.hear
        self.cluster = PodCluster(
            make_job(),
            self.api,  # type: ignore[arg-type]
            self.store,
            OperatorSettings(board="etcd:1"),
            loop.loop,
            agents=lambda: self.agents,
            report=self.lost.append,
        )

    def hear(self, kind: str, pod: dict[str, object]) -> None:
        (self.store.lost_pod if kind == "DELETED" else self.store.saw_pod)(pod)

    @property
    def names(self) -> list[str]:
        return list(self.api.pods_by_name)

    def pod(self, name: str) -> Pod:
        (found,) = (pod for pod in self.cluster.pods() if pod.name == name)
        return found

    def start(self, count: int = 1) -> list[str]:
        """Pods that run, each on a node of its own, their agents on the board."""
        before = set(self.names)
        self.cluster.create_pods(count)
        names = [name for name in self.names if name not in before]
        for name in names:
            self.store.saw_node(make_node(f"node-of-{name}", created_s=time.time() - 99))
            self.api.bind(name, f"node-of-{name}")
            self.join(name)
        self.cluster.pods()
        return names

    def join(self, name: str) -> None:
        self.agents[name] = Membership(
            incarnation=f"{name}-01234567",
            pod=name,
            node="n",
            node_uid="n",
            address="10.0.0.1",
            state=AgentState.STANDBY,
            workers=(),
        )

    def look(self) -> None:
        """What a turn does besides deciding."""
        self.cluster.pods()
        self.cluster.vanished()
        self.cluster.bury()

    def relist(self) -> None:
        asked_s = time.monotonic()
        self.store.saw_all_pods(list(self.api.pods_by_name.values()), asked_s)
        self.cluster.listed(asked_s)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(pace_module, "FIRST_S", 0.05)
    with LoopThread() as loop:
        yield Site(loop)


def await_pace(site: Site) -> None:
    time.sleep(site.cluster._pace.left_s + site.cluster._deletions.left_s)


# Asking for pods.


def test_pods_are_there_as_soon_as_they_are_asked_for(site: Site) -> None:
    site.api.on_pod = lambda kind, pod: None  # before any watch tells
    site.cluster.create_pods(3)
    pods = site.cluster.pods()
    assert [pod.phase for pod in pods] == [PodPhase.PENDING] * 3
    assert len({pod.name for pod in pods}) == 3
    for pod in pods:
        assert pod.name.startswith("gpt-")
        assert len(pod.name) == len("gpt-") + 6


def test_a_refusal_is_told_and_tried_again_later(site: Site) -> None:
    site.api.faults["create_pod"].append(Forbidden("exceeded quota: pods"))
    site.cluster.create_pods(3)
    assert site.names == []
    assert site.cluster.trouble is not None
    assert site.cluster.trouble.reason == "PodsRefused"
    assert "exceeded quota" in site.cluster.trouble.message
    site.cluster.create_pods(3)
    assert site.api.count("create_pod") == 1  # not at once
    await_pace(site)
    site.cluster.create_pods(3)
    assert len(site.names) == 3
    assert site.cluster.trouble is None


def test_what_was_created_before_a_refusal_counts(site: Site) -> None:
    site.cluster.create_pods(1)
    site.api.faults["create_pod"].append(Conflict("exists"))
    site.cluster.create_pods(2)
    assert len(site.cluster.pods()) == 1
    await_pace(site)
    site.cluster.create_pods(1)
    assert len(site.cluster.pods()) == 2


def test_after_a_lost_answer_nothing_is_asked_for_before_a_list(site: Site) -> None:
    # The pod may have been made: asking again at once would make one too many.
    site.api.on_pod = lambda kind, pod: None
    site.api.faults["create_pod"].append(AWAY)
    site.api.lost_answers.add("create_pod")
    asked_before_s = time.monotonic()
    site.cluster.create_pods(1)
    assert site.cluster.pods() == ()
    assert len(site.names) == 1
    await_pace(site)
    site.cluster.create_pods(1)
    site.cluster.listed(asked_before_s)  # a list that was asked for earlier tells nothing
    site.cluster.create_pods(1)
    assert len(site.names) == 1
    assert site.cluster.trouble is not None
    assert site.cluster.trouble.reason == "ApiServerUnavailable"
    site.relist()
    assert len(site.cluster.pods()) == 1
    site.cluster.create_pods(1)
    assert len(site.names) == 2
    assert site.cluster.trouble is None


def test_a_server_that_asks_for_time_gets_it(site: Site) -> None:
    site.api.faults["create_pod"].append(ClusterUnavailable("busy", retry_after_s=20.0))
    site.cluster.create_pods(1)
    site.relist()
    assert site.cluster._pace.left_s > 15
    site.cluster.create_pods(1)
    assert site.api.count("create_pod") == 1


def test_an_old_trouble_is_forgotten_when_no_pods_are_wanted(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.api.faults["create_pod"].append(Forbidden("exceeded quota"))
    site.cluster.create_pods(1)
    assert site.cluster.trouble is not None
    monkeypatch.setattr("parcae_operator.kube.pod_cluster._STALE_S", 0.0)
    await_pace(site)
    assert site.cluster.trouble is None


def test_pods_that_keep_ending_early_are_asked_for_more_and_more_rarely(site: Site) -> None:
    for _ in range(4):
        site.cluster._births.succeeded()
    waits = []
    for _ in range(4):
        site.cluster._births._free_s = 0.0
        site.cluster.create_pods(1)
        (name,) = site.names
        site.api.bind(name, "n")
        site.cluster.pods()
        site.api.end(name, 137)
        site.look()
        waits.append(site.cluster._births.left_s)
        site.cluster.create_pods(1)
        assert site.names == []
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]


@pytest.mark.parametrize("fate", ["node", "deleted"])
def test_pods_that_never_ran_are_no_reason_to_wait(site: Site, fate: str) -> None:
    site.store.saw_node(make_node("n", created_s=time.time() - 99))
    site.cluster.create_pods(1)
    (name,) = site.names
    site.api.bind(name, "n")
    site.cluster.pods()
    if fate == "node":
        site.store.lost_node(make_node("n"))
    else:
        site.api.remove_pod(name)
    site.look()
    assert site.cluster._births.may_go()


def test_an_agent_that_is_heard_of_ends_the_wait(site: Site) -> None:
    for _ in range(5):
        site.cluster._births.failed()
    site.cluster._births._free_s = 0.0
    site.start()
    site.cluster._births.failed()
    assert site.cluster._births.left_s < 0.1


def test_many_pods_are_asked_for_in_several_turns(site: Site) -> None:
    # In between a notice may have to be answered.
    for _ in range(3):
        site.cluster.create_pods(20 - len(site.names))
    assert len(site.names) == 20


# Giving back.


def test_pods_are_given_back_by_their_uid_and_once(site: Site) -> None:
    site.api.gentle = True
    first, second = site.start(2)
    site.cluster.delete_pods((first,))
    site.cluster.delete_pods((first,))
    assert site.api.count("delete_pod") == 1
    assert site.api.graces == {first: None}
    assert site.pod(first).notice is not None
    assert site.pod(second).notice is None


def test_what_is_given_back_is_no_loss(site: Site) -> None:
    first, second = site.start(2)
    site.cluster.delete_pods((first,))
    site.look()
    assert site.lost == []
    site.api.remove_pod(second)
    site.look()
    assert [loss.incarnation for loss in site.lost] == [second]


def test_giving_back_fails_and_is_tried_again_but_not_at_once(site: Site) -> None:
    first, second = site.start(2)
    site.api.faults["delete_pod"].append(AWAY)
    site.cluster.delete_pods((first, second))
    site.cluster.delete_pods((first, second))
    assert site.api.count("delete_pod") == 1  # no turn waits for a server that is away
    await_pace(site)
    site.cluster.delete_pods((first, second))
    assert site.names == []


def test_the_end_of_a_job_keeps_what_crashed_for_its_logs(site: Site) -> None:
    crashed, running = site.start(2)
    site.cluster.create_pods(1)
    waiting = site.names[-1]
    site.api.end(crashed, 42)
    assert not site.cluster.delete_all(keep_crashed=True, grace_s=5)
    assert site.names == [crashed]
    assert site.api.graces == {running: 5, waiting: 5}
    assert site.cluster.delete_all(keep_crashed=True, grace_s=5)
    assert not site.cluster.delete_all(keep_crashed=False, grace_s=1)
    assert site.names == []


def test_pods_that_go_already_are_not_asked_again(site: Site) -> None:
    site.api.gentle = True
    site.start(2)
    for _ in range(3):
        site.cluster.delete_all(keep_crashed=False, grace_s=5)
    assert site.api.count("delete_pod") == 2


# Burial.


def test_pods_that_ended_are_buried_once(site: Site) -> None:
    site.api.gentle = True
    (name,) = site.start()
    site.api.end(name, 0)
    site.look()
    site.look()
    assert site.api.count("delete_pod") == 1
    site.api.remove_pod(name)
    site.look()
    assert site.cluster._buried == set()


def test_the_newest_crashed_pods_stay(site: Site) -> None:
    names = site.start(8)
    for name in names:
        site.api.end(name, 42)
    site.look()
    assert len(site.names) == 5


def test_a_pod_on_a_dead_node_is_deleted_by_force(site: Site) -> None:
    site.api.gentle = True
    (name,) = site.start()
    site.store.lost_node(make_node(f"node-of-{name}"))
    site.look()
    assert site.names == []
    assert site.api.graces == {name: 0}


def test_a_burial_that_nobody_confirms_is_forced_when_the_node_is_gone(site: Site) -> None:
    site.api.gentle = True
    (name,) = site.start()
    site.api.end(name, 137)
    site.look()
    assert site.api.graces == {name: None}
    assert site.names == [name]  # its kubelet is silent
    site.store.lost_node(make_node(f"node-of-{name}"))
    site.look()
    assert site.names == []


def test_pods_of_an_earlier_job_of_that_name_are_deleted(site: Site) -> None:
    site.api.put_pod(make_pod("gpt-old", job_uid="earlier", node="n"), "ADDED")
    site.start()
    site.look()
    assert "gpt-old" not in site.names
    assert len(site.names) == 1


def test_the_end_of_a_job_leaves_its_successor_alone(site: Site) -> None:
    site.start()
    site.api.put_pod(make_pod("gpt-new", job_uid="of-the-next", node="n"), "ADDED")
    site.cluster.delete_all(keep_crashed=False, grace_s=1)
    assert site.names == ["gpt-new"]


# Losses.


def test_a_loss_is_reported_once(site: Site) -> None:
    (name,) = site.start()
    site.store.lost_node(make_node(f"node-of-{name}"))
    for _ in range(3):
        site.look()
    (loss,) = site.lost
    assert (loss.incarnation, loss.node, loss.noticed) == (name, f"node-of-{name}", False)


def test_a_loss_after_a_notice_is_a_noticed_one(site: Site) -> None:
    site.api.gentle = True
    (name,) = site.start()
    site.api.put_pod(deleting(site.api.pods_by_name[name], time.time() + 30))
    assert site.pod(name).notice is not None
    site.api.remove_pod(name)
    site.look()
    assert [loss.noticed for loss in site.lost] == [True]


def test_an_object_that_vanishes_between_two_looks_is_a_loss(site: Site) -> None:
    (name,) = site.start()
    site.api.remove_pod(name)
    site.look()
    site.look()
    assert [loss.incarnation for loss in site.lost] == [name]


def test_pods_whose_agents_never_joined_are_no_loss(site: Site) -> None:
    site.cluster.create_pods(1)
    (name,) = site.names
    site.api.bind(name, "n")
    site.cluster.pods()
    site.api.remove_pod(name)
    site.look()
    assert site.lost == []


@pytest.mark.parametrize(("exit_code", "crash"), [(42, True), (1, True), (43, False)])
def test_what_the_code_or_the_agent_did_is_no_loss_of_an_instance(
    site: Site, exit_code: int, crash: bool
) -> None:
    (name,) = site.start()
    site.api.end(name, exit_code)
    pod = site.pod(name)
    assert (pod.crash is not None) == crash
    site.look()
    assert site.lost == []
    if crash:
        assert pod.crash is not None
        assert name in pod.crash.message
        assert abs(pod.crash.at_unix_s - time.time()) < 60


# Silence.


def test_a_silent_node_counts_as_gone_only_with_its_agent(site: Site) -> None:
    (name,) = site.start()
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    node = f"node-of-{name}"
    silent = make_node(node, ready="Unknown", taints=[taint], created_s=time.time() - 99)
    site.store.saw_node(silent)
    assert site.pod(name).phase is PodPhase.RUNNING  # its agent is on the board
    agent = site.agents.pop(name)
    assert site.pod(name).phase is PodPhase.GONE
    site.look()
    assert name in site.names  # it may come back
    assert len(site.lost) == 1
    site.agents[name] = agent
    assert site.pod(name).phase is PodPhase.RUNNING
    site.look()
    site.agents.pop(name)
    site.look()
    assert len(site.lost) == 2


# Help for people.


def test_a_pod_that_cannot_start_says_why(site: Site) -> None:
    site.cluster.create_pods(1)
    (name,) = site.names
    pod = site.api.pods_by_name[name]
    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    status = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    metadata = {**pod["metadata"], "resourceVersion": "999999999"}
    site.api.put_pod({**pod, "metadata": metadata, "status": status})
    assert site.pod(name).trouble.startswith("ImagePull: ImagePullBackOff: not found")


def test_a_pod_that_stays_without_containers_says_where_to_look(site: Site) -> None:
    site.cluster.create_pods(1)
    (name,) = site.names
    pod = site.api.pods_by_name[name]
    status = {"phase": "Pending", "startTime": "2020-01-01T00:00:00Z"}
    spec = {**pod["spec"], "nodeName": "a"}
    metadata = {**pod["metadata"], "resourceVersion": "999999999"}
    site.api.put_pod({**pod, "metadata": metadata, "spec": spec, "status": status})
    trouble = site.pod(name).trouble
    assert trouble.startswith("ContainersNotCreated: it was given node a minutes ago")
    assert f"`kubectl describe pod {name}` says which" in trouble


def test_an_edit_of_the_template_is_for_the_next_pods(site: Site) -> None:
    site.cluster.create_pods(1)
    site.cluster.job = make_job(template=template({"image": "gpt:2"}))
    site.cluster.create_pods(1)
    images = [pod["spec"]["containers"][0]["image"] for pod in site.api.pods_by_name.values()]
    assert images == ["gpt:1", "gpt:2"]

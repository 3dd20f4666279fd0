"""An API server in memory, with the calls of ``ClusterApi``, and an event loop to call it on."""

from __future__ import annotations

import asyncio
import copy
import itertools
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from kube_objects import Object, deleting, ended, next_version

from parcae_operator.kube.errors import ClusterError, ClusterUnavailable, Conflict, NotFound

Listener = Callable[[str, Object], None]
WAIT_S = 20.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        time.sleep(0.005)


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        await asyncio.sleep(0.005)


class FakeApi:
    """Keeps objects; tells listeners as watches do; fails as told. Used from one event loop."""

    def __init__(self) -> None:
        self.pods_by_name: dict[str, Object] = {}
        self.jobs_by_name: dict[str, Object] = {}
        self.nodes_by_name: dict[str, Object] = {}
        self.secrets_by_name: dict[str, Object] = {}
        self.policies_by_name: dict[str, Object] = {}
        self.events: list[Object] = []
        self.calls: list[str] = []
        self.graces: dict[str, int | None] = {}
        self.statuses: list[Object] = []
        """As written, oldest first."""
        self.answers: bool | None = None
        self.down: ClusterError | None = None
        """What every call raises."""
        self.faults: defaultdict[str, deque[ClusterError]] = defaultdict(deque)
        """What the next calls of that name raise; done nevertheless where the fault says so."""
        self.lost_answers: set[str] = set()
        """Calls that are carried out although they raise."""
        self.gentle = False
        """Deleted pods stay until a kubelet has ended them."""
        self.on_pod: Listener = lambda kind, obj: None
        self.on_job: Listener = lambda kind, obj: None
        self._uids = itertools.count()

    def count(self, name: str) -> int:
        return sum(call == name for call in self.calls)

    # As ClusterApi.

    async def jobs(self, namespace: str = "") -> list[Object]:
        self._meet("jobs")
        await asyncio.sleep(0)
        return [copy.deepcopy(job) for job in self.jobs_by_name.values()]

    async def pods(self, label_selector: str, namespace: str = "") -> list[Object]:
        self._meet("pods")
        assert label_selector == "parcae.dev/job"
        found = [copy.deepcopy(pod) for pod in self.pods_by_name.values()]
        await asyncio.sleep(0)
        return found

    async def nodes(self) -> list[Object]:
        self._meet("nodes")
        return [copy.deepcopy(node) for node in self.nodes_by_name.values()]

    async def create_pod(self, pod: Object) -> Object:
        error = self._fault("create_pod")
        if error is not None and "create_pod" not in self.lost_answers:
            raise error
        name = pod["metadata"]["name"]
        if name in self.pods_by_name:
            raise Conflict(f"{name} exists")
        made = copy.deepcopy(pod)
        made["metadata"].update(
            uid=f"pod-{next(self._uids)}",
            resourceVersion=next_version(),
            creationTimestamp="2030-03-17T17:46:40Z",
        )
        made["status"] = {"phase": "Pending"}
        self.put_pod(made, "ADDED")
        if error is not None:
            raise error
        return copy.deepcopy(made)

    async def delete_pod(
        self, namespace: str, name: str, uid: str, grace_s: int | None = None
    ) -> None:
        self._meet("delete_pod")
        pod = self.pods_by_name.get(name)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        self.graces[name] = grace_s
        if self.gentle and grace_s != 0:
            if "deletionTimestamp" not in pod["metadata"]:
                self.put_pod(deleting(pod, time.time() + 30))
        else:
            self.remove_pod(name)

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        self._meet("delete_job")
        if name in self.jobs_by_name and self.jobs_by_name[name]["metadata"]["uid"] == uid:
            self.remove_job(name)

    async def write_status(self, namespace: str, name: str, uid: str, status: Object) -> Object:
        self._meet("write_status")
        job = self.jobs_by_name.get(name)
        if job is None:
            raise NotFound(f"{name} is not there")
        if job["metadata"]["uid"] != uid:
            raise Conflict("another uid")
        written = {k: v for k, v in copy.deepcopy(status).items() if v is not None}
        self.statuses.append(written)
        self.put_job({**job, "status": written})
        return {}

    async def put_secret(self, secret: Object) -> None:
        self._meet("put_secret")
        self.secrets_by_name[secret["metadata"]["name"]] = copy.deepcopy(secret)

    async def put_network_policy(self, policy: Object) -> None:
        self._meet("put_network_policy")
        self.policies_by_name[policy["metadata"]["name"]] = copy.deepcopy(policy)

    async def delete_network_policy(self, namespace: str, name: str) -> None:
        self._meet("delete_network_policy")
        self.policies_by_name.pop(name, None)

    async def create_event(self, namespace: str, event: Object) -> None:
        self._meet("create_event")
        self.events.append(event)

    def _meet(self, name: str) -> None:
        if (error := self._fault(name)) is not None:
            raise error

    def _fault(self, name: str) -> ClusterError | None:
        self.calls.append(name)
        self.answers = not isinstance(self.down, ClusterUnavailable)
        if self.down is not None:
            return self.down
        return self.faults[name].popleft() if self.faults[name] else None

    # What others do to objects.

    def put_pod(self, pod: Object, kind: str = "MODIFIED") -> None:
        self.pods_by_name[pod["metadata"]["name"]] = pod
        self.on_pod(kind, copy.deepcopy(pod))

    def remove_pod(self, name: str) -> None:
        self.on_pod("DELETED", self.pods_by_name.pop(name))

    def bind(self, name: str, node: str) -> None:
        """The pod runs there."""
        pod = self.pods_by_name[name]
        metadata = {**pod["metadata"], "resourceVersion": next_version()}
        self.put_pod(
            {
                **pod,
                "metadata": metadata,
                "spec": {**pod["spec"], "nodeName": node},
                "status": {"phase": "Running"},
            }
        )

    def end(self, name: str, exit_code: int, reason: str = "Error") -> None:
        self.put_pod(ended(self.pods_by_name[name], exit_code, reason, time.time()))

    def put_job(self, body: Object, kind: str = "MODIFIED") -> None:
        body = copy.deepcopy(body)
        body["metadata"]["resourceVersion"] = next_version()
        self.jobs_by_name[body["metadata"]["name"]] = body
        self.on_job(kind, copy.deepcopy(body))

    def edit_job(self, name: str, **spec: object) -> None:
        body = copy.deepcopy(self.jobs_by_name[name])
        body["spec"].update(spec)
        body["metadata"]["generation"] += 1
        self.put_job(body)

    def remove_job(self, name: str) -> None:
        self.on_job("DELETED", self.jobs_by_name.pop(name))


class LoopThread:
    """An event loop that runs, for what calls it from other threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WAIT_S)
        self.loop.close()

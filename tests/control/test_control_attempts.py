"""Crashes of the user's code: counted by bursts, tried again more and more rarely."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_world import World

from parcae_api.events import Failed
from parcae_operator.actions import CreatePods, Fail, SetStatus
from parcae_operator.attempts import (
    BURST_S,
    FIRST_BACKOFF_S,
    LONGEST_BACKOFF_S,
    attempts,
    backoff_s,
    unreported,
)
from parcae_operator.controller import decide
from parcae_operator.observation import Crash, Observation, Pod, PodPhase
from parcae_optimizer.reactive import ReactivePlanner


def crashed(name: str, at: float, message: str = "pod ended") -> Pod:
    return Pod(name, PodPhase.GONE, crash=Crash(at, message))


def failed(worker: str, at: float, message: str = "boom", traceback: str = "") -> Failed:
    return Failed(at_unix_s=at, worker=worker, step=1, message=message, traceback=traceback)


def seen(
    *pods: Pod, failures: tuple[Failed, ...] = (), now: float = 1000.0, limit: int = 0
) -> Observation:
    observed = World(most=2, now=now).observe()
    spec = observed.job.spec.model_copy(update={"backoff_limit": limit})
    job = observed.job.model_copy(update={"spec": spec})
    return replace(observed, job=job, pods=pods, failures=failures)


def test_one_fault_on_many_workers_is_one_attempt() -> None:
    found = attempts(
        seen(
            crashed("c", 1000 + BURST_S),
            failures=(failed("b/0", 1001, "second"), failed("a/0", 1000, "first", "trace")),
        )
    )
    assert len(found) == 1
    assert (found[0].first_unix_s, found[0].last_unix_s) == (1000, 1010)
    assert (found[0].message, found[0].traceback) == ("first", "trace")


def test_a_traceback_that_comes_later_is_not_lost() -> None:
    found = attempts(seen(crashed("a", 1000), failures=(failed("b/0", 1001, "b", "trace"),)))
    assert [(a.message, a.traceback) for a in found] == [("b", "trace")]


def test_crashes_that_lie_apart_count_each() -> None:
    found = attempts(seen(crashed("a", 1000), crashed("b", 1001 + BURST_S)))
    assert [a.message for a in found] == ["pod ended", "pod ended"]


@pytest.mark.parametrize("on_board", [True, False])
def test_what_a_worker_reported_its_pod_does_not_report_again(on_board: bool) -> None:
    # The pod's end may be seen much later than the worker's word; the agent's lease is over then.
    world = World().ready("a")
    world.hands["a"].on_board = on_board
    incarnation = "a" if on_board else "a-0123abcd"
    observed = replace(
        world.observe(),
        pods=(crashed("a", 2000),),
        failures=(failed(f"{incarnation}/0", 1000),),
    )
    assert len(attempts(observed)) == 1
    assert unreported(observed) == ()


def test_what_only_the_cluster_saw_is_for_the_board_to_keep() -> None:
    observed = seen(crashed("job-x", 1000, "OOMKilled"))
    (kept,) = unreported(observed)
    assert (kept.at_unix_s, kept.message) == (1000, "OOMKilled")
    again = replace(observed, failures=(kept,))
    assert unreported(again) == ()
    assert len(attempts(again)) == 1
    assert attempts(replace(again, pods=())) == attempts(observed)


def test_the_wait_doubles_up_to_a_limit() -> None:
    waits = [backoff_s(count) for count in range(1, 41)]
    assert waits[:4] == [FIRST_BACKOFF_S * 2**k for k in range(4)]
    assert waits[-1] == LONGEST_BACKOFF_S
    assert waits == sorted(waits)


def test_no_pods_are_asked_for_during_the_wait() -> None:
    def wanted(now: float) -> int:
        observed = seen(crashed("a", 1000), now=now, limit=3)
        actions = decide(observed, ReactivePlanner())
        return sum(action.count for action in actions if isinstance(action, CreatePods))

    assert wanted(1000 + FIRST_BACKOFF_S - 0.1) == 0
    assert wanted(1000 + FIRST_BACKOFF_S) == 2
    assert wanted(1000 - 3600) == 2  # another clock stamped the crash: no wait of an hour


def test_a_crash_that_was_stamped_ahead_hides_no_later_one() -> None:
    def wanted(now: float) -> int:
        observed = seen(crashed("a", 1000 + 3600), crashed("b", 1000), now=now, limit=3)
        actions = decide(observed, ReactivePlanner())
        return sum(action.count for action in actions if isinstance(action, CreatePods))

    assert wanted(1000) == 0
    assert wanted(1000 + 2 * FIRST_BACKOFF_S) > 0


def test_the_limit_ends_the_job_with_the_last_crash() -> None:
    def end(limit: int) -> Fail | None:
        pods = (crashed("a", 100, "one"), crashed("b", 200, "two"))
        actions = decide(seen(*pods, limit=limit), ReactivePlanner())
        return next((action for action in actions if isinstance(action, Fail)), None)

    assert end(0) == Fail("two (attempt 2, spec.backoffLimit is reached)", "")
    assert end(1) == Fail("two (attempt 2, spec.backoffLimit is reached)", "")
    assert end(2) is None


def test_the_first_crash_of_a_job_without_retries_is_told_plainly() -> None:
    actions = decide(seen(failures=(failed("a/0", 1, "boom", "trace"),)), ReactivePlanner())
    assert actions[-1] == Fail("boom", "trace")


def test_the_status_says_which_try_it_is() -> None:
    actions = decide(seen(crashed("a", 900, "boom"), limit=3), ReactivePlanner())
    assert isinstance(actions[0], SetStatus)
    status = actions[0].status
    assert status.failures == 1
    (degraded,) = (c for c in status.conditions if c.type == "Degraded")
    assert degraded.reason == "UserCodeCrashed"
    assert degraded.message == "crash 1 of 3 that are tried again: boom"


def test_losses_of_instances_never_count() -> None:
    observed = seen(*(Pod(f"p{i}", PodPhase.GONE) for i in range(50)))
    assert attempts(observed) == ()

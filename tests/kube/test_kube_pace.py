"""How often others are bothered: retries, and writes of the status."""

from __future__ import annotations

from parcae_api.job_status import JobStatus
from parcae_operator.kube.pace import FIRST_S, LONGEST_S, Pace
from parcae_operator.kube.status_writer import NUMBERS_S, StatusWriter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# Pace.


def test_at_first_there_is_nothing_to_wait_for() -> None:
    pace = Pace(clock=Clock())
    assert pace.may_go()
    assert pace.left_s == 0.0


def test_waits_double_with_jitter_up_to_a_limit() -> None:
    clock = Clock()
    pace = Pace(clock=clock)
    expected = FIRST_S
    for _ in range(12):
        pace.failed()
        assert not pace.may_go()
        assert 0.8 * expected <= pace.left_s <= 1.2 * expected
        expected = min(LONGEST_S, 2 * expected)
        clock.now += pace.left_s
        assert pace.may_go()


def test_no_two_wait_alike() -> None:
    waits = set()
    for _ in range(10):
        pace = Pace(clock=Clock())
        pace.failed()
        waits.add(pace.left_s)
    assert len(waits) == 10


def test_a_success_ends_the_wait_and_begins_anew() -> None:
    pace = Pace(clock=Clock())
    for _ in range(6):
        pace.failed()
    pace.succeeded()
    assert pace.may_go()
    pace.failed()
    assert pace.left_s <= 1.2 * FIRST_S


def test_what_the_server_asks_for_is_kept_within_reason() -> None:
    pace = Pace(clock=Clock())
    pace.failed(retry_after_s=7.0)
    assert pace.left_s == 7.0
    pace = Pace(clock=Clock())
    pace.failed(retry_after_s=86_400.0)
    assert pace.left_s == LONGEST_S


# Writes of the status.


def test_what_people_wait_for_goes_out_at_once() -> None:
    clock = Clock()
    writer = StatusWriter(JobStatus(), clock=clock)
    writer.wrote(JobStatus(step=1))
    assert writer.is_due(JobStatus(step=1, configuration="2x2"))
    assert writer.is_due(JobStatus(step=1, preemptions=1))


def test_numbers_go_out_now_and_then() -> None:
    clock = Clock()
    writer = StatusWriter(JobStatus(), clock=clock)
    assert writer.is_due(JobStatus(step=1))  # nothing was written yet
    writer.wrote(JobStatus(step=1))
    changed = JobStatus(step=2, samples=9, throughput_samples_per_second=3.0)
    assert not writer.is_due(changed)
    clock.now += NUMBERS_S
    assert writer.is_due(changed)


def test_what_stands_there_already_is_never_written() -> None:
    clock = Clock()
    writer = StatusWriter(JobStatus(step=1), clock=clock)
    clock.now += 1000
    assert not writer.is_due(JobStatus(step=1))

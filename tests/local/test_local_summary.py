"""Figures of the summary, from records made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from parcae_agent.ledger import CommittedStep, Ledger
from parcae_api.events import InstanceLost, Migration, MigrationKind, RolledBack
from parcae_api.plan import PlanReason
from parcae_cli.local.describe import describe
from parcae_cli.local.recorder import Recorder
from parcae_cli.local.summary import recovery_seconds, summarize


def step(number: int, at: float, revision: int = 1) -> CommittedStep:
    return CommittedStep(number, revision, "2x1", at, 5.0 - number)


def lost(at: float, *, noticed: bool) -> InstanceLost:
    return InstanceLost(at_unix_s=at, incarnation="a", node="n", noticed=noticed)


def moved(
    at: float, pause: float, *, revision: int = 2, kind: str = "intra_stage", sudden: bool = False
) -> Migration:
    return Migration(
        at_unix_s=at,
        revision=revision,
        kind=MigrationKind(kind),
        reason=PlanReason.LOSS if sudden else PlanReason.NOTICE,
        resumed_step=1,
        bytes_moved=100,
        pause_seconds=pause,
        transfer_seconds=0.0,
        steps_replayed=int(sudden),
        sudden=sudden,
    )


def test_recovery_is_loss_to_commit_less_a_step() -> None:
    steps = [step(0, 10.0), step(1, 12.0, 2), step(2, 12.5, 2)]
    events = [lost(11.0, noticed=False), moved(11.3, 0.2, sudden=True)]
    assert recovery_seconds(events, steps) == [pytest.approx(0.5)]


def test_noticed_losses_recover_from_nothing() -> None:
    steps = [step(0, 10.0), step(1, 12.0, 2), step(2, 12.5, 2)]
    assert recovery_seconds([lost(11.0, noticed=True), moved(11.3, 0.2)], steps) == []


def test_a_change_without_a_loss_of_its_own_recovers_from_none() -> None:
    steps = [step(0, 10.0), step(1, 12.0, 2), step(2, 12.5, 2), step(3, 60.0, 3), step(4, 60.5, 3)]
    events = [
        lost(11.0, noticed=False),
        moved(11.3, 0.2, sudden=True),
        # A revision broke by itself, or a noticed instance was not off in time.
        moved(59.0, 0.2, revision=3, sudden=True),
    ]
    assert recovery_seconds(events, steps) == [pytest.approx(0.5)]


def test_several_losses_before_one_change_count_from_the_first() -> None:
    steps = [step(0, 10.0), step(1, 12.0, 3), step(2, 12.5, 3)]
    events = [
        lost(10.5, noticed=False),
        lost(11.0, noticed=False),
        moved(11.3, 0.2, revision=3, sudden=True),
    ]
    assert recovery_seconds(events, steps) == [pytest.approx(1.0)]


def test_the_loss_of_a_standby_is_not_felt() -> None:
    """Steps went on to be committed: the change that came later answered another loss."""
    steps = [step(k, 10.0 + k) for k in range(9)] + [step(9, 20.5, 2), step(10, 21.5, 2)]
    events = [
        lost(11.5, noticed=False),
        lost(18.5, noticed=False),
        moved(19.5, 0.2, sudden=True),
    ]
    assert recovery_seconds(events, steps) == [pytest.approx(1.0)]


def test_a_single_step_is_compared_with_the_usual_one() -> None:
    steps = [step(0, 10.0), step(1, 10.5), step(2, 11.0), step(3, 13.0, 2)]
    events = [lost(12.0, noticed=False), moved(12.3, 0.2, sudden=True)]
    assert recovery_seconds(events, steps) == [pytest.approx(0.5)]


def test_a_loss_that_nothing_followed_has_no_recovery() -> None:
    events = [lost(12.0, noticed=False), moved(12.3, 0.2, sudden=True)]
    assert recovery_seconds(events, [step(0, 10.0)]) == []


def test_counts_and_spreads(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "events.jsonl")
    for pause in (0.1, 0.2, 0.3, 0.4):
        recorder.report(moved(1.0, pause))
    recorder.report(moved(2.0, 0.5, kind="pipeline", sudden=True))
    recorder.report(lost(1.0, noticed=True))
    recorder.report(lost(1.0, noticed=False))
    recorder.close()
    ledger = Ledger([step(k, 10.0 + k) for k in range(5)], 40, 0, 0)
    summary = summarize(recorder, ledger, outcome="done", digests=None, verification=None)
    intra = summary["migrations"]["intra_stage"]
    assert intra == {
        "count": 4,
        "bytes": 400,
        "pause_seconds": {"p50": 0.2, "p95": 0.4, "max": 0.4},
    }
    assert summary["migrations"]["inter_stage"]["pause_seconds"]["max"] is None
    assert summary["preemptions"] == {"noticed": 1, "sudden": 1}
    assert summary["steps_replayed"] == 1
    assert summary["samples_per_second"] == pytest.approx(40 * 4 / 5 / 4)
    assert (summary["first_loss"], summary["final_loss"]) == (5.0, 1.0)
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 7


def test_state_read_from_a_checkpoint_is_no_rollback_where_no_step_was_lost(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path / "events.jsonl")
    for to_step in (20, 10, 0):
        recorder.report(
            RolledBack(at_unix_s=1.0, revision=2, from_step=20, to_step=to_step, layers=("a",))
        )
    recorder.close()
    summary = summarize(recorder, Ledger([], 0, 0, 0), outcome="-", digests=None, verification=None)
    assert (summary["rollbacks"], summary["restores"]) == (2, 1)
    assert describe(recorder.events[0]) == (
        "a layer had no holder left: read from the checkpoint of step 20, no step lost"
    )
    assert describe(recorder.events[1]) == (
        "a layer had no holder left: back from step 20 to the checkpoint of step 10"
    )


def test_a_run_that_committed_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "events.jsonl")
    recorder.close()
    summary = summarize(recorder, Ledger([], 0, 0, 0), outcome="-", digests=None, verification=None)
    assert summary["samples_per_second"] is None
    assert summary["final_loss"] is None
    assert summary["plan_changes"] == 0

"""What `parcae status` shows of a job."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_objects import Object, job_body, rfc3339
from rich.console import Console
from status_objects import NOW, TRAINING, body_of, condition

from parcae_api.errors import ParcaeError
from parcae_api.job_status import (
    Condition,
    ConditionType,
    InstanceCounts,
    JobStatus,
    Phase,
)
from parcae_cli.status_view import age, read_view, render
from parcae_operator.kube.objects import dump_status


def shown(body: Object, width: int = 120) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    console.print(render(read_view(body), NOW))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


# What is shown.


def test_a_job_at_a_glance() -> None:
    assert shown(body_of(TRAINING)) == (
        "gpt  team   Training   2×2   revision 7\n"
        "\n"
        "step         1,234 of 5,000  ━━━━━━━                         24.7 %\n"
        "samples      39,488 committed\n"
        "speed        123.5 samples/s now; 99.9 expected under preemptions\n"
        "instances    4 training, 1 standby, 2 pending\n"
        "preemptions  5 lost, 3 of them after a notice\n"
        "migrations   6; the last one 5 min ago: revision 7, inter-stage, paused 0.42 s, "
        "12.3 MB moved, 1 step "
        "replayed\n"
        "started      4 d ago\n"
        "\n"
        "condition         since  reason              message\n"
        "Ready      True   3 min  Training            trains as 2x2\n"
        "Degraded   True   3 min  PlannerUnavailable  plans are reactive\n"
        "Suspended  False  3 min  NotSuspended\n"
        "\n"
        "decided    revision  answers  layout  why\n"
        "5 min ago         7  loss     2×2     2x2 is the best of 4 instances\n"
        "2 h ago           6  suspend  paused  spec.suspend is true"
    )


def test_a_job_that_no_operator_has_seen() -> None:
    text = shown(body_of(None))
    assert text.splitlines() == [
        "gpt  team   Pending",
        "no operator has written a status yet; is one running?",
    ]


def test_an_edit_that_is_not_acted_on() -> None:
    assert "newest edit" in shown(body_of(TRAINING, generation=2))
    assert "newest edit" not in shown(body_of(TRAINING, generation=1))


def test_a_job_that_is_being_deleted() -> None:
    assert "is being deleted" in shown(body_of(TRAINING, deletionTimestamp=rfc3339(NOW)))


def test_before_the_users_code_is_loaded_there_is_no_bar() -> None:
    status = TRAINING.model_copy(update={"total_steps": 0, "step": 0, "last_migration": None})
    text = shown(body_of(status))
    assert "%" not in text
    assert "migrations   6\n" in text


def test_more_steps_than_all_do_not_break_the_bar() -> None:
    assert "100.0 %" in shown(body_of(TRAINING.model_copy(update={"step": 6000})))


def test_a_job_that_is_over() -> None:
    status = TRAINING.model_copy(
        update={
            "phase": Phase.FAILED,
            "conditions": (condition("Failed", True, "UserCodeFailed", "ValueError: boom"),),
            "completion_time": rfc3339(NOW - 50),
            "failures": 2,
            "instance_counts": InstanceCounts(),
        }
    )
    text = shown(body_of(status))
    assert "over         50 s ago" in text
    assert "2 crashes of the user's code" in text
    assert "instances    none" in text


def test_messages_are_text_not_commands() -> None:
    evil = "\x1b]0;owned\x07 [bold red]loud[/] \x1b[2J\r\nnext"
    status = TRAINING.model_copy(update={"conditions": (condition("Ready", True, "X", evil),)})
    text = shown(body_of(status))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold red]loud[/]" in text


def test_a_long_reason_is_wrapped_and_nothing_else_is() -> None:
    decision = TRAINING.decisions[0].model_copy(update={"why": "word " * 60})
    text = shown(body_of(TRAINING.model_copy(update={"decisions": (decision,)})), width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.count("word") == 60
    assert "5 min ago         7  loss     2×2     word" in text


def test_a_status_of_another_version_is_no_crash() -> None:
    body = body_of(TRAINING)
    body["status"]["phase"] = "Dreaming"
    with pytest.raises(ParcaeError, match=r"gpt: its status is of another version.*-o json"):
        read_view(body)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5000, "83 min"),
        (7200, "2 h"),
        (864_000, "10 d"),
        (-5, "0 s"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert age(rfc3339(NOW - seconds), NOW) == text


@settings(max_examples=60)
@given(
    st.builds(
        JobStatus,
        step=st.integers(0, 10**12),
        total_steps=st.integers(0, 10**12),
        configuration=st.text(max_size=64),
        start_time=st.text(max_size=32),
        throughput_samples_per_second=st.floats(),
        conditions=st.lists(
            st.builds(
                Condition,
                type=st.sampled_from(ConditionType),
                status=st.sampled_from(["True", "False", "Unknown"]),
                reason=st.text(max_size=20),
                message=st.text(max_size=200),
                last_transition_time=st.text(max_size=32),
            ),
            max_size=4,
        ).map(tuple),
    ),
    st.integers(20, 200),
)
def test_whatever_a_status_holds_it_is_shown(status: JobStatus, width: int) -> None:
    body = job_body()
    body["status"] = dump_status(status)
    assert shown(body, width)

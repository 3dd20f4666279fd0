"""The pure parts: remembering, parsing, settings."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parcae_agent.notices import aws, azure
from parcae_agent.notices.asking import Unanswered, _wait_s
from parcae_agent.notices.settings import Listen, NoticeSettings, notice_settings
from parcae_agent.notices.signs import CERTAIN_WITHIN_S, Hearing, Sign, planned
from parcae_api.errors import InputError

T0 = 1_900_000_000.0

signs = st.builds(
    Sign,
    source=st.sampled_from(["a", "b"]),
    certain=st.booleans(),
    deadline_unix_s=st.none() | st.integers(0, 500).map(lambda s: T0 + s),
    lead_s=st.none() | st.just(30.0),
)


@given(st.lists(st.tuples(st.sampled_from("pq"), st.lists(signs, max_size=3)), max_size=8))
def test_notice_stays_and_its_deadline_only_falls(answers: list[tuple[str, list[Sign]]]) -> None:
    hearing = Hearing()
    last_s = float("inf")
    for index, (question, found) in enumerate(answers):
        heard = hearing.take(question, found, T0 + index)
        assert heard == hearing.take(question, found, T0 + index), "twice is once"
        if heard.notice is not None:
            assert heard.notice.deadline_unix_s <= last_s
            last_s = heard.notice.deadline_unix_s
        else:
            assert last_s == float("inf")


def test_hint_keeps_its_beginning() -> None:
    hearing = Hearing()
    hint = Sign("h", certain=False, lead_s=60.0)
    first = hearing.take("q", [hint], T0).hint
    assert hearing.take("q", [hint], T0 + 50).hint == first
    assert hearing.take("other", [], T0 + 51).hint == first
    assert hearing.take("q", [], T0 + 52).hint is None


def test_of_two_hints_the_first_that_falls_due() -> None:
    hearing = Hearing()
    never, soon = Sign("never", certain=False), Sign("soon", certain=False, deadline_unix_s=T0)
    found = hearing.take("q", [never, soon], T0).hint
    assert found is not None
    assert found.source == "soon"


def test_planned() -> None:
    assert not planned("p", T0 + CERTAIN_WITHIN_S + 1, T0).certain
    assert planned("p", T0 + CERTAIN_WITHIN_S, T0).certain
    assert planned("p", T0 - 50, T0).deadline_unix_s == T0, "overdue: at any moment"


@given(st.text() | st.sampled_from(['{"Events": 3}', '{"Events": [3]}', "[[", '{"action": 1}']))
def test_parsers_raise_nothing_else(text: str) -> None:
    for parse in (
        lambda: aws.interruption(text),
        lambda: aws.scheduled(text, T0),
        lambda: azure.scheduled(text, "m", T0),
    ):
        with contextlib.suppress(Unanswered):
            assert isinstance(parse(), tuple)


@pytest.mark.parametrize(
    ("provider_id", "name"),
    [
        (
            "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/"
            "virtualMachineScaleSets/AKS-gpu-vmss/virtualMachines/12",
            "aks-gpu-vmss_12",
        ),
        ("azure:///subscriptions/s/virtualMachines/Box-1", "box-1"),
        ("aws:///us-east-1a/i-0abc", ""),
        ("", ""),
    ],
)
def test_azure_machine_names(provider_id: str, name: str) -> None:
    assert azure.machine_name(provider_id) == name


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("3", 3.0), ("", 10.0), ("soon", 10.0), ("-5", 0.0), ("1e9", 300.0), ("nan", 10.0)],
)
def test_retry_after(said: str, seconds: float) -> None:
    assert _wait_s(said) == seconds


def test_retry_after_as_a_date() -> None:
    assert _wait_s("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert _wait_s("Wed, 21 Oct 2099 07:28:00 GMT") == 300.0


def test_settings_from_the_environment() -> None:
    assert notice_settings({}) == NoticeSettings()
    environment = {
        "PARCAE_SPOT_NOTICES": "off",
        "PARCAE_METADATA_URL": "http://127.0.0.1:8080/",
        "PARCAE_METADATA_POLL_S": "0.5",
        "PARCAE_METADATA_TIMEOUT_S": "",
        "PARCAE_PROVIDER_ID": "azure:///x",
        "PARCAE_GRACE_S": "25",
    }
    assert notice_settings(environment) == NoticeSettings(
        listen=Listen.OFF,
        url="http://127.0.0.1:8080",
        poll_s=0.5,
        provider_id="azure:///x",
        grace_s=25.0,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PARCAE_SPOT_NOTICES", "perhaps"),
        ("PARCAE_METADATA_URL", "https://a/b"),
        ("PARCAE_METADATA_POLL_S", "nan"),
        ("PARCAE_METADATA_TIMEOUT_S", "0"),
        ("PARCAE_GRACE_S", "-1"),
    ],
)
def test_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(InputError, match=name):
        notice_settings({name: value})

"""What an agent is told at its start, and what it says when that is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from supervisor_desk import make_config

from parcae_agent.settings import AgentConfig, from_environment
from parcae_api.errors import InputError


def test_a_configuration_travels_through_the_environment(tmp_path: Path) -> None:
    config = make_config("http://127.0.0.1:2379", tmp_path)
    raw = config.to_json().decode()
    told = from_environment({"PARCAE_AGENT": raw})
    assert told == config.model_copy(update={"metrics_port": 8082})
    none = {"PARCAE_METRICS_PORT": "0"}
    assert from_environment({"PARCAE_AGENT": raw, **none}) == config


def test_without_it_the_agent_says_who_starts_agents() -> None:
    with pytest.raises(InputError, match="PARCAE_AGENT: is not set; agents are started by"):
        from_environment({})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("{", "PARCAE_AGENT: the object: Invalid JSON"),
        ("{}", "PARCAE_AGENT: endpoints: is required; add it"),
    ],
)
def test_what_is_wrong_is_named(raw: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        from_environment({"PARCAE_AGENT": raw})


def test_probes_do_not_travel(tmp_path: Path) -> None:
    config = make_config("http://127.0.0.1:2379", tmp_path, probe=print)
    assert AgentConfig.from_json(config.to_json()).probe is not print


def test_the_program_says_it_in_one_line() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PARCAE_AGENT"}
    done = subprocess.run(
        [sys.executable, "-m", "parcae_agent"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "parcae-agent: PARCAE_AGENT: is not set; agents are started by the operator\n"
    )

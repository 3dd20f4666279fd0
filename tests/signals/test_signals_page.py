"""docs/notices.md says what the tables in the code say."""

from __future__ import annotations

import re

from notice_tables import PAGE, written

from parcae_agent.notices.settings import _VARIABLES


def test_page_shows_the_tables_of_the_code() -> None:
    page = PAGE.read_text()
    assert page == written(page), "run tests/signals/notice_tables.py"


def test_page_names_every_variable() -> None:
    named = set(re.findall(r"`(PARCAE_[A-Z_]+)", PAGE.read_text()))
    assert set(_VARIABLES.values()) <= named


def test_page_names_every_source_of_an_agent() -> None:
    page = PAGE.read_text()
    for source in (
        "sigterm",
        "aws-spot-terminate",
        "aws-spot-stop",
        "aws-spot-hibernate",
        "aws-asg-terminated",
        "aws-rebalance",
        "gce-preempted",
        "gce-maintenance-terminate",
        "azure-preempt",
        "azure-terminate",
        "azure-redeploy",
    ):
        assert f"`{source}`" in page

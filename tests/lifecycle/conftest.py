"""A cluster that enforces network policies, with our images on it and nothing installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, NodeSpec
from tests.cluster.fixtures import cluster_needs
from tests.deploy import torch
from tests.lifecycle.story import SPOT, Story
from tests.preparation import build_images

__all__ = ["cluster_needs"]

_stories: list[Story] = []


@pytest.fixture(scope="package")
def story(cluster_needs: None) -> Iterator[Story]:
    """One node that stays and two on spot."""
    nodes = [NodeSpec("safe"), *(NodeSpec(f"spot-{n}", SPOT) for n in (1, 2))]
    stage = Path(tempfile.mkdtemp(prefix="parcae-lifecycle-"))
    name = f"life-{os.getpid()}"
    try:
        with Cluster.up(name, nodes, archives=build_images(), enforces_policies=True) as cluster:
            cluster.apply(*torch.policy())
            story = Story(cluster, stage)
            _stories.append(story)
            story.furnish()
            yield story
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed and _stories:  # type: ignore[attr-defined]
        _stories[0].broken = _stories[0].broken or item.name
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures = [figure for story in _stories for figure in story.figures.items()]
    if figures:
        terminalreporter.section("a chart's life in figures")
        width = max(len(what) for what, _ in figures)
        for what, measured in figures:
            terminalreporter.write_line(f"{what:{width}}  {measured}")

"""A metadata service per cloud, and a listener that is quick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from metadata_servers import MetadataServer
from notice_ear import Ear, MakeEar, MakeServer


@pytest.fixture
def make_server() -> Iterator[MakeServer]:
    servers: list[MetadataServer] = []

    def make(cloud: str) -> MetadataServer:
        servers.append(MetadataServer(cloud))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def make_ear() -> Iterator[MakeEar]:
    """Ears at an address; options as for ``NoticeSettings``."""
    ears: list[Ear] = []

    def make(url: str, **options: Any) -> Ear:
        ears.append(Ear(url, **options))
        return ears[-1]

    yield make
    for ear in ears:
        ear.close()

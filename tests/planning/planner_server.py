"""A planner service on a socket, for a test's time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from parcae_api.planning import Planner
from parcae_optimizer.service import make_app
from parcae_predictor import predictor_of


@contextmanager
def serving(planner: Planner | None = None) -> Iterator[str]:
    """A service on a free port, of the liveput planner if none is given."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(predictor_of("hazard"), planner), log_level="critical", lifespan="off"
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield "http://{}:{}".format(*listening.getsockname())
    finally:
        server.should_exit = True
        thread.join()
        listening.close()

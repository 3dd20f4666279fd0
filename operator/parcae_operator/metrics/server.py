"""Answers Prometheus, on threads of its own: the event loop and the jobs' threads go on."""

from __future__ import annotations

import logging
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from parcae_operator.metrics.text import CONTENT_TYPE, write_text

_log = logging.getLogger(__name__)

_PATH = "/metrics"
_CLIENT_S = 10.0
"""How long a client may take to ask, and to take its answer."""
_POLL_S = 0.1


class MetricsServer:
    """Serves a registry at ``/metrics``.

    Args:
        registry: What to tell.
        port: To listen on; 0 takes a free one.
        host: To listen on.

    Raises:
        OSError: the port cannot be had.
    """

    def __init__(self, registry: CollectorRegistry, port: int, host: str = "0.0.0.0") -> None:
        self._server = _Server((host, port), _handler(registry))
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Does not wait for answers that are under way."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        # Not HTTPServer's: it looks this host's name up, which may take as long as a resolver does.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "parcae-operator", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        _log.debug("a client of the metrics went away", exc_info=True)


def _handler(registry: CollectorRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_S

        def do_GET(self) -> None:
            if urlsplit(self.path).path != _PATH:
                self.send_error(404, f"metrics are at {_PATH}")
                return
            body = write_text(registry)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """A scrape every few seconds is no news."""

    return Handler

"""Answers Prometheus, on threads of its own: whatever else the program does goes on."""

from __future__ import annotations

import gzip
import logging
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from parcae_api.exposition import CONTENT_TYPE

_log = logging.getLogger(__name__)

_PATH = "/metrics"
_CLIENT_S = 10.0
"""How long a client may take to ask, and to take its answer."""
_POLL_S = 0.1


class ScrapeServer:
    """Serves ``/metrics``.

    Args:
        answer: Makes the text, anew for each scrape; called from threads of the server's.
        port: To listen on; 0 takes a free one.
        host: To listen on.

    Raises:
        OSError: the port cannot be had.
    """

    def __init__(self, answer: Callable[[], bytes], port: int, host: str = "0.0.0.0") -> None:
        self._server = _Server((host, port), _handler(answer))
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
        self.server_name, self.server_port = "parcae", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        _log.debug("a client of the metrics went away", exc_info=True)


def _takes_gzip(accepted: str) -> bool:
    """Whether a client asks for it, as Prometheus does; an answer is six times smaller then."""
    for each in accepted.split(","):
        name, _, quality = each.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _handler(answer: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_S

        def do_GET(self) -> None:
            if urlsplit(self.path).path != _PATH:
                self.send_error(404, f"metrics are at {_PATH}")
                return
            try:
                body = answer()
            except Exception:
                _log.exception("the metrics cannot be told")
                self.send_error(500, "the log says why")
                return
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            if _takes_gzip(self.headers.get("Accept-Encoding", "")):
                body = gzip.compress(body, compresslevel=1)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """A scrape every few seconds is no news."""

    return Handler

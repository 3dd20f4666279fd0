"""The API server on a port of the machine's own loopback, for programs outside the cluster.

``python -m tests.cluster.forwarder FOLDER NAMESPACE PORT-FILE``: listens on 127.0.0.1, and connects
with sockets that were made in the cluster's network namespace, so no wire leads out of it.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from .layout import API_PORT, GATEWAY
from .namespaces import Network

CHUNK_BYTES = 256 * 1024


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes on what comes until one side ends; the end is passed on, too."""
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
            return
    writer.close()


async def _serve(network: Network, port_file: Path) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner = None
        try:
            inner = network.socket()
            inner.setblocking(False)
            await asyncio.get_running_loop().sock_connect(inner, (GATEWAY, API_PORT))
            far_reader, far_writer = await asyncio.open_connection(sock=inner)
        except Exception as error:  # the API server is down: this connection ends, not the program
            print(f"no API server: {error!r}", flush=True)
            if inner is not None:
                inner.close()
            writer.close()
            return
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        for one in (writer, far_writer):
            one.close()

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    unfinished = port_file.with_suffix(".new")
    unfinished.write_text(str(port))
    unfinished.rename(port_file)
    async with server:
        await server.serve_forever()


def main() -> None:
    folder, name, port_file = sys.argv[1:]
    asyncio.run(_serve(Network.at(Path(folder), name), Path(port_file)))


if __name__ == "__main__":
    main()

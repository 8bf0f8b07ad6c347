"""A TCP proxy that does to a connection what networks do: delay, cut, swallow replies, refuse."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any


class Proxy:
    """Forwards a free loopback port to `port`; runs in a thread of its own.

        with Proxy(server.port, round_trip_s=0.005) as proxy:
            ...  # connect to proxy.port
            proxy.cut()            # every connection breaks now
            proxy.swallow = True   # requests arrive, replies are lost (the connection then breaks)
            proxy.refuse = True    # new connections are refused, open ones are cut

    `round_trip_s` is added to each round trip, half on each way; what is sent together arrives together. With `tls` it is the end
    of the TLS connections, which any Redis then has, also one that was built without.
    """

    def __init__(self, port: int, *, round_trip_s: float = 0.0, tls: ssl.SSLContext | None = None) -> None:
        self.round_trip_s = round_trip_s
        self._tls = tls
        self.swallow = False
        self._target = port
        self._refuse = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self.port = 0

    @property
    def refuse(self) -> bool:
        return self._refuse

    @refuse.setter
    def refuse(self, value: bool) -> None:
        self._refuse = value
        if value:
            self.cut()

    def cut(self) -> None:
        """Break every open connection."""
        self._call(self._cut())

    async def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuse:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pump(reader, far_writer, reply=False), self._pump(far_reader, writer, reply=True))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, reply: bool) -> None:
        """Copies until the end; each piece is delayed by itself, so the delay does not limit the throughput."""
        pending: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while (entry := await pending.get())[1]:
                wait = entry[0] - self._loop.time()
                if wait > 0:
                    await asyncio.sleep(wait)
                writer.write(entry[1])

        delivery = asyncio.ensure_future(deliver())
        try:
            while data := await reader.read(1 << 16):
                if reply and self.swallow:
                    break
                pending.put_nowait((self._loop.time() + self.round_trip_s / 2, data))
        except OSError:
            pass
        pending.put_nowait((0.0, b""))
        await delivery
        self._writers.discard(writer)
        writer.transport.abort()

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._server: asyncio.Server = self._call(asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        await self._cut()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

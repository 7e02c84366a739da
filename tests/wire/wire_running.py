"""A server over the toy engine, in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from wire_fakes import FakeBackend

from gpudb.wire.server import Server, ServerOptions, new_event_loop

LOOPS = {"uvloop": new_event_loop, "asyncio": asyncio.new_event_loop}


class Running:
    """A server that runs until ``stop``."""

    def __init__(self, options: ServerOptions, loop: asyncio.AbstractEventLoop) -> None:
        self.backend = FakeBackend()
        self.loop = loop
        self._options = options
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self.server: Server | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._started.wait(10)

    @property
    def port(self) -> int:
        assert self.server is not None
        return self.server.port

    def conninfo(self, **more: Any) -> str:
        given = {
            "host": "127.0.0.1", "port": self.port, "user": "tester", "dbname": "db",
            "password": "secret", "sslmode": "disable", "connect_timeout": 10,
        } | more  # fmt: skip
        return " ".join(f"{key}='{value}'" for key, value in given.items())

    def stop(self) -> None:
        """End it; the second time nothing happens."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(15)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self.server = Server(self.backend, self._options)
        await self.server.start()
        self._started.set()
        await self._stop.wait()
        await self.server.stop()

"""Joins the wire's server with a database: what ``gpudb serve`` runs."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from pathlib import Path

from gpudb.database import Database, Options
from gpudb.wire import server

SWITCH_INTERVAL_SECONDS = 0.0005
"""How often Python threads take turns: short statements must not wait for planning ones."""


@dataclass(frozen=True, slots=True)
class Listener:
    host: str
    port: int
    auth: str
    tls_certificate: Path | None = None
    tls_key: Path | None = None


def serve(
    listener: Listener, data: Path, *, threads: int, device: str, settings: dict[str, str]
) -> None:
    """Open the data directory and serve it until SIGTERM or SIGINT."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    database = Database(data, Options(threads=threads, device=device, settings=settings))
    options = server.ServerOptions(
        host=listener.host,
        port=listener.port,
        method="trust" if listener.auth == "trust" else "scram-sha-256",
        certificate_file=str(listener.tls_certificate or ""),
        key_file=str(listener.tls_key or ""),
    )

    def ready(port: int) -> None:
        print(f"gpudb is ready: psql -h {listener.host} -p {port} -U postgres postgres", flush=True)

    try:
        server.run(database, options, ready)
    finally:
        database.close()

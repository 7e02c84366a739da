"""Servers over the toy engine as fixtures, and a certificate for TLS."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wire_running import LOOPS, Running

from gpudb.wire.server import ServerOptions


@pytest.fixture
def run_server() -> Iterator[Callable[..., Running]]:
    """Starts servers with the given options; stops them at the end."""
    running: list[Running] = []

    def start(loop: str = "uvloop", **options: Any) -> Running:
        given = {"port": 0, "method": "trust", **options}
        running.append(Running(ServerOptions(**given), LOOPS[loop]()))
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.fixture(params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest, run_server: Callable[..., Running]) -> Running:
    return run_server(request.param)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A self-signed certificate for localhost and its key (PEM files)."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    day = datetime.datetime(2024, 1, 1)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name)
        .public_key(key.public_key()).serial_number(1)
        .not_valid_before(day).not_valid_after(day + datetime.timedelta(36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("tls")
    (folder / "server.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(folder / "server.crt"), str(folder / "server.key")

"""The command line: argument parsing only."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TextIO

import click

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.group()
def main() -> None:
    """gpudb: an analytical SQL database that PostgreSQL clients connect to."""


@main.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Data directory.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=5433, show_default=True)
@click.option("--threads", default=0, help="Worker threads; 0 = one a core.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
@click.option("--auth", type=click.Choice(["trust", "scram-sha-256"]), default="trust")
@click.option("--tls-cert", type=click.Path(path_type=Path, exists=True))
@click.option("--tls-key", type=click.Path(path_type=Path, exists=True))
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A server setting.")
@click.option(
    "--trust-remote", is_flag=True, help="Allow trust authentication on a non-loopback host."
)
def serve(
    data: Path,
    host: str,
    port: int,
    threads: int,
    device: str,
    auth: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    settings: tuple[str, ...],
    trust_remote: bool,
) -> None:
    """Serve a data directory until SIGTERM or SIGINT."""
    from gpudb import serving

    if auth == "trust" and host not in LOOPBACK and not trust_remote:
        raise click.UsageError(
            "trust authentication on a non-loopback address lets anybody in: "
            "use --auth scram-sha-256, or --trust-remote if the network is closed"
        )
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    serving.serve(
        serving.Listener(host, port, auth, tls_cert, tls_key),
        data,
        threads=threads,
        device=device,
        settings=dict(_pairs(settings)),
    )


def _pairs(settings: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--set takes NAME=VALUE, not {item!r}")
        pairs.append((name, value))
    return pairs


@main.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Data directory.")
@click.option("-c", "command", help="SQL to run.")
@click.option("-f", "file", type=click.File("r", encoding="utf-8"), help="File of SQL to run.")
@click.option("--threads", default=0, help="Worker threads; 0 = one a core.")
def sql(data: Path, command: str | None, file: TextIO | None, threads: int) -> None:
    """Run SQL on a data directory without a server; without -c and -f reads standard input."""
    from gpudb import shell

    if command is None:
        command = (sys.stdin if file is None else file).read()
    sys.exit(shell.run(data, command, sys.stdout, sys.stderr, threads=threads))


@main.command()
@click.argument("role", default="postgres")
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Data directory.")
def passwd(role: str, data: Path) -> None:
    """Set a role's password, asked for on the terminal (or read from standard input)."""
    from gpudb import shell

    if sys.stdin.isatty():
        password = getpass.getpass("New password: ")
        if password != getpass.getpass("Again: "):
            raise click.ClickException("the passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    shell.set_password(data, role, password)


if __name__ == "__main__":
    main()

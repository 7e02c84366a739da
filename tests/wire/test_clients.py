"""Real drivers against the toy engine: psycopg, psycopg2, asyncpg, psql, SQLAlchemy's pool."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
import time
from collections.abc import Callable

import asyncpg
import psycopg
import psycopg2
import pytest
from wire_running import Running

from gpudb.errors import QueryCanceled

Start = Callable[..., Running]


@pytest.fixture
def scram(run_server: Start) -> Running:
    return run_server(method="scram-sha-256")


def test_psycopg(scram: Running) -> None:
    with psycopg.connect(scram.conninfo(application_name="t"), autocommit=True) as connection:
        assert connection.info.server_version == 150018
        assert connection.info.parameter_status("application_name") == "t"
        assert connection.execute("select 1, 'x', null").fetchall() == [(1, "x", None)]
        rows = connection.execute("mixed 5000").fetchall()
        assert len(rows) == 5000
        assert rows[1] == (1, "row 1", -1)
        assert rows[35] == (35, None, None)
        cursor = connection.cursor(binary=True)
        assert cursor.execute("mixed 5000").fetchall() == rows
        assert connection.execute("select %s", ["é"]).fetchone() == ("é",)
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("fail after 500")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        notices: list[str | None] = []
        connection.add_notice_handler(lambda note: notices.append(note.message_primary))
        connection.execute("notice careful")
        assert notices == ["careful"]


def test_psycopg_transactions_and_prepared_statements(scram: Running) -> None:
    with psycopg.connect(scram.conninfo()) as connection:
        for _ in range(8):  # named statements from the sixth on
            assert connection.execute("select %s", ["a"]).fetchone() == ("a",)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("nonsense")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        connection.rollback()
        assert connection.execute("select 2").fetchone() == (2,)


def test_psycopg_pipeline(scram: Running) -> None:
    with psycopg.connect(scram.conninfo(), autocommit=True) as connection:
        with connection.pipeline():
            cursors = [connection.execute("select %s", [str(n)]) for n in range(500)]
            assert [cursor.fetchone() for cursor in cursors] == [(str(n),) for n in range(500)]
        with pytest.raises(psycopg.errors.DivisionByZero), connection.pipeline():
            connection.execute("select 1")
            connection.execute("fail")
            connection.execute("select 2")
        assert connection.execute("select 3").fetchone() == (3,)


def test_psycopg_stream_and_copy(scram: Running) -> None:
    with psycopg.connect(scram.conninfo(), autocommit=True) as connection:
        cursor = connection.cursor()
        assert sum(row[0] for row in cursor.stream("rows 3000")) == 3000 * 2999 // 2
        with cursor.copy("copy out 3") as copy:
            assert b"".join(copy) == b"0\n1\n2\n"
        with cursor.copy("copy in") as copy:
            for number in range(1000):
                copy.write(b"%d\t x\n" % number)
        assert cursor.statusmessage == "COPY 1000"
        wrong = psycopg.errors.InvalidTextRepresentation
        with pytest.raises(wrong), cursor.copy("copy in") as copy:
            copy.write(b"bad\n")
        with pytest.raises(RuntimeError), cursor.copy("copy in"):
            raise RuntimeError("no more")  # psycopg sends CopyFail
        assert isinstance(scram.backend.sessions[0].failures[-1], QueryCanceled)
        assert connection.execute("select 1").fetchone() == (1,)


def test_psycopg_cancel(scram: Running) -> None:
    with psycopg.connect(scram.conninfo(), autocommit=True) as connection:
        timer = threading.Timer(0.2, connection.cancel_safe)
        timer.start()
        start = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("sleep 30")
        assert time.monotonic() - start < 5
        assert connection.execute("select 1").fetchone() == (1,)


def test_psycopg2(scram: Running) -> None:
    connection = psycopg2.connect(scram.conninfo())
    cursor = connection.cursor()
    cursor.execute("mixed 3000")
    assert len(cursor.fetchall()) == 3000
    connection.rollback()
    with pytest.raises(psycopg2.errors.DivisionByZero):
        cursor.execute("fail")
    connection.close()


def test_wrong_password_and_database(scram: Running) -> None:
    with pytest.raises(psycopg.OperationalError, match='failed for user "tester"'):
        psycopg.connect(scram.conninfo(password="wrong"))
    with pytest.raises(psycopg.OperationalError, match='failed for user "nobody"'):
        psycopg.connect(scram.conninfo(user="nobody"))
    with pytest.raises(psycopg.OperationalError, match='database "missing" does not exist'):
        psycopg.connect(scram.conninfo(dbname="missing"))


def test_newer_protocol_version(scram: Running) -> None:
    if psycopg.pq.version() < 180000:
        pytest.skip("libpq speaks 3.0 only")
    with psycopg.connect(scram.conninfo(max_protocol_version="3.2")) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_asyncpg(scram: Running) -> None:
    async def talk() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=scram.port, user="tester", database="db", password="secret",
            ssl=False,
        )  # fmt: skip
        assert await connection.fetchval("select 1") == 1
        assert await connection.fetchval("select $1", "é") == "é"
        rows = await connection.fetch("mixed 3000")
        assert [tuple(row) for row in rows[:2]] == [(0, None, None), (1, "row 1", -1)]
        with pytest.raises(asyncpg.DivisionByZeroError):
            await connection.fetch("fail after 5")
        async with connection.transaction():
            statement = await connection.prepare("rows 10")
            cursor = await statement.cursor()
            assert [row[0] for row in await cursor.fetch(4)] == [0, 1, 2, 3]
            assert [row[0] for row in await cursor.fetch(4)] == [4, 5, 6, 7]
            assert await connection.fetchval("select 5") == 5
            assert [row[0] for row in await cursor.fetch(4)] == [8, 9]
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch("sleep 30", timeout=0.2)
        assert await connection.fetchval("select 2") == 2
        await connection.close()

    asyncio.run(talk())


def test_many_clients(scram: Running) -> None:
    async def one(number: int) -> int:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=scram.port, user="tester", database="db", password="secret",
            ssl=False,
        )  # fmt: skip
        total = 0
        for _ in range(5):
            total += sum(row[0] for row in await connection.fetch(f"rows {number}"))
        await connection.close()
        return total

    async def talk() -> list[int]:
        return await asyncio.gather(*(one(number) for number in range(40)))

    assert asyncio.run(talk()) == [5 * n * (n - 1) // 2 for n in range(40)]


def test_psql(scram: Running) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")

    def run(*commands: str, stdin: str = "") -> str:
        arguments = [each for command in commands for each in ("-c", command)]
        done = subprocess.run(
            [psql, "-XAt", scram.conninfo(), *arguments],
            capture_output=True, text=True, timeout=20, input=stdin, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    assert run("select 1, 'x'") == "1|x\n"
    assert run("rows 3", "fail", "select 2") == "0\n1\n2\n2\nERROR:  division by zero\n"
    assert run("copy out 2") == "0\n1\n"
    assert run("copy in", stdin="a\nb\n") == "COPY 2\n"

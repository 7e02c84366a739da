"""PostgreSQL's clients against a real gpudb server in a process of its own."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import asyncpg
import pandas
import psycopg
import psycopg2
import psycopg2.extras
import pytest
import sqlalchemy

START_SECONDS = 60
PASSWORD = "correct horse"
SCHEMA = """
CREATE SCHEMA sales;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE customers (
    id serial PRIMARY KEY, name text NOT NULL, email varchar(100) UNIQUE,
    balance numeric(12,2) DEFAULT 0, created timestamptz, tags text[], attrs jsonb, m mood
);
COMMENT ON TABLE customers IS 'the customers';
CREATE TABLE sales.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id int REFERENCES customers(id), amount double precision, day date
);
CREATE VIEW v_big AS SELECT id, amount FROM sales.orders WHERE amount > 100;
INSERT INTO customers(name, email, balance, created, tags, attrs, m) VALUES
    ('Ann', 'a@x.y', 1.5, '2024-01-02 03:04:05+00', '{a,b}', '{"k": 1}', 'ok'),
    ('Bob', 'b@x.y', 2.25, NULL, '{}', NULL, NULL);
INSERT INTO sales.orders(customer_id, amount, day)
    SELECT 1 + i % 2, i * 1.5, date '2024-01-01' + i FROM generate_series(0, 199) i;
"""


@dataclass(frozen=True)
class Server:
    """Where a server listens."""

    port: int
    method: str

    def conninfo(self, **more: object) -> str:
        given = {
            "host": "127.0.0.1", "port": self.port, "user": "postgres", "dbname": "postgres",
            "connect_timeout": 10,
        } | more  # fmt: skip
        return " ".join(f"{key}='{value}'" for key, value in given.items())


def _start(data: Path, method: str) -> tuple[Server, subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "gpudb", "serve", "--data", str(data), "--port", str(port),
        "--auth", method, "--device", "cpu",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read().decode()  # type: ignore[union-attr]
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return Server(port, method), process
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise AssertionError("the server did not start")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for passwords, with the objects of SCHEMA."""
    data = tmp_path_factory.mktemp("clients") / "data"
    subprocess.run(
        [sys.executable, "-m", "gpudb", "passwd", "--data", str(data)],
        input=f"{PASSWORD}\n{PASSWORD}\n".encode(), check=True, capture_output=True,
    )  # fmt: skip
    found, process = _start(data, "scram-sha-256")
    try:
        with psycopg.connect(found.conninfo(password=PASSWORD), autocommit=True) as connection:
            connection.execute(SCHEMA)
        yield found
    finally:
        _stop(process)


@pytest.fixture
def conninfo(server: Server) -> str:
    return server.conninfo(password=PASSWORD)


@pytest.fixture
def connection(conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo, autocommit=True) as opened:
        yield opened


def test_passwords(server: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.conninfo(password="wrong"))
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(server.conninfo(), password=None)


@pytest.mark.parametrize("is_binary", [False, True])
def test_psycopg_values(connection: psycopg.Connection, is_binary: bool) -> None:
    cursor = connection.cursor(binary=is_binary)
    row = cursor.execute(
        "select id, name, balance, created, tags, attrs, m::text from customers order by id"
    ).fetchone()
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert row == (1, "Ann", Decimal("1.50"), moment, ["a", "b"], {"k": 1}, "ok")
    values = (7, 2**40, 1.5, "é", True, None, [1, None, 3], Decimal("12.30"), b"\x00\xff",
              datetime.date(2024, 2, 29), datetime.timedelta(days=1, seconds=2))  # fmt: skip
    marks = ", ".join(["%b" if is_binary else "%s"] * len(values))
    assert cursor.execute(f"select {marks}", values).fetchone() == values


def test_psycopg_prepares(connection: psycopg.Connection) -> None:
    for number in range(8):
        query = "select amount from sales.orders where id = %s"
        found = connection.execute(query, (number + 1,), prepare=True).fetchone()
        assert found == (number * 1.5,)
    names = connection.execute("select name from pg_prepared_statements").fetchall()
    assert len(names) == 1


def test_psycopg_executemany_and_returning(connection: psycopg.Connection) -> None:
    connection.execute("create temp table many (a int, b text)")
    cursor = connection.cursor()
    cursor.executemany(
        "insert into many values (%s, %s) returning a", [(i, str(i)) for i in range(50)],
        returning=True,
    )
    assert cursor.fetchone() == (0,)
    count = connection.execute("select count(*), sum(a) from many").fetchone()
    assert count == (50, 49 * 25)


def test_psycopg_pipeline(connection: psycopg.Connection) -> None:
    connection.execute("create temp table piped (a int)")
    with connection.pipeline():
        cursors = [connection.execute("select %s::int", (n,)) for n in range(100)]
        assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(100)]
    with pytest.raises(psycopg.errors.DivisionByZero), connection.pipeline() as pipeline:
        connection.execute("insert into piped values (1)")
        failed = connection.execute("select 1 / %s", (0,))
        skipped = connection.execute("insert into piped values (2)")
        pipeline.sync()
        with pytest.raises(psycopg.errors.PipelineAborted):
            skipped.fetchone()
        failed.fetchone()
    assert connection.execute("select count(*) from piped").fetchone() == (0,)


def test_psycopg_named_cursors(connection: psycopg.Connection) -> None:
    with connection.transaction(), connection.cursor("c1", scrollable=True) as cursor:
        cursor.execute("select id from sales.orders where id > %s order by id", (10,))
        assert cursor.fetchmany(2) == [(11,), (12,)]
        cursor.scroll(3)
        assert cursor.fetchone() == (16,)
        cursor.scroll(-2)
        assert cursor.fetchone() == (15,)
        assert len(cursor.fetchall()) == 185
    with connection.cursor("c2", withhold=True) as cursor:
        cursor.execute("select id from sales.orders order by id")
        assert [row[0] for row in cursor] == list(range(1, 201))


def test_portal_suspension(connection: psycopg.Connection) -> None:
    async def talk(conninfo: str) -> None:
        opened = await asyncpg.connect(dsn=conninfo, ssl=False)
        async with opened.transaction():
            statement = await opened.prepare("select id from sales.orders order by id")
            cursor = await statement.cursor()
            assert [row[0] for row in await cursor.fetch(3)] == [1, 2, 3]
            assert await opened.fetchval("select 5") == 5
            await cursor.forward(10)
            assert [row[0] for row in await cursor.fetch(2)] == [14, 15]
        await opened.close()

    info = connection.info
    asyncio.run(talk(f"postgres://{info.user}:correct%20horse@{info.host}:{info.port}/postgres"))


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_psycopg_copy(connection: psycopg.Connection, form: str) -> None:
    connection.execute("create temp table copied (a int, b text, c numeric, d date)")
    rows = [
        (i, None if i % 7 == 0 else f'x,"\t{i}', Decimal(i) / 4, datetime.date(2024, 1, 1))
        for i in range(500)
    ]
    cursor = connection.cursor()
    if form == "csv":
        lines = "".join(f"{a},{b or ''},{c},{d}\n" for a, b, c, d in [(1, "x", 2, "2024-01-01")])
        with cursor.copy("copy copied from stdin (format csv)") as copy:
            copy.write(lines)
        with cursor.copy("copy copied to stdout (format csv, header)") as copy:
            assert b"".join(copy) == b"a,b,c,d\n1,x,2,2024-01-01\n"
        return
    with cursor.copy(f"copy copied from stdin (format {form})") as copy:
        copy.set_types(["int4", "text", "numeric", "date"])
        for row in rows:
            copy.write_row(row)
    assert cursor.statusmessage == "COPY 500"
    with cursor.copy(f"copy copied to stdout (format {form})") as copy:
        copy.set_types(["int4", "text", "numeric", "date"])
        assert list(copy.rows()) == rows
    wrong = psycopg.errors.DataError
    with pytest.raises(wrong), cursor.copy("copy copied from stdin") as copy:
        copy.write(b"zz\ty\t1\t2024-01-01\n")
    assert connection.execute("select count(*) from copied").fetchone() == (500,)


def test_multi_statement_strings_are_transactions(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("create table gone (a int); insert into gone values (1); select 1/0")
    assert connection.execute("select to_regclass('gone')").fetchone() == (None,)
    cursor = connection.execute("select 1; select 2, 3")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset() and cursor.fetchall() == [(2, 3)]


def test_cancel(connection: psycopg.Connection) -> None:
    timer = threading.Timer(0.3, connection.cancel_safe)
    timer.start()
    start = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("select pg_sleep(20)")
    assert time.monotonic() - start < 1.3
    connection.execute("set statement_timeout = 100")
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        connection.execute("select pg_sleep(20)")
    assert connection.execute("select 1").fetchone() == (1,)


def test_advisory_locks(connection: psycopg.Connection, conninfo: str) -> None:
    with psycopg.connect(conninfo) as other:
        assert other.execute("select pg_try_advisory_xact_lock(7)").fetchone() == (True,)
        assert connection.execute("select pg_try_advisory_lock(7)").fetchone() == (False,)
        other.commit()
        assert connection.execute("select pg_try_advisory_lock(7)").fetchone() == (True,)
        assert other.execute("select pg_try_advisory_lock_shared(7)").fetchone() == (False,)
    assert connection.execute("select pg_advisory_unlock(7)").fetchone() == (True,)
    assert connection.execute("select pg_advisory_unlock(7)").fetchone() == (False,)


def test_notifications(connection: psycopg.Connection, conninfo: str) -> None:
    connection.execute("listen news")
    with psycopg.connect(conninfo, autocommit=True) as other:
        other.execute("notify news, 'fresh'")
    note = next(connection.notifies(timeout=5))
    assert (note.channel, note.payload) == ("news", "fresh")


def test_psycopg2(conninfo: str) -> None:
    connection = psycopg2.connect(conninfo)
    cursor = connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor)
    cursor.execute("select id, balance, tags from customers where name = %s", ("Ann",))
    assert cursor.fetchone() == {"id": 1, "balance": Decimal("1.50"), "tags": ["a", "b"]}
    cursor.execute("create temp table fast (a int, b text)")
    psycopg2.extras.execute_values(
        cursor, "insert into fast values %s", [(i, "x") for i in range(300)]
    )
    cursor.execute("select count(*) as n from fast")
    assert cursor.fetchone() == {"n": 300}
    named = connection.cursor("big")
    named.itersize = 50
    named.execute("select id from sales.orders order by id")
    assert [row[0] for row in named] == list(range(1, 201))
    with pytest.raises(psycopg2.errors.UniqueViolation):
        cursor.execute("insert into customers(name, email) values ('x', 'a@x.y')")
    connection.rollback()
    connection.close()


def test_asyncpg(server: Server) -> None:
    async def talk() -> None:
        opened = await asyncpg.connect(
            host="127.0.0.1", port=server.port, user="postgres", database="postgres",
            password=PASSWORD, ssl=False,
        )  # fmt: skip
        assert await opened.fetchval("select $1::int8 + 1", 41) == 42
        assert await opened.fetchval("select $1::text[]", ["a", None]) == ["a", None]
        row = await opened.fetchrow("select balance, created, tags from customers where id = $1", 1)
        assert row["balance"] == Decimal("1.50") and row["tags"] == ["a", "b"]
        assert await opened.fetchval("select m from customers where id = 1") == "ok"
        await opened.execute("create temp table quick (a int, b text, c float8)")
        records = [(i, f"r{i}", i / 3) for i in range(1000)]
        await opened.copy_records_to_table("quick", records=records)
        assert [tuple(r) for r in await opened.fetch("select * from quick order by a")] == records
        await opened.executemany("insert into quick values ($1, $2)", [(5000, "x"), (5001, "y")])
        assert await opened.fetchval("select count(*) from quick where c is null") == 2
        with pytest.raises(asyncpg.UndefinedTableError):
            await opened.fetch("select * from nowhere")
        with pytest.raises(asyncio.TimeoutError):
            await opened.fetch("select pg_sleep(20)", timeout=0.2)
        assert await opened.fetchval("select 1") == 1
        await opened.close()

    asyncio.run(talk())


def _engine(server: Server) -> sqlalchemy.Engine:
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", "postgres", PASSWORD, "127.0.0.1", server.port, "postgres"
    )
    return sqlalchemy.create_engine(url)


def test_sqlalchemy_reflects(server: Server) -> None:
    engine = _engine(server)
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["customers"]
    assert inspector.get_view_names() == ["v_big"]
    assert "sales" in inspector.get_schema_names()
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine, schema="sales")
    orders = metadata.tables["sales.orders"]
    assert [column.name for column in orders.columns] == ["id", "customer_id", "amount", "day"]
    assert isinstance(orders.c.day.type, sqlalchemy.Date)
    assert orders.c.id.primary_key and orders.c.id.identity is not None
    assert [key.target_fullname for key in orders.foreign_keys] == ["customers.id"]
    assert inspector.get_unique_constraints("customers")[0]["column_names"] == ["email"]
    assert inspector.get_table_comment("customers") == {"text": "the customers"}
    assert inspector.get_enums()[0]["labels"] == ["sad", "ok", "happy"]
    with engine.begin() as connection:
        query = sqlalchemy.select(sqlalchemy.func.sum(orders.c.amount)).where(orders.c.id <= 3)
        assert connection.execute(query).scalar() == 4.5
    made = sqlalchemy.Table(
        "made", sqlalchemy.MetaData(),
        sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
        sqlalchemy.Column("name", sqlalchemy.String(20), nullable=False),
    )
    made.create(engine)
    with engine.begin() as connection:
        found = connection.execute(made.insert().values(name="n").returning(made.c.id)).scalar()
        assert found == 1
    made.drop(engine)
    engine.dispose()


def test_pandas(server: Server) -> None:
    engine = _engine(server)
    frame = pandas.DataFrame(
        {"a": [1, 2, 3], "b": ["x", None, "z"], "c": [0.5, 1.5, float("nan")]}
    )
    frame.to_sql("frame", engine, index=False, if_exists="replace")
    read = pandas.read_sql("select * from frame order by a", engine)
    pandas.testing.assert_frame_equal(read, frame, check_dtype=False)
    frame.to_sql("frame", engine, index=False, if_exists="append", method="multi")
    assert pandas.read_sql("select count(*) as n from frame", engine)["n"][0] == 6
    with engine.begin() as connection:
        connection.exec_driver_sql("drop table frame")
    engine.dispose()


PSQL_COMMANDS = (
    (r"\d", ["customers_id_seq", "v_big | view"]),
    (r"\d customers", [
        'Table "public.customers"', "nextval('customers_id_seq'::regclass)",
        '"customers_pkey" PRIMARY KEY, btree (id)', "Referenced by:",
        'TABLE "sales.orders" CONSTRAINT "orders_customer_id_fkey" FOREIGN KEY (customer_id)',
    ]),
    (r"\d+ sales.orders", ["generated always as identity", "Foreign-key constraints:"]),
    (r"\d v_big", ['View "public.v_big"', "double precision"]),
    (r"\d customers_pkey", ['Index "public.customers_pkey"', 'primary key, btree, for table']),
    (r"\d customers_id_seq", ['Sequence "public.customers_id_seq"', "Owned by: public.customers"]),
    (r"\dt+ sales.*", ["orders", "permanent"]),
    (r"\dn", ["sales"]),
    (r"\l", ["postgres", "C.UTF-8"]),
    (r"\df upper", ["anyrange", "text"]),
    (r"\dT+ mood", ["sad"]),
    (r"\du", ["Superuser, Create role, Create DB"]),
    (r"\dp customers", ["Access privileges"]),
    (r"\dC int8", ["in assignment"]),
    (r"\sv v_big", ["CREATE OR REPLACE VIEW public.v_big AS"]),
    (r"select 1 as a, 'x' as b \gdesc", ["integer"]),
    ("select 40 + 2 as answer \\gset\n\\echo found :answer", ["found 42"]),
    ("\\x\nselect 1 as a", ["-[ RECORD 1 ]"]),
    ("\\copy (select 7, 'q') to stdout", ["7\tq"]),
)  # fmt: skip


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
@pytest.mark.parametrize(("command", "expected"), PSQL_COMMANDS)
def test_psql(conninfo: str, command: str, expected: list[str]) -> None:
    found = subprocess.run(
        ["psql", "-X", conninfo], input=command + "\n", capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert found.stderr == ""
    shown = " ".join(found.stdout.split())
    for text in expected:
        assert " ".join(text.split()) in shown


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("INSERT INTO raced_parent VALUES (2)", "INSERT INTO raced_parent VALUES (2)"),
        ("INSERT INTO raced_child VALUES (1)", "DELETE FROM raced_parent WHERE k = 1"),
        ("DELETE FROM raced_parent WHERE k = 1", "INSERT INTO raced_child VALUES (1)"),
    ],
)
def test_constraints_hold_between_overlapping_transactions(
    connection: psycopg.Connection, conninfo: str, isolation: str, mine: str, theirs: str
) -> None:
    connection.execute("DROP TABLE IF EXISTS raced_child; DROP TABLE IF EXISTS raced_parent")
    connection.execute("CREATE TABLE raced_parent (k int PRIMARY KEY)")
    connection.execute("CREATE TABLE raced_child (k int REFERENCES raced_parent (k))")
    connection.execute("INSERT INTO raced_parent VALUES (1)")
    with psycopg.connect(conninfo) as other:
        other.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        other.execute(mine)
        connection.execute(theirs)
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.execute("SELECT 1 FROM raced_parent")
            other.commit()
        other.rollback()
    counted = "SELECT count(*) = count(DISTINCT k) FROM raced_parent"
    orphans = "SELECT count(*) FROM raced_child WHERE k NOT IN (SELECT k FROM raced_parent)"
    assert connection.execute(counted).fetchall() == [(True,)]
    assert connection.execute(orphans).fetchall() == [(0,)]

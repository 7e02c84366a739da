"""Message sequences of PostgreSQL 15 for the situations of the protocol, on the sans-IO side."""

from __future__ import annotations

import pytest
from wire_fakes import FakeBackend, FakeSession, report, shown, split_messages

from gpudb.wire.conversation import Conversation
from gpudb.wire.messages import (
    Bind,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    EncryptionRequest,
    Execute,
    Flush,
    FunctionCall,
    Parse,
    Query,
    StartupMessage,
    Sync,
    Terminate,
    frame,
)
from gpudb.wire.startup import Peer, Policy

USER = (("user", "tester"), ("database", "db"))


class Client:
    """Speaks to a conversation; every answer is one line of shown messages."""

    def __init__(self, *, start: bool = True, refusal: object = None) -> None:
        self.backend = FakeBackend()
        self.cancelled: list[tuple[int, bytes]] = []
        peer = Peer(7, b"\1\2\3\4", refusal=lambda: refusal)  # type: ignore[arg-type,return-value]
        self.conversation = Conversation(
            self.backend,
            policy=Policy("trust", b"secret"),
            peer=peer,
            cancel=lambda process_id, key: self.cancelled.append((process_id, key)),
            terminate=lambda error: None,
        )
        if start:
            self.say(StartupMessage(3 << 16, USER))

    @property
    def session(self) -> FakeSession:
        return self.backend.sessions[0]

    def raw(self, data: bytes) -> bytes:
        self.conversation.receive(data)
        return b"".join(self.conversation.run())

    def say(self, *messages: object) -> str:
        return shown(self.raw(b"".join(each.encode() for each in messages)))  # type: ignore[attr-defined]


def extended(sql: bytes, *, values: tuple[bytes | None, ...] = (), rows: int = 0) -> list[object]:
    return [Parse(b"", sql), Bind(b"", b"", (), values), Execute(b"", rows)]


# --- the start ----------------------------------------------------------------------------------


def test_startup_sends_status_key_and_ready() -> None:
    answer = Client(start=False).say(StartupMessage(3 << 16, USER))
    assert answer.startswith("R(0) S(application_name=) S(client_encoding=UTF8)")
    assert answer.endswith("S(TimeZone=UTC) K Z(I)")


def test_startup_byte_by_byte() -> None:
    client = Client(start=False)
    pieces = [
        client.raw(bytes((byte,))) for byte in StartupMessage(3 << 16, USER).encode()
    ]
    assert pieces[:-1] == [b""] * (len(pieces) - 1)
    assert shown(pieces[-1]).endswith("Z(I)")


@pytest.mark.parametrize(
    ("version", "extra", "negotiation"),
    [
        (0x00030002, (), "v(0x30000,)"),
        (0x0003270F, (("_pq_.a", ""), ("_pq_.foo", "1")), "v(0x30000,_pq_.a;_pq_.foo;)"),
        (0x00030000, (("_pq_.foo", "1"),), "v(0x30000,_pq_.foo;)"),
    ],
)
def test_newer_minor_versions_are_negotiated_down(
    version: int, extra: tuple[tuple[str, str], ...], negotiation: str
) -> None:
    client = Client(start=False)
    answer = client.say(StartupMessage(version, USER + extra))
    assert answer.startswith(negotiation + " R(0) ")
    assert answer.endswith("Z(I)")
    assert not any(key.startswith("_pq_") for key in client.session.parameters)


@pytest.mark.parametrize("version", [0x00020000, 0x00040000, 0x04D2162F + 7])
def test_other_major_versions_are_refused(version: int) -> None:
    client = Client(start=False)
    assert client.say(StartupMessage(version, USER)) == "E(FATAL 0A000)"
    assert client.conversation.is_closed


@pytest.mark.parametrize(
    ("parameters", "answer"),
    [
        ((("user", "tester"), ("database", "missing")), "R(0) E(FATAL 3D000)"),
        ((("user", "nobody"),), "R(0) E(FATAL 28000)"),
        ((("user", "tester"), ("nosuchguc", "1")), "R(0) E(FATAL 42704)"),
        ((("user", "tester"), ("replication", "database")), "E(FATAL 0A000)"),
        ((("user", "tester"), ("options", "-x")), "E(FATAL 42601)"),
        ((("database", "db"),), "E(FATAL 28000)"),
        ((("user", ""),), "E(FATAL 28000)"),
    ],
)
def test_startup_refusals(parameters: tuple[tuple[str, str], ...], answer: str) -> None:
    client = Client(start=False)
    assert client.say(StartupMessage(3 << 16, parameters)) == answer
    assert client.conversation.is_closed


def test_startup_parameters_reach_the_session() -> None:
    client = Client(start=False)
    options = r"-c geqo=off --search_path=a\ b -cwork-mem=5MB"
    parameters = (("user", "u"), ("options", options), ("TimeZone", "UTC"), ("replication", "off"))
    client.say(StartupMessage(3 << 16, parameters))
    assert client.session.parameters == {
        "user": "u", "database": "u", "geqo": "off", "search_path": "a b", "work_mem": "5MB",
        "TimeZone": "UTC",
    }  # fmt: skip


def test_encryption_requests_are_declined_once_each() -> None:
    client = Client(start=False)
    assert client.raw(EncryptionRequest(80877103).encode()) == b"N"
    assert client.raw(EncryptionRequest(80877104).encode()) == b"N"
    assert client.say(StartupMessage(3 << 16, USER)).endswith("Z(I)")
    again = Client(start=False)
    again.raw(EncryptionRequest(80877103).encode())
    assert again.say(EncryptionRequest(80877103)) == "E(FATAL 0A000)"


def test_bytes_behind_an_encryption_request_end_the_connection() -> None:
    client = Client(start=False)
    data = EncryptionRequest(80877103).encode() + StartupMessage(3 << 16, USER).encode()
    assert client.raw(data) == b"N"
    assert client.conversation.is_closed
    assert not client.backend.sessions


def test_cancel_request_is_passed_on_without_an_answer() -> None:
    client = Client(start=False)
    assert client.raw(CancelRequest(7, b"\1\2\3\4").encode()) == b""
    assert client.cancelled == [(7, b"\1\2\3\4")]
    assert client.conversation.is_closed
    long = Client(start=False)
    long.raw(CancelRequest(7, b"k" * 32).encode())
    assert long.cancelled == [(7, b"k" * 32)]


# --- simple query -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        (b"", "I Z(I)"),
        (b" ;; ", "I Z(I)"),
        (b"select 1", "T(?column?:23/0) D(1) C(SELECT 1) Z(I)"),
        (b"select null, 'x'", "T(?column?:25/0,?column?:25/0) D(NULL,x) C(SELECT 1) Z(I)"),
        (b"select", "T D C(SELECT 1) Z(I)"),
        (b"rows 0", "T(?column?:23/0) C(SELECT 0) Z(I)"),
        (b"begin; select 1; commit; select 2",
         "C(BEGIN) T(?column?:23/0) D(1) C(SELECT 1) C(COMMIT) "
         "T(?column?:23/0) D(2) C(SELECT 1) Z(I)"),
        (b"select 1; fail; select 2", "T(?column?:23/0) D(1) C(SELECT 1) E(ERROR 22012) Z(I)"),
        (b"fail after 2", "T(?column?:23/0) D(0) D(1) E(ERROR 22012) Z(I)"),
        (b"nonsense", "E(ERROR 42601) Z(I)"),
        (b"boom", "E(ERROR XX000) Z(I)"),
        (b"notice careful", "N(WARNING 01000) C(NOTICE) Z(I)"),
        (b"set TimeZone Europe/Rome; command RESET",
         "C(SET) C(RESET) S(TimeZone=Europe/Rome) Z(I)"),
        (b"notify hey", "C(NOTIFY) A Z(I)"),
        (b"copy out 2", "H(0,1) d(0|) d(1|) c C(COPY 2) Z(I)"),
        (b"copy out 0;select 1", "H(0,1) c C(COPY 0) T(?column?:23/0) D(1) C(SELECT 1) Z(I)"),
        (b"select \xff", "E(ERROR 22021) Z(I)"),
    ],
)  # fmt: skip
def test_simple_query(sql: bytes, answer: str) -> None:
    assert Client().say(Query(sql)) == answer


def test_transaction_status_follows_the_session() -> None:
    client = Client()
    said = [client.say(Query(sql)) for sql in (b"begin", b"fail", b"select 1", b"commit")]
    assert said == ["C(BEGIN) Z(T)", "E(ERROR 22012) Z(E)", "E(ERROR 25P02) Z(E)",
                    "C(ROLLBACK) Z(I)"]  # fmt: skip


def test_error_fields_and_position() -> None:
    kind, body = split_messages(Client().raw(Query(b"nonsense").encode()))[0]
    assert kind == "E"
    assert report(body) == {"S": "ERROR", "V": "ERROR", "C": "42601", "M": "syntax error", "P": "1"}


def test_invalid_bytes_are_shown() -> None:
    _, body = split_messages(Client().raw(Query(b"\xe3\x28\x81 x").encode()))[0]
    assert report(body)["M"] == 'invalid byte sequence for encoding "UTF8": 0xe3 0x28 0x81'


def test_pipelined_queries_are_answered_in_order() -> None:
    answer = Client().say(Query(b"command A"), Query(b"fail"), Query(b"command B"))
    assert answer == "C(A) Z(I) E(ERROR 22012) Z(I) C(B) Z(I)"


# --- extended query -----------------------------------------------------------------------------


def test_extended_round() -> None:
    answer = Client().say(
        Parse(b"", b"select 1, $1"), Bind(b"", b"", (), (b"x",)), Describe(b"P", b""),
        Execute(b""), Sync(),
    )  # fmt: skip
    assert answer == "1 2 T(?column?:23/0,?column?:25/0) D(1,x) C(SELECT 1) Z(I)"


def test_describe_statement_always_sends_parameters() -> None:
    client = Client()
    assert client.say(Parse(b"s", b"select 1"), Describe(b"S", b"s"), Sync()) == (
        "1 t T(?column?:23/0) Z(I)"
    )
    assert client.say(Parse(b"", b"command X"), Describe(b"S", b""), Sync()) == "1 t n Z(I)"
    assert client.say(Parse(b"p", b"select $2, $1", (20,)), Describe(b"S", b"p"), Sync()) == (
        "1 t(20,25) T(?column?:25/0,?column?:25/0) Z(I)"
    )


def test_describe_portal_shows_bound_formats() -> None:
    answer = Client().say(
        Parse(b"", b"select 1, 2"), Bind(b"", b"", result_formats=(1, 0)), Describe(b"P", b""),
        Sync(),
    )  # fmt: skip
    assert answer == "1 2 T(?column?:23/1,?column?:23/0) Z(I)"


def test_binary_results() -> None:
    client = Client()
    data = client.raw(
        b"".join(
            each.encode()
            for each in (
                Parse(b"", b"select 258"),
                Bind(b"", b"", result_formats=(1,)),
                Execute(b""),
            )
        )
    )
    assert split_messages(data)[2] == ("D", b"\0\1\0\0\0\4\0\0\1\2")


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        ([Parse(b"", b"select 1; select 2")], "E(ERROR 42601)"),
        ([Bind(b"", b"nope")], "E(ERROR 26000)"),
        ([Execute(b"nope")], "E(ERROR 34000)"),
        ([Describe(b"S", b"nope")], "E(ERROR 26000)"),
        ([Describe(b"P", b"nope")], "E(ERROR 34000)"),
        ([Close(b"S", b"nope"), Close(b"P", b"nope")], "3 3"),
        ([Parse(b"s", b"select 1"), Parse(b"s", b"select 2")], "1 E(ERROR 42P05)"),
        ([Parse(b"", b"select 1"), Parse(b"", b"select 2")], "1 1"),
        ([Parse(b"", b"select $1"), Bind(b"", b"")], "1 E(ERROR 08P01)"),
        ([Parse(b"", b"select $1"), Bind(b"", b"", (0, 0), (b"x",))], "1 E(ERROR 08P01)"),
        ([Parse(b"", b"select $1"), Bind(b"", b"", (2,), (b"x",))], "1 E(ERROR 22023)"),
        ([Parse(b"", b"select 1,2,3"), Bind(b"", b"", result_formats=(0, 0))],
         "1 E(ERROR 08P01)"),
        ([Parse(b"", b"select 1"), Bind(b"", b"", result_formats=(7,))], "1 E(ERROR 22023)"),
        ([Parse(b"\xff", b"select 1")], "E(ERROR 22021)"),
        (extended(b""), "1 2 I"),
        (extended(b"command X"), "1 2 C(X)"),
        ([*extended(b"select 1"), Execute(b"")], "1 2 D(1) C(SELECT 1) C(SELECT 0)"),
        ([*extended(b"command X"), Execute(b"")], "1 2 C(X) E(ERROR 55000)"),
        (extended(b"copy out 1"), "1 2 H(0,1) d(0|) c C(COPY 1)"),
        (extended(b"boom"), "1 2 E(ERROR XX000)"),
        ([*extended(b"rows 5", rows=2), Execute(b"", 2), Execute(b"", 2), Execute(b"", 2)],
         "1 2 D(0) D(1) s D(2) D(3) s D(4) C(SELECT 1) C(SELECT 0)"),
        ([*extended(b"rows 2", rows=2), Execute(b"", 2)], "1 2 D(0) D(1) s C(SELECT 0)"),
        ([*extended(b"rows 2", rows=-1)], "1 2 D(0) D(1) C(SELECT 2)"),
        ([*extended(b"fail"), Flush(), *extended(b"select 1")], "1 2 E(ERROR 22012)"),
    ],
)  # fmt: skip
def test_extended(messages: list[object], answer: str) -> None:
    assert Client().say(*messages, Sync()) == answer + " Z(I)"


def test_portals_survive_sync_only_in_a_transaction() -> None:
    client = Client()
    start = [Parse(b"", b"rows 5"), Bind(b"p", b""), Execute(b"p", 2), Sync()]
    assert client.say(*start) == "1 2 D(0) D(1) s Z(I)"
    assert client.say(Execute(b"p", 2), Sync()) == "E(ERROR 34000) Z(I)"
    client.say(Query(b"begin"))
    assert client.say(*start) == "1 2 D(0) D(1) s Z(T)"
    assert client.say(Execute(b"p", 1), Sync()) == "D(2) s Z(T)"


def test_flush_alone_answers_without_ready() -> None:
    client = Client()
    assert client.say(Parse(b"s", b"select 1"), Describe(b"S", b"s"), Flush()) == (
        "1 t T(?column?:23/0)"
    )
    assert client.say(Bind(b"", b"s"), Execute(b""), Sync()) == "2 D(1) C(SELECT 1) Z(I)"


def test_errors_discard_up_to_one_sync() -> None:
    answer = Client().say(
        *extended(b"fail"), Query(b"command never"), *extended(b"command never"), Sync(),
        *extended(b"command A"), Sync(), Sync(), Query(b"command B"),
    )  # fmt: skip
    assert answer == "1 2 E(ERROR 22012) Z(I) 1 2 C(A) Z(I) Z(I) C(B) Z(I)"


def test_error_at_sync_does_not_swallow_what_follows() -> None:
    client = Client()

    def failing_sync() -> None:
        del client.session.sync  # type: ignore[method-assign]
        from gpudb import errors

        raise errors.SerializationFailure("could not serialize access")

    client.session.sync = failing_sync  # type: ignore[method-assign]
    answer = client.say(*extended(b"command A"), Sync(), *extended(b"command B"), Sync())
    assert answer == "1 2 C(A) E(ERROR 40001) Z(I) 1 2 C(B) Z(I)"


def test_npgsql_style_pipelining() -> None:
    answer = Client().say(
        Query(b"command DISCARD ALL"), Parse(b"", b"select 7"), Describe(b"S", b""),
        Bind(b"", b""), Execute(b""), Sync(),
    )  # fmt: skip
    assert answer == "C(DISCARD ALL) Z(I) 1 t T(?column?:23/0) 2 D(7) C(SELECT 1) Z(I)"


# --- COPY FROM STDIN ----------------------------------------------------------------------------


def test_copy_in() -> None:
    client = Client()
    assert client.say(Query(b"copy in; select 1")) == "G(0,2)"
    assert client.say(CopyData(b"1\n2")) == ""
    assert client.say(CopyData(b"\n"), CopyDone()) == (
        "C(COPY 2) T(?column?:23/0) D(1) C(SELECT 1) Z(I)"
    )
    assert client.session.copied == [b"1\n2\n"]


def test_copy_in_error_ignores_the_rest_of_the_data() -> None:
    answer = Client().say(
        Query(b"copy in"), CopyData(b"1\nbad\n"), CopyData(b"2\n"), CopyDone(), Query(b"command A")
    )
    assert answer == "G(0,2) E(ERROR 22P02) Z(I) C(A) Z(I)"


def test_copy_fail() -> None:
    client = Client()
    data = client.raw(
        Query(b"copy in; select 1").encode()
        + CopyData(b"1\n").encode()
        + CopyFail(b"client abort").encode()
    )
    assert shown(data) == "G(0,2) E(ERROR 57014) Z(I)"
    fields = report(split_messages(data)[1][1])
    assert fields["M"] == "COPY from stdin failed: client abort"
    assert fields["W"] == "COPY t, line 2"
    assert client.say(Query(b"command A")) == "C(A) Z(I)"


def test_query_during_copy_loses_the_connection() -> None:
    client = Client()
    client.say(Query(b"copy in"))
    data = client.raw(Query(b"select 1").encode())
    assert shown(data) == "E(ERROR 08P01) E(FATAL 08P01)"
    assert report(split_messages(data)[0][1])["M"] == (
        "unexpected message type 0x51 during COPY from stdin"
    )
    assert client.conversation.is_closed


def test_copy_in_extended_ignores_sync_and_flush() -> None:
    client = Client()
    assert client.say(*extended(b"copy in"), Sync(), Flush()) == "1 2 G(0,2)"
    assert client.say(CopyData(b"1\n"), CopyDone(), Sync()) == "C(COPY 1) Z(I)"


def test_copy_in_extended_error_discards_until_sync() -> None:
    client = Client()
    client.say(*extended(b"copy in"))
    assert client.say(CopyData(b"bad"), CopyData(b"1"), CopyDone()) == "E(ERROR 22P02)"
    assert client.say(Parse(b"", b"select 1"), Sync()) == "Z(I)"


# --- everything else ----------------------------------------------------------------------------


def test_function_call_is_refused() -> None:
    client = Client()
    answer = client.say(FunctionCall(b"\0\0\0\1"), Query(b"command A"))
    assert answer == "E(ERROR 0A000) Z(I) C(A) Z(I)"


def test_unknown_message_type_is_fatal() -> None:
    client = Client()
    data = client.raw(frame(b"y", b""))
    assert shown(data) == "E(FATAL 08P01)"
    assert report(split_messages(data)[0][1])["M"] == "invalid frontend message type 121"
    assert client.conversation.is_closed


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (frame(b"Q", b"no end"), "E(ERROR 08P01) Z(I)"),
        (frame(b"Q", b"a\0b"), "E(ERROR 08P01) Z(I)"),
        (frame(b"S", b"x"), "E(ERROR 08P01) Z(I)"),
        (frame(b"P", b"\0select 1\0\0\7"), "E(ERROR 08P01)"),
        (frame(b"B", b"\0\0\0\0\0\1\0\0\0\11x\0\0"), "E(ERROR 08P01)"),
        (frame(b"D", b"Xname\0"), "E(ERROR 08P01)"),
        (frame(b"E", b"\0\0"), "E(ERROR 08P01)"),
        (b"Q\0\0\0\3", "E(FATAL 08P01)"),
        (b"S\0\1\0\0", "E(FATAL 08P01)"),
        (b"Q\x7f\xff\xff\xff", "E(FATAL 08P01)"),
        (frame(b"p", b"password\0"), "E(FATAL 08P01)"),
    ],
)
def test_malformed_messages(data: bytes, answer: str) -> None:
    assert shown(Client().raw(data)) == answer


def test_terminate_closes() -> None:
    client = Client()
    assert client.say(Query(b"command A"), Terminate(), Query(b"command B")) == "C(A) Z(I)"
    assert client.conversation.is_closed


def test_refusal_instead_of_a_session() -> None:
    from gpudb import errors

    refusal = errors.TooManyConnections("sorry, too many clients already")
    client = Client(start=False, refusal=refusal)
    assert client.say(StartupMessage(3 << 16, USER)) == "E(FATAL 53300)"
    assert not client.backend.sessions


def test_output_comes_in_bounded_pieces() -> None:
    client = Client()
    client.conversation.receive(Query(b"rows 200000").encode())
    sizes = [len(piece) for piece in client.conversation.run()]
    assert len(sizes) > 20
    assert max(sizes) < 200_000


def test_abandoned_output_stops_the_query() -> None:
    client = Client()
    client.conversation.receive(Query(b"endless").encode())
    output = client.conversation.run()
    assert next(output)
    output.close()


def test_client_encoding_of_statements_and_results() -> None:
    client = Client()
    client.say(Query(b"set encoding latin-1"))
    data = client.raw(Query("select 'é'".encode("latin-1")).encode())
    assert split_messages(data)[1] == ("D", b"\0\1\0\0\0\1\xe9")

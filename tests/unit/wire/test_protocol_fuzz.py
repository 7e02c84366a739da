"""Random and mutated bytes: the conversation answers with protocol messages and never raises."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from wire_fakes import FakeBackend, split_messages

from gpudb.wire.conversation import Conversation
from gpudb.wire.messages import (
    Bind,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    Parse,
    Query,
    StartupMessage,
    Sync,
    Terminate,
)
from gpudb.wire.startup import Peer, Policy

STARTUP = StartupMessage(3 << 16, (("user", "tester"),)).encode()
SQL = st.sampled_from(
    [b"", b"select 1", b"select $1", b"rows 30", b"copy in", b"copy out 3", b"fail", b"boom",
     b"begin", b"commit", b"rollback", b"fail after 2", b"select 1; copy in; select 2"]
)  # fmt: skip
NAMES = st.sampled_from([b"", b"a", b"\xff"])
FORMATS = st.lists(st.sampled_from([0, 1, 2]), max_size=2).map(tuple)
VALUES = st.lists(st.none() | st.binary(max_size=4), max_size=2).map(tuple)
MESSAGES = st.one_of(
    st.builds(Query, SQL),
    st.builds(Parse, NAMES, SQL, st.lists(st.integers(0, 30), max_size=2).map(tuple)),
    st.builds(Bind, NAMES, NAMES, FORMATS, VALUES, FORMATS),
    st.builds(Describe, st.sampled_from([b"S", b"P", b"X"]), NAMES),
    st.builds(Close, st.sampled_from([b"S", b"P", b"X"]), NAMES),
    st.builds(Execute, NAMES, st.integers(-1, 3)),
    st.builds(CopyData, st.binary(max_size=8)),
    st.builds(CopyFail, st.just(b"no")),
    st.sampled_from([Sync(), Flush(), CopyDone()]),
)


def conversation(method: str = "trust") -> Conversation:
    return Conversation(
        FakeBackend(),
        policy=Policy(method, b"secret"),  # type: ignore[arg-type]
        peer=Peer(7, b"\1\2\3\4"),
        cancel=lambda process_id, key: None,
        terminate=lambda error: None,
    )


def answer(talk: Conversation, data: bytes) -> bytes:
    talk.receive(data)
    return b"".join(talk.run())


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=64))
def test_random_bytes_before_the_session(data: bytes) -> None:
    for method in ("trust", "scram-sha-256"):
        split_messages(answer(conversation(method), data).lstrip(b"N"))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=64))
def test_random_bytes_in_the_session(data: bytes) -> None:
    talk = conversation()
    answer(talk, STARTUP)
    split_messages(answer(talk, data))


@settings(max_examples=400, deadline=None)
@given(
    st.lists(MESSAGES, max_size=12), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)))
)
def test_mutated_messages_in_any_order(
    messages: list[Query], changes: list[tuple[int, int]]
) -> None:
    data = bytearray(b"".join(each.encode() for each in messages))
    for position, byte in changes:
        if data:
            data[position % len(data)] = byte
    talk = conversation()
    answer(talk, STARTUP)
    split_messages(answer(talk, bytes(data)))


@settings(max_examples=200, deadline=None)
@given(st.lists(MESSAGES, max_size=12), st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_answers_do_not_depend_on_how_input_is_cut(
    messages: list[Query], sizes: list[int]
) -> None:
    data = b"".join(each.encode() for each in messages) + Terminate().encode()
    whole, cut = conversation(), conversation()
    answer(whole, STARTUP)
    answer(cut, STARTUP)
    expected = answer(whole, data)
    got, position = b"", 0
    while position < len(data):
        size = sizes[position % len(sizes)]
        got += answer(cut, data[position : position + size])
        position += size
    assert got == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(MESSAGES, max_size=12))
def test_one_ready_for_each_query_and_sync(messages: list[Query]) -> None:
    """Outside of COPY, ReadyForQuery answers exactly Query and Sync that are not discarded."""
    plain = [
        each for each in messages
        if not isinstance(each, CopyData | CopyFail | CopyDone)
        and b"copy in" not in getattr(each, "sql", b"")
    ]  # fmt: skip
    talk = conversation()
    answer(talk, STARTUP)
    is_discarding, expected = False, 0
    for each in plain:
        said = split_messages(answer(talk, each.encode()))
        kinds = [kind for kind, _ in said]
        if isinstance(each, Sync) or (isinstance(each, Query) and not is_discarding):
            expected += 1
            assert kinds.count("Z") == 1
            assert kinds[-1] == "Z"
        else:
            assert "Z" not in kinds
        if isinstance(each, Sync):
            is_discarding = False
        elif not isinstance(each, Query):
            is_discarding = is_discarding or "E" in kinds

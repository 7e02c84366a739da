"""SCRAM against an independent client (scramp), and everything that must be refused."""

from __future__ import annotations

import base64
import datetime
import hashlib

import pytest
from scramp import ScramClient
from wire_fakes import FakeBackend, report, shown, split_messages

from gpudb import errors
from gpudb.wire import auth
from gpudb.wire.auth import ScramServer, make_verifier, parse_verifier
from gpudb.wire.conversation import Conversation
from gpudb.wire.messages import (
    AuthenticationResponse,
    SaslInitialResponse,
    StartupMessage,
)
from gpudb.wire.startup import Peer, Policy

SECRET = b"server secret"


def exchange(
    password: str, verifier: str | None, *, end_point: bytes | None = None, plus: bool = False
) -> ScramClient:
    mechanisms = [auth.MECHANISM_PLUS if plus else auth.MECHANISM]
    binding = ("tls-server-end-point", end_point) if plus else None
    client = ScramClient(mechanisms, "user", password, channel_binding=binding)
    server = ScramServer("user", verifier, secret=SECRET, end_point=end_point)
    first = server.first(mechanisms[0], client.get_client_first().encode())
    client.set_server_first(first.decode())
    final = server.final(client.get_client_final().encode())
    client.set_server_final(final.decode())
    return client


@pytest.mark.parametrize("password", ["secret", "pässwörd", "with space", "I\u00adX", "ª"])
def test_right_password(password: str) -> None:
    exchange(password, make_verifier(password))


def test_wrong_password_and_unknown_user_fail_alike() -> None:
    for verifier in (make_verifier("other"), None, "md5abc"):
        with pytest.raises(errors.InvalidPassword, match='failed for user "user"'):
            exchange("secret", verifier)


def test_channel_binding() -> None:
    verifier = make_verifier("secret")
    exchange("secret", verifier, end_point=b"hash of the certificate", plus=True)
    client = ScramClient(
        [auth.MECHANISM_PLUS], "user", "secret",
        channel_binding=("tls-server-end-point", b"another certificate"),
    )  # fmt: skip
    server = ScramServer("user", verifier, secret=SECRET, end_point=b"hash")
    first = server.first(auth.MECHANISM_PLUS, client.get_client_first().encode())
    client.set_server_first(first.decode())
    with pytest.raises(errors.InvalidAuthorizationSpecification, match="binding check failed"):
        server.final(client.get_client_final().encode())


def test_plus_is_offered_only_with_a_certificate_hash() -> None:
    assert ScramServer("u", None, secret=SECRET).mechanisms == ("SCRAM-SHA-256",)
    assert ScramServer("u", None, secret=SECRET, end_point=b"x").mechanisms == (
        "SCRAM-SHA-256-PLUS", "SCRAM-SHA-256",
    )  # fmt: skip


def test_verifier_has_postgresql_form() -> None:
    # RFC 7677's example: user "user", password "pencil".
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    text = make_verifier("pencil", salt=salt)
    parts = parse_verifier(text)
    assert parts is not None
    assert text.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert text.endswith("$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
                         "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")  # fmt: skip
    assert str(parts) == text
    assert auth.is_password("pencil", text)
    assert not auth.is_password("pen", text)


@pytest.mark.parametrize(
    "text",
    ["", "md5", "SCRAM-SHA-256$0:YQ==$YQ==:YQ==", "SCRAM-SHA-256$4096:YQ==$YQ==:YQ==",
     "SCRAM-SHA-256$4096:a$b:c"],
)  # fmt: skip
def test_what_is_no_verifier(text: str) -> None:
    assert parse_verifier(text) is None


def test_mock_verifier_is_stable_for_a_name() -> None:
    assert auth.mock_verifier("a", SECRET) == auth.mock_verifier("a", SECRET)
    assert auth.mock_verifier("a", SECRET).salt != auth.mock_verifier("b", SECRET).salt


@pytest.mark.parametrize(
    ("mechanism", "data", "kind"),
    [
        ("SCRAM-SHA-1", b"n,,n=,r=abc", errors.ProtocolViolation),
        ("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=abc", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"p=tls-unique,,n=,r=abc", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"x,,n=,r=abc", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"n", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"n,a=other,n=,r=abc", errors.FeatureNotSupported),
        ("SCRAM-SHA-256", b"n,,m=x,n=,r=abc", errors.FeatureNotSupported),
        ("SCRAM-SHA-256", b"n,,r=abc", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"n,,n=", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"n,,n=,r=", errors.ProtocolViolation),
        ("SCRAM-SHA-256", b"n,,n=,r=a b", errors.ProtocolViolation),
    ],
)
def test_wrong_first_messages(mechanism: str, data: bytes, kind: type[errors.SqlError]) -> None:
    with pytest.raises(kind):
        ScramServer("u", None, secret=SECRET).first(mechanism, data)


def test_downgrade_is_noticed() -> None:
    server = ScramServer("u", None, secret=SECRET, end_point=b"x")
    with pytest.raises(errors.InvalidAuthorizationSpecification, match="negotiation"):
        server.first("SCRAM-SHA-256", b"y,,n=,r=abc")


@pytest.mark.parametrize(
    "data",
    [b"", b"c=biws", b"c=biws,r=wrong,p=YQ==", b"x=biws,r=%b,p=YQ==", b"c=eSws,r=%b,p=YQ==",
     b"c=biws,r=%b,p=YQ==", b"c=biws,r=%b,p=!!"],
)  # fmt: skip
def test_wrong_final_messages(data: bytes) -> None:
    server = ScramServer("u", make_verifier("x"), secret=SECRET)
    first = server.first("SCRAM-SHA-256", b"n,,n=,r=abc")
    nonce = first.split(b",")[0][2:]
    with pytest.raises(errors.ProtocolViolation):
        server.final(data.replace(b"%b", nonce))


def test_end_point_hash_of_a_certificate() -> None:
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    def certificate(key: object, algorithm: object) -> bytes:
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
        day = datetime.datetime(2024, 1, 1)
        made = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name)
            .public_key(key.public_key()).serial_number(1)  # type: ignore[attr-defined]
            .not_valid_before(day).not_valid_after(day + datetime.timedelta(9999))
            .sign(key, algorithm)
        )  # fmt: skip
        return bytes(made.public_bytes(serialization.Encoding.DER))

    der = certificate(ec.generate_private_key(ec.SECP256R1()), hashes.SHA384())
    assert auth.server_end_point(der) == hashlib.sha384(der).digest()
    der = certificate(ed25519.Ed25519PrivateKey.generate(), None)
    assert auth.server_end_point(der) is None


# --- over the protocol --------------------------------------------------------------------------


def scram_conversation() -> Conversation:
    return Conversation(
        FakeBackend(),
        policy=Policy("scram-sha-256", SECRET),
        peer=Peer(7, b"\1\2\3\4"),
        cancel=lambda process_id, key: None,
        terminate=lambda error: None,
    )


def say(talk: Conversation, data: bytes) -> bytes:
    talk.receive(data)
    return b"".join(talk.run())


@pytest.mark.parametrize(("user", "password"), [("u", "secret"), ("u", "wrong"), ("nobody", "x")])
def test_login(user: str, password: str) -> None:
    talk = scram_conversation()
    offered = say(talk, StartupMessage(3 << 16, (("user", user),)).encode())
    assert split_messages(offered) == [("R", b"\0\0\0\nSCRAM-SHA-256\0\0")]
    client = ScramClient(["SCRAM-SHA-256"], "ignored", password)
    first = SaslInitialResponse(b"SCRAM-SHA-256", client.get_client_first().encode())
    _, body = split_messages(say(talk, first.encode()))[0]
    client.set_server_first(body[4:].decode())
    data = say(talk, AuthenticationResponse(client.get_client_final().encode()).encode())
    if password == "secret":
        assert shown(data).startswith("R(12) R(0) S(")
        assert shown(data).endswith("K Z(I)")
        client.set_server_final(split_messages(data)[0][1][4:].decode())
    else:
        fields = report(split_messages(data)[0][1])
        assert fields["C"] == "28P01"
        assert fields["S"] == "FATAL"
        assert fields["M"] == f'password authentication failed for user "{user}"'
        assert talk.is_closed


def test_other_messages_during_authentication_are_fatal() -> None:
    talk = scram_conversation()
    say(talk, StartupMessage(3 << 16, (("user", "u"),)).encode())
    assert shown(say(talk, b"Q\0\0\0\5\0")) == "E(FATAL 08P01)"
    assert talk.is_closed

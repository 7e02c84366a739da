"""Authentication by SCRAM-SHA-256 (RFC 5802, 7677), with tls-server-end-point binding (RFC 5929).

Verifiers have PostgreSQL's form ``SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>``
(base64), as psql's \\password sends them. An unknown role goes through the same exchange with a
mock verifier that is stable for its name, and fails at the end like a wrong password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass

from gpudb import errors

MECHANISM = "SCRAM-SHA-256"
MECHANISM_PLUS = "SCRAM-SHA-256-PLUS"
ITERATIONS = 4096
SALT_BYTES = 16
NONCE_BYTES = 18

_VERIFIER = re.compile(
    r"SCRAM-SHA-256\$(?P<iterations>[1-9][0-9]{0,8}):(?P<salt>[A-Za-z0-9+/=]+)"
    r"\$(?P<stored>[A-Za-z0-9+/=]+):(?P<server>[A-Za-z0-9+/=]+)"
)


@dataclass(frozen=True, slots=True)
class Verifier:
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = map(_base64, (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, *, iterations: int = ITERATIONS, salt: bytes = b"") -> str:
    """The verifier of a password, with a random salt if none is given."""
    salt = salt or secrets.token_bytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", _prepare(password), salt, iterations)
    client_key = _hmac(salted, b"Client Key")
    stored_key = hashlib.sha256(client_key).digest()
    return str(Verifier(iterations, salt, stored_key, _hmac(salted, b"Server Key")))


def parse_verifier(text: str) -> Verifier | None:
    """The parts of a verifier; None when the text is not one."""
    found = _VERIFIER.fullmatch(text)
    if found is None:
        return None
    try:
        salt = base64.b64decode(found["salt"], validate=True)
        stored = base64.b64decode(found["stored"], validate=True)
        server = base64.b64decode(found["server"], validate=True)
    except binascii.Error:
        return None
    if len(stored) != 32 or len(server) != 32:
        return None
    return Verifier(int(found["iterations"]), salt, stored, server)


def is_password(password: str, verifier: str) -> bool:
    """Whether a cleartext password fits a verifier."""
    parts = parse_verifier(verifier)
    if parts is None:
        return False
    made = make_verifier(password, iterations=parts.iterations, salt=parts.salt)
    return hmac.compare_digest(made.encode(), str(parts).encode())


def mock_verifier(user: str, secret: bytes) -> Verifier:
    """A verifier no password fits, the same for a name as long as the server's secret lives."""
    salt = _hmac(secret, user.encode("utf-8", "surrogateescape"))[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, bytes(32), bytes(32))


class ScramServer:
    """One exchange: ``first`` answers the client's first message, ``final`` its last.

    ``end_point`` is the certificate hash for channel binding, None without TLS. ``verifier`` None
    makes the exchange fail at its end. Errors are fatal: 28P01 a wrong password, 08P01 a malformed
    message, 28000 and 0A000 for channel binding and authorization identities.
    """

    def __init__(
        self, user: str, verifier: str | None, *, secret: bytes, end_point: bytes | None = None
    ) -> None:
        self._user = user
        known = None if verifier is None else parse_verifier(verifier)
        self._is_doomed = known is None
        self._verifier = known or mock_verifier(user, secret)
        self._end_point = end_point
        self._gs2_header = b""
        self._client_first_bare = b""
        self._server_first = b""
        self._nonce = b""
        self._is_binding = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What to offer, the preferred one first."""
        return (MECHANISM,) if self._end_point is None else (MECHANISM_PLUS, MECHANISM)

    def first(self, mechanism: str, data: bytes) -> bytes:
        """The server-first-message."""
        if mechanism not in self.mechanisms:
            raise errors.ProtocolViolation(
                "client selected an invalid SASL authentication mechanism"
            )
        self._is_binding = mechanism == MECHANISM_PLUS
        flag, rest = data[:1], data[1:]
        if flag == b"p":
            rest = self._check_binding_name(data)
        elif flag in (b"n", b"y"):
            self._check_no_binding(flag)
        else:
            raise _malformed(f"Unexpected channel-binding flag {_shown(flag)}.")
        if not rest.startswith(b","):
            raise _malformed(f"Comma expected, but found character {_shown(rest[:1])}.")
        if rest.startswith(b",a"):
            raise errors.FeatureNotSupported(
                "client uses authorization identity, but it is not supported"
            )
        if not rest.startswith(b",,"):
            raise _malformed(f"Unexpected attribute {_shown(rest[1:2])} in client-first-message.")
        bare = rest[2:]
        self._gs2_header = data[: len(data) - len(bare)]
        self._client_first_bare = bare
        return self._server_first_message(bare)

    def final(self, data: bytes) -> bytes:
        """The server-final-message, when the proof is right; raises 28P01 otherwise."""
        without_proof, separator, proof_text = data.rpartition(b",p=")
        if not separator:
            raise _malformed("Attribute expected, but found end of message.")
        attributes = without_proof.split(b",")
        if not attributes[0].startswith(b"c="):
            raise _malformed('Expected attribute "c" in client-final-message.')
        self._check_binding_data(attributes[0][2:])
        if len(attributes) < 2 or attributes[1] != b"r=" + self._nonce:
            raise errors.ProtocolViolation(
                "invalid SCRAM response", detail="Nonce does not match."
            )
        proof = _decode64(proof_text, "Malformed proof in client-final-message.")
        if len(proof) != 32:
            raise _malformed("Malformed proof in client-final-message.")
        message = b",".join((self._client_first_bare, self._server_first, without_proof))
        signature = _hmac(self._verifier.stored_key, message)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(
            hashlib.sha256(client_key).digest(), self._verifier.stored_key
        )
        if self._is_doomed or not is_right:
            raise errors.InvalidPassword(
                f'password authentication failed for user "{self._user}"'
            )
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, message))

    def _check_binding_name(self, data: bytes) -> bytes:
        if not self._is_binding:
            raise _malformed(
                "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message "
                "includes channel binding data."
            )
        name, _, _ = data.partition(b",")
        if name != b"p=tls-server-end-point":
            shown = name[2:].decode("ascii", "replace")
            raise errors.ProtocolViolation(
                f'unsupported SCRAM channel-binding type "{shown}"'
            )
        return data[len(name) :]

    def _check_no_binding(self, flag: bytes) -> None:
        if self._is_binding:
            raise _malformed(
                "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include "
                "channel binding data."
            )
        if flag == b"y" and self._end_point is not None:
            raise errors.InvalidAuthorizationSpecification(
                "SCRAM channel binding negotiation error",
                detail="The client supports SCRAM channel binding but thinks the server does not.  "
                "However, this server does support channel binding.",
            )

    def _server_first_message(self, bare: bytes) -> bytes:
        attributes = bare.split(b",")
        if attributes[0].startswith(b"m="):
            raise errors.FeatureNotSupported("client requires an unsupported SCRAM extension")
        if not attributes[0].startswith(b"n="):
            raise _malformed('Expected attribute "n" in client-first-message.')
        if len(attributes) < 2 or not attributes[1].startswith(b"r="):
            raise _malformed('Expected attribute "r" in client-first-message.')
        client_nonce = attributes[1][2:]
        if not client_nonce or any(not 0x21 <= byte <= 0x7E for byte in client_nonce):
            raise errors.ProtocolViolation("non-printable characters in SCRAM nonce")
        self._nonce = client_nonce + base64.b64encode(secrets.token_bytes(NONCE_BYTES))
        salt = base64.b64encode(self._verifier.salt)
        self._server_first = b"r=%s,s=%s,i=%d" % (self._nonce, salt, self._verifier.iterations)
        return self._server_first

    def _check_binding_data(self, text: bytes) -> None:
        expected = self._gs2_header
        if self._is_binding:
            assert self._end_point is not None
            expected += self._end_point
        if not hmac.compare_digest(text, base64.b64encode(expected)):
            if self._is_binding:
                raise errors.InvalidAuthorizationSpecification("SCRAM channel binding check failed")
            raise errors.ProtocolViolation(
                "unexpected SCRAM channel-binding attribute in client-final-message"
            )


# Signature algorithms of certificates and the hash that binds them (RFC 5929: MD5 and SHA-1 are
# replaced by SHA-256). RSASSA-PSS and EdDSA name no single hash: no channel binding with them.
_SIGNATURE_HASHES = {
    bytes.fromhex("2a864886f70d010104"): "sha256",  # md5WithRSA
    bytes.fromhex("2a864886f70d010105"): "sha256",  # sha1WithRSA
    bytes.fromhex("2a864886f70d01010e"): "sha224",
    bytes.fromhex("2a864886f70d01010b"): "sha256",
    bytes.fromhex("2a864886f70d01010c"): "sha384",
    bytes.fromhex("2a864886f70d01010d"): "sha512",
    bytes.fromhex("2a8648ce3d0401"): "sha256",  # ecdsaWithSHA1
    bytes.fromhex("2a8648ce3d040301"): "sha224",
    bytes.fromhex("2a8648ce3d040302"): "sha256",
    bytes.fromhex("2a8648ce3d040303"): "sha384",
    bytes.fromhex("2a8648ce3d040304"): "sha512",
}


def server_end_point(certificate: bytes) -> bytes | None:
    """The tls-server-end-point hash of a DER certificate; None if its signature names no hash."""
    body, _ = _der_content(certificate, 0)
    _, after_tbs = _der_content(body, 0)
    algorithm, _ = _der_content(body, after_tbs)
    oid, _ = _der_content(algorithm, 0)
    name = _SIGNATURE_HASHES.get(oid)
    return None if name is None else hashlib.new(name, certificate).digest()


def _der_content(data: bytes, start: int) -> tuple[bytes, int]:
    """The content of the DER element at ``start`` and the position after it."""
    size, position = data[start + 1], start + 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[position : position + count], "big")
        position += count
    return data[position : position + size], position + size


def _prepare(password: str) -> bytes:
    """SASLprep (RFC 4013); a password it does not allow is used as it is, as PostgreSQL does."""
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char
        for char in password
        if not stringprep.in_table_b1(char)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    is_allowed = bool(normal) and not any(map(_is_prohibited, normal)) and _is_bidi_right(normal)
    return (normal if is_allowed else password).encode("utf-8")


def _is_prohibited(char: str) -> bool:
    return any(
        table(char)
        for table in (
            stringprep.in_table_a1, stringprep.in_table_c12, stringprep.in_table_c21_c22,
            stringprep.in_table_c3, stringprep.in_table_c4, stringprep.in_table_c5,
            stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
            stringprep.in_table_c9,
        )
    )  # fmt: skip


def _is_bidi_right(text: str) -> bool:
    if not any(map(stringprep.in_table_d1, text)):
        return True
    has_left = any(map(stringprep.in_table_d2, text))
    return not has_left and stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode64(text: bytes, detail: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _malformed(detail) from None


def _malformed(detail: str) -> errors.ProtocolViolation:
    return errors.ProtocolViolation("malformed SCRAM message", detail=detail)


def _shown(char: bytes) -> str:
    return f'"{char.decode("ascii", "replace")}"' if char else "end of message"

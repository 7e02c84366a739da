"""The SQL side of privileges: text of aclitem, acldefault, aclexplode, lists of privileges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.catalog.objects import ROLE_PUBLIC, AclItem
from gpudb.catalog.privileges import LETTER_ORDER, PRIVILEGE_LETTERS

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot

_PRIVILEGE_NAMES = {
    "a": "INSERT",
    "r": "SELECT",
    "w": "UPDATE",
    "d": "DELETE",
    "D": "TRUNCATE",
    "x": "REFERENCES",
    "t": "TRIGGER",
    "X": "EXECUTE",
    "U": "USAGE",
    "C": "CREATE",
    "T": "TEMPORARY",
    "c": "CONNECT",
    "s": "SET",
    "A": "ALTER SYSTEM",
}
_DEFAULTS = {
    "c": ("", ""),
    "r": ("", "arwdDxt"),
    "s": ("", "rwU"),
    "d": ("Tc", "CTc"),
    "f": ("X", "X"),
    "l": ("U", "U"),
    "L": ("", "rw"),
    "n": ("", "UC"),
    "p": ("", "sA"),
    "t": ("", "C"),
    "F": ("", "U"),
    "S": ("", "U"),
    "T": ("U", "U"),
}
"""What PUBLIC and the owner hold, by the abbreviation that acldefault() takes."""


def default_items(kind: str, owner: int) -> tuple[AclItem, ...]:
    """acldefault(kind, owner); XX000 for an unknown kind."""
    if kind not in _DEFAULTS:
        raise errors.InternalError(f"unrecognized objtype abbreviation: {kind}")
    public, own = _DEFAULTS[kind]
    pairs = ((ROLE_PUBLIC, public), (owner, own))
    return tuple(AclItem(grantee, owner, letters) for grantee, letters in pairs if letters)


def exploded(items: tuple[AclItem, ...]) -> Iterator[tuple[int, int, str, bool]]:
    """aclexplode(): (grantor, grantee, privilege_type, is_grantable)."""
    for item in items:
        for letter in LETTER_ORDER:
            if letter in item.privileges:
                name = _PRIVILEGE_NAMES[letter]
                yield (item.grantor, item.grantee, name, letter in item.grantable)


def _cut_name(text: str) -> tuple[str, str]:
    """The role name at the start of an aclitem and the rest of it."""
    if not text.startswith('"'):
        end = next((i for i, c in enumerate(text) if not (c.isalnum() or c in "_$")), len(text))
        return text[:end], text[end:]
    at = 1
    name = ""
    while at < len(text):
        if text[at] == '"':
            if text[at + 1 : at + 2] != '"':
                return name, text[at + 1 :]
            at += 1
        name += text[at]
        at += 1
    return name, ""


def _role(snapshot: CatalogSnapshot, name: str) -> int:
    role = snapshot.role(name)
    if role is None:
        raise errors.UndefinedObject(f'role "{name}" does not exist')
    return role.oid


def parse_item(snapshot: CatalogSnapshot, text: str) -> AclItem:
    """An aclitem from its text; 22P02 and 42704 as aclitemin raises them."""
    name, rest = _cut_name(text.strip())
    if not rest.startswith("="):
        raise errors.InvalidTextRepresentation(
            f'unrecognized key word: "{name}"', hint='ACL key word must be "group" or "user".'
        )
    letters = grantable = ""
    modes, slash, grantor_text = rest[1:].partition("/")
    for mode in modes:
        if mode == "*":
            grantable += letters[-1:]
        elif mode in LETTER_ORDER:
            letters += mode
        else:
            raise errors.InvalidTextRepresentation(
                f'invalid mode character: must be one of "{LETTER_ORDER}"'
            )
    if slash and not grantor_text:
        raise errors.InvalidTextRepresentation('a name must follow the "/" sign')
    grantor = _role(snapshot, _cut_name(grantor_text)[0]) if slash else 10
    grantee = _role(snapshot, name) if name else ROLE_PUBLIC
    return AclItem(grantee, grantor, letters, grantable)


def parse_privileges(text: str, allowed: str) -> list[tuple[str, bool]]:
    """(letter, asks for the grant option) of each privilege in a list like has_*_privilege take.

    ``allowed`` are the letters that the kind of object has. Raises InvalidParameterValue (22023)
    for any other privilege.
    """
    found = []
    for part in text.split(","):
        word = part.strip()
        name = word.upper()
        with_option = name.endswith(" WITH GRANT OPTION")
        letter = PRIVILEGE_LETTERS.get(name.removesuffix(" WITH GRANT OPTION"), "")
        if not letter or letter not in allowed:
            raise errors.InvalidParameterValue(f'unrecognized privilege type: "{word}"')
        found.append((letter, with_option))
    return found

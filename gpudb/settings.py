"""Settings: one record each, from which SHOW, SET, pg_settings, GPUDB_* variables and docs follow.

PostgreSQL 15's parameters (names, types, units, ranges, contexts) stand in settings.tsv, taken
from its pg_settings; gpudb's own are OWN below, with the defaults that differ in OVERRIDES.
A value travels as its canonical text; ``typed`` gives bool, int (in the setting's unit), float or
str. This module is the only reader of os.environ.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources

from gpudb import errors

SERVER_VERSION = "15.18"
SERVER_VERSION_NUMBER = 150018

Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Setting:
    """``kind``: bool, integer, real, string or enum; ``unit`` of the number; ``context`` says who
    may set it when (internal, postmaster, sighup, superuser, user ...), as in pg_settings.
    """

    name: str
    kind: str
    default: str
    description: str
    unit: str = ""
    context: str = "user"
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    category: str = "gpudb"
    extra: str = ""


REPORTED = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only",
    "in_hot_standby", "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding",
    "server_version", "session_authorization", "standard_conforming_strings", "TimeZone",
)
"""Parameters that ParameterStatus tells the client, in PostgreSQL 15's order."""

OVERRIDES: dict[str, str] = {
    "TimeZone": "UTC",
    "log_timezone": "UTC",
    "client_encoding": "UTF8",
    "server_encoding": "UTF8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C",
    "port": "5433",
    "listen_addresses": "127.0.0.1",
    "server_version": SERVER_VERSION,
    "server_version_num": str(SERVER_VERSION_NUMBER),
    "default_text_search_config": "pg_catalog.simple",
    "shared_buffers": "16384",
    "password_encryption": "scram-sha-256",
    "max_connections": "100",
    "jit": "off",
}

_KB = "kB"
OWN: tuple[Setting, ...] = (
    Setting("gpudb.batch_rows", "integer", "262144", "Sets the rows of a batch on the CPU.",
            minimum=1, maximum=1 << 22),
    Setting("gpudb.threads", "integer", "0",
            "Sets the worker threads of a process; 0 takes one per CPU core.",
            context="postmaster", minimum=0, maximum=1024),
    Setting("gpudb.device", "string", "auto",
            "Sets where queries run: auto, cpu, cuda or cuda:N.", context="postmaster"),
    Setting("gpudb.require_device", "string", "",
            "Makes running anywhere but on this device an error."),
    Setting("gpudb.memory_limit", "integer", "0",
            "Sets the memory that all queries of a process may reserve; 0 takes half of RAM.",
            unit=_KB, context="superuser", minimum=0, maximum=1 << 40),
    Setting("gpudb.cache_size", "integer", "0",
            "Sets the memory for loaded columns; 0 takes a quarter of RAM.",
            unit=_KB, context="postmaster", minimum=0, maximum=1 << 40),
    Setting("gpudb.segment_rows", "integer", "1048576", "Sets the rows of a new table's segments.",
            minimum=1024, maximum=1 << 22),
    Setting("gpudb.optimizer", "bool", "on", "Enables the optional rewrite rules."),
    Setting("gpudb.disabled_rules", "string", "", "Lists optimizer rules that are not run."),
    Setting("gpudb.force_padding", "bool", "off",
            "Pads every batch with rows that must not count (for tests)."),
    Setting("gpudb.force_spill", "bool", "off", "Spills at every opportunity (for tests)."),
    Setting("gpudb.prepare_all", "bool", "off", "Runs every statement as a prepared one (tests)."),
    Setting("gpudb.file_roots", "string", "",
            "Lists the directories below which superusers may read and write files.",
            context="sighup"),
    Setting("gpudb.compiled_kernels", "bool", "on", "Enables the compiled loops on the CPU."),
)


@functools.cache
def registry() -> Mapping[str, Setting]:
    """All settings by lower-case name."""
    found: dict[str, Setting] = {}
    text = resources.files("gpudb").joinpath("settings.tsv").read_text("utf-8")
    for line in text.splitlines():
        fields = [_unescape(item) for item in line.split("\t")]
        name, kind, unit, context, low, high, choices, default, category, short, extra = fields
        found[name.lower()] = Setting(
            name, kind, OVERRIDES.get(name, default), short, unit, context,
            float(low) if low else None, float(high) if high else None,
            tuple(choices.split(",")) if choices else (), category, extra,
        )
    for setting in OWN:
        found[setting.name] = setting
    for key, setting in found.items():
        variable = "GPUDB_" + setting.name.removeprefix("gpudb.").upper()
        if variable in os.environ:
            value = canonical(setting, os.environ[variable])
            found[key] = replace(setting, default=value)
    return found


def _unescape(text: str) -> str:
    return text.replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")


def find(name: str) -> Setting:
    """The setting of that name, in any case; 42704."""
    setting = registry().get(name.lower())
    if setting is None:
        raise errors.UndefinedObject(f'unrecognized configuration parameter "{name}"')
    return setting


# --- values ---------------------------------------------------------------------------------

_MEMORY = {"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_TIME = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER = re.compile(
    r"\s*([-+]?(?:0[xX][0-9a-fA-F]+|\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.?))\s*(\S*)\s*$"
)
_TRUE = ("on", "true", "yes", "1")
_FALSE = ("off", "false", "no", "0")


def parse_bool(text: str) -> bool | None:
    """A boolean as SET takes it: on/off, true/false, yes/no, 1/0 and unique prefixes."""
    word = text.strip().lower()
    if not word:
        return None
    for value, spellings in ((True, _TRUE), (False, _FALSE)):
        if any(s.startswith(word) and (len(word) > 1 or s[0] != "o") for s in spellings):
            return value
    return None


def canonical(setting: Setting, text: str) -> str:
    """The stored text of a value; 22023 for one that the setting does not take."""
    match setting.kind:
        case "bool":
            flag = parse_bool(text)
            if flag is None:
                raise errors.InvalidParameterValue(
                    f'parameter "{setting.name}" requires a Boolean value'
                )
            return "on" if flag else "off"
        case "enum":
            return _choice(setting, text)
        case "integer" | "real":
            return _number(setting, text)
        case _:
            special = _SPECIAL.get(setting.name)
            return special(setting, text) if special is not None else text


def _choice(setting: Setting, text: str) -> str:
    wanted = text.lower()
    if wanted in setting.choices:
        return wanted
    flag = parse_bool(text)
    if flag is not None and ("on" if flag else "off") in setting.choices:
        return "on" if flag else "off"
    raise errors.InvalidParameterValue(
        f'invalid value for parameter "{setting.name}": "{text}"',
        hint=f"Available values: {', '.join(setting.choices)}.",
    )


def _invalid(setting: Setting, text: str, hint: str = "") -> errors.SqlError:
    return errors.InvalidParameterValue(
        f'invalid value for parameter "{setting.name}": "{text}"', hint=hint
    )


def _number(setting: Setting, text: str) -> str:
    match = _NUMBER.match(text)
    if match is None:
        raise _invalid(setting, text)
    digits, unit = match.groups()
    value: float = int(digits, 16) if "x" in digits.lower() else float(digits)
    if unit:
        value *= _conversion(setting, text, unit)
    if setting.kind == "integer":
        value = int(digits) if digits.lstrip("+-").isdigit() and not unit else round(value)
    low = -math.inf if setting.minimum is None else setting.minimum
    high = math.inf if setting.maximum is None else setting.maximum
    if not low <= value <= high:
        shown = f" {setting.unit}" if setting.unit else ""
        raise errors.InvalidParameterValue(
            f'{value:g}{shown} is outside the valid range for parameter "{setting.name}" '
            f"({low:.15g} .. {high:.15g})"
        )
    return str(value) if setting.kind == "integer" else f"{value:g}"


def _conversion(setting: Setting, text: str, unit: str) -> float:
    for family in (_MEMORY, _TIME):
        if setting.unit in family:
            if unit in family:
                return family[unit] / family[setting.unit]
            names = [n for n in family if n != "8kB"]
            quoted = ", ".join(f'"{n}"' for n in names[:-1])
            raise _invalid(
                setting, text,
                f'Valid units for this parameter are {quoted}, and "{names[-1]}".',
            )
    raise _invalid(setting, text)


def typed(setting: Setting, text: str) -> Value:
    """The value of a canonical text."""
    match setting.kind:
        case "bool":
            return text == "on"
        case "integer":
            return int(text)
        case "real":
            return float(text)
    return text


def shown(setting: Setting, text: str) -> str:
    """What SHOW displays: numbers in the largest unit that is exact."""
    if setting.kind not in ("integer", "real") or not setting.unit:
        return text
    value = float(text)
    if value <= 0:
        return text
    for family in (_MEMORY, _TIME):
        if setting.unit in family:
            scaled = value * family[setting.unit]
            for unit, factor in sorted(family.items(), key=lambda item: -item[1]):
                if unit != "8kB" and scaled % factor == 0:
                    return f"{int(scaled // factor)}{unit}"
            return f"{text}{setting.unit}"
    return text


# --- settings with a grammar of their own -----------------------------------------------------

_ENCODINGS = {
    "utf8": "UTF8", "unicode": "UTF8", "sqlascii": "SQL_ASCII", "latin1": "LATIN1",
    "iso88591": "LATIN1", "latin9": "LATIN9", "win1252": "WIN1252", "win1251": "WIN1251",
    "win1250": "WIN1250", "latin2": "LATIN2", "eucjp": "EUC_JP", "sjis": "SJIS", "gbk": "GBK",
    "big5": "BIG5", "euckr": "EUC_KR", "koi8r": "KOI8R", "ascii": "SQL_ASCII",
}
PYTHON_CODECS = {
    "UTF8": "utf-8", "SQL_ASCII": "utf-8", "LATIN1": "latin-1", "LATIN9": "iso8859-15",
    "WIN1252": "cp1252", "WIN1251": "cp1251", "WIN1250": "cp1250", "LATIN2": "iso8859-2",
    "EUC_JP": "euc_jp", "SJIS": "shift_jis", "GBK": "gbk", "BIG5": "big5", "EUC_KR": "euc_kr",
    "KOI8R": "koi8-r",
}
"""Python's codec of each client_encoding."""


def _client_encoding(setting: Setting, text: str) -> str:
    key = re.sub(r"[^a-z0-9]", "", text.lower())
    if key not in _ENCODINGS:
        raise _invalid(setting, text)
    return _ENCODINGS[key]


_STYLES = {"iso": "ISO", "sql": "SQL", "postgres": "Postgres", "german": "German"}
_ORDERS = {
    "ymd": "YMD", "dmy": "DMY", "mdy": "MDY", "us": "MDY", "noneuropean": "MDY",
    "nonaeuropean": "MDY", "euro": "DMY", "european": "DMY",
}


def _date_style(setting: Setting, text: str, current: str = "ISO, MDY") -> str:
    style, order = current.split(", ")
    for word in filter(None, (w.strip().strip("'\"") for w in text.split(","))):
        key = word.lower()
        if key == "default":
            style, order = "ISO", "MDY"
        elif key in _STYLES or (key.startswith("postgres") and key != "postgres"):
            style = _STYLES.get(key, "Postgres")
            order = "DMY" if key == "german" else order
        elif key in _ORDERS:
            order = _ORDERS[key]
        else:
            raise errors.InvalidParameterValue(
                f'invalid value for parameter "DateStyle": "{text}"',
                detail=f'Unrecognized key word: "{word}".',
            )
    return f"{style}, {order}"


_SPECIAL = {
    "client_encoding": _client_encoding,
    "DateStyle": _date_style,
}


# --- a session's values -------------------------------------------------------------------------


class SessionSettings(Mapping[str, Value]):
    """The settings of one session: session values, transaction values, SET LOCAL values.

    Reads give typed values. ``begin``, ``savepoint``, ``rollback_to``, ``end`` follow the
    transaction: SET is undone by a rollback, SET LOCAL by the end of the transaction.
    ``validators`` (by lower-case name) make the canonical text of values that need more than
    this module knows, None for a wrong one.
    """

    def __init__(
        self,
        defaults: Mapping[str, str] | None = None,
        validators: Mapping[str, Callable[[str], str | None]] | None = None,
    ) -> None:
        self._validators = dict(validators or {})
        self._defaults = {key.lower(): value for key, value in (defaults or {}).items()}
        self._session: dict[str, str] = {}
        self._local: dict[str, str] = {}
        self._saved: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.version = 0
        self._typed: dict[str, Value] = {}

    # Reading

    def text(self, name: str) -> str:
        """The canonical text; custom settings (with a dot) that are unknown raise 42704."""
        key = name.lower()
        for level in (self._local, self._session, self._defaults):
            if key in level:
                return level[key]
        return find(name).default

    def is_known(self, name: str) -> bool:
        key = name.lower()
        return key in registry() or any(
            key in level for level in (self._local, self._session, self._defaults)
        )

    def show(self, name: str) -> str:
        text = self.text(name)
        setting = registry().get(name.lower())
        return text if setting is None else shown(setting, text)

    def default_text(self, name: str) -> str:
        key = name.lower()
        return self._defaults[key] if key in self._defaults else find(name).default

    def __getitem__(self, name: str) -> Value:
        found = self._typed.get(name)
        if found is None:
            if not self.is_known(name):
                raise KeyError(name)
            text = self.text(name)
            setting = registry().get(name.lower())
            found = self._typed[name] = text if setting is None else typed(setting, text)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(registry())

    def __len__(self) -> int:
        return len(registry())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.is_known(name)

    def assigned(self) -> dict[str, str]:
        """The texts that differ from the server's defaults, by lower-case name."""
        return {**self._defaults, **self._session, **self._local}

    def custom(self) -> dict[str, str]:
        """Settings that only this session knows (placeholders such as ``my.variable``)."""
        return {k: v for k, v in self.assigned().items() if k not in registry()}

    # Writing

    def assign(self, name: str, text: str, *, is_local: bool = False) -> None:
        """SET; the value must be acceptable (22023), the name known or have a dot (42704)."""
        setting = registry().get(name.lower())
        if setting is None and "." not in name:
            raise errors.UndefinedObject(f'unrecognized configuration parameter "{name}"')
        value = text
        if setting is not None:
            if setting.name == "DateStyle":
                value = _date_style(setting, text, self.text("DateStyle"))
            elif name.lower() in self._validators:
                checked = self._validators[name.lower()](text)
                if checked is None:
                    raise _invalid(setting, text)
                value = checked
            else:
                value = canonical(setting, text)
        self._store(name.lower(), value, is_local)

    def _store(self, key: str, value: str | None, is_local: bool) -> None:
        if is_local:
            if value is not None:
                self._local[key] = value
        else:
            self._local.pop(key, None)
            if value is None:
                self._session.pop(key, None)
            else:
                self._session[key] = value
        self._changed()

    def reset(self, name: str) -> None:
        """RESET: back to the default of the session's start."""
        if name.lower() not in self.custom():
            find(name)
        self._store(name.lower(), None, is_local=False)

    def reset_all(self) -> None:
        self._session.clear()
        self._local.clear()
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._typed.clear()

    # Transactions

    def begin(self, name: str = "") -> None:
        """A transaction or a savepoint of that name starts."""
        self._saved.append((name, dict(self._session), dict(self._local)))

    def rollback_to(self, name: str) -> None:
        """Back to the savepoint, which stays."""
        while self._saved:
            saved, session, local = self._saved[-1]
            if saved == name:
                self._session, self._local = dict(session), dict(local)
                break
            self._saved.pop()
        self._changed()

    def release(self, name: str) -> None:
        """Forget the savepoint and those after it; their changes stay."""
        while self._saved and self._saved.pop()[0] != name:
            continue

    def end(self, *, is_commit: bool) -> None:
        """The transaction ends: local values go; after a rollback the session's return too."""
        if self._saved and not is_commit:
            self._session = self._saved[0][1]
        self._local = {}
        self._saved.clear()
        self._changed()

"""The options of COPY, checked as PostgreSQL checks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpudb import errors, settings
from gpudb.optimizer.statements import nodes

FORMATS = ("text", "csv", "binary", "parquet")


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """``null`` and ``delimiter`` have their format's default; column lists are () for none and
    None for ``*``. ``header`` is off, on or match.
    """

    format: str
    delimiter: str
    null: str
    header: str = "off"
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = ()
    force_not_null: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()
    encoding: str = ""


def _columns(value: Any) -> tuple[str, ...] | None:
    if value == "*":
        return None
    return value if isinstance(value, tuple) else (str(value),)


def copy_options(statement: nodes.Copy) -> CopyOptions:
    """The options of a statement; 42601, 0A000, 22023 as PostgreSQL has them."""
    given: dict[str, Any] = {}
    for option in statement.options:
        name = option.name.lower()
        if name in given:
            raise errors.SyntaxError("conflicting or redundant options", position=option.position)
        given[name] = option.value
    known = {
        "format", "delimiter", "null", "header", "quote", "escape", "force_quote",
        "force_not_null", "force_null", "encoding", "freeze", "default",
    }
    for option in statement.options:
        if option.name.lower() not in known:
            raise errors.SyntaxError(
                f'option "{option.name}" not recognized', position=option.position
            )
    format = str(given.get("format", "text")).lower()
    if format not in FORMATS:
        raise errors.InvalidParameterValue(f'COPY format "{given["format"]}" not recognized')
    options = _checked(statement, given, format)
    if options.encoding and settings.canonical(
        settings.find("client_encoding"), options.encoding
    ) != "UTF8":
        raise errors.FeatureNotSupported("COPY in other encodings than UTF8 is not supported")
    return options


def _checked(statement: nodes.Copy, given: dict[str, Any], format: str) -> CopyOptions:
    is_csv = format == "csv"
    if format == "binary":
        for name in ("delimiter", "null"):
            if name in given:
                raise errors.SyntaxError(f"cannot specify {name.upper()} in BINARY mode")
    delimiter = str(given.get("delimiter", "," if is_csv else "\t"))
    null = str(given.get("null", "" if is_csv else "\\N"))
    quote = str(given.get("quote", '"'))
    escape = str(given.get("escape", quote))
    if len(delimiter.encode()) != 1:
        raise errors.FeatureNotSupported("COPY delimiter must be a single one-byte character")
    if delimiter in "\r\n":
        raise errors.InvalidParameterValue("COPY delimiter cannot be newline or carriage return")
    if "\r" in null or "\n" in null:
        raise errors.InvalidParameterValue(
            "COPY null representation cannot use newline or carriage return"
        )
    if not is_csv and delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise errors.InvalidParameterValue(f'COPY delimiter cannot be "{delimiter}"')
    _only_csv(given, is_csv)
    if is_csv:
        if len(quote.encode()) != 1:
            raise errors.FeatureNotSupported("COPY quote must be a single one-byte character")
        if delimiter == quote:
            raise errors.InvalidParameterValue("COPY delimiter and quote must be different")
        if len(escape.encode()) != 1:
            raise errors.FeatureNotSupported("COPY escape must be a single one-byte character")
        if quote in null:
            raise errors.FeatureNotSupported(
                "CSV quote character must not appear in the NULL specification"
            )
    if delimiter in null:
        raise errors.FeatureNotSupported(
            "COPY delimiter must not appear in the NULL specification"
        )
    if "force_quote" in given and statement.is_from:
        raise errors.FeatureNotSupported("COPY force quote only available using COPY TO")
    for name in ("force_not_null", "force_null"):
        if name in given and not statement.is_from:
            words = name.replace("_", " ")
            raise errors.FeatureNotSupported(f"COPY {words} only available using COPY FROM")
    return CopyOptions(
        format, delimiter, null, _header(given, statement, format), quote, escape,
        _columns(given["force_quote"]) if "force_quote" in given else (),
        _columns(given.get("force_not_null", ())) or (),
        _columns(given.get("force_null", ())) or (),
        str(given.get("encoding", "")),
    )


def _only_csv(given: dict[str, Any], is_csv: bool) -> None:
    words = {
        "quote": "quote", "escape": "escape", "force_quote": "force quote",
        "force_not_null": "force not null", "force_null": "force null",
    }
    for name, shown in words.items():
        if name in given and not is_csv:
            raise errors.FeatureNotSupported(f"COPY {shown} available only in CSV mode")


def _header(given: dict[str, Any], statement: nodes.Copy, format: str) -> str:
    if "header" not in given:
        return "off"
    value = given["header"]
    if str(value).lower() == "match":
        if not statement.is_from:
            raise errors.FeatureNotSupported('cannot use "match" with HEADER in COPY TO')
        return "match"
    flag = True if value is None else settings.parse_bool(str(value))
    if flag is None:
        raise errors.SyntaxError('header requires a Boolean value or "match"')
    if flag and format in ("binary", "parquet"):
        raise errors.FeatureNotSupported(f"cannot specify HEADER in {format.upper()} mode")
    return "on" if flag else "off"

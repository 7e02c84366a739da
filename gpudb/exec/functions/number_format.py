"""to_char of numbers and to_number."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gpudb import errors
from gpudb.catalog.types.numeric import format_numeric, parse_numeric
from gpudb.exec.functions.rowwise import rowwise
from gpudb.exec.functions.templates import ordinal
from gpudb.kernels.decimal_math import round_to

_TEMPLATES_MAX = 256
_TOKEN = re.compile(r'EEEE|eeee|FM|fm|TH|th|MI|mi|PL|pl|SG|sg|PR|pr|RN|rn|SP|sp|"[^"]*"|\\.|.',
                    re.DOTALL)
_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
          (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


@dataclass(frozen=True, slots=True)
class Template:
    """A number's template: tokens, and how many digits stand before and after the point."""

    tokens: tuple[str, ...]
    whole: int
    decimals: int
    first_zero: int
    last_zero: int
    shift: int
    marks: frozenset[str]

    @property
    def fills(self) -> bool:
        return "FM" not in self.marks


@lru_cache(_TEMPLATES_MAX)
def parse_template(text: str) -> Template:
    """The template; 42601 for combinations PostgreSQL refuses."""
    found = tuple(_TOKEN.findall(text))
    whole = decimals = shift = 0
    first_zero = last_zero = -1
    after_point = after_v = False
    marks: set[str] = set()
    for token in found:
        upper = token.upper()
        if token in ("9", "0"):
            if after_v:
                shift += 1
            if after_point:
                decimals += 1
                last_zero = decimals if token == "0" else last_zero
            else:
                if token == "0" and first_zero < 0:
                    first_zero = whole
                whole += 1
        elif token == "." or upper == "D":
            if after_point:
                raise errors.SyntaxError("multiple decimal points")
            after_point = True
        elif upper == "V":
            after_v = True
        elif upper in ("FM", "MI", "PL", "SG", "PR", "S", "RN", "EEEE"):
            if upper == "S" and "S" in marks:
                raise errors.SyntaxError('cannot use "S" twice')
            marks.add(upper)
            if upper == "S" and whole == 0 and not after_point:
                marks.add("LEADING S")
    return Template(found, whole, decimals, first_zero, last_zero, shift, frozenset(marks))


def _roman(value: Decimal, template: Template, token_lower: bool) -> str:
    number = int(round_to(value, 0)) if value.is_finite() else 0
    if not 1 <= number <= 3999:
        text = "#" * 15
    else:
        text = ""
        for size, letters in _ROMAN:
            count, number = divmod(number, size)
            text += letters * count
    text = text.lower() if token_lower else text
    return text.rjust(15) if template.fills else text


def _scientific(value: Decimal, template: Template) -> str:
    if not value.is_finite():
        return " " + "#" * template.whole + "." + "#" * template.decimals + "####"
    power = 0 if value.is_zero() else value.adjusted()
    mantissa = round_to(value.scaleb(-power), template.decimals)
    text = f"{format_numeric(mantissa)}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return text if text.startswith("-") or not template.fills else " " + text


class _Renderer:
    """Writes one number along its template."""

    def __init__(self, value: Decimal, template: Template) -> None:
        self.template = template
        scaled = round_to(value.scaleb(template.shift), template.decimals) if (
            value.is_finite()
        ) else value
        self.is_negative = value.is_signed() and not value.is_nan() and not scaled.is_zero()
        whole, _, fraction = format_numeric(scaled.copy_abs()).partition(".")
        if not value.is_finite():
            whole, fraction = "#" * (template.whole + 1), ""
        self.is_overflow = len(whole.lstrip("0")) > template.whole or not template.whole
        self.digits = whole.lstrip("0").rjust(template.whole) if not self.is_overflow else (
            "#" * template.whole
        )
        self.fraction = "#" * template.decimals if self.is_overflow else (
            fraction.ljust(template.decimals, "0")
        )
        is_zero = not template.decimals or (scaled.is_zero() and not template.fills)
        if is_zero and template.whole and not self.digits.strip():
            self.digits = "0".rjust(template.whole)
        self.place = self.decimal = 0
        self.is_started = False
        self.parts: list[str] = []
        self.shown_decimals = self._shown_decimals()

    def _shown_decimals(self) -> int:
        if self.template.fills or self.is_overflow:
            return self.template.decimals
        needed = len(self.fraction.rstrip("0"))
        return max(needed, self.template.last_zero, 0)

    def _sign(self) -> None:
        """The sign that stands right before the first digit, where none is asked for."""
        if self.is_started:
            return
        self.is_started = True
        marks = self.template.marks
        if "PR" in marks:
            self.parts.append("<" if self.is_negative else (" " if self.template.fills else ""))
        elif "LEADING S" in marks:
            self.parts.append("-" if self.is_negative else "+")
        elif not marks & {"S", "MI", "SG"}:
            blank = " " if self.template.fills else ""
            self.parts.append("-" if self.is_negative else blank)

    def render(self) -> str:
        after_point = False
        for index, token in enumerate(self.template.tokens):
            upper = token.upper()
            if token in ("9", "0"):
                if after_point:
                    self._decimal_digit()
                else:
                    self._whole_digit()
            elif token == "." or upper == "D":
                self._sign()
                self.parts.append(".")
                after_point = True
            elif token == "," or upper == "G":
                if self.is_started or after_point:
                    self.parts.append(",")
                elif self.template.fills:
                    self.parts.append(" ")
            elif upper == "V":
                continue
            else:
                self._mark(token, upper, index)
        if "PR" in self.template.marks:
            self.parts.append(">" if self.is_negative else (" " if self.template.fills else ""))
        return "".join(self.parts)

    def _whole_digit(self) -> None:
        digit = self.digits[self.place]
        zero_from = self.template.first_zero
        if digit == " " and 0 <= zero_from <= self.place:
            digit = "0"
        self.place += 1
        if digit == " ":
            if self.template.fills:
                self.parts.append(" ")
            return
        self._sign()
        self.parts.append(digit)

    def _decimal_digit(self) -> None:
        digit = self.fraction[self.decimal]
        self.decimal += 1
        if self.decimal <= self.shown_decimals:
            self.parts.append(digit)

    def _mark(self, token: str, upper: str, index: int) -> None:
        blank = " " if self.template.fills else ""
        match upper:
            case "FM" | "PR" | "SP":
                return
            case "S":
                if "LEADING S" not in self.template.marks:
                    self.parts.append("-" if self.is_negative else "+")
            case "SG":
                self.parts.append("-" if self.is_negative else "+")
            case "MI":
                self.parts.append("-" if self.is_negative else blank)
            case "PL":
                self.parts.append(blank if self.is_negative else "+")
            case "TH":
                if not self.is_negative and not self.template.decimals and not self.is_overflow:
                    self.parts.append(ordinal(int(self.digits.strip() or 0), token))
            case "L":
                self.parts.append(blank)
            case _:
                self.parts.append(token.strip('"') if token[0] == '"' else token.lstrip("\\"))


def format_number(value: Decimal, template_text: str) -> str:
    """to_char(number, template)."""
    template = parse_template(template_text)
    if "RN" in template.marks:
        return _roman(value, template, "rn" in template_text)
    if "EEEE" in template.marks:
        return _scientific(value, template)
    return _Renderer(value, template).render()


@rowwise("numeric_to_char", examples=(("to_char(-125.8, '999D99S')", "125.80-"),))
def numeric_text(value: Decimal, template: str) -> str:
    return format_number(value, template)


@rowwise("int4_to_char", "int8_to_char", examples=(("to_char(125, '999')", " 125"),))
def integer_text(value: int, template: str) -> str:
    return format_number(Decimal(value), template)


def _float_text(digits: int) -> Callable[[float, str], str]:
    def text(value: float, template: str) -> str:
        parsed = parse_template(template)
        exact = Decimal(value)
        if exact.is_finite() and "EEEE" not in parsed.marks:
            rounded = parse_numeric(f"{value:.{digits}g}")
            exact = rounded
        return format_number(exact, template)

    return text


rowwise("float8_to_char")(_float_text(15))
rowwise("float4_to_char")(_float_text(6))


@rowwise("numeric_to_number", examples=(("to_number('12,454.8-', '99G999D9S')", "-12454.8"),))
def to_number(text: str, template_text: str) -> Any:
    """The number in a text written along a template."""
    template = parse_template(template_text)
    is_negative = "-" in text or ("PR" in template.marks and "<" in text)
    limit_whole, limit_decimals = template.whole, template.decimals
    whole, point, fraction = "", False, ""
    for character in text:
        if character == "." and not point:
            point = True
        elif character.isdigit():
            if point and len(fraction) < limit_decimals:
                fraction += character
            elif not point and len(whole) < limit_whole:
                whole += character
    if not whole and not fraction:
        raise errors.InvalidTextRepresentation(
            'invalid input syntax for type numeric: " "'
        )
    value = parse_numeric(f"{whole or '0'}.{fraction}" if fraction else whole)
    if template.shift:
        value = value.scaleb(-template.shift)
    return value.copy_negate() if is_negative else value

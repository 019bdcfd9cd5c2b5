"""IAM condition operators, as pure functions. One that is not in the table is an error, not a silent yes."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

Context = Mapping[str, Sequence[str]]
"""Condition key in lower case -> its values in this request; a key that the request lacks is absent."""

_ARN_PARTS = 6


@lru_cache(maxsize=4096)
def _glob(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(expression, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def like(value: str, pattern: str, *, ignore_case: bool = False) -> bool:
    """Match a whole text; ``*`` is any text, ``?`` any character."""
    return _glob(pattern, ignore_case=ignore_case).fullmatch(value) is not None


def _arn_like(value: str, pattern: str) -> bool:
    """Match each of an ARN's six parts by itself, so that a ``*`` never reaches into the next one."""
    values, patterns = value.split(":", _ARN_PARTS - 1), pattern.split(":", _ARN_PARTS - 1)
    if len(values) != len(patterns):
        return False
    return all(like(*pair) for pair in zip(values, patterns, strict=True))


def _numeric(compare: Callable[[Decimal, Decimal], bool]) -> Callable[[str, str], bool]:
    def test(value: str, wanted: str) -> bool:
        try:
            return compare(Decimal(value), Decimal(wanted))
        except InvalidOperation:
            return False

    return test


_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": like,
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
    "NumericEquals": _numeric(lambda value, wanted: value == wanted),
    "NumericLessThan": _numeric(lambda value, wanted: value < wanted),
    "NumericLessThanEquals": _numeric(lambda value, wanted: value <= wanted),
    "NumericGreaterThan": _numeric(lambda value, wanted: value > wanted),
    "NumericGreaterThanEquals": _numeric(lambda value, wanted: value >= wanted),
}
_NEGATED: Mapping[str, str] = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
}
_NULL = "Null"
_IF_EXISTS = "IfExists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One operator on one key; it holds when any of ``wanted`` matches (with a negation: when none does)."""

    test: str
    negated: bool = False
    if_exists: bool = False
    quantifier: str | None = None
    """``ForAllValues`` or ``ForAnyValue``."""
    key: str
    wanted: tuple[str, ...]

    def holds(self, context: Context) -> bool:
        values = context.get(self.key)
        if self.test == _NULL:
            return self.wanted == (str(values is None).lower(),)
        if not values:
            return self._holds_without_value()
        if self.quantifier == "ForAllValues":
            return all(self._matches(value) for value in values)
        if self.negated and self.quantifier is None:
            return all(self._matches(value) for value in values)
        return any(self._matches(value) for value in values)

    def _holds_without_value(self) -> bool:
        if self.quantifier is not None:
            return self.quantifier == "ForAllValues" or self.if_exists
        return self.negated or self.if_exists

    def _matches(self, value: str) -> bool:
        return any(_TESTS[self.test](value, wanted) for wanted in self.wanted) is not self.negated


def parse_condition(operator: str, key: str, wanted: Sequence[str]) -> Condition:
    """Raises ValueError for an operator that is not in the table."""
    quantifier, _, name = operator.rpartition(":")
    if_exists = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    test = _NEGATED.get(name, name)
    if test not in _TESTS and operator != _NULL:
        raise ValueError(f"unknown condition operator {operator!r}")
    if quantifier not in {"", "ForAllValues", "ForAnyValue"}:
        raise ValueError(f"unknown condition operator {operator!r}")
    return Condition(
        test=test,
        negated=name in _NEGATED,
        if_exists=if_exists,
        quantifier=quantifier or None,
        key=key.lower(),
        wanted=tuple(wanted),
    )

"""The rule of a composite alarm.

Source: CloudWatch API reference, PutCompositeAlarm, AlarmRule.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


class RuleError(ValueError):
    """Raised for a rule that makes no sense."""


@dataclass(frozen=True, slots=True)
class InState:
    alarm: str
    """Name, or ARN."""
    state: str


@dataclass(frozen=True, slots=True)
class Always:
    answer: bool


@dataclass(frozen=True, slots=True)
class Not:
    rule: "Rule"


@dataclass(frozen=True, slots=True)
class Both:
    """A conjunction (AND)."""

    rules: tuple["Rule", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """A disjunction (OR)."""

    rules: tuple["Rule", ...]


Rule: TypeAlias = InState | Always | Not | Both | Either

_STATES = frozenset({"ALARM", "OK", "INSUFFICIENT_DATA"})
_TOKEN = re.compile(r'\s*(?:"([^"]*)"|([()])|([^\s()"]+))')
_ARN_MARK = ":alarm:"


def parse(text: str) -> Rule:
    """Raises RuleError."""
    return _Reader(text).whole()


def alarms_of(rule: Rule) -> tuple[str, ...]:
    """Return the names of the alarms that the rule mentions, each once."""
    match rule:
        case InState(alarm=alarm):
            return (alarm.rpartition(_ARN_MARK)[2],)
        case Always():
            return ()
        case Not(rule=inner):
            return alarms_of(inner)
        case Both(rules=rules) | Either(rules=rules):
            return tuple(dict.fromkeys(name for part in rules for name in alarms_of(part)))


def holds(rule: Rule, states: Mapping[str, str]) -> bool:
    """Tell whether the rule holds under these states by alarm name; a missing alarm is in no state."""
    match rule:
        case InState(alarm=alarm, state=state):
            return states.get(alarm.rpartition(_ARN_MARK)[2]) == state
        case Always(answer=answer):
            return answer
        case Not(rule=inner):
            return not holds(inner, states)
        case Both(rules=rules):
            return all(holds(part, states) for part in rules)
        case Either(rules=rules):
            return any(holds(part, states) for part in rules)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        place, text = 0, text.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise self._error(f"cannot be read from character {place + 1} on")
            self._tokens.append(next(part for part in match.groups() if part is not None))
            place = match.end()
        self._tokens.reverse()

    def whole(self) -> Rule:
        rule = self._either()
        if self._tokens:
            raise self._error(f"{self._tokens[-1]!r} was not expected")
        return rule

    def _error(self, problem: str) -> RuleError:
        return RuleError(f"{self._text!r}: {problem}")

    def _take(self) -> str:
        if not self._tokens:
            raise self._error("it ends too early")
        return self._tokens.pop()

    def _expect(self, word: str) -> None:
        if (token := self._take()) != word:
            raise self._error(f"{word!r} was expected, not {token!r}")

    def _follows(self, word: str) -> bool:
        if self._tokens and self._tokens[-1] == word:
            self._tokens.pop()
            return True
        return False

    def _either(self) -> Rule:
        rules = [self._both()]
        while self._follows("OR"):
            rules.append(self._both())
        return rules[0] if len(rules) == 1 else Either(tuple(rules))

    def _both(self) -> Rule:
        rules = [self._one()]
        while self._follows("AND"):
            rules.append(self._one())
        return rules[0] if len(rules) == 1 else Both(tuple(rules))

    def _one(self) -> Rule:
        word = self._take()
        match word:
            case "NOT":
                return Not(self._one())
            case "TRUE" | "FALSE":
                return Always(word == "TRUE")
            case "(":
                rule = self._either()
                self._expect(")")
                return rule
            case _ if word in _STATES:
                self._expect("(")
                alarm = self._take()
                self._expect(")")
                return InState(alarm, word)
            case _:
                raise self._error(f"{word!r} was not expected")

"""Sweeps as people write them: ``lr=1e-4,3e-4``, ``seed=1-5``, ``lr=log:1e-5..1e-2``. Pure.

A grid is every combination of its values; a random sweep draws each value for itself, the same for the same
seed. Scales and combinations are those of tuning jobs.
"""

import math
import random
import re
from collections.abc import Iterator, Sequence

from trainmaster_client.errors import FieldProblem, InvalidOptionsError
from trainmaster_client.tuning.search_space import (
    Choice,
    NumberRange,
    Parameters,
    Range,
    Scaling,
    SearchSpace,
)

MOST_TASKS = 10_000
"""The API's bound on the tasks of one array, unless the policy has a lower one."""
_SPAN = re.compile(r"(?P<first>[0-9]{1,9})-(?P<last>[0-9]{1,9})(?::(?P<step>[0-9]{1,9}))?")
_PREFIXES = frozenset({"log", "int"})
_EXAMPLES = "write e.g. lr=1e-4,3e-4 or seed=1-5"
_RANDOM_EXAMPLES = "write e.g. lr=log:1e-5..1e-2, layers=int:2..12, dropout=0..0.3 or opt=adam,sgd"


def grid(definitions: Sequence[str]) -> list[Parameters]:
    """Return every combination of the values, the last hyperparameter changing first.

    Raises:
        InvalidOptionsError: A definition is none, a name comes twice, or there are too many combinations.
    """
    axes, problems = list[Range](), list[FieldProblem]()
    for text in definitions:
        name, values = _split(text, problems, option="--grid", hint=_EXAMPLES)
        if values:
            axes.append(_choice(name, values, problems, option="--grid"))
    problems += _repeated(axes, option="--grid")
    space = SearchSpace(ranges=tuple(axes))
    if not problems and space.combination_count > MOST_TASKS:
        message = f"has {space.combination_count} combinations"
        problems.append(FieldProblem(field="--grid", message=message, hint=f"use at most {MOST_TASKS}"))
    if problems:
        raise InvalidOptionsError(tuple(problems))
    return list(space.combinations())


def drawn(definitions: Sequence[str], *, count: int, seed: int) -> list[Parameters]:
    """Draw the values of so many tasks; the first ones stay when more are drawn.

    Args:
        definitions: ``NAME=RANGE`` each: ``a..b``, ``log:a..b``, ``int:a..b``, or values to choose from.
        count: Number of tasks.
        seed: The same seed draws the same values.

    Raises:
        InvalidOptionsError: A definition is none, a name comes twice, or there are too many tasks.
    """
    axes, problems = list[Range](), list[FieldProblem]()
    for text in definitions:
        name, values = _split(text, problems, option="--random", hint=_RANDOM_EXAMPLES)
        if values:
            axes.append(_axis(name, values, problems))
    problems += _repeated(axes, option="--random")
    if not definitions:
        problems.append(FieldProblem(field="--random", message="has no range", hint=_RANDOM_EXAMPLES))
    if not 1 <= count <= MOST_TASKS:
        hint = f"use 1 to {MOST_TASKS}"
        problems.append(FieldProblem(field="--random", message=f"{count} is not valid", hint=hint))
    if problems:
        raise InvalidOptionsError(tuple(problems))
    return list(_draws(axes, count, seed))


def _draws(axes: Sequence[Range], count: int, seed: int) -> Iterator[Parameters]:
    for number in range(count):
        source = random.Random(f"{seed}/{number}")  # noqa: S311  no secret: the seed makes it repeatable
        yield {
            axis.name: source.choice(axis.values) if isinstance(axis, Choice) else axis.at(source.random())
            for axis in axes
        }


def _split(text: str, problems: list[FieldProblem], *, option: str, hint: str) -> tuple[str, str]:
    name, equals, values = text.partition("=")
    if not (equals and name.strip() and values.strip()):
        problems.append(FieldProblem(field=option, message=f"{text!r} is not NAME=VALUES", hint=hint))
        return "", ""
    return name.strip(), values.strip()


def _choice(name: str, values: str, problems: list[FieldProblem], *, option: str) -> Choice:
    texts = [text for part in values.split(",") for text in _expanded(name, part.strip(), problems, option)]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        problems.append(FieldProblem(field=f"{option} {name}", message=f"has {twice} twice"))
    return Choice(name=name, values=tuple(texts))


def _expanded(name: str, part: str, problems: list[FieldProblem], option: str) -> Iterator[str]:
    span = _SPAN.fullmatch(part)
    if span is None:
        if not part:
            problems.append(FieldProblem(field=f"{option} {name}", message="has an empty value"))
        yield part
        return
    first, last, step = int(span["first"]), int(span["last"]), int(span["step"] or 1)
    if last < first or step < 1:
        message = f"has {part}, which holds no number"
        problems.append(
            FieldProblem(field=f"{option} {name}", message=message, hint="write e.g. 1-5 or 1-9:2")
        )
        return
    for number in range(first, min(last + 1, first + step * (MOST_TASKS + 1)), step):
        yield str(number)


def _axis(name: str, values: str, problems: list[FieldProblem]) -> Range:
    """Read a range or a choice; a mistake is added to the problems."""
    *prefixes, ends = values.split(":")
    if ".." not in ends:
        return _choice(name, values, problems, option="--random")
    low_text, _, high_text = ends.partition("..")
    is_integer, is_log = "int" in prefixes, "log" in prefixes
    mistake = "" if set(prefixes) <= _PREFIXES else f"{prefixes[0]!r} is no scale; there are log and int"
    low, high = _number(low_text), _number(high_text)
    if not mistake and (low is None or high is None):
        mistake = f"{ends!r} is not a range of numbers"
    elif low is not None and high is not None:
        mistake = mistake or _range_mistake(low, high, is_integer=is_integer, is_log=is_log)
    if mistake:
        problems.append(FieldProblem(field=f"--random {name}", message=mistake, hint=_RANDOM_EXAMPLES))
    scaling = Scaling.LOGARITHMIC if is_log else Scaling.LINEAR
    return NumberRange(name=name, low=low or 0, high=high or 0, is_integer=is_integer, scaling=scaling)


def _range_mistake(low: float, high: float, *, is_integer: bool, is_log: bool) -> str:
    if low > high:
        return f"{low:g}..{high:g} ends before it begins"
    if is_log and low <= 0:
        return f"{low:g} has no logarithm"
    if is_integer and not (low.is_integer() and high.is_integer()):
        return f"{low:g}..{high:g} are not whole numbers"
    return ""


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _repeated(axes: Sequence[Range], *, option: str) -> Iterator[FieldProblem]:
    names = [axis.name for axis in axes]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield FieldProblem(field=option, message=f"has {name} twice", hint="give each name once")

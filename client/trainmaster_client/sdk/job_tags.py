"""Job options as the tags that carry them, ``priority=5`` as the tag ``priority``: every SDK, and boto3.

``tags=job_tags(priority=5, preemptible=False)`` of an estimator, or ``Tags=`` of a request.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypedDict, Unpack, cast

from trainmaster_client.errors import FieldProblem, InvalidOptionsError
from trainmaster_client.jobs.job_conditions import AFTER_FAILED, AFTER_FAILED_TAG, Conditions, condition_tags


class Tag(TypedDict):
    Key: str
    Value: str


class JobOptions(TypedDict, total=False):
    """None, or left out: what the policy says for all jobs."""

    priority: int | None
    """0 to 1000; more comes first. Default 0."""
    team: str | None
    """Needed by who is in several teams."""
    preemptible: bool | None
    """Whether a job of higher priority may take its place. Default True."""
    retries: int | None
    """0 to 5 failures that the queue tries again; the policy may allow fewer."""
    on_oom: Literal["halve_batch"] | None
    """Change that a retry makes after the GPUs' memory ran out; None makes none."""
    alternatives: Sequence[str] | str | None
    """Shapes that do as well, the best first: ``ml.g5.4xlarge=4``, ``ml.g5.12xlarge=1:spot@subnet-0ab1``;
    ``@any`` stands for each subnet of the request."""
    plan: Literal["first", "only", "never"] | None
    """Whether it runs on the pool's training plans first, on nothing else, or never. Default first."""
    elastic: str | Sequence[int] | None
    """Instance counts that it may run with, ``2-8``, ``2-8:2`` or [2, 4, 8]; its instance_count is the
    largest."""
    hold_open: str | None
    """Longest wait of the container for a visitor, ``30m`` before it trains, ``failure:30m`` after a failure;
    it needs remote debugging, and launch.py as its entry point."""
    after: Conditions | None
    """Jobs to wait for: names, conditions such as ``afterany:clean``, handles, or a list of them."""
    after_failed: Literal["stop", "hold"] | None
    """Whether the job is stopped or held once a condition can no longer hold. Default stop."""


MAX_PRIORITY = 1000
CHEAPEST = "cheapest"
MAX_RETRIES = 5
MAX_VALUE_LENGTH = 256
"""Source: SageMaker API reference, Tag."""

FEWEST_WIDTHS = 2
"""Widths that a job needs at least to be elastic."""
MOST_INSTANCES = 999_999
_WIDTHS = re.compile(r"[1-9][0-9]{0,5}-[1-9][0-9]{0,5}(:[1-9][0-9]{0,5})?|[1-9][0-9]{0,5}( [1-9][0-9]{0,5})+")
_HOLD = re.compile(r"(failure:)?[1-9][0-9]{0,5}[smh]")
_SHAPE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9.-]*=[1-9][0-9]{0,5}(:spot)?(@(subnet-[0-9a-z]+|any))?")
_HINTS: Mapping[str, str] = {
    "priority": f"give a whole number from 0 to {MAX_PRIORITY}",
    "team": "name one of your teams, or leave it out",
    "preemptible": "give True or False",
    "retries": f"give a whole number from 0 to {MAX_RETRIES}",
    "on_oom": "give 'halve_batch', or leave it out",
    "plan": "give 'first', 'only' or 'never'",
    "elastic": "give a text like '2-8' or '2-8:2', or a list of counts like [2, 4, 8], the least first",
    "after_failed": "give 'hold' or 'stop'",
    "hold_open": "give a time from 1m to 24h, like '30m', or 'failure:30m'",
    "alternatives": "give a list of shapes, each once, like ['ml.g5.12xlarge=1', 'ml.g5.4xlarge=4:spot'],"
    " or 'cheapest'",
}


def job_tags(**options: Unpack[JobOptions]) -> list[Tag]:
    """Return the tags for these options, in the order of JobOptions; none for an option that is None.

    Raises:
        InvalidOptionsError: Lists all that is wrong with them, before anything is sent.
    """
    given = {name: value for name, value in options.items() if value is not None}
    after = given.pop("after", None)
    problems = [problem for name, value in given.items() for problem in _problems(name, value)]
    if problems:
        raise InvalidOptionsError(tuple(problems))
    tags: list[Tag] = [
        {"Key": key, "Value": _text(given[name])} for name, key in _KEYS.items() if name in given
    ]
    conditions = [] if after is None else condition_tags(cast("Conditions", after))
    return [*tags, *(Tag(Key=tag["Key"], Value=tag["Value"]) for tag in conditions)]


def _problems(name: str, value: object) -> list[FieldProblem]:
    if name not in _KEYS:
        return [FieldProblem(field=name, message="is not an option", hint=f"use one of {', '.join(_NAMES)}")]
    if not _CHECKS[name](value):
        return [FieldProblem(field=name, message=f"{value!r} is not allowed", hint=_HINTS[name])]
    if len(_text(value)) > MAX_VALUE_LENGTH:
        message = f"takes {len(_text(value))} characters as a tag, SageMaker allows {MAX_VALUE_LENGTH}"
        return [FieldProblem(field=name, message=message, hint="leave some out")]
    return []


def _is_whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.strip() == value != ""


def _are_shapes(value: object) -> bool:
    if value == CHEAPEST:
        return True
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        return False
    return all(isinstance(shape, str) and _SHAPE.fullmatch(shape) for shape in value) and len(
        set(value)
    ) == len(value)


def _are_widths(value: object) -> bool:
    """Tell whether a value looks like widths; the API says in detail what is wrong with them."""
    if isinstance(value, str):
        return _WIDTHS.fullmatch(value) is not None
    if not isinstance(value, Sequence) or len(value) < FEWEST_WIDTHS:
        return False
    return all(_is_whole(count, MOST_INSTANCES) and count for count in value) and list(value) == sorted(
        set(value)
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(str, value))
    return str(value)


_NAMES = tuple(JobOptions.__annotations__)
_KEYS: Mapping[str, str] = {
    "priority": "priority",
    "team": "team",
    "preemptible": "trainmaster:preemptible",
    "retries": "trainmaster:retries",
    "on_oom": "trainmaster:on_oom",
    "alternatives": "trainmaster:alternatives",
    "plan": "trainmaster:plan",
    "elastic": "trainmaster:elastic",
    "hold_open": "trainmaster:hold-open",
    "after_failed": AFTER_FAILED_TAG,
}
"""Option -> key of its tag. A test holds it to what the API reads."""

_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "priority": lambda value: _is_whole(value, MAX_PRIORITY),
    "team": _is_name,
    "preemptible": lambda value: isinstance(value, bool),
    "retries": lambda value: _is_whole(value, MAX_RETRIES),
    "on_oom": lambda value: value == "halve_batch",
    "alternatives": _are_shapes,
    "plan": lambda value: value in {"first", "only", "never"},
    "elastic": _are_widths,
    "hold_open": lambda value: isinstance(value, str) and _HOLD.fullmatch(value) is not None,
    "after_failed": lambda value: value in AFTER_FAILED,
}
